/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* decisions_test.c - decisions compose by precedence, and resolve as the sentences of control.h
 * say: every pair and triple of decisions, and every input of the resolution. Nothing here
 * allocates. */
#include <detent/driver/control.h>

#include "lib/test.h"

static const struct det_control_decision decisions[] = {
    { DET_CONTROL_FORWARD, 0 },
    { DET_CONTROL_SKIP, 0 },
    { DET_CONTROL_RETRY, 0 },
    { DET_CONTROL_DELAY, 0 },
    { DET_CONTROL_DELAY, 1 },
    { DET_CONTROL_DELAY, 2 * DET_SECOND },
    { DET_CONTROL_DELAY, 5 * DET_SECOND },
    { DET_CONTROL_DELAY, DET_NEVER },
};
#define DECISIONS (sizeof decisions / sizeof decisions[0])

static bool is_same(struct det_control_decision a, struct det_control_decision b)
{
    return a.action == b.action && a.delay == b.delay;
}

/* The list above goes from the mildest to the strictest, by the sentence "Delay vs Delay = max;
 * Delay beats Retry/Skip/Forward; Retry beats Skip/Forward; Skip beats Forward". */
static void stricter_of_two_decisions_wins(void **state)
{
    (void)state;
    for (size_t a = 0; a < DECISIONS; a++) {
        for (size_t b = 0; b < DECISIONS; b++)
            assert_true(is_same(
                det_control_stricter(decisions[a], decisions[b]), decisions[a > b ? a : b]));
    }
}

static void composing_is_commutative_and_forward_is_neutral(void **state)
{
    struct det_control_decision forward = { DET_CONTROL_FORWARD, 0 };

    (void)state;
    for (size_t a = 0; a < DECISIONS; a++) {
        assert_true(is_same(det_control_stricter(forward, decisions[a]), decisions[a]));
        assert_true(is_same(det_control_stricter(decisions[a], forward), decisions[a]));
        for (size_t b = 0; b < DECISIONS; b++)
            assert_true(is_same(
                det_control_stricter(decisions[a], decisions[b]),
                det_control_stricter(decisions[b], decisions[a])));
    }
}

static void composing_is_associative(void **state)
{
    (void)state;
    for (size_t i = 0; i < DECISIONS * DECISIONS * DECISIONS; i++) {
        struct det_control_decision a = decisions[i % DECISIONS];
        struct det_control_decision b = decisions[i / DECISIONS % DECISIONS];
        struct det_control_decision c = decisions[i / DECISIONS / DECISIONS];

        assert_true(is_same(
            det_control_stricter(det_control_stricter(a, b), c),
            det_control_stricter(a, det_control_stricter(b, c))));
    }
}

static void delay_is_ignored_for_other_actions(void **state)
{
    struct det_control_decision skip = { DET_CONTROL_SKIP, 7 }, other = { DET_CONTROL_SKIP, 9 };
    struct det_control_decision found;

    (void)state;
    found = det_control_stricter(skip, other);
    assert_int_equal(found.action, DET_CONTROL_SKIP);
    assert_int_equal(found.delay, 0);
    found = det_control_stricter(skip, (struct det_control_decision){ DET_CONTROL_DELAY, 3 });
    assert_int_equal(found.delay, 3);
}

/* A strategy with a configured answer, which counts in its own memory. */
static struct det_control_decision decide_fixed(
    const void *config, const struct det_signal_info *info, struct det_control_memory *memory)
{
    (void)info;
    memory->user[0]++;
    return *(const struct det_control_decision *)config;
}

static struct det_control_strategy fixed_decision(size_t decision)
{
    return (struct det_control_strategy){ "as told", decide_fixed, &decisions[decision] };
}

static void no_strategies_forward_every_signal(void **state)
{
    (void)state;
    for (int signal = 0; signal < DET_SIGNAL_KINDS; signal++) {
        struct det_signal_info info = { .signal = (enum det_signal)signal };

        assert_true(is_same(det_control_decide(NULL, 0, &info, NULL), decisions[0]));
    }
}

static void one_strategy_decides_alone(void **state)
{
    struct det_signal_info info = { .signal = DET_SIGNAL_CHECKPOINT };

    (void)state;
    for (size_t i = 0; i < DECISIONS; i++) {
        struct det_control_memory memory = { 0 };
        struct det_control_strategy strategy = fixed_decision(i);

        assert_true(is_same(det_control_decide(&strategy, 1, &info, &memory), decisions[i]));
    }
}

