/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* guard.c - admits requests, or refuses them with a reason. */
#include "auth/guard.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"

static void refuse_request(
    struct guard_verdict *verdict, unsigned status, const char *code, const char *format, ...)
    DET_PRINTF(4, 5);

static void refuse_request(
    struct guard_verdict *verdict, unsigned status, const char *code, const char *format, ...)
{
    va_list arguments;

    verdict->status = status;
    verdict->code = code;
    va_start(arguments, format);
    vsnprintf(verdict->text, sizeof verdict->text, format, arguments);
    va_end(arguments);
}

/* Returns the length of the host without its port. */
static size_t name_size(const char *host)
{
    const char *bracket = *host == '[' ? strchr(host, ']') : NULL;

    return bracket ? (size_t)(bracket - host) + 1 : strcspn(host, ":");
}

static bool is_port(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    return digits >= 1 && digits <= 5 && text[digits] == '\0';
}

static bool is_host(const char *host, const char *name)
{
    size_t size = name_size(host);

    return size == strlen(name) && strncasecmp(host, name, size) == 0 &&
           (host[size] == '\0' || (host[size] == ':' && is_port(host + size + 1)));
}

static bool is_allowed_host(const struct guard *guard, const char *host)
{
    static const char *const own[] = { "127.0.0.1", "[::1]", "localhost" };

    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (is_host(host, own[i]))
            return true;
    }
    for (size_t i = 0; guard->hosts && guard->hosts[i]; i++) {
        if (strcmp(guard->hosts[i], "*") == 0 || is_host(host, guard->hosts[i]))
            return true;
    }
    return false;
}

static bool is_safe(const struct http_request *request)
{
    return request->method == HTTP_GET || request->method == HTTP_HEAD ||
           request->method == HTTP_OPTIONS;
}

/* "http://127.0.0.1:7788" for the host "127.0.0.1:7788". */
static bool is_same_origin(const struct http_request *request, const char *origin)
{
    const char *scheme = request->is_encrypted ? "https://" : "http://";
    size_t size = strlen(scheme);

    return strncasecmp(origin, scheme, size) == 0 && strcasecmp(origin + size, request->host) == 0;
}

/* Browsers state the origin of a request, and no page can change that. Other programs state
 * none. */
static bool is_from_elsewhere(const struct http_request *request)
{
    const char *site = http_header(request, "sec-fetch-site");
    const char *origin = http_header(request, "origin");

    if (origin && !is_same_origin(request, origin))
        return true;
    return site && strcmp(site, "same-origin") != 0 && !(strcmp(site, "none") == 0 && !origin);
}

static bool has_body(const struct http_request *request)
{
    const char *length = http_header(request, "content-length");

    return request->method == HTTP_POST || request->method == HTTP_PUT ||
           request->method == HTTP_PATCH || (length && strcmp(length, "0") != 0) ||
           http_header(request, "transfer-encoding");
}

static bool is_json(const struct http_request *request)
{
    static const char type[] = "application/json";
    const char *value = http_header(request, "content-type");

    return value && strncasecmp(value, type, sizeof type - 1) == 0 &&
           (value[sizeof type - 1] == '\0' || strchr("; \t", value[sizeof type - 1]));
}

static void check_token(
    struct guard *guard, const struct http_request *request, struct guard_verdict *ret)
{
    const char *value = http_header(request, "authorization");
    struct tokens_answer answer;

    if (request->is_trusted) {
        ret->scopes = TOKENS_ALL;
        (void)det_text_copy(ret->id, sizeof ret->id, "unix");
        return;
    }
    if (!value || strncasecmp(value, "Bearer ", 7) != 0 || !value[7]) {
        refuse_request(
            ret, 401, "REFUSED",
            "a token is required: create one with 'detent token new' and send it as "
            "'Authorization: Bearer ...'");
        return;
    }
    tokens_check(guard->tokens, value + 7, request->peer, &answer);
    ret->wait = answer.wait;
    if (answer.verdict == TOKENS_CLOSED)
        refuse_request(ret, 503, "CLOSED", "%s", tokens_verdict_text(answer.verdict));
    else if (answer.verdict != TOKENS_GOOD)
        refuse_request(ret, 401, "REFUSED", "%s", tokens_verdict_text(answer.verdict));
    if (ret->status)
        return;
    ret->scopes = answer.scopes;
    (void)det_text_copy(ret->id, sizeof ret->id, answer.token.id);
}

static void check_scope(unsigned needed, struct guard_verdict *ret)
{
    if (needed & ret->scopes)
        return;
    for (size_t i = 0; i < TOKENS_SCOPE_COUNT; i++) {
        if (needed & 1u << i) {
            refuse_request(
                ret, 403, "REFUSED", "this needs a token with the scope '%s'",
                tokens_scope_word(i));
            return;
        }
    }
}

