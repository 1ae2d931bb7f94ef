/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* binary.h - shared by the encoder and the decoder of docs/formats/record.md. */
#ifndef DET_RECORD_BINARY_H
#define DET_RECORD_BINARY_H

#include "base/assert.h"
#include "record/field_value.h"

#define DET_RECORD_FORMAT        1
#define DET_RECORD_CHECKSUM_SIZE 4

/* Fields with a count or a presence. */
#define DET_FIELD_COUNTED (DET_FIELD_ARRAY | DET_FIELD_OPTIONAL)

/* The loop over the fields is one function that contains only the handling of plain values, so that
 * its state fits into registers. Compilers would decide otherwise: these macros mark which
 * functions are inside the loop and which are not. */
#define DET_INLINE   inline __attribute__((always_inline))
#define DET_NOINLINE __attribute__((noinline))

/* Version of the records in a field, as this library writes them. */
static inline uint32_t det_nested_version(const struct det_field *field)
{
    const struct det_record *nested = det_record_of(field->record);

    det_assert(nested != NULL);
    return det_record_version(nested);
}

#endif
