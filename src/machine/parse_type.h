/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_type.h - the types of fields, and their size and alignment. */
#ifndef DET_MACHINE_PARSE_TYPE_H
#define DET_MACHINE_PARSE_TYPE_H

#include "machine/parse_arguments.h"

/* The C type of a field. */
struct det_shape {
    enum det_kind kind;
    uint32_t size, alignment;
    uint32_t capacity;
    unsigned depth;
    const struct det_record *record;
    const struct det_enum *enumeration;
};

static inline uint64_t det_round_up(uint64_t size, uint64_t alignment)
{
    return (size + alignment - 1) / alignment * alignment;
}

/* Reads the next argument as a type. Records and enums inside it must be known already. */
void det_take_type(struct det_take *take, struct det_shape *ret);

#endif
