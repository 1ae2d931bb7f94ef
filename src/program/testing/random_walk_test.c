/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* random_walk_test.c - random walks hold, are the same twice, and see what is wrong. */
#include "testing/random_walk.h"

#include <detent/tool/machine.h>
#include <detent/tool/spec.h>

#include "testing/random_record.h"
#include "testing/stubs.h"
#include "testing/walk_internal.h"

#include "lib/test.h"

static const char spec_text[] =
    "#define FSM_NAME job\n#define FSM_PREFIX JOB\n#define FSM_DATA all\n"
    "ENUM(color) VALUE(RED, red) VALUE(BLUE, blue) END\n"
    "RECORD(part) FIELD(a, i8) OPTIONAL(b, f64) END\n"
    "RECORD(all) FIELD(u1, u8) FIELD(u2, u16) FIELD(u4, u32) FIELD(u8b, u64) FIELD(s, i64)\n"
    "    FIELD(ok, bool) FIELD(at, time) FIELD(text, str(5)) FIELD(raw, bytes(3))\n"
    "    FIELD(paint, one_of(color)) OPTIONAL(maybe, nested(part)) ARRAY(some, nested(part), 3)\n"
    "    ARRAY(words, str(3), 4) END\n"
    "RECORD(load) FIELD(u4, u32) FIELD(text, str(5)) END\n"
    "STATE(IDLE, idle, INITIAL) STATE(BUSY, busy) STATE(LATE, late) STATE(OVER, over, FINAL)\n"
    "EVENT(BEGIN, begin, load) EVENT(PING, ping) EVENT(HALT, halt) EVENT(LATER, later)\n"
    "EVENT(PICK, pick)\n"
    "INTERNAL(YES, yes, load) INTERNAL(NO, no) INTERNAL(SLOW, slow, load)\n"
    "UNHANDLED(PING, IGNORE) UNHANDLED(LATER, DEFER)\n"
    "GUARD(may) GUARD(can) HOOK(ready) UPDATE(count) FILL(how) EFFECT(work, YES, NO) EFFECT(tell)\n"
    "TIMER(watch, SECONDS(90), SLOW, how)\n"
    "ON(IDLE, BEGIN, BUSY, IF(may), CALL(ready), KEEP(u4, text), DO(work, tell), ARM(watch))\n"
    "ON(BUSY, YES, OVER, SET(count), DISARM(watch)) ON(BUSY, NO, IDLE)\n"
    "ON(BUSY, BEGIN, BUSY, WITHIN(SECONDS(1), NO)) STAY(BUSY, PING, SET(count))\n"
    "STAY(ANY(IDLE, BUSY), SLOW, ARM(watch)) ON(IDLE, LATER, LATE, IF(can)) ON(LATE, BEGIN, IDLE)\n"
    "ON(IDLE, PICK, LATE, IF(may), SET(count)) ELSE(IDLE, PICK, LATE, IF(can), ARM(watch))\n"
    "ELSE_STAY(IDLE, PICK) STAY(BUSY, PICK, IF(can)) ELSE_STOP(BUSY, PICK, IF(may))\n"
    "STAY(LATE, SLOW) STOP(LATE, HALT, REASON(\"enough\")) AFTER(BUSY, SECONDS(30), NO) "
    "ENTRY(LATE, ready)\n";

static int open_machine(void **state)
{
    static struct det_spec *spec;

    assert_int_equal(det_spec_read("job.fsm", spec_text, sizeof spec_text - 1, NULL, &spec), 0);
    for (size_t i = 0; !det_spec_machine(spec) && i < det_spec_diagnostics(spec)->count; i++)
        print_error("%s\n", det_spec_diagnostics(spec)->items[i].text);
    assert_non_null(det_spec_machine(spec));
    assert_int_equal(cli_stubs_bind(det_spec_machine(spec), NULL), 0);
    *state = spec;
    return 0;
}

static int close_machine(void **state)
{
    det_spec_close(*state);
    return 0;
}

static bool never(void *context)
{
    (void)context;
    return false;
}

