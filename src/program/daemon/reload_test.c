/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reload_test.c - the states of a reload: every event in every state, and what is remembered.
 * commands/reload_test.c tests plans and complete reloads. */
#include "daemon/reload_states.h"
#include "lib/test.h"

#include <detent/sim.h>

struct stage {
    struct up_reload reload; /* the first member */
    struct det_sim *sim;
    struct det_loop *loop;
    struct det_executor *executor;
};

static unsigned refusals;

static void refuse_client(struct up *up)
{
    struct stage *stage = (struct stage *)(void *)up;

    refusals += stage->reload.client.request != NULL;
    stage->reload.client.request = NULL;
}

static int open_stage(struct stage *stage, const struct det_allocator *allocator)
{
    const struct det_executor_options options = { .allocator = allocator };
    int r;

    *stage = (struct stage){ .reload = { .refuse_client = refuse_client } };
    stage->reload.up = (struct up *)(void *)stage;
    refusals = 0;
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = 1 }, &stage->sim, NULL), 0);
    assert_int_equal(det_loop_open(det_sim_world(stage->sim), NULL, &stage->loop), 0);
    r = det_executor_open(stage->loop, &options, &stage->executor, NULL);
    return r < 0 ? r : reload_supervise(&stage->reload, stage->executor);
}

static void close_stage(struct stage *stage)
{
    det_executor_close(stage->executor);
    det_loop_close(stage->loop);
    det_sim_close(stage->sim);
}

/* Only its address is used. */
static int request;
static const struct up_reload_client client = { .request = (struct up_request *)(void *)&request };
static const struct up_reload_client nobody;

/* In the order of reload.fsm. */
enum state { IDLE, WANTED, TRYING, PROBING, APPLYING, OVER, STATES };

static void assert_state(struct stage *stage, enum state state)
{
    assert_int_equal(det_component_state(&stage->reload.component), state);
    assert_int_equal(reload_is_probing(&stage->reload), state == PROBING);
}

/* Every event in every state. */

enum event { SIGNAL, REQUEST, TURN, PROBE, APPLY, ANSWER, FINISH, STOP, EVENTS };

static void give(struct stage *stage, enum event event)
{
    struct up_reload *reload = &stage->reload;

    switch (event) {
    case SIGNAL:
        reload_on_signal(reload);
        break;
    case REQUEST:
        (void)reload_on_request(reload, &nobody, false);
        break;
    case TURN:
        (void)reload_on_turn(reload);
        break;
    case PROBE:
        reload_on_probe(reload);
        break;
    case APPLY:
        reload_on_apply(reload);
        break;
    case ANSWER:
        reload_on_answer(reload);
        break;
    case FINISH:
        reload_on_finish(reload);
        break;
    case STOP:
        reload_on_stop(reload);
        break;
    case EVENTS:
        break;
    }
}

static void bring(struct stage *stage, enum state state)
{
    if (state == OVER) {
        give(stage, STOP);
    } else if (state != IDLE) {
        give(stage, REQUEST);
        if (state != WANTED)
            give(stage, TURN);
        if (state == PROBING)
            give(stage, PROBE);
        else if (state == APPLYING)
            give(stage, APPLY);
    }
    assert_state(stage, state);
}

/* An event does not change a state that has no row for it. */
static void every_event_in_every_state_matches_the_table(void **state)
{
    static const struct {
        enum state from;
        enum event event;
        enum state to;
    } moves[] = {
        { IDLE, REQUEST, WANTED }, { IDLE, STOP, OVER },        { WANTED, TURN, TRYING },
        { WANTED, STOP, OVER },    { TRYING, PROBE, PROBING },  { TRYING, APPLY, APPLYING },
        { TRYING, FINISH, IDLE },  { PROBING, ANSWER, WANTED }, { PROBING, FINISH, IDLE },
        { PROBING, STOP, OVER },   { APPLYING, FINISH, IDLE },
    };

    (void)state;
    for (unsigned from = IDLE; from < STATES; from++) {
        for (unsigned event = SIGNAL; event < EVENTS; event++) {
            struct stage stage;
            unsigned to = from;

            for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
                if (moves[i].from == from && moves[i].event == event)
                    to = moves[i].to;
            }
            assert_int_equal(open_stage(&stage, NULL), 0);
            bring(&stage, (enum state)from);
            give(&stage, (enum event)event);
            assert_state(&stage, (enum state)to);
            close_stage(&stage);
        }
    }
}

/* Remembered signals and answers. */

