/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_random_test.c - thousands of random definitions, right and wrong, judged by the builder
 * and by an interpreter that only ever looks through all rows. Both must find the same number of
 * breaches of every rule, and every pair must come out the same. */
#include "machine/builder_test.h"

#define STATES      5
#define EVENTS      5
#define EFFECTS     3
#define TIMERS      2
#define ROWS        24
#define AFTERS      3
#define DEFINITIONS 20000

/* Sets of states, events, effects and timers are bits. */
struct row {
    enum det_outcome outcome;
    unsigned from, events, effects, arms, disarms;
    int to, within; /* -1: none */
    bool is_override;
};

struct after {
    unsigned states;
    int event;
};

struct definition {
    int state_count, event_count, effect_count, timer_count, row_count, after_count;
    unsigned flags[STATES], produces[EFFECTS];
    bool is_internal[EVENTS];
    enum det_unhandled policy[EVENTS];
    int timer_event[TIMERS];
    struct row rows[ROWS];
    struct after afters[AFTERS];
};

static uint64_t seed;

static int below(int limit)
{
    return (int)(det_test_random(&seed) % (uint64_t)limit);
}

static bool has(unsigned set, int member)
{
    return (set >> member & 1) != 0;
}

/* Whether one of the rows before `end` is about the pair; the last one decides. */
static const struct row *find_row(const struct definition *d, int state, int event, int end)
{
    while (end-- > 0) {
        if (has(d->rows[end].from, state) && has(d->rows[end].events, event))
            return &d->rows[end];
    }
    return NULL;
}

static bool has_plain_row(const struct definition *d, int state, int event, int end)
{
    for (int i = 0; i < end; i++) {
        if (has(d->rows[i].from, state) && has(d->rows[i].events, event) && !d->rows[i].is_override)
            return true;
    }
    return false;
}

/* The definitions. */

static unsigned some_of(int count)
{
    unsigned set = 1u << below(count);

    return below(3) == 0 ? set | 1u << below(count) : set;
}

static unsigned maybe_some_of(int count)
{
    return count > 0 && below(4) == 0 ? some_of(count) : 0;
}

static void add_row(struct definition *d, unsigned from, unsigned events)
{
    struct row *row = &d->rows[d->row_count++];

    *row = (struct row){ .from = from, .events = events, .to = -1, .within = -1 };
    row->outcome = (enum det_outcome[]){ DET_GOTO, DET_GOTO, DET_STAY, DET_STOP }[below(4)];
    row->effects = maybe_some_of(d->effect_count);
    row->arms = maybe_some_of(d->timer_count);
    row->disarms = maybe_some_of(d->timer_count);
    if (row->outcome == DET_GOTO)
        row->to = below(d->state_count);
    if (row->outcome == DET_GOTO && below(8) == 0)
        row->within = below(d->event_count);
}

/* A random row, made an override where something is there already, mostly. */
static void add_random_row(struct definition *d)
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
    d->rows[d->row_count - 1].is_override = below(20) == 0 ? !is_taken : is_taken;
}

static void add_answer(struct definition *d, int state, int event, int to)
{
    if (d->row_count == ROWS || below(25) == 0 || find_row(d, state, event, d->row_count) != NULL)
        return;
    add_row(d, 1u << state, 1u << event);
    d->rows[d->row_count - 1].within = -1;
    if (to >= 0) {
        d->rows[d->row_count - 1].outcome = DET_GOTO;
        d->rows[d->row_count - 1].to = to;
    }
}

/* Adds what most definitions need to be right. */
static void mend(struct definition *d)
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
static struct definition make_definition(void)
{
    struct definition d = { .state_count = 1 + below(STATES) };

    d.event_count = 1 + below(EVENTS);
    d.effect_count = below(EFFECTS + 1);
    d.timer_count = below(TIMERS + 1);
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
    for (int count = below(8); count > 0; count--)
        add_random_row(&d);
    mend(&d);
    return d;
}

/* The interpreter. */

