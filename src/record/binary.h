/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* binary.h - what the two directions of docs/formats/record.md have in common. */
#ifndef DET_RECORD_BINARY_H
#define DET_RECORD_BINARY_H

#include "base/assert.h"
#include "record/field_value.h"

#define DET_RECORD_FORMAT        1
#define DET_RECORD_CHECKSUM_SIZE 4

/* Fields that have a number of values of their own. */
#define DET_FIELD_COUNTED (DET_FIELD_ARRAY | DET_FIELD_OPTIONAL)

/* The loop over the fields is one function, with all that a plain value needs and nothing else, so
 * that what it keeps between two fields fits into registers. Compilers would decide otherwise:
 * these say what is in the loop and what is apart from it. */
#define DET_INLINE inline __attribute__((always_inline))
#define DET_APART  __attribute__((noinline))

/* Of the records in a field, as we write them. */
static inline uint32_t det_nested_version(const struct det_field *field)
{
    const struct det_record *nested = det_record_of(field->record);

    det_assert(nested != NULL);
    return det_record_version(nested);
}

#endif
