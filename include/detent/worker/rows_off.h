/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rows_off.h - every row of a worker means nothing; a pass redefines the ones it needs. No include
 * guard on purpose. */
#include <detent/worker/rows_none.h>

#include <detent/rec/rows_off.h>

#define USES(...)
#define STATE(...)
#define ACTION(...)
