/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* otlp_export.c - the thread that sends spans. */
#include "daemon/otlp_export.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/text.h"
#include "daemon/http_header.h"
#include "os/os.h"

#define BATCH_MAX     256
#define INTERVAL      DET_SECOND
#define TIMEOUT       (10 * DET_SECOND)
#define BACKOFF_FIRST (500 * DET_MILLISECOND)
#define BACKOFF_MAX   (30 * DET_SECOND)
#define ATTEMPTS_MAX  10
#define ANSWER_MAX    65536
#define WHY_TEXT      256

/* What became of a request. */
enum verdict { TAKEN, REFUSED, LATER };

struct otlp {
    struct otlp_options options; /* with defaults filled in */
    struct det_world *world;
    struct det_mutex *mutex;
    struct det_condition *stopping;
    _Atomic det_time stop_at; /* monotonic; DET_NEVER: it runs on. Changed under the mutex */
    struct det_thread *thread;
    struct det_span *spans;
    struct det_buffer body, answer;
    struct http_client *client;
    bool is_away;
    struct det_series *exported, *refused, *unreachable; /* NULL: nobody counts */
};

static void count(struct det_series *series, uint64_t more)
{
    if (series)
        det_series_count(series, more);
}

static det_time now(const struct otlp *otlp)
{
    return det_world_now(otlp->world, DET_CLOCK_MONOTONIC);
}

static bool is_stopping(struct otlp *otlp)
{
    return atomic_load(&otlp->stop_at) != DET_NEVER;
}

static void tell(const struct otlp *otlp, const char *text)
{
    if (otlp->options.tell)
        otlp->options.tell(otlp->options.user, text);
}

/* What is longer than an answer may be is not looked at. */
static int take_answer(void *user, const char *data, size_t size)
{
    struct otlp *otlp = user;

    if (otlp->answer.size + size <= ANSWER_MAX)
        det_buffer_append(&otlp->answer, data, size);
    return 0;
}

static bool is_over(void *user)
{
    struct otlp *otlp = user;

    return now(otlp) >= atomic_load(&otlp->stop_at);
}

static bool add_lines(struct otlp *otlp, struct http_lines *lines, char why[WHY_TEXT])
{
    bool is_good = http_lines_add(lines, "Content-Type", "application/json") &&
                   http_lines_add(lines, "User-Agent", "detent") &&
                   /* The body is sent at once. */
                   http_lines_add(lines, "Expect", "");

    for (size_t i = 0; is_good && i < otlp->options.header_count; i++)
        is_good =
            http_lines_add_header(lines, otlp->world, &otlp->options.headers[i], why, WHY_TEXT);
    return is_good;
}

/* A request ends before its timeout where it has to be over sooner. */
static det_time timeout_of(struct otlp *otlp)
{
    det_time stop_at = atomic_load(&otlp->stop_at), left = otlp->options.timeout;

    if (stop_at != DET_NEVER && stop_at - now(otlp) < left)
        left = stop_at - now(otlp);
    return left;
}

static enum verdict judge(
    int code, const struct http_result *result, det_time *wait, char why[WHY_TEXT])
{
    unsigned status = result->status;

    if (code < 0) {
        snprintf(why, WHY_TEXT, "%s", result->reason);
        return LATER;
    }
    if (status >= 200 && status <= 299)
        return TAKEN;
    snprintf(why, WHY_TEXT, "it answers with status %u", status);
    *wait = result->retry_after;
    return status == 429 || (status >= 502 && status <= 504) ? LATER : REFUSED;
}

/* `wait` and `why` are written unless it is taken. */
static enum verdict post(struct otlp *otlp, det_time *wait, char why[WHY_TEXT])
{
    struct http_lines lines = { NULL };
    enum verdict verdict = LATER;

    *wait = 0;
    snprintf(why, WHY_TEXT, "there is no memory left");
    det_buffer_clear(&otlp->answer);
    if (add_lines(otlp, &lines, why)) {
        const struct http_call call = {
            .url = otlp->options.endpoint,
            .lines = &lines,
            .send = det_buffer_text(&otlp->body),
            .send_size = otlp->body.size,
            .timeout = timeout_of(otlp),
            .on_body = take_answer,
            .user = otlp,
        };
        struct http_result result;
        int r = http_client_call(otlp->client, &call, &result);

        verdict = judge(r, &result, wait, why);
    }
    http_lines_deinit(&lines);
    return verdict;
}

