/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pipeline_test.c - a flow from open to its end: start gate, completion, stops, failures. */
/* test: threads */
#include "flow/flow_test.h"

static void every_row_passes_the_flow_once(void **state)
{
    struct bed *bed = new_bed(10000);

    (void)state;
    run_bed(bed);
    assert_int_equal(bed->end.outcome, DET_PIPELINE_COMPLETED);
    assert_int_equal(bed->end.state, DET_PIPELINE_DRAINED);
    assert_int_equal(bed->end.end, DET_END_NATURAL);
    assert_int_equal(bed->end.rows_in, 10000);
    assert_int_equal(bed->end.rows_out, 10000);
    assert_got(bed, 1, 10000);
    free(bed);
}

static void facts_are_in_the_order_of_the_life(void **state)
{
    struct bed *bed = new_bed(10);

    (void)state;
    run_bed(bed);
    assert_string_equal(
        bed->facts, "opened pass:stage_running keep:stage_running ready running read:stage_running "
                    "read:stage_draining read:stage_completed draining pass:stage_draining "
                    "pass:stage_completed keep:stage_draining keep:stage_completed completed ");
    free(bed);
}

static void open_and_close_are_called_once(void **state)
{
    struct bed *bed = new_bed(10);

    (void)state;
    bed->stages[0].functions = &numbers_functions;
    run_bed(bed);
    assert_int_equal(bed->opens, 1);
    assert_int_equal(bed->closes, 1);
    assert_int_equal(bed->drains, 1);
    assert_int_equal(bed->acknowledged, 11); /* and its end */
    free(bed);
}

static void an_early_run_has_no_effect_and_a_second_one_neither(void **state)
{
    struct bed *bed = new_bed(10);

    (void)state;
    bed->options.waits_for_run = true;
    open_bed(bed);
    assert_int_equal(det_pipeline_wait_state(bed->pipeline, DET_PIPELINE_READY, DET_NEVER), 0);
    assert_int_equal(bed->nexts, 0);
    assert_int_equal(det_pipeline_run(bed->pipeline), 0);
    assert_int_equal(det_pipeline_run(bed->pipeline), 0);
    assert_int_equal(det_pipeline_wait(bed->pipeline, DET_NEVER, &bed->end), 0);
    assert_int_equal(det_pipeline_run(bed->pipeline), 0);
    assert_int_equal(bed->end.outcome, DET_PIPELINE_COMPLETED);
    close_bed(bed);
    free(bed);
}

static void stopping_a_flow_reports_stopped_not_failed(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct bed *bed = new_bed(100);

        bed->is_endless = true;
        open_bed(bed);
        assert_int_equal(
            det_pipeline_wait_state(bed->pipeline, DET_PIPELINE_RUNNING, DET_NEVER), 0);
        assert_int_equal(
            i == 0 ? det_pipeline_drain(bed->pipeline, 0) : det_pipeline_cancel(bed->pipeline), 0);
        assert_int_equal(det_pipeline_wait(bed->pipeline, DET_NEVER, &bed->end), 0);
        assert_int_equal(bed->end.outcome, DET_PIPELINE_STOPPED);
        assert_int_equal(bed->end.state, i == 0 ? DET_PIPELINE_DRAINED : DET_PIPELINE_CANCELLED);
        assert_int_equal(bed->end.code, 0);
        assert_non_null(strstr(bed->facts, " cancelled "));
        if (i == 0)
            assert_int_equal(bed->end.rows_in, bed->end.rows_out);
        close_bed(bed);
        free(bed);
    }
}

static void a_stage_that_fails_ends_the_flow_as_failed(void **state)
{
    struct bed *bed = new_bed(100);

    (void)state;
    bed->fail_at = 50;
    run_bed(bed);
    assert_int_equal(bed->end.outcome, DET_PIPELINE_HAS_FAILED);
    assert_int_equal(bed->end.state, DET_PIPELINE_FAILED);
    assert_int_equal(bed->end.code, DET_ERR_IO);
    assert_non_null(strstr(bed->end.reason, "stage pass"));
    assert_non_null(strstr(bed->end.reason, "number 50 is bad"));
    assert_non_null(strstr(bed->facts, "pass:stage_failed "));
    assert_non_null(strstr(bed->facts, " failed "));
    free(bed);
}

static int fail_to_open(struct det_stage_call *call)
{
    return det_stage_fail(call, DET_ERR_NOT_FOUND, "there is no port 7");
}

static void a_stage_that_cannot_open_fails_the_flow_before_it_runs(void **state)
{
    static const struct det_stage_functions functions = { .open = fail_to_open,
                                                          .deliver = keep_number };
    struct bed *bed = new_bed(100);

    (void)state;
    bed->options.waits_for_run = true;
    bed->stages[2].functions = &functions;
    run_bed(bed);
    assert_int_equal(bed->end.state, DET_PIPELINE_FAILED);
    assert_int_equal(bed->end.code, DET_ERR_NOT_FOUND);
    assert_non_null(strstr(bed->end.reason, "there is no port 7"));
    assert_int_equal(bed->nexts, 0);
    free(bed);
}

