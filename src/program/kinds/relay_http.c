/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay_http.c - one exchange with a relay. */
#include "kinds/relay_http.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/memory.h"
#include "kinds/relay_url.h"

#define CONNECT_TIMEOUT DET_SECOND * 30
/* Longer bodies of failures are not shown. */
#define SHOWN_MAX 200

static bool is_cancelled(void *user)
{
    const struct relay *relay = user;

    return relay->call->is_cancelled && relay->call->is_cancelled(relay->call->user);
}

/* Copies the value of a header line, NUL-terminated, to `target`; false: another name, or it does
 * not fit. */
static bool take_header(
    const char *line, size_t size, const char *name, char *target, size_t capacity)
{
    size_t skip = strlen(name);

    if (size <= skip || line[skip] != ':' || strncasecmp(line, name, skip) != 0)
        return false;
    for (skip++; skip < size && (line[skip] == ' ' || line[skip] == '\t');)
        skip++;
    while (size > skip && (line[size - 1] == '\r' || line[size - 1] == '\n'))
        size--;
    if (size - skip >= capacity)
        return false;
    det_assert(skip <= size);
    memcpy(target, line + skip, size - skip);
    target[size - skip] = 0;
    return true;
}

/* Returns true for a valid value of a cookie (RFC 6265). */
static bool is_cookie_value(const char *text)
{
    for (const char *at = text; *at; at++)
        if (*at <= ' ' || *at >= 0x7f || strchr("\",;\\", *at))
            return false;
    return *text != 0;
}

static void take_line(void *user, const char *line, size_t size)
{
    struct relay *relay = user;
    char cookie[RELAY_TOKEN_MAX + 256];

    if (size > 5 && !strncasecmp(line, "HTTP/", 5)) {
        /* The heads of proxies and of 100 come first; the last head counts. */
        relay->offered[0] = relay->retry_after[0] = 0;
    } else if (take_header(line, size, "Set-Cookie", cookie, sizeof cookie)) {
        cookie[strcspn(cookie, ";")] = 0;
        if (!strncmp(cookie, "token=", 6) && strlen(cookie + 6) <= RELAY_TOKEN_MAX &&
            is_cookie_value(cookie + 6))
            memcpy(relay->offered, cookie + 6, strlen(cookie + 6) + 1);
        explicit_bzero(cookie, sizeof cookie);
    } else {
        (void)take_header(line, size, "Retry-After", relay->retry_after, sizeof relay->retry_after);
    }
}

int relay_reset(struct relay *relay)
{
    http_client_close(relay->client);
    relay->client = NULL;
    return http_client_open(
        &(struct http_client_options){ .allocator = relay->allocator,
                                       .world = relay->world,
                                       .is_cancelled = is_cancelled,
                                       .user = relay,
                                       .connect_timeout = CONNECT_TIMEOUT,
                                       .is_http_1_1 = true },
        &relay->client);
}

int relay_open(const struct relay_options *options, struct relay **ret)
{
    struct relay *relay;
    size_t size = strlen(options->url);
    int r = DET_ERR_NO_MEMORY;

    det_assert(relay_url_is_valid(options->url));
    relay = DET_NEW(options->allocator, struct relay);
    if (!relay)
        return r;
    while (size && options->url[size - 1] == '/')
        size--;
    relay->world = options->world;
    relay->allocator = options->allocator;
    det_buffer_init(&relay->request, options->allocator);
    det_buffer_init(&relay->answer, options->allocator);
    relay->url = det_string_copy_n(options->allocator, options->url, size);
    if (relay->url)
        r = relay_reset(relay);
    if (r < 0) {
        relay_close(relay);
        return r;
    }
    *ret = relay;
    return 0;
}

void relay_close(struct relay *relay)
{
    if (!relay)
        return;
    http_client_close(relay->client);
    det_buffer_deinit(&relay->request);
    det_buffer_deinit(&relay->answer);
    det_free_string(relay->allocator, relay->url);
    relay_forget_token(relay);
    explicit_bzero(relay->offered, sizeof relay->offered);
    DET_DELETE(relay->allocator, relay);
}

bool relay_has_token(const struct relay *relay)
{
    return relay->token[0] != 0;
}

void relay_forget_token(struct relay *relay)
{
    explicit_bzero(relay->token, sizeof relay->token);
}

