/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_limits_test.c - what a supervisor refuses when it is opened: limits that make no sense
 * together, kinds that are none, with the reason; and what is left out has a default. */
#include "worker/behaviour_test.h"

static void assert_limits_refused(struct det_worker_limits limits, const char *text)
{
    struct lab_options options = behaviour_options(1);
    struct det_error error = { 0 };
    struct lab lab;
    int r;

    options.limits = limits;
    r = lab_try_open(&lab, options, &error);
    if (r != DET_ERR_INVALID || !strstr(error.text, text))
        fail_msg("%d is not a refusal with \"%s\": %s", r, text, error.text);
    lab_close(&lab);
}

static void limits_that_make_no_sense_together_are_refused_with_the_reason(void **state)
{
    (void)state;
    assert_limits_refused(
        (struct det_worker_limits){ .collector_timeout = 10 * DET_SECOND }, "collector_timeout");
    assert_limits_refused(
        (struct det_worker_limits){ .collector_timeout = 5 * DET_SECOND }, "stale_after");
    assert_limits_refused((struct det_worker_limits){ .stale_after = DET_SECOND }, "observe_every");
    assert_limits_refused(
        (struct det_worker_limits){ .observe_every = 10 * DET_SECOND }, "stale_after");
    assert_limits_refused(
        (struct det_worker_limits){ .observe_timeout = 10 * DET_SECOND }, "observe_timeout");
    assert_limits_refused(
        (struct det_worker_limits){ .stale_after = 2 * DET_SECOND }, "observe_timeout");
    assert_limits_refused((struct det_worker_limits){ .tick = 1001 * DET_MILLISECOND }, "tick");
    assert_limits_refused(
        (struct det_worker_limits){ .observe_every = 50 * DET_MILLISECOND }, "tick");
}

static void one_of_the_two_backoff_delays_is_enough(void **state)
{
    struct lab_options options = behaviour_options(1);
    struct det_error error = { 0 };
    struct lab lab;

    (void)state;
    options.limits.action_backoff.max = 100 * DET_MILLISECOND;
    options.limits.circuit_backoff.first = 2 * DET_MINUTE;
    if (lab_try_open(&lab, options, &error) < 0)
        fail_msg("%s", error.text);
    lab_close(&lab);
}

static void negative_limits_are_refused(void **state)
{
    (void)state;
#define NEGATIVE(name) assert_limits_refused((struct det_worker_limits){ .name = -1 }, #name)
    NEGATIVE(tick);
    NEGATIVE(observe_every);
    NEGATIVE(observe_timeout);
    NEGATIVE(stale_after);
    NEGATIVE(collector_timeout);
    NEGATIVE(stop_grace);
    NEGATIVE(restart_grace);
    NEGATIVE(action_timeout);
    NEGATIVE(deltas_age_max);
    NEGATIVE(compact_every);
#undef NEGATIVE
}

static void invalid_backoffs_and_intensities_are_refused(void **state)
{
    (void)state;
    assert_limits_refused(
        (struct det_worker_limits){ .action_backoff = { .first = -2 } }, "action_backoff");
    assert_limits_refused(
        (struct det_worker_limits){ .restart_backoff = { .factor = 0.5 } }, "restart_backoff");
    assert_limits_refused(
        (struct det_worker_limits){
            .circuit_backoff = { .first = 2 * DET_MINUTE, .max = DET_MINUTE } },
        "circuit_backoff");
    assert_limits_refused((struct det_worker_limits){ .restarts = { .window = -1 } }, "restarts");
    assert_limits_refused(
        (struct det_worker_limits){ .circuit = { .count = DET_INTENSITY_MAX + 1 } }, "circuit");
    assert_limits_refused((struct det_worker_limits){ .panics = { .window = -1 } }, "panics");
}

static void limits_at_their_boundary_are_accepted(void **state)
{
    static const struct det_worker_limits limits[] = {
        { .tick = DET_SECOND },
        { .collector_timeout = 10 * DET_SECOND + 1 },
        { .observe_timeout = 10 * DET_SECOND - 1 },
        { .observe_every = 10 * DET_SECOND - 1 },
        { .stop_grace = DET_NEVER, .restart_grace = DET_NEVER, .action_timeout = DET_NEVER },
        { .stale_after = DET_NEVER - 1, .collector_timeout = DET_NEVER },
        { .deltas_age_max = DET_NEVER, .compact_every = DET_NEVER },
        { .action_threads = 1, .collector_threads = 1, .action_queue = 1, .hung_max = 1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct lab_options options = behaviour_options(i + 1);
        struct lab lab;
        struct det_error error = { 0 };

        options.limits = limits[i];
        behaviour_begin(&lab, options, LAB_LINK, 15 * DET_SECOND);
        lab_assert_state(&lab, "lab/a", "up");
        assert_int_equal(
            det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_RESTART, NULL), 0);
        lab_run(&lab, 30 * DET_SECOND);
        lab_assert_state(&lab, "lab/a", "up");
        if (det_workers_stop(lab.workers, &error) < 0)
            fail_msg("%zu: %s", i, error.text);
        lab_close(&lab);
    }
}

static void assert_kind_refused(struct det_worker_kind kind, int code, const char *text)
{
    const struct det_worker_kind *kinds[] = { &kind, NULL };
    struct lab_options options = behaviour_options(1);
    struct det_error error = { 0 };
    struct lab lab;
    int r;

    options.kinds = kinds;
    r = lab_try_open(&lab, options, &error);
    if (r != code || !strstr(error.text, text))
        fail_msg("%d is not a refusal with \"%s\": %s", r, text, error.text);
    lab_close(&lab);
}