static bool is_full(const struct guard *guard, const struct guard_bucket *bucket, det_time now)
{
    double filled = (double)(now - bucket->at) / (double)DET_SECOND * guard->rate;

    return bucket->left + filled >= 2.0 * guard->rate;
}

/* Returns a bucket for a new token; NULL: all are in use. */
static struct guard_bucket *take_bucket(struct guard *guard, det_time now)
{
    if (guard->count < guard->capacity)
        return &guard->buckets[guard->count++];
    for (size_t i = 0; i < guard->count; i++) {
        if (is_full(guard, &guard->buckets[i], now)) {
            (void)det_map_remove(&guard->by_id, guard->buckets[i].id);
            return &guard->buckets[i];
        }
    }
    return NULL;
}

/* NULL: no bucket is free. guard_init() has reserved the slots of the map: a put cannot fail. */
static struct guard_bucket *bucket_of(struct guard *guard, const char *id, det_time now)
{
    struct guard_bucket *bucket = det_map_get(&guard->by_id, id);
    int r;

    if (!bucket) {
        bucket = take_bucket(guard, now);
        if (!bucket)
            return NULL;
        *bucket = (struct guard_bucket){ .left = 2.0 * guard->rate, .at = now };
        (void)det_text_copy(bucket->id, sizeof bucket->id, id);
        bucket->key = bucket->id;
        r = det_map_put(&guard->by_id, bucket);
        det_assert(r == 0);
    }
    return bucket;
}

static void check_rate(struct guard *guard, det_time now, struct guard_verdict *ret)
{
    struct guard_bucket *bucket = bucket_of(guard, ret->id, now);
    double most = 2.0 * guard->rate;

    if (!bucket) {
        ret->wait = DET_SECOND;
        refuse_request(ret, 429, "LIMIT", "too many tokens in use at the same time; retry later");
        return;
    }
    bucket->left += (double)(now - bucket->at) / (double)DET_SECOND * guard->rate;
    if (bucket->left > most)
        bucket->left = most;
    bucket->at = now;
    if (bucket->left >= 1) {
        bucket->left -= 1;
        return;
    }
    ret->wait = (det_time)((1 - bucket->left) / guard->rate * (double)DET_SECOND);
    refuse_request(
        ret, 429, "LIMIT",
        "more than %u request%s a second with this token: wait, or raise http.rate in detent.yaml",
        guard->rate, det_plural(guard->rate));
}

/* Reserves all slots of the map, by filling it once. */
static int reserve_slots(struct guard *guard)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < guard->capacity; i++) {
        struct guard_bucket *bucket = &guard->buckets[i];

        snprintf(bucket->id, sizeof bucket->id, "%u", (unsigned)i % 100000000u);
        bucket->key = bucket->id;
        r = det_map_put(&guard->by_id, bucket);
    }
    for (size_t i = 0; i < guard->capacity && guard->buckets[i].key; i++)
        (void)det_map_remove(&guard->by_id, guard->buckets[i].key);
    return r;
}

int guard_init(
    struct guard *guard, const struct det_allocator *allocator, struct det_world *world,
    size_t capacity)
{
    int r;

    guard->allocator = allocator;
    guard->count = 0;
    guard->capacity = capacity;
    guard->buckets = DET_NEW_ARRAY(allocator, capacity, struct guard_bucket);
    if (!guard->buckets)
        return DET_ERR_NO_MEMORY;
    det_map_init(
        &guard->by_id, allocator, det_world_random_u64(world), offsetof(struct guard_bucket, key));
    r = reserve_slots(guard);
    if (r < 0)
        guard_deinit(guard);
    return r;
}

void guard_deinit(struct guard *guard)
{
    if (!guard->buckets)
        return;
    det_map_deinit(&guard->by_id);
    DET_DELETE_ARRAY(guard->allocator, guard->buckets, guard->capacity);
    guard->buckets = NULL;
}

void guard_check(
    struct guard *guard, const struct http_request *request, unsigned needed, det_time now,
    struct guard_verdict *ret)
{
    *ret = (struct guard_verdict){ .status = 0 };
    if (!request->is_trusted && !is_allowed_host(guard, request->host))
        refuse_request(
            ret, 421, "REFUSED", "unknown host '%.80s': add it to http.hosts in detent.yaml",
            request->host);
    else if (!is_safe(request) && is_from_elsewhere(request))
        refuse_request(ret, 403, "REFUSED", "pages of other sites may not send this request");
    else if (
        !is_safe(request) && !(needed & GUARD_ABSENT) && has_body(request) && !is_json(request))
        refuse_request(
            ret, 415, "INVALID", "the body must be JSON: 'Content-Type: application/json'");
    else if (needed != GUARD_PUBLIC)
        check_token(guard, request, ret);
    if (!ret->status && needed != GUARD_PUBLIC)
        check_scope(needed, ret);
    if (!ret->status && guard->rate && !request->is_trusted && needed != GUARD_PUBLIC)
        check_rate(guard, now, ret);
}
