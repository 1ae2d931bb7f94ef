/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* mqtt_sink.c - the sink `mqtt`: a message with QoS 1 for each row.
 *
 *     deliver: sends, and keeps the message | flush: waits until the broker has acknowledged all
 *
 * At least once: after a lost connection the kept messages are sent again. `key_field` puts the key
 * of the row into the message, so that a receiver can drop repetitions. */
#include <mosquitto.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "connectors/connectors.h"
#include "connectors/row_json.h"
#include "connectors/row_template.h"
#include "connectors/settings.h"
#include "kinds/mqtt_client.h"
#include "os/os.h"

#define REC_SPEC "connectors/mqtt_sink.rec"
#include <detent/rec/declare.h>

#define TIMEOUT   (30 * DET_SECOND)
#define RETRY_FOR DET_MINUTE
#define PAUSE_MIN (200 * DET_MILLISECOND)
#define PAUSE_MAX (10 * DET_SECOND)
#define KEEPALIVE 60
#define LOOK_MS   50
/* Messages that are kept until they are acknowledged. */
#define KEPT_MAX   1024
#define KEPT_LARGE 4194304
#define TOPIC_MAX  65535

struct kept {
    size_t topic, payload, end; /* in the buffer; the topic has a final NUL */
};

struct mqtt_sink {
    struct det_stage_call *call; /* of the function that runs now */
    struct det_world *world;
    struct mqtt_client *client; /* NULL: not connected */
    struct mqtt_link_desired desired;
    struct mqtt_sink_settings settings;
    struct columns columns;
    struct row_template topic, payload;
    struct det_buffer messages;
    struct kept kept[KEPT_MAX];
    size_t count;
    det_time timeout, retry_for;
    char text[160];
};

static int check_place(
    const struct mqtt_sink_settings *value, const struct settings *settings,
    struct det_error *reterr)
{
    int r;

    r = settings_need(settings, "host", value->host, "host: localhost", reterr);
    if (r == 0)
        r = settings_need(settings, "topic", value->topic, "topic: 'plant/{sensor}'", reterr);
    if (r < 0)
        return r;
    if (strpbrk(value->host, "/ \t"))
        return settings_fail_key(
            settings, "host", reterr, "'%s' is not a host: use a name or an address alone",
            value->host);
    if ((*value->password_file || *value->password_environment) && !*value->user)
        return settings_fail_key(settings, "user", reterr, "a password needs a user: add user:");
    if (!*value->tls_certificate_file != !*value->tls_key_file)
        return settings_fail_key(
            settings, "tls_key_file", reterr,
            "tls_certificate_file and tls_key_file go together: set both or neither");
    if (!value->tls && (*value->tls_ca_file || *value->tls_certificate_file))
        return settings_fail_key(
            settings, "tls", reterr, "settings of TLS need TLS: add tls: true");
    return 0;
}

static int compile_one(
    struct mqtt_sink *sink, struct row_template *ret, const struct settings *settings,
    const char *key, const char *text, const struct det_allocator *allocator,
    struct det_error *reterr)
{
    struct det_error error = { 0 };
    int r;

    r = row_template_init(ret, allocator, key, text, &sink->columns, &error);
    if (r == DET_ERR_NO_MEMORY)
        return det_error_set(reterr, r, "%s", error.text);
    return r < 0 ? settings_fail_key(settings, key, reterr, "%s", error.text) : 0;
}

static int compile(
    struct mqtt_sink *sink, const struct settings *settings, const struct det_allocator *allocator,
    struct det_error *reterr)
{
    const struct mqtt_sink_settings *value = &sink->settings;
    int r;

    r = columns_init(&sink->columns, allocator, det_record_of(settings->stage->in), COLUMNS_NESTED);
    if (r < 0)
        return det_error_set(reterr, r, "%s: out of memory", settings->what);
    r = compile_one(sink, &sink->topic, settings, "topic", value->topic, allocator, reterr);
    if (r == 0 && *value->payload)
        r = compile_one(
            sink, &sink->payload, settings, "payload", value->payload, allocator, reterr);
    return r;
}

/* Fills what the client needs; a path is relative to the folder of the flow. */
static int fill_desired(
    struct mqtt_sink *sink, const struct settings *settings, const char *folder,
    struct det_error *reterr)
{
    const struct mqtt_sink_settings *value = &sink->settings;
    struct mqtt_link_desired *desired = &sink->desired;
    struct {
        const char *key, *from;
        char *to;
        size_t size;
    } files[] = {
        { "tls_ca_file", value->tls_ca_file, desired->tls_ca_file, sizeof desired->tls_ca_file },
        { "tls_certificate_file", value->tls_certificate_file, desired->tls_certificate_file,
          sizeof desired->tls_certificate_file },
        { "tls_key_file", value->tls_key_file, desired->tls_key_file,
          sizeof desired->tls_key_file },
    };
    char path[DET_PATH_MAX];

