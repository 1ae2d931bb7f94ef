/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* declare.h - template: the records and enums of one file of rows, as C.
 *
 *     #define REC_SPEC "shop.rec"
 *     #include <detent/rec/declare.h>
 *
 * Gives for each RECORD(payment, 2): struct payment, payment_record() and payment_record_version;
 * for each ENUM(color): enum color, color_enum() and color_count. It may be included as often as
 * there are files; it needs nothing before and leaves no row behind. The folder of the file must be
 * in the include path. See docs/records.md for the rows. */
#include <detent/rec/language.h>
#if REC__IS_C11

#ifndef REC_SPEC
#error "define REC_SPEC, the file of rows in quotes, before <detent/rec/declare.h>"
#endif

#include <detent/rec/rows_off.h>

#include <detent/rec/passes.h>

#include <detent/rec/rows_none.h>
#undef REC_SPEC

#endif
