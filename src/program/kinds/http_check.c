/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_check.c - checks one URL. A failed check is an observation too: the worker is then degraded,
 * with the reason. */
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/text.h"
#include "http/client.h"
#include "kinds/http_get.h"
#include "kinds/kinds.h"

#define WORKER_SPEC "kinds/http_check.worker"
#include <detent/worker/declare.h>

struct http_check_deps {
    det_time checked_at; /* monotonic */
    uint64_t digest;     /* desired state at that time */
    struct http_check_observed seen;
};

#define WORKER_SPEC "kinds/http_check.worker"
#include <detent/worker/define.h>

#define EVERY_MS   10000
#define TIMEOUT_MS 2000
#define HOUR_MS    3600000
/* Margin of the time limit, so that a check ends before it counts as hung. */
#define MARGIN (200 * DET_MILLISECOND)

/* Faults of the last answer. */
enum fault {
    FAULT_NONE,
    FAULT_NO_ANSWER,
    FAULT_STATUS,
    FAULT_TEXT,
    FAULT_SLOW,
    FAULT_CERTIFICATE,
};

static bool is_status_wanted(const struct http_check_desired *desired, uint16_t status)
{
    for (uint32_t i = 0; i < desired->status_count; i++)
        if (desired->status[i] == status)
            return true;
    return !desired->status_count && status >= 200 && status <= 299;
}

static enum fault fault_of(
    const struct http_check_desired *desired, const struct http_check_observed *seen)
{
    if (!seen->status)
        return FAULT_NO_ANSWER;
    if (!is_status_wanted(desired, seen->status))
        return FAULT_STATUS;
    if (*desired->text && !seen->has_text)
        return FAULT_TEXT;
    if (desired->latency_max_ms && seen->latency_ms > desired->latency_max_ms)
        return FAULT_SLOW;
    if (seen->has_tls_days && seen->tls_days < (int64_t)desired->tls_days_min)
        return FAULT_CERTIFICATE;
    return FAULT_NONE;
}

static const char *describe_view(const struct http_check_view *view)
{
    const struct http_check_observed *seen = view->observed;

    switch (fault_of(view->desired, seen)) {
    case FAULT_NO_ANSWER:
        return det_reason(view->all, "no answer in %u ms: %s", seen->latency_ms, seen->error);
    case FAULT_STATUS:
        return det_reason(
            view->all, "status %u in %u ms is not expected", seen->status, seen->latency_ms);
    case FAULT_TEXT:
        return det_reason(
            view->all, "status %u in %u ms, but \"%.60s\" is not in its body of %llu byte%s",
            seen->status, seen->latency_ms, view->desired->text,
            (unsigned long long)seen->body_size, det_plural(seen->body_size));
    case FAULT_SLOW:
        return det_reason(
            view->all, "status %u took %u ms, more than %u", seen->status, seen->latency_ms,
            view->desired->latency_max_ms);
    case FAULT_CERTIFICATE:
        return det_reason(
            view->all, "its certificate ends in %d day%s, less than %u", seen->tls_days,
            seen->tls_days == 1 ? "" : "s", view->desired->tls_days_min);
    case FAULT_NONE:
        break;
    }
    return det_reason(view->all, "status %u in %u ms", seen->status, seen->latency_ms);
}

static bool is_bad(const struct http_check_view *view)
{
    return view->observed->failures >= view->desired->failures_max;
}

static struct http_check_next http_check_in_stopped(const struct http_check_view *view)
{
    return http_check_goto(
        is_bad(view) ? HTTP_CHECK_DEGRADED : HTTP_CHECK_RUNNING, describe_view(view));
}

static struct http_check_next http_check_in_running(const struct http_check_view *view)
{
    if (is_bad(view))
        return http_check_goto(HTTP_CHECK_DEGRADED, describe_view(view));
    return http_check_hold(describe_view(view));
}

static struct http_check_next http_check_in_degraded(const struct http_check_view *view)
{
    if (view->observed->failures == 0)
        return http_check_goto(HTTP_CHECK_RUNNING, describe_view(view));
    return http_check_hold(describe_view(view));
}

/* Hash of the members that change the request or the expected answer. */
static uint64_t digest_of(const struct http_check_desired *desired)
{
    uint64_t hash = det_hash64(desired->url, strlen(desired->url) + 1, desired->tls_insecure);

    hash = det_hash64(desired->text, strlen(desired->text) + 1, hash);
    hash = det_hash64(desired->tls_ca_file, strlen(desired->tls_ca_file) + 1, hash);
    for (uint32_t i = 0; i < desired->headers_count; i++)
        hash = det_hash64(desired->headers[i], strlen(desired->headers[i]) + 1, hash);
    for (uint32_t i = 0; i < desired->status_count; i++)
        hash = det_hash_mix(hash, desired->status[i]);
    return hash;
}

static bool is_cancelled(void *user)
{
    return det_worker_is_cancelled(user);
}

static det_time timeout_of(
    const struct det_worker_context *context, const struct http_check_desired *desired)
{
    det_time now = det_world_now(context->world, DET_CLOCK_MONOTONIC);
    det_time timeout = (det_time)desired->timeout_ms * DET_MILLISECOND;

    if (context->deadline != DET_NEVER && timeout > context->deadline - now - MARGIN)
        timeout = context->deadline - now - MARGIN;
    return timeout;
}

