/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* escape.h - escapes arbitrary bytes for a terminal, a log and JSON. */
#ifndef DET_BASE_ESCAPE_H
#define DET_BASE_ESCAPE_H

#include "base/buffer.h"

/* Returns the size in bytes of the UTF-8 character at `text`; 0 if it is invalid. A NUL has size
 * 1. */
size_t det_character_size(const char *text, size_t size);
/* Returns the code point of a character whose size is valid. */
uint32_t det_character_code(const char *text, size_t size);
/* True for a character that moves the cursor or changes the direction of text; newline and tab are
 * printable. */
bool det_is_unprintable(uint32_t code);
/* Appends the text. Unprintable characters become \x1b or \u{202e}, invalid bytes \xff. */
void det_escape(struct det_buffer *buffer, const char *text, size_t size);

#endif
