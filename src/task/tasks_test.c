/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tasks_test.c - tasks of the in-process kinds in virtual time: the ways an actor can go. */
#include <detent/sim.h>
#include <detent/slot.h>

#include "lib/test.h"

#define KEPT 4096

/* A supervisor on a loop that the test turns, and everything it has published. */
struct fixture {
    struct det_sim *sim;
    struct det_loop *loop;
    struct det_tasks *tasks;
    struct det_task_event events[KEPT];
    size_t count;
    struct det_task_end ends[64];
    size_t end_count;
    int answers[16]; /* of the scripted step, one after the other */
    unsigned calls;
    bool is_deaf;
};

static int keep(void *user, const struct det_task_event *event)
{
    struct fixture *f = user;

    if (f->is_deaf)
        return 0;
    assert_true(f->count < KEPT);
    f->events[f->count++] = *event;
    return 0;
}

static void keep_end(void *user, const struct det_task_end *end)
{
    struct fixture *f = user;

    f->ends[f->end_count++ % 64] = *end;
}

static void open_with(struct fixture *f, struct det_tasks_options options)
{
    struct det_subscription *subscription;

    memset(f, 0, sizeof *f);
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = 1 }, &f->sim, NULL), 0);
    assert_int_equal(det_loop_open(det_sim_world(f->sim), NULL, &f->loop), 0);
    options.loop = f->loop;
    options.on_end = keep_end;
    options.user = f;
    assert_int_equal(det_tasks_open(&options, &f->tasks, NULL), 0);
    assert_int_equal(
        det_bus_subscribe(
            det_tasks_bus(f->tasks),
            &(struct det_subscriber){
                .delivery = DET_DELIVER_LOSSLESS, .on_event = keep, .user = f },
            &subscription, NULL),
        0);
}

static void close_all(struct fixture *f)
{
    det_tasks_close(f->tasks);
    det_loop_close(f->loop);
    det_sim_close(f->sim);
}

static unsigned count_of(const struct fixture *f, enum det_task_event_kind kind)
{
    unsigned count = 0;

    for (size_t i = 0; i < f->count; i++)
        count += f->events[i].kind == kind;
    return count;
}

static int scripted(struct det_task_context *context, void *argument)
{
    struct fixture *f = argument;
    int answer = f->answers[f->calls < 15 ? f->calls : 15];

    f->calls++;
    return answer < 0 && answer != DET_ERR_CANCELLED
               ? det_task_fail(context, answer, "script says %d", answer)
               : answer;
}

static det_task_id add(struct fixture *f, const char *name, struct det_policy policy)
{
    det_task_id id = 0;
    struct det_error error;
    struct det_task_spec spec = { .name = name, .step = scripted, .argument = f, .policy = policy };

    if (det_tasks_add(f->tasks, &spec, NULL, &id, &error) < 0)
        fail_msg("%s", error.text);
    return id;
}

static void run_out(struct fixture *f)
{
    struct det_error error = { .code = 0 };

    if (det_tasks_run(f->tasks, &error) < 0)
        fail_msg("%s", error.text);
}

static void a_step_that_is_done_completes(void **state)
{
    static struct fixture f;

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    add(&f, "once", (struct det_policy){ .restart = DET_RESTART_NEVER });
    run_out(&f);
    assert_int_equal(f.calls, 1);
    assert_int_equal(f.end_count, 1);
    assert_int_equal(f.ends[0].outcome, DET_TASK_OUTCOME_COMPLETED);
    assert_int_equal(count_of(&f, DET_TASK_EVENT_ATTEMPT_STARTING), 1);
    assert_int_equal(count_of(&f, DET_TASK_EVENT_ATTEMPT_SUCCEEDED), 1);
    assert_int_equal(count_of(&f, DET_TASK_EVENT_TASK_REMOVED), 1);
    assert_int_equal(count_of(&f, DET_TASK_EVENT_ALL_STOPPED), 1);
    close_all(&f);
}

static void a_step_that_fails_is_tried_again(void **state)
{
    static struct fixture f;

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    f.answers[0] = f.answers[1] = DET_ERR_IO;
    add(&f, "flaky", (struct det_policy){ .restart = DET_RESTART_ON_FAILURE });
    run_out(&f);
    assert_int_equal(f.calls, 3);
    assert_int_equal(count_of(&f, DET_TASK_EVENT_BACKOFF_SCHEDULED), 2);
    assert_int_equal(f.ends[0].outcome, DET_TASK_OUTCOME_COMPLETED);
    close_all(&f);
}

static void a_cancel_ends_a_waiting_step(void **state)
{
    static struct fixture f;
    det_task_id id;

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    f.answers[0] = DET_STEP_WAIT;
    f.answers[1] = DET_ERR_CANCELLED;
    id = add(&f, "waits", (struct det_policy){ .restart = DET_RESTART_ALWAYS });
    while (f.calls < 1)
        assert_true(det_loop_turn(f.loop, DET_NEVER) > 0);
    assert_int_equal(det_tasks_remove(f.tasks, id), 1);
    assert_int_equal(det_tasks_remove(f.tasks, id), 0);
    run_out(&f);
    assert_int_equal(f.ends[0].outcome, DET_TASK_OUTCOME_CANCELLED);
    close_all(&f);
}

static void a_slot_runs_one_after_the_other(void **state)
{
    static struct fixture f;
    struct det_admitted admitted;
    struct det_task_spec spec = { .name = "job", .step = scripted, .argument = &f };

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(
            det_slot_submit(
                f.tasks, &(struct det_submission){ .admission = DET_ADMIT_QUEUE, .task = &spec },
                NULL, &admitted, NULL),
            0);
        assert_int_equal(admitted.depth, i);
        assert_int_equal(admitted.is_started, i == 0);
    }
    run_out(&f);
    assert_int_equal(f.calls, 3);
    assert_int_equal(f.end_count, 3);
    close_all(&f);
}

static int waits(struct det_task_context *context, void *argument)
{
    (void)argument;
    return det_task_is_cancelled(context) ? DET_ERR_CANCELLED : DET_STEP_WAIT;
}

static void a_registered_task_takes_less_than_512_bytes(void **state)
{
    enum { MANY = 100000 };
    static struct fixture f;
    struct det_test_memory memory;
    uint64_t before;

    (void)state;
    det_test_memory_init(&memory);
    open_with(&f, (struct det_tasks_options){ .allocator = &memory.allocator });
    before = memory.live_bytes;
    for (unsigned i = 0; i < MANY; i++) {
        struct det_task_spec spec = { .step = waits };
        char name[32];

        snprintf(name, sizeof name, "tenant-%u-sync", i);
        spec.name = name;
        assert_int_equal(det_tasks_add(f.tasks, &spec, NULL, NULL, NULL), 0);
        if (f.count > KEPT / 2)
            f.count = 0;
    }
    assert_in_range((memory.live_bytes - before) / MANY, 1, 511);
    print_message("%u bytes a task\n", (unsigned)((memory.live_bytes - before) / MANY));
    f.is_deaf = true;
    close_all(&f);
    det_test_memory_deinit(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_that_is_done_completes),
        cmocka_unit_test(a_step_that_fails_is_tried_again),
        cmocka_unit_test(a_cancel_ends_a_waiting_step),
        cmocka_unit_test(a_slot_runs_one_after_the_other),
        cmocka_unit_test(a_registered_task_takes_less_than_512_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
