/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* template_kind_test.c - what the templates of worker/ make of rows: kinds in one file, one
 * with all there is and one with as little as there may be;
 * a third one observes nothing. */
#define WORKER_LOCAL
#define WORKER_SPEC "worker/template_kind_link_test.worker"
#include <detent/worker/declare.h>
#define WORKER_LOCAL
#define WORKER_SPEC "worker/template_kind_lamp_test.worker"
#include <detent/worker/declare.h>
#define WORKER_LOCAL
#define WORKER_SPEC "worker/template_kind_blind_test.worker"
#include <detent/worker/declare.h>

struct link_deps {
    int opened, closed, up;
};

#define WORKER_LOCAL
#define WORKER_SPEC "worker/template_kind_link_test.worker"
#include <detent/worker/define.h>
#define WORKER_LOCAL
#define WORKER_SPEC "worker/template_kind_lamp_test.worker"
#include <detent/worker/define.h>
#define WORKER_LOCAL
#define WORKER_SPEC "worker/template_kind_blind_test.worker"
#include <detent/worker/define.h>

#include "lib/test.h"

#if defined(WORKER_SPEC) || defined(WORKER_NAME) || defined(WORKER_PREFIX) ||              \
    defined(WORKER_CONFIG) || defined(WORKER_DESIRED) || defined(WORKER_OBSERVED) ||       \
    defined(WORKER_DEPS) || defined(WORKER_DERIVE) || defined(WORKER_CHILDREN) ||          \
    defined(WORKER_EVERY) || defined(WORKER_TIMEOUT) || defined(WORKER_ERRORS) ||          \
    defined(WORKER_BLIND) || defined(WORKER_LOCAL) || defined(STATE) || defined(ACTION) || \
    defined(STOP) || defined(TIMEOUT) || defined(SECONDS) || defined(USES) || defined(RECORD)
#error "the template leaves a macro behind"
#endif

_Static_assert(LINK_STOPPED == 0 && LINK_CLOSING == 4 && link_state_count == 5, "states");
_Static_assert(LINK_CONNECT == 0 && LINK_CLOSE == 1 && link_action_count == 2, "actions");
_Static_assert(LAMP_ON == 1 && lamp_state_count == 2 && lamp_action_count == 0, "the other kind");

static struct link_next link_in_stopped(const struct link_view *view)
{
    (void)view;
    return link_goto(LINK_CONNECTING, "start wanted");
}

static struct link_next link_in_connecting(const struct link_view *view)
{
    if (view->observed->is_up)
        return link_goto(LINK_UP, "it is up");
    return link_do(LINK_CONNECT, det_reason(view->all, "%s is down", view->desired->host));
}

static struct link_next link_in_up(const struct link_view *view)
{
    if (view->stop_wanted)
        return link_hold("the stop comes by itself");
    return view->observed->is_up ? link_hold("it is up") : link_restart("it is lost");
}

static struct link_next link_in_shaky(const struct link_view *view)
{
    (void)view;
    return link_goto(LINK_UP, "it is well");
}

static struct link_next link_in_closing(const struct link_view *view)
{
    if (view->observed->is_up)
        return link_do(LINK_CLOSE, "it is up");
    return link_goto(LINK_STOPPED, "it is closed");
}

static struct blind_next blind_in_off(const struct blind_view *view)
{
    (void)view;
    return blind_goto(BLIND_ON, "is to run");
}

static struct blind_next blind_in_on(const struct blind_view *view)
{
    (void)view;
    return blind_hold("it runs");
}

static int link_do_connect(
    struct det_worker_context *context, struct link_deps *deps, const struct link_desired *desired)
{
    (void)context;
    deps->up = desired->port;
    return 0;
}

static int link_do_close(
    struct det_worker_context *context, struct link_deps *deps, const struct link_desired *desired)
{
    (void)context;
    (void)desired;
    deps->up = 0;
    return DET_ERR_IO;
}

static int link_collect(
    struct det_worker_context *context, struct link_deps *deps, const struct link_desired *desired,
    struct link_observed *observed)
{
    (void)context;
    observed->is_up = deps->up == desired->port;
    return 0;
}

static int link_open(struct det_worker_context *context, struct link_deps *deps)
{
    (void)context;
    deps->opened++;
    return 0;
}

static void link_close(struct link_deps *deps)
{
    deps->closed++;
}

