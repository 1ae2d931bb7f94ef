/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* kind_test.c - every refusal of det_worker_kind_check(), and the names of phases and events. */
#include "lib/test.h"

#include <detent/workers.h>

static struct det_next hold(const struct det_worker_view *view)
{
    (void)view;
    return (struct det_next){ DET_NEXT_HOLD, 0, "nothing to do" };
}

static int act(struct det_worker_context *context, void *deps, const void *desired)
{
    (void)context;
    (void)deps;
    (void)desired;
    return 0;
}

static int collect(
    struct det_worker_context *context, void *deps, const void *desired, void *observed)
{
    (void)context;
    (void)deps;
    (void)desired;
    (void)observed;
    return 0;
}

/* A valid kind; each test breaks one thing of its copy. */
struct fixture {
    struct det_worker_state states[3];
    struct det_worker_action actions[2];
    struct det_worker_kind kind;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->states[0] = (struct det_worker_state){ "stopped", DET_PHASE_STOPPED, 0, hold };
    f->states[1] = (struct det_worker_state){ "up", DET_PHASE_RUNNING, 2, hold };
    f->states[2] = (struct det_worker_state){ "closing", DET_PHASE_STOPPING, 0, hold };
    f->actions[0] = (struct det_worker_action){ "connect", 0, act };
    f->actions[1] = (struct det_worker_action){ "close", DET_SECOND, act };
    f->kind = (struct det_worker_kind){
        .name = "link",
        .states = f->states,
        .state_count = 3,
        .actions = f->actions,
        .action_count = 2,
        .collect = collect,
    };
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static void refused(const struct fixture *f, const char *part)
{
    struct det_error error = { 0 };

    assert_int_equal(det_worker_kind_check(&f->kind, &error), DET_ERR_INVALID);
    if (!strstr(error.text, part))
        fail_msg("'%s' does not say '%s'", error.text, part);
}

static void a_sound_kind_is_taken(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(det_worker_kind_check(&f->kind, NULL), 0);
    f->kind.actions = NULL;
    f->kind.action_count = 0;
    assert_int_equal(det_worker_kind_check(&f->kind, NULL), 0);
}

static void a_kind_has_a_name(void **state)
{
    struct fixture *f = *state;
    char longer[DET_WORKER_NAME_MAX + 2];
    const char *const bad[] = { NULL, "", "Link", "a b", "a/b", longer };

    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        f->kind.name = bad[i];
        refused(f, "a kind of worker has a name");
    }
    longer[DET_WORKER_NAME_MAX] = '\0';
    f->kind.name = longer;
    assert_int_equal(det_worker_kind_check(&f->kind, NULL), 0);
}

static void kind_needs_states_and_respects_the_limits(void **state)
{
    struct fixture *f = *state;

    f->kind.state_count = 0;
    refused(f, "1 to 64 states");
    f->kind.state_count = DET_WORKER_STATES_MAX + 1;
    refused(f, "1 to 64 states");
    f->kind.state_count = 3;
    f->kind.states = NULL;
    refused(f, "1 to 64 states");
    f->kind.states = f->states;
    f->kind.action_count = DET_WORKER_ACTIONS_MAX + 1;
    refused(f, "at most 64 actions");
    f->kind.action_count = 1;
    f->kind.actions = NULL;
    refused(f, "at most 64 actions");
}

static void invalid_observation_settings_are_refused(void **state)
{
    struct fixture *f = *state;

    f->kind.observe_every = -1;
    refused(f, "negative time");
    f->kind.observe_every = 0;
    f->kind.observe_timeout = -1;
    refused(f, "negative time");
    f->kind.observe_timeout = 0;
    f->kind.collect = NULL;
    f->kind.observed = (struct det_record_ref){ .get = det_empty_record };
    refused(f, "no collect()");
}

static void the_first_state_is_stopped(void **state)
{
    struct fixture *f = *state;

    f->states[0].phase = DET_PHASE_STOPPING;
    refused(f, "first state stopped is not of the phase STOPPED");
    f->states[0].name = NULL;
    refused(f, "first state");
}

