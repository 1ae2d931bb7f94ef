/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* mqtt_source.c - a row for each message of a broker, with QoS 1: it is acknowledged to the broker
 * when the row is acknowledged by the journal, never before.
 *
 *     thread: connect, subscribe, read --> queued --next(): emitted--> emitted
 *                  ^                                                      |
 *                  '--PUBACK-- acked <--------acknowledged()--------------'
 *
 * The broker keeps the session, so messages that come while the flow is away are delivered later. A
 * message that the broker repeats in this process is recognised by its id; after a restart of the
 * process a row may be repeated.
 *
 * Invariants, under the mutex:
 *   1. A message is in exactly one of the lists queued, emitted and acked.
 *   2. ids[id] is not FREE while a message with this id is in a list.
 *   3. `size` is that of all messages; the thread does not read beyond SIZE_MAX_QUEUED. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/memory.h"
#include "connectors/connectors.h"
#include "connectors/line_row.h"
#include "connectors/mqtt_packet.h"
#include "os/os.h"

#define REC_SPEC "connectors/mqtt_source.rec"
#include <detent/rec/declare.h>

#define ROWS_MAX        4096 /* of one turn */
#define SIZE_MAX_QUEUED ((size_t)8 << 20)
#define CHUNK           65536
#define PAUSE_MIN       (200 * DET_MILLISECOND)
#define PAUSE_MAX       (10 * DET_SECOND)
#define LEAVE           (500 * DET_MILLISECOND) /* at the end, for the last acknowledgements */
#define PING            (MQTT_KEEPALIVE * DET_SECOND * 3 / 4)
#define SILENCE         (MQTT_KEEPALIVE * DET_SECOND * 3 / 2)
#define IDS             65536

enum id_state {
    ID_FREE,
    ID_PENDING, /* its message is in a list */
    ID_DONE,    /* acknowledged: a repetition is acknowledged again */
};

struct message {
    struct det_list link;
    uint64_t last; /* sequence of its row */
    size_t memory;
    size_t topic_size, payload_size;
    uint16_t id;
    char text[]; /* topic, NUL, payload */
};

struct mqtt {
    struct mqtt_source_settings settings;
    char secret[SETTINGS_SECRET_MAX + 1];
    char client_id[192];
    const struct det_allocator *allocator;
    struct det_stage_call *call; /* of open() */
    struct det_world *world;
    struct line_row line_row;
    struct det_thread *thread;
    struct det_mutex *mutex;
    int event; /* eventfd: acked or is_closing has changed, or there is room */
    struct det_list queued, emitted, acked;
    size_t size;
    bool is_closing;
    bool has_trouble; /* `trouble` is to be reported */
    int fatal;        /* an error code: the stage fails with `trouble` */
    char trouble[200];
    /* the thread's */
    int socket;
    bool is_accepted; /* the broker has answered CONNECT: it may get a PUBACK */
    bool is_subscribed;
    bool has_reported; /* since the last subscription */
    struct det_buffer input, output;
    det_time sent_at, heard_at;
    uint8_t ids[IDS]; /* enum id_state; under the mutex */
};

/* ---- settings */

static int check_settings(
    struct mqtt *mqtt, const struct settings *settings, const struct det_stage *stage,
    struct det_error *reterr)
{
    const struct mqtt_source_settings *value = &mqtt->settings;
    int r;

    r = settings_need(settings, "host", value->host, "{host: localhost}", reterr);
    if (r == 0)
        r = settings_need(
            settings, "topics", value->topics_count ? value->topics[0] : "",
            "{topics: [\"plant/#\"]}", reterr);
    if (r < 0)
        return r;
    if ((*value->password_file || *value->password_environment) && !*value->user)
        return settings_fail_key(settings, "user", reterr, "a password needs a user: add user:");
    if (*value->password_file && *value->password_environment)
        return settings_fail_key(
            settings, "password_file", reterr,
            "set password_file or password_environment, not both");
    if (!*value->topic_field)
        return 0;
    return settings_text_field(
        settings, "topic_field", value->topic_field, stage_out(stage), &mqtt->line_row.name_field,
        reterr);
}

