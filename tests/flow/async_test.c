/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* async_test.c - stages on the pool, backpressure, stops with a deadline, memory that runs out; in
 * the simulated world, where the pipeline and its pool have threads. */
#include "flow/shop_test.h"

static struct det_sim *open_world(struct bed *bed, uint64_t seed)
{
    struct det_sim *sim;

    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = seed }, &sim, NULL), 0);
    bed->options.world = det_sim_world(sim);
    open_bed(bed);
    return sim;
}

static void close_world(struct bed *bed, struct det_sim *sim)
{
    close_bed(bed);
    det_sim_close(sim);
    free(bed);
}

static void wait_for_end(struct bed *bed)
{
    assert_int_equal(det_pipeline_wait(bed->pipeline, DET_NEVER, &bed->end), 0);
}

static det_time now_of(struct det_sim *sim)
{
    return det_world_now(det_sim_world(sim), DET_CLOCK_MONOTONIC);
}

static void an_asynchronous_source_emits_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct bed *bed = new_bed(1000);
        struct det_sim *sim;

        bed->stages[0].flags = DET_STAGE_ASYNC;
        bed->burst = seed % 4 * 10;
        bed->options.window = 32;
        sim = open_world(bed, seed);
        wait_for_end(bed);
        assert_int_equal(bed->end.outcome, DET_PIPELINE_COMPLETED);
        assert_got(bed, 1, 1000);
        close_world(bed, sim);
    }
}

/* Takes as long as a request to another machine: some longer, some shorter. */
static int pass_slowly(struct det_stage_call *call, const void *in)
{
    const struct number *number = in;

    assert_int_equal(det_world_sleep(call->world, (det_time)(number->value * 7 % 11)), 0);
    return det_stage_emit(call, in);
}

static void an_asynchronous_transform_keeps_the_order(void **state)
{
    static const struct det_stage_functions functions = { .process = pass_slowly };

    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct bed *bed = new_bed(500);
        struct det_sim *sim;

        bed->stages[1].flags = DET_STAGE_ASYNC;
        bed->stages[1].concurrency = (uint16_t)(seed % 5);
        bed->stages[1].functions = &functions;
        bed->stages[2].flags = DET_STAGE_ASYNC;
        bed->options.threads = 4;
        sim = open_world(bed, seed);
        wait_for_end(bed);
        assert_int_equal(bed->end.outcome, DET_PIPELINE_COMPLETED);
        assert_got(bed, 1, 500);
        close_world(bed, sim);
    }
}

/* A row of 60,000 bytes for each input, or `copies` of them. */
struct blob {
    uint64_t value;
    char text[60001];
};
static const struct det_field blob_fields[] = {
    { .name = "value", .kind = DET_KIND_UNSIGNED, .size = 8 },
    { .name = "text",
      .kind = DET_KIND_TEXT,
      .offset = offsetof(struct blob, text),
      .size = 60001,
      .capacity = 60000 },
};
static const struct det_record blob_record = {
    .name = "blob", .size = sizeof(struct blob), .fields = blob_fields, .field_count = 2
};

static int emit_blobs(struct det_stage_call *call, uint64_t value, unsigned copies)
{
    static struct blob blob; /* larger than the stack of a fiber */
    int r = 0;

    blob.value = value;
    memset(blob.text, 'x', sizeof blob.text - 1);
    while (r == 0 && copies-- > 0)
        r = det_stage_emit(call, &blob);
    return r;
}

static int emit_five(struct det_stage_call *call, const void *in)
{
    return emit_blobs(call, ((const struct number *)in)->value, 5);
}

/* The second input emits more than a group can have. */
static int emit_too_much(struct det_stage_call *call, const void *in)
{
    uint64_t value = ((const struct number *)in)->value;

    return emit_blobs(call, value, value == 2 ? 500 : 1);
}

struct blobs {
    uint64_t rows, last;
};

static int take_blob(struct det_stage_call *call, void *cursor, const void *in)
{
    struct blobs *blobs = bed_of(call)->more;
    const struct blob *blob = in;

    (void)cursor;
    assert_true(blob->value >= blobs->last);
    blobs->last = blob->value;
    blobs->rows++;
    return 0;
}

