/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rows_off.h - defines every row as nothing; each pass of a template then redefines the rows it
 * needs. Included again between passes. No include guard on purpose. */
#include <detent/fsm/rows_none.h>
#include <detent/rec/rows_off.h>

#define STATE(...)
#define EVENT(...)
#define INTERNAL(...)
#define UNHANDLED(...)
#define GROUP(...)
#define EVENT_GROUP(...)
#define EFFECT(...)
#define GUARD(...)
#define HOOK(...)
#define UPDATE(...)
#define FILL(...)
#define TIMER(...)
#define USES(...)
#define ON(...)
#define STAY(...)
#define STOP(...)
#define ON_EACH(...)
#define OVERRIDE(...)
#define OVERRIDE_STAY(...)
#define OVERRIDE_STOP(...)
#define ELSE(...)
#define ELSE_STAY(...)
#define ELSE_STOP(...)
#define ENTRY(...)
#define EXIT(...)
#define AFTER(...)
#define DISPATCH(...)
#define FAILURE(...)
#define CLOSED(...)
#define COMPLETION(...)
#define INVARIANT(...)
