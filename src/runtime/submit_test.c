/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* submit_test.c - asynchronous sends: their order, their answers, shared commits, what waits for
 * whom, and the close. */
#include "runtime/faulty_test.h"

#define MANY 400

struct note {
    struct det_send send;
    struct order_event event;
    struct det_error error;
    char instance[16];
    unsigned order; /* in which it was done, from 1 */
};

struct desk {
    struct fixture *f;
    struct faulty *faulty;
    unsigned done;
    unsigned again; /* how often `done` submits once more */
    int again_result;
    struct note notes[MANY];
};

static struct desk *desk_open(bool is_slow, struct det_runtime_options options)
{
    struct desk *desk = calloc(1, sizeof *desk);

    assert_non_null(desk);
    desk->f = fixture_open((struct det_runtime_options){ 0 });
    if (is_slow) {
        desk->faulty = calloc(1, sizeof *desk->faulty);
        assert_non_null(desk->faulty);
        faulty_wrap(desk->faulty, desk->f, false);
    }
    fixture_reopen(desk->f, options);
    desk->f->control.context = desk;
    return desk;
}

static void desk_close(struct desk *desk)
{
    fixture_close(desk->f);
    free(desk->faulty);
    free(desk);
}

static void done(struct det_send *send)
{
    struct desk *desk = send->user;

    DET_CONTAINER(send, struct note, send)->order = ++desk->done;
    if (!desk->again)
        return;
    desk->again--;
    desk->again_result = det_runtime_submit(desk->f->runtime, send);
}

static void submit_with(
    struct desk *desk, unsigned i, const char *instance, unsigned kind,
    struct det_send_options options)
{
    struct note *note = &desk->notes[i];

    note->event.kind = kind;
    snprintf(note->instance, sizeof note->instance, "%s", instance);
    note->send = (struct det_send){ .machine = desk->f->order,
                                    .instance = note->instance,
                                    .event = &note->event,
                                    .options = options,
                                    .error = &note->error,
                                    .done = done,
                                    .user = desk,
                                    .result = 77 };
    assert_int_equal(det_runtime_submit(desk->f->runtime, &note->send), 0);
}

static void submit(struct desk *desk, unsigned i, const char *instance, unsigned kind)
{
    submit_with(desk, i, instance, kind, (struct det_send_options){ 0 });
}

static const char *name_of(unsigned i)
{
    static char name[16];

    snprintf(name, sizeof name, "o-%u", i);
    return name;
}

static void start_many(struct desk *desk, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(start(desk->f, name_of(i)), 0);
}

static void submit_in_order(bool is_slow)
{
    struct desk *desk = desk_open(is_slow, (struct det_runtime_options){ .writers = 3 });

    start_many(desk, 40);
    for (unsigned i = 0; i < MANY; i++)
        submit(desk, i, name_of(i % 40), PING);
    settle(desk->f);
    assert_int_equal(desk->done, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        const struct note *note = &desk->notes[i];

        assert_int_equal(note->send.result, 0);
        assert_int_equal(note->send.sent.outcome, DET_OUTCOME_STAY);
        assert_int_equal(note->send.sent.sequence, i / 40 + 1);
        assert_true(i < 40 || note->order > desk->notes[i - 40].order);
    }
    if (is_slow)
        assert_true(desk->faulty->most > 1 && desk->faulty->calls < 40 + MANY);
    desk_close(desk);
}

static void submissions_to_one_instance_keep_their_order(void **unused)
{
    (void)unused;
    submit_in_order(false);
    submit_in_order(true);
}

static void sixty_four_instances_share_a_commit(void **unused)
{
    struct desk *desk = desk_open(true, (struct det_runtime_options){ 0 });

    (void)unused;
    start_many(desk, 64);
    desk->faulty->calls = 0;
    for (unsigned i = 0; i < 64; i++)
        submit(desk, i, name_of(i), TOUCH);
    settle(desk->f);
    assert_int_equal(desk->done, 64);
    assert_true(desk->faulty->calls <= 8);
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(get(desk->f, name_of(i)).sequence, 1);
    desk_close(desk);
}

