/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* checked.h - arithmetic that reports overflow. */
#ifndef DET_BASE_CHECKED_H
#define DET_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For intermediate sums and products; nothing that is stored is this wide. */
__extension__ typedef __int128 det_i128;
__extension__ typedef unsigned __int128 det_u128;

/* Returns true and writes `*ret` if the result fits its type; false otherwise. */
static inline bool det_add_size(size_t a, size_t b, size_t *ret)
{
    return !__builtin_add_overflow(a, b, ret);
}

static inline bool det_mul_size(size_t a, size_t b, size_t *ret)
{
    return !__builtin_mul_overflow(a, b, ret);
}

static inline bool det_mul_i64(int64_t a, int64_t b, int64_t *ret)
{
    return !__builtin_mul_overflow(a, b, ret);
}

/* Addition of times saturates: DET_NEVER + anything is DET_NEVER, and so is an overflow. */
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
