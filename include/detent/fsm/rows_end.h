/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rows_end.h - the end of a template: no row and no word of the spec stays defined, except the list
 * macros that the spec itself defines. */
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
#undef ENTRY
#undef EXIT
#undef AFTER
#undef RECORD
#undef FIELD
#undef OPTIONAL
#undef ARRAY
#undef ENUM
#undef VALUE
#undef END
#undef ANY
#undef MILLISECONDS
#undef SECONDS
#undef MINUTES
#undef HOURS
#undef DAYS
#undef FSM_SPEC
#undef FSM_NAME
#undef FSM_PREFIX
#undef FSM_VERSION
#undef FSM_DATA
#undef FSM_UNHANDLED