static void refuse_each(bool is_slow)
{
    struct desk *desk = desk_open(is_slow, (struct det_runtime_options){ 0 });
    struct note *notes = desk->notes;

    start_many(desk, 2);
    submit(desk, 0, "nobody", PING);
    submit(desk, 1, "o-0", SHIP);
    submit(desk, 2, "o-0", 99);
    submit(desk, 3, "o-0", CHARGED);
    submit(desk, 4, "no id", PING);
    submit(desk, 5, "o-0", NOISE);
    submit(desk, 6, "o-1", PING);
    settle(desk->f);
    assert_int_equal(notes[0].send.result, DET_ERR_NOT_FOUND);
    assert_int_equal(notes[1].send.result, DET_ERR_UNHANDLED);
    assert_string_equal(notes[1].error.state, "PENDING");
    assert_int_equal(notes[2].send.result, DET_ERR_INVALID);
    assert_int_equal(notes[3].send.result, DET_ERR_INVALID);
    assert_non_null(strstr(notes[3].error.text, "internal"));
    assert_int_equal(notes[4].send.result, DET_ERR_INVALID);
    assert_int_equal(notes[5].send.result, 0);
    assert_int_equal(notes[5].send.sent.outcome, DET_OUTCOME_IGNORED);
    assert_int_equal(notes[6].send.result, 0);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(notes[i].error.code, notes[i].send.result);
    assert_int_equal(desk->done, 7);
    assert_int_equal(get(desk->f, "o-0").sequence, 0);
    desk_close(desk);
}

static void submission_result_equals_the_result_of_a_send(void **unused)
{
    (void)unused;
    refuse_each(false);
    refuse_each(true);
}

static void send_options_apply_to_submissions(void **unused)
{
    static const struct det_send_options options[] = {
        { .event_id = "one" }, { .event_id = "one" }, { .event_id = "bad id" },
        { .expected = 77 },    { .visit = 88 },
    };
    struct desk *desk = desk_open(true, (struct det_runtime_options){ 0 });
    struct note *notes = desk->notes;

    (void)unused;
    start_many(desk, 1);
    for (unsigned i = 0; i < 5; i++)
        submit_with(desk, i, "o-0", PING, options[i]);
    settle(desk->f);
    assert_false(notes[0].send.sent.is_duplicate);
    assert_true(notes[1].send.sent.is_duplicate);
    assert_int_equal(notes[1].send.sent.sequence, notes[0].send.sent.sequence);
    assert_int_equal(notes[2].send.result, DET_ERR_INVALID);
    assert_int_equal(notes[3].send.result, DET_ERR_CONFLICT);
    assert_int_equal(notes[3].error.expected, 77);
    assert_int_equal(notes[4].send.result, DET_ERR_CONFLICT);
    assert_int_equal(notes[4].error.expected, 88);
    desk_close(desk);
}

static void done_may_submit_the_same_struct_again(void **unused)
{
    struct desk *desk = desk_open(true, (struct det_runtime_options){ 0 });

    (void)unused;
    start_many(desk, 1);
    desk->again = 9;
    submit(desk, 0, "o-0", PING);
    settle(desk->f);
    assert_int_equal(desk->done, 10);
    assert_int_equal(get(desk->f, "o-0").sequence, 10);
    desk_close(desk);
}

static void close_completes_submitted_events(void **unused)
{
    struct desk *desk = desk_open(true, (struct det_runtime_options){ .writers = 2 });

    (void)unused;
    start_many(desk, 30);
    for (unsigned i = 0; i < 300; i++)
        submit(desk, i, name_of(i % 30), PING);
    desk->again = 1000;
    det_runtime_close(desk->f->runtime);
    desk->f->runtime = NULL;
    assert_int_equal(desk->again_result, DET_ERR_CLOSED);
    assert_true(desk->done >= 300);
    for (unsigned i = 0; i < 300; i++)
        assert_int_equal(desk->notes[i].send.result, 0);
    fixture_reopen(desk->f, (struct det_runtime_options){ 0 });
    for (unsigned i = 0; i < 30; i++)
        assert_true(get(desk->f, name_of(i)).sequence >= 10);
    desk_close(desk);
}

/* The guard of another send holds the instance for a while. */
static void linger(void *context)
{
    struct desk *desk = context;

    wait_in(det_sim_world(desk->f->sim), 3 * DET_SECOND);
}

static void send_pay(void *argument)
{
    struct desk *desk = argument;

    assert_int_equal(send_kind(desk->f, "o-0", PAY), 0);
}

static void keep_busy(struct desk *desk, det_time deadline)
{
    struct det_world *world = det_sim_world(desk->f->sim);
    struct det_thread *thread;

    fixture_reopen(desk->f, (struct det_runtime_options){ .send_deadline = deadline });
    start_many(desk, 2);
    desk->f->control.in_guard = linger;
    assert_int_equal(det_thread_start(world, "sender", send_pay, desk, &thread), 0);
    advance(desk->f, DET_SECOND);
    submit(desk, 0, "o-0", NOISE);
    submit(desk, 1, "o-0", SHIP);
    submit(desk, 2, "o-1", PING);
    advance(desk->f, DET_SECOND / 2);
    /* The other one does not wait for the one that is busy. */
    assert_int_equal(desk->done, 1);
    assert_int_equal(desk->notes[2].send.result, 0);
    advance(desk->f, 3 * DET_SECOND);
    assert_int_equal(desk->done, 3);
    assert_true(desk->notes[0].order < desk->notes[1].order);
    det_thread_join(world, thread);
}

