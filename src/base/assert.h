/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* assert.h - assertions that stay enabled in release builds; they catch programming errors. */
#ifndef DET_BASE_ASSERT_H
#define DET_BASE_ASSERT_H

/* Prints the location and the condition to stderr and aborts. */
_Noreturn void det_assert_failed(const char *condition, const char *file, int line);

#define det_assert(condition) \
    ((condition) ? (void)0 : det_assert_failed(#condition, __FILE__, __LINE__))

#endif
