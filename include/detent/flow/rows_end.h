/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rows_end.h - undefines everything of a flow's spec: rows, words, settings. No include guard on
 * purpose. */
#include <detent/flow/rows_none.h>

#undef MILLISECONDS
#undef SECONDS
#undef MINUTES
#undef HOURS
#undef DAYS
#undef FLOW_NAME
#undef FLOW_LOCAL
#undef FLOW_SPEC
