/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* data_copy.h - copies the used part of the data of an instance. */
#ifndef DET_MACHINE_DATA_COPY_H
#define DET_MACHINE_DATA_COPY_H

#include <string.h>

#include <detent/machine.h>
#include <detent/tool/machine.h>

#include "record/field_value.h"

/* Copies the data; `size` is the size of the struct. */
static inline void det_machine_copy_data(
    const struct det_machine *machine, size_t size, void *target, const void *source)
{
    if (size < DET_RECORD_LONG)
        memcpy(target, source, size);
    else
        det_record_copy(det_machine_data(machine), target, source);
}

#endif
