/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract_wait_test.c - who waits for whom: one writer per instance, deadlines of hooks and of
 * senders, calls from inside, and closing while something runs. In simulated threads. */
#include <detent/driver/loop.h>

#include "runtime/contract_test.h"

/* A second thread of the simulation that runs one function. */
struct second {
    struct lab *lab;
    struct det_loop *loop;
    struct det_post post;
    const char *instance;
    struct probe_event event;
    det_time ended_at;
    int result;
};

static void second_send(void *argument)
{
    struct second *second = argument;
    struct det_runtime *runtime = second->lab->runtime;

    second->result = probe_send(runtime, second->instance, second->event, NULL);
    second->ended_at = det_world_now(second->lab->world, DET_CLOCK_MONOTONIC);
}

static void second_start(struct second *second)
{
    second->post = (struct det_post){ .run = second_send, .argument = second };
    second->result = 1;
    assert_int_equal(det_loop_open(second->lab->world, NULL, &second->loop), 0);
    assert_int_equal(det_loop_start(second->loop, "second"), 0);
    det_loop_post(second->loop, &second->post);
}

static void second_end(struct second *second)
{
    det_loop_stop(second->loop);
    det_loop_close(second->loop);
}

static det_time clock_of(struct lab *lab)
{
    return det_world_now(lab->world, DET_CLOCK_MONOTONIC);
}

struct inside {
    int results[8];
    unsigned now, most;
    det_time nap;
};

static int nap_in_touch(struct lab *lab, const char *name, const struct det_move *move)
{
    struct inside *inside = lab->context;

    if (strcmp(name, "check_touch") == 0 && strcmp(move->instance, "a") == 0) {
        inside->now++;
        if (inside->now > inside->most)
            inside->most = inside->now;
        lab_nap(lab, inside->nap);
        inside->now--;
    }
    return 0;
}

static void instance_has_one_writer_at_a_time(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct lab *lab = lab_open_with(seed, NULL, NULL);
        struct inside inside = { .nap = DET_SECOND };
        struct second others[4];

        lab_busy(lab, "a");
        lab->hook = nap_in_touch;
        lab->context = &inside;
        for (size_t i = 0; i < 4; i++) {
            others[i] = (struct second){ .lab = lab, .instance = "a", .event = probe_touch() };
            second_start(&others[i]);
        }
        lab_advance(lab, 5 * DET_SECOND);
        for (size_t i = 0; i < 4; i++) {
            second_end(&others[i]);
            assert_int_equal(others[i].result, 0);
        }
        assert_int_equal(inside.most, 1);
        assert_int_equal(lab_get(lab, "a").sequence, 5);
        lab_close(lab);
    }
}

static void different_instances_do_not_wait_for_each_other(void **unused)
{
    struct det_runtime_options options = { .shards = 1 };
    struct lab *lab = lab_open_with(1, NULL, &options);
    struct inside inside = { .nap = DET_SECOND };
    struct second other = { .lab = lab, .instance = "a", .event = probe_touch() };
    det_time begun;

    (void)unused;
    lab_busy(lab, "a");
    lab_busy(lab, "b");
    lab->hook = nap_in_touch;
    lab->context = &inside;
    second_start(&other);
    lab_settle(lab);
    assert_int_equal(inside.now, 1);
    begun = clock_of(lab);
    lab_send(lab, "b", probe_touch());
    assert_int_equal(lab_get(lab, "a").sequence, 1);
    assert_int_equal(clock_of(lab), begun);
    assert_int_equal(inside.now, 1);
    lab_advance(lab, 2 * DET_SECOND);
    second_end(&other);
    assert_int_equal(other.result, 0);
    lab_close(lab);
}

static void assert_sender_waits(det_time deadline, det_time expected)
{
    struct det_runtime_options options = { .hook_deadline = DET_NEVER, .send_deadline = deadline };
    struct lab *lab = lab_open_with(1, NULL, &options);
    struct inside inside = { .nap = 12 * DET_SECOND };
    struct second other = { .lab = lab, .instance = "a", .event = probe_touch() };
    struct det_error error = { 0 };
    det_time begun;

    lab_busy(lab, "a");
    lab->hook = nap_in_touch;
    lab->context = &inside;
    second_start(&other);
    lab_settle(lab);
    begun = clock_of(lab);
    assert_int_equal(
        probe_send_with(lab->runtime, "a", probe_back(), NULL, NULL, &error), DET_ERR_TIMEOUT);
    assert_int_equal(clock_of(lab) - begun, expected);
    assert_int_equal(error.code, DET_ERR_TIMEOUT);
    assert_int_equal(error.waited, expected);
    lab_advance(lab, 12 * DET_SECOND);
    second_end(&other);
    assert_int_equal(other.result, 0);
    assert_int_equal(lab_get(lab, "a").sequence, 2);
    lab_close(lab);
}

