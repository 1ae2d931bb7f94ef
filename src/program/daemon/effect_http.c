/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect_http.c - an effect that is an HTTP call, by libcurl, on a thread that may block.
 *
 * Redirects are not followed, only http and https are spoken, and certificates are checked. The
 * reason of a failure names hosts, but no headers and nothing of the request; it has the first
 * BODY_SHOWN bytes of an answer whose status is 400 or higher. */
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "daemon/effect.h"
#include "daemon/http_header.h"
#include "kinds/curl_shortage.h"
#include "observe/episode.h"

#define BODY_SHOWN ((size_t)160)

struct exchange {
    const struct effects *effects;
    det_time deadline;
    struct effect_outcome *outcome;
    struct http_lines lines;
    bool is_too_long, is_over;
};

int effect_http_open(void)
{
    return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : DET_ERR_IO;
}

void effect_http_close(void)
{
    curl_global_cleanup();
}

static size_t take_body(char *data, size_t size, size_t count, void *user)
{
    struct exchange *exchange = user;
    struct det_buffer *body = &exchange->outcome->body;

    exchange->is_too_long = body->size + size * count > EFFECT_BODY_MAX;
    if (exchange->is_too_long)
        return 0;
    det_buffer_append(body, data, size * count);
    return det_buffer_status(body) < 0 ? 0 : size * count;
}

/* Called about once a second when nothing happens, and often when something does. */
static int look_around(
    void *user, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up)
{
    struct exchange *exchange = user;

    (void)down_total;
    (void)down;
    (void)up_total;
    (void)up;
    exchange->is_over = effect_is_over(exchange->effects, exchange->deadline);
    return exchange->is_over ? 1 : 0;
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

/* Whoever is called can go on with the trace. */
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

static void set_up(
    CURL *curl, struct exchange *exchange, const struct effect_binding *binding,
    const struct det_buffer *input)
{
    const struct config_effect *config = binding->config;
    long timeout = (long)((config->timeout + DET_MILLISECOND - 1) / DET_MILLISECOND);

    curl_easy_setopt(curl, CURLOPT_URL, config->url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, config->method);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, det_buffer_text(input));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)input->size);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, exchange->lines.list);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, exchange);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_around);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, exchange);
}

/* The size of the control character or blank at the beginning of this UTF-8, 0 if there is none.
 * Those of C1, U+0080 to U+009F, have two bytes; a terminal obeys them as it does an escape. */
static size_t blank_size(const char *text, size_t size)
{
    unsigned char first = (unsigned char)text[0];

    if (first <= ' ' || first == 0x7F)
        return 1;
    return first == 0xC2 && size > 1 && (unsigned char)text[1] < 0xA0 ? 2 : 0;
}

/* Appends ": " and the beginning of the server's answer on one line. Bytes that are no UTF-8 end
 * it; control characters become blanks. */
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

static void judge(
    CURL *curl, CURLcode code, struct exchange *exchange, const struct effect_binding *binding)
{
    struct effect_outcome *outcome = exchange->outcome;
    long status = 0;

    if (exchange->is_over || code == CURLE_OPERATION_TIMEDOUT) {
        effect_time_out(exchange->effects, binding, exchange->deadline, outcome);
    } else if (exchange->is_too_long) {
        outcome->error = DET_ERR_LIMIT;
        snprintf(outcome->why, sizeof outcome->why, "the answer has more than 1 MiB");
    } else if (curl_shortage(curl, code)) {
        outcome->is_shortage = true;
        snprintf(outcome->why, sizeof outcome->why, CURL_SHORTAGE_TEXT);
    } else if (code != CURLE_OK) {
        outcome->error = code == CURLE_OUT_OF_MEMORY ? DET_ERR_NO_MEMORY : DET_ERR_IO;
        snprintf(outcome->why, sizeof outcome->why, "%s", curl_easy_strerror(code));
    } else {
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        outcome->code = (int)status;
        outcome->is_success = status >= 200 && status <= 299;
        outcome->retry_after = http_retry_after(curl, status);
        outcome->error = DET_ERR_ACTION_FAILED;
        snprintf(outcome->why, sizeof outcome->why, "status %ld", status);
        if (status >= 400 && outcome->body.size > 0)
            add_body(outcome);
    }
}

void effect_http(
    struct effects *effects, const struct effect_binding *binding,
    const struct det_effect_call *call, const struct det_buffer *input,
    struct effect_outcome *outcome)
{
    struct exchange exchange = { .effects = effects,
                                 .deadline = effect_deadline(effects, binding),
                                 .outcome = outcome };
    CURL *curl = curl_easy_init();

    outcome->error = DET_ERR_IO;
    if (curl && add_headers(&exchange, binding, call)) {
        set_up(curl, &exchange, binding, input);
        judge(curl, curl_easy_perform(curl), &exchange, binding);
    } else if (!outcome->why[0]) {
        outcome->is_shortage = true;
        snprintf(outcome->why, sizeof outcome->why, "there is no memory left");
    }
    http_lines_deinit(&exchange.lines);
    curl_easy_cleanup(curl);
}