static int read_settings(
    struct mqtt *mqtt, const struct det_stage *stage, const struct det_allocator *allocator,
    const char *folder, bool reads_secret, struct det_error *reterr)
{
    struct mqtt_source_settings *value = &mqtt->settings;
    const struct det_field *topic;
    struct settings settings;
    int r;

    r = settings_open(
        &settings, stage, allocator, mqtt_source_settings_record(), value, NULL, reterr);
    if (r < 0)
        return r;
    r = check_settings(mqtt, &settings, stage, reterr);
    topic = mqtt->line_row.name_field;
    if (r == 0 && reads_secret && (*value->password_file || *value->password_environment))
        r = settings_secret(
            &settings, value->password_file, value->password_environment, folder, mqtt->secret,
            reterr);
    if (r == 0)
        r = line_row_init(&mqtt->line_row, &settings, value->as, value->field, allocator, reterr);
    mqtt->line_row.name_field = topic;
    mqtt->line_row.flags = (value->strict ? 0u : (unsigned)DET_TEXT_EXTRA) |
                           (value->partial || topic ? (unsigned)DET_TEXT_PARTIAL : 0u);
    settings_close(&settings);
    return r;
}

static int mqtt_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    struct mqtt *mqtt = DET_NEW(NULL, struct mqtt);
    int r;

    if (!mqtt)
        return DET_ERR_NO_MEMORY;
    r = read_settings(mqtt, stage, NULL, folder, false, reterr);
    line_row_deinit(&mqtt->line_row);
    DET_DELETE(NULL, mqtt);
    return r;
}

/* ---- the thread */

static void lock(struct mqtt *mqtt)
{
    det_mutex_lock(mqtt->world, mqtt->mutex);
}

static void unlock(struct mqtt *mqtt)
{
    det_mutex_unlock(mqtt->world, mqtt->mutex);
}

static void notify_thread(struct mqtt *mqtt)
{
    uint64_t one = 1;

    (void)!write(mqtt->event, &one, sizeof one);
}

/* next() reports it, once for each time that the connection is lost. */
static void report(struct mqtt *mqtt, int fatal, const char *text)
{
    if (mqtt->has_reported && !fatal)
        return;
    mqtt->has_reported = true;
    lock(mqtt);
    (void)snprintf(
        mqtt->trouble, sizeof mqtt->trouble, "the broker %.100s: %s", mqtt->settings.host, text);
    mqtt->has_trouble = true;
    mqtt->fatal = fatal;
    unlock(mqtt);
    det_stage_wake(mqtt->call);
}

static bool is_closing(struct mqtt *mqtt)
{
    bool closing;

    lock(mqtt);
    closing = mqtt->is_closing || mqtt->fatal;
    unlock(mqtt);
    return closing;
}

/* Waits for the socket (events 0: not), or a change. Returns what the socket is ready for. */
static short wait_for(struct mqtt *mqtt, short events, det_time until)
{
    struct pollfd both[2] = { { .fd = mqtt->event, .events = POLLIN },
                              { .fd = mqtt->socket, .events = events } };
    det_time span = until - det_world_now(mqtt->world, DET_CLOCK_MONOTONIC);
    uint64_t count;

    if (span < 0)
        span = 0;
    if (poll(both, 2, (int)((span + DET_MILLISECOND - 1) / DET_MILLISECOND)) <= 0)
        return 0;
    if (both[0].revents)
        (void)!read(mqtt->event, &count, sizeof count);
    return both[1].revents;
}

/* 0: connected, or not yet; otherwise an errno. */
static int begin_connect(struct mqtt *mqtt, char *text, size_t capacity)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *all = NULL;
    char port[8];
    int r;

    (void)snprintf(port, sizeof port, "%u", mqtt->settings.port ? mqtt->settings.port : 1883u);
    r = getaddrinfo(mqtt->settings.host, port, &hints, &all);
    if (r != 0) {
        (void)snprintf(text, capacity, "%s", gai_strerror(r));
        return -1;
    }
    mqtt->socket =
        socket(all->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, all->ai_protocol);
    r = mqtt->socket < 0 ? -1 : connect(mqtt->socket, all->ai_addr, all->ai_addrlen);
    freeaddrinfo(all);
    if (r == 0 || errno == EINPROGRESS)
        return 0;
    (void)snprintf(text, capacity, "%s", strerrordesc_np(errno));
    return -1;
}

