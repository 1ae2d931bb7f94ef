/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* checked.h - arithmetic that says when a number does not fit. */
#ifndef DET_BASE_CHECKED_H
#define DET_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For a product or a sum in between; nothing that is kept is as wide as this. */
__extension__ typedef __int128 det_i128;
__extension__ typedef unsigned __int128 det_u128;

/* True and `*ret` written when the result fits its type; false otherwise. */
static inline bool det_add_size(size_t a, size_t b, size_t *ret)
{
    return !__builtin_add_overflow(a, b, ret);
}

static inline bool det_mul_size(size_t a, size_t b, size_t *ret)
{
    return !__builtin_mul_overflow(a, b, ret);
}

static inline bool det_add_i64(int64_t a, int64_t b, int64_t *ret)
{
    return !__builtin_add_overflow(a, b, ret);
}

static inline bool det_mul_i64(int64_t a, int64_t b, int64_t *ret)
{
    return !__builtin_mul_overflow(a, b, ret);
}

/* Times saturate: DET_NEVER + anything is DET_NEVER either way, and so is what would pass it. */
static inline int64_t det_add_time(int64_t a, int64_t span)
{
    int64_t sum;

    if (a == INT64_MAX || span == INT64_MAX)
        return INT64_MAX;
    if (__builtin_add_overflow(a, span, &sum))
        return span < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

#endif
