/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* event_spans_test.c - the spans of an event hang together, and say what happened. */
#include <detent/sim.h>

#include "lib/test.h"

#include "observe/event_spans.h"

static const struct det_state_def states[] = { { .name = "open" }, { .name = "paid" } };
static const struct det_event_def events[] = { { .name = "pay" } };
static const struct det_machine order = {
    .name = "order", .states = states, .state_count = 2, .events = events, .event_count = 1
};

struct scene {
    struct det_sim *sim;
    struct det_tracer *tracer;
    struct det_span taken[8];
};

static void open_scene(struct scene *scene)
{
    assert_int_equal(det_sim_open(NULL, &scene->sim, NULL), 0);
    assert_int_equal(
        det_tracer_open(
            &(struct det_tracer_options){ .world = det_sim_world(scene->sim), .queue_max = 8 },
            &scene->tracer),
        0);
}

static void close_scene(struct scene *scene)
{
    det_tracer_close(scene->tracer);
    det_sim_close(scene->sim);
}

/* The value of an attribute as text; fails the test if the attribute is missing. */
static const char *attribute(const struct det_span *span, const char *key)
{
    static char number[32];

    for (size_t i = 0; i < span->attribute_count; i++) {
        const struct det_span_attribute *found = &span->attributes[i];

        if (strcmp(found->key, key) != 0)
            continue;
        snprintf(number, sizeof number, "%lld", (long long)found->number);
        return found->is_number ? number : span->text + found->offset;
    }
    fail_msg("no attribute %s", key);
    return NULL;
}

static const struct det_note paid = { .machine = &order,
                                      .instance = "o-1",
                                      .sequence = 7,
                                      .from = 0,
                                      .to = 1,
                                      .event = 0,
                                      .outcome = DET_OUTCOME_GOTO,
                                      .commit_took = 2 * DET_MILLISECOND };

static const struct det_episode_what pay = { "send", "order", "o-1", "pay" };
static const struct det_episode_what begin = { "start", "order", "o-1", NULL };

static void send_commit_and_attempts_are_one_trace(void **state)
{
    struct det_trace_context caller = { .trace_id = { 1 },
                                        .span_id = { 2 },
                                        .flags = DET_TRACE_SAMPLED };
    struct det_trace_context context;
    struct det_attempt_figures attempt = { .machine = &order,
                                           .instance = "o-1",
                                           .name = "charge",
                                           .key = "order/o-1/7/0",
                                           .attempt = 1,
                                           .result = DET_ERR_ACTION_FAILED,
                                           .began = 100 * DET_SECOND,
                                           .took = DET_SECOND };
    struct scene scene;
    struct det_span send;

    (void)state;
    open_scene(&scene);
    det_episode_receive(scene.tracer, &send, &caller, &pay);
    det_episode_commit(scene.tracer, &send.context, &paid);
    det_episode_answer(
        scene.tracer, &send, &order,
        &(struct det_sent){ .outcome = DET_OUTCOME_GOTO, .state = 1, .sequence = 7 }, NULL);
    det_episode_attempt(scene.tracer, &send.context, &attempt);
    attempt.attempt = 2;
    attempt.result = DET_EFFECT_PRODUCED;
    det_episode_attempt(scene.tracer, &send.context, &attempt);
    assert_int_equal(det_tracer_take(scene.tracer, scene.taken, 8, 0), 4);
    for (size_t i = 0; i < 4; i++) {
        const struct det_span *span = &scene.taken[i];

        assert_memory_equal(span->context.trace_id, caller.trace_id, 16);
        assert_memory_equal(span->parent, i == 1 ? caller.span_id : send.context.span_id, 8);
        assert_string_equal(attribute(span, "detent.machine"), "order");
        assert_string_equal(attribute(span, "detent.instance"), "o-1");
        assert_int_equal(span->is_failed, i == 2);
    }
    assert_string_equal(scene.taken[0].name, "commit");
    assert_int_equal(scene.taken[0].end - scene.taken[0].start, 2 * DET_MILLISECOND);
    assert_string_equal(attribute(&scene.taken[0], "detent.state.from"), "open");
    assert_string_equal(attribute(&scene.taken[0], "detent.state.to"), "paid");
    assert_string_equal(attribute(&scene.taken[0], "detent.sequence"), "7");
    assert_string_equal(attribute(&scene.taken[0], "detent.event"), "pay");
    assert_string_equal(scene.taken[1].name, "send order.pay");
    assert_int_equal(scene.taken[1].kind, DET_SPAN_SERVER);
    assert_string_equal(attribute(&scene.taken[1], "detent.outcome"), "goto");
    assert_string_equal(scene.taken[2].name, "effect charge");
    assert_string_equal(attribute(&scene.taken[3], "detent.attempt"), "2");
    assert_string_equal(attribute(&scene.taken[3], "detent.key"), "order/o-1/7/0");
    assert_int_equal(scene.taken[2].start, 100 * DET_SECOND);
    assert_int_equal(scene.taken[2].end, 101 * DET_SECOND);
    context = det_episode_attempt_context(&send.context, "order/o-1/7/0", 2);
    assert_memory_equal(scene.taken[3].context.span_id, context.span_id, 8);
    assert_memory_not_equal(scene.taken[2].context.span_id, context.span_id, 8);
    close_scene(&scene);
}