static void count_pairs(const struct definition *d, int *counts)
{
    for (int i = 0; i < d->row_count; i++) {
        for (int pair = 0; pair < d->state_count * d->event_count; pair++) {
            int state = pair / d->event_count, event = pair % d->event_count;
            bool is_said = find_row(d, state, event, i) != NULL;

            if (!has(d->rows[i].from, state) || !has(d->rows[i].events, event))
                continue;
            if (!d->rows[i].is_override)
                counts[DET_RULE_DUPLICATE_TRANSITION] += has_plain_row(d, state, event, i);
            else if (!is_said)
                counts[DET_RULE_OVERRIDE_NOTHING]++;
            else /* what overrides an orphan is not told again */
                counts[DET_RULE_OVERRIDES] += has_plain_row(d, state, event, i);
        }
    }
}

static bool is_produced(const struct definition *d, int event)
{
    bool result = false;

    for (int i = 0; i < d->effect_count; i++)
        result |= has(d->produces[i], event);
    for (int i = 0; i < d->timer_count; i++)
        result |= d->timer_event[i] == event;
    for (int i = 0; i < d->after_count; i++)
        result |= d->afters[i].event == event;
    for (int i = 0; i < d->row_count; i++)
        result |= d->rows[i].within == event;
    return result;
}

static void count_missing(const struct definition *d, int *counts)
{
    int initials = 0;

    for (int i = 0; i < d->state_count; i++) {
        bool is_initial = (d->flags[i] & DET_STATE_INITIAL) != 0, is_entered = is_initial;

        initials += is_initial;
        for (int row = 0; row < d->row_count; row++)
            is_entered |= d->rows[row].to == i;
        counts[DET_RULE_NOT_ENTERED] += !is_entered;
    }
    counts[DET_RULE_NO_INITIAL] = initials == 0;
    counts[DET_RULE_TWO_INITIAL] = initials > 1 ? initials - 1 : 0;
    for (int i = 0; i < d->event_count; i++) {
        bool is_taken = false;

        for (int row = 0; row < d->row_count; row++)
            is_taken |= has(d->rows[row].events, i);
        counts[DET_RULE_NOT_TAKEN] += !is_taken;
        counts[DET_RULE_NOT_PRODUCED] += d->is_internal[i] && !is_produced(d, i);
    }
}

static void count_timeouts(const struct definition *d, int *counts)
{
    for (int i = 0; i < d->after_count; i++) {
        for (int state = 0; state < d->state_count; state++) {
            bool is_second = false;

            if (!has(d->afters[i].states, state))
                continue;
            for (int j = 0; j < i; j++)
                is_second |= has(d->afters[j].states, state);
            counts[DET_RULE_DUPLICATE_TIMEOUT] += is_second;
            counts[DET_RULE_TIMEOUT_UNANSWERED] +=
                find_row(d, state, d->afters[i].event, d->row_count) == NULL;
        }
    }
    for (int i = 0; i < d->row_count; i++) {
        if (d->rows[i].within >= 0)
            counts[DET_RULE_TIMEOUT_UNANSWERED] +=
                find_row(d, d->rows[i].to, d->rows[i].within, d->row_count) == NULL;
    }
}

static const struct row *step(const struct definition *d, int state, int event)
{
    return find_row(d, state, event, d->row_count);
}

static bool is_dealt_with(const struct definition *d, int state, int event)
{
    return step(d, state, event) != NULL || d->policy[event] != DET_UNHANDLED_ERROR;
}

/* Every state with every set of armed timers that some run leads to, by trying them all. */
static void explore(const struct definition *d, bool seen[STATES][1 << TIMERS])
{
    bool has_grown = true;

    for (int i = 0; i < d->state_count; i++)
        seen[i][0] = (d->flags[i] & DET_STATE_INITIAL) != 0;
    while (has_grown) {
        has_grown = false;
        for (int i = 0; i < d->state_count * (1 << TIMERS) * d->event_count; i++) {
            int event = i % d->event_count, state = i / d->event_count >> TIMERS;
            unsigned armed = (unsigned)(i / d->event_count) & ((1u << TIMERS) - 1);
            const struct row *row = step(d, state, event);
            int to;

            if (!seen[state][armed] || row == NULL || row->outcome == DET_STOP)
                continue;
            for (int timer = 0; timer < d->timer_count; timer++)
                armed &= d->timer_event[timer] == event ? ~(1u << timer) : ~0u;
            armed = (armed & ~row->disarms) | row->arms;
            to = row->outcome == DET_GOTO ? row->to : state;
            has_grown |= !seen[to][armed];
            seen[to][armed] = true;
        }
    }
}

