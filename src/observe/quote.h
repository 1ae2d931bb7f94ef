/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* quote.h - a string of JSON at the end of a buffer, as record/text_sink.h has it for arrays:
 * nothing in it can steer a terminal, and bytes that are not UTF-8 are replaced. */
#ifndef DET_OBSERVE_QUOTE_H
#define DET_OBSERVE_QUOTE_H

#include "base/buffer.h"
#include "base/text.h"

void det_buffer_quote(struct det_buffer *buffer, struct det_view text);

#endif
