/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reserved.h - refuses options that were set by a program built for a newer version: fields that
 * this version does not know are in the reserved part of a struct and must be zero. */
#ifndef DET_BASE_RESERVED_H
#define DET_BASE_RESERVED_H

#include <detent/base.h>

/* For hot paths: without a branch for each field. */
static inline bool det_reserved_is_zero(const uint64_t reserved[DET_OPTIONS_RESERVED])
{
    uint64_t all = 0;

    for (int i = 0; i < DET_OPTIONS_RESERVED; i++)
        all |= reserved[i];
    return all == 0;
}

/* DET_ERR_VERSION, with `what` in the text, unless all of `reserved` is zero. */
DET_MUST_CHECK int det_reserved_check(
    const uint64_t reserved[DET_OPTIONS_RESERVED], const char *what, struct det_error *reterr);

#endif
