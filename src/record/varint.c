/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* varint.c - numbers longer than one byte. */
#include "record/varint.h"

struct det_varint det_get_long_varint(struct det_byte_source *source, size_t at)
{
    const uint8_t *bytes = source->data + at;
    size_t size = source->size - at, i = 0;
    uint64_t number = 0, byte;

    if (size >= 2 && bytes[0] >= 0x80 && bytes[1] - 1u < 0x7f)
        return (struct det_varint){ (bytes[0] & 0x7fu) | (uint64_t)bytes[1] << 7, at + 2 };
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (i == size)
            return (struct det_varint){ 0, det_source_end(source) };
        byte = bytes[i++];
        if (shift == 63 && byte > 1)
            break;
        number |= (byte & 0x7f) << shift;
        if (byte & 0x80)
            continue;
        if (byte == 0 && shift > 0)
            break;
        return (struct det_varint){ number, at + i };
    }
    return (struct det_varint){ 0, det_source_fail(source, DET_ERR_MALFORMED, at) };
}
