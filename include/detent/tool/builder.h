/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tool/builder.h - builds machines at run time, under the same rules as those made by the compiler.
 *
 *     struct det_machine_builder *b;
 *     det_machine_builder_open("light", NULL, &b);
 *     det_machine_builder_state(b,
 *         &(struct det_state_row){ .name = "red", .flags = DET_STATE_INITIAL });
 *     det_machine_builder_state(b, &(struct det_state_row){ .name = "green" });
 *     det_machine_builder_event(b, &(struct det_event_row){ .name = "tick" });
 *     det_machine_builder_on(b, &(struct det_on_row){ .from = DET_LIST("red"),
 *         .events = DET_LIST("tick"), .outcome = DET_OUTCOME_GOTO, .to = "green" });
 *     ...
 *     r = det_machine_builder_build(b, &machine, &diagnostics);
 *
 * The event struct of a built machine is defined by the caller: first an `unsigned kind`, then, at
 * offset 8, the payload. It has det_machine.event_size bytes, all of which are read; if no event
 * has a payload, it is the kind alone.
 *
 * Rows may come in any order, except that an override follows the row it overrides, and an
 * alternative follows the row of its pairs. Rules are checked by build, which reports all mistakes
 * at once. All strings are copied. A row call fails only with DET_ERR_NO_MEMORY; the builder keeps
 * this error and build returns it, so rows need no test of their own.
 *
 * Rows are counted from 1 in the order of the calls (state, event, ..., on, after, entry, exit,
 * event_unhandled, dispatch, ...). This number is the `row` of a transition, and the line of a
 * finding if there is no text. */
#ifndef DETENT_TOOL_BUILDER_H
#define DETENT_TOOL_BUILDER_H

#include <detent/machine.h>
#include <detent/tool/diagnostic.h>

DET_BEGIN

struct det_machine_builder;

/* A NULL-terminated list of names for a row. */
#define DET_LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* In rows `name` is the name used by other rows and `wire` is the name on disk; NULL: the same. */
struct det_state_row {
    const char *name, *wire;
    unsigned flags; /* enum det_state_flags */
};

struct det_event_row {
    const char *name, *wire;
    const struct det_record *payload; /* borrowed for the life of the machine; NULL: none */
    bool is_internal;
    enum det_unhandled unhandled;
};

struct det_effect_row {
    const char *name;
    det_effect_fn *run;          /* NULL: bound later */
    const char *const *produces; /* events; NULL: none */
};

struct det_timeout_row {
    det_time after;
    const char *event;
    const char *fill; /* NULL: none */
};

struct det_timer_row {
    const char *name;
    struct det_timeout_row timeout;
};

struct det_group_row {
    const char *name;
    const char *const *members;
    bool is_of_events;
};

/* A transition for every pair of `from` and `events`. */
struct det_on_row {
    const char *const *from;
    const char *const *events;
    enum det_outcome outcome; /* GOTO, STAY or STOP */
    const char *to;           /* GOTO only */
    bool is_override;
    bool is_else; /* the next alternative of pairs that an earlier row has with a guard */
    const char *guard, *hook, *update;
    const char *const *keeps; /* fields; NULL: none, as in the lists below */
    const char *const *effects;
    const char *const *arms, *const *disarms; /* timers */
    struct det_timeout_row within;            /* GOTO only; no event and after 0: none */
    const char *reason;                       /* STOP only */
};

/* The dispatch function of states of a component. It is only a name here, for C code. */
struct det_dispatch_row {
    const char *const *states;
    enum det_dispatch_mode mode;
    const char *function; /* NULL with BLOCK */
};

/* Opens a builder for a machine of this name, without rows. DET_ERR_NO_MEMORY. Closing it frees it,
 * built or not. */
DET_API int det_machine_builder_open(
    const char *name, const struct det_allocator *allocator,
    struct det_machine_builder **ret) DET_MUST_CHECK;
DET_API void det_machine_builder_close(struct det_machine_builder *builder);
DET_SCOPED_CLOSE(machine_builder)

/* Sets the version of the definition; default 1. */
DET_API void det_machine_builder_version(struct det_machine_builder *builder, uint32_t version);
/* The record of the instance data, borrowed for the life of the machine. */
DET_API void det_machine_builder_data(
    struct det_machine_builder *builder, const struct det_record *record);
/* Sets the policy for events whose own row has DET_UNHANDLED_ERROR. */
DET_API void det_machine_builder_unhandled(
    struct det_machine_builder *builder, enum det_unhandled unhandled);
DET_API void det_machine_builder_state(
    struct det_machine_builder *builder, const struct det_state_row *row);
DET_API void det_machine_builder_event(
    struct det_machine_builder *builder, const struct det_event_row *row);
DET_API void det_machine_builder_effect(
    struct det_machine_builder *builder, const struct det_effect_row *row);
