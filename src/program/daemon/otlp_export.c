/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* otlp_export.c - the thread that exports spans. */
#include "daemon/otlp_export.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "daemon/http_header.h"
#include "os/os.h"
#include "json/reader.h"

#define BATCH_MAX     256
#define INTERVAL      DET_SECOND
#define TIMEOUT       (10 * DET_SECOND)
#define BACKOFF_FIRST (500 * DET_MILLISECOND)
#define BACKOFF_MAX   (30 * DET_SECOND)
#define ATTEMPTS_MAX  10
#define ANSWER_MAX    65536
#define WHY_TEXT      256

/* Outcome of a request. */
enum verdict { TAKEN, REFUSED, LATER };

struct otlp {
    struct otlp_options options; /* with defaults filled in */
    struct det_world *world;
    struct det_mutex *mutex;
    struct det_condition *stopping;
    _Atomic det_time stop_at; /* monotonic; DET_NEVER: no stop requested. Changed under the mutex */
    struct det_thread *thread;
    struct det_span *spans;
    struct det_json_writer body;
    struct det_buffer answer;
    struct http_client *client;
    bool is_reported;
    struct det_series *exported, *refused, *unreachable; /* NULL: not counted */
};

static void count_spans(struct det_series *series, uint64_t more)
{
    if (series)
        det_series_count(series, more);
}

static det_time now_of(const struct otlp *otlp)
{
    return det_world_now(otlp->world, DET_CLOCK_MONOTONIC);
}

static bool is_stopping(struct otlp *otlp)
{
    return atomic_load(&otlp->stop_at) != DET_NEVER;
}

static void report_text(const struct otlp *otlp, const char *text)
{
    if (otlp->options.report)
        otlp->options.report(otlp->options.user, text);
}

/* Ignores an answer that is too long. */
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

    return now_of(otlp) >= atomic_load(&otlp->stop_at);
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

/* Limits the timeout of a request to the time left before the stop. */
static det_time timeout_of(struct otlp *otlp)
{
    det_time stop_at = atomic_load(&otlp->stop_at), left = otlp->options.timeout;

    if (stop_at != DET_NEVER && stop_at - now_of(otlp) < left)
        left = stop_at - now_of(otlp);
    return left;
}

static enum verdict classify_status(
    int code, const struct http_result *result, det_time *wait, char why[WHY_TEXT])
{
    unsigned status = result->status;

    if (code < 0) {
        snprintf(why, WHY_TEXT, "%s", result->reason);
        return LATER;
    }
    if (status >= 200 && status <= 299)
        return TAKEN;
    snprintf(why, WHY_TEXT, "status %u", status);
    *wait = result->retry_after;
    return status == 429 || (status >= 502 && status <= 504) ? LATER : REFUSED;
}

/* Sets `wait` and `why` unless the spans are taken. */
static enum verdict post_batch(struct otlp *otlp, det_time *wait, char why[WHY_TEXT])
{
    struct http_lines lines = { NULL };
    enum verdict verdict = LATER;

    *wait = 0;
    snprintf(why, WHY_TEXT, "out of memory");
    det_buffer_clear(&otlp->answer);
    if (add_lines(otlp, &lines, why)) {
        const struct http_call call = {
            .url = otlp->options.endpoint,
            .lines = &lines,
            .send = det_buffer_text(&otlp->body.text),
            .send_size = otlp->body.text.size,
            .timeout = timeout_of(otlp),
            .on_body = take_answer,
            .user = otlp,
        };
        struct http_result result;
        int r = http_client_call(otlp->client, &call, &result);

        verdict = classify_status(r, &result, wait, why);
    }
    http_lines_deinit(&lines);
    return verdict;
}

/* Reads a number or a string with one: this protocol writes 64-bit integers as strings. */
static uint64_t read_count(const struct det_json_value *value)
{
    uint64_t count = 0;

    if (det_json_is(value, DET_JSON_NUMBER))
        return det_json_value_u64(value, &count) == 0 ? count : 0;
    return det_json_is(value, DET_JSON_STRING) && det_parse_u64(value->text, &count) == 0 ? count
                                                                                          : 0;
}

/* Number of spans that the answer to an accepted request rejects. The rest of the answer is
 * ignored. */
static size_t rejected_count(const struct otlp *otlp, size_t sent)
{
    struct det_view text = det_view_of(det_buffer_text(&otlp->answer), otlp->answer.size);
    const struct det_json_value *root = NULL;
    struct det_arena arena;
    uint64_t count = 0;

    det_arena_init(&arena, otlp->options.allocator);
    if (det_json_read(&arena, text, &root, NULL) == 0)
        count = read_count(det_json_get(det_json_get(root, "partialSuccess"), "rejectedSpans"));
    det_arena_deinit(&arena);
    return count < sent ? (size_t)count : sent;
}