/* How many spans an answer says it did not take, though it took the request: whatever else it says
 * is none of our business. */
static size_t rejected(const struct otlp *otlp, size_t sent)
{
    json_t *root =
        json_loadb(det_buffer_text(&otlp->answer), otlp->answer.size, JSON_REJECT_DUPLICATES, NULL);
    json_t *number = json_object_get(json_object_get(root, "partialSuccess"), "rejectedSpans");
    uint64_t value = 0;

    if (json_is_integer(number) && json_integer_value(number) > 0)
        value = (uint64_t)json_integer_value(number);
    else if (
        json_is_string(number) &&
        det_parse_u64(det_view_text(json_string_value(number)), &value) < 0)
        value = 0;
    json_decref(root);
    return value < sent ? (size_t)value : sent;
}

/* Doubles, and is shortened by chance, so that many who were cut off do not come back at once. */
static det_time backoff(const struct otlp *otlp, unsigned attempt, det_time least)
{
    det_time wait = otlp->options.backoff_first;

    for (unsigned i = 1; i < attempt && wait < otlp->options.backoff_max; i++)
        wait *= 2;
    if (wait > otlp->options.backoff_max)
        wait = otlp->options.backoff_max;
    wait -= (det_time)(det_world_random_u64(otlp->world) % ((uint64_t)wait / 5 + 1));
    return wait > least ? wait : least;
}

/* False: it is to stop. */
static bool rest(struct otlp *otlp, det_time span)
{
    det_time until = now(otlp) + span;
    int r = 0;

    det_mutex_lock(otlp->world, otlp->mutex);
    while (r == 0 && !is_stopping(otlp))
        r = det_condition_wait(otlp->world, otlp->stopping, otlp->mutex, until);
    det_mutex_unlock(otlp->world, otlp->mutex);
    return !is_stopping(otlp);
}

static void tell_away(struct otlp *otlp, const char *why)
{
    char text[WHY_TEXT + 128];

    if (otlp->is_away)
        return;
    otlp->is_away = true;
    snprintf(
        text, sizeof text,
        "the receiver of traces is away: %s; spans wait, and are dropped when they are too many",
        why);
    tell(otlp, text);
}

static void tell_back(struct otlp *otlp)
{
    if (otlp->is_away)
        tell(otlp, "the receiver of traces is back");
    otlp->is_away = false;
}

static void tell_refused(struct otlp *otlp, const char *why)
{
    char text[WHY_TEXT + 128];

    /* As often as it may be: each is another request that is wrong, but one sentence is enough. */
    if (!otlp->is_away) {
        snprintf(text, sizeof text, "the receiver of traces refuses spans: %s", why);
        tell(otlp, text);
    }
    otlp->is_away = true;
}

/* The batch, again and again, until it is taken or refused, or it is given up. */
static enum verdict insist(struct otlp *otlp, char why[WHY_TEXT])
{
    enum verdict verdict = LATER;
    det_time wait = 0;

    for (unsigned attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
        bool is_last = is_stopping(otlp) || attempt == ATTEMPTS_MAX;

        verdict = post(otlp, &wait, why);
        if (verdict != LATER)
            return verdict;
        tell_away(otlp, why);
        if (is_last)
            break;
        /* Who is asked to stop meanwhile tries once more. */
        (void)rest(otlp, backoff(otlp, attempt, wait));
    }
    return verdict;
}

static void deliver(struct otlp *otlp, size_t sent)
{
    char why[WHY_TEXT];
    size_t lost;

    switch (insist(otlp, why)) {
    case TAKEN:
        lost = rejected(otlp, sent);
        count(otlp->exported, sent - lost);
        count(otlp->refused, lost);
        tell_back(otlp);
        break;
    case REFUSED:
        count(otlp->refused, sent);
        tell_refused(otlp, why);
        break;
    case LATER:
        count(otlp->unreachable, sent);
        break;
    }
}