static int await_connect(struct mqtt *mqtt, char *text, size_t capacity)
{
    det_time until = det_world_now(mqtt->world, DET_CLOCK_MONOTONIC) + 10 * DET_SECOND;
    socklen_t size = sizeof(int);
    int failure = 0;

    while (!is_closing(mqtt)) {
        if (wait_for(mqtt, POLLOUT, until)) {
            (void)getsockopt(mqtt->socket, SOL_SOCKET, SO_ERROR, &failure, &size);
            (void)snprintf(text, capacity, "%s", strerrordesc_np(failure));
            return failure ? -1 : 0;
        }
        if (det_world_now(mqtt->world, DET_CLOCK_MONOTONIC) >= until) {
            (void)snprintf(text, capacity, "no connection within 10 s");
            return -1;
        }
    }
    return -1;
}

/* Queues a message; one that is known is acknowledged again, or not yet. */
static int take_message(struct mqtt *mqtt, const struct mqtt_packet *packet)
{
    size_t memory = sizeof(struct message) + packet->topic.size + 1 + packet->payload.size;
    bool is_known = packet->id && packet->is_repeated && mqtt->ids[packet->id] != ID_FREE;
    struct message *message;

    if (is_known) {
        if (mqtt->ids[packet->id] == ID_DONE)
            mqtt_put_puback(&mqtt->output, packet->id);
        return 0;
    }
    message = det_alloc(mqtt->allocator, memory);
    if (!message)
        return DET_ERR_NO_MEMORY;
    *message = (struct message){ .memory = memory,
                                 .topic_size = packet->topic.size,
                                 .payload_size = packet->payload.size,
                                 .id = packet->id };
    memcpy(message->text, packet->topic.data, packet->topic.size);
    message->text[packet->topic.size] = 0;
    memcpy(message->text + packet->topic.size + 1, packet->payload.data, packet->payload.size);
    det_list_init(&message->link);
    mqtt->ids[packet->id] = ID_PENDING;
    mqtt->size += memory;
    det_list_append(&mqtt->queued, &message->link);
    return 1;
}

/* Returns false if the connection is to be closed. */
static bool take_packet(struct mqtt *mqtt, const struct mqtt_packet *packet)
{
    const char *topics[16];
    int r;

    switch (packet->type) {
    case MQTT_CONNACK:
        if (packet->code) {
            report(mqtt, packet->code == 3 ? 0 : DET_ERR_INVALID, mqtt_refusal(packet->code));
            return false;
        }
        mqtt->is_accepted = true;
        for (uint32_t i = 0; i < mqtt->settings.topics_count; i++)
            topics[i] = mqtt->settings.topics[i];
        mqtt_put_subscribe(&mqtt->output, topics, mqtt->settings.topics_count);
        return true;
    case MQTT_SUBACK:
        mqtt->is_subscribed = true;
        mqtt->has_reported = false;
        if (packet->code)
            report(mqtt, DET_ERR_INVALID, "it refuses a topic: correct topics");
        return packet->code == 0;
    case MQTT_PUBLISH:
        lock(mqtt);
        r = take_message(mqtt, packet);
        unlock(mqtt);
        if (r == 1)
            det_stage_wake(mqtt->call);
        return r >= 0;
    case MQTT_CONNECT:
    case MQTT_PUBACK:
    case MQTT_SUBSCRIBE:
    case MQTT_PINGREQ:
    case MQTT_PINGRESP:
    case MQTT_DISCONNECT:
        break;
    }
    return true;
}

