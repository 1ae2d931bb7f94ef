/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* binary.h - what the two directions of docs/formats/record.md have in common. */
#ifndef DET_RECORD_BINARY_H
#define DET_RECORD_BINARY_H

#include "base/assert.h"
#include "record/value.h"

#define DET_RECORD_FORMAT        1
#define DET_RECORD_CHECKSUM_SIZE 4

/* Of the records in a field, as we write them. */
static inline uint32_t det_nested_version(const struct det_field *field)
{
    const struct det_record *nested = det_record_of(field->record);

    det_assert(nested != NULL);
    return det_record_version(nested);
}

#endif
