/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rows_none.h - no row is a macro. No include guard on purpose. */
#include <detent/rec/rows_none.h>
#undef STATE
#undef EVENT
#undef INTERNAL
#undef UNHANDLED
#undef GROUP
#undef EVENT_GROUP
#undef EFFECT
#undef GUARD
#undef HOOK
#undef UPDATE
#undef FILL
#undef TIMER
#undef USES
#undef ON
#undef STAY
#undef STOP
#undef ON_EACH
#undef OVERRIDE
#undef OVERRIDE_STAY
#undef OVERRIDE_STOP
#undef ELSE
#undef ELSE_STAY
#undef ELSE_STOP
#undef ENTRY
#undef EXIT
#undef AFTER
#undef DISPATCH
#undef FAILURE
#undef CLOSED
#undef COMPLETION
#undef INVARIANT