static void every_seed_passes_and_is_reproducible(void **state)
{
    struct det_machine *machine = det_spec_machine(*state);
    uint64_t last = 0;

    for (uint64_t seed = 0; seed < 20; seed++) {
        struct walk_options options = { .seed = seed, .steps = 150, .is_stopped = never };
        struct walk_result first, second;

        assert_int_equal(walk_machine(machine, &options, &first), 0);
        if (*first.violation)
            fail_msg(
                "seed %llu, step %llu: %s", (unsigned long long)seed,
                (unsigned long long)first.steps, first.violation);
        assert_int_equal(first.steps, 150);
        assert_int_equal(walk_machine(machine, &options, &second), 0);
        assert_true(first.hash == second.hash && first.events == second.events);
        assert_true(first.hash != last);
        last = first.hash;
    }
}

static void walks_reach_every_state(void **state)
{
    struct det_machine *machine = det_spec_machine(*state);
    struct cli_coverage coverage;
    struct cli_coverage_counts counts;
    struct walk_options options = { .steps = 300, .coverage = &coverage, .is_stopped = never };
    struct walk_result result;

    assert_int_equal(cli_coverage_init(&coverage, machine, NULL), 0);
    for (options.seed = 100; options.seed < 106; options.seed++)
        assert_int_equal(walk_machine(machine, &options, &result), 0);
    counts = cli_coverage_count(&coverage);
    assert_int_equal(counts.states, 4);
    assert_int_equal(counts.states_visited, 4);
    assert_true(counts.transitions_taken * 10 >= counts.transitions * 8);
    cli_coverage_deinit(&coverage, NULL);
}

static void expect_all_taken(const char *text, size_t size, uint64_t steps)
{
    struct det_spec *spec;
    struct cli_coverage coverage;
    struct cli_coverage_counts counts;
    struct walk_options options = {
        .seed = 1, .steps = steps, .coverage = &coverage, .is_stopped = never
    };
    struct walk_result result;

    assert_int_equal(det_spec_read("all.fsm", text, size, NULL, &spec), 0);
    assert_non_null(det_spec_machine(spec));
    assert_int_equal(cli_stubs_bind(det_spec_machine(spec), NULL), 0);
    assert_int_equal(cli_coverage_init(&coverage, det_spec_machine(spec), NULL), 0);
    assert_int_equal(walk_machine(det_spec_machine(spec), &options, &result), 0);
    assert_string_equal(result.violation, "");
    counts = cli_coverage_count(&coverage);
    assert_int_equal(counts.states_visited, counts.states);
    assert_int_equal(counts.transitions_taken, counts.transitions);
    cli_coverage_deinit(&coverage, NULL);
    det_spec_close(spec);
}

/* Ten digits open it, and any other leads back; what is behind the door is never left, and is met
 * by an effect whose one answer of four leads on. By chance alone that takes ages. */
static void random_walks_prefer_untaken_transitions(void **state)
{
    static const char digits[] = "ABCD";
    char text[8192];
    size_t used = 0;

    (void)state;
#define PRINT_ERROR(...) used += (size_t)snprintf(text + used, sizeof text - used, __VA_ARGS__)
    PRINT_ERROR("#define FSM_NAME safe\n#define FSM_PREFIX SAFE\n");
    for (int i = 0; i < 10; i++)
        PRINT_ERROR("STATE(S%d, s%d%s)\n", i, i, i ? "" : ", INITIAL");
    PRINT_ERROR(
        "STATE(INSIDE, inside) STATE(ASKING, asking) STATE(LOST, lost) STATE(FOUND, found)\n");
    PRINT_ERROR("STATE(OLD, old) EVENT(A, a) EVENT(B, b) EVENT(C, c) EVENT(D, d)\n");
    PRINT_ERROR(
        "INTERNAL(P, p) INTERNAL(Q, q) INTERNAL(R, r) INTERNAL(T, t) INTERNAL(LATE, late)\n");
    PRINT_ERROR("EFFECT(ask, P, Q, R, T)\n");
    for (int i = 0; i < 10; i++) {
        for (int k = 0; k < 4; k++) {
            if (k == i * 7 % 4 && i == 9)
                PRINT_ERROR("ON(S%d, %c, INSIDE)\n", i, digits[k]);
            else
                PRINT_ERROR("ON(S%d, %c, S%d)\n", i, digits[k], k == i * 7 % 4 ? i + 1 : 0);
        }
    }
    PRINT_ERROR("ON(INSIDE, A, ASKING, DO(ask)) STAY(INSIDE, B)\n");
    PRINT_ERROR(
        "ON(ASKING, ANY(P, Q, R), LOST) ON(ASKING, T, FOUND) STAY(LOST, A) STAY(FOUND, A)\n");
    PRINT_ERROR("AFTER(FOUND, DAYS(30), LATE) ON(FOUND, LATE, OLD) STAY(OLD, ANY(A, B, C, D))\n");
#undef PRINT_ERROR
    expect_all_taken(text, used, 5000);
}

