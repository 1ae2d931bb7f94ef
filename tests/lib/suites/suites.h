/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* suites.h - the suites of one test program; the build generates the table (cmake/tests.cmake). */
#ifndef DET_TEST_SUITES_H
#define DET_TEST_SUITES_H

struct det_suite {
    const char *name; /* "base.map"; NULL ends the table */
    int (*run)(void); /* main() of the suite; returns an exit code */
};

extern const struct det_suite det_suites[];

#endif