static void every_strategy_is_asked_for_each_signal(void **state)
{
    (void)state;
    for (size_t i = 0; i < DECISIONS * DECISIONS * DECISIONS; i++) {
        size_t reported[3] = { i % DECISIONS, i / DECISIONS % DECISIONS,
                               i / DECISIONS / DECISIONS };
        struct det_control_strategy strategies[3];
        struct det_control_memory memories[3] = { 0 };
        struct det_signal_info info = { .signal = (enum det_signal)(i % DET_SIGNAL_OTHER) };
        size_t strictest = 0;

        for (size_t k = 0; k < 3; k++) {
            strategies[k] = fixed_decision(reported[k]);
            strictest = reported[k] > strictest ? reported[k] : strictest;
        }
        assert_true(
            is_same(det_control_decide(strategies, 3, &info, memories), decisions[strictest]));
        for (size_t k = 0; k < 3; k++) {
            bool is_delay = decisions[reported[k]].action == DET_CONTROL_DELAY;

            assert_int_equal(memories[k].user[0], 1);
            assert_int_equal(memories[k].asked[info.signal], 1);
            assert_int_equal(memories[k].delayed[info.signal], is_delay);
        }
    }
}

static void strategy_memory_counts_each_signal_kind(void **state)
{
    struct det_control_strategy strategies[2] = { fixed_decision(5), fixed_decision(1) };
    struct det_control_memory memories[2] = { 0 };
    static const unsigned calls[DET_SIGNAL_KINDS] = { 3, 1, 4, 2, 5 };

    (void)state;
    for (int signal = 0; signal < DET_SIGNAL_KINDS; signal++) {
        struct det_signal_info info = { .signal = (enum det_signal)signal };

        for (unsigned i = 0; i < calls[signal]; i++)
            (void)det_control_decide(strategies, 2, &info, memories);
    }
    for (int signal = 0; signal < DET_SIGNAL_OTHER; signal++) {
        assert_int_equal(memories[0].asked[signal], calls[signal]);
        assert_int_equal(memories[0].delayed[signal], calls[signal]);
        assert_int_equal(memories[1].asked[signal], calls[signal]);
        assert_int_equal(memories[1].delayed[signal], 0);
    }
    assert_int_equal(memories[0].user[0], 10);
}

static void strategies_are_not_asked_about_other_signals(void **state)
{
    struct det_control_strategy strategy = fixed_decision(5);
    struct det_control_memory memory = { 0 };
    struct det_signal_info info = { .signal = DET_SIGNAL_OTHER };

    (void)state;
    assert_true(is_same(det_control_decide(&strategy, 1, &info, &memory), decisions[0]));
    assert_int_equal(memory.user[0], 0);
    assert_int_equal(memory.asked[DET_SIGNAL_OTHER], 0);
}

static void counts_saturate_at_their_maximum(void **state)
{
    struct det_control_strategy strategy = fixed_decision(4);
    struct det_control_memory memory = { .asked = { UINT32_MAX }, .delayed = { UINT32_MAX } };
    struct det_signal_info info = { .signal = DET_SIGNAL_EOF };

    (void)state;
    (void)det_control_decide(&strategy, 1, &info, &memory);
    assert_int_equal(memory.asked[DET_SIGNAL_EOF], UINT32_MAX);
    assert_int_equal(memory.delayed[DET_SIGNAL_EOF], UINT32_MAX);
}

static struct det_control_decision decide_into_the_past(
    const void *config, const struct det_signal_info *info, struct det_control_memory *memory)
{
    (void)config, (void)info, (void)memory;
    return (struct det_control_decision){ DET_CONTROL_DELAY, -1 };
}

static void ask_for_the_past(void *argument)
{
    struct det_control_strategy strategy = { "past", decide_into_the_past, NULL };
    struct det_control_memory memory = { 0 };
    struct det_signal_info info = { .signal = DET_SIGNAL_EOF };

    (void)argument;
    (void)det_control_decide(&strategy, 1, &info, &memory);
}

static void negative_delay_of_a_strategy_aborts(void **state)
{
    (void)state;
    assert_true(det_test_aborts(ask_for_the_past, NULL, "delay >= 0"));
}

