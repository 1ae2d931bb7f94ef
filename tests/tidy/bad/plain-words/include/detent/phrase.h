/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A snippet for tidy.py: nobody is told. */