static void a_signal_begins_one_reload_when_it_can(void **state)
{
    struct stage stage;

    (void)state;
    assert_int_equal(open_stage(&stage, NULL), 0);
    assert_false(reload_on_turn(&stage.reload));
    reload_on_signal(&stage.reload);
    reload_on_signal(&stage.reload);
    assert_true(reload_on_turn(&stage.reload));
    assert_state(&stage, TRYING);
    /* A signal during a reload requests another one after it. */
    give(&stage, APPLY);
    reload_on_signal(&stage.reload);
    assert_false(reload_on_turn(&stage.reload));
    give(&stage, FINISH);
    assert_true(reload_on_turn(&stage.reload));
    give(&stage, FINISH);
    assert_false(reload_on_turn(&stage.reload));
    assert_state(&stage, IDLE);
    close_stage(&stage);
}

static void client_reload_precedes_a_signal_and_is_exclusive(void **state)
{
    struct stage stage;

    (void)state;
    assert_int_equal(open_stage(&stage, NULL), 0);
    reload_on_signal(&stage.reload);
    assert_true(reload_on_request(&stage.reload, &client, true));
    assert_ptr_equal(stage.reload.client.request, client.request);
    assert_true(stage.reload.is_plan);
    assert_false(reload_on_request(&stage.reload, &nobody, false));
    assert_ptr_equal(stage.reload.client.request, client.request);
    assert_true(reload_on_turn(&stage.reload));
    assert_true(stage.reload.is_signalled);
    assert_false(reload_on_request(&stage.reload, &nobody, false));
    stage.reload.client.request = NULL;
    give(&stage, FINISH);
    assert_false(stage.reload.is_plan);
    assert_true(reload_on_turn(&stage.reload));
    assert_false(stage.reload.is_signalled);
    close_stage(&stage);
}

static void store_answer_is_valid_for_one_reload(void **state)
{
    struct stage stage;

    (void)state;
    assert_int_equal(open_stage(&stage, NULL), 0);
    assert_true(reload_on_request(&stage.reload, &client, false));
    give(&stage, TURN);
    give(&stage, PROBE);
    give(&stage, ANSWER);
    assert_true(stage.reload.store_has_answered);
    assert_ptr_equal(stage.reload.client.request, client.request);
    give(&stage, TURN);
    give(&stage, APPLY);
    assert_true(stage.reload.store_has_answered);
    stage.reload.client.request = NULL;
    give(&stage, FINISH);
    assert_false(stage.reload.store_has_answered);
    close_stage(&stage);
}

static void a_stop_answers_the_client(void **state)
{
    static const enum state waiting[] = { WANTED, PROBING };

    (void)state;
    for (size_t i = 0; i < sizeof waiting / sizeof *waiting; i++) {
        struct stage stage;

        assert_int_equal(open_stage(&stage, NULL), 0);
        bring(&stage, waiting[i]);
        stage.reload.client = client;
        give(&stage, STOP);
        assert_int_equal(refusals, 1);
        give(&stage, STOP);
        assert_int_equal(refusals, 1);
        assert_false(reload_on_request(&stage.reload, &client, false));
        close_stage(&stage);
    }
}

static void apply_a_plan(void *argument)
{
    give(argument, APPLY);
}

static void leave_a_client(void *argument)
{
    give(argument, FINISH);
}

static void violated_invariant_aborts(void **state)
{
    struct stage stage;

    (void)state;
    assert_int_equal(open_stage(&stage, NULL), 0);
    assert_true(reload_on_request(&stage.reload, &client, true));
    give(&stage, TURN);
    assert_true(
        det_test_aborts(apply_a_plan, &stage, "the invariant of up_reload in state applying"));
    assert_true(
        det_test_aborts(leave_a_client, &stage, "the invariant of up_reload in state idle"));
    close_stage(&stage);
}

static int run_once(struct det_test_memory *memory, void *argument)
{
    struct stage *stage = argument;
    int r = open_stage(stage, &memory->allocator);

    if (r == 0) {
        bring(stage, APPLYING);
        give(stage, FINISH);
        bring(stage, OVER);
    }
    close_stage(stage);
    return r;
}

static void reload_survives_every_failed_allocation(void **state)
{
    struct stage stage;

    (void)state;
    det_test_each_failure(run_once, &stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_in_every_state_matches_the_table),
        cmocka_unit_test(a_signal_begins_one_reload_when_it_can),
        cmocka_unit_test(client_reload_precedes_a_signal_and_is_exclusive),
        cmocka_unit_test(store_answer_is_valid_for_one_reload),
        cmocka_unit_test(a_stop_answers_the_client),
        cmocka_unit_test(violated_invariant_aborts),
        cmocka_unit_test(reload_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
