/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* kinds_test.c - stages of each kind: errors and their routes, stateful emissions, joins, sinks
 * with receipts; in the simulated world. */
#include "flow/flow_test.h"

#include "flow/log_rows.h"

/* A flow in a simulated world, turned by the test's own thread. */
struct sim_bed {
    struct bed *bed;
    struct det_sim *sim;
    struct det_loop *loop;
};

static struct sim_bed open_sim_bed(struct bed *bed)
{
    struct sim_bed sim = { .bed = bed };

    assert_int_equal(det_sim_open(NULL, &sim.sim, NULL), 0);
    assert_int_equal(det_loop_open(det_sim_world(sim.sim), NULL, &sim.loop), 0);
    bed->options.loop = sim.loop;
    open_bed(bed);
    return sim;
}

static void close_sim_bed(struct sim_bed *sim)
{
    close_bed(sim->bed);
    det_loop_close(sim->loop);
    det_sim_close(sim->sim);
    free(sim->bed);
}

/* All that happens until `span` from now, or to the end of the flow. */
static void pass_time(struct sim_bed *sim, det_time span)
{
    det_time end = det_world_now(det_sim_world(sim->sim), DET_CLOCK_MONOTONIC) + span;

    while (!sim->bed->has_ended &&
           det_world_now(det_sim_world(sim->sim), DET_CLOCK_MONOTONIC) < end)
        assert_true(det_loop_turn(sim->loop, end) >= 0);
}

static void run_to_end(struct sim_bed *sim)
{
    while (!sim->bed->has_ended)
        assert_true(det_loop_turn(sim->loop, DET_NEVER) >= 0);
}

/* Rows of a kind in a stream. */
static uint64_t count_rows(const struct bed *bed, const char *stream, enum det_flow_row kind)
{
    struct det_journal *journal = det_pipeline_journal(bed->pipeline);
    struct det_journal_reader_options options = { .one_stream = true };
    DET_SCOPED(journal_reader) reader = NULL;
    struct det_journal_row row;
    uint64_t count = 0;

    assert_int_equal(det_journal_stream(journal, stream, &options.stream, NULL), 0);
    assert_int_equal(det_journal_reader_open(journal, &options, &reader, NULL), 0);
    while (det_journal_reader_next(reader, &row, NULL) > 0)
        count += row.kind == kind;
    return count;
}

/* ---- errors */

static void error_kinds_route_to_the_right_stream(void **state)
{
    (void)state;
    for (int why = 0; why < DET_REJECTIONS; why++) {
        bool stays = why == DET_REJECT_VALIDATION || why == DET_REJECT_DOMAIN;
        struct bed *bed = new_bed(100);
        struct sim_bed sim;

        bed->reject_at = 50;
        bed->why = (enum det_row_rejection)why;
        sim = open_sim_bed(bed);
        run_to_end(&sim);
        assert_int_equal(bed->end.outcome, DET_PIPELINE_COMPLETED);
        assert_int_equal(bed->end.errors, 1);
        assert_int_equal(bed->got_count, 99);
        assert_int_equal(count_rows(bed, "pass", DET_ROW_REJECTED), stays);
        assert_int_equal(count_rows(bed, "pass.errors", DET_ROW_REJECTED), !stays);
        assert_int_equal(count_rows(bed, "pass", DET_ROW_DATA), 99);
        close_sim_bed(&sim);
    }
}

static int fail_third_call(struct det_stage_call *call, void *cursor)
{
    struct bed *bed = bed_of(call);

    if (bed->nexts == 2) {
        bed->nexts++;
        return DET_ERR_IO;
    }
    return next_numbers(call, cursor);
}

static void a_source_that_fails_is_called_again_after_a_pause(void **state)
{
    static const struct det_stage_functions functions = { .next = fail_third_call };
    struct bed *bed = new_bed(100);
    struct sim_bed sim;

    (void)state;
    bed->burst = 10;
    bed->stages[0].functions = &functions;
    sim = open_sim_bed(bed);
    pass_time(&sim, 99 * DET_MILLISECOND);
    assert_int_equal(bed->got_count, 20);
    run_to_end(&sim);
    assert_got(bed, 1, 100);
    assert_int_equal(count_rows(bed, "read.errors", DET_ROW_REJECTED), 1);
    close_sim_bed(&sim);
}