static void run(void *argument)
{
    struct otlp *otlp = argument;
    bool is_last;
    size_t taken;

    do {
        /* Asked first: what came before the stop is still in the queue then. */
        is_last = is_stopping(otlp);
        taken = det_tracer_take(
            otlp->options.tracer, otlp->spans, otlp->options.batch_max,
            now(otlp) + otlp->options.interval);
        if (taken == 0)
            continue;
        det_buffer_clear(&otlp->body);
        det_otlp_write(&otlp->body, &otlp->options.resource, otlp->spans, taken);
        if (det_buffer_status(&otlp->body) == 0)
            deliver(otlp, taken);
        else
            count(otlp->unreachable, taken);
    } while (taken > 0 || !is_last);
}

static det_time or_else(det_time wanted, det_time otherwise)
{
    return wanted ? wanted : otherwise;
}

static void fill_options(struct otlp *otlp, const struct otlp_options *options)
{
    otlp->options = *options;
    otlp->options.batch_max = options->batch_max ? options->batch_max : BATCH_MAX;
    otlp->options.interval = or_else(options->interval, INTERVAL);
    otlp->options.timeout = or_else(options->timeout, TIMEOUT);
    otlp->options.backoff_first = or_else(options->backoff_first, BACKOFF_FIRST);
    otlp->options.backoff_max = or_else(options->backoff_max, BACKOFF_MAX);
}

static struct det_series *dropped(const struct otlp_options *options, const char *reason)
{
    return options->metrics
               ? det_metrics_series(
                     options->metrics, DET_METRIC_SPANS_DROPPED, (const char *const[]){ reason })
               : NULL;
}

static void free_all(struct otlp *otlp)
{
    http_client_close(otlp->client);
    if (otlp->spans)
        DET_DELETE_ARRAY(otlp->options.allocator, otlp->spans, otlp->options.batch_max);
    det_buffer_deinit(&otlp->body);
    det_buffer_deinit(&otlp->answer);
    det_condition_close(otlp->world, otlp->stopping);
    det_mutex_close(otlp->world, otlp->mutex);
    DET_DELETE(otlp->options.allocator, otlp);
}

static int open_all(struct otlp *otlp)
{
    int r = det_mutex_open(otlp->world, &otlp->mutex);

    if (r == 0)
        r = det_condition_open(otlp->world, &otlp->stopping);
    if (r == 0)
        r = http_client_open(
            &(struct http_client_options){ .allocator = otlp->options.allocator,
                                           .world = otlp->world,
                                           .is_cancelled = is_over,
                                           .user = otlp },
            &otlp->client);
    if (r < 0)
        return r;
    otlp->spans = DET_NEW_ARRAY(otlp->options.allocator, otlp->options.batch_max, struct det_span);
    if (!otlp->spans)
        return DET_ERR_NO_MEMORY;
    return det_thread_start(otlp->world, "otlp", run, otlp, &otlp->thread);
}

int otlp_open(const struct otlp_options *options, struct otlp **ret)
{
    struct otlp *otlp = DET_NEW(options->allocator, struct otlp);
    int r;

    if (!otlp)
        return DET_ERR_NO_MEMORY;
    otlp->world = det_world_real();
    fill_options(otlp, options);
    atomic_init(&otlp->stop_at, DET_NEVER);
    det_buffer_init(&otlp->body, options->allocator);
    det_buffer_init(&otlp->answer, options->allocator);
    if (options->metrics)
        otlp->exported = det_metrics_only(options->metrics, DET_METRIC_SPANS_EXPORTED);
    otlp->refused = dropped(options, "refused");
    otlp->unreachable = dropped(options, "unreachable");
    r = open_all(otlp);
    if (r < 0) {
        free_all(otlp);
        return r;
    }
    *ret = otlp;
    return 0;
}

void otlp_close(struct otlp *otlp, det_time deadline)
{
    if (!otlp)
        return;
    det_mutex_lock(otlp->world, otlp->mutex);
    atomic_store(&otlp->stop_at, deadline == DET_NEVER ? DET_NEVER - 1 : deadline);
    det_condition_signal(otlp->world, otlp->stopping);
    det_mutex_unlock(otlp->world, otlp->mutex);
    det_tracer_wake(otlp->options.tracer);
    det_thread_join(otlp->world, otlp->thread);
    free_all(otlp);
}
