/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* number.h - formats and parses doubles exactly, independent of the locale.
 *
 * The C library is exact but uses the decimal point of the process's locale, which the library
 * neither sets nor trusts. Both directions therefore translate between that point and "."; a
 * formatted 0.5 shows the current one. */
#ifndef DET_RECORD_NUMBER_H
#define DET_RECORD_NUMBER_H

#include "base/text.h"

/* Digits of a number beyond this many characters are DET_ERR_LIMIT. */
#define DET_NUMBER_TEXT_MAX 1024
#define DET_DOUBLE_TEXT     32

/* Formats the shortest of 15, 16 and 17 digits that reads back as the same double; "nan", "inf" and
 * "-inf" for those. Returns target. */
char *det_format_double(double number, char target[DET_DOUBLE_TEXT]);
/* Reads a decimal number; "+1", ".5" and "5." are numbers, too. Returns 1 and the value; 0: it is a
 * number, but needs det_parse_double(); DET_ERR_MALFORMED. */
DET_MUST_CHECK int det_scan_double(struct det_view text, double *ret);
/* Parses a number whose JSON syntax the caller has checked. Returns DET_ERR_LIMIT if it is too
 * long, DET_ERR_RANGE if it exceeds the largest double. */
int det_parse_double(struct det_view text, double *ret);

/* The two translations, exported so that tests can use decimal points this machine does not
 * have. */
void det_number_from_locale(const char *text, char target[DET_DOUBLE_TEXT]);
bool det_number_to_locale(
    struct det_view text, struct det_view point, char *target, size_t capacity);

#endif
