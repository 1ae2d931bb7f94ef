/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* limits.c - the limits of a supervisor of workers: defaults, and contradictions. */
#include <detent/driver/policy.h>

#include "base/assert.h"
#include "base/text.h"
#include "worker/limits.h"

static det_time or_else(det_time value, det_time otherwise)
{
    return value ? value : otherwise;
}

static uint32_t or_number(uint32_t value, uint32_t otherwise)
{
    return value ? value : otherwise;
}

/* A missing delay is adjusted to the given one. */
static void fill_backoff(struct det_backoff *backoff)
{
    det_time first = DET_SECOND, max = DET_MINUTE;

    if (backoff->max > 0 && first > backoff->max)
        first = backoff->max;
    if (max < backoff->first)
        max = backoff->first;
    backoff->first = or_else(backoff->first, first);
    backoff->max = or_else(backoff->max, max);
}

static void fill_intensity(struct det_intensity *intensity, uint32_t count)
{
    intensity->count = or_number(intensity->count, count);
    intensity->window = or_else(intensity->window, 5 * DET_MINUTE);
}

static void fill_counts(struct det_worker_limits *limits)
{
    limits->action_threads = or_number(limits->action_threads, 10);
    limits->action_queue = or_number(limits->action_queue, 1024);
    limits->collector_threads = or_number(limits->collector_threads, 16);
    limits->hung_max = or_number(limits->hung_max, 128);
    limits->workers_max = or_number(limits->workers_max, 1000000);
    limits->collector_restarts_max = or_number(limits->collector_restarts_max, 3);
    if (!limits->heartbeat)
        limits->heartbeat = 100;
    if (!limits->deltas_max)
        limits->deltas_max = 100000;
    if (!limits->deltas_bytes_max)
        limits->deltas_bytes_max = 64 << 20;
}

static void fill(struct det_worker_limits *limits)
{
    limits->tick = or_else(limits->tick, 100 * DET_MILLISECOND);
    limits->observe_every = or_else(limits->observe_every, DET_SECOND);
    limits->observe_timeout = or_else(limits->observe_timeout, 2200 * DET_MILLISECOND);
    limits->stale_after = or_else(limits->stale_after, 10 * DET_SECOND);
    limits->collector_timeout = or_else(limits->collector_timeout, 20 * DET_SECOND);
    limits->stop_grace = or_else(limits->stop_grace, 5 * DET_SECOND);
    limits->restart_grace = or_else(limits->restart_grace, 30 * DET_SECOND);
    limits->action_timeout = or_else(limits->action_timeout, 30 * DET_SECOND);
    limits->deltas_age_max = or_else(limits->deltas_age_max, 7 * DET_DAY);
    limits->compact_every = or_else(limits->compact_every, DET_MINUTE);
    fill_backoff(&limits->action_backoff);
    fill_backoff(&limits->restart_backoff);
    fill_backoff(&limits->circuit_backoff);
    fill_intensity(&limits->restarts, 5);
    fill_intensity(&limits->circuit, 5);
    fill_intensity(&limits->panics, 3);
    fill_counts(limits);
}

/* Effectively unlimited, and small enough that sums over a tree do not exceed DET_NEVER. */
#define LONGEST (DET_NEVER / 32)

static void cap(struct det_worker_limits *limits)
{
    det_time *times[] = { &limits->tick,       &limits->observe_every, &limits->observe_timeout,
                          &limits->stop_grace, &limits->restart_grace, &limits->action_timeout };

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        if (*times[i] > LONGEST)
            *times[i] = LONGEST;
}

static int resolve_backoff(struct det_backoff *backoff, const char *name, struct det_error *reterr)
{
    struct det_policy policy = { .backoff = *backoff }, resolved;
    struct det_error error;
    int r;

    r = det_policy_resolve(&policy, NULL, &resolved, &error);
    if (r < 0)
        return det_error_set(reterr, r, "limits of workers: %s: %s", name, error.text);
    *backoff = resolved.backoff;
    return 0;
}

static int validate_intensity(
    const struct det_intensity *intensity, const char *name, struct det_error *reterr)
{
    if (intensity->count <= DET_INTENSITY_MAX && intensity->window > 0)
        return 0;
    return det_error_set(
        reterr, DET_ERR_INVALID,
        "limits of workers: %s: a count is at most %d, and a window more than 0", name,
        DET_INTENSITY_MAX);
}

