/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rows_end.h - the end of a template: no row and no word of the spec stays defined, except the list
 * macros that the spec itself defines. */
#include <detent/fsm/rows_none.h>

#undef ANY
#undef MILLISECONDS
#undef SECONDS
#undef MINUTES
#undef HOURS
#undef DAYS
#undef FSM_SPEC
#undef FSM_LOCAL
#undef FSM_NAME
#undef FSM_PREFIX
#undef FSM_VERSION
#undef FSM_DATA
#undef FSM_UNHANDLED
#undef FSM_CONTEXT
#undef FSM_HANDLER