static struct det_worker_kind with_states(const struct det_worker_state *states, uint16_t count)
{
    struct det_worker_kind kind = puppet_kind;

    kind.states = states;
    kind.state_count = count;
    return kind;
}

static void invalid_kinds_are_refused(void **state)
{
    static const struct det_worker_state running_first[] = {
        { "running", DET_PHASE_RUNNING, 0, puppet_next },
    };
    static const struct det_worker_state no_way[] = {
        { "stopped", DET_PHASE_STOPPED, 0, puppet_next },
        { "running", DET_PHASE_RUNNING, 1, puppet_next },
    };
    static const struct det_worker_state twice[] = {
        { "stopped", DET_PHASE_STOPPED, 0, puppet_next },
        { "stopped", DET_PHASE_STOPPING, 0, puppet_next },
    };
    static const struct det_worker_state no_next[] = {
        { "stopped", DET_PHASE_STOPPED, 0, NULL },
    };
    struct det_worker_kind kind = puppet_kind;

    (void)state;
    kind.name = "link";
    assert_kind_refused(kind, DET_ERR_EXISTS, "link");
    kind.name = "application";
    assert_kind_refused(kind, DET_ERR_EXISTS, "application");
    kind.name = "";
    assert_kind_refused(kind, DET_ERR_INVALID, "name");
    kind.name = NULL;
    assert_kind_refused(kind, DET_ERR_INVALID, "name");
    kind = puppet_kind;
    kind.collect = NULL;
    assert_kind_refused(kind, DET_ERR_INVALID, "collect");
    kind = puppet_kind;
    kind.observe_timeout = 11 * DET_SECOND;
    assert_kind_refused(kind, DET_ERR_INVALID, "puppet");
    assert_kind_refused(with_states(running_first, 1), DET_ERR_INVALID, "first state");
    assert_kind_refused(with_states(no_way, 2), DET_ERR_INVALID, "running");
    assert_kind_refused(with_states(twice, 2), DET_ERR_INVALID, "two states");
    assert_kind_refused(with_states(no_next, 1), DET_ERR_INVALID, "next()");
    assert_kind_refused(with_states(NULL, 0), DET_ERR_INVALID, "states");
}

static void invalid_root_names_are_refused(void **state)
{
    static const char *const names[] = { "", "a/b", "a b", "\xc3\xa4" };
    char long_name[DET_WORKER_NAME_MAX + 2];

    (void)state;
    memset(long_name, 'x', sizeof long_name);
    long_name[DET_WORKER_NAME_MAX + 1] = '\0';
    for (size_t i = 0; i <= sizeof names / sizeof names[0]; i++) {
        struct lab lab;
        struct det_error error = { 0 };
        struct det_workers_options options = { 0 };
        struct det_workers *workers;

        lab_open(&lab, behaviour_options(1));
        options.loop = lab.loop;
        options.name = i < sizeof names / sizeof names[0] ? names[i] : long_name;
        assert_int_equal(det_workers_open(&options, &workers, &error), DET_ERR_INVALID);
        assert_non_null(strstr(error.text, "root"));
        options.name = "r";
        options.globals = "[not, a, map]";
        assert_true(det_workers_open(&options, &workers, &error) < 0);
        lab_close(&lab);
    }
}

static int count_worker(void *user, const struct det_worker_status *status)
{
    uint32_t *count = user;

    *count += !strcmp(status->state, "working");
    return 0;
}

static uint32_t count_threads(unsigned workers)
{
    struct lab lab;
    struct det_workers_summary summary;
    struct det_buffer yaml;
    uint32_t threads, working = 0;

    lab_open(&lab, behaviour_options(workers));
    lab.options.watch = NULL;
    det_buffer_init(&yaml, NULL);
    det_buffer_append_text(&yaml, "children:\n");
    for (unsigned i = 0; i < workers; i++)
        det_buffer_format(&yaml, "- {name: p%u, kind: puppet}\n", i);
    lab_apply(&lab, det_buffer_text(&yaml));
    det_buffer_deinit(&yaml);
    lab_run(&lab, 3 * DET_SECOND);
    det_workers_summary(lab.workers, &summary);
    threads = summary.threads;
    assert_int_equal(summary.workers, workers + 1);
    assert_int_equal(det_workers_each(lab.workers, count_worker, &working), 0);
    assert_int_equal(working, workers);
    assert_int_equal(det_workers_stop(lab.workers, NULL), 0);
    lab_close(&lab);
    return threads;
}

static void thread_count_is_independent_of_the_number_of_workers(void **state)
{
    uint32_t one, hundred, thousands;

    (void)state;
    one = count_threads(1);
    hundred = count_threads(100);
    thousands = count_threads(2000);
    assert_in_range(one, 2, 10 + 16);
    assert_in_range(hundred, one, 10 + 16);
    assert_in_range(thousands, one, 10 + 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_that_make_no_sense_together_are_refused_with_the_reason),
        cmocka_unit_test(negative_limits_are_refused),
        cmocka_unit_test(one_of_the_two_backoff_delays_is_enough),
        cmocka_unit_test(invalid_backoffs_and_intensities_are_refused),
        cmocka_unit_test(limits_at_their_boundary_are_accepted),
        cmocka_unit_test(invalid_kinds_are_refused),
        cmocka_unit_test(invalid_root_names_are_refused),
        cmocka_unit_test(thread_count_is_independent_of_the_number_of_workers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