/* Runs source -> `process` -> sink with blobs between the last two. */
static struct det_pipeline_end run_blobs(
    const struct det_stage_functions *process, unsigned flags, uint64_t rows, struct blobs *blobs)
{
    static const struct det_stage_functions take = { .deliver = take_blob };
    struct bed *bed = new_bed(rows);
    struct det_pipeline_end end;
    struct det_sim *sim;

    bed->more = blobs;
    bed->stages[1].flags = flags;
    bed->stages[1].concurrency = 3;
    bed->stages[1].functions = process;
    bed->stages[1].out = (struct det_record_ref){ .record = &blob_record };
    bed->stages[2].in = bed->stages[1].out;
    bed->stages[2].functions = &take;
    sim = open_world(bed, rows);
    wait_for_end(bed);
    end = bed->end;
    close_world(bed, sim);
    return end;
}

static void a_job_with_large_outputs_is_joined_in_parts(void **state)
{
    static const struct det_stage_functions functions = { .process = emit_five };
    struct blobs blobs = { 0 };

    (void)state;
    assert_int_equal(
        run_blobs(&functions, DET_STAGE_ASYNC, 600, &blobs).outcome, DET_PIPELINE_COMPLETED);
    assert_int_equal(blobs.rows, 3000);
    assert_int_equal(blobs.last, 600);
}

static void an_input_that_emits_more_than_a_group_is_rejected(void **state)
{
    static const struct det_stage_functions functions = { .process = emit_too_much };

    (void)state;
    for (unsigned flags = 0; flags <= DET_STAGE_ASYNC; flags += DET_STAGE_ASYNC) {
        struct blobs blobs = { 0 };
        struct det_pipeline_end end = run_blobs(&functions, flags, 3, &blobs);

        assert_int_equal(end.outcome, DET_PIPELINE_COMPLETED);
        assert_int_equal(end.errors, 1);
        assert_int_equal(blobs.rows, 2);
    }
}

/* ---- stops */

static int wait_for_ever(struct det_stage_call *call, void *cursor)
{
    (void)cursor;
    bed_of(call)->nexts++;
    return det_stage_wait(call, DET_NEVER) == DET_ERR_CANCELLED ? DET_SOURCE_IDLE : DET_SOURCE_MORE;
}

static void a_stop_interrupts_a_blocked_next_and_calls_drain(void **state)
{
    static const struct det_stage_functions functions = { .next = wait_for_ever,
                                                          .drain = count_drain };
    struct bed *bed = new_bed(10);
    struct det_sim *sim;

    (void)state;
    bed->stages[0].flags = DET_STAGE_ASYNC | DET_STAGE_INFINITE;
    bed->stages[0].functions = &functions;
    sim = open_world(bed, 1);
    assert_int_equal(det_sim_settle(sim), 0);
    assert_int_equal(bed->nexts, 1);
    assert_int_equal(det_pipeline_drain(bed->pipeline, 0), 0);
    wait_for_end(bed);
    assert_int_equal(bed->end.outcome, DET_PIPELINE_STOPPED);
    assert_int_equal(bed->drains, 1);
    close_world(bed, sim);
}

/* A function that does not ask whether it is cancelled. */
static int sleep_an_hour(struct det_stage_call *call, void *cursor)
{
    (void)cursor;
    assert_int_equal(det_world_sleep(call->world, DET_HOUR), 0);
    return DET_SOURCE_IDLE;
}

static void an_expired_stop_ends_the_flow_without_a_new_budget(void **state)
{
    static const struct det_stage_functions functions = { .next = sleep_an_hour,
                                                          .open = count_open,
                                                          .close = count_close };
    struct bed *bed = new_bed(10);
    struct det_sim *sim;
    det_time begin;

    (void)state;
    bed->stages[0].flags = DET_STAGE_ASYNC;
    bed->stages[0].functions = &functions;
    sim = open_world(bed, 1);
    begin = now_of(sim);
    assert_int_equal(det_sim_settle(sim), 0);
    assert_int_equal(det_pipeline_drain(bed->pipeline, 10 * DET_MILLISECOND), 0);
    wait_for_end(bed);
    assert_true(now_of(sim) - begin < DET_SECOND);
    assert_int_equal(bed->end.state, DET_PIPELINE_CANCELLED);
    assert_false(bed->has_ended);
    /* Closing waits for the function, and closes its stage. */
    close_bed(bed);
    assert_true(now_of(sim) - begin > DET_MINUTE);
    assert_true(bed->has_ended);
    assert_int_equal(bed->closes, 1);
    det_sim_close(sim);
    free(bed);
}