static bool read_packets(struct mqtt *mqtt)
{
    struct mqtt_packet packet;
    size_t at = 0;
    int r;

    while ((r = mqtt_packet_read(mqtt->input.data + at, mqtt->input.size - at, &packet)) == 1) {
        if (!take_packet(mqtt, &packet))
            return false;
        at += packet.size;
    }
    det_buffer_drop(&mqtt->input, at);
    if (r == DET_ERR_LIMIT)
        report(mqtt, r, "it sent a message of more than 1 MiB: send smaller ones");
    else if (r < 0)
        report(mqtt, 0, "it sent what is not MQTT 3.1.1");
    return r == 0;
}

static bool receive(struct mqtt *mqtt)
{
    char bytes[CHUNK];
    ssize_t size = recv(mqtt->socket, bytes, sizeof bytes, 0);

    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (size <= 0) {
        report(mqtt, 0, size == 0 ? "it has closed the connection" : strerrordesc_np(errno));
        return false;
    }
    mqtt->heard_at = det_world_now(mqtt->world, DET_CLOCK_MONOTONIC);
    det_buffer_append(&mqtt->input, bytes, (size_t)size);
    return det_buffer_status(&mqtt->input) == 0 && read_packets(mqtt);
}

static bool send_output(struct mqtt *mqtt)
{
    ssize_t size;

    if (det_buffer_status(&mqtt->output) < 0)
        return false;
    if (mqtt->output.size == 0)
        return true;
    size = send(mqtt->socket, mqtt->output.data, mqtt->output.size, MSG_NOSIGNAL);
    if (size < 0)
        return errno == EAGAIN || errno == EINTR;
    mqtt->sent_at = det_world_now(mqtt->world, DET_CLOCK_MONOTONIC);
    det_buffer_drop(&mqtt->output, (size_t)size);
    return true;
}

/* Acknowledges messages whose rows are durable, while there is a session. Returns true if more may
 * be read. */
static bool put_pubacks(struct mqtt *mqtt)
{
    struct det_list *link;
    bool has_room;

    lock(mqtt);
    while (mqtt->is_accepted && (link = det_list_take(&mqtt->acked))) {
        struct message *message = DET_CONTAINER(link, struct message, link);

        if (message->id) {
            mqtt_put_puback(&mqtt->output, message->id);
            mqtt->ids[message->id] = ID_DONE;
        }
        mqtt->size -= message->memory;
        det_free(mqtt->allocator, message, message->memory);
    }
    has_room = mqtt->size < SIZE_MAX_QUEUED;
    unlock(mqtt);
    return has_room;
}

/* One turn of a connection; returns false when it is over. */
static bool turn_connection(struct mqtt *mqtt)
{
    bool has_room = put_pubacks(mqtt);
    det_time now = det_world_now(mqtt->world, DET_CLOCK_MONOTONIC);
    short events, ready;

    if (now - mqtt->sent_at >= PING)
        mqtt_put_simple(&mqtt->output, MQTT_PINGREQ);
    if (now - mqtt->heard_at >= SILENCE) {
        report(mqtt, 0, "it does not answer");
        return false;
    }
    if (!send_output(mqtt))
        return false;
    events = (short)((has_room ? POLLIN : 0) | (mqtt->output.size ? POLLOUT : 0));
    ready = wait_for(mqtt, events, mqtt->sent_at + PING);
    if (ready & (POLLIN | POLLHUP | POLLERR))
        return receive(mqtt);
    return true;
}

/* Sends what is acknowledged, and waits until the broker has read it: a socket that is closed with
 * bytes to read resets the connection, and the broker drops what it has not read yet. */
static void take_leave(struct mqtt *mqtt)
{
    det_time until = det_world_now(mqtt->world, DET_CLOCK_MONOTONIC) + LEAVE;
    char bytes[CHUNK];
    ssize_t size = 1;

    (void)put_pubacks(mqtt);
    mqtt_put_simple(&mqtt->output, MQTT_DISCONNECT);
    while (mqtt->output.size > 0 && send_output(mqtt) &&
           det_world_now(mqtt->world, DET_CLOCK_MONOTONIC) < until)
        (void)wait_for(mqtt, POLLOUT, until);
    (void)shutdown(mqtt->socket, SHUT_WR);
    while (size != 0 && det_world_now(mqtt->world, DET_CLOCK_MONOTONIC) < until) {
        (void)wait_for(mqtt, POLLIN, until);
        size = recv(mqtt->socket, bytes, sizeof bytes, 0);
        if (size < 0 && errno != EAGAIN && errno != EINTR)
            return;
    }
}