static int ask_server(
    struct det_worker_context *context, const struct http_check_desired *desired,
    struct http_get_answer *ret)
{
    struct http_get_options options = {
        .allocator = context->allocator,
        .world = context->world,
        .url = desired->url,
        .text = desired->text,
        .ca_file = desired->tls_ca_file,
        .is_insecure = desired->tls_insecure,
        .timeout = timeout_of(context, desired),
        .is_cancelled = is_cancelled,
        .user = context,
    };

    det_assert(desired->headers_count <= HTTP_GET_HEADERS);
    for (uint32_t i = 0; i < desired->headers_count; i++)
        options.headers[i] = desired->headers[i];
    return http_get(&options, ret);
}

/* Under the lock. */
static void take_result(
    struct http_check_deps *deps, const struct http_check_desired *desired,
    const struct http_get_answer *answer)
{
    struct http_check_observed *seen = &deps->seen;

    seen->checks++;
    seen->status = answer->status;
    seen->latency_ms = answer->latency_ms;
    seen->body_size = answer->body_size;
    seen->has_text = answer->has_text;
    seen->has_tls_days = answer->has_tls_days;
    seen->tls_days = answer->tls_days;
    memcpy(seen->error, answer->error, sizeof seen->error);
    seen->failures = fault_of(desired, seen) == FAULT_NONE ? 0 : seen->failures + 1;
    det_assert(seen->failures <= seen->checks);
}

static bool is_due(
    const struct http_check_deps *deps, const struct http_check_desired *desired, det_time now)
{
    return !deps->seen.checks || deps->digest != digest_of(desired) ||
           now - deps->checked_at >= (det_time)desired->every_ms * DET_MILLISECOND;
}

/* Collects more often than it sends requests: between two requests the last answer counts. */
static int http_check_collect(
    struct det_worker_context *context, struct http_check_deps *deps,
    const struct http_check_desired *desired, struct http_check_observed *observed)
{
    det_time now = det_world_now(context->world, DET_CLOCK_MONOTONIC);
    struct http_get_answer answer;
    bool asks;
    int r = 0;

    det_worker_lock(context);
    asks = is_due(deps, desired, now);
    det_worker_unlock(context);
    if (asks)
        r = ask_server(context, desired, &answer);
    if (r < 0)
        return det_worker_fail(
            context, r, "no request was sent: %s",
            r == DET_ERR_LIMIT ? HTTP_CLIENT_SHORTAGE_TEXT : det_error_text(r));
    det_worker_lock(context);
    if (asks) {
        deps->checked_at = now;
        deps->digest = digest_of(desired);
        take_result(deps, desired, &answer);
    }
    det_assert(deps->seen.checks > 0);
    *observed = deps->seen;
    det_worker_unlock(context);
    if (asks) {
        det_worker_count(context, "checks", 1);
        det_worker_count(context, "failures", observed->failures > 0);
        det_worker_gauge(context, "latency_seconds", observed->latency_ms / 1000.0);
    }
    return 0;
}

static int http_check_open(struct det_worker_context *context, struct http_check_deps *deps)
{
    (void)deps;
    if (http_client_load() < 0)
        return det_worker_fail(context, DET_ERR_IO, "libcurl cannot be set up");
    return 0;
}

static void http_check_close(struct http_check_deps *deps)
{
    (void)deps;
    http_client_unload();
}

static int check_lists(struct det_derive *derive, const struct http_check_desired *config)
{
    for (uint32_t i = 0; i < config->status_count; i++)
        if (config->status[i] < 100 || config->status[i] > 599)
            return derive->refuse(
                derive, "status[%u] is %u: a status is from 100 to 599, such as 200", i,
                config->status[i]);
    for (uint32_t i = 0; i < config->headers_count; i++) {
        const char *colon = strchr(config->headers[i], ':');

        /* The value is not printed: it may be a secret. */
        if (!colon || colon == config->headers[i] || strpbrk(config->headers[i], "\r\n"))
            return derive->refuse(
                derive,
                "headers[%u] is not a header: write one line, such as \"Accept: text/plain\"", i);
    }
    return 0;
}

static int check_url(struct det_derive *derive, const struct http_check_desired *config)
{
    if (!*config->url)
        return derive->refuse(
            derive,
            "url is missing: add the URL to check, such as url: http://localhost:8080/ready");
    if (!http_client_takes(config->url))
        return derive->refuse(
            derive,
            "url must be http or https without a password: http://HOST[:PORT]/PATH; put secrets "
            "into headers");
    if (*config->tls_ca_file && *config->tls_ca_file != '/')
        return derive->refuse(
            derive, "tls_ca_file '%s' is relative: write an absolute path, from / on",
            config->tls_ca_file);
    return 0;
}

static int http_check_derive(
    struct det_derive *derive, const struct http_check_desired *config,
    struct http_check_desired *desired)
{
    int r;

    *desired = *config;
    desired->every_ms = desired->every_ms ? desired->every_ms : EVERY_MS;
    if (!desired->timeout_ms)
        desired->timeout_ms = desired->every_ms < TIMEOUT_MS ? desired->every_ms : TIMEOUT_MS;
    desired->failures_max = desired->failures_max ? desired->failures_max : 1;
    r = check_url(derive, desired);
    if (r == 0)
        r = check_lists(derive, desired);
    if (r < 0)
        return r;
    if (desired->every_ms > HOUR_MS)
        return derive->refuse(
            derive, "every_ms %u is more than an hour: use at most %u", desired->every_ms, HOUR_MS);
    if (desired->timeout_ms > desired->every_ms)
        return derive->refuse(
            derive, "timeout_ms %u is more than every_ms %u: use less", desired->timeout_ms,
            desired->every_ms);
    return 0;
}