static void count_paths(const struct definition *d, bool seen[STATES][1 << TIMERS], int *counts)
{
    for (int state = 0; state < d->state_count; state++) {
        bool is_final = (d->flags[state] & DET_STATE_FINAL) != 0, is_left = false, ends = false;
        bool is_reached = false;

        for (int armed = 0; armed < 1 << TIMERS; armed++)
            is_reached |= seen[state][armed];
        for (int event = 0; event < d->event_count; event++) {
            const struct row *row = step(d, state, event);

            is_left |= row != NULL && row->outcome == DET_GOTO && row->to != state;
            ends |= row != NULL && row->outcome == DET_STOP;
        }
        counts[DET_RULE_UNREACHABLE] += !is_reached;
        counts[DET_RULE_DEAD_END] += is_reached && !is_final && !is_left && !ends;
        counts[DET_RULE_FINAL_LEFT] += is_reached && is_final && is_left;
    }
}

static void count_timers(const struct definition *d, bool seen[STATES][1 << TIMERS], int *counts)
{
    for (int timer = 0; timer < d->timer_count; timer++) {
        bool is_unanswered = false, is_armed = false;

        for (int i = 0; i < d->state_count * (1 << TIMERS); i++) {
            int state = i >> TIMERS;
            unsigned armed = (unsigned)i & ((1u << TIMERS) - 1);

            is_unanswered |= seen[state][armed] && has(armed, timer) &&
                             !is_dealt_with(d, state, d->timer_event[timer]);
        }
        for (int row = 0; row < d->row_count; row++)
            is_armed |= has(d->rows[row].arms, timer);
        counts[DET_RULE_TIMER_UNANSWERED] += is_unanswered;
        counts[DET_RULE_NOT_USED] += !is_armed;
    }
}

/* Whether an effect of the row may produce what the state after one of its pairs does not take. */
static bool has_lost_product(const struct definition *d, const struct row *row)
{
    bool result = false;

    for (int pair = 0; pair < d->state_count * d->event_count; pair++) {
        int state = pair / d->event_count;
        int to = row->outcome == DET_GOTO ? row->to : state;

        if (step(d, state, pair % d->event_count) != row || row->outcome == DET_STOP)
            continue;
        for (int effect = 0; effect < d->effect_count; effect++) {
            for (int event = 0; event < d->event_count; event++)
                result |= has(row->effects, effect) && has(d->produces[effect], event) &&
                          !is_dealt_with(d, to, event);
        }
    }
    return result;
}

static void count_effects(const struct definition *d, int *counts)
{
    for (int row = 0; row < d->row_count; row++)
        counts[DET_RULE_PRODUCT_UNANSWERED] += has_lost_product(d, &d->rows[row]);
    for (int effect = 0; effect < d->effect_count; effect++) {
        bool is_used = false;

        for (int row = 0; row < d->row_count; row++)
            is_used |= has(d->rows[row].effects, effect);
        counts[DET_RULE_NOT_USED] += !is_used;
    }
}

static void judge(const struct definition *d, int *counts)
{
    bool seen[STATES][1 << TIMERS] = { { false } };
    int errors = 0;

    count_pairs(d, counts);
    count_missing(d, counts);
    count_timeouts(d, counts);
    for (int i = 0; i < DET_RULE_COUNT; i++)
        errors += det_rule_severity((enum det_rule)i) == DET_BROKEN ? counts[i] : 0;
    if (errors > 0)
        return;
    explore(d, seen);
    count_paths(d, seen, counts);
    count_timers(d, seen, counts);
    count_effects(d, counts);
}

/* The builder. */

static const char *const state_names[] = { "A", "B", "C", "D", "E" };
static const char *const event_names[] = { "p", "q", "r", "s", "t" };
static const char *const effect_names[] = { "send", "mail", "print" };
static const char *const timer_names[] = { "bell", "alarm" };

static const char *const *list_of(unsigned set, const char *const *names, const char **list)
{
    size_t count = 0;

    for (int i = 0; i < STATES; i++) {
        if (has(set, i))
            list[count++] = names[i];
    }
    list[count] = NULL;
    return list;
}