    (void)det_text_copy(desired->host, sizeof desired->host, value->host);
    (void)det_text_copy(desired->client_id, sizeof desired->client_id, value->client_id);
    (void)det_text_copy(desired->user, sizeof desired->user, value->user);
    desired->port = value->port ? value->port : value->tls ? 8883 : 1883;
    desired->keepalive_s = KEEPALIVE;
    desired->tls = value->tls;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        int r;

        if (!*files[i].from)
            continue;
        r = settings_path(settings, files[i].key, files[i].from, folder, path, reterr);
        if (r < 0)
            return r;
        if (!det_text_copy(files[i].to, files[i].size, path))
            return settings_fail_key(settings, files[i].key, reterr, "the path is too long");
    }
    return 0;
}

static int read_secret(
    struct mqtt_sink *sink, const struct settings *settings, const char *folder,
    struct det_error *reterr)
{
    const struct mqtt_sink_settings *value = &sink->settings;
    char secret[SETTINGS_SECRET_MAX + 1] = "";
    int r;

    if (!*value->password_file && !*value->password_environment)
        return 0;
    r = settings_secret(
        settings, value->password_file, value->password_environment, folder, secret, reterr);
    if (r == 0 && !det_text_copy(sink->desired.password, sizeof sink->desired.password, secret))
        r = settings_fail_key(settings, "password_file", reterr, "the password is too long");
    explicit_bzero(secret, sizeof secret);
    return r;
}

static int read_settings(
    struct mqtt_sink *sink, const struct det_stage *stage, const struct det_allocator *allocator,
    const char *folder, bool reads_secret, struct det_error *reterr)
{
    struct mqtt_sink_settings *value = &sink->settings;
    struct settings settings;
    int r;

    r = settings_open(
        &settings, stage, allocator, mqtt_sink_settings_record(), value, NULL, reterr);
    if (r < 0)
        return r;
    r = check_place(value, &settings, reterr);
    if (r == 0)
        r = settings_duration(
            &settings, "timeout", value->timeout, TIMEOUT, &sink->timeout, reterr);
    if (r == 0)
        r = settings_duration(
            &settings, "retry_for", value->retry_for, RETRY_FOR, &sink->retry_for, reterr);
    if (r == 0)
        r = fill_desired(sink, &settings, folder, reterr);
    if (r == 0 && reads_secret)
        r = read_secret(sink, &settings, folder, reterr);
    if (r == 0)
        r = compile(sink, &settings, allocator, reterr);
    settings_close(&settings);
    return r;
}

static void free_sink(struct mqtt_sink *sink, const struct det_allocator *allocator)
{
    mqtt_client_close(sink->client);
    row_template_deinit(&sink->topic);
    row_template_deinit(&sink->payload);
    columns_deinit(&sink->columns);
    det_buffer_deinit(&sink->messages);
    explicit_bzero(sink->desired.password, sizeof sink->desired.password);
    DET_DELETE(allocator, sink);
}

static int mqtt_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    struct mqtt_sink *sink = DET_NEW(NULL, struct mqtt_sink);
    int r;

    if (!sink)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "%s: out of memory", stage->name);
    r = read_settings(sink, stage, NULL, folder, false, reterr);
    free_sink(sink, NULL);
    return r;
}

static det_time now_of(const struct mqtt_sink *sink)
{
    return det_world_now(sink->world, DET_CLOCK_MONOTONIC);
}

static int mqtt_open(struct det_stage_call *call)
{
    struct mqtt_sink *sink = DET_NEW(call->allocator, struct mqtt_sink);
    struct det_error error = { 0 };
    int r;

    if (!sink)
        return DET_ERR_NO_MEMORY;
    sink->call = call;
    sink->world = det_world_or_real(call->world);
    det_buffer_init(&sink->messages, call->allocator);
    r = read_settings(sink, call->stage, call->allocator, call->folder, true, &error);
    if (r < 0) {
        free_sink(sink, call->allocator);
        return settings_refuse(call, &error);
    }
    call->self = sink;
    return 0;
}

static void mqtt_close(struct det_stage_call *call)
{
    struct mqtt_sink *sink = call->self;

    if (sink->client && sink->client->is_connected)
        mqtt_client_disconnect(sink->client);
    free_sink(sink, call->allocator);
    call->self = NULL;
}

/* Turns the client until it is connected, or until nothing is pending. */
static int turn_until(struct mqtt_sink *sink, bool connects)
{
    struct mqtt_client *client = sink->client;
    det_time deadline = now_of(sink) + sink->timeout;
    uint64_t before = client->asked;

    for (;;) {
        mqtt_client_turn(client);
        if (client->has_failed) {
            (void)det_text_copy(sink->text, sizeof sink->text, client->error);
            return DET_ERR_IO;
        }
        if (connects ? client->is_connected : client->asked == 0)
            return 0;
        /* The timeout is one without progress. */
        if (client->asked != before)
            deadline = now_of(sink) + sink->timeout;
        before = client->asked;
        if (det_stage_is_cancelled(sink->call))
            return DET_ERR_CANCELLED;
        if (now_of(sink) >= deadline) {
            (void)det_text_copy(sink->text, sizeof sink->text, "the broker does not answer");
            return DET_ERR_TIMEOUT;
        }
        mqtt_client_wait(mqtt_client_need(client), LOOK_MS);
    }
}

