/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* orphaned_effect_test.c - effects left by a dead process: each attempt is recorded before it
 * begins, so that an effect that kills its process becomes a dead letter. */
#include <limits.h>

#include "runtime/faulty_test.h"
#include "runtime/nodes_test.h"

static const struct det_runtime_options few = {
    .effects = { .attempts_max = 3, .jitter_percent = UINT32_MAX },
};

/* From now on nothing that this process does reaches the store. */
static void end_process(void *context)
{
    struct faulty *faulty = context;

    faulty_set(faulty, FAULT_BEFORE, DET_ERR_IO, 0);
    faulty->times = INT_MAX;
}

static void next_process(struct fixture *f, struct faulty *faulty)
{
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    faulty->fault = FAULT_NONE;
    fixture_reopen(f, few);
    assert_int_equal(det_runtime_serve(f->runtime, f->order, &f->error), 0);
}

/* An order whose effect was begun by a process that is gone. */
static struct fixture *open_left(struct faulty *faulty)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    faulty_wrap(faulty, f, false);
    fixture_reopen(f, few);
    f->control.in_effect = end_process;
    f->control.context = faulty;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    assert_int_equal(f->control.effects, 1);
    return f;
}

static void an_effect_that_ends_its_process_becomes_a_dead_letter(void **unused)
{
    struct faulty faulty;
    struct fixture *f = open_left(&faulty);
    const struct listed_effects *all;

    (void)unused;
    for (unsigned i = 1; i <= 3; i++) {
        next_process(f, &faulty);
        advance(f, DET_SECOND);
        assert_int_equal(f->control.effects, 1 + i);
        assert_int_equal(f->control.attempt, i);
    }
    f->control.incidents = 0;
    next_process(f, &faulty);
    advance(f, DET_SECOND);
    assert_int_equal(f->control.effects, 4);
    all = effects(f, "o-1");
    assert_int_equal(all->count, 1);
    assert_int_equal(all->first.state, DET_EFFECT_STATE_DEAD);
    assert_int_equal(all->first.attempts, 3);
    assert_int_equal(all->first.last_error, DET_ERR_UNFINISHED);
    assert_int_equal(f->control.incidents, 1);
    assert_int_equal(f->control.incident.kind, DET_INCIDENT_EFFECT_DEAD);
    assert_int_equal(f->control.incident.attempt, 3);
    assert_non_null(strstr(f->control.incident_text, "the process ended during attempt 3"));
    assert_int_equal(counts(f).effects_dead, 1);
    fixture_close(f);
}

static void a_dead_one_that_is_retried_begins_again(void **unused)
{
    struct faulty faulty;
    struct fixture *f = open_left(&faulty);
    char key[304];

    (void)unused;
    for (unsigned i = 0; i < 4; i++) {
        next_process(f, &faulty);
        advance(f, DET_SECOND);
    }
    snprintf(key, sizeof key, "%.303s", effects(f, "o-1")->key);
    f->control.in_effect = NULL;
    assert_int_equal(det_runtime_retry(f->runtime, f->order, "o-1", key, &f->error), 0);
    settle(f);
    assert_int_equal(f->control.attempt, 1);
    assert_int_equal(get(f, "o-1").state, PAID);
    fixture_close(f);
}

static void an_orphaned_effect_waits_after_it_ended_a_process_again(void **unused)
{
    struct faulty faulty;
    struct fixture *f = open_left(&faulty);

    (void)unused;
    next_process(f, &faulty);
    settle(f);
    assert_int_equal(f->control.effects, 2);
    next_process(f, &faulty);
    settle(f);
    assert_int_equal(f->control.effects, 2);
    f->control.in_effect = NULL;
    advance(f, 100 * DET_MILLISECOND);
    assert_int_equal(f->control.effects, 3);
    assert_int_equal(f->control.attempt, 2);
    assert_int_equal(get(f, "o-1").state, PAID);
    fixture_close(f);
}

