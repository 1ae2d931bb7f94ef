/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* It has no guard. */
enum det_twice { DET_TWICE };
