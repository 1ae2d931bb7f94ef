/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect_http.c - an effect that is an HTTP call, on a thread that may block.
 *
 * The reason of a failure names hosts, but has no headers and nothing of the request; it has the
 * first BODY_SHOWN bytes of an answer with status 400 or higher. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "daemon/effect.h"
#include "daemon/http_header.h"
#include "observe/event_spans.h"

#define BODY_SHOWN ((size_t)160)

struct exchange {
    const struct effects *effects;
    det_time deadline;
    struct effect_outcome *outcome;
    struct http_lines lines;
};

static bool is_over(void *user)
{
    const struct exchange *exchange = user;

    return effect_is_over(exchange->effects, exchange->deadline);
}

static bool add_line(struct exchange *exchange, const char *name, const char *value)
{
    return http_lines_add(&exchange->lines, name, value);
}

static bool add_header(
    struct exchange *exchange, const struct config_header *header, struct effect_outcome *outcome)
{
    return http_lines_add_header(
        &exchange->lines, exchange->effects->world, header, outcome->why, sizeof outcome->why);
}

/* Passes the trace context to the server. */
static bool add_trace(struct exchange *exchange, const struct det_effect_call *call)
{
    struct det_trace_context context;
    char text[DET_TRACEPARENT_TEXT];

    if (!call->trace)
        return true;
    context = det_episode_attempt_context(call->trace, call->key, call->attempt);
    return add_line(exchange, "traceparent", det_trace_format(&context, text));
}

static bool add_headers(
    struct exchange *exchange, const struct effect_binding *binding,
    const struct det_effect_call *call)
{
    const struct config_effect *config = binding->config;
    bool is_good = add_line(exchange, "Idempotency-Key", call->key) &&
                   add_line(exchange, "Content-Type", "application/json") &&
                   add_line(exchange, "User-Agent", "detent") &&
                   /* The body is sent at once. */
                   add_line(exchange, "Expect", "") && add_trace(exchange, call);

    for (size_t i = 0; is_good && i < config->headers.count; i++)
        is_good = add_header(exchange, &config->headers.items[i], exchange->outcome);
    return is_good;
}

/* Returns the size of the control character or blank at the start of this UTF-8; 0: none. C1
 * controls, U+0080 to U+009F, have two bytes, and terminals obey them like escapes. */
static size_t blank_size(const char *text, size_t size)
{
    unsigned char first = (unsigned char)text[0];

    if (first <= ' ' || first == 0x7F)
        return 1;
    return first == 0xC2 && size > 1 && (unsigned char)text[1] < 0xA0 ? 2 : 0;
}

/* Appends ": " and the start of the answer on one line. Invalid UTF-8 ends it; control characters
 * become blanks. */
static void add_body(struct effect_outcome *outcome)
{
    const char *body = (const char *)outcome->body.data;
    size_t used = strlen(outcome->why), size = outcome->body.size;
    char text[BODY_SHOWN + 1];
    size_t count = 0;

    size = det_utf8_check(body, size < BODY_SHOWN ? size : BODY_SHOWN);
    for (size_t i = 0, blank; i < size; i += blank ? blank : 1) {
        blank = blank_size(body + i, size - i);
        if (!blank)
            text[count++] = body[i];
        else if (count > 0 && text[count - 1] != ' ')
            text[count++] = ' ';
    }
    while (count > 0 && text[count - 1] == ' ')
        count--;
    text[count] = '\0';
    if (count > 0)
        snprintf(
            outcome->why + used, sizeof outcome->why - used, ": %s%s", text,
            outcome->body.size > size ? "..." : "");
}

static void set_outcome(
    const struct exchange *exchange, int code, const struct http_result *result,
    const struct effect_binding *binding)
{
    struct effect_outcome *outcome = exchange->outcome;

    if (code == DET_ERR_CANCELLED || code == DET_ERR_TIMEOUT) {
        effect_time_out(exchange->effects, binding, exchange->deadline, outcome);
    } else if (result->is_shortage) {
        outcome->is_shortage = true;
        snprintf(outcome->why, sizeof outcome->why, HTTP_CLIENT_SHORTAGE_TEXT);
    } else if (code < 0) {
        outcome->error = code;
        snprintf(
            outcome->why, sizeof outcome->why, "%s",
            code == DET_ERR_LIMIT ? "the answer is larger than 1 MiB" : result->reason);
    } else {
        outcome->code = (int)result->status;
        outcome->is_success = result->status >= 200 && result->status <= 299;
        outcome->retry_after = result->retry_after;
        outcome->error = DET_ERR_ACTION_FAILED;
        snprintf(outcome->why, sizeof outcome->why, "status %u", result->status);
        if (result->status >= 400 && outcome->body.size > 0)
            add_body(outcome);
    }
}

static void exchange_once(
    struct exchange *exchange, struct http_client *client, const struct effect_binding *binding,
    const struct det_buffer *input)
{
    const struct http_call call = {
        .method = binding->config->method,
        .url = binding->config->url,
        .lines = &exchange->lines,
        .send = det_buffer_text(input),
        .send_size = input->size,
        .timeout = binding->config->timeout,
        .body = &exchange->outcome->body,
        .body_max = EFFECT_BODY_MAX,
    };
    struct http_result result;
    int r = http_client_call(client, &call, &result);

    set_outcome(exchange, r, &result, binding);
}

void effect_http(
    struct effects *effects, const struct effect_binding *binding,
    const struct det_effect_call *call, const struct det_buffer *input,
    struct effect_outcome *outcome)
{
    struct exchange exchange = { .effects = effects,
                                 .deadline = effect_deadline(effects, binding),
                                 .outcome = outcome };
    struct http_client_options options = { .allocator = effects->allocator,
                                           .world = effects->world,
                                           .is_cancelled = is_over,
                                           .user = &exchange };
    struct http_client *client = NULL;

    outcome->error = DET_ERR_IO;
    if (http_client_open(&options, &client) == 0 && add_headers(&exchange, binding, call)) {
        exchange_once(&exchange, client, binding, input);
    } else if (!outcome->why[0]) {
        outcome->is_shortage = true;
        snprintf(outcome->why, sizeof outcome->why, "out of memory");
    }
    http_lines_deinit(&exchange.lines);
    http_client_close(client);
}
