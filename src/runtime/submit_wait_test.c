/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* submit_wait_test.c - how long a submission waits: not at all for a lock, and for a busy instance
 * no longer than a send, whatever other work is due. */
#include "runtime/faulty_test.h"
#include "runtime/nodes_test.h"

struct note {
    struct det_send send;
    struct order_event event;
    struct det_error error;
    struct det_runtime *runtime;
    unsigned done, again; /* `again`: how often `done` submits it once more */
    det_time took;
    uint64_t sent_sequence;
    struct det_sim *sim;
};

static det_time moment(const struct note *note)
{
    return det_world_now(det_sim_world(note->sim), DET_CLOCK_MONOTONIC);
}

static void done(struct det_send *send)
{
    struct note *note = DET_CONTAINER(send, struct note, send);

    note->done++;
    note->took += moment(note);
    note->sent_sequence = send->sent.sequence;
    if (!note->again)
        return;
    note->again--;
    assert_int_equal(det_runtime_submit(note->runtime, send), 0);
}

static void submit(struct note *note, const struct det_machine *machine, const char *instance)
{
    note->event.kind = PING;
    note->took = -moment(note);
    note->send = (struct det_send){ .machine = machine,
                                    .instance = instance,
                                    .event = &note->event,
                                    .error = &note->error,
                                    .done = done };
    assert_int_equal(det_runtime_submit(note->runtime, &note->send), 0);
}

static void meet_a_lock(struct det_runtime_options options)
{
    struct nodes *n = nodes_open(2, options);
    struct note note = { .runtime = n->runtime[1], .sim = n->sim };
    struct note other = { .runtime = n->runtime[1], .sim = n->sim };
    struct det_lock *lock;

    assert_int_equal(node_start(n, 0, "o-1"), 0);
    assert_int_equal(node_start(n, 0, "o-2"), 0);
    lock = node_lock(n, 0, "o-1", NULL);
    submit(&note, n->order, "o-1");
    submit(&other, n->order, "o-2");
    assert_int_equal(det_sim_settle(n->sim), 0);
    assert_int_equal(note.done, 1);
    assert_int_equal(note.send.result, DET_ERR_LOCKED);
    assert_int_equal(note.error.code, DET_ERR_LOCKED);
    assert_int_equal(note.took, 0);
    assert_int_equal(other.done, 1);
    assert_int_equal(other.send.result, 0);
    det_lock_close(lock);
    submit(&note, n->order, "o-1");
    assert_int_equal(det_sim_settle(n->sim), 0);
    assert_int_equal(note.send.result, 0);
    nodes_close(n);
}

static void a_submission_does_not_wait_for_a_lock(void **unused)
{
    (void)unused;
    meet_a_lock((struct det_runtime_options){ 0 });
    meet_a_lock((struct det_runtime_options){ .locking = DET_LOCKING_LEASE });
}

static void submission_in_memory_does_not_wait_for_a_lock(void **unused)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct note note = { .runtime = f->runtime, .sim = f->sim };
    struct det_lock *lock;

    (void)unused;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(det_lock_open(f->runtime, f->order, "o-1", NULL, &lock, &f->error), 0);
    submit(&note, f->order, "o-1");
    settle(f);
    assert_int_equal(note.done, 1);
    assert_int_equal(note.send.result, DET_ERR_LOCKED);
    assert_non_null(strstr(note.error.text, "is locked by"));
    assert_int_equal(note.took, 0);
    det_lock_close(lock);
    fixture_close(f);
}

/* The guard of another send holds the instance for a while. */
static void linger(void *context)
{
    struct fixture *f = context;

    wait_in(det_sim_world(f->sim), 3 * DET_SECOND);
}

static void send_pay(void *argument)
{
    assert_int_equal(send_kind(argument, "o-1", PAY), 0);
}

static void submission_deadline_holds_while_others_run(void **unused)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct det_world *world = det_sim_world(f->sim);
    struct note late[3] = { 0 }, traffic = { .sim = f->sim, .again = 300 };
    struct faulty faulty;
    struct det_thread *thread;

    (void)unused;
    faulty_wrap(&faulty, f, false);
    fixture_reopen(f, (struct det_runtime_options){ .send_deadline = DET_SECOND });
    faulty.commit_takes = 10 * DET_MILLISECOND;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(start(f, "o-2"), 0);
    f->control.in_guard = linger;
    f->control.context = f;
    assert_int_equal(det_thread_start(world, "sender", send_pay, f, &thread), 0);
    advance(f, DET_MILLISECOND);
    traffic.runtime = f->runtime;
    submit(&traffic, f->order, "o-2");
    for (int i = 0; i < 3; i++) {
        late[i].sim = f->sim;
        late[i].runtime = f->runtime;
        submit(&late[i], f->order, "o-1");
    }
    advance(f, 2 * DET_SECOND);
    assert_in_range(traffic.again, 1, 299);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(late[i].done, 1);
        assert_int_equal(late[i].send.result, DET_ERR_TIMEOUT);
        assert_int_equal(late[i].error.waited, DET_SECOND);
        assert_in_range(late[i].took, DET_SECOND, DET_SECOND + 50 * DET_MILLISECOND);
    }
    advance(f, 3 * DET_SECOND);
    assert_int_equal(traffic.done, 301);
    det_thread_join(world, thread);
    fixture_close(f);
}

#define LONG 200