static int fail_to_drain(struct det_stage_call *call)
{
    (void)call;
    return DET_ERR_IO;
}

static void a_drain_that_fails_is_a_failure_of_the_stage(void **state)
{
    static const struct det_stage_functions functions = { .process = pass_number,
                                                          .drain = fail_to_drain };
    struct bed *bed = new_bed(10);
    struct sim_bed sim;

    (void)state;
    bed->stages[1].functions = &functions;
    sim = open_sim_bed(bed);
    run_to_end(&sim);
    assert_int_equal(bed->end.state, DET_PIPELINE_FAILED);
    assert_non_null(strstr(bed->end.reason, "drain: "));
    close_sim_bed(&sim);
}

static int emit_at_drain(struct det_stage_call *call)
{
    return det_stage_emit(call, &(struct number){ .value = 11 });
}

/* The positions of the last two rows of a stage. */
static void last_two_rows(const struct bed *bed, const char *name, uint64_t *ret)
{
    struct det_journal *journal = det_pipeline_journal(bed->pipeline);
    struct det_journal_reader_options options = { .one_stream = true };
    DET_SCOPED(journal_reader) reader = NULL;
    struct det_journal_row row;

    assert_int_equal(det_journal_stream(journal, name, &options.stream, NULL), 0);
    assert_int_equal(det_journal_reader_open(journal, &options, &reader, NULL), 0);
    while (det_journal_reader_next(reader, &row, NULL) > 0) {
        ret[0] = ret[1];
        ret[1] = row.position;
    }
}

static void what_a_drain_emits_is_in_the_group_of_the_end(void **state)
{
    static const struct det_stage_functions functions = { .process = pass_number,
                                                          .drain = emit_at_drain };
    struct bed *bed = new_bed(10);
    uint64_t positions[2] = { 0 };
    struct sim_bed sim;

    (void)state;
    bed->stages[1].functions = &functions;
    sim = open_sim_bed(bed);
    run_to_end(&sim);
    assert_got(bed, 1, 11);
    last_two_rows(bed, "pass", positions);
    assert_int_equal(positions[1], positions[0] + 1);
    close_sim_bed(&sim);
}

/* ---- sinks */

static int refuse_multiples_of_ten(struct det_stage_call *call, void *cursor, const void *in)
{
    const struct number *number = in;

    if (number->value % 10 == 0)
        return det_stage_reject(call, DET_REJECT_REMOTE, "no");
    return keep_number(call, cursor, in);
}

static void sinks_have_a_receipt_for_each_row_also_after_a_flush(void **state)
{
    static const struct det_stage_functions functions = { .deliver = refuse_multiples_of_ten,
                                                          .flush = count_flush };
    struct det_stage_status stages[3];
    size_t stage_count = 3, edge_count = 0;
    struct bed *bed = new_bed(1000);
    struct sim_bed sim;

    (void)state;
    bed->stages[2].functions = &functions;
    bed->stages[2].flags = DET_STAGE_BUFFERED;
    sim = open_sim_bed(bed);
    run_to_end(&sim);
    assert_int_equal(bed->end.outcome, DET_PIPELINE_COMPLETED);
    assert_int_equal(bed->got_count, 900);
    assert_true(bed->flushes >= 2);
    (void)det_pipeline_status(bed->pipeline, stages, &stage_count, NULL, &edge_count);
    assert_int_equal(stages[2].rows_in, 1000);
    assert_int_equal(stages[2].errors, 100);
    assert_int_equal(count_rows(bed, "keep.errors", DET_ROW_REJECTED), 100);
    close_sim_bed(&sim);
}

static int fail_to_flush(struct det_stage_call *call, void *cursor)
{
    (void)cursor;
    return det_stage_fail(call, DET_ERR_NO_SPACE, "the tape is full");
}

static void a_flush_that_fails_leaves_its_rows_without_receipt(void **state)
{
    static const struct det_stage_functions functions = { .deliver = keep_number,
                                                          .flush = fail_to_flush };
    struct bed *bed = new_bed(10);
    struct sim_bed sim;

    (void)state;
    bed->stages[2].functions = &functions;
    bed->stages[2].flags = DET_STAGE_BUFFERED;
    sim = open_sim_bed(bed);
    run_to_end(&sim);
    assert_int_equal(bed->end.state, DET_PIPELINE_FAILED);
    assert_non_null(strstr(bed->end.reason, "the tape is full"));
    assert_int_equal(bed->end.rows_out, 0);
    close_sim_bed(&sim);
}

