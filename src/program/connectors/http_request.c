/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_request.c - a request that is tried again with growing pauses, or when the server says. */
#include "connectors/http_request.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "os/os.h"

#define PAUSE_MIN (200 * DET_MILLISECOND)
#define PAUSE_MAX (10 * DET_SECOND)
/* Bytes of an answer that are read, and that are shown. */
#define ANSWER_MAX   65536
#define ANSWER_LARGE 16777216
#define ANSWER_SHOWN 100

static bool is_cancelled(void *user)
{
    struct http_sender *sender = user;

    return det_stage_is_cancelled(sender->call);
}

/* Nothing is sent to a server of another user that has taken the place of the socket. */
static int check_peer(void *user, int descriptor, struct det_error *reterr)
{
    struct ucred peer = { 0 };
    socklen_t size = sizeof peer;

    (void)user;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
        (peer.uid == geteuid() || peer.uid == 0))
        return 0;
    return det_error_set(
        reterr, DET_ERR_REFUSED, "the socket is served by another user; nothing was sent");
}

int http_sender_open(
    struct http_sender *sender, struct det_stage_call *call, const char *socket_path)
{
    struct http_client_options options = { .allocator = call->allocator,
                                           .world = call->world,
                                           .socket_path = socket_path,
                                           .check = socket_path ? check_peer : NULL,
                                           .is_cancelled = is_cancelled,
                                           .user = sender };

    sender->call = call;
    return http_client_open(&options, &sender->client);
}

void http_sender_close(struct http_sender *sender)
{
    if (sender->client)
        http_client_close(sender->client);
    sender->client = NULL;
}

enum http_outcome http_outcome_of(unsigned status, bool *ret_retries)
{
    *ret_retries = false;
    if (status >= 200 && status < 300)
        return HTTP_DONE;
    if (status == 401 || status == 403 || status == 407)
        return HTTP_SHUT_OUT;
    *ret_retries = status == 0 || status == 408 || status == 425 || status == 429 || status >= 500;
    return *ret_retries ? HTTP_FAILED : HTTP_REFUSED;
}

/* The begin of an answer in one line of printable ASCII. */
static void show_body(struct http_sender *sender, const struct det_buffer *body)
{
    size_t used = strlen(sender->text);

    if (body->size == 0)
        return;
    used += (size_t)snprintf(sender->text + used, sizeof sender->text - used, ": ");
    for (size_t i = 0; i < body->size && i < ANSWER_SHOWN && used + 1 < sizeof sender->text; i++) {
        char c = body->data[i];

        sender->text[used++] = (char)(c >= ' ' && c < 0x7f ? c : ' ');
    }
    sender->text[used] = 0;
}

static void explain(
    struct http_sender *sender, int r, const struct http_result *result,
    const struct det_buffer *body)
{
    if (r < 0 && r != DET_ERR_LIMIT) {
        (void)det_text_copy(
            sender->text, sizeof sender->text, *result->text ? result->text : det_error_text(r));
        return;
    }
    snprintf(sender->text, sizeof sender->text, "the server answers %u", result->status);
    show_body(sender, body);
}

static enum http_outcome send_once(
    struct http_sender *sender, const struct http_call *wanted, struct http_result *result,
    bool *ret_retries)
{
    struct http_call call = *wanted;
    struct det_buffer own;
    struct det_buffer *body = sender->answer ? sender->answer : &own;
    enum http_outcome outcome;
    int r;

    *result = (struct http_result){ 0 };
    det_buffer_init(&own, sender->call->allocator);
    det_buffer_clear(body);
    call.body = body;
    call.body_max = sender->answer ? ANSWER_LARGE : ANSWER_MAX;
    r = http_client_call(sender->client, &call, result);
    sender->status = result->status;
    *ret_retries = false;
    outcome = r == DET_ERR_CANCELLED
                  ? HTTP_CANCELLED
                  : http_outcome_of(r < 0 && r != DET_ERR_LIMIT ? 0 : result->status, ret_retries);
    if (outcome != HTTP_DONE)
        explain(sender, r, result, body);
    det_buffer_deinit(&own);
    return outcome;
}

enum http_outcome http_sender_send(struct http_sender *sender, const struct http_call *wanted)
{
    struct det_world *world = det_world_or_real(sender->call->world);
    det_time begin = det_world_now(world, DET_CLOCK_MONOTONIC), pause = PAUSE_MIN;

    for (;;) {
        struct http_result result;
        bool retries = false;
        enum http_outcome outcome = send_once(sender, wanted, &result, &retries);
        det_time now = det_world_now(world, DET_CLOCK_MONOTONIC);
        det_time next = now + (result.retry_after > pause ? result.retry_after : pause);

        if (!retries || next - begin > sender->retry_for)
            return outcome;
        do
            if (det_stage_wait(sender->call, next) == DET_ERR_CANCELLED)
                return HTTP_CANCELLED;
        while (det_world_now(world, DET_CLOCK_MONOTONIC) < next);
        pause = pause * 2 < PAUSE_MAX ? pause * 2 : PAUSE_MAX;
    }
}