static void a_cancel_overrides_a_drain_and_a_drain_after_it_is_ignored(void **state)
{
    struct bed *bed = new_bed(10);
    struct det_sim *sim;
    det_time begin;

    (void)state;
    bed->stages[2].flags = DET_STAGE_ASYNC;
    bed->stages[2].functions =
        &(const struct det_stage_functions){ .deliver = keep_number, .drain = NULL };
    bed->is_endless = true;
    sim = open_world(bed, 1);
    begin = now_of(sim);
    assert_int_equal(det_pipeline_drain(bed->pipeline, DET_HOUR), 0);
    assert_int_equal(det_pipeline_cancel(bed->pipeline), 0);
    assert_int_equal(det_pipeline_drain(bed->pipeline, DET_HOUR), 0);
    wait_for_end(bed);
    assert_int_equal(bed->end.outcome, DET_PIPELINE_STOPPED);
    assert_true(now_of(sim) - begin < DET_SECOND);
    close_world(bed, sim);
}

/* ---- backpressure */

static int deliver_in_a_second(struct det_stage_call *call, void *cursor, const void *in)
{
    assert_int_equal(det_world_sleep(call->world, DET_SECOND), 0);
    return keep_number(call, cursor, in);
}

static void a_writer_stops_after_its_window_and_goes_on_with_the_slowest_reader(void **state)
{
    static const struct det_stage_functions slow = { .deliver = deliver_in_a_second };
    struct det_stage_status stages[4];
    struct det_edge_status edges[4];
    size_t stage_count = 4, edge_count = 4;
    struct bed *bed = new_bed(100);
    struct det_sim *sim;

    (void)state;
    bed->stages[2].flags = DET_STAGE_ASYNC;
    bed->stages[2].functions = &slow;
    /* A second reader of the source, which is fast. */
    bed->stages[3] = sink_stage("fast");
    bed->stages[3].functions = &(const struct det_stage_functions){ .deliver = drop_number };
    bed->edges[2] = (struct det_edge){ 0, 3, 0 };
    bed->flow.stage_count = 4;
    bed->flow.edge_count = 3;
    bed->options.window = 16;
    sim = open_world(bed, 1);
    assert_int_equal(det_sim_settle(sim), 0);
    (void)det_pipeline_status(bed->pipeline, stages, &stage_count, edges, &edge_count);
    /* 16 rows between transform and sink, and 16 before it; the fast reader has read all. */
    assert_int_equal(edges[1].lag, 16);
    assert_int_equal(edges[1].credit, 0);
    assert_int_equal(edges[0].lag, 16);
    assert_int_equal(edges[2].lag, 0);
    assert_int_equal(stages[0].rows_out, 32);
    wait_for_end(bed);
    assert_got(bed, 1, 100);
    close_world(bed, sim);
}

static void outputs_of_one_row_may_exceed_the_window(void **state)
{
    struct bed *bed = new_bed(40);
    struct det_sim *sim;

    (void)state;
    bed->copies = 100;
    bed->options.window = 16;
    sim = open_world(bed, 1);
    wait_for_end(bed);
    assert_int_equal(bed->end.outcome, DET_PIPELINE_COMPLETED);
    assert_int_equal(bed->got_count, 4000);
    for (size_t i = 0; i < bed->got_count; i++)
        assert_int_equal(bed->got[i], i / 100 + 1);
    close_world(bed, sim);
}

static int drop_row(struct det_stage_call *call, const void *in)
{
    (void)call;
    (void)in;
    return 0;
}

