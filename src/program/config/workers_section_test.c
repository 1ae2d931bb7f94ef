/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers_section_test.c - the section 'workers': what each key becomes, and what is wrong where.
 */
#include "config/config_test.h"

#include "base/buffer.h"
#include "kinds/kinds.h"

#define WORKERS "version: 1\nworkers:\n"

static void workers_section_keys_are_read(void **state)
{
    const struct config_workers *workers;
    struct project project;

    (void)state;
    open_right(
        &project, WORKERS "  name: plant\n"
                          "  variables: {IP: 10.0.0.7}\n"
                          "  location: {site: north}\n"
                          "  globals: {a: 1}\n"
                          "  modules: [./a.so, {path: b.so, isolate: process}]\n"
                          "  limits:\n"
                          "    tick: 50ms\n"
                          "    observe_every: 500ms\n"
                          "    collector_restarts_max: 7\n"
                          "    action_backoff: {first: 2s, max: 9s, factor: 3, jitter: full}\n"
                          "    restarts: {count: 9, window: 1m}\n"
                          "    heartbeat: 12\n"
                          "    deltas_bytes_max: 2MiB\n"
                          "    compact_every: 5s\n"
                          "  children:\n"
                          "    - {name: a, kind: noop}\n");
    workers = &project.config.workers;
    assert_non_null(workers->node);
    assert_string_equal(workers->name, "plant");
    assert_int_equal(workers->spec->count, 3);
    assert_string_equal(
        det_datum_get(det_datum_get(workers->spec, "variables"), "IP")->text, "10.0.0.7");
    assert_int_equal(det_datum_get(workers->spec, "children")->count, 1);
    assert_non_null(workers->globals);
    assert_int_equal(workers->module_count, 2);
    assert_string_equal(workers->modules[1].path, "b.so");
    assert_true(workers->modules[1].is_isolated && !workers->modules[0].is_isolated);
    assert_true(workers->limits.tick == 50 * DET_MILLISECOND);
    assert_int_equal(workers->limits.collector_restarts_max, 7);
    assert_true(workers->limits.action_backoff.first == 2 * DET_SECOND);
    assert_int_equal(workers->limits.action_backoff.jitter, DET_JITTER_FULL);
    assert_int_equal(workers->limits.restarts.count, 9);
    assert_int_equal(workers->limits.heartbeat, 12);
    assert_int_equal(workers->limits.deltas_bytes_max, 2 << 20);
    assert_true(workers->limits.stale_after == 0);
    assert_string_equal(project.config.store, CONFIG_STORE_DEFAULT);
    assert_false(project.config.is_bare);
    close_project(&project);
}

static void minimal_workers_section_is_accepted(void **state)
{
    static const char *const texts[] = { WORKERS "  name: x\n", "version: 1\nworkers: {}\n",
                                         WORKERS "  children: []\n",
                                         WORKERS "  modules: one.so\n" };
    struct project project;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        open_right(&project, texts[i]);
        assert_non_null(project.config.workers.node);
        assert_non_null(project.config.workers.spec);
        close_project(&project);
    }
}

/* As many as docs/formats/detent-yaml.md says; the last one is wrong, to see that it is read. */
static void a_hundred_thousand_workers_are_taken(void **state)
{
    struct det_buffer text;
    struct project project;

    (void)state;
    det_buffer_init(&text, NULL);
    det_buffer_append_text(&text, WORKERS "  children:\n");
    for (unsigned i = 0; i < 99999; i++)
        det_buffer_format(&text, "    - {name: w%u, kind: helloworld, config: {}}\n", i);
    det_buffer_append_text(&text, "    - {name: last, kind: helloworlt}\n");
    open_right(&project, det_buffer_text(&text));
    assert_true(
        config_check_workers(&project.config.workers, det_kinds_all(), NULL, &project.problems) <
        0);
    assert_int_equal(project.problems.count, 1);
    assert_int_equal(project.problems.items[0].line, 100003);
    close_project(&project);
    det_buffer_deinit(&text);
}

