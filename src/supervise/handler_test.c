/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* handler_test.c - handler-supervised: the component's dispatch functions call a handler that its
 * user gave. */
#include <detent/sim.h>

#define FSM_SPEC "supervise/stage_test.fsm"
#include <detent/fsm/declare.h>

#include "lib/test.h"

/* The part that a user writes. */
struct stage_handler {
    int (*process)(void *user, int item);
    int (*drain)(void *user);
    int prepared; /* what preparing comes to */
    void *user;
};

/* The part of the supervisor, which does not own the handler. */
struct stage {
    struct det_component component;
    const struct stage_handler *handler;
    int next;
};

#define FSM_SPEC "supervise/stage_test.fsm"
#include <detent/fsm/define.h>

static int work(struct stage *stage, struct stage_event *ret)
{
    int r;

    if (stage->next == 3) {
        *ret = stage_empty();
        return DET_DIRECTIVE_TRANSITION;
    }
    r = stage->handler->process(stage->handler->user, stage->next++);
    return r < 0 ? r : DET_DIRECTIVE_AGAIN;
}

/* The entry hook of the initial state: there is no event that led there. */
static int prepare(struct stage *stage, const struct stage_event *event)
{
    assert_null(event);
    return stage->handler->prepared;
}

static int flush(struct stage *stage, const struct stage_event *event, struct stage_event *ret)
{
    (void)event;
    (void)ret;
    return stage->handler->drain(stage->handler->user);
}

struct fixture {
    struct det_sim *sim;
    struct det_loop *loop;
    struct det_executor *executor;
    struct stage stage;
    char done[32];
    int refused; /* the item that the handler cannot process */
};

static int process(void *user, int item)
{
    struct fixture *fixture = user;
    size_t length = strlen(fixture->done);

    if (item == fixture->refused)
        return det_component_fail(&fixture->stage.component, DET_ERR_RANGE, "item %d", item);
    snprintf(fixture->done + length, sizeof fixture->done - length, "%d ", item);
    return 0;
}

static int drain(void *user)
{
    struct fixture *fixture = user;
    size_t length = strlen(fixture->done);

    snprintf(fixture->done + length, sizeof fixture->done - length, "drained");
    return 0;
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    fixture->refused = -1;
    assert_int_equal(det_sim_open(NULL, &fixture->sim, NULL), 0);
    assert_int_equal(det_loop_open(det_sim_world(fixture->sim), NULL, &fixture->loop), 0);
    assert_int_equal(det_executor_open(fixture->loop, NULL, &fixture->executor, NULL), 0);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    det_executor_close(fixture->executor);
    det_loop_close(fixture->loop);
    det_sim_close(fixture->sim);
    free(fixture);
    return 0;
}

static struct det_component_end run(struct fixture *fixture)
{
    struct stage_handler handler = { process, drain, 0, fixture };
    struct det_component_end end;
    struct det_handle *handle;

    assert_int_equal(
        stage_supervise(fixture->executor, &fixture->stage, &handler, NULL, &handle, NULL), 0);
    assert_int_equal(stage_handle_send(handle, stage_begin()), 0);
    while (det_loop_turn(fixture->loop, 0) > 0)
        continue;
    assert_int_equal(det_handle_wait(handle, 0, &end), 0);
    det_handle_close(handle);
    return end;
}

static void dispatch_functions_call_the_handler(void **state)
{
    struct fixture *fixture = *state;
    struct det_component_end end = run(fixture);

    assert_int_equal(end.state, STAGE_DONE);
    assert_int_equal(end.failure.code, 0);
    assert_string_equal(fixture->done, "0 1 2 drained");
}

static void an_error_of_the_handler_drives_the_machine(void **state)
{
    struct fixture *fixture = *state;
    struct det_component_end end;

    fixture->refused = 1;
    end = run(fixture);
    assert_int_equal(end.state, STAGE_FAILED);
    assert_string_equal(
        end.failure.text, "dispatch of working: item 1: a value is out of range for its field");
    assert_false(end.failure.is_last_resort);
}

static void a_failing_entry_hook_of_the_initial_state_drives_the_machine(void **state)
{
    struct fixture *fixture = *state;
    struct stage_handler handler = { process, drain, DET_ERR_BUSY, fixture };
    struct det_component_end end;
    struct det_handle *handle;

    assert_int_equal(
        stage_supervise(fixture->executor, &fixture->stage, &handler, NULL, &handle, NULL), 0);
    /* An event that comes before the first turn finds that it has ended. */
    assert_int_equal(stage_offer(&fixture->stage, stage_begin()), DET_ERR_CLOSED);
    assert_int_equal(det_handle_wait(handle, 0, &end), 0);
    assert_int_equal(end.state, STAGE_FAILED);
    assert_string_equal(end.failure.text, "entry hook of ready: in use; try again");
    det_handle_close(handle);
}

static void the_initial_state_has_its_timeout(void **state)
{
    struct fixture *fixture = *state;
    struct stage_handler handler = { process, drain, 0, fixture };
    det_time start = det_loop_now(fixture->loop);
    struct det_handle *handle;

    assert_int_equal(
        stage_supervise(fixture->executor, &fixture->stage, &handler, NULL, &handle, NULL), 0);
    assert_int_equal(det_loop_turn(fixture->loop, 0), 1);
    assert_int_equal(stage_handle_state(handle), STAGE_READY);
    while (!det_handle_has_ended(handle))
        assert_true(det_loop_turn(fixture->loop, DET_NEVER) > 0);
    assert_int_equal(det_loop_now(fixture->loop), start + DET_MINUTE);
    assert_string_equal(fixture->done, "0 1 2 drained");
    det_handle_close(handle);
}

static void without_a_handler_nothing_is_supervised(void **state)
{
    struct fixture *fixture = *state;
    struct det_handle *handle = NULL;
    struct det_error error;

    assert_int_equal(
        stage_supervise(fixture->executor, &fixture->stage, NULL, NULL, &handle, &error),
        DET_ERR_INVALID);
    assert_string_equal(error.text, "stage is not supervised without a handler");
    assert_false(det_component_is_supervised(&fixture->stage.component));
    assert_null(handle);
}

static void the_handler_of_a_component_that_lives_is_not_replaced(void **state)
{
    struct fixture *fixture = *state;
    struct stage_handler first = { process, drain, 0, fixture }, second = first;
    struct det_supervise_options options = { .without_handle = true };

    assert_int_equal(
        stage_supervise(fixture->executor, &fixture->stage, &first, &options, NULL, NULL), 0);
    assert_int_equal(
        stage_supervise(fixture->executor, &fixture->stage, &second, &options, NULL, NULL),
        DET_ERR_EXISTS);
    assert_ptr_equal(fixture->stage.handler, &first);
    assert_int_equal(stage_offer(&fixture->stage, stage_error()), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(dispatch_functions_call_the_handler, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_error_of_the_handler_drives_the_machine, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_failing_entry_hook_of_the_initial_state_drives_the_machine, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_initial_state_has_its_timeout, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_handler_nothing_is_supervised, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_handler_of_a_component_that_lives_is_not_replaced, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
