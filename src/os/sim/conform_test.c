/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* conform_test.c - the simulated world holds what every world holds, whatever the seed.
 *
 * Not for thread sanitizer, which cannot follow the switches of stacks (fiber.h). */
#include <detent/driver/sim.h>

#include "os/file_cases.h"
#include "os/loop_loan_cases.h"
#include "os/pool_cases.h"
#include "os/sim/seeds_cases.h"
#include "os/world_cases.h"

static uint64_t seed = 7;

/* The condition of "sleep", which outlives it: its own could not be freed when it is killed. */
static struct gate bed;

static int program_count(struct det_world *world, int argc, const char *const *argv)
{
    (void)world;
    (void)argv;
    return argc - 1;
}

static int program_sleep(struct det_world *world, int argc, const char *const *argv)
{
    (void)world;
    (void)argc;
    (void)argv;
    gate_wait(&bed, 1);
    return 0;
}

static int world_setup(void **state)
{
    static struct world_fixture fixture;
    static char folder[] = "data";

    fixture = (struct world_fixture){ .folder = folder };
    if (det_sim_open(&(struct det_sim_options){ .seed = seed }, &fixture.sim, NULL) < 0)
        return -1;
    fixture.world = det_sim_world(fixture.sim);
    if (det_sim_program(fixture.sim, "true", program_count) < 0 ||
        det_sim_program(fixture.sim, "false", program_count) < 0 ||
        det_sim_program(fixture.sim, "sleep", program_sleep) < 0)
        return -1;
    gate_init(&bed, fixture.world);
    *state = &fixture;
    return 0;
}

static int world_teardown(void **state)
{
    struct world_fixture *fixture = *state;

    gate_deinit(&bed);
    det_sim_close(fixture->sim);
    return 0;
}

static const struct CMUnitTest cases[] = { WORLD_CASES, LOOP_CASES, LOAN_CASES,
                                           POOL_CASES,  FILE_CASES, PROCESS_CASES };

static void every_case_holds_for_every_seed(void **state)
{
    uint64_t count = seeds_count(100);

    for (seed = 1; seed <= count; seed++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            assert_int_equal(0, cases[i].setup_func(state));
            cases[i].test_func(state);
            assert_int_equal(0, cases[i].teardown_func(state));
        }
    seed = 0;
}

static int report_seed(void **state)
{
    (void)state;
    if (seed)
        print_message("the last seed was %llu\n", (unsigned long long)seed);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_case_holds_for_every_seed) };
    int failed = cmocka_run_group_tests_name("one seed", cases, NULL, NULL);

    return failed + cmocka_run_group_tests_name("seeds", tests, NULL, report_seed);
}