static int link_derive(
    struct det_derive *derive, const struct link_config *config, struct link_desired *desired)
{
    (void)derive;
    (void)snprintf(desired->host, sizeof desired->host, "%s", config->address);
    desired->port = 1883;
    return 0;
}

static int link_children(const struct link_view *view, struct det_children *children)
{
    return children->add(
        children,
        &(struct det_child_spec){ .name = view->desired->host, .run_in = DET_IN(LINK_UP) });
}

static struct lamp_next lamp_in_off(const struct lamp_view *view)
{
    (void)view;
    return lamp_goto(LAMP_ON, "it gets dark");
}

static struct lamp_next lamp_in_on(const struct lamp_view *view)
{
    (void)view;
    return lamp_hold("it is dark");
}

static int lamp_collect(
    struct det_worker_context *context, struct det_empty *deps, const struct det_empty *desired,
    struct det_empty *observed)
{
    (void)context;
    (void)deps;
    (void)desired;
    (void)observed;
    return 0;
}

static void kinds_are_sound_and_have_their_names(void **state)
{
    struct det_error error;

    (void)state;
    assert_int_equal(det_worker_kind_check(&link_kind, &error), 0);
    assert_int_equal(det_worker_kind_check(&lamp_kind, &error), 0);
    assert_string_equal(link_kind.name, "link");
    assert_string_equal(lamp_kind.name, "lamp");
}

static void states_have_name_phase_stop_and_function(void **state)
{
    static const struct {
        const char *name;
        enum det_phase phase;
        uint16_t on_stop;
    } expected[] = {
        { "stopped", DET_PHASE_STOPPED, 0 },
        { "connecting", DET_PHASE_STARTING, LINK_STOPPED },
        { "up", DET_PHASE_RUNNING, LINK_CLOSING },
        { "shaky", DET_PHASE_DEGRADED, LINK_CLOSING },
        { "closing", DET_PHASE_STOPPING, 0 },
    };

    (void)state;
    assert_int_equal(link_kind.state_count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(link_kind.states[i].name, expected[i].name);
        assert_int_equal(link_kind.states[i].phase, expected[i].phase);
        assert_int_equal(link_kind.states[i].on_stop, expected[i].on_stop);
        assert_non_null(link_kind.states[i].next);
    }
    assert_int_equal(lamp_kind.state_count, 2);
    assert_int_equal(lamp_kind.states[1].on_stop, LAMP_OFF);
}

static void actions_have_name_timeout_and_function(void **state)
{
    struct link_desired desired = { .port = 7 };
    struct link_deps deps = { 0 };

    (void)state;
    assert_int_equal(link_kind.action_count, 2);
    assert_string_equal(link_kind.actions[0].name, "connect");
    assert_int_equal(link_kind.actions[0].timeout, 0);
    assert_string_equal(link_kind.actions[1].name, "close");
    assert_int_equal(link_kind.actions[1].timeout, 2 * DET_MINUTE);
    assert_int_equal(link_kind.actions[LINK_CONNECT].run(NULL, &deps, &desired), 0);
    assert_int_equal(deps.up, 7);
    assert_int_equal(link_kind.actions[LINK_CLOSE].run(NULL, &deps, &desired), DET_ERR_IO);
    assert_int_equal(lamp_kind.action_count, 0);
}

static const char *DET_PRINTF(2, 3) format(struct det_reason *reason, const char *text, ...)
{
    va_list arguments;

    va_start(arguments, text);
    (void)vsnprintf(reason->text, sizeof reason->text, text, arguments);
    va_end(arguments);
    return reason->text;
}

static void next_sees_the_typed_view_and_answers_one_thing(void **state)
{
    struct link_desired desired = { .host = "plc" };
    struct link_observed observed = { .is_up = false };
    struct det_reason scratch = { .format = format };
    struct det_worker_view view = { .desired = &desired,
                                    .observed = &observed,
                                    .scratch = &scratch };
    struct det_next next = link_kind.states[LINK_CONNECTING].next(&view);

    (void)state;
    assert_int_equal(next.kind, DET_NEXT_DO);
    assert_int_equal(next.what, LINK_CONNECT);
    assert_string_equal(next.reason, "plc is down");
    next = link_kind.states[LINK_UP].next(&view);
    assert_int_equal(next.kind, DET_NEXT_RESTART);
    assert_string_equal(next.reason, "it is lost");
    view.stop_wanted = true;
    assert_int_equal(link_kind.states[LINK_UP].next(&view).kind, DET_NEXT_HOLD);
    observed.is_up = true;
    next = link_kind.states[LINK_CONNECTING].next(&view);
    assert_int_equal(next.kind, DET_NEXT_GOTO);
    assert_int_equal(next.what, LINK_UP);
    next = lamp_kind.states[LAMP_OFF].next(&view);
    assert_int_equal(next.kind, DET_NEXT_GOTO);
    assert_int_equal(next.what, LAMP_ON);
}

