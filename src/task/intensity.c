/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* intensity.c - counts recent restarts exactly.
 *
 *      oldest              next = oldest once it is full
 *        v                   v
 *      [ 3 | 5 | 5 | 8 | 9 | . | . | . ]        used 5 of limit 8
 *
 * Invariants:
 *   1. The ring holds the times of the last `used` restarts, in order; used <= limit.
 *   2. A restart exceeds the limit exactly when the one `limit` before it is still in the window:
 *      so only the oldest of a full ring is checked.
 *   3. Expired times stay in the ring until they are overwritten; no element moves. */
#include <detent/driver/policy.h>
#include <detent/policy.h>

#include "base/assert.h"
#include "base/memory.h"

#define COUNT_DEFAULT  5
#define WINDOW_DEFAULT (10 * DET_SECOND)

struct det_intensity_window {
    const struct det_allocator *allocator;
    det_time span;
    uint32_t limit;
    uint32_t used;
    uint32_t next; /* index for the next time */
    det_time *times;
};

/* The time with this index, the oldest first. */
static det_time time_at(const struct det_intensity_window *window, uint32_t index)
{
    uint32_t oldest = window->used < window->limit ? 0 : window->next;
    uint32_t at = oldest + index;

    return window->times[at < window->limit ? at : at - window->limit];
}

static void assert_window(const struct det_intensity_window *window, det_time now)
{
    det_assert(window->used <= window->limit && window->next < window->limit);
    det_assert(now >= 0 && (window->used == 0 || now >= time_at(window, window->used - 1)));
}

static bool counts(const struct det_intensity_window *window, det_time at, det_time now)
{
    return now - at < window->span;
}

int det_intensity_open(
    const struct det_intensity *intensity, const struct det_allocator *allocator,
    struct det_intensity_window **ret, struct det_error *reterr)
{
    uint32_t count = intensity->count ? intensity->count : COUNT_DEFAULT;
    struct det_intensity_window *window;

    if (count > DET_INTENSITY_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID, "an intensity of %u restarts; at most %d can be counted",
            count, DET_INTENSITY_MAX);
    if (intensity->window < 0)
        return det_error_set(reterr, DET_ERR_INVALID, "the window of an intensity is negative");
    window = DET_NEW(allocator, struct det_intensity_window);
    if (!window)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    *window = (struct det_intensity_window){
        .allocator = allocator,
        .span = intensity->window ? intensity->window : WINDOW_DEFAULT,
        .limit = count,
        .times = DET_NEW_ARRAY(allocator, count, det_time),
    };
    if (!window->times) {
        DET_DELETE(allocator, window);
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    }
    *ret = window;
    return 0;
}

void det_intensity_close(struct det_intensity_window *window)
{
    if (!window)
        return;
    DET_DELETE_ARRAY(window->allocator, window->times, window->limit);
    DET_DELETE(window->allocator, window);
}

bool det_intensity_note(struct det_intensity_window *window, det_time now)
{
    bool is_full = window->used == window->limit;
    bool is_allowed;

    assert_window(window, now);
    is_allowed = !is_full || !counts(window, window->times[window->next], now);
    window->times[window->next] = now;
    window->next = window->next + 1 < window->limit ? window->next + 1 : 0;
    window->used += is_full ? 0 : 1;
    return is_allowed;
}

uint32_t det_intensity_count(const struct det_intensity_window *window, det_time now)
{
    uint32_t below = 0, above = window->used;

    assert_window(window, now);
    /* Times before `below` have expired, those from `above` on count. */
    while (below < above) {
        uint32_t middle = below + (above - below) / 2;

        if (counts(window, time_at(window, middle), now))
            above = middle;
        else
            below = middle + 1;
    }
    return window->used - above;
}

void det_intensity_clear(struct det_intensity_window *window)
{
    window->used = 0;
    window->next = 0;
}