static void orphaned_effect_counts_ordinary_failures(void **unused)
{
    struct faulty faulty;
    struct fixture *f = open_left(&faulty);

    (void)unused;
    f->control.in_effect = NULL;
    f->control.effect_failures = 2;
    next_process(f, &faulty);
    advance(f, DET_SECOND);
    assert_int_equal(f->control.effects, 4);
    assert_int_equal(f->control.attempt, 3);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_EFFECT_FAILED], 2);
    assert_int_equal(get(f, "o-1").state, PAID);
    fixture_close(f);
}

static void no_attempt_begins_that_cannot_be_recorded(void **unused)
{
    struct faulty faulty;
    struct fixture *f = open_left(&faulty);

    (void)unused;
    f->control.in_effect = NULL;
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    fixture_reopen(f, few);
    assert_int_equal(det_runtime_serve(f->runtime, f->order, &f->error), 0);
    settle(f);
    assert_int_equal(f->control.effects, 1);
    assert_int_equal(effects(f, "o-1")->first.attempts, 0);
    faulty.fault = FAULT_NONE;
    advance(f, 2 * DET_SECOND);
    assert_int_equal(f->control.effects, 2);
    assert_int_equal(f->control.attempt, 1);
    assert_int_equal(get(f, "o-1").state, PAID);
    fixture_close(f);
}

/* An effect that no process has begun, which has one attempt, for a new process. */
static struct fixture *open_unbegun(struct faulty *faulty)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    faulty_wrap(faulty, f, false);
    fixture_reopen(f, (struct det_runtime_options){ .is_passive = true });
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    fixture_reopen(
        f, (struct det_runtime_options){
               .shards = 1,
               .instances_max = 1,
               .effects = { .attempts_max = 1, .jitter_percent = UINT32_MAX } });
    return f;
}

static void assert_ran_once(struct fixture *f)
{
    assert_int_equal(f->control.effects, 1);
    assert_int_equal(f->control.attempt, 1);
    assert_int_equal(counts(f).effects_dead, 0);
    assert_int_equal(get(f, "o-1").state, PAID);
}

/* The record is stored, but the answer is lost; then so many loads fail. */
static void lose_the_answer(struct fixture *f, struct faulty *faulty, int loads)
{
    faulty->loads_skipped = 1;
    faulty->loads_failing = loads;
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 0);
    assert_int_equal(det_runtime_serve(f->runtime, f->order, &f->error), 0);
    settle(f);
    assert_int_equal(faulty->faults, 1);
    assert_int_equal(f->control.effects, 0);
}

static void attempt_record_with_a_lost_answer_is_not_an_attempt(void **unused)
{
    (void)unused;
    for (int loads = 0; loads < 4; loads++) {
        struct faulty faulty;
        struct fixture *f = open_unbegun(&faulty);

        lose_the_answer(f, &faulty, loads);
        advance(f, DET_MINUTE);
        assert_ran_once(f);
        fixture_close(f);
    }
}

/* Only this process knows that it was its own record: so the instance stays until it has run. */
static void instance_with_an_unknown_record_result_stays_in_memory(void **unused)
{
    struct faulty faulty;
    struct fixture *f = open_unbegun(&faulty);

    (void)unused;
    lose_the_answer(f, &faulty, 0);
    assert_int_equal(get(f, "o-1").effects_pending, 1);
    for (unsigned i = 2; i < 10; i++) {
        char id[8];

        snprintf(id, sizeof id, "o-%u", i);
        assert_int_equal(start(f, id), 0);
    }
    assert_true(counts(f).evictions > 0);
    advance(f, DET_MINUTE);
    assert_ran_once(f);
    fixture_close(f);
}

/* The first one takes its time; meanwhile the runtime is closed, and the second waits for a
 * thread. */
static void linger(void *context)
{
    struct faulty *faulty = context;

    wait_in(faulty->store.world, 3 * DET_SECOND);
}

