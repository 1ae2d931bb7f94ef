/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* assert.h - assertions that stay enabled in release builds; they catch programming errors.
 *
 * A long-lived structure has an assert_<noun>() of its invariants, called where it changes. Checks
 * beyond the place of the change are for checked builds only: DET_CHECKS is 1 in the presets for
 * development and for the sanitizers (DETENT_CHECKS in CMake), and else 0. There a whole structure
 * is checked when its count is a power of two, so that the time for checks stays proportional to
 * the number of changes. */
#ifndef DET_BASE_ASSERT_H
#define DET_BASE_ASSERT_H

/* Prints the location and the condition to stderr and aborts. */
_Noreturn void det_assert_failed(const char *condition, const char *file, int line);

#define det_assert(condition) \
    ((condition) ? (void)0 : det_assert_failed(#condition, __FILE__, __LINE__))

#ifndef DET_CHECKS
#define DET_CHECKS 0
#endif

/* Only in checked builds; the condition must compile in all builds. */
#define det_check(condition) ((void)(DET_CHECKS && (det_assert(condition), 0)))

/* True if a whole structure of `count` elements is checked now. */
#define DET_CHECKS_ALL(count) (DET_CHECKS && ((count) & ((count)-1)) == 0)

#endif
