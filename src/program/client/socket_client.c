/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* socket_client.c - a blocking client of the local socket. */
#include "client/socket_client.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "terminal/terminal.h"

#define READ_SIZE 65536
/* To send a request: the other side reads, or has hung. */
#define SEND_TIME (5 * DET_SECOND)

struct socket_client {
    const struct det_allocator *allocator;
    int descriptor;
    uint64_t id;          /* of the last request */
    struct det_buffer in; /* what was read, from `from` on */
    size_t from;
};

static det_time now(void)
{
    return det_world_now(det_world_real(), DET_CLOCK_MONOTONIC);
}

int socket_client_open(
    const char *project, const struct det_allocator *allocator, struct socket_client **ret,
    struct det_error *reterr)
{
    struct socket_client *client = DET_NEW(allocator, struct socket_client);
    int r;

    if (!client)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    client->allocator = allocator;
    det_buffer_init(&client->in, allocator);
    r = socket_connect(project, &client->descriptor, reterr);
    if (r < 0)
        DET_DELETE(allocator, client);
    else
        *ret = client;
    return r;
}

void socket_client_close(struct socket_client *client)
{
    if (!client)
        return;
    close(client->descriptor);
    det_buffer_deinit(&client->in);
    DET_DELETE(client->allocator, client);
}

static int fail_closed(struct det_error *reterr)
{
    return det_error_set(
        reterr, DET_ERR_CLOSED, "the detent that ran here has gone, or has cut us off");
}

/* As ppoll(): how many are ready, 0 after the span, -1 with EINTR. SIGINT is taken only by the look
 * or by the sleep, so that none is lost between the two. */
static int sleep_until_ready(struct pollfd *one, det_time span)
{
    struct timespec timeout = { .tv_sec = span / DET_SECOND, .tv_nsec = span % DET_SECOND };
    sigset_t interrupt, before;
    int found = -1;

    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &interrupt, &before);
    errno = EINTR;
    if (!cli_is_interrupted())
        found = ppoll(one, 1, &timeout, &before);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return found;
}

/* Until the descriptor is ready. */
static int wait_for(
    const struct socket_client *client, short events, det_time deadline, struct det_error *reterr)
{
    for (;;) {
        struct pollfd poll_one = { .fd = client->descriptor, .events = events };
        det_time left = deadline == DET_NEVER ? DET_DAY : deadline - now();
        int found;

        if (cli_is_interrupted())
            return det_error_set(reterr, DET_ERR_CANCELLED, "interrupted");
        left = left < 0 ? 0 : left > DET_DAY ? DET_DAY : left;
        found = sleep_until_ready(&poll_one, left);
        if (found > 0)
            return 0;
        if (found == 0 && deadline != DET_NEVER && now() >= deadline)
            return det_error_set(
                reterr, DET_ERR_TIMEOUT, "the detent that runs here does not answer");
        if (found < 0 && errno != EINTR)
            /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
            return det_error_set(reterr, DET_ERR_IO, "cannot wait: %s", strerror(errno));
    }
}

static int send_all(
    struct socket_client *client, const char *data, size_t size, struct det_error *reterr)
{
    det_time deadline = now() + SEND_TIME;

    while (size) {
        ssize_t count = send(client->descriptor, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        int r = 0;

        if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            r = wait_for(client, POLLOUT, deadline, reterr);
        else if (count < 0 && errno != EINTR)
            r = fail_closed(reterr);
        if (r < 0)
            return r;
        data += count > 0 ? count : 0;
        size -= count > 0 ? (size_t)count : 0;
    }
    return 0;
}

int socket_client_ask(
    struct socket_client *client, const char *verb, json_t *arguments_take,
    struct det_error *reterr)
{
    json_t *request = json_pack(
        "{s:I, s:s, s:o}", "id", (json_int_t)++client->id, "verb", verb, "arguments",
        arguments_take ? arguments_take : json_object());
    char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
    size_t size = text ? strlen(text) : 0;
    int r;