static void a_state_has_name_phase_and_function(void **state)
{
    struct fixture *f = *state;

    f->states[1].name = "Up";
    refused(f, "state 1 has no name");
    f->states[1].name = "up";
    f->states[1].next = NULL;
    refused(f, "state 1 has no name");
    f->states[1].next = hold;
    f->states[1].phase = (enum det_phase)7;
    refused(f, "no phase");
    f->states[1].phase = DET_PHASE_RUNNING;
    f->states[2].name = "up";
    refused(f, "two states are named up");
}

static void on_stop_must_lead_to_a_stopping_state(void **state)
{
    struct fixture *f = *state;

    f->states[1].on_stop = 3;
    refused(f, "state up does not stop");
    f->states[1].on_stop = 1;
    refused(f, "state up does not stop");
    f->states[1].on_stop = 0;
    assert_int_equal(det_worker_kind_check(&f->kind, NULL), 0);
    f->states[2].on_stop = 99;
    assert_int_equal(det_worker_kind_check(&f->kind, NULL), 0);
}

static void an_action_has_name_function_and_timeout(void **state)
{
    struct fixture *f = *state;

    f->actions[1].name = "";
    refused(f, "action 1 has no name");
    f->actions[1].name = "connect";
    refused(f, "two actions are named connect");
    f->actions[1].name = "close";
    f->actions[1].timeout = -1;
    refused(f, "negative timeout");
    f->actions[1].timeout = 0;
    f->actions[1].run = NULL;
    refused(f, "no function");
}

static const struct det_record *bad_record(void)
{
    static const struct det_record record = { .name = "bad record" };

    return &record;
}

static void reserved_document_fields_are_refused_in_records(void **state)
{
    static const struct det_field taken = { .name = "since",
                                            .kind = DET_KIND_BOOL,
                                            .size = sizeof(bool) };
    static const struct det_field wanted = { .name = "disabled",
                                             .kind = DET_KIND_BOOL,
                                             .size = sizeof(bool) };
    static const struct det_record observed = {
        .name = "seen", .size = sizeof(bool), .fields = &taken, .field_count = 1
    };
    static const struct det_record desired = {
        .name = "want", .size = sizeof(bool), .fields = &wanted, .field_count = 1
    };
    struct fixture *f = *state;

    f->kind.observed = (struct det_record_ref){ .record = &observed };
    refused(f, "record seen has a field since");
    f->kind.observed = (struct det_record_ref){ 0 };
    f->kind.desired = (struct det_record_ref){ .record = &desired };
    refused(f, "record want has a field disabled");
}

static void records_are_sound_and_a_config_is_derived(void **state)
{
    struct fixture *f = *state;

    f->kind.observed = (struct det_record_ref){ .get = bad_record };
    assert_true(det_worker_kind_check(&f->kind, NULL) < 0);
    f->kind.observed = (struct det_record_ref){ .get = NULL };
    f->kind.config = (struct det_record_ref){ .get = det_empty_record };
    refused(f, "a config record and no derive()");
}

static void phases_and_events_have_names(void **state)
{
    (void)state;
    assert_string_equal(det_phase_name(DET_PHASE_STOPPED), "stopped");
    assert_string_equal(det_phase_name(DET_PHASE_STOPPING), "stopping");
    assert_string_equal(det_phase_name((enum det_phase)9), "unknown");
    assert_string_equal(det_worker_event_name((enum det_worker_event_kind)9999), "unknown");
    assert_string_not_equal(det_worker_event_name((enum det_worker_event_kind)0), "unknown");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_sound_kind_is_taken),
        TEST(a_kind_has_a_name),
        TEST(kind_needs_states_and_respects_the_limits),
        TEST(invalid_observation_settings_are_refused),
        TEST(the_first_state_is_stopped),
        TEST(a_state_has_name_phase_and_function),
        TEST(on_stop_must_lead_to_a_stopping_state),
        TEST(an_action_has_name_function_and_timeout),
        TEST(records_are_sound_and_a_config_is_derived),
        TEST(reserved_document_fields_are_refused_in_records),
        TEST(phases_and_events_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
