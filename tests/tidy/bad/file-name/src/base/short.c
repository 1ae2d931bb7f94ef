/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* long.c - was renamed. */