static void close_it(void *argument)
{
    struct fixture *f = argument;

    det_runtime_close(f->runtime);
    f->runtime = NULL;
}

static void effect_waiting_for_a_thread_is_not_an_attempt(void **unused)
{
    struct faulty faulty;
    struct fixture *f = open_left(&faulty);

    (void)unused;
    faulty.fault = FAULT_NONE;
    f->control.in_effect = linger;
    assert_int_equal(start(f, "o-2"), 0);
    close_it(f);
    fixture_reopen(f, (struct det_runtime_options){ .is_passive = true });
    assert_int_equal(send_kind(f, "o-2", PAY), 0);
    fixture_reopen(f, (struct det_runtime_options){ .pool_threads = 1 });
    assert_int_equal(det_runtime_serve(f->runtime, f->order, &f->error), 0);
    advance(f, DET_SECOND);
    assert_int_equal(f->control.effects, 2);
    close_it(f);
    assert_int_equal(f->control.effects, 2);
    f->control.in_effect = NULL;
    next_process(f, &faulty);
    advance(f, DET_SECOND);
    assert_int_equal(f->control.effects, 3);
    assert_int_equal(f->control.attempt, 1);
    assert_int_equal(get(f, "o-1").state, PAID);
    assert_int_equal(get(f, "o-2").state, PAID);
    fixture_close(f);
}

/* A postponed attempt does not count, in this process and in the next one. */

static void stop_in_effect(struct fixture *f, struct faulty *faulty, void (*in_effect)(void *))
{
    faulty->fault = FAULT_NONE;
    f->control.in_effect = in_effect;
    f->control.effect_result = DET_EFFECT_POSTPONED;
    f->control.incidents = 0;
}

static void an_effect_that_each_process_postpones_never_dies(void **unused)
{
    struct faulty faulty;
    struct fixture *f = open_left(&faulty);

    (void)unused;
    stop_in_effect(f, &faulty, NULL);
    for (unsigned i = 0; i < 6; i++) {
        next_process(f, &faulty);
        settle(f);
        assert_int_equal(f->control.effects, 2 + i);
        assert_int_equal(f->control.attempt, 1);
    }
    f->control.effect_result = DET_EFFECT_PRODUCED;
    next_process(f, &faulty);
    settle(f);
    assert_int_equal(f->control.attempt, 1);
    assert_int_equal(get(f, "o-1").state, PAID);
    assert_int_equal(f->control.incidents, 0);
    fixture_close(f);
}

static void effect_postponed_during_close_is_not_an_attempt(void **unused)
{
    struct faulty faulty;
    struct fixture *f = open_left(&faulty);
    char key[300];

    (void)unused;
    snprintf(key, sizeof key, "%s", f->control.key);
    stop_in_effect(f, &faulty, linger);
    for (unsigned i = 0; i < 4; i++) {
        next_process(f, &faulty);
        advance(f, DET_SECOND);
        assert_int_equal(f->control.effects, 2 + i);
        assert_int_equal(f->control.attempt, 1);
        assert_string_equal(f->control.key, key);
    }
    f->control.in_effect = NULL;
    f->control.effect_result = DET_EFFECT_PRODUCED;
    next_process(f, &faulty);
    settle(f);
    assert_int_equal(f->control.attempt, 1);
    assert_string_equal(f->control.key, key);
    assert_int_equal(get(f, "o-1").state, PAID);
    fixture_close(f);
}