/* The rules as a table: the first row that fits says it. ANY fits everything. */
enum { ANY = -1 };

struct row {
    const char *sentence;
    int signal, action, role, origin, ended, final, terminal; /* or ANY */
    enum det_resolution resolution;
};

#define ROW(sentence, signal, action, role, origin, ended, final, terminal, resolution) \
    {                                                                                   \
        sentence, signal, action, role, origin, ended, final, terminal, resolution      \
    }
#define FORWARD DET_CONTROL_FORWARD
static const struct row rows[] = {
    ROW("all other signals: forward", DET_SIGNAL_OTHER, ANY, ANY, ANY, ANY, ANY, ANY,
        DET_RESOLVE_FORWARD),
    ROW("strategy first: delay", ANY, DET_CONTROL_DELAY, ANY, ANY, ANY, ANY, ANY,
        DET_RESOLVE_DELAY),
    ROW("strategy first: retry", ANY, DET_CONTROL_RETRY, ANY, ANY, ANY, ANY, ANY,
        DET_RESOLVE_RETRY),
    ROW("strategy first: skip", ANY, DET_CONTROL_SKIP, ANY, ANY, ANY, ANY, ANY, DET_RESOLVE_SKIP),
    ROW("the entry point buffers external EOF", DET_SIGNAL_EOF, FORWARD, DET_CYCLE_ENTRY,
        DET_ORIGIN_EXTERNAL, ANY, ANY, ANY, DET_RESOLVE_BUFFER),
    ROW("the entry point suppresses internal EOF", DET_SIGNAL_EOF, FORWARD, DET_CYCLE_ENTRY,
        DET_ORIGIN_INTERNAL, ANY, ANY, ANY, DET_RESOLVE_SUPPRESS),
    ROW("the entry point suppresses forwarded EOF", DET_SIGNAL_EOF, FORWARD, DET_CYCLE_ENTRY,
        DET_ORIGIN_FORWARDED, ANY, ANY, ANY, DET_RESOLVE_SUPPRESS),
    ROW("then the boundary of all upstreams", DET_SIGNAL_EOF, FORWARD, ANY, ANY, true, ANY, ANY,
        DET_RESOLVE_FORWARD_AND_DRAIN),
    ROW("then the final EOF", DET_SIGNAL_EOF, FORWARD, ANY, ANY, ANY, true, ANY,
        DET_RESOLVE_FORWARD_AND_DRAIN),
    ROW("else the EOF goes on", DET_SIGNAL_EOF, FORWARD, ANY, ANY, ANY, ANY, ANY,
        DET_RESOLVE_FORWARD),
    ROW("the entry point buffers Drain", DET_SIGNAL_DRAIN, FORWARD, DET_CYCLE_ENTRY, ANY, ANY, ANY,
        ANY, DET_RESOLVE_BUFFER),
    ROW("Drain is terminal for transforms and stateful stages", DET_SIGNAL_DRAIN, FORWARD, ANY, ANY,
        ANY, ANY, true, DET_RESOLVE_FORWARD_AND_DRAIN),
    ROW("Drain goes on at joins and sinks", DET_SIGNAL_DRAIN, FORWARD, ANY, ANY, ANY, ANY, false,
        DET_RESOLVE_FORWARD),
    ROW("watermarks and checkpoints: forward", ANY, FORWARD, ANY, ANY, ANY, ANY, ANY,
        DET_RESOLVE_FORWARD),
};
#undef FORWARD
#define ROWS (sizeof rows / sizeof rows[0])

static bool fits(int wanted, int found)
{
    return wanted == ANY || wanted == found;
}

static size_t row_of(const struct det_resolve_input *input)
{
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];

        if (fits(row->signal, (int)input->info.signal) &&
            fits(row->action, (int)input->decision.action) && fits(row->role, (int)input->role) &&
            fits(row->origin, (int)input->origin) && fits(row->ended, input->all_upstreams_ended) &&
            fits(row->final, input->is_final_eof) && fits(row->terminal, input->drain_is_terminal))
            return i;
    }
    fail_msg("no row fits");
    return 0;
}

/* All 5 x 4 x 3 x 3 x 8 inputs, by number. */
#define INPUTS (5 * 4 * 3 * 3 * 8)
static struct det_resolve_input input_at(unsigned number)
{
    struct det_resolve_input input = { .info = { .signal = (enum det_signal)(number % 5) } };