static void a_sender_waits_for_the_writer_until_its_deadline(void **unused)
{
    (void)unused;
    assert_sender_waits(0, 10 * DET_SECOND);
    assert_sender_waits(3 * DET_SECOND, 3 * DET_SECOND);
}

static int nap_everywhere(struct lab *lab, const char *name, const struct det_move *move)
{
    struct inside *inside = lab->context;

    (void)name;
    (void)move;
    lab_nap(lab, inside->nap);
    return 0;
}

static void guards_and_hooks_of_one_send_have_five_seconds_together(void **unused)
{
    struct lab *lab = lab_open();
    struct inside inside = { .nap = 1300 * DET_MILLISECOND };
    struct det_error error = { 0 };
    struct lab_picture *before;

    (void)unused;
    lab_start(lab, "a");
    lab->context = &inside;
    lab->hook = nap_everywhere;
    before = lab_picture(lab, "a");
    assert_int_equal(
        probe_send_with(lab->runtime, "a", lab_go(), NULL, NULL, &error), DET_ERR_TIMEOUT);
    assert_int_equal(error.code, DET_ERR_TIMEOUT);
    assert_string_equal(error.state, "idle");
    assert_string_equal(error.action, "enter_busy");
    assert_int_equal(error.waited, 5200 * DET_MILLISECOND);
    lab_assert_unchanged(lab, "a", before);
    inside.nap = 1200 * DET_MILLISECOND;
    lab_send(lab, "a", lab_go());
    lab_close(lab);
}

static void hook_deadline_never_means_no_deadline(void **unused)
{
    struct det_runtime_options options = { .hook_deadline = DET_NEVER };
    struct lab *lab = lab_open_with(1, NULL, &options);
    struct inside inside = { .nap = DET_HOUR };

    (void)unused;
    lab_start(lab, "b");
    lab_send(lab, "b", probe_rest());
    lab_start(lab, "a");
    lab_send(lab, "a", probe_rest());
    lab->context = &inside;
    lab->hook = nap_everywhere;
    lab_send(lab, "a", probe_back());
    assert_int_equal(lab_get(lab, "a").state, PROBE_IDLE);
    lab_close(lab);
}

static int send_from_inside(struct lab *lab, const char *name, const struct det_move *move)
{
    struct inside *inside = lab->context;

    if (strcmp(move->instance, "a") != 0 || inside->now > 0)
        return 0;
    if (lab->deny != NULL && strcmp(lab->deny, name) != 0)
        return 0;
    inside->now++;
    inside->results[0] = probe_send(lab->runtime, "a", probe_touch(), NULL);
    inside->results[1] = probe_instance_cancel(lab->runtime, "a", "inside", NULL);
    inside->results[2] = probe_send(lab->runtime, "b", probe_touch(), NULL);
    return 0;
}

static void user_code_must_not_send_to_its_own_instance(void **unused)
{
    static const char *const places[] = { "may_go", "exit_idle", "check_go", "enter_busy" };

    (void)unused;
    for (size_t i = 0; i < 4; i++) {
        struct lab *lab = lab_open();
        struct inside inside = { .results = { 1, 1, 1 } };

        lab_start(lab, "a");
        lab_start(lab, "b");
        lab->deny = places[i];
        lab->context = &inside;
        lab->hook = send_from_inside;
        assert_true(probe_send(lab->runtime, "a", lab_go(), NULL) < 0);
        assert_int_equal(inside.results[0], DET_ERR_BUSY);
        assert_int_equal(inside.results[1], DET_ERR_BUSY);
        assert_int_equal(inside.results[2], 0);
        lab->deny = NULL;
        lab_send(lab, "a", lab_go());
        assert_int_equal(lab_get(lab, "a").sequence, 1);
        lab_close(lab);
    }
}

static void observe_and_send(struct lab *lab, const struct det_note *note)
{
    struct inside *inside = lab->context;

    if (note->sequence == 1)
        inside->results[0] = probe_send(lab->runtime, "a", probe_touch(), NULL);
}

static void an_observer_must_not_send_to_the_reported_instance(void **unused)
{
    struct lab *lab = lab_open();
    struct inside inside = { .results = { 1 } };

    (void)unused;
    lab_start(lab, "a");
    lab->context = &inside;
    lab->watch = observe_and_send;
    lab_send(lab, "a", lab_go());
    assert_int_equal(inside.results[0], DET_ERR_BUSY);
    assert_int_equal(lab_get(lab, "a").sequence, 1);
    lab_close(lab);
}

static int nap_and_produce(struct lab *lab, struct det_effect_call *call, struct probe_event *ret)
{
    struct inside *inside = lab->context;

    (void)call;
    inside->now++;
    if (inside->now > inside->most)
        inside->most = inside->now;
    lab_nap(lab, inside->nap);
    inside->now--;
    *ret = probe_worked((struct load){ .amount = 1 });
    return DET_EFFECT_PRODUCED;
}