static void a_busy_instance_holds_up_only_its_own_sends(void **unused)
{
    struct desk *desk = desk_open(true, (struct det_runtime_options){ 0 });

    (void)unused;
    keep_busy(desk, 0);
    assert_int_equal(desk->notes[0].send.result, 0);
    assert_int_equal(desk->notes[0].send.sent.state, CHARGING);
    assert_int_equal(desk->notes[1].send.result, DET_ERR_UNHANDLED);
    desk_close(desk);
}

static void a_send_waits_for_a_busy_instance_as_long_as_it_may(void **unused)
{
    struct desk *desk = desk_open(true, (struct det_runtime_options){ 0 });

    (void)unused;
    keep_busy(desk, DET_SECOND);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(desk->notes[i].send.result, DET_ERR_TIMEOUT);
        assert_int_equal(desk->notes[i].error.waited, DET_SECOND);
    }
    desk_close(desk);
}

/* The guard of the third PAY of a batch sends to the first one's instance, and to its own. */
static void send_from_guard(void *context)
{
    struct desk *desk = context;
    struct fixture *f = desk->f;
    struct order_event event = { .kind = NOISE };
    struct det_sent sent;

    if (strcmp(f->control.move.instance, "o-2") != 0)
        return;
    f->control.in_guard = NULL;
    assert_int_equal(det_runtime_send(f->runtime, f->order, "o-0", &event, NULL, &sent, NULL), 0);
    assert_int_equal(sent.state, CHARGING);
    assert_int_equal(
        det_runtime_send(f->runtime, f->order, "o-2", &event, NULL, NULL, NULL), DET_ERR_BUSY);
}

static void user_code_in_a_batch_may_send_to_what_the_batch_has_claimed(void **unused)
{
    struct desk *desk = desk_open(true, (struct det_runtime_options){ 0 });

    (void)unused;
    start_many(desk, 4);
    desk->f->control.in_guard = send_from_guard;
    /* In one round: the second waits for the first, and the last must not get ahead of it when the
     * guard of o-2 has made the first one's instance free. */
    submit(desk, 0, "o-0", PAY);
    submit(desk, 1, "o-0", NOISE);
    submit(desk, 2, "o-2", PAY);
    submit(desk, 3, "o-3", PAY);
    submit(desk, 4, "o-0", CANCEL);
    settle(desk->f);
    assert_null(desk->f->control.in_guard);
    assert_int_equal(desk->done, 5);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(desk->notes[i].send.result, 0);
    assert_true(desk->notes[1].order < desk->notes[4].order);
    assert_int_equal(desk->notes[1].send.sent.state, CHARGING);
    assert_int_equal(get(desk->f, "o-0").state, CANCELLED);
    desk_close(desk);
}

static void faults_in_a_batch_are_reported_to_their_senders(void **unused)
{
    struct desk *desk = desk_open(true, (struct det_runtime_options){ 0 });
    unsigned failed = 0;

    (void)unused;
    start_many(desk, 20);
    faulty_set(desk->faulty, FAULT_BEFORE, DET_ERR_NO_SPACE, 10);
    for (unsigned i = 0; i < 20; i++)
        submit(desk, i, name_of(i), PING);
    settle(desk->f);
    for (unsigned i = 0; i < 20; i++) {
        bool is_failed = desk->notes[i].send.result == DET_ERR_NO_SPACE;

        failed += is_failed;
        assert_int_equal(get(desk->f, name_of(i)).sequence, is_failed ? 0 : 1);
        assert_int_equal(desk->notes[i].error.code, desk->notes[i].send.result);
    }
    assert_int_equal(failed, 1);
    desk_close(desk);
}

