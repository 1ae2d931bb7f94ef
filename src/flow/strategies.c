/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* strategies.c - the strategies that come with the library: breaker, window, retry. */
#include <detent/driver/control.h>

#include "base/assert.h"
#include "base/hash.h"

#define COOLDOWN_DEFAULT  (60 * DET_SECOND)
#define HALF_OPEN_DEFAULT (2 * DET_SECOND)

static struct det_control_decision pass_decision(void)
{
    return (struct det_control_decision){ .action = DET_CONTROL_FORWARD };
}

static struct det_control_decision wait_for(det_time delay)
{
    return (struct det_control_decision){ .action = DET_CONTROL_DELAY, .delay = delay };
}

/* True for the signals that the strategies of this file delay. */
static bool ends_input(const struct det_signal_info *info)
{
    return info->signal == DET_SIGNAL_EOF || info->signal == DET_SIGNAL_DRAIN;
}

static enum det_breaker_state breaker_state(const struct det_breaker_strategy *breaker)
{
    return (enum det_breaker_state)__atomic_load_n(breaker->state, __ATOMIC_ACQUIRE);
}

static det_time or_default(det_time span, det_time fallback)
{
    return span ? span : fallback;
}

/* The delay that the breaker requests; 0: none. */
static det_time breaker_delay(const struct det_breaker_strategy *breaker)
{
    det_time cooldown = or_default(breaker->cooldown, COOLDOWN_DEFAULT);

    switch (breaker_state(breaker)) {
    case DET_BREAKER_CLOSED:
        break;
    case DET_BREAKER_OPEN:
        return cooldown < DET_BREAKER_WAIT_MAX ? cooldown : DET_BREAKER_WAIT_MAX;
    case DET_BREAKER_HALF_OPEN:
        return or_default(breaker->half_open_delay, HALF_OPEN_DEFAULT);
    }
    return 0;
}

static struct det_control_decision breaker_decides(
    const void *config, const struct det_signal_info *info, struct det_control_memory *memory)
{
    det_time delay;

    if (!ends_input(info) || memory->delayed[info->signal])
        return pass_decision();
    delay = breaker_delay(config);
    return delay ? wait_for(delay) : pass_decision();
}

/* The window may have begun after `now` was read. */
static struct det_control_decision window_decides(
    const void *config, const struct det_signal_info *info, struct det_control_memory *memory)
{
    const struct det_window_strategy *window = config;
    det_time began = __atomic_load_n(window->began, __ATOMIC_ACQUIRE);
    det_time elapsed = info->now > began ? info->now - began : 0;

    (void)memory;
    if (!ends_input(info) || began == 0 || elapsed >= window->length)
        return pass_decision();
    return wait_for(window->length - elapsed);
}

/* Converts a span to a time of at most `max`, without overflow. */
static det_time to_time(double span, det_time max)
{
    return span < (double)max ? (det_time)span : max;
}

/* Returns 0.9 to 1.1 of the delay; the random bits come from the clock and the count. */
static det_time spread_delay(
    det_time delay, const struct det_signal_info *info, const struct det_control_memory *memory)
{
    uint64_t chance = det_hash_mix((uint64_t)info->now, memory->asked[info->signal]);
    double share = (double)(chance >> 11) / (double)(UINT64_C(1) << 53);

    return to_time((double)delay * (0.9 + 0.2 * share), DET_NEVER);
}

/* By squaring, since the exponent has no limit. An overflow is infinite, and is cut by
 * to_time(). */
static double power_of(double base, uint32_t exponent)
{
    double result = 1;

    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            result *= base;
        base *= base;
    }
    return result;
}

static det_time retry_delay(const struct det_retry_strategy *retry, uint32_t retries)
{
    double factor = retry->factor > 1 ? power_of(retry->factor, retries) : 1;

    return to_time((double)retry->first * factor, or_default(retry->max, DET_NEVER));
}

static struct det_control_decision retry_decides(
    const void *config, const struct det_signal_info *info, struct det_control_memory *memory)
{
    const struct det_retry_strategy *retry = config;
    uint32_t asked = memory->asked[info->signal];
    det_time delay;

    if (!ends_input(info) || asked > retry->attempts_max || asked == UINT32_MAX)
        return pass_decision();
    if (retry->first == 0)
        return (struct det_control_decision){ .action = DET_CONTROL_RETRY };
    delay = retry_delay(retry, asked - 1);
    return wait_for(retry->has_jitter ? spread_delay(delay, info, memory) : delay);
}

struct det_control_strategy det_control_breaker(const struct det_breaker_strategy *config)
{
    det_assert(config->cooldown >= 0 && config->half_open_delay >= 0);
    return (struct det_control_strategy){ "breaker", breaker_decides, config };
}

struct det_control_strategy det_control_window(const struct det_window_strategy *config)
{
    det_assert(config->length >= 0);
    return (struct det_control_strategy){ "window", window_decides, config };
}

struct det_control_strategy det_control_retry(const struct det_retry_strategy *config)
{
    det_assert(config->first >= 0 && config->max >= 0);
    det_assert(config->factor == 0 || config->factor >= 1);
    return (struct det_control_strategy){ "retry", retry_decides, config };
}

enum det_source_end det_control_source_end(const struct det_breaker_strategy *config)
{
    bool is_open = config && breaker_state(config) == DET_BREAKER_OPEN;

    return is_open ? DET_SOURCE_POISON : DET_SOURCE_EOF;
}