static void effects_run_on_as_many_threads_as_the_pool_has(void **unused)
{
    static const uint32_t threads[] = { 0, 1, 3 };

    (void)unused;
    for (size_t n = 0; n < 3; n++) {
        struct det_runtime_options options = { .pool_threads = threads[n] };
        struct lab *lab = lab_open_with(1, NULL, &options);
        struct inside inside = { .nap = DET_SECOND };
        unsigned expected = threads[n] ? threads[n] : 6; /* all of them */

        lab->job = nap_and_produce;
        lab->context = &inside;
        lab_busy(lab, "a");
        lab_busy(lab, "b");
        for (uint64_t i = 0; i < 3; i++) {
            lab_send(lab, "a", lab_work(i));
            lab_send(lab, "b", lab_work(i));
        }
        lab_advance(lab, 10 * DET_SECOND);
        assert_int_equal(lab->call_count, 6);
        assert_int_equal(inside.most, expected);
        lab_close(lab);
    }
}

static void closing_waits_for_running_effects(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct lab *lab = lab_open_with(seed, NULL, NULL);
        struct inside inside = { .nap = 20 * DET_SECOND };
        det_time begun;

        lab->job = nap_and_produce;
        lab->context = &inside;
        lab_busy(lab, "a");
        begun = clock_of(lab);
        lab_send(lab, "a", lab_work(1));
        lab_advance(lab, DET_SECOND);
        assert_int_equal(inside.now, 1);
        det_runtime_close(lab->runtime);
        assert_int_equal(inside.now, 0);
        assert_int_equal(clock_of(lab) - begun, 20 * DET_SECOND);
        inside.nap = 0;
        lab_runtime_open(lab);
        assert_int_equal(det_runtime_serve(lab->runtime, &probe_machine, NULL), 0);
        lab_advance(lab, DET_SECOND);
        assert_int_equal(lab_get(lab, "a").sequence, 3);
        for (size_t i = 1; i < lab->call_count; i++)
            assert_string_equal(lab->calls[i].key, lab->calls[0].key);
        lab_close(lab);
    }
}

static void effects_waiting_at_close_run_in_the_next_runtime(void **unused)
{
    struct det_runtime_options options = { .pool_threads = 1 };
    struct lab *lab = lab_open_with(1, NULL, &options);
    struct inside inside = { .nap = DET_SECOND };
    bool ran[5] = { false };

    (void)unused;
    lab->job = nap_and_produce;
    lab->context = &inside;
    lab_busy(lab, "a");
    for (uint64_t i = 0; i < 5; i++)
        lab_send(lab, "a", lab_work(i));
    lab_reopen(lab);
    lab_advance(lab, 20 * DET_SECOND);
    for (size_t i = 0; i < lab->call_count; i++)
        ran[lab->calls[i].amount] = true;
    for (size_t i = 0; i < 5; i++)
        assert_true(ran[i]);
    assert_int_equal(lab_get(lab, "a").sequence, 11);
    lab_close(lab);
}

static void sends_under_way_at_the_close_end_with_closed_or_their_answer(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct lab *lab = lab_open_with(seed, NULL, NULL);
        struct inside inside = { .nap = DET_SECOND };
        struct second others[3];
        uint64_t taken = 0;

        lab_busy(lab, "a");
        lab->hook = nap_in_touch;
        lab->context = &inside;
        for (size_t i = 0; i < 3; i++) {
            others[i] = (struct second){ .lab = lab, .instance = "a", .event = probe_touch() };
            second_start(&others[i]);
        }
        lab_settle(lab);
        assert_int_equal(inside.now, 1);
        det_runtime_close(lab->runtime);
        assert_int_equal(inside.now, 0);
        for (size_t i = 0; i < 3; i++) {
            second_end(&others[i]);
            assert_true(others[i].result == 0 || others[i].result == DET_ERR_CLOSED);
            taken += others[i].result == 0;
        }
        lab_runtime_open(lab);
        assert_int_equal(lab_get(lab, "a").sequence, 1 + taken);
        lab_close(lab);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instance_has_one_writer_at_a_time),
        cmocka_unit_test(different_instances_do_not_wait_for_each_other),
        cmocka_unit_test(a_sender_waits_for_the_writer_until_its_deadline),
        cmocka_unit_test(guards_and_hooks_of_one_send_have_five_seconds_together),
        cmocka_unit_test(hook_deadline_never_means_no_deadline),
        cmocka_unit_test(user_code_must_not_send_to_its_own_instance),
        cmocka_unit_test(an_observer_must_not_send_to_the_reported_instance),
        cmocka_unit_test(effects_run_on_as_many_threads_as_the_pool_has),
        cmocka_unit_test(closing_waits_for_running_effects),
        cmocka_unit_test(sends_under_way_at_the_close_end_with_closed_or_their_answer),
        cmocka_unit_test(effects_waiting_at_close_run_in_the_next_runtime),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