/* Exponential, with jitter: clients that lost the connection together do not return together. */
static det_time backoff_for(const struct otlp *otlp, unsigned attempt, det_time least)
{
    det_time wait = otlp->options.backoff_first;

    det_assert(attempt > 0 && wait > 0);
    for (unsigned i = 1; i < attempt && wait < otlp->options.backoff_max; i++)
        wait *= 2;
    if (wait > otlp->options.backoff_max)
        wait = otlp->options.backoff_max;
    wait -= (det_time)(det_world_random_u64(otlp->world) % ((uint64_t)wait / 5 + 1));
    return wait > least ? wait : least;
}

/* False: a stop is requested. */
static bool wait_or_stop(struct otlp *otlp, det_time span)
{
    det_time until = now_of(otlp) + span;
    int r = 0;

    det_mutex_lock(otlp->world, otlp->mutex);
    while (r == 0 && !is_stopping(otlp))
        r = det_condition_wait(otlp->world, otlp->stopping, otlp->mutex, until);
    det_mutex_unlock(otlp->world, otlp->mutex);
    return !is_stopping(otlp);
}

static void report_unreachable(struct otlp *otlp, const char *why)
{
    char text[WHY_TEXT + 128];

    if (otlp->is_reported)
        return;
    otlp->is_reported = true;
    snprintf(
        text, sizeof text,
        "the receiver of traces is unreachable: %s; spans are queued, and dropped when the queue "
        "is full",
        why);
    report_text(otlp, text);
}

static void report_back(struct otlp *otlp)
{
    if (otlp->is_reported)
        report_text(otlp, "the receiver of traces is reachable again");
    otlp->is_reported = false;
}

static void report_refused(struct otlp *otlp, const char *why)
{
    char text[WHY_TEXT + 128];

    /* Reported once until spans are taken again. */
    if (!otlp->is_reported) {
        snprintf(text, sizeof text, "the receiver of traces refuses spans: %s", why);
        report_text(otlp, text);
    }
    otlp->is_reported = true;
}

/* Sends the batch until it is accepted or refused, or after the last attempt. */
static enum verdict send_batch(struct otlp *otlp, char why[WHY_TEXT])
{
    enum verdict verdict = LATER;
    det_time wait = 0;

    for (unsigned attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
        bool is_last = is_stopping(otlp) || attempt == ATTEMPTS_MAX;

        verdict = post_batch(otlp, &wait, why);
        if (verdict != LATER)
            return verdict;
        report_unreachable(otlp, why);
        if (is_last)
            break;
        /* After a stop request, tries once more. */
        (void)wait_or_stop(otlp, backoff_for(otlp, attempt, wait));
    }
    return verdict;
}

static void deliver_batch(struct otlp *otlp, size_t sent)
{
    char why[WHY_TEXT];
    size_t lost;

    switch (send_batch(otlp, why)) {
    case TAKEN:
        lost = rejected_count(otlp, sent);
        det_assert(lost <= sent);
        count_spans(otlp->exported, sent - lost);
        count_spans(otlp->refused, lost);
        report_back(otlp);
        break;
    case REFUSED:
        count_spans(otlp->refused, sent);
        report_refused(otlp, why);
        break;
    case LATER:
        count_spans(otlp->unreachable, sent);
        break;
    }
}

static void run_exporter(void *argument)
{
    struct otlp *otlp = argument;
    bool is_last;
    size_t taken;

    do {
        /* Read first: spans that ended before the stop are in the queue by then. */
        is_last = is_stopping(otlp);
        taken = det_tracer_take(
            otlp->options.tracer, otlp->spans, otlp->options.batch_max,
            now_of(otlp) + otlp->options.interval);
        det_assert(taken <= otlp->options.batch_max);
        if (taken == 0)
            continue;
        det_json_writer_clear(&otlp->body);
        det_otlp_write(&otlp->body, &otlp->options.resource, otlp->spans, taken);
        if (det_buffer_status(&otlp->body.text) == 0)
            deliver_batch(otlp, taken);
        else
            count_spans(otlp->unreachable, taken);
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

static struct det_series *dropped_series(const struct otlp_options *options, const char *reason)
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
    det_json_writer_deinit(&otlp->body);
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
    return det_thread_start(otlp->world, "otlp", run_exporter, otlp, &otlp->thread);
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
    det_json_writer_init(&otlp->body, options->allocator);
    det_buffer_init(&otlp->answer, options->allocator);
    if (options->metrics)
        otlp->exported = det_metrics_only(options->metrics, DET_METRIC_SPANS_EXPORTED);
    otlp->refused = dropped_series(options, "refused");
    otlp->unreachable = dropped_series(options, "unreachable");
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