static void a_submission_after_others_of_the_same_sender_is_not_late(void **unused)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct note *notes = calloc(LONG, sizeof *notes);
    struct faulty faulty;

    (void)unused;
    assert_non_null(notes);
    faulty_wrap(&faulty, f, false);
    fixture_reopen(f, (struct det_runtime_options){ .send_deadline = DET_SECOND });
    assert_int_equal(start(f, "o-1"), 0);
    faulty.commit_takes = 10 * DET_MILLISECOND;
    for (unsigned i = 0; i < LONG; i++) {
        notes[i].sim = f->sim;
        notes[i].runtime = f->runtime;
        submit(&notes[i], f->order, "o-1");
    }
    advance(f, 3 * DET_SECOND);
    for (unsigned i = 0; i < LONG; i++) {
        assert_int_equal(notes[i].done, 1);
        assert_int_equal(notes[i].send.result, 0);
    }
    assert_true(notes[LONG - 1].took > DET_SECOND);
    fixture_close(f);
    free(notes);
}

/* A store in which others commit to o-1 all the time. */
static struct {
    struct det_store_ops ops;
    int (*commit)(struct det_store *store, struct det_store_commit *const *commits, size_t count);
    unsigned met;
    bool is_contended;
} shared;

static int commit_around(
    struct det_store *store, struct det_store_commit *const *commits, size_t count)
{
    struct det_store_commit *rest[8];
    size_t left = 0;

    assert_in_range(count, 1, 8);
    for (size_t i = 0; i < count; i++) {
        if (!shared.is_contended || strcmp(commits[i]->id, "o-1") != 0) {
            rest[left++] = commits[i];
            continue;
        }
        shared.met++;
        commits[i]->result = DET_ERR_CONFLICT;
        commits[i]->actual = commits[i]->expected + 1;
    }
    return left ? shared.commit(store, rest, left) : 0;
}

static struct nodes *open_contended(void)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ .writers = 1 });

    assert_int_equal(node_start(n, 0, "o-1"), 0);
    assert_int_equal(node_start(n, 0, "o-2"), 0);
    node_close(n, 0);
    n->store[0] = det_shared_node(n->shared);
    shared.ops = *n->store[0]->ops;
    shared.commit = shared.ops.commit;
    shared.ops.commit = commit_around;
    shared.is_contended = true;
    shared.met = 0;
    n->store[0]->ops = &shared.ops;
    node_open_on(n, 0);
    return n;
}

static void one_contended_instance_holds_up_no_other(void **unused)
{
    struct nodes *n = open_contended();
    struct note notes[4] = { 0 };

    (void)unused;
    for (unsigned i = 0; i < 4; i++) {
        notes[i].runtime = n->runtime[0];
        notes[i].sim = n->sim;
        submit(&notes[i], n->order, i == 1 ? "o-2" : "o-1");
    }
    pass(n, 100 * DET_MILLISECOND);
    assert_int_equal(notes[1].done, 1);
    assert_int_equal(notes[1].send.result, 0);
    assert_int_equal(notes[0].done, 0);
    /* Neither one that comes later; and the store is not asked without a pause. */
    submit(&notes[1], n->order, "o-2");
    pass(n, 100 * DET_MILLISECOND);
    assert_int_equal(notes[1].done, 2);
    assert_in_range(shared.met, 8, 1000);
    shared.is_contended = false;
    pass(n, DET_SECOND);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(notes[i].send.result, 0);
    assert_int_equal(notes[0].sent_sequence, 1);
    assert_int_equal(notes[2].sent_sequence, 2);
    assert_int_equal(notes[3].sent_sequence, 3);
    nodes_close(n);
}

static void contended_submission_ends_at_its_deadline(void **unused)
{
    struct nodes *n = open_contended();
    struct note note = { .runtime = n->runtime[0], .sim = n->sim };
    struct note last = note;

    (void)unused;
    submit(&note, n->order, "o-1");
    pass(n, 9 * DET_SECOND);
    assert_int_equal(note.done, 0);
    pass(n, 2 * DET_SECOND);
    assert_int_equal(note.done, 1);
    assert_int_equal(note.send.result, DET_ERR_CONTENTION);
    assert_int_equal(note.error.code, DET_ERR_CONTENTION);
    submit(&last, n->order, "o-1");
    pass(n, DET_SECOND);
    assert_int_equal(last.done, 0);
    node_close(n, 0);
    assert_int_equal(last.done, 1);
    assert_int_equal(last.send.result, DET_ERR_CONTENTION);
    assert_true(last.took < 2 * DET_SECOND);
    nodes_close(n);
}

/* An effect that is still under way when the runtime is closed. */
struct late_effect {
    struct note note;
    struct fixture *f;
    int result;
};

static void submit_late(void *context)
{
    struct late_effect *late = context;

    wait_in(det_sim_world(late->f->sim), DET_SECOND);
    late->note.send = (struct det_send){
        .machine = late->f->order, .instance = "o-1", .event = &late->note.event, .done = done
    };
    late->result = det_runtime_submit(late->f->runtime, &late->note.send);
}

static void the_first_submission_of_a_runtime_that_closes_is_refused(void **unused)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct late_effect late = { .f = f, .note = { .event.kind = PING, .sim = f->sim } };

    (void)unused;
    f->control.in_effect = submit_late;
    f->control.context = &late;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    advance(f, DET_MILLISECOND);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    assert_int_equal(f->control.effects, 1);
    assert_int_equal(late.result, DET_ERR_CLOSED);
    assert_int_equal(late.note.done, 0);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_submission_does_not_wait_for_a_lock),
        cmocka_unit_test(submission_in_memory_does_not_wait_for_a_lock),
        cmocka_unit_test(submission_deadline_holds_while_others_run),
        cmocka_unit_test(a_submission_after_others_of_the_same_sender_is_not_late),
        cmocka_unit_test(one_contended_instance_holds_up_no_other),
        cmocka_unit_test(contended_submission_ends_at_its_deadline),
        cmocka_unit_test(the_first_submission_of_a_runtime_that_closes_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