static void rows_that_are_filtered_are_released(void **state)
{
    static const struct det_stage_functions functions = { .process = drop_row };
    struct bed *bed = new_bed(1000);
    struct det_sim *sim;

    (void)state;
    bed->stages[1].functions = &functions;
    bed->options.window = 16;
    sim = open_world(bed, 1);
    wait_for_end(bed);
    assert_int_equal(bed->end.outcome, DET_PIPELINE_COMPLETED);
    assert_int_equal(bed->got_count, 0);
    close_world(bed, sim);
}

/* ---- wakes */

struct doorbell {
    struct bed *bed;
    struct det_stage_call *call;
    uint64_t rung;
};

static struct doorbell doorbell;

static int open_doorbell(struct det_stage_call *call)
{
    doorbell.call = call;
    return 0;
}

static int next_ring(struct det_stage_call *call, void *cursor)
{
    struct place *place = cursor;

    if (place->next == doorbell.rung)
        return DET_SOURCE_IDLE;
    place->next++;
    return det_stage_emit(call, &(struct number){ .value = place->next }) < 0 ? DET_ERR_IO
                                                                              : DET_SOURCE_MORE;
}

static void a_wake_from_another_thread_calls_next(void **state)
{
    static const struct det_stage_functions functions = { .open = open_doorbell,
                                                          .next = next_ring };
    struct bed *bed = new_bed(0);
    struct det_sim *sim;

    (void)state;
    bed->stages[0].functions = &functions;
    bed->stages[0].flags = DET_STAGE_INFINITE;
    sim = open_world(bed, 1);
    for (uint64_t i = 1; i <= 10; i++) {
        assert_int_equal(det_sim_settle(sim), 0);
        assert_int_equal(bed->got_count, i - 1);
        doorbell.rung = i;
        det_stage_wake(doorbell.call);
        det_stage_wake(doorbell.call);
    }
    assert_int_equal(det_sim_settle(sim), 0);
    assert_int_equal(det_pipeline_drain(bed->pipeline, 0), 0);
    wait_for_end(bed);
    assert_got(bed, 1, 10);
    close_world(bed, sim);
}

/* ---- memory */

static int run_shop_once(struct det_test_memory *memory, void *argument)
{
    static struct shop shop;
    struct det_pipeline_options options = { .user = &shop, .window = 16, .threads = 2 };
    struct det_pipeline_end end = { .code = 0 };
    struct det_sim *sim;
    int r;

    (void)argument;
    assert_int_equal(det_sim_open(NULL, &sim, NULL), 0);
    shop_init(&shop, sim);
    options.world = det_sim_world(sim);
    options.allocator = &memory->allocator;
    options.journal = "file:shop";
    r = det_pipeline_open(&shop.flow, &options, &shop.pipeline, NULL);
    if (r == 0) {
        assert_int_equal(det_pipeline_wait(shop.pipeline, DET_NEVER, &end), 0);
        assert_true(end.outcome == DET_PIPELINE_COMPLETED || end.code == DET_ERR_NO_MEMORY);
        det_pipeline_close(shop.pipeline);
        r = end.code;
    }
    det_sim_close(sim);
    return r;
}

static void memory_that_runs_out_fails_the_flow_and_nothing_else(void **state)
{
    (void)state;
    det_test_some_failures(run_shop_once, NULL, getenv("SIM_SEEDS") ? 1 : 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_asynchronous_source_emits_in_order),
        cmocka_unit_test(an_asynchronous_transform_keeps_the_order),
        cmocka_unit_test(a_job_with_large_outputs_is_joined_in_parts),
        cmocka_unit_test(an_input_that_emits_more_than_a_group_is_rejected),
        cmocka_unit_test(a_stop_interrupts_a_blocked_next_and_calls_drain),
        cmocka_unit_test(an_expired_stop_ends_the_flow_without_a_new_budget),
        cmocka_unit_test(a_cancel_overrides_a_drain_and_a_drain_after_it_is_ignored),
        cmocka_unit_test(a_writer_stops_after_its_window_and_goes_on_with_the_slowest_reader),
        cmocka_unit_test(outputs_of_one_row_may_exceed_the_window),
        cmocka_unit_test(rows_that_are_filtered_are_released),
        cmocka_unit_test(a_wake_from_another_thread_calls_next),
        cmocka_unit_test(memory_that_runs_out_fails_the_flow_and_nothing_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