/* Functions; `run` may be NULL and bound later. */
DET_API void det_machine_builder_guard(
    struct det_machine_builder *builder, const char *name, det_guard_fn *run);
DET_API void det_machine_builder_hook(
    struct det_machine_builder *builder, const char *name, det_hook_fn *run);
DET_API void det_machine_builder_update(
    struct det_machine_builder *builder, const char *name, det_update_fn *run);
DET_API void det_machine_builder_fill(
    struct det_machine_builder *builder, const char *name, det_fill_fn *run);
DET_API void det_machine_builder_timer(
    struct det_machine_builder *builder, const struct det_timer_row *row);
DET_API void det_machine_builder_group(
    struct det_machine_builder *builder, const struct det_group_row *row);
DET_API void det_machine_builder_on(
    struct det_machine_builder *builder, const struct det_on_row *row);
/* Sets the timeout of each of these states. */
DET_API void det_machine_builder_after(
    struct det_machine_builder *builder, const char *const *states,
    const struct det_timeout_row *row);
DET_API void det_machine_builder_entry(
    struct det_machine_builder *builder, const char *const *states, const char *hook);
DET_API void det_machine_builder_exit(
    struct det_machine_builder *builder, const char *const *states, const char *hook);
/* Sets the policy of one event, as a separate row. */
DET_API void det_machine_builder_event_unhandled(
    struct det_machine_builder *builder, const char *event, enum det_unhandled unhandled);

/* Makes the machine that of a component (supervise.h) with this context struct: its rows are
 * checked, and rows for instances only are refused. The machine itself does not store them. */
DET_API void det_machine_builder_component(
    struct det_machine_builder *builder, const char *context);
DET_API void det_machine_builder_dispatch(
    struct det_machine_builder *builder, const struct det_dispatch_row *row);
/* Sets the event of failures. */
DET_API void det_machine_builder_failure(struct det_machine_builder *builder, const char *event);
/* Sets the event of a closed control channel in these states. */
DET_API void det_machine_builder_closed(
    struct det_machine_builder *builder, const char *const *states, const char *event);
DET_API void det_machine_builder_completion(
    struct det_machine_builder *builder, const char *function);
DET_API void det_machine_builder_invariant(
    struct det_machine_builder *builder, const char *function);

/* For readers of text: called by build to find the place of a name, with the pointer that was
 * passed in a row (so those strings must live until then). */
typedef void det_locate_fn(void *context, const char *name, struct det_place *ret);
DET_API void det_machine_builder_locate(
    struct det_machine_builder *builder, det_locate_fn *locate, void *context);
/* Adds a finding of the reader; DET_SEVERITY_BROKEN makes build fail. The text is copied. */
DET_API void det_machine_builder_report(
    struct det_machine_builder *builder, enum det_rule rule, const struct det_place *place,
    const char *format, ...) DET_PRINTF(4, 5);
/* Also reports every unhandled (state, event) pair, as UNHANDLED_PAIR. */
DET_API void det_machine_builder_report_unhandled(struct det_machine_builder *builder);

/* Checks all rules. 0; DET_ERR_DEFINITION: a rule is broken; or the error of a row call. The
 * findings (including warnings and information of a successful build) live as long as the builder
 * and are always written, empty after an error of a row call; the caller owns the machine. Call
 * this once. */
DET_API int det_machine_builder_build(
    struct det_machine_builder *builder, struct det_machine **ret,
    struct det_diagnostics *ret_diagnostics) DET_MUST_CHECK;

/* Closes a machine that was built or read, never one of a template. Accepts NULL. */
DET_API void det_machine_close(struct det_machine *machine);
DET_SCOPED_CLOSE(machine)

/* Binds a function to its name, before the machine is first used. DET_ERR_NOT_FOUND: the definition
 * does not have this name. */
DET_API int det_machine_bind_guard(struct det_machine *machine, const char *name, det_guard_fn *run)
    DET_MUST_CHECK;
DET_API int det_machine_bind_hook(struct det_machine *machine, const char *name, det_hook_fn *run)
    DET_MUST_CHECK;
DET_API int det_machine_bind_update(
    struct det_machine *machine, const char *name, det_update_fn *run) DET_MUST_CHECK;
DET_API int det_machine_bind_effect(
    struct det_machine *machine, const char *name, det_effect_fn *run) DET_MUST_CHECK;
DET_API int det_machine_bind_fill(struct det_machine *machine, const char *name, det_fill_fn *run)
    DET_MUST_CHECK;
/* The functions of a built machine, in order of declaration. NULL at the end. */
DET_API const struct det_guard_def *det_machine_guard_at(
    const struct det_machine *machine, size_t index);
DET_API const struct det_hook_def *det_machine_hook_at(
    const struct det_machine *machine, size_t index);
DET_API const struct det_update_def *det_machine_update_at(
    const struct det_machine *machine, size_t index);
DET_API const struct det_fill_def *det_machine_fill_at(
    const struct det_machine *machine, size_t index);

DET_END
#endif