static void workers_section_problems_have_their_place(void **state)
{
    static const struct {
        const char *text;
        unsigned line, column;
        const char *part;
    } rows[] = {
        { "version: 1\nworkers: 3\n", 2, 10, "mapping" },
        { WORKERS "  childern: []\n", 3, 3, "did you mean 'children'?" },
        { WORKERS "  name: 'a b'\n", 3, 9, "'name' is" },
        { WORKERS "  name: []\n", 3, 9, "'name'" },
        { WORKERS "  globals: [1]\n", 3, 12, "'globals'" },
        { WORKERS "  variables: [1]\n", 3, 14, "map" },
        { WORKERS "  variables: {global: 1}\n", 3, 15, "global" },
        { WORKERS "  location: {town: x}\n", 3, 14, "town" },
        { WORKERS "  modules: {a: b}\n", 3, 13, "'a'" },
        { WORKERS "  modules: {isolate: none}\n", 3, 12, "needs a 'path'" },
        { WORKERS "  modules: {path: a.so, isolate: jail}\n", 3, 34, "'process' or 'none'" },
        { WORKERS "  modules: ['']\n", 3, 13, "'modules'" },
        { WORKERS "  limits: {tick: 10s}\n", 3, 11, "tick must be at most observe_every" },
        { WORKERS "  limits: {tick: fast}\n", 3, 18, "expected a duration" },
        { WORKERS "  limits: {tck: 1s}\n", 3, 12, "did you mean 'tick'?" },
        { WORKERS "  limits: {heartbeat: 0}\n", 3, 23, "'heartbeat' is 1 to" },
        { WORKERS "  limits: {action_threads: 5000}\n", 3, 28, "action_threads" },
        { WORKERS "  limits: {action_backoff: {first: 9s, max: 1s}}\n", 3, 12, "first" },
        { WORKERS "  limits:\n    observe_timeout: 15s\n", 4, 5, "observe_timeout" },
        { WORKERS "  children: {}\n", 3, 13, "list" },
        { WORKERS "  children:\n    - kind: noop\n", 4, 7, "name" },
        { WORKERS "  children:\n    - name: a\n", 4, 7, "kind" },
        { WORKERS "  children:\n    - name: a\n      kind: noop\n      kidn: 3\n", 6, 7, "kind" },
        { WORKERS "  children:\n    - name: a/b\n      kind: noop\n", 4, 13, "name has 1 to" },
        { WORKERS "  children:\n    - {name: a, kind: noop}\n    - {name: a, kind: noop}\n", 5, 14,
          "used by" },
        { WORKERS "  children:\n    - name: a\n      kind: noop\n      children:\n"
                  "        - name: b\n          kind: noop\n          disabled: perhaps\n",
          9, 21, "disabled" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_wrong(rows[i].text, rows[i].line, rows[i].column, rows[i].part);
}

/* Together with the kinds of the program. */

static int check(struct project *project)
{
    project->problems = (struct cli_problems){ 0 };
    return config_check_workers(
        &project->config.workers, det_kinds_all(), NULL, &project->problems);
}

static void invalid_kinds_states_and_configs_are_reported(void **state)
{
    static const struct {
        const char *text;
        unsigned line;
        const char *part; /* NULL: it is right */
    } rows[] = {
        { "    - {name: a, kind: noop}\n", 0, NULL },
        { "    - {name: a, kind: application, children: [{name: b, kind: noop}]}\n", 0, NULL },
        { "    - {name: a, kind: examplechild, config: {address: '{{ .X }}'}, variables: {X: "
          "up}}\n",
          0, NULL },
        { "    - name: a\n      kind: application\n      variables: {X: up}\n      children:\n"
          "        - {name: b, kind: examplechild, config: {address: '{{ .X }}'}}\n",
          0, NULL },
        { "    - {name: a, kind: noop, run_in: [running]}\n", 0, NULL },
        { "    - {name: a, kind: nop}\n", 4, "did you mean 'noop'?" },
        { "    - {name: a, kind: noop, run_in: [runing]}\n", 4, "running" },
        { "    - {name: a, kind: examplechild, config: {address: '{{ .Y }}'}}\n", 4, "Y" },
        { "    - {name: a, kind: examplechild, config: {adress: x}}\n", 4, "address" },
        { "    - {name: a, kind: noop}\n    - name: b\n      kind: application\n"
          "      children:\n        - name: c\n          kind: nop\n",
          9, "did you mean 'noop'?" },
    };
    struct project project;
    char text[1024];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(text, sizeof text, WORKERS "  children:\n%s", rows[i].text);
        open_right(&project, text);
        assert_int_equal(check(&project), rows[i].part ? DET_ERR_MALFORMED : 0);
        if (rows[i].part) {
            assert_int_equal(project.problems.count, 1);
            assert_int_equal(project.problems.items[0].line, rows[i].line);
            if (!strstr(project.problems.items[0].text, rows[i].part))
                fail_msg("no '%s' in: %s", rows[i].part, project.problems.items[0].text);
        }
        close_project(&project);
    }
}

static void all_problems_are_reported(void **state)
{
    struct project project;

    (void)state;
    open_right(
        &project, WORKERS "  children:\n    - {name: a, kind: x1}\n    - {name: b, kind: x2}\n");
    assert_int_equal(check(&project), DET_ERR_MALFORMED);
    assert_int_equal(project.problems.count, 2);
    close_project(&project);
}

static int open_and_check(struct det_test_memory *memory, void *argument)
{
    struct project project;
    int r = open_project(
        &project, &memory->allocator,
        WORKERS
        "  variables: {X: up}\n  globals: {a: 1}\n  modules: a.so\n  limits: {tick: 50ms}\n"
        "  children:\n    - {name: a, kind: examplechild, config: {address: '{{ .X }}'}}\n");

    (void)argument;
    if (r == 0)
        r = config_check_workers(
            &project.config.workers, det_kinds_all(), &memory->allocator, &project.problems);
    close_project(&project);
    return r;
}

static void workers_section_survives_every_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(open_and_check, NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_section_keys_are_read),
        cmocka_unit_test(minimal_workers_section_is_accepted),
        cmocka_unit_test(a_hundred_thousand_workers_are_taken),
        cmocka_unit_test(workers_section_problems_have_their_place),
        cmocka_unit_test(invalid_kinds_states_and_configs_are_reported),
        cmocka_unit_test(all_problems_are_reported),
        cmocka_unit_test(workers_section_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
