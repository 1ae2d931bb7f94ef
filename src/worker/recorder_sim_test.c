/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* recorder_sim_test.c - a recorder in the simulated world: all cases over many seeds, a store that
 * fails by chance, and every want of memory. */
#include "worker/recorder_cases.h"
#include "worker/sim_world_cases.h"

static const struct CMUnitTest cases[] = { RECORDER_CASES };

static void every_case_holds_for_every_seed(void **state)
{
    run_over_seeds(state, cases, sizeof cases / sizeof *cases, 10);
}

/* One step of an office that submits valid and invalid recordings to a store that sometimes
 * fails. */
static void step(struct office *office, uint64_t number)
{
    switch (number % 8) {
    case 0:
        write_many(office, 'i', 1);
        break;
    case 1:
        write_many(office, 'c', 1);
        break;
    case 2:
        assert_true(det_loop_turn(office->loop, 0) >= 0);
        break;
    case 3:
        if (number / 8 % 8 == 0)
            turn_until_reported(office);
        break;
    case 4:
        if (number / 8 % 8 == 0) {
            office->fake.fail = DET_ERR_IO;
            office->fake.fails_left = 1;
        }
        break;
    default:
        assert_int_equal(0, office_write(office, 'a', 1 + number / 8 % 4, 0));
        break;
    }
}

static uint64_t days_hash(struct office *office)
{
    struct det_sim_options options = { .seed = world_seed, .preempt = 300000 };
    uint64_t hash, random = world_seed;
    struct det_sim *sim;

    assert_int_equal(0, det_sim_open(&options, &sim, NULL));
    office_init(office, det_sim_world(sim), false);
    for (int i = 0; i < 400; i++)
        step(office, det_test_random(&random));
    office_deinit(office);
    hash = det_sim_hash(sim);
    det_sim_close(sim);
    return hash;
}

static void recordings_are_reported_in_order_under_every_seed(void **state)
{
    uint64_t count = seeds_count(60);
    static struct office office;
    unsigned failed = 0, invalid = 0, conflicts = 0;
    uint64_t saved = 0;

    (void)state;
    for (world_seed = 1; world_seed <= count; world_seed++) {
        assert_true(days_hash(&office) == days_hash(&office));
        failed += office.failed;
        invalid += office.invalid;
        conflicts += office.conflicts;
        saved += office.fake.latest;
    }
    world_seed = 0;
    assert_true(failed > 0 && invalid > count && conflicts > count && saved > 100 * count);
}

struct answer {
    unsigned reported, refused;
};

static void receive(void *argument, const struct det_recorded *recorded)
{
    struct answer *answer = argument;

    answer->reported++;
    answer->refused += recorded->code < 0;
}

static int write_poor(struct det_recorder *recorder, struct answer *answer, unsigned *submitted)
{
    const struct det_document_save saves[] = {
        { .kind = "k", .id = "a1", .text = "1", .size = 1 },
        { .kind = "k", .id = "a2", .is_drop = true, .text = "0", .size = 1 },
    };
    const struct det_recording wanted = {
        .saves = saves, .count = 2, .done = receive, .argument = answer
    };
    int r = 0;

    for (int i = 0; i < 5 && r == 0; i++) {
        r = det_recorder_submit(recorder, &wanted);
        *submitted += r == 0;
    }
    return r;
}

/* The store is of another world, which has memory. */
static int record_poor(struct det_sim *sim, struct det_test_memory *memory, bool is_inline)
{
    struct answer answer = { 0 };
    struct det_recorder *recorder;
    struct fake_store fake;
    struct det_loop *loop;
    unsigned submitted = 0;
    int r;

    r = det_loop_open(det_sim_world(sim), &memory->allocator, &loop);
    if (r < 0)
        return r;
    fake_init(&fake, det_world_real());
    r = det_recorder_open(
        det_sim_world(sim), &memory->allocator, &fake.store, loop, is_inline, &recorder);
    if (r == 0) {
        r = write_poor(recorder, &answer, &submitted);
        det_recorder_close(recorder);
    }
    det_loop_close(loop);
    fake_deinit(&fake);
    assert_int_equal(submitted, answer.reported);
    assert_int_equal(0, answer.refused);
    assert_int_equal(2 * submitted, fake.latest);
    return r;
}

static int open_use_close(struct det_test_memory *memory, void *argument)
{
    struct det_sim_options options = { .seed = 3, .allocator = &memory->allocator };
    struct det_sim *sim;
    int r;

    r = det_sim_open(&options, &sim, NULL);
    if (r < 0)
        return r;
    r = record_poor(sim, memory, argument);
    det_sim_close(sim);
    return r;
}

static void allocation_failure_loses_no_accepted_recording(void **state)
{
    (void)state;
    det_test_each_failure(open_use_close, NULL);
    det_test_each_failure(open_use_close, "inline");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_holds_for_every_seed),
        WORLD_CASE(ten_thousand_come_in_order),
        cmocka_unit_test(recordings_are_reported_in_order_under_every_seed),
        cmocka_unit_test(allocation_failure_loses_no_accepted_recording),
    };
    int failed = cmocka_run_group_tests_name("one seed", cases, NULL, NULL);

    return failed + cmocka_run_group_tests_name("seeds", tests, NULL, print_seed);
}
