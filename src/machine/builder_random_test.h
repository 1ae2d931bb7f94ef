/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_random_test.h - random definitions, right and wrong, as sets of small numbers; searches
 * their rows, and passes them to a builder. */
#ifndef DET_MACHINE_BUILDER_RANDOM_TEST_H
#define DET_MACHINE_BUILDER_RANDOM_TEST_H

#include "machine/builder_test.h"

#define STATES  5
#define EVENTS  5
#define EFFECTS 3
#define TIMERS  2
#define GUARDS  3
#define ROWS    24
#define AFTERS  3

/* Sets of states, events, effects and timers are bits. */
struct row {
    enum det_outcome outcome;
    unsigned from, events, effects, arms, disarms;
    int to, within, guard; /* -1: none */
    bool is_override, is_else;
};

struct after {
    unsigned states;
    int event;
};

struct definition {
    int state_count, event_count, effect_count, timer_count, guard_count, row_count, after_count;
    unsigned flags[STATES], produces[EFFECTS];
    bool is_internal[EVENTS];
    enum det_unhandled policy[EVENTS];
    int timer_event[TIMERS];
    struct row rows[ROWS];
    struct after afters[AFTERS];
};

static uint64_t seed;

static inline int below(int limit)
{
    return (int)(det_test_random(&seed) % (uint64_t)limit);
}

static inline bool has(unsigned set, int member)
{
    return (set >> member & 1) != 0;
}

static inline bool is_about(const struct row *row, int state, int event)
{
    return has(row->from, state) && has(row->events, event);
}

/* Returns the last row before `end` about the pair. */
static inline const struct row *find_row(const struct definition *d, int state, int event, int end)
{
    while (end-- > 0) {
        if (is_about(&d->rows[end], state, event))
            return &d->rows[end];
    }
    return NULL;
}

/* Returns the first plain row before `end` about the pair; -1: none. */
static inline int find_plain_row(const struct definition *d, int state, int event, int end)
{
    for (int i = 0; i < end; i++) {
        if (is_about(&d->rows[i], state, event) && !d->rows[i].is_override && !d->rows[i].is_else)
            return i;
    }
    return -1;
}

/* Counts of rows about the pair between two other rows: ELSE rows, those without a guard, and
 * OVERRIDE rows without a guard before the first ELSE. */
struct between {
    int elses, bare_elses, blunt_overrides;
    const struct row *decider; /* the last one that is no ELSE and comes before the first */
};

static inline struct between look_between(
    const struct definition *d, int state, int event, int begin, int end)
{
    struct between found = { .decider = &d->rows[begin] };

    for (int i = begin + 1; i < end; i++) {
        const struct row *row = &d->rows[i];

        if (!is_about(row, state, event))
            continue;
        found.elses += row->is_else;
        found.bare_elses += row->is_else && row->guard < 0;
        if (!row->is_override || found.elses > 0)
            continue;
        found.blunt_overrides += row->guard < 0;
        found.decider = row;
    }
    return found;
}

/* The definitions. */

static inline unsigned some_of(int count)
{
    unsigned set = 1u << below(count);

    return below(3) == 0 ? set | 1u << below(count) : set;
}

static inline unsigned maybe_some_of(int count)
{
    return count > 0 && below(4) == 0 ? some_of(count) : 0;
}

static inline void add_row(struct definition *d, unsigned from, unsigned events)
{
    struct row *row = &d->rows[d->row_count++];

    *row = (struct row){ .from = from, .events = events, .to = -1, .within = -1, .guard = -1 };
    row->outcome = (enum det_outcome[]){ DET_OUTCOME_GOTO, DET_OUTCOME_GOTO, DET_OUTCOME_STAY,
                                         DET_OUTCOME_STOP }[below(4)];
    row->effects = maybe_some_of(d->effect_count);
    row->arms = maybe_some_of(d->timer_count);
    row->disarms = maybe_some_of(d->timer_count);
    if (d->guard_count > 0 && below(3) > 0)
        row->guard = below(d->guard_count);
    if (row->outcome == DET_OUTCOME_GOTO)
        row->to = below(d->state_count);
    if (row->outcome == DET_OUTCOME_GOTO && below(8) == 0)
        row->within = below(d->event_count);
}

/* Adds a random row, mostly as an override or alternative if the pair already has a row. */
static inline void add_random_row(struct definition *d)
{
    int state = below(d->state_count), event = below(d->event_count);
    unsigned from = 1u << state, events = 1u << event;
    bool is_list = below(4) == 0;
    bool is_taken = find_row(d, state, event, d->row_count) != NULL;

    if (is_list) {
        from |= some_of(d->state_count);
        events |= some_of(d->event_count);
    }
    add_row(d, from, events);
    if (below(20) == 0)
        is_taken = !is_taken;
    d->rows[d->row_count - 1].is_else = is_taken && below(3) > 0;
    d->rows[d->row_count - 1].is_override = is_taken && !d->rows[d->row_count - 1].is_else;
}

static inline void add_answer(struct definition *d, int state, int event, int to)
{
    if (d->row_count == ROWS || below(25) == 0 || find_row(d, state, event, d->row_count) != NULL)
        return;
    add_row(d, 1u << state, 1u << event);
    d->rows[d->row_count - 1].within = -1;
    if (to >= 0) {
        d->rows[d->row_count - 1].outcome = DET_OUTCOME_GOTO;
        d->rows[d->row_count - 1].to = to;
    }
}