/* One event of four leads on, the others lead back: half of the steps by chance never come far. */
static void walks_reach_the_end_of_a_long_chain(void **state)
{
    enum { STATES = 40, TEXT_MAX = 16384 };
    char *text = malloc(TEXT_MAX);
    size_t used = 0;

    (void)state;
    assert_non_null(text);
#define PRINT_ERROR(...) used += (size_t)snprintf(text + used, TEXT_MAX - used, __VA_ARGS__)
    PRINT_ERROR("#define FSM_NAME chain\n#define FSM_PREFIX CHAIN\n");
    PRINT_ERROR("EVENT(A, a) EVENT(B, b) EVENT(C, c) EVENT(D, d)\n");
    for (int i = 0; i < STATES; i++)
        PRINT_ERROR("STATE(S%d, s%d%s)\n", i, i, i ? "" : ", INITIAL");
    for (int i = 0; i < STATES; i++)
        PRINT_ERROR("ON(S%d, A, S%d) ON(S%d, ANY(B, C, D), S0)\n", i, (i + 1) % STATES, i);
#undef PRINT_ERROR
    expect_all_taken(text, used, 20000);
    free(text);
}

/* A yes of the bank that comes after its time is over, and even after the order was cancelled. */
static void random_walks_include_late_effect_results(void **state)
{
    static const char text[] =
        "#define FSM_NAME order\n#define FSM_PREFIX ORDER\n"
        "STATE(PENDING, pending, INITIAL) STATE(CHARGING, charging) STATE(PAID, paid)\n"
        "STATE(CANCELLED, cancelled) STATE(REFUNDING, refunding)\n"
        "EVENT(PAY, pay) EVENT(CANCEL, cancel) INTERNAL(YES, yes) INTERNAL(NO, no)\n"
        "INTERNAL(BACK, back) EFFECT(charge, YES, NO) EFFECT(refund, BACK)\n"
        "ON(PENDING, PAY, CHARGING, DO(charge)) ON(ANY(PENDING, CHARGING), YES, PAID)\n"
        "ON(CHARGING, NO, PENDING) AFTER(CHARGING, MINUTES(5), NO) STAY(PENDING, NO)\n"
        "ON(PENDING, CANCEL, CANCELLED) ON(CANCELLED, YES, REFUNDING, DO(refund))\n"
        "ON(REFUNDING, BACK, CANCELLED) STAY(CANCELLED, NO) STAY(PAID, CANCEL)\n";

    (void)state;
    expect_all_taken(text, sizeof text - 1, 5000);
}

/* The model alone, fed with notes that a broken runtime might give. */
struct forged {
    struct walk walk;
    struct walk_result result;
    struct det_note note;
    char *data, *event;
};

static void forge(struct forged *forged, const struct det_machine *machine)
{
    size_t size = det_machine_data(machine)->size;

    *forged = (struct forged){ .result = { .hash = 0 } };
    forged->data = calloc(1, size);
    forged->event = calloc(1, machine->event_size);
    forged->walk.machine = machine;
    forged->walk.result = &forged->result;
    forged->walk.model.data = calloc(1, size);
    forged->note = (struct det_note){
        .machine = machine,
        .to = machine->initial,
        .event = UINT16_MAX,
        .outcome = DET_OUTCOME_GOTO,
        .data = forged->data,
    };
    walk_model_note(&forged->walk, &forged->note);
    assert_string_equal(forged->result.violation, "");
    /* The first event: begin, from idle to busy. */
    forged->note.sequence = 1;
    forged->note.event = (uint16_t)det_machine_find_event(machine, "begin");
    forged->note.to = (uint16_t)det_machine_find_state(machine, "busy");
    memcpy(forged->event, &(unsigned){ forged->note.event }, sizeof(unsigned));
    forged->note.event_value = forged->event;
}

