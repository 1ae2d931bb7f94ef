/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rows_none.h - no row of a worker is a macro. No include guard on purpose. */
#include <detent/rec/rows_none.h>

#undef USES
#undef STATE
#undef ACTION