static void an_abort_fails_the_flow_with_its_reason(void **state)
{
    struct bed *bed = new_bed(100);

    (void)state;
    bed->is_endless = true;
    open_bed(bed);
    assert_int_equal(det_pipeline_abort(bed->pipeline, "the tide is out"), 0);
    assert_int_equal(det_pipeline_wait(bed->pipeline, DET_NEVER, &bed->end), 0);
    assert_int_equal(bed->end.outcome, DET_PIPELINE_HAS_FAILED);
    assert_string_equal(bed->end.reason, "the tide is out");
    close_bed(bed);
    free(bed);
}

static void a_flow_on_the_loop_of_its_caller_ends_there(void **state)
{
    struct bed *bed = new_bed(1000);
    struct det_loop *loop;

    (void)state;
    assert_int_equal(det_loop_open(NULL, NULL, &loop), 0);
    bed->options.loop = loop;
    open_bed(bed);
    while (!bed->has_ended)
        assert_true(det_loop_turn(loop, DET_NEVER) >= 0);
    assert_int_equal(bed->end.outcome, DET_PIPELINE_COMPLETED);
    assert_got(bed, 1, 1000);
    close_bed(bed);
    det_loop_close(loop);
    free(bed);
}

static void status_counts_rows_and_credit(void **state)
{
    struct det_stage_status stages[4];
    struct det_edge_status edges[4];
    size_t stage_count = 4, edge_count = 4;
    struct bed *bed = new_bed(100);

    (void)state;
    bed->options.window = 64;
    open_bed(bed);
    assert_int_equal(det_pipeline_wait(bed->pipeline, DET_NEVER, &bed->end), 0);
    assert_int_equal(
        det_pipeline_status(bed->pipeline, stages, &stage_count, edges, &edge_count), 0);
    assert_int_equal(stage_count, 3);
    assert_int_equal(edge_count, 2);
    assert_string_equal(stages[1].name, "pass");
    assert_string_equal(stages[1].state, "drained");
    assert_int_equal(stages[1].rows_in, 100);
    assert_int_equal(stages[1].rows_out, 100);
    assert_int_equal(stages[1].end, DET_END_NATURAL);
    assert_int_equal(edges[1].written, 101);
    assert_int_equal(edges[1].read, 101);
    assert_int_equal(edges[1].credit, 64);
    close_bed(bed);
    free(bed);
}

static void options_that_are_not_valid_are_refused(void **state)
{
    struct bed *bed = new_bed(1);

    (void)state;
    bed->options.window = DET_PIPELINE_WINDOW_MAX + 1;
    assert_int_equal(
        det_pipeline_open(&bed->flow, &bed->options, &bed->pipeline, &bed->error), DET_ERR_LIMIT);
    bed->options.window = 0;
    bed->options.journal = "paper:x";
    assert_int_equal(
        det_pipeline_open(&bed->flow, &bed->options, &bed->pipeline, &bed->error),
        DET_ERR_UNSUPPORTED);
    bed->options.journal = NULL;
    bed->stages[1].functions = &keep_functions;
    assert_int_equal(
        det_pipeline_open(&bed->flow, &bed->options, &bed->pipeline, &bed->error), DET_ERR_UNBOUND);
    bed->stages[1].functions = NULL;
    bed->stages[1].use = "nothing";
    assert_int_equal(
        det_pipeline_open(&bed->flow, &bed->options, &bed->pipeline, &bed->error),
        DET_ERR_NOT_FOUND);
    free(bed);
}

static void what_cannot_run_yet_is_refused(void **state)
{
    static const char *const with[] = { "breaker", NULL };
    struct bed *bed = new_bed(1);

    (void)state;
    bed->stages[1].with = with;
    assert_int_equal(
        det_pipeline_open(&bed->flow, &bed->options, &bed->pipeline, &bed->error),
        DET_ERR_UNSUPPORTED);
    assert_non_null(strstr(bed->error.text, "breaker"));
    bed->stages[1].with = NULL;
    bed->stages[3] = transform_stage("again");
    bed->edges[2] = (struct det_edge){ 1, 3, 0 };
    bed->edges[3] = (struct det_edge){ 3, 1, DET_EDGE_BACK };
    bed->flow.stage_count = 4;
    bed->flow.edge_count = 4;
    assert_int_equal(
        det_pipeline_open(&bed->flow, &bed->options, &bed->pipeline, &bed->error),
        DET_ERR_UNSUPPORTED);
    assert_non_null(strstr(bed->error.text, "cycle"));
    free(bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_passes_the_flow_once),
        cmocka_unit_test(facts_are_in_the_order_of_the_life),
        cmocka_unit_test(open_and_close_are_called_once),
        cmocka_unit_test(an_early_run_has_no_effect_and_a_second_one_neither),
        cmocka_unit_test(stopping_a_flow_reports_stopped_not_failed),
        cmocka_unit_test(a_stage_that_fails_ends_the_flow_as_failed),
        cmocka_unit_test(a_stage_that_cannot_open_fails_the_flow_before_it_runs),
        cmocka_unit_test(an_abort_fails_the_flow_with_its_reason),
        cmocka_unit_test(a_flow_on_the_loop_of_its_caller_ends_there),
        cmocka_unit_test(status_counts_rows_and_credit),
        cmocka_unit_test(options_that_are_not_valid_are_refused),
        cmocka_unit_test(what_cannot_run_yet_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
