/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* quote.c - a string of JSON at the end of a buffer. */
#include "observe/quote.h"

#include "record/text_sink.h"

void det_buffer_quote(struct det_buffer *buffer, struct det_view text)
{
    struct det_output counted = { .capacity = 0 }, written;

    det_output_quoted(&counted, text);
    written = (struct det_output){ .target = det_buffer_extend(buffer, counted.length),
                                   .capacity = counted.length };
    if (written.target)
        det_output_quoted(&written, text);
}
