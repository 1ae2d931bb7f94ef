/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* kinds_test.h - for suites of kinds: manually made views, and the answers of next(). */
#ifndef DET_KINDS_KINDS_TEST_H
#define DET_KINDS_KINDS_TEST_H

#include <detent/worker.h>

#include "lib/test.h"

/* A view and all it points to. */
struct view {
    struct det_worker_view all;
    struct det_worker_identity identity;
    struct det_worker_counts counts;
    struct det_action_end last_action;
    struct det_children_view children;
    struct det_reason scratch;
};

static inline const char *view_format(struct det_reason *reason, const char *format, ...)
    DET_PRINTF(2, 3);
static inline const char *view_format(struct det_reason *reason, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(reason->text, sizeof reason->text, format, arguments);
    va_end(arguments);
    return reason->text;
}

/* At 100 s, a second after it came into the state. */
static inline void view_init(
    struct view *view, const struct det_worker_kind *kind, const void *desired,
    const void *observed)
{
    *view = (struct view){
        .all = { .kind = kind,
                 .desired = desired,
                 .observed = observed,
                 .now = 100 * DET_SECOND,
                 .wall = 1000 * DET_SECOND,
                 .observed_at = 100 * DET_SECOND,
                 .since = 99 * DET_SECOND },
        .identity = { "root/it", "it", kind->name, "root(application)/it" },
        .scratch = { .format = view_format },
    };
    view->all.identity = &view->identity;
    view->all.counts = &view->counts;
    view->all.last_action = &view->last_action;
    view->all.children = &view->children;
    view->all.scratch = &view->scratch;
}

/* Asks in that state; an answer has a reason, and leads somewhere. */
static inline struct det_next view_ask(struct view *view, unsigned state)
{
    const struct det_worker_kind *kind = view->all.kind;
    struct det_next next;

    assert_true(state < kind->state_count);
    view->all.state = (uint16_t)state;
    next = kind->states[state].next(&view->all);
    assert_non_null(next.reason);
    assert_true(*next.reason);
    if (next.kind == DET_NEXT_GOTO)
        assert_true(next.what < kind->state_count && next.what != state);
    if (next.kind == DET_NEXT_DO)
        assert_true(next.what < kind->action_count);
    return next;
}

#define assert_goto(view, state, to)                   \
    do {                                               \
        struct det_next next_ = view_ask(view, state); \
        assert_int_equal(next_.kind, DET_NEXT_GOTO);   \
        assert_int_equal(next_.what, to);              \
    } while (0)
#define assert_do(view, state, action)                 \
    do {                                               \
        struct det_next next_ = view_ask(view, state); \
        assert_int_equal(next_.kind, DET_NEXT_DO);     \
        assert_int_equal(next_.what, action);          \
    } while (0)
#define assert_hold(view, state) assert_int_equal(view_ask(view, state).kind, DET_NEXT_HOLD)

#endif
