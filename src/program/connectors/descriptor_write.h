/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* descriptor_write.h - writes to a pipe, a socket or a terminal whose reader may be slow or gone.
 * */
#ifndef DET_CONNECTORS_DESCRIPTOR_WRITE_H
#define DET_CONNECTORS_DESCRIPTOR_WRITE_H

#include <detent/flow.h>

/* The longest time until a cancel is seen. */
#define DESCRIPTOR_LOOK_MS 50

/* Writes all bytes; for functions that may block. DET_ERR_CANCELLED: the stage is to end; some
 * bytes may have been written. DET_ERR_CLOSED: there is no reader. DET_ERR_IO. */
DET_MUST_CHECK int descriptor_write(
    struct det_stage_call *call, int descriptor, const void *data, size_t size);

#endif