static void template_kind_calls_the_typed_user_functions(void **state)
{
    struct link_config config = { .address = "plc" };
    struct link_desired desired = { .port = 0 };
    struct link_observed observed;
    struct link_deps deps = { 0 };

    (void)state;
    assert_int_equal(link_kind.deps_size, sizeof deps);
    assert_int_equal(link_kind.open(NULL, &deps), 0);
    assert_int_equal(deps.opened, 1);
    assert_int_equal(link_kind.derive(NULL, &config, &desired), 0);
    assert_string_equal(desired.host, "plc");
    assert_int_equal(link_kind.collect(NULL, &deps, &desired, &observed), 0);
    assert_false(observed.is_up);
    link_kind.close(&deps);
    assert_int_equal(deps.closed, 1);
    assert_int_equal(link_kind.observe_every, 5 * DET_SECOND);
    assert_int_equal(link_kind.observe_timeout, 4 * DET_SECOND);
    assert_true(link_kind.errors_are_observed);
    assert_string_equal(det_record_of(link_kind.config)->name, "link_config");
    assert_string_equal(det_record_of(link_kind.desired)->name, "link_desired");
    assert_string_equal(det_record_of(link_kind.observed)->name, "link_observed");
}

static void absent_parts_of_a_kind_are_null(void **state)
{
    (void)state;
    assert_null(lamp_kind.open);
    assert_null(lamp_kind.close);
    assert_null(lamp_kind.derive);
    assert_null(lamp_kind.children);
    assert_int_equal(lamp_kind.deps_size, 0);
    assert_int_equal(lamp_kind.observe_every, 0);
    assert_int_equal(lamp_kind.observe_timeout, 0);
    assert_false(lamp_kind.errors_are_observed);
    assert_null(det_record_of(lamp_kind.config));
    assert_null(det_record_of(lamp_kind.desired));
    assert_null(det_record_of(lamp_kind.observed));
    assert_int_equal(lamp_kind.collect(NULL, NULL, NULL, NULL), 0);
    assert_int_equal(
        lamp_kind.states[LAMP_ON].next(&(struct det_worker_view){ 0 }).kind, DET_NEXT_HOLD);
}

static void a_kind_that_is_blind_has_no_collect(void **state)
{
    struct det_error error;

    (void)state;
    assert_int_equal(det_worker_kind_check(&blind_kind, &error), 0);
    assert_null(blind_kind.collect);
    assert_non_null(lamp_kind.collect);
}

struct listed {
    struct det_children children; /* first: what link_children() is given */
    char name[16];
    uint64_t run_in;
};

static int add_child(struct det_children *children, const struct det_child_spec *spec)
{
    struct listed *listed = (struct listed *)children;

    (void)snprintf(listed->name, sizeof listed->name, "%s", spec->name);
    listed->run_in = spec->run_in;
    return 0;
}

static void template_kind_children_get_the_view(void **state)
{
    struct link_desired desired = { .host = "valve" };
    struct det_worker_view view = { .desired = &desired };
    struct listed listed = { .children = { add_child } };

    (void)state;
    assert_int_equal(link_kind.children(&view, &listed.children), 0);
    assert_string_equal(listed.name, "valve");
    assert_int_equal(listed.run_in, 1u << LINK_UP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_sound_and_have_their_names),
        cmocka_unit_test(states_have_name_phase_stop_and_function),
        cmocka_unit_test(actions_have_name_timeout_and_function),
        cmocka_unit_test(next_sees_the_typed_view_and_answers_one_thing),
        cmocka_unit_test(template_kind_calls_the_typed_user_functions),
        cmocka_unit_test(absent_parts_of_a_kind_are_null),
        cmocka_unit_test(a_kind_that_is_blind_has_no_collect),
        cmocka_unit_test(template_kind_children_get_the_view),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
