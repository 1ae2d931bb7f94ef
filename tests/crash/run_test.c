/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* run_test.c - plans and models agree with stores, step by step, when nothing goes wrong: a store
 * in memory, and one in a file. */
#include "lib/test.h"

#include <detent/sim.h>

#include "crash/run.h"

static void run_plan(const char *url, const struct crash_plan_options *options)
{
    struct crash_plan *plan = crash_plan_open(options);
    struct crash_model *found = calloc(1, sizeof *found);
    struct crash_faults faults = { 0 };
    struct crash_run run;
    DET_SCOPED(sim) sim = NULL;
    char text[512] = "";
    unsigned findings;

    assert_non_null(found);
    assert_int_equal(det_sim_open(NULL, &sim, NULL), 0);
    crash_run_init(
        &run, url,
        &(struct det_store_options){
            .world = det_sim_world(sim), .events_kept = 1000, .event_ids_kept = 1000 });
    assert_int_equal(crash_run_open(&run, 1), 0);
    for (size_t i = 1; i <= plan->step_count; i++) {
        int r = crash_run_step(&run, &plan->steps[i - 1]);

        if (r < 0)
            fail_msg("step %d, kind %d: %d, %s", (int)i, plan->steps[i - 1].kind, r, run.text);
        assert_int_equal(crash_run_look(&run, found), 0);
        if (!crash_model_check(found, &plan->models[i], &plan->models[i], &faults, text, 512))
            fail_msg("after step %d, kind %d: %s", (int)i, plan->steps[i - 1].kind, text);
    }
    assert_int_equal(crash_run_check(&run, &findings), 0);
    assert_int_equal(findings, 0);
    crash_run_deinit(&run);
    crash_plan_close(plan);
    free(found);
}

static void a_store_in_memory_says_what_the_model_says(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++)
        run_plan("memory:", &(struct crash_plan_options){ .seed = seed, .steps = 300 });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_in_memory_says_what_the_model_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
