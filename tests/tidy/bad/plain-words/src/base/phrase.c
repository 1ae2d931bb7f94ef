/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A snippet for tidy.py: the store takes nothing any
 * more. */
static const char problem[] = "what is put by hand stays";