/* Bodies may have any bytes: unprintable ones become question marks. */
static void show_body(struct relay_failure *failure, const char *body, size_t size)
{
    size_t used = strlen(failure->text);

    det_assert(used < sizeof failure->text);
    if (!size || size >= SHOWN_MAX || used + 2 >= sizeof failure->text)
        return;
    failure->text[used++] = ':';
    failure->text[used++] = ' ';
    for (size_t i = 0; i < size && used < sizeof failure->text - 1; i++)
        failure->text[used++] = (char)(body[i] >= ' ' && body[i] < 0x7f ? body[i] : '?');
    failure->text[used] = 0;
}

static void describe_failure(
    struct relay *relay, const char *name, const char *why, struct relay_failure *failure)
{
    const char *body = det_buffer_text(&relay->answer);

    *failure = (struct relay_failure){ .status = relay->status };
    failure->class = relay_classify(relay->status, body, relay->answer.size);
    failure->retry_after =
        relay_retry_after(relay->retry_after, det_world_now(relay->world, DET_CLOCK_WALL));
    snprintf(
        failure->text, sizeof failure->text, "%s: %s, %s", name, relay_class_name(failure->class),
        why);
    show_body(failure, body, relay->answer.size);
}

int relay_misunderstood(
    struct relay *relay, int code, const char *name, const char *why, struct relay_failure *failure)
{
    describe_failure(relay, name, why, failure);
    return code;
}

/* Evaluates the result of the client, or the status of the relay. */
static int evaluate_transfer(
    struct relay *relay, int code, const struct http_result *result, const char *name,
    struct relay_failure *failure)
{
    char why[48];

    relay->status = (long)result->status;
    if (code == 0 && relay->status >= 200 && relay->status <= 299)
        return 0;
    if (code == 0) {
        snprintf(why, sizeof why, "status %ld", relay->status);
        describe_failure(relay, name, why, failure);
        return DET_ERR_REFUSED;
    }
    /* A partial answer does not count. */
    det_buffer_clear(&relay->answer);
    if (code == DET_ERR_LIMIT) {
        describe_failure(relay, name, "the answer has more than 1 MiB", failure);
        return code;
    }
    relay->status = 0;
    if (code == DET_ERR_CANCELLED) {
        describe_failure(relay, name, "cancelled", failure);
        return code;
    }
    if (code == DET_ERR_NO_MEMORY || result->is_shortage) {
        describe_failure(
            relay, name, code == DET_ERR_NO_MEMORY ? "out of memory" : HTTP_CLIENT_SHORTAGE_TEXT,
            failure);
        return DET_ERR_NO_MEMORY;
    }
    describe_failure(relay, name, result->reason, failure);
    return code;
}

/* False: no memory. */
static bool add_lines(
    const struct relay *relay, const struct relay_request *request, struct http_lines *lines)
{
    char cookie[RELAY_TOKEN_MAX + 16];
    bool is_good;

    snprintf(cookie, sizeof cookie, "token=%s", relay->token);
    is_good = http_lines_add(lines, "Accept", "application/json") &&
              /* The body is sent at once. */
              http_lines_add(lines, "Expect", "") &&
              (!relay->request.size || http_lines_add(lines, "Content-Type", "application/json"));
    if (is_good && request->authorization)
        is_good = http_lines_add(lines, "Authorization", request->authorization);
    else if (is_good && relay->token[0])
        is_good = http_lines_add(lines, "Cookie", cookie);
    explicit_bzero(cookie, sizeof cookie);
    return is_good;
}

int relay_exchange(
    struct relay *relay, const struct relay_call *call, const struct relay_request *request,
    struct relay_failure *failure)
{
    struct http_lines lines = { NULL };
    struct http_result result = { 0 };
    char url[2048];
    struct http_call http = {
        .url = url,
        .lines = &lines,
        .send = request->is_post ? det_buffer_text(&relay->request) : NULL,
        .send_size = relay->request.size,
        .timeout = call->timeout,
        .body = &relay->answer,
        .on_line = take_line,
        .user = relay,
        .body_max = RELAY_BODY_MAX,
    };
    int r = DET_ERR_NO_MEMORY;

    /* One caller at a time. */
    det_assert(!relay->call);
    snprintf(url, sizeof url, "%s%s", relay->url, request->path);
    det_buffer_clear(&relay->answer);
    relay->offered[0] = relay->retry_after[0] = 0;
    relay->call = call;
    if (relay->client && det_buffer_status(&relay->request) == 0 &&
        add_lines(relay, request, &lines))
        r = http_client_call(relay->client, &http, &result);
    relay->call = NULL;
    http_lines_deinit(&lines);
    return evaluate_transfer(relay, r, &result, request->name, failure);
}
