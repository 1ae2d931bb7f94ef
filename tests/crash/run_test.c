/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* run_test.c - plans and models agree with stores, step by step, without faults: a store in memory,
 * and one in a file. */
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
        assert_int_equal(crash_run_read(&run, found), 0);
        if (!crash_model_check(found, &plan->models[i], &plan->models[i], &faults, text, 512))
            fail_msg("after step %d, kind %d: %s", (int)i, plan->steps[i - 1].kind, text);
    }
    assert_int_equal(crash_run_check(&run, &findings), 0);
    assert_int_equal(findings, 0);
    crash_run_deinit(&run);
    crash_plan_close(plan);
    free(found);
}

static void store_in_a_file_matches_the_model(void **state)
{
    char *folder = det_test_folder();
    char url[600];

    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        snprintf(url, sizeof url, "sqlite:%s/%d.db?checkpoint_pages=50", folder, (int)seed);
        run_plan(
            url, &(struct crash_plan_options){
                     .seed = seed, .steps = 120, .reopen_every = 17, .compacts = true });
    }
    det_test_folder_remove(folder);
}

static void store_in_memory_matches_the_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++)
        run_plan("memory:", &(struct crash_plan_options){ .seed = seed, .steps = 300 });
}

/* Number of each kind of step in a plan. */
struct counts {
    size_t steps[CRASH_STEP_COMPACT + 1];
    size_t timers[DET_STORE_UPDATE + 1], effects[DET_STORE_UPDATE + 1],
        deferred[DET_STORE_TAKE + 1];
    size_t starts, stops, snapshots, ids, fenced, batches, together, refused[4];
};

static void count_change(struct counts *counts, const struct crash_change *change)
{
    static const int refusals[4] = { DET_ERR_CONFLICT, DET_ERR_EXISTS, DET_ERR_NOT_FOUND,
                                     DET_ERR_LOCK_LOST };

    for (size_t i = 0; i < 4; i++)
        counts->refused[i] += change->result == refusals[i];
    if (change->result)
        return;
    for (size_t i = 0; i < change->timer_count; i++)
        counts->timers[change->timers[i].kind]++;
    for (size_t i = 0; i < change->effect_count; i++)
        counts->effects[change->effects[i].kind]++;
    for (size_t i = 0; i < change->deferred_count; i++)
        counts->deferred[change->deferred[i].kind]++;
    counts->starts += change->is_new;
    counts->stops += change->has_reason;
    counts->snapshots += change->is_snapshot;
    counts->ids += change->event_id != 0;
    counts->fenced += change->fence != 0;
    counts->batches += change->event_count > 1;
}

/* A rig proves nothing about operations that it does not execute. */
static void plan_covers_every_operation_of_a_store(void **state)
{
    struct crash_plan *plan = crash_plan_open(&(struct crash_plan_options){
        .seed = 1, .steps = 1200, .reopen_every = 37, .compacts = true });
    struct counts counts = { 0 };

    (void)state;
    for (size_t i = 0; i < plan->step_count; i++) {
        counts.steps[plan->steps[i].kind]++;
        counts.together += plan->steps[i].change_count > 1;
        for (size_t j = 0; j < plan->steps[i].change_count; j++)
            count_change(&counts, &plan->steps[i].changes[j]);
    }
    for (size_t i = 0; i <= CRASH_STEP_COMPACT; i++)
        assert_true(counts.steps[i] > 0);
    for (size_t i = 0; i < 4; i++)
        assert_true(counts.refused[i] > 0);
    assert_true(counts.timers[DET_STORE_SET] && counts.timers[DET_STORE_CLEAR]);
    assert_true(counts.timers[DET_STORE_TAKE] && counts.effects[DET_STORE_SET]);
    assert_true(counts.effects[DET_STORE_TAKE] && counts.effects[DET_STORE_UPDATE]);
    assert_true(counts.deferred[DET_STORE_SET] && counts.deferred[DET_STORE_TAKE]);
    assert_true(counts.starts && counts.stops && counts.snapshots && counts.ids);
    assert_true(counts.fenced && counts.batches && counts.together);
    crash_plan_close(plan);
}

static void any_difference_from_the_model_is_detected(void **state)
{
    struct crash_plan *plan =
        crash_plan_open(&(struct crash_plan_options){ .seed = 1, .steps = 99 });
    struct crash_model *model = &plan->models[99];
    struct crash_model *other = malloc(sizeof *other);
    struct crash_faults faults = { 0 };
    int64_t *numbers = (int64_t *)other;
    char text[512];

    (void)state;
    assert_non_null(other);
    for (size_t i = 0; i < sizeof *model / sizeof(int64_t); i++) {
        *other = *model;
        assert_true(crash_model_check(other, model, model, &faults, text, sizeof text));
        numbers[i]++;
        text[0] = 0;
        assert_false(crash_model_check(other, model, model, &faults, text, sizeof text));
        assert_true(strlen(text) > 20);
    }
    assert_true(faults.doubled && faults.timers && faults.effects && faults.halves);
    free(other);
    crash_plan_close(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_in_memory_matches_the_model),
        cmocka_unit_test(store_in_a_file_matches_the_model),
        cmocka_unit_test(plan_covers_every_operation_of_a_store),
        cmocka_unit_test(any_difference_from_the_model_is_detected),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
