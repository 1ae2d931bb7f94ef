/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rows_off.h - defines every row of a flow as nothing; a pass redefines the rows it needs. No
 * include guard on purpose. */
#include <detent/flow/rows_none.h>

#include <detent/rec/rows_off.h>

#define USES(...)
#define SOURCE(...)
#define TRANSFORM(...)
#define STATEFUL(...)
#define JOIN(...)
#define SINK(...)
#define EDGE(...)
#define REFERENCE(...)
#define BACK_EDGE(...)