/* Adds rows that most definitions need to be valid. */
static inline void mend(struct definition *d)
{
    for (int i = 1; i < d->state_count; i++) {
        int from = below(i), event = below(d->event_count);

        add_answer(d, from, event, i);
    }
    for (int i = 0; i < d->event_count; i++)
        add_answer(d, below(d->state_count), i, -1);
    for (int i = 0; i < d->after_count; i++) {
        for (int state = 0; state < d->state_count; state++) {
            if (has(d->afters[i].states, state))
                add_answer(d, state, d->afters[i].event, -1);
        }
    }
    for (int i = 0; i < d->row_count; i++) {
        if (d->rows[i].within >= 0)
            add_answer(d, d->rows[i].to, d->rows[i].within, -1);
    }
}

/* One draw a statement: compilers differ in the order of draws within one. */
static inline struct definition make_definition(void)
{
    struct definition d = { .state_count = 1 + below(STATES) };

    d.event_count = 1 + below(EVENTS);
    d.effect_count = below(EFFECTS + 1);
    d.timer_count = below(TIMERS + 1);
    d.guard_count = below(GUARDS + 1);
    d.after_count = below(AFTERS);
    for (int i = 0; i < d.state_count; i++)
        d.flags[i] = below(4) == 0 ? DET_STATE_FINAL : 0;
    d.flags[0] |= below(30) == 0 ? 0 : DET_STATE_INITIAL;
    if (below(30) == 0)
        d.flags[below(d.state_count)] |= DET_STATE_INITIAL;
    for (int i = 0; i < d.event_count; i++) {
        d.is_internal[i] = below(6) == 0;
        d.policy[i] = below(2) == 0 ? DET_UNHANDLED_ERROR : (enum det_unhandled)below(4);
    }
    for (int i = 0; i < d.effect_count; i++)
        d.produces[i] = maybe_some_of(d.event_count);
    for (int i = 0; i < d.timer_count; i++)
        d.timer_event[i] = below(d.event_count);
    for (int i = 0; i < d.after_count; i++) {
        d.afters[i].states = some_of(d.state_count);
        d.afters[i].event = below(d.event_count);
    }
    for (int count = below(10); count > 0; count--)
        add_random_row(&d);
    mend(&d);
    return d;
}

/* The same as rows of a builder. */

static const char *const state_names[] = { "A", "B", "C", "D", "E" };
static const char *const event_names[] = { "p", "q", "r", "s", "t" };
static const char *const effect_names[] = { "send", "mail", "print" };
static const char *const timer_names[] = { "bell", "alarm" };
static const char *const guard_names[] = { "may", "can", "will" };

static inline const char *const *list_of(unsigned set, const char *const *names, const char **list)
{
    size_t count = 0;

    for (int i = 0; i < STATES; i++) {
        if (has(set, i))
            list[count++] = names[i];
    }
    list[count] = NULL;
    return list;
}

static inline void give_row(struct det_machine_builder *b, const struct row *row)
{
    const char *from[STATES + 1], *events[EVENTS + 1], *effects[STATES + 1];
    const char *arms[STATES + 1], *disarms[STATES + 1];

    det_machine_builder_on(
        b, &(struct det_on_row){
               .from = list_of(row->from, state_names, from),
               .events = list_of(row->events, event_names, events),
               .outcome = row->outcome,
               .to = row->to >= 0 ? state_names[row->to] : NULL,
               .is_override = row->is_override,
               .is_else = row->is_else,
               .guard = row->guard >= 0 ? guard_names[row->guard] : NULL,
               .effects = list_of(row->effects, effect_names, effects),
               .arms = list_of(row->arms, timer_names, arms),
               .disarms = list_of(row->disarms, timer_names, disarms),
               .within = { row->within >= 0 ? DET_SECOND : 0,
                           row->within >= 0 ? event_names[row->within] : NULL, NULL },
           });
}

/* The behaviour comes first, so that row numbers are indices; declarations may come later. */
static inline struct det_machine_builder *give(const struct definition *d)
{
    struct det_machine_builder *b = open_builder("random", NULL);
    const char *list[STATES + 1];

    for (int i = 0; i < d->row_count; i++)
        give_row(b, &d->rows[i]);
    for (int i = 0; i < d->state_count; i++)
        STATE(b, state_names[i], .flags = d->flags[i]);
    for (int i = 0; i < d->event_count; i++)
        EVENT(b, event_names[i], .is_internal = d->is_internal[i], .unhandled = d->policy[i]);
    for (int i = 0; i < d->effect_count; i++)
        EFFECT(b, effect_names[i], .produces = list_of(d->produces[i], event_names, list));
    for (int i = 0; i < d->guard_count; i++)
        det_machine_builder_guard(b, guard_names[i], NULL);
    for (int i = 0; i < d->timer_count; i++)
        TIMER(b, timer_names[i], DET_SECOND, event_names[d->timer_event[i]]);
    for (int i = 0; i < d->after_count; i++)
        det_machine_builder_after(
            b, list_of(d->afters[i].states, state_names, list),
            &(struct det_timeout_row){ DET_SECOND, event_names[d->afters[i].event], NULL });
    return b;
}

#endif