/* The record stays, or may stay: this process knows better. */
static void postponed_effect_runs_despite_its_remaining_record(void **unused)
{
    static const enum fault faults[] = { FAULT_BEFORE, FAULT_AFTER };

    (void)unused;
    for (unsigned i = 0; i < 2; i++) {
        struct faulty faulty;
        struct fixture *f = open_unbegun(&faulty);

        f->control.effect_result = DET_EFFECT_POSTPONED;
        faulty_set(&faulty, faults[i], DET_ERR_IO, 1);
        assert_int_equal(det_runtime_serve(f->runtime, f->order, &f->error), 0);
        settle(f);
        assert_int_equal(faulty.faults, 1);
        assert_int_equal(f->control.effects, 1);
        for (unsigned j = 2; j < 10; j++) {
            char id[8];

            snprintf(id, sizeof id, "o-%u", j);
            assert_int_equal(start(f, id), 0);
        }
        f->control.effects = 0;
        f->control.effect_result = DET_EFFECT_PRODUCED;
        advance(f, DET_MINUTE);
        assert_ran_once(f);
        fixture_close(f);
    }
}

/* The same among nodes, where another one takes over. */

struct victim {
    struct nodes *n;
    unsigned node;
};

static void kill_node(void *context)
{
    const struct victim *victim = context;

    det_shared_kill(victim->n->store[victim->node]);
}

static void effect_that_kills_every_node_becomes_a_dead_letter(void **unused)
{
    struct nodes *n = nodes_open(1, few);
    struct victim victim = { n, 0 };

    (void)unused;
    n->control.in_effect = kill_node;
    n->control.context = &victim;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    assert_int_equal(node_send(n, 0, "o-1", PAY), 0);
    for (unsigned i = 0; i < 4; i++) {
        victim.node = i;
        pass(n, DET_MINUTE);
        assert_int_equal(n->control.effects, i + 1);
        node_close(n, i);
        node_open(n, i + 1);
    }
    pass(n, DET_MINUTE);
    assert_int_equal(n->control.effects, 4);
    assert_int_equal(node_counts(n, 4).effects_dead, 1);
    assert_int_equal(n->control.incident.code, DET_ERR_UNFINISHED);
    nodes_close(n);
}

static void foreign_lock_only_delays_the_orphaned_effect(void **unused)
{
    struct nodes *n = nodes_open(2, few);
    struct victim victim = { n, 0 };
    struct det_lock *lock;

    (void)unused;
    n->control.in_effect = kill_node;
    n->control.context = &victim;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    assert_int_equal(node_send(n, 0, "o-1", PAY), 0);
    assert_int_equal(det_sim_settle(n->sim), 0);
    n->control.in_effect = NULL;
    lock = node_lock(n, 1, "o-1", NULL);
    pass(n, DET_MINUTE);
    assert_int_equal(n->control.effects, 1);
    assert_int_equal(node_counts(n, 1).adopted, 2);
    det_lock_close(lock);
    pass(n, 2 * DET_SECOND);
    assert_int_equal(n->control.effects, 2);
    assert_int_equal(n->control.attempt, 1);
    assert_int_equal(node_counts(n, 1).effects_done, 1);
    nodes_close(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_effect_that_ends_its_process_becomes_a_dead_letter),
        cmocka_unit_test(a_dead_one_that_is_retried_begins_again),
        cmocka_unit_test(an_orphaned_effect_waits_after_it_ended_a_process_again),
        cmocka_unit_test(orphaned_effect_counts_ordinary_failures),
        cmocka_unit_test(no_attempt_begins_that_cannot_be_recorded),
        cmocka_unit_test(attempt_record_with_a_lost_answer_is_not_an_attempt),
        cmocka_unit_test(instance_with_an_unknown_record_result_stays_in_memory),
        cmocka_unit_test(effect_waiting_for_a_thread_is_not_an_attempt),
        cmocka_unit_test(an_effect_that_each_process_postpones_never_dies),
        cmocka_unit_test(effect_postponed_during_close_is_not_an_attempt),
        cmocka_unit_test(postponed_effect_runs_despite_its_remaining_record),
        cmocka_unit_test(effect_that_kills_every_node_becomes_a_dead_letter),
        cmocka_unit_test(foreign_lock_only_delays_the_orphaned_effect),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