static void finds(struct forged *forged, const char *violation)
{
    walk_model_note(&forged->walk, &forged->note);
    if (!strstr(forged->result.violation, violation))
        fail_msg("'%s' is not '%s'", forged->result.violation, violation);
    free(forged->data);
    free(forged->event);
    free(forged->walk.model.data);
}

static void the_model_finds_what_is_wrong(void **state)
{
    const struct det_machine *machine = det_spec_machine(*state);
    struct forged forged;

    forge(&forged, machine);
    finds(&forged, "");
    assert_string_equal(forged.result.violation, "");
    forge(&forged, machine);
    forged.note.sequence = 2;
    finds(&forged, "sequence 2 follows 0");
    forge(&forged, machine);
    forged.note.from = forged.note.to;
    finds(&forged, "an event was judged from busy, but the state was idle");
    forge(&forged, machine);
    forged.note.to = machine->initial;
    finds(&forged, "idle on begin did not follow the table");
    /* The alternatives of pick lead to the same state, but only one of them changes the data. */
    forge(&forged, machine);
    forged.note.event = (uint16_t)det_machine_find_event(machine, "pick");
    forged.note.to = (uint16_t)det_machine_find_state(machine, "late");
    forged.walk.answers[1] = true;
    finds(&forged, "");
    assert_string_equal(forged.result.violation, "");
    forge(&forged, machine);
    forged.note.event = (uint16_t)det_machine_find_event(machine, "pick");
    forged.note.to = (uint16_t)det_machine_find_state(machine, "late");
    finds(&forged, "idle on pick did not follow the table");
    forge(&forged, machine);
    forged.data[0] = 1;
    finds(&forged, "idle on begin produced data that differs from the definition");
    forge(&forged, machine);
    forged.walk.model.is_running = false;
    finds(&forged, "an event was committed after the stop");
    forge(&forged, machine);
    forged.note.event = UINT16_MAX;
    finds(&forged, "it started in busy, not in the initial state");
}

static void random_records_are_valid_and_differ(void **state)
{
    const struct det_record *record = det_machine_data(det_spec_machine(*state));
    char *value = calloc(2, record->size);
    struct det_error error = { 0 };
    struct det_sim *sim;
    unsigned equal = 0;

    assert_non_null(value);
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = 5 }, &sim, NULL), 0);
    for (int i = 0; i < 500; i++) {
        memcpy(value + record->size, value, record->size);
        memset(value, 0, record->size);
        cli_random_record(sim, record, value);
        if (det_record_validate(record, value, &error) < 0)
            fail_msg("%s", error.text);
        equal += det_record_equal(record, value, value + record->size);
    }
    assert_int_equal(equal, 0);
    det_sim_close(sim);
    free(value);
}

static int coverage_scenario(struct det_test_memory *memory, void *argument)
{
    struct cli_coverage coverage = { 0 };
    int r = cli_coverage_init(&coverage, argument, &memory->allocator);

    cli_coverage_deinit(&coverage, &memory->allocator);
    return r;
}

static void coverage_survives_every_failed_allocation(void **state)
{
    det_test_each_failure(coverage_scenario, det_spec_machine(*state));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_seed_passes_and_is_reproducible),
        cmocka_unit_test(walks_reach_every_state),
        cmocka_unit_test(random_walks_prefer_untaken_transitions),
        cmocka_unit_test(walks_reach_the_end_of_a_long_chain),
        cmocka_unit_test(random_walks_include_late_effect_results),
        cmocka_unit_test(the_model_finds_what_is_wrong),
        cmocka_unit_test(random_records_are_valid_and_differ),
        cmocka_unit_test(coverage_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
