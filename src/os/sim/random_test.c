/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* random_test.c - the numbers of a simulation: the known generator, within bounds, in the trace. */
#include "os/sim/random.h"

#include "os/sim/shared_cases.h"

static void numbers_are_within_bounds_and_part_of_the_trace(void **state)
{
    struct det_sim *sim = open_sim(3), *same = open_sim(3);
    uint64_t hash = det_sim_hash(sim);
    int seen[7] = { 0 }, happened = 0;

    (void)state;
    for (int i = 0; i < 7000; i++) {
        seen[det_sim_random_below(sim, 7)]++;
        happened += det_sim_chance(sim, 250000);
        assert_false(det_sim_chance(sim, 0));
        assert_true(det_sim_chance(sim, 1000000));
    }
    for (int i = 0; i < 7; i++)
        assert_in_range(seen[i], 850, 1150);
    assert_in_range(happened, 1600, 1900);
    assert_int_not_equal(hash, det_sim_hash(sim));
    assert_int_equal(hash, det_sim_hash(same));
    det_sim_note(same, "x", 1);
    assert_int_not_equal(hash, det_sim_hash(same));
    det_sim_close(sim);
    sim = open_sim(3);
    (void)det_sim_random(same);
    assert_int_not_equal(det_sim_random(sim), det_sim_random(same));
    assert_int_equal(0, det_sim_random_below(sim, 1));
    /* A bound just above half of all numbers rejects nearly every other draw. */
    for (int i = 0; i < 100; i++)
        assert_true(det_sim_random_below(sim, (UINT64_C(1) << 63) + 1) <= UINT64_C(1) << 63);
    det_sim_close(same);
    det_sim_close(sim);
}

static void generator_gives_the_published_numbers(void **state)
{
    /* The state 1, 2, 3, 4 begins like this in every xoshiro256**. */
    struct det_chance chance = { .state = { 1, 2, 3, 4 } };

    (void)state;
    assert_int_equal(11520, det_chance_next(&chance));
    assert_int_equal(0, det_chance_next(&chance));
    assert_int_equal(1509978240, det_chance_next(&chance));
    assert_int_equal(UINT64_C(1215971899390074240), det_chance_next(&chance));
}

static void random_streams_of_different_seeds_differ(void **state)
{
    struct det_chance chances[4];

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        det_chance_init(&chances[i], i / 2, i % 2);
    for (unsigned i = 1; i < 4; i++)
        for (unsigned j = 0; j < i; j++)
            assert_memory_not_equal(&chances[i], &chances[j], sizeof chances[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_within_bounds_and_part_of_the_trace),
        cmocka_unit_test(generator_gives_the_published_numbers),
        cmocka_unit_test(random_streams_of_different_seeds_differ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