static void run_connection(struct mqtt *mqtt)
{
    char text[128] = "";

    mqtt->is_accepted = mqtt->is_subscribed = false;
    det_buffer_clear(&mqtt->input);
    det_buffer_clear(&mqtt->output);
    if (begin_connect(mqtt, text, sizeof text) < 0 || await_connect(mqtt, text, sizeof text) < 0) {
        if (!is_closing(mqtt))
            report(mqtt, 0, text);
        return;
    }
    mqtt->sent_at = mqtt->heard_at = det_world_now(mqtt->world, DET_CLOCK_MONOTONIC);
    mqtt_put_connect(&mqtt->output, mqtt->client_id, mqtt->settings.user, mqtt->secret);
    while (!is_closing(mqtt) && turn_connection(mqtt))
        ;
    if (mqtt->is_accepted && is_closing(mqtt))
        take_leave(mqtt);
}

static void run_thread(void *argument)
{
    struct mqtt *mqtt = argument;
    det_time pause = PAUSE_MIN;

    while (!is_closing(mqtt)) {
        det_time until;

        run_connection(mqtt);
        if (mqtt->socket >= 0)
            (void)close(mqtt->socket);
        mqtt->socket = -1;
        pause = mqtt->is_subscribed ? PAUSE_MIN : pause;
        until = det_world_now(mqtt->world, DET_CLOCK_MONOTONIC) + pause;
        while (!is_closing(mqtt) && det_world_now(mqtt->world, DET_CLOCK_MONOTONIC) < until)
            (void)wait_for(mqtt, 0, until);
        pause = 2 * pause < PAUSE_MAX ? 2 * pause : PAUSE_MAX;
    }
}

/* ---- open and close */

static void free_list(struct mqtt *mqtt, struct det_list *list)
{
    struct det_list *link;

    while ((link = det_list_take(list))) {
        struct message *message = DET_CONTAINER(link, struct message, link);

        det_free(mqtt->allocator, message, message->memory);
    }
}

static void free_mqtt(struct mqtt *mqtt)
{
    if (mqtt->thread) {
        lock(mqtt);
        mqtt->is_closing = true;
        unlock(mqtt);
        notify_thread(mqtt);
        det_thread_join(mqtt->world, mqtt->thread);
    }
    free_list(mqtt, &mqtt->queued);
    free_list(mqtt, &mqtt->emitted);
    free_list(mqtt, &mqtt->acked);
    det_buffer_deinit(&mqtt->input);
    det_buffer_deinit(&mqtt->output);
    det_mutex_close(mqtt->world, mqtt->mutex);
    if (mqtt->event >= 0)
        (void)close(mqtt->event);
    line_row_deinit(&mqtt->line_row);
    explicit_bzero(mqtt->secret, sizeof mqtt->secret);
    DET_DELETE(mqtt->allocator, mqtt);
}

static void mqtt_close(struct det_stage_call *call)
{
    free_mqtt(call->self);
}

static int start_thread(struct mqtt *mqtt, struct det_error *reterr)
{
    int r = 0;

    mqtt->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (mqtt->event < 0)
        r = DET_ERR_LIMIT;
    if (r == 0)
        r = det_mutex_open(mqtt->world, &mqtt->mutex);
    if (r == 0)
        r = det_thread_start(mqtt->world, "mqtt", run_thread, mqtt, &mqtt->thread);
    return r < 0 ? det_error_set(reterr, r, "no thread for a broker: %s", det_error_text(r)) : 0;
}

