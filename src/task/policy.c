/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* policy.c - resolves a policy: its own fields, else the defaults, else the built-in ones. */
#include <detent/driver/policy.h>
#include <detent/policy.h>

#include <float.h>

#include "base/text.h"

/* The defaults documented in policy.h. */
static const struct det_policy built_in = {
    .restart = DET_RESTART_ON_FAILURE,
    .retries_max = DET_RETRIES_UNLIMITED,
    .timeout = DET_NO_TIMEOUT,
    .grace = 10 * DET_SECOND,
    .backoff = {
        .first = 200 * DET_MILLISECOND,
        .max = 30 * DET_SECOND,
        .factor = 2,
        .jitter = DET_JITTER_EQUAL,
        .stable_after = 60 * DET_SECOND,
    },
};

/* Fills every field of `policy` that is 0. */
static void inherit(struct det_policy *policy, const struct det_policy *from)
{
#define INHERIT(field) (policy->field = policy->field == 0 ? from->field : policy->field)
    INHERIT(restart);
    INHERIT(interval);
    INHERIT(retries_max);
    INHERIT(timeout);
    INHERIT(grace);
    INHERIT(backoff.first);
    INHERIT(backoff.max);
    INHERIT(backoff.factor);
    INHERIT(backoff.jitter);
    INHERIT(backoff.stable_after);
#undef INHERIT
}

static int check_time(const char *name, det_time span, struct det_error *reterr)
{
    char text[DET_DURATION_TEXT];

    if (span >= 0)
        return 0;
    return det_error_set(
        reterr, DET_ERR_INVALID, "%s is negative: %s", name,
        det_format_duration(span, text, sizeof text));
}

static int check_times(const struct det_policy *policy, struct det_error *reterr)
{
    const struct det_backoff *backoff = &policy->backoff;
    const struct {
        const char *name;
        det_time span;
    } times[] = {
        { "the interval", policy->interval },
        { "the timeout", policy->timeout },
        { "the grace", policy->grace },
        { "the first delay", backoff->first == DET_NO_DELAY ? 0 : backoff->first },
        { "the longest delay", backoff->max },
        { "stable_after", backoff->stable_after },
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof times / sizeof times[0]; i++)
        r = check_time(times[i].name, times[i].span, reterr);
    return r;
}

static int check_backoff(const struct det_backoff *backoff, struct det_error *reterr)
{
    char first[DET_DURATION_TEXT], max[DET_DURATION_TEXT];

    /* Also refuses a NaN. */
    if (!(backoff->factor >= 1 && backoff->factor <= DBL_MAX))
        return det_error_set(
            reterr, DET_ERR_INVALID, "the factor is %g; it is a finite number, at least 1",
            backoff->factor);
    if ((unsigned)backoff->jitter > DET_JITTER_DECORRELATED)
        return det_error_set(
            reterr, DET_ERR_INVALID, "the jitter %d is unknown", (int)backoff->jitter);
    if (backoff->first > backoff->max)
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "the first delay (%s) is over the longest (%s); raise max or lower first",
            det_format_duration(backoff->first, first, sizeof first),
            det_format_duration(backoff->max, max, sizeof max));
    return 0;
}

/* An inherited delay is adjusted to a given one, so that it is possible to set only `max`, without
 * knowledge of the inherited `first`. */
static void fit_backoff(const struct det_backoff *given, struct det_backoff *resolved)
{
    if (resolved->first <= resolved->max || resolved->max < 0)
        return;
    if (given->first == 0)
        resolved->first = resolved->max;
    else if (given->max == 0)
        resolved->max = resolved->first;
}

int det_policy_resolve(
    const struct det_policy *policy, const struct det_policy *defaults, struct det_policy *ret,
    struct det_error *reterr)
{
    struct det_policy resolved = *policy, above = built_in;
    int r;

    if (defaults) {
        above = *defaults;
        inherit(&above, &built_in);
        fit_backoff(&defaults->backoff, &above.backoff);
    }
    inherit(&resolved, &above);
    fit_backoff(&policy->backoff, &resolved.backoff);
    if (resolved.interval == DET_NO_DELAY)
        resolved.interval = 0;
    if ((unsigned)resolved.restart > DET_RESTART_ALWAYS)
        return det_error_set(
            reterr, DET_ERR_INVALID, "the restart %d is unknown", (int)resolved.restart);
    r = check_times(&resolved, reterr);
    if (r == 0)
        r = check_backoff(&resolved.backoff, reterr);
    if (r == 0)
        *ret = resolved;
    return r;
}