/* Every allocation may fail: each send is done, or was never taken. */
static int submit_poorly(struct det_test_memory *memory, void *argument)
{
    struct desk *desk = desk_open(true, (struct det_runtime_options){ 0 });
    struct fixture *f = desk->f;
    unsigned taken = 0;
    int r;

    (void)argument;
    start_many(desk, 3);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    r = det_runtime_open(
        f->store,
        &(struct det_runtime_options){ .world = det_sim_world(f->sim),
                                       .allocator = &memory->allocator,
                                       .user = &f->control,
                                       .shards = 2,
                                       .pool_threads = 1 },
        &f->runtime, NULL);
    for (unsigned i = 0; r == 0 && i < 6; i++) {
        struct note *note = &desk->notes[i];

        note->event.kind = i < 3 ? PING : PAY;
        snprintf(note->instance, sizeof note->instance, "o-%u", i % 3);
        note->send = (struct det_send){ .machine = f->order,
                                        .instance = note->instance,
                                        .event = &note->event,
                                        .done = done,
                                        .user = desk };
        r = det_runtime_submit(f->runtime, &note->send);
        taken += r == 0;
    }
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    assert_int_equal(desk->done, taken);
    for (unsigned i = 0; r == 0 && i < 6; i++)
        r = desk->notes[i].send.result;
    desk_close(desk);
    return r;
}

static void no_send_is_lost_when_memory_runs_out(void **unused)
{
    (void)unused;
    det_test_each_failure(submit_poorly, NULL);
}

static void options_are_checked(void **unused)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct det_runtime_options options = { .world = det_sim_world(f->sim), .writers = 1025 };
    struct det_runtime *runtime;

    (void)unused;
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    assert_int_equal(det_runtime_open(f->store, &options, &runtime, &f->error), DET_ERR_INVALID);
    assert_string_equal(f->error.text, "writers must be at most 1024");
    fixture_close(f);
}

/* Not an instance that has a writer, which is waited for: what det_runtime_send() would say. */
static void busy_store_is_the_result_of_a_submission(void **unused)
{
    struct desk *desk = desk_open(true, (struct det_runtime_options){ 0 });

    (void)unused;
    desk->faulty->serves_failing = 1;
    submit(desk, 0, "o-1", PING);
    settle(desk->f);
    assert_int_equal(desk->done, 1);
    assert_int_equal(desk->notes[0].send.result, DET_ERR_BUSY);
    assert_non_null(strstr(desk->notes[0].error.text, "the store is busy"));
    start_many(desk, 2);
    fixture_reopen(desk->f, (struct det_runtime_options){ 0 });
    desk->faulty->load_code = DET_ERR_BUSY;
    desk->faulty->loads_failing = 1;
    submit(desk, 1, "o-1", PING);
    settle(desk->f);
    assert_int_equal(desk->notes[1].send.result, DET_ERR_BUSY);
    assert_int_equal(desk->notes[1].error.code, DET_ERR_BUSY);
    submit(desk, 2, "o-1", PING);
    settle(desk->f);
    assert_int_equal(desk->notes[2].send.result, 0);
    desk_close(desk);
}

/* The same when it was loaded before, and has to be again. */
static void store_busy_at_a_reload_is_the_result_of_a_submission(void **unused)
{
    struct desk *desk = desk_open(true, (struct det_runtime_options){ 0 });

    (void)unused;
    start_many(desk, 1);
    faulty_set(desk->faulty, FAULT_BEFORE, DET_ERR_IO, 0);
    desk->faulty->load_code = DET_ERR_BUSY;
    desk->faulty->loads_failing = 1000;
    submit(desk, 0, "o-0", PING);
    settle(desk->f);
    submit(desk, 1, "o-0", PING);
    settle(desk->f);
    assert_int_equal(desk->done, 2);
    assert_int_equal(desk->notes[1].send.result, DET_ERR_BUSY);
    desk->faulty->loads_failing = 0;
    submit(desk, 2, "o-0", PING);
    settle(desk->f);
    assert_int_equal(desk->notes[2].send.result, 0);
    desk_close(desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(submissions_to_one_instance_keep_their_order),
        cmocka_unit_test(sixty_four_instances_share_a_commit),
        cmocka_unit_test(submission_result_equals_the_result_of_a_send),
        cmocka_unit_test(send_options_apply_to_submissions),
        cmocka_unit_test(done_may_submit_the_same_struct_again),
        cmocka_unit_test(close_completes_submitted_events),
        cmocka_unit_test(a_busy_instance_holds_up_only_its_own_sends),
        cmocka_unit_test(a_send_waits_for_a_busy_instance_as_long_as_it_may),
        cmocka_unit_test(user_code_in_a_batch_may_send_to_what_the_batch_has_claimed),
        cmocka_unit_test(faults_in_a_batch_are_reported_to_their_senders),
        cmocka_unit_test(no_send_is_lost_when_memory_runs_out),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(busy_store_is_the_result_of_a_submission),
        cmocka_unit_test(store_busy_at_a_reload_is_the_result_of_a_submission),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