static int mqtt_open(struct det_stage_call *call)
{
    struct mqtt *mqtt = DET_NEW(call->allocator, struct mqtt);
    struct det_error error = { 0 };
    int r;

    if (!mqtt)
        return DET_ERR_NO_MEMORY;
    mqtt->allocator = call->allocator;
    mqtt->world = det_world_or_real(call->world);
    mqtt->call = call;
    mqtt->event = mqtt->socket = -1;
    det_list_init(&mqtt->queued);
    det_list_init(&mqtt->emitted);
    det_list_init(&mqtt->acked);
    det_buffer_init(&mqtt->input, call->allocator);
    det_buffer_init(&mqtt->output, call->allocator);
    r = read_settings(mqtt, call->stage, call->allocator, call->folder, true, &error);
    if (*mqtt->settings.client_id)
        (void)det_text_copy(mqtt->client_id, sizeof mqtt->client_id, mqtt->settings.client_id);
    else
        (void)snprintf(
            mqtt->client_id, sizeof mqtt->client_id, "detent-%s-%s", call->flow, call->stage->name);
    if (r == 0)
        r = start_thread(mqtt, &error);
    if (r < 0) {
        free_mqtt(mqtt);
        return settings_refuse(call, &error);
    }
    call->self = mqtt;
    return 0;
}

/* ---- the loop of the pipeline */

static struct message *first_queued(struct mqtt *mqtt)
{
    struct det_list *link;

    lock(mqtt);
    link = mqtt->queued.next;
    unlock(mqtt);
    return link == &mqtt->queued ? NULL : DET_CONTAINER(link, struct message, link);
}

/* Reports trouble of the thread. Negative: the stage has failed. */
static int report_trouble(struct det_stage_call *call, struct mqtt *mqtt)
{
    char text[sizeof mqtt->trouble];
    bool has_trouble;
    int fatal;

    lock(mqtt);
    has_trouble = mqtt->has_trouble;
    fatal = mqtt->fatal;
    memcpy(text, mqtt->trouble, sizeof text);
    mqtt->has_trouble = false;
    unlock(mqtt);
    if (fatal)
        return det_stage_fail(call, fatal, "%s", text);
    if (has_trouble)
        (void)det_stage_reject(call, DET_REJECT_REMOTE, "%s; it is tried again", text);
    return 0;
}

static int mqtt_next(struct det_stage_call *call, void *cursor_memory)
{
    struct mqtt_source_cursor *cursor = cursor_memory;
    struct mqtt *mqtt = call->self;
    uint32_t room = det_stage_room(call);
    uint64_t sequence = call->row.sequence;
    struct message *message;
    int r;

    r = report_trouble(call, mqtt);
    if (r < 0)
        return r;
    room = room < ROWS_MAX ? room : ROWS_MAX;
    for (uint32_t i = 0; i < room; i++) {
        message = first_queued(mqtt);
        if (!message)
            return DET_SOURCE_IDLE;
        r = line_row_emit(
            call, &mqtt->line_row,
            det_view_of(message->text + message->topic_size + 1, message->payload_size),
            message->text, 0);
        if (r < 0)
            return r;
        sequence += r == 1;
        message->last = sequence;
        cursor->messages++;
        lock(mqtt);
        det_list_remove(&message->link);
        det_list_append(&mqtt->emitted, &message->link);
        unlock(mqtt);
    }
    return DET_SOURCE_MORE;
}

static void mqtt_acknowledged(struct det_stage_call *call, uint64_t sequence)
{
    struct mqtt *mqtt = call->self;
    bool has_more = false;

    lock(mqtt);
    while (!det_list_is_empty(&mqtt->emitted)) {
        struct message *message = DET_CONTAINER(mqtt->emitted.next, struct message, link);

        if (message->last > sequence)
            break;
        det_list_remove(&message->link);
        det_list_append(&mqtt->acked, &message->link);
        has_more = true;
    }
    unlock(mqtt);
    if (has_more)
        notify_thread(mqtt);
}

const struct det_connector mqtt_source = {
    CONNECTOR_HEAD(mqtt, source),
    .flags = DET_STAGE_INFINITE,
    .cursor = { .get = mqtt_source_cursor_record },
    .functions = { .open = mqtt_open,
                   .close = mqtt_close,
                   .next = mqtt_next,
                   .acknowledged = mqtt_acknowledged },
    .check = mqtt_check,
};
