/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rows_none.h - no row of a flow is a macro. No include guard on purpose. */
#include <detent/rec/rows_none.h>

#undef USES
#undef SOURCE
#undef TRANSFORM
#undef STATEFUL
#undef JOIN
#undef SINK
#undef EDGE
#undef REFERENCE
#undef BACK_EDGE