/* The first broken rule, and the remedy. */
static int check_limits(const struct det_worker_limits *limits, struct det_error *reterr)
{
    const struct {
        det_time less, more;
        bool may_equal;
        const char *text;
    } rules[] = {
        { 0, limits->tick, false, "tick must be more than 0" },
        { 0, limits->observe_timeout, false, "observe_timeout must be more than 0" },
        { 0, limits->stop_grace, false, "stop_grace must be more than 0" },
        { 0, limits->restart_grace, false, "restart_grace must be more than 0" },
        { 0, limits->action_timeout, false, "action_timeout must be more than 0" },
        { 0, limits->stale_after, false, "stale_after must be more than 0" },
        { 0, limits->deltas_age_max, false, "deltas_age_max must be more than 0" },
        { 0, limits->compact_every, false, "compact_every must be more than 0" },
        { limits->tick, limits->observe_every, true, "tick must be at most observe_every" },
        { limits->observe_every, limits->stale_after, false,
          "observe_every must be less than stale_after: each observation would become stale" },
        { limits->observe_timeout, limits->stale_after, false,
          "observe_timeout must be less than stale_after: a slow observation would be old when it "
          "comes" },
        { limits->stale_after, limits->collector_timeout, false,
          "stale_after must be less than collector_timeout: a collector would be restarted before "
          "its worker is paused" },
    };

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].less > rules[i].more ||
            (rules[i].less == rules[i].more && !rules[i].may_equal))
            return det_error_set(reterr, DET_ERR_INVALID, "limits of workers: %s", rules[i].text);
    return 0;
}

int det_worker_limits_resolve(
    const struct det_worker_limits *limits, struct det_worker_limits *ret, struct det_error *reterr)
{
    struct det_worker_limits resolved = *limits;
    int r;

    fill(&resolved);
    r = check_limits(&resolved, reterr);
    if (r == 0)
        r = resolve_backoff(&resolved.action_backoff, "action_backoff", reterr);
    if (r == 0)
        r = resolve_backoff(&resolved.restart_backoff, "restart_backoff", reterr);
    if (r == 0)
        r = resolve_backoff(&resolved.circuit_backoff, "circuit_backoff", reterr);
    if (r == 0)
        r = validate_intensity(&resolved.restarts, "restarts", reterr);
    if (r == 0)
        r = validate_intensity(&resolved.circuit, "circuit", reterr);
    if (r == 0)
        r = validate_intensity(&resolved.panics, "panics", reterr);
    if (r < 0)
        return r;
    cap(&resolved);
    *ret = resolved;
    return 0;
}

/* A rarely observed worker may be as old as three intervals, and is restarted after six. */
#define STALE_INTERVALS   3
#define RESTART_INTERVALS 6

static det_time longer(det_time limit, det_time interval, det_time times)
{
    det_time span = interval > LONGEST / times ? LONGEST : interval * times;

    return limit > span ? limit : span;
}

void det_worker_limits_of_kind(
    const struct det_worker_limits *limits, const struct det_worker_kind *kind, det_time *ret_stale,
    det_time *ret_timeout)
{
    *ret_stale = longer(limits->stale_after, kind->observe_every, STALE_INTERVALS);
    *ret_timeout = longer(limits->collector_timeout, kind->observe_every, RESTART_INTERVALS);
    det_assert(*ret_stale > 0 && *ret_stale <= *ret_timeout);
}

int det_worker_limits_check_kind(
    const struct det_worker_limits *limits, const struct det_worker_kind *kind,
    struct det_error *reterr)
{
    det_time timeout = or_else(kind->observe_timeout, limits->observe_timeout);
    det_time stale, restart;

    det_worker_limits_of_kind(limits, kind, &stale, &restart);
    if (timeout < stale)
        return 0;
    return det_error_set(
        reterr, DET_ERR_INVALID,
        "worker %s: observe_timeout is %lld ms, and an observation is stale after %lld ms: make "
        "observe_timeout shorter or observe_every longer",
        kind->name, (long long)(timeout / DET_MILLISECOND), (long long)(stale / DET_MILLISECOND));
}
