/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A snippet for tidy.py. */
#include "base/buffer.h"
#include <detent/base.h>
#include <stdlib.h>

/* It says system(), TODOS and rename() in a comment, which is no call. */
static int rename_all(const struct files *files)
{
    const char *text = "strcpy(a, b); /* \\";

    files->rename(text);
    files.fsync(text);
    my_system(text);
    fgets(line, 10, file);
    snprintf(line, 10, "%s", text);
    return 0;
}