/* ---- stateful */

static struct bed *new_sums(uint64_t rows, struct det_emission emission)
{
    struct bed *bed = new_bed(rows);

    bed->stages[1] = (struct det_stage){
        .name = "sum",
        .kind = DET_STAGE_STATEFUL,
        .in = { .get = number_record },
        .out = { .get = total_record },
        .state = { .get = total_record },
        .emission = emission,
        .functions = &sum_functions,
    };
    bed->stages[2].in.get = total_record;
    bed->stages[2].functions = &keep_total_functions;
    return bed;
}

static void one_state_emits_at_the_end(void **state)
{
    struct bed *bed = new_sums(100, (struct det_emission){ .kind = DET_EMIT_AT_END });
    struct sim_bed sim = open_sim_bed(bed);

    (void)state;
    run_to_end(&sim);
    assert_int_equal(bed->got_count, 1);
    assert_int_equal(bed->got[0], 5050);
    assert_int_equal(bed->positions[0], 100);
    close_sim_bed(&sim);
}

static void states_by_key_emit_at_the_end_in_the_order_of_their_last_rows(void **state)
{
    struct bed *bed = new_sums(10, (struct det_emission){ .kind = DET_EMIT_AT_END });
    struct sim_bed sim;

    (void)state;
    bed->stages[1].key = "key";
    sim = open_sim_bed(bed);
    run_to_end(&sim);
    assert_int_equal(bed->got_count, 5);
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(bed->got[i], i + 1 + i + 6);
    close_sim_bed(&sim);
}

static void a_state_that_always_emits_does_so_after_each_row(void **state)
{
    struct bed *bed = new_sums(100, (struct det_emission){ .kind = DET_EMIT_ALWAYS });
    struct sim_bed sim = open_sim_bed(bed);

    (void)state;
    run_to_end(&sim);
    assert_int_equal(bed->got_count, 100);
    for (uint64_t i = 0; i < 100; i++)
        assert_int_equal(bed->positions[i], i + 1);
    close_sim_bed(&sim);
}

static void every_n_rows_of_a_key_emit_and_the_rest_at_the_end(void **state)
{
    struct bed *bed = new_sums(23, (struct det_emission){ .kind = DET_EMIT_EVERY, .rows = 2 });
    struct sim_bed sim;

    (void)state;
    bed->stages[1].key = "key";
    sim = open_sim_bed(bed);
    run_to_end(&sim);
    /* Keys 1, 2 and 3 have five rows each, keys 4 and 0 four. */
    assert_int_equal(bed->got_count, 5 * 2 + 3);
    close_sim_bed(&sim);
}

static void a_rejected_row_leaves_the_state_as_it_was(void **state)
{
    struct bed *bed = new_sums(10, (struct det_emission){ .kind = DET_EMIT_AT_END });
    struct sim_bed sim;

    (void)state;
    bed->reject_at = 10;
    sim = open_sim_bed(bed);
    run_to_end(&sim);
    assert_int_equal(bed->got[0], 45);
    assert_int_equal(bed->end.errors, 1);
    close_sim_bed(&sim);
}

/* Emits `burst` numbers a second. */
static int next_second(struct det_stage_call *call, void *cursor)
{
    int r;

    r = next_numbers(call, cursor);
    if (r != DET_SOURCE_MORE)
        return r;
    det_stage_wake_at(call, det_world_now(call->world, DET_CLOCK_MONOTONIC) + DET_SECOND);
    return DET_SOURCE_IDLE;
}

static void emit_within_flushes_the_last_period_and_resets_the_state(void **state)
{
    static const struct det_stage_functions functions = { .next = next_second };
    struct bed *bed = new_sums(
        25, (struct det_emission){ .kind = DET_EMIT_WITHIN, .time = 2500 * DET_MILLISECOND });
    struct sim_bed sim;

    (void)state;
    bed->burst = 5;
    bed->stages[0].functions = &functions;
    sim = open_sim_bed(bed);
    pass_time(&sim, 2400 * DET_MILLISECOND);
    assert_int_equal(bed->got_count, 0);
    run_to_end(&sim);
    /* At 0, 1 and 2 s, then at 3 s and 4 s. */
    assert_int_equal(bed->got_count, 2);
    assert_int_equal(bed->positions[0], 15);
    assert_int_equal(bed->positions[1], 10);
    assert_int_equal(bed->got[0] + bed->got[1], 25 * 26 / 2);
    close_sim_bed(&sim);
}

