/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_random_test.c - thousands of random definitions, right and wrong, checked by the builder
 * and by an interpreter that always searches all rows. Both must find the same number of violations
 * of every rule, and the same result for every pair. */
#include <detent/tool/machine.h>

#include "machine/builder_random_test.h"

#define DEFINITIONS 20000

/* The interpreter. */

static void count_pair(const struct definition *d, int state, int event, int i, int *counts)
{
    const struct row *row = &d->rows[i];
    int plain = find_plain_row(d, state, event, i);
    bool is_printed = find_row(d, state, event, i) != NULL;
    struct between between;

    if (!is_printed) {
        counts[DET_RULE_OVERRIDE_NOTHING] += row->is_override;
        counts[DET_RULE_ELSE_NOTHING] += row->is_else;
    }
    if (plain < 0) /* what comes to an orphan is not told again */
        return;
    between = look_between(d, state, event, plain, i);
    if (row->is_override)
        counts[between.elses > 0 ? DET_RULE_OVERRIDE_ELSE : DET_RULE_OVERRIDES]++;
    else if (!row->is_else)
        counts[DET_RULE_DUPLICATE_TRANSITION]++;
    else
        counts[DET_RULE_ELSE_NEVER] += between.decider->guard < 0 || between.blunt_overrides > 0 ||
                                       (row->guard < 0 && between.bare_elses > 0);
}

/* A row has at most one finding of a rule, for any number of pairs. */
static void report_once(int *counts, enum det_rule rule, int before)
{
    counts[rule] = counts[rule] > before ? before + 1 : before;
}

