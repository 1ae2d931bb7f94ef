/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay_http.c - one exchange with a relay, by libcurl.
 *
 * The multi interface does what the easy one would, but lets us look up while nothing happens, so
 * that a cancelled call ends at once and not in a second. */
#include "kinds/relay_http.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "kinds/curl_shortage.h"
#include "kinds/relay_url.h"

#define CONNECT_TIMEOUT DET_SECOND * 30
#define IDLE_MAX        30L /* seconds that a connection may be unused */
#define LOOK_UP_EVERY   50  /* milliseconds */
/* Longer bodies of failures are not shown. */
#define SHOWN_MAX 200

static size_t take_body(char *data, size_t size, size_t count, void *user)
{
    struct relay *relay = user;

    relay->is_too_large = relay->answer.size + size * count > RELAY_BODY_MAX;
    if (relay->is_too_large)
        return 0;
    det_buffer_append(&relay->answer, data, size * count);
    return det_buffer_status(&relay->answer) < 0 ? 0 : size * count;
}

/* What stands behind the name of a header line, NUL-terminated in `target`; false: another name, or
 * it does not fit. */
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
    memcpy(target, line + skip, size - skip);
    target[size - skip] = 0;
    return true;
}

/* What may be in the value of a cookie (RFC 6265). */
static bool is_cookie_value(const char *text)
{
    for (const char *at = text; *at; at++)
        if (*at <= ' ' || *at >= 0x7f || strchr("\",;\\", *at))
            return false;
    return *text != 0;
}

static size_t take_line(char *line, size_t size, size_t count, void *user)
{
    struct relay *relay = user;
    char cookie[RELAY_TOKEN_MAX + 256];

    size *= count;
    if (size > 5 && !strncasecmp(line, "HTTP/", 5)) {
        /* Of a proxy or of a 100: what counts is the last head. */
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
    return size;
}

static void set_up_once(struct relay *relay)
{
    CURL *easy = relay->easy;

    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, IDLE_MAX);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(CONNECT_TIMEOUT / DET_MILLISECOND));
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "detent");
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, relay);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_line);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, relay);
    if (relay_url_is_loopback(relay->url))
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
}

int relay_reset(struct relay *relay)
{
    curl_easy_cleanup(relay->easy);
    curl_multi_cleanup(relay->multi);
    relay->multi = curl_multi_init();
    relay->easy = curl_easy_init();
    if (!relay->multi || !relay->easy)
        return DET_ERR_NO_MEMORY;
    curl_multi_setopt(relay->multi, CURLMOPT_MAXCONNECTS, 1L);
    set_up_once(relay);
    return 0;
}