static void a_drained_flow_keeps_its_states_and_emits_nothing(void **state)
{
    struct bed *bed = new_sums(10, (struct det_emission){ .kind = DET_EMIT_AT_END });
    struct sim_bed sim;

    (void)state;
    bed->is_endless = true;
    sim = open_sim_bed(bed);
    pass_time(&sim, DET_SECOND);
    assert_int_equal(det_pipeline_drain(bed->pipeline, 0), 0);
    run_to_end(&sim);
    assert_int_equal(bed->end.outcome, DET_PIPELINE_STOPPED);
    assert_int_equal(bed->end.end, DET_END_TRUNCATED);
    assert_int_equal(bed->got_count, 0);
    close_sim_bed(&sim);
}

/* ---- joins */

static int next_names(struct det_stage_call *call, void *cursor)
{
    struct place *place = cursor;

    for (; place->next < 3; place->next++) {
        struct name name = { .key = (uint32_t)place->next };

        snprintf(name.text, sizeof name.text, "name %u", (unsigned)name.key);
        if (det_stage_emit(call, &name) < 0)
            return DET_ERR_IO;
    }
    return bed_of(call)->is_endless ? DET_SOURCE_IDLE : DET_SOURCE_DONE;
}

/* Numbers without a name are counted from 1,000. */
static int join_number(struct det_stage_call *call, const void *reference, const void *in)
{
    struct number number = *(const struct number *)in;

    if (!reference)
        number.value += 1000;
    else
        assert_int_equal(((const struct name *)reference)->key, number.key);
    return det_stage_emit(call, &number);
}

static const struct det_stage_functions names_functions = { .next = next_names };
static const struct det_stage_functions join_functions = { .join = join_number };

/* read -> join -> keep, with names as the reference. */
static struct bed *new_join(uint64_t rows, enum det_join_kind kind)
{
    struct bed *bed = new_bed(rows);

    bed->stages[1] = (struct det_stage){
        .name = "join",
        .kind = DET_STAGE_JOIN,
        .in = { .get = number_record },
        .reference = { .get = name_record },
        .out = { .get = number_record },
        .key = "key",
        .reference_key = "key",
        .join = kind,
        .functions = &join_functions,
    };
    bed->stages[3] = (struct det_stage){
        .name = "names",
        .kind = DET_STAGE_SOURCE,
        .out = { .get = name_record },
        .cursor = { .get = place_record },
        .functions = &names_functions,
    };
    bed->edges[2] = (struct det_edge){ 3, 1, DET_EDGE_REFERENCE };
    bed->flow.stage_count = 4;
    bed->flow.edge_count = 3;
    return bed;
}

static void an_inner_join_drops_rows_without_a_match(void **state)
{
    struct bed *bed = new_join(10, DET_JOIN_INNER);
    struct sim_bed sim = open_sim_bed(bed);
    static const uint64_t expected[] = { 1, 2, 5, 6, 7, 10 };

    (void)state;
    run_to_end(&sim);
    assert_int_equal(bed->got_count, 6);
    assert_memory_equal(bed->got, expected, sizeof expected);
    assert_int_equal(bed->end.end, DET_END_NATURAL);
    close_sim_bed(&sim);
}

static void a_left_join_gets_null_for_rows_without_a_match(void **state)
{
    struct bed *bed = new_join(5, DET_JOIN_LEFT);
    struct sim_bed sim = open_sim_bed(bed);
    static const uint64_t expected[] = { 1, 2, 1003, 1004, 5 };

    (void)state;
    run_to_end(&sim);
    assert_int_equal(bed->got_count, 5);
    assert_memory_equal(bed->got, expected, sizeof expected);
    close_sim_bed(&sim);
}

static void a_strict_join_ends_with_poison_at_the_first_row_without_a_match(void **state)
{
    struct bed *bed = new_join(10000, DET_JOIN_STRICT);
    struct sim_bed sim = open_sim_bed(bed);

    (void)state;
    run_to_end(&sim);
    assert_int_equal(bed->end.outcome, DET_PIPELINE_COMPLETED);
    assert_int_equal(bed->end.end, DET_END_POISON);
    assert_got(bed, 1, 2);
    assert_int_equal(count_rows(bed, "join.errors", DET_ROW_REJECTED), 1);
    close_sim_bed(&sim);
}