static void send_message(struct mqtt_sink *sink, const struct kept *kept)
{
    const char *data = sink->messages.data;

    if (!sink->client->has_failed)
        mqtt_client_send(
            sink->client, data + kept->topic, data + kept->payload, kept->end - kept->payload,
            sink->settings.retain);
}

static void drop_client(struct mqtt_sink *sink)
{
    mqtt_client_close(sink->client);
    sink->client = NULL;
}

/* Connects, and sends what was kept. */
static int connect_client(struct mqtt_sink *sink)
{
    struct det_error error = { 0 };
    int r;

    drop_client(sink);
    r = mqtt_client_open(sink->call->allocator, &sink->desired, &sink->client, &error);
    if (r < 0) {
        (void)det_text_copy(sink->text, sizeof sink->text, error.text);
        return r;
    }
    mqtt_client_begin(sink->client);
    r = turn_until(sink, true);
    for (size_t i = 0; i < sink->count && r == 0; i++)
        send_message(sink, &sink->kept[i]);
    return r;
}

/* Waits until all is acknowledged; tries again until `retry_for` has passed. */
static int settle_messages(struct mqtt_sink *sink)
{
    det_time begin = now_of(sink), pause = PAUSE_MIN;

    for (;;) {
        int r = sink->client && !sink->client->has_failed ? 0 : connect_client(sink);

        if (r == 0)
            r = turn_until(sink, false);
        if (r == 0 || r == DET_ERR_CANCELLED)
            return r;
        drop_client(sink);
        if (r == DET_ERR_INVALID || now_of(sink) + pause - begin > sink->retry_for)
            return det_stage_fail(
                sink->call, r, "%s:%u: %s; check the broker and the network, then resume the flow",
                sink->desired.host, (unsigned)sink->desired.port, sink->text);
        if (det_stage_wait(sink->call, now_of(sink) + pause) == DET_ERR_CANCELLED)
            return DET_ERR_CANCELLED;
        pause = pause * 2 < PAUSE_MAX ? pause * 2 : PAUSE_MAX;
    }
}

static int flush_messages(struct mqtt_sink *sink)
{
    int r;

    if (sink->count == 0)
        return 0;
    r = settle_messages(sink);
    if (r < 0)
        return r;
    det_buffer_clear(&sink->messages);
    sink->count = 0;
    return 0;
}

/* Appends a message; a negative result rejects the row. */
static int keep_message(struct mqtt_sink *sink, const void *in, struct kept *kept)
{
    struct det_buffer *messages = &sink->messages;

    kept->topic = messages->size;
    row_template_render(&sink->topic, in, ROW_TEMPLATE_PLAIN, messages);
    det_buffer_append_char(messages, '\0');
    kept->payload = messages->size;
    if (*sink->settings.payload)
        row_template_render(&sink->payload, in, ROW_TEMPLATE_PLAIN, messages);
    else
        row_json(sink->call, &sink->columns, sink->settings.key_field, in, messages);
    kept->end = messages->size;
    if (det_buffer_status(messages) < 0)
        return det_stage_fail(sink->call, DET_ERR_NO_MEMORY, "mqtt: out of memory");
    if (kept->payload - kept->topic <= TOPIC_MAX && kept->payload - kept->topic > 1 &&
        mosquitto_pub_topic_check(messages->data + kept->topic) == MOSQ_ERR_SUCCESS)
        return 0;
    buffer_cut(messages, kept->topic);
    return det_stage_reject(
        sink->call, DET_REJECT_VALIDATION,
        "the topic of the row is empty, too long, or has a '+' or '#'");
}

static int mqtt_deliver(struct det_stage_call *call, void *cursor, const void *in)
{
    struct mqtt_sink *sink = call->self;
    struct kept kept;
    int r;

    (void)cursor;
    sink->call = call;
    if (sink->count == KEPT_MAX || sink->messages.size >= KEPT_LARGE) {
        r = flush_messages(sink);
        if (r < 0)
            return r;
    }
    r = keep_message(sink, in, &kept);
    if (r < 0)
        return r;
    sink->kept[sink->count++] = kept;
    if (sink->client && sink->client->is_connected && !sink->client->has_failed)
        send_message(sink, &kept);
    return 0;
}

static int mqtt_flush(struct det_stage_call *call, void *cursor)
{
    struct mqtt_sink *sink = call->self;

    (void)cursor;
    sink->call = call;
    return flush_messages(sink);
}

const struct det_connector mqtt_sink = {
    .name = "mqtt",
    .about = "a message with QoS 1 for each row",
    .kinds = 1 << DET_STAGE_SINK,
    .flags = DET_STAGE_ASYNC | DET_STAGE_BUFFERED,
    .functions = { .open = mqtt_open,
                   .close = mqtt_close,
                   .deliver = mqtt_deliver,
                   .flush = mqtt_flush },
    .check = mqtt_check,
};