static void a_timer_begins_a_trace_that_is_linked_to_what_armed_it(void **state)
{
    struct det_trace_context cause = { .trace_id = { 7 }, .span_id = { 8 } }, own;
    struct det_note note = paid;
    struct scene scene;

    (void)state;
    open_scene(&scene);
    det_episode_fire(scene.tracer, &own);
    note.is_timeout = true;
    note.armed_by = &cause;
    det_episode_commit(scene.tracer, &own, &note);
    assert_int_equal(det_tracer_take(scene.tracer, scene.taken, 8, 0), 2);
    assert_string_equal(scene.taken[0].name, "timer order.pay");
    assert_int_equal(scene.taken[0].kind, DET_SPAN_CONSUMER);
    assert_memory_equal(&scene.taken[0].context, &own, sizeof own);
    assert_memory_equal(&scene.taken[0].cause, &cause, sizeof cause);
    assert_memory_equal(scene.taken[0].parent, (char[8]){ 0 }, 8);
    assert_string_equal(scene.taken[1].name, "commit");
    assert_memory_equal(scene.taken[1].parent, own.span_id, 8);
    close_scene(&scene);
}

static void failed_spans_have_the_error_text(void **state)
{
    struct det_error error = { .code = DET_ERR_UNHANDLED, .text = "o-1 is open" };
    struct scene scene;
    struct det_span start;

    (void)state;
    open_scene(&scene);
    det_episode_receive(scene.tracer, &start, NULL, &begin);
    det_episode_answer(scene.tracer, &start, &order, NULL, &error);
    assert_int_equal(det_tracer_take(scene.tracer, scene.taken, 8, 0), 1);
    assert_string_equal(scene.taken[0].name, "start order");
    assert_true(scene.taken[0].is_failed);
    assert_string_equal(scene.taken[0].status, "o-1 is open");
    assert_string_equal(attribute(&scene.taken[0], "detent.error"), "UNHANDLED");
    close_scene(&scene);
}

static void what_nobody_keeps_is_not_reported(void **state)
{
    struct det_attempt_figures attempt = { .machine = &order, .name = "x", .key = "k" };
    struct det_trace_context unkept = { .trace_id = { 1 }, .span_id = { 2 } };
    struct scene scene;
    struct det_span send;

    (void)state;
    open_scene(&scene);
    det_episode_receive(scene.tracer, &send, &unkept, &pay);
    det_episode_answer(scene.tracer, &send, &order, &(struct det_sent){ .state = 1 }, NULL);
    det_episode_commit(scene.tracer, &unkept, &paid);
    det_episode_commit(scene.tracer, NULL, &paid);
    det_episode_commit(NULL, &unkept, &paid);
    det_episode_attempt(scene.tracer, &unkept, &attempt);
    det_episode_attempt(scene.tracer, NULL, &attempt);
    assert_int_equal(det_tracer_take(scene.tracer, scene.taken, 8, 0), 0);
    close_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(send_commit_and_attempts_are_one_trace),
        cmocka_unit_test(a_timer_begins_a_trace_that_is_linked_to_what_armed_it),
        cmocka_unit_test(failed_spans_have_the_error_text),
        cmocka_unit_test(what_nobody_keeps_is_not_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