int relay_open(const struct relay_options *options, struct relay **ret)
{
    struct relay *relay;
    size_t size = strlen(options->url);
    int r = DET_ERR_NO_MEMORY;

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return DET_ERR_IO;
    relay = DET_NEW(options->allocator, struct relay);
    if (!relay) {
        curl_global_cleanup();
        return r;
    }
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
    curl_easy_cleanup(relay->easy);
    curl_multi_cleanup(relay->multi);
    curl_global_cleanup();
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

/* Bodies come from anywhere: what is not plain becomes a question mark. */
static void show(struct relay_failure *failure, const char *body, size_t size)
{
    size_t used = strlen(failure->text);

    if (!size || size >= SHOWN_MAX || used + 2 >= sizeof failure->text)
        return;
    failure->text[used++] = ':';
    failure->text[used++] = ' ';
    for (size_t i = 0; i < size && used < sizeof failure->text - 1; i++)
        failure->text[used++] = (char)(body[i] >= ' ' && body[i] < 0x7f ? body[i] : '?');
    failure->text[used] = 0;
}

static void say_failure(
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
    show(failure, body, relay->answer.size);
}

int relay_misunderstood(
    struct relay *relay, int code, const char *name, const char *why, struct relay_failure *failure)
{
    say_failure(relay, name, why, failure);
    return code;
}

/* What libcurl, or one of us, has to say. */
static int judge(
    struct relay *relay, CURLcode code, const char *name, struct relay_failure *failure)
{
    char why[48];
    bool has_memory = code != CURLE_OUT_OF_MEMORY && det_buffer_status(&relay->answer) == 0;

    if (!has_memory || curl_shortage(relay->easy, code)) {
        relay->status = 0;
        det_buffer_clear(&relay->answer);
        say_failure(
            relay, name, has_memory ? CURL_SHORTAGE_TEXT : "there is no memory left", failure);
        return DET_ERR_NO_MEMORY;
    }
    if (relay->is_too_large) {
        det_buffer_clear(&relay->answer);
        say_failure(relay, name, "the answer has more than 1 MiB", failure);
        return DET_ERR_LIMIT;
    }
    if (code != CURLE_OK) {
        /* Half an answer is none. */
        relay->status = 0;
        det_buffer_clear(&relay->answer);
        say_failure(relay, name, curl_easy_strerror(code), failure);
        return code == CURLE_OPERATION_TIMEDOUT ? DET_ERR_TIMEOUT : DET_ERR_IO;
    }
    if (relay->status >= 200 && relay->status <= 299)
        return 0;
    snprintf(why, sizeof why, "status %ld", relay->status);
    say_failure(relay, name, why, failure);
    return DET_ERR_REFUSED;
}

/* 0 and the result of libcurl, or DET_ERR_CANCELLED. */
static int perform(struct relay *relay, const struct relay_call *call, CURLcode *ret)
{
    CURLMcode code = curl_multi_add_handle(relay->multi, relay->easy);
    bool is_cancelled = false;
    int running = 1, left;
    CURLMsg *message;

    *ret = CURLE_OUT_OF_MEMORY;
    while (code == CURLM_OK && running) {
        is_cancelled = call->is_cancelled && call->is_cancelled(call->user);
        if (is_cancelled)
            break;
        code = curl_multi_perform(relay->multi, &running);
        if (code == CURLM_OK && running)
            code = curl_multi_poll(relay->multi, NULL, 0, LOOK_UP_EVERY, NULL);
    }
    while ((message = curl_multi_info_read(relay->multi, &left)))
        if (message->msg == CURLMSG_DONE)
            *ret = message->data.result;
    curl_multi_remove_handle(relay->multi, relay->easy);
    return is_cancelled ? DET_ERR_CANCELLED : 0;
}

static bool add_line(struct curl_slist **lines, const char *name, const char *value)
{
    char line[256];
    struct curl_slist *longer;

    snprintf(line, sizeof line, "%s: %s", name, value);
    longer = curl_slist_append(*lines, line);
    explicit_bzero(line, sizeof line);
    if (longer)
        *lines = longer;
    return longer != NULL;
}

/* False: no memory. */
static bool set_up(
    struct relay *relay, const struct relay_call *call, const struct relay_request *request,
    struct curl_slist **lines)
{
    char cookie[RELAY_TOKEN_MAX + 16], url[2048];
    CURL *easy = relay->easy;
    bool is_good;

    snprintf(url, sizeof url, "%s%s", relay->url, request->path);
    snprintf(cookie, sizeof cookie, "token=%s", relay->token);
    is_good =
        add_line(lines, "Accept", "application/json") &&
        /* The body is sent at once. */
        add_line(lines, "Expect", "") &&
        (!request->authorization || add_line(lines, "Authorization", request->authorization)) &&
        (!relay->request.size || add_line(lines, "Content-Type", "application/json"));
    is_good = is_good && !curl_easy_setopt(easy, CURLOPT_URL, url) &&
              !curl_easy_setopt(
                  easy, CURLOPT_COOKIE, request->authorization || !relay->token[0] ? NULL : cookie);
    explicit_bzero(cookie, sizeof cookie);
    if (request->is_post) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, det_buffer_text(&relay->request));
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)relay->request.size);
    } else {
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, *lines);
    curl_easy_setopt(
        easy, CURLOPT_TIMEOUT_MS,
        call->timeout < DET_MILLISECOND ? 1L : (long)(call->timeout / DET_MILLISECOND));
    return is_good;
}

int relay_exchange(
    struct relay *relay, const struct relay_call *call, const struct relay_request *request,
    struct relay_failure *failure)
{
    struct curl_slist *lines = NULL;
    CURLcode code = CURLE_OUT_OF_MEMORY;
    int r = 0;

    det_buffer_clear(&relay->answer);
    relay->offered[0] = relay->retry_after[0] = 0;
    relay->is_too_large = false;
    relay->status = 0;
    if (relay->multi && relay->easy && det_buffer_status(&relay->request) == 0 &&
        set_up(relay, call, request, &lines))
        r = perform(relay, call, &code);
    for (struct curl_slist *line = lines; line; line = line->next)
        explicit_bzero(line->data, strlen(line->data));
    curl_slist_free_all(lines);
    if (relay->easy)
        curl_easy_setopt(relay->easy, CURLOPT_HTTPHEADER, NULL);
    if (r < 0) {
        det_buffer_clear(&relay->answer);
        say_failure(relay, request->name, "cancelled", failure);
        return r;
    }
    if (code == CURLE_OK || relay->is_too_large)
        curl_easy_getinfo(relay->easy, CURLINFO_RESPONSE_CODE, &relay->status);
    return judge(relay, code, request->name, failure);
}
