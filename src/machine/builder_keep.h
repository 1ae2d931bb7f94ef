/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_keep.h - the ranges of two structs that a KEEP copies. */
#ifndef DET_MACHINE_BUILDER_KEEP_H
#define DET_MACHINE_BUILDER_KEEP_H

#include <detent/machine.h>

/* Returns true if a value of one field may be copied into the other. */
bool det_build_same_type(const struct det_field *a, const struct det_field *b);

/* Writes one range, or two if the presence or count is not adjacent to the value, and returns how
 * many. `event_offset` is the offset of the payload in the event. */
#define DET_BUILD_KEEP_RANGES 2
size_t det_build_keep_ranges(
    const struct det_field *from, const struct det_field *to, uint32_t event_offset,
    struct det_keep ret[DET_BUILD_KEEP_RANGES]);

#endif