    number /= 5;
    input.decision.action = (enum det_control_action)(number % 4);
    input.decision.delay = input.decision.action == DET_CONTROL_DELAY ? 3 * DET_SECOND : 0;
    number /= 4;
    input.role = (enum det_cycle_role)(number % 3);
    number /= 3;
    input.origin = (enum det_signal_origin)(number % 3);
    number /= 3;
    input.all_upstreams_ended = number & 1;
    input.is_final_eof = number & 2;
    input.drain_is_terminal = number & 4;
    return input;
}

static void every_input_resolves_as_the_rules_say(void **state)
{
    unsigned used[ROWS] = { 0 };

    (void)state;
    for (unsigned i = 0; i < INPUTS; i++) {
        struct det_resolve_input input = input_at(i);
        struct det_resolved resolved = det_control_resolve(&input);
        size_t row = row_of(&input);

        used[row]++;
        if (resolved.resolution != rows[row].resolution)
            fail_msg("input %u, '%s': %d", i, rows[row].sentence, (int)resolved.resolution);
        assert_int_equal(
            resolved.delay, resolved.resolution == DET_RESOLVE_DELAY ? 3 * DET_SECOND : 0);
    }
    for (size_t i = 0; i < ROWS; i++)
        assert_int_not_equal(used[i], 0);
}

static void only_a_member_notes_an_eof_and_only_one_that_passed(void **state)
{
    unsigned noted = 0;

    (void)state;
    for (unsigned i = 0; i < INPUTS; i++) {
        struct det_resolve_input input = input_at(i);
        struct det_resolved resolved = det_control_resolve(&input);

        noted += resolved.note_in_guard;
        if (input.decision.action != DET_CONTROL_FORWARD || input.info.signal != DET_SIGNAL_EOF ||
            input.role != DET_CYCLE_MEMBER || input.origin == DET_ORIGIN_FORWARDED)
            assert_false(resolved.note_in_guard);
        else
            assert_true(resolved.note_in_guard);
    }
    assert_int_equal(noted, 2 * 8);
}

/* One signal on its whole way: it waits, and counts as seen only when it passes. */
static void a_delayed_eof_is_noted_when_it_passes(void **state)
{
    static const uint8_t open = DET_BREAKER_OPEN;
    struct det_breaker_strategy config = { .state = &open };
    struct det_control_strategy strategy = det_control_breaker(&config);
    struct det_control_memory memory = { 0 };
    struct det_resolve_input input = { .info = { .signal = DET_SIGNAL_EOF },
                                       .role = DET_CYCLE_MEMBER };
    struct det_resolved resolved;

    (void)state;
    input.decision = det_control_decide(&strategy, 1, &input.info, &memory);
    resolved = det_control_resolve(&input);
    assert_int_equal(resolved.resolution, DET_RESOLVE_DELAY);
    assert_int_equal(resolved.delay, DET_BREAKER_WAIT_MAX);
    assert_false(resolved.note_in_guard);
    input.info.now += resolved.delay;
    input.decision = det_control_decide(&strategy, 1, &input.info, &memory);
    resolved = det_control_resolve(&input);
    assert_int_equal(resolved.resolution, DET_RESOLVE_FORWARD);
    assert_true(resolved.note_in_guard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stricter_of_two_decisions_wins),
        cmocka_unit_test(composing_is_commutative_and_forward_is_neutral),
        cmocka_unit_test(composing_is_associative),
        cmocka_unit_test(delay_is_ignored_for_other_actions),
        cmocka_unit_test(no_strategies_forward_every_signal),
        cmocka_unit_test(one_strategy_decides_alone),
        cmocka_unit_test(every_strategy_is_asked_for_each_signal),
        cmocka_unit_test(strategy_memory_counts_each_signal_kind),
        cmocka_unit_test(strategies_are_not_asked_about_other_signals),
        cmocka_unit_test(counts_saturate_at_their_maximum),
        cmocka_unit_test(negative_delay_of_a_strategy_aborts),
        cmocka_unit_test(every_input_resolves_as_the_rules_say),
        cmocka_unit_test(only_a_member_notes_an_eof_and_only_one_that_passed),
        cmocka_unit_test(a_delayed_eof_is_noted_when_it_passes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