static void a_live_join_needs_no_end_of_its_reference(void **state)
{
    struct bed *bed = new_join(10, DET_JOIN_INNER);
    struct sim_bed sim;

    (void)state;
    bed->is_endless = true;
    bed->stages[1].flags = DET_STAGE_LIVE;
    sim = open_sim_bed(bed);
    pass_time(&sim, DET_SECOND);
    assert_int_equal(bed->got_count, 6);
    assert_int_equal(det_pipeline_drain(bed->pipeline, 0), 0);
    run_to_end(&sim);
    assert_int_equal(bed->end.outcome, DET_PIPELINE_STOPPED);
    close_sim_bed(&sim);
}

static int reference_then_row(struct det_stage_call *call, const void *reference, const void *in)
{
    struct number number = *(const struct number *)in;

    number.value = reference ? ((const struct number *)reference)->value : 0;
    return det_stage_emit(call, &number);
}

/* Both sides have rows from the first turn on: after each 3 reference rows one row is joined. */
static void a_live_join_obeys_the_batch_cap(void **state)
{
    static const struct det_stage_functions functions = { .join = reference_then_row };
    struct bed *bed = new_join(30, DET_JOIN_LEFT);
    struct sim_bed sim;

    (void)state;
    bed->stages[1].flags = DET_STAGE_LIVE;
    bed->stages[1].key = bed->stages[1].reference_key = NULL;
    bed->stages[1].reference.get = number_record;
    bed->stages[1].reference_batch = 3;
    bed->stages[1].functions = &functions;
    bed->stages[3] = source_stage("names");
    sim = open_sim_bed(bed);
    run_to_end(&sim);
    assert_int_equal(bed->got_count, 30);
    for (uint64_t i = 0; i < 9; i++)
        assert_int_equal(bed->got[i], 3 * (i + 1));
    close_sim_bed(&sim);
}

static void a_drain_before_the_reference_was_read_leaves_the_rows(void **state)
{
    struct bed *bed = new_join(10, DET_JOIN_LEFT);
    struct sim_bed sim;

    (void)state;
    bed->is_endless = true; /* also the reference, although the join waits for its end */
    sim = open_sim_bed(bed);
    pass_time(&sim, DET_SECOND);
    assert_int_equal(det_pipeline_drain(bed->pipeline, 0), 0);
    run_to_end(&sim);
    assert_int_equal(bed->end.outcome, DET_PIPELINE_STOPPED);
    assert_int_equal(bed->got_count, 0);
    close_sim_bed(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_kinds_route_to_the_right_stream),
        cmocka_unit_test(a_source_that_fails_is_called_again_after_a_pause),
        cmocka_unit_test(a_drain_that_fails_is_a_failure_of_the_stage),
        cmocka_unit_test(what_a_drain_emits_is_in_the_group_of_the_end),
        cmocka_unit_test(sinks_have_a_receipt_for_each_row_also_after_a_flush),
        cmocka_unit_test(a_flush_that_fails_leaves_its_rows_without_receipt),
        cmocka_unit_test(one_state_emits_at_the_end),
        cmocka_unit_test(states_by_key_emit_at_the_end_in_the_order_of_their_last_rows),
        cmocka_unit_test(a_state_that_always_emits_does_so_after_each_row),
        cmocka_unit_test(every_n_rows_of_a_key_emit_and_the_rest_at_the_end),
        cmocka_unit_test(a_rejected_row_leaves_the_state_as_it_was),
        cmocka_unit_test(emit_within_flushes_the_last_period_and_resets_the_state),
        cmocka_unit_test(a_drained_flow_keeps_its_states_and_emits_nothing),
        cmocka_unit_test(an_inner_join_drops_rows_without_a_match),
        cmocka_unit_test(a_left_join_gets_null_for_rows_without_a_match),
        cmocka_unit_test(a_strict_join_ends_with_poison_at_the_first_row_without_a_match),
        cmocka_unit_test(a_live_join_needs_no_end_of_its_reference),
        cmocka_unit_test(a_live_join_obeys_the_batch_cap),
        cmocka_unit_test(a_drain_before_the_reference_was_read_leaves_the_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
