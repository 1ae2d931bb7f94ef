/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* main.c - runs the suite that is named, or lists the suites of this program. */
#include "lib/suites/suites.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    const char *wanted = argc == 2 ? argv[1] : NULL;

    for (const struct det_suite *suite = det_suites; suite->name; suite++) {
        if (wanted && strcmp(suite->name, wanted) == 0)
            return suite->run();
    }
    fprintf(stderr, "usage: %s SUITE, which is one of\n", argv[0]);
    for (const struct det_suite *suite = det_suites; suite->name; suite++)
        fprintf(stderr, "  %s\n", suite->name);
    return 2;
}