    json_decref(request);
    if (!text)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    if (size >= SOCKET_LINE_MAX) {
        r = det_error_set(reterr, DET_ERR_LIMIT, "the request is larger than 64 KiB");
    } else {
        /* The newline takes the place of the final 0. */
        text[size] = '\n';
        r = send_all(client, text, size + 1, reterr);
    }
    free(text);
    return r;
}

/* More of the input. */
static int read_more(struct socket_client *client, det_time deadline, struct det_error *reterr)
{
    char part[READ_SIZE];
    ssize_t count;
    int r;

    r = wait_for(client, POLLIN, deadline, reterr);
    if (r < 0)
        return r;
    count = recv(client->descriptor, part, sizeof part, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    if (count <= 0)
        return fail_closed(reterr);
    det_buffer_append(&client->in, part, (size_t)count);
    r = det_buffer_status(&client->in);
    return r < 0 ? det_error_set(reterr, r, "%s", det_error_text(r)) : 0;
}

/* The next line without its newline; it is good until the next call. */
static int next_line(
    struct socket_client *client, det_time deadline, const char **ret, size_t *ret_size,
    struct det_error *reterr)
{
    size_t seen = 0;

    det_buffer_drop(&client->in, client->from);
    client->from = 0;
    for (;;) {
        const char *text = det_buffer_text(&client->in);
        const char *end = memchr(text + seen, '\n', client->in.size - seen);
        int r;

        if (end) {
            *ret = text;
            *ret_size = (size_t)(end - text);
            client->from = *ret_size + 1;
            return 0;
        }
        seen = client->in.size;
        if (seen > SOCKET_QUEUE_MAX)
            return det_error_set(reterr, DET_ERR_MALFORMED, "the answer has no end");
        r = read_more(client, deadline, reterr);
        if (r < 0)
            return r;
    }
}

static int fail_malformed(struct det_error *reterr)
{
    return det_error_set(
        reterr, DET_ERR_MALFORMED,
        "the detent that runs here does not speak as this one; is it another version?");
}

static int take_error(const json_t *error, struct det_error *reterr)
{
    const char *code = json_string_value(json_object_get(error, "code"));
    const char *text = json_string_value(json_object_get(error, "text"));

    if (!code || !text)
        return fail_malformed(reterr);
    return det_error_set(reterr, socket_error_code(code), "%s", text);
}

static int take_answer(
    const struct socket_client *client, const json_t *answer, json_t **ret,
    struct det_error *reterr)
{
    const json_t *id = json_object_get(answer, "id");
    json_t *data = json_object_get(answer, "data");

    if (json_object_get(answer, "error") &&
        (json_is_null(id) || json_integer_value(id) == (json_int_t)client->id))
        return take_error(json_object_get(answer, "error"), reterr);
    if (!json_is_integer(id) || json_integer_value(id) != (json_int_t)client->id)
        return fail_malformed(reterr);
    if (data) {
        *ret = json_incref(data);
        return 1;
    }
    return json_is_true(json_object_get(answer, "end")) ? 0 : fail_malformed(reterr);
}

int socket_client_next(
    struct socket_client *client, det_time deadline, json_t **ret, struct det_error *reterr)
{
    const char *line = "";
    json_t *answer;
    size_t size = 0;
    int r;

    r = next_line(client, deadline, &line, &size, reterr);
    if (r < 0)
        return r;
    answer = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL);
    r = json_is_object(answer) ? take_answer(client, answer, ret, reterr) : fail_malformed(reterr);
    json_decref(answer);
    return r;
}

int socket_client_call(
    struct socket_client *client, const char *verb, json_t *arguments_take, det_time timeout,
    json_t **ret, struct det_error *reterr)
{
    int r;

    r = socket_client_ask(client, verb, arguments_take, reterr);
    if (r == 0)
        r = socket_client_next(client, now() + timeout, ret, reterr);
    if (r == 0)
        r = fail_malformed(reterr);
    return r < 0 ? r : 0;
}
