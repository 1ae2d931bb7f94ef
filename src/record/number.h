/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* number.h - doubles as text and back, exact, and the same in every locale.
 *
 * The C library formats and parses doubles exactly but with the decimal point of the process's
 * locale, which the library neither sets nor trusts. Both directions therefore translate between
 * that point and "."; what it is at the moment shows in a formatted 0.5. */
#ifndef DET_RECORD_NUMBER_H
#define DET_RECORD_NUMBER_H

#include "base/text.h"

/* Digits of a number beyond this many characters are DET_ERR_LIMIT. */
#define DET_NUMBER_TEXT_MAX 1024
#define DET_DOUBLE_TEXT     32

/* The shortest of 15, 16 and 17 digits that reads back as the same double; "nan", "inf" and "-inf"
 * for those. Returns target. */
char *det_format_double(double number, char target[DET_DOUBLE_TEXT]);
/* A number in JSON's syntax, which the caller has checked. DET_ERR_LIMIT when it is too long,
 * DET_ERR_RANGE when it is beyond the largest double. */
int det_parse_double(struct det_view text, double *ret);

/* The two translations, apart so that they can be tested with points this machine does not have. */
void det_number_from_locale(const char *text, char target[DET_DOUBLE_TEXT]);
bool det_number_to_locale(
    struct det_view text, struct det_view point, char *target, size_t capacity);

#endif