static void give_row(struct det_machine_builder *b, const struct row *row)
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
               .effects = list_of(row->effects, effect_names, effects),
               .arms = list_of(row->arms, timer_names, arms),
               .disarms = list_of(row->disarms, timer_names, disarms),
               .within = { row->within >= 0 ? DET_SECOND : 0,
                           row->within >= 0 ? event_names[row->within] : NULL, NULL },
           });
}

/* The behaviour comes first, so that row numbers are indices; declarations may come later. */
static struct det_machine_builder *give(const struct definition *d)
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
    for (int i = 0; i < d->timer_count; i++)
        TIMER(b, timer_names[i], DET_SECOND, event_names[d->timer_event[i]]);
    for (int i = 0; i < d->after_count; i++)
        det_machine_builder_after(
            b, list_of(d->afters[i].states, state_names, list),
            &(struct det_timeout_row){ DET_SECOND, event_names[d->afters[i].event], NULL });
    return b;
}

static void compare_ids(unsigned set, const uint16_t *ids, size_t count)
{
    size_t found = 0;

    for (int i = 0; i < STATES; i++) {
        if (has(set, i)) {
            assert_true(found < count);
            assert_int_equal(ids[found++], i);
        }
    }
    assert_int_equal(found, count);
}

static void compare_cell(const struct row *row, const struct det_transition *transition, int state)
{
    static const struct det_transition_more nothing = { 0 };
    const struct det_transition_more *more = transition->more != NULL ? transition->more : &nothing;

    if (row == NULL) {
        assert_int_equal(transition->outcome, DET_UNHANDLED);
        assert_int_equal(transition->to, state);
        return;
    }
    assert_int_equal(transition->outcome, row->outcome);
    assert_int_equal(transition->to, row->outcome == DET_GOTO ? row->to : state);
    compare_ids(row->effects, more->effects, more->effect_count);
    compare_ids(row->arms, more->arms, more->arm_count);
    compare_ids(row->disarms, more->disarms, more->disarm_count);
    assert_int_equal(more->within != NULL ? more->within->event : -1, row->within);
}

static void compare_tables(const struct definition *d, const struct det_machine *machine)
{
    for (int state = 0; state < d->state_count; state++) {
        for (int event = 0; event < d->event_count; event++) {
            const struct row *row = step(d, state, event);
            const struct det_transition *transition =
                det_machine_step(machine, (unsigned)state, (unsigned)event);

            compare_cell(row, transition, state);
            assert_int_equal(transition->row, row != NULL ? row - d->rows + 1 : 0);
        }
    }
}

/* Whether the definition is right. */
static bool compare(const struct definition *d)
{
    struct det_machine_builder *b = give(d);
    struct det_machine *machine = NULL;
    struct det_diagnostics found;
    int expected[DET_RULE_COUNT] = { 0 }, actual[DET_RULE_COUNT] = { 0 };
    int r = det_machine_builder_build(b, &machine, &found);

    judge(d, expected);
    assert_false(found.is_cut);
    for (size_t i = 0; i < found.count; i++)
        actual[found.items[i].rule]++;
    for (int i = 0; i < DET_RULE_COUNT; i++) {
        if (actual[i] != expected[i])
            fail_msg(
                "%s: found %d, expected %d", det_rule_id((enum det_rule)i), actual[i], expected[i]);
    }
    if (r == 0)
        compare_tables(d, machine);
    det_machine_close(machine);
    det_machine_builder_close(b);
    return r == 0;
}

static void the_builder_and_the_interpreter_agree_on_random_definitions(void **context)
{
    int right = 0, wrong = 0;

    (void)context;
    for (uint64_t i = 0; i < DEFINITIONS; i++) {
        struct definition d;

        seed = i;
        d = make_definition();
        if (compare(&d))
            right++;
        else
            wrong++;
    }
    /* A generator that makes only one kind would prove little. */
    assert_true(right > DEFINITIONS / 10);
    assert_true(wrong > DEFINITIONS / 10);
    print_message("             %d definitions right, %d wrong\n", right, wrong);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_builder_and_the_interpreter_agree_on_random_definitions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