static void count_pairs(const struct definition *d, int *counts)
{
    for (int i = 0; i < d->row_count; i++) {
        int nothing = counts[DET_RULE_ELSE_NOTHING], never = counts[DET_RULE_ELSE_NEVER];

        for (int pair = 0; pair < d->state_count * d->event_count; pair++) {
            int state = pair / d->event_count, event = pair % d->event_count;

            if (is_about(&d->rows[i], state, event))
                count_pair(d, state, event, i, counts);
        }
        report_once(counts, DET_RULE_ELSE_NOTHING, nothing);
        report_once(counts, DET_RULE_ELSE_NEVER, never);
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

/* Returns the next row that may decide the pair, from `*at` on: in a valid definition the last row
 * that is not an ELSE, and every ELSE. */
static const struct row *next_transition(const struct definition *d, int state, int event, int *at)
{
    while (*at < d->row_count) {
        const struct row *row = &d->rows[(*at)++];
        bool is_replaced = false;

        if (!is_about(row, state, event))
            continue;
        for (int i = *at; i < d->row_count; i++)
            is_replaced |= is_about(&d->rows[i], state, event) && !d->rows[i].is_else;
        if (!is_replaced)
            return row;
    }
    return NULL;
}

static const struct row *step(const struct definition *d, int state, int event)
{
    int at = 0;

    return next_transition(d, state, event, &at);
}

static bool is_dealt_with(const struct definition *d, int state, int event)
{
    return step(d, state, event) != NULL || d->policy[event] != DET_UNHANDLED_ERROR;
}

/* Finds every reachable state with every set of armed timers, by trying all runs. */
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
            const struct row *row;
            bool is_seen = seen[state][armed];

            for (int timer = 0; timer < d->timer_count; timer++)
                armed &= d->timer_event[timer] == event ? ~(1u << timer) : ~0u;
            for (int at = 0; is_seen && (row = next_transition(d, state, event, &at)) != NULL;) {
                unsigned after = (armed & ~row->disarms) | row->arms;
                int to = row->outcome == DET_OUTCOME_GOTO ? row->to : state;

                if (row->outcome == DET_OUTCOME_STOP || seen[to][after])
                    continue;
                has_grown = seen[to][after] = true;
            }
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
            const struct row *row;

            for (int at = 0; (row = next_transition(d, state, event, &at)) != NULL;) {
                is_left |= row->outcome == DET_OUTCOME_GOTO && row->to != state;
                ends |= row->outcome == DET_OUTCOME_STOP;
            }
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

/* Returns true if an effect of the row may produce an event that the state after one of its pairs
 * does not accept. */
static bool has_lost_product(const struct definition *d, const struct row *row)
{
    bool result = false;

    for (int pair = 0; pair < d->state_count * d->event_count; pair++) {
        int state = pair / d->event_count;
        int to = row->outcome == DET_OUTCOME_GOTO ? row->to : state, at = 0;
        const struct row *way;

        do
            way = next_transition(d, state, pair % d->event_count, &at);
        while (way != NULL && way != row);
        if (way == NULL || row->outcome == DET_OUTCOME_STOP)
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

static void count_guards(const struct definition *d, int *counts)
{
    for (int guard = 0; guard < d->guard_count; guard++) {
        bool is_used = false;

        for (int row = 0; row < d->row_count; row++)
            is_used |= d->rows[row].guard == guard;
        counts[DET_RULE_NOT_USED] += !is_used;
        for (int pair = 0; pair < d->state_count * d->event_count; pair++) {
            const struct row *row;
            int asked = 0;

            for (int at = 0; (row = next_transition(
                                  d, pair / d->event_count, pair % d->event_count, &at)) != NULL;)
                asked += row->guard == guard;
            counts[DET_RULE_GUARD_AGAIN] += asked > 1 ? asked - 1 : 0;
        }
    }
}

static void validate(const struct definition *d, int *counts)
{
    bool seen[STATES][1 << TIMERS] = { { false } };
    int errors = 0;

    count_pairs(d, counts);
    count_missing(d, counts);
    count_timeouts(d, counts);
    for (int i = 0; i < DET_RULE_COUNT; i++)
        errors += det_rule_severity((enum det_rule)i) == DET_SEVERITY_BROKEN ? counts[i] : 0;
    if (errors > 0)
        return;
    explore(d, seen);
    count_paths(d, seen, counts);
    count_timers(d, seen, counts);
    count_effects(d, counts);
    count_guards(d, counts);
}

/* The builder. */

static void compare_ids(unsigned set, const uint16_t *ids, size_t count)
{
    size_t wanted = 0;

    for (int i = 0; i < STATES; i++)
        wanted += has(set, i);
    assert_int_equal(count, wanted);
    for (size_t i = 0; i < count; i++)
        assert_true(has(set, ids[i]) && (i == 0 || ids[i - 1] < ids[i]));
}

static void compare_cell(const struct row *row, const struct det_transition *transition, int state)
{
    static const struct det_transition_more nothing = { 0 };
    const struct det_transition_more *more = transition->more != NULL ? transition->more : &nothing;

    if (row == NULL) {
        assert_int_equal(transition->outcome, DET_OUTCOME_UNHANDLED);
        assert_int_equal(transition->to, state);
        return;
    }
    assert_int_equal(transition->outcome, row->outcome);
    assert_int_equal(transition->to, row->outcome == DET_OUTCOME_GOTO ? row->to : state);
    compare_ids(row->effects, more->effects, more->effect_count);
    compare_ids(row->arms, more->arms, more->arm_count);
    compare_ids(row->disarms, more->disarms, more->disarm_count);
    assert_int_equal(more->within != NULL ? more->within->event : -1, row->within);
    assert_int_equal(more->guard != NULL, row->guard >= 0);
    if (more->guard != NULL)
        assert_string_equal(more->guard->name, guard_names[row->guard]);
}

/* Compares the alternatives after the cell: those with a guard, in order, then those without. */
static void compare_choices(
    const struct definition *d, const struct det_machine *machine, int state, int event)
{
    const struct det_choice *choice = NULL;

    for (int is_bare = 0; is_bare < 2; is_bare++) {
        const struct row *row;
        int at = 0;

        if (next_transition(d, state, event, &at) == NULL)
            break;
        while ((row = next_transition(d, state, event, &at)) != NULL) {
            if (is_bare != (row->guard < 0))
                continue;
            choice = det_machine_choice(machine, (unsigned)state, (unsigned)event, choice);
            assert_non_null(choice);
            compare_cell(row, &choice->transition, state);
            assert_int_equal(choice->transition.row, row - d->rows + 1);
        }
    }
    assert_null(det_machine_choice(machine, (unsigned)state, (unsigned)event, choice));
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
            compare_choices(d, machine, state, event);
        }
    }
}

/* Returns true if the definition is valid. */
static bool compare(const struct definition *d)
{
    struct det_machine_builder *b = give(d);
    struct det_machine *machine = NULL;
    struct det_diagnostics found;
    int expected[DET_RULE_COUNT] = { 0 }, actual[DET_RULE_COUNT] = { 0 };
    int r = det_machine_builder_build(b, &machine, &found);

    validate(d, expected);
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

static bool has_choice(const struct definition *d)
{
    bool result = false;

    for (int i = 0; i < d->row_count; i++)
        result |= d->rows[i].is_else;
    return result;
}

static void the_builder_and_the_interpreter_agree_on_random_definitions(void **context)
{
    int right = 0, wrong = 0, chosen = 0;

    (void)context;
    for (uint64_t i = 0; i < DEFINITIONS; i++) {
        struct definition d;

        seed = i;
        d = make_definition();
        if (compare(&d)) {
            right++;
            chosen += has_choice(&d);
        } else {
            wrong++;
        }
    }
    /* A generator that makes only one kind would prove little. */
    assert_true(right > DEFINITIONS / 10);
    assert_true(wrong > DEFINITIONS / 10);
    assert_true(chosen > DEFINITIONS / 100);
    print_message(
        "             %d definitions right, %d of them with choices, %d wrong\n", right, chosen,
        wrong);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_builder_and_the_interpreter_agree_on_random_definitions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
