/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_desired_test.c - configs on their way down the tree: variables, globals, locations,
 * what happens when one is wrong, and when one changes while an action runs. */
#include "worker/forest_test.h"

static void assert_host(struct lab *lab, const char *id, const char *host)
{
    lab_run(lab, 2500 * DET_MILLISECOND); /* collected with what counts now */
    assert_string_equal(node_of(id)->host, host);
}

SENTENCE(nearest_variable_up_the_tree_is_used)
{
    struct lab lab;

    lab_open(&lab, forest_options(seed));
    lab_apply(
        &lab,
        "variables: {IP: top, PORT: 502}\n"
        "children:\n"
        "  - {name: a, kind: node, config: {host: \"{{ .IP }}\", port: \"{{ .PORT }}\"}, "
        "children:\n"
        "    [{name: b, kind: node, variables: {IP: mid}, config: {host: \"{{ .IP }}-b\"}, "
        "children:\n"
        "      [{name: c, kind: twin, config: {host: \"{{ .IP }}:{{ .PORT }}\"}}]}]}\n"
        "  - {name: d, kind: node, variables: {PORT: 7, OWN: x}, config: {host: \"{{ .IP }}{{ .OWN "
        "}}\", port: \"{{ .PORT }}\"}}\n");
    assert_host(&lab, "lab/a", "top");
    assert_int_equal(node_of("lab/a")->port, 502);
    assert_string_equal(node_of("lab/a/b")->host, "mid-b");
    assert_string_equal(node_of("lab/a/b/c")->host, "mid:502");
    assert_string_equal(node_of("lab/d")->host, "topx");
    assert_int_equal(node_of("lab/d")->port, 7);
    /* A change above is one below, where it is looked at. */
    lab_apply(
        &lab,
        "variables: {IP: new, PORT: 503}\n"
        "children:\n"
        "  - {name: a, kind: node, config: {host: \"{{ .IP }}\", port: \"{{ .PORT }}\"}, "
        "children:\n"
        "    [{name: b, kind: node, variables: {IP: mid}, config: {host: \"{{ .IP }}-b\"}, "
        "children:\n"
        "      [{name: c, kind: twin, config: {host: \"{{ .IP }}:{{ .PORT }}\"}}]}]}\n"
        "  - {name: d, kind: node, variables: {PORT: 7, OWN: x}, config: {host: \"{{ .IP }}{{ .OWN "
        "}}\", port: \"{{ .PORT }}\"}}\n");
    assert_host(&lab, "lab/a", "new");
    assert_string_equal(node_of("lab/a/b/c")->host, "mid:503");
    assert_string_equal(node_of("lab/d")->host, "newx");
    assert_int_equal(node_of("lab/a")->opened, 1);
    assert_int_equal(node_of("lab/a/b/c")->opened, 1);
    forest_end(&lab);
}

#define GLOBALS_YAML                                                                           \
    "children: [{name: a, kind: node, config: {host: \"{{ .global.x }}\"}, children: [{name: " \
    "b, kind: node, config: {host: \"b{{ .global.x }}\"}}]}, " NODE("c") "]"

SENTENCE(globals_are_seen_everywhere_and_may_change)
{
    struct lab_options options = forest_options(seed);
    struct det_error error = { 0 };
    struct lab lab;
    uint32_t derives;

    options.globals = "{x: one, y: 2}";
    lab_open(&lab, options);
    lab_apply(&lab, GLOBALS_YAML);
    assert_host(&lab, "lab/a/b", "bone");
    assert_string_equal(node_of("lab/a")->host, "one");
    derives = node_of("lab/a/b")->derives;
    assert_int_equal(det_workers_set_globals(lab.workers, "{x: two}", &error), 0);
    assert_host(&lab, "lab/a/b", "btwo");
    assert_int_equal(node_of("lab/a/b")->derives, derives + 1);
    /* The same again is no change. */
    assert_int_equal(det_workers_set_globals(lab.workers, "{x: two}", &error), 0);
    lab_run(&lab, DET_SECOND);
    assert_int_equal(node_of("lab/a/b")->derives, derives + 1);
    /* Without them the last good one counts. */
    assert_int_equal(det_workers_set_globals(lab.workers, "{}", &error), 0);
    assert_host(&lab, "lab/a/b", "btwo");
    assert_non_null(strstr(lab_status(&lab, "lab/a/b").degraded_by, "x"));
    assert_string_equal(lab_status(&lab, "lab/c").degraded_by, "");
    lab_assert_log(&lab, "template_rendering_failed lab/a/b");
    assert_true(det_workers_set_globals(lab.workers, "[1]", &error) < 0);
    assert_true(error.text[0]);
    assert_int_equal(det_workers_set_globals(lab.workers, "{x: 3}", &error), 0);
    assert_host(&lab, "lab/a/b", "b3");
    assert_string_equal(lab_status(&lab, "lab/a/b").degraded_by, "");
    forest_end(&lab);
}

SENTENCE(missing_globals_matter_only_where_they_are_used)
{
    struct lab lab;

    lab_open(&lab, forest_options(seed));
    lab_apply(&lab, GLOBALS_YAML);
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/c", "well");
    /* These never had a desired state: they are not asked, and say why. */
    assert_string_equal(lab_status(&lab, "lab/a").state, "down");
    assert_non_null(strstr(lab_status(&lab, "lab/a").degraded_by, "global"));
    assert_int_equal(node_of("lab/a")->nexts, 0);
    forest_end(&lab);
}

SENTENCE(a_location_goes_down_the_tree_level_by_level)
{
    struct lab lab;

    lab_open(&lab, forest_options(seed));
    lab_apply(
        &lab,
        "location: {enterprise: e, site: s}\n"
        "children:\n"
        "  - {name: a, kind: node, location: {line: l}, config: {host: \"{{ .location_path }}\"}, "
        "children: [{name: b, kind: node, location: {area: r, line: m}, config: {host: \"{{ "
        ".location_path }}\"}, children: [{name: c, kind: node, location: {site: \"\"}, config: "
        "{host: \"{{ .location_path }}\"}}]}]}\n"
        "  - {name: d, kind: node, config: {host: \"{{ .location_path }}\"}}\n");
    assert_host(&lab, "lab/a", "e.s.l");
    assert_string_equal(node_of("lab/a/b")->host, "e.s.r.m");
    assert_string_equal(node_of("lab/a/b/c")->host, "e.r.m");
    assert_string_equal(node_of("lab/d")->host, "e.s");
    lab_apply(
        &lab, "location: [{type: site, value: x}, {type: site, value: z}]\nchildren: [{name: d, "
              "kind: node, config: {host: \"{{ .location_path }}\"}}]");
    assert_host(&lab, "lab/d", "z");
    forest_end(&lab);
}

SENTENCE(a_worker_knows_its_id_and_that_of_its_parent)
{
    struct lab lab;
    uint32_t derives;

    lab_open(&lab, forest_options(seed));
    lab_apply(
        &lab, "children: [{name: a, kind: node, config: {host: \"{{ .internal.id }}\"}, children: "
              "[{name: b, kind: node, config: {host: \"{{ .internal.parent_id }}<{{ .internal.id "
              "}}\"}}]}, "
              "{name: c, kind: node, config: {host: \"{{ .internal._created_at }}\"}}]");
    assert_host(&lab, "lab/a", "lab/a");
    assert_string_equal(node_of("lab/a/b")->host, "lab/a<lab/a/b");
    assert_true(node_of("lab/c")->host[0]);
    derives = node_of("lab/c")->derives;
    lab_run(&lab, 10 * DET_SECOND);
    assert_int_equal(node_of("lab/c")->derives, derives);
    assert_true(det_workers_apply(lab.workers, "variables: {internal: {id: x}}", NULL) < 0);
    assert_true(det_workers_apply(lab.workers, "variables: {global: {x: 1}}", NULL) < 0);
    forest_end(&lab);
}

SENTENCE(children_of_a_kind_have_the_variables_of_their_parent_and_their_own)
{
    static const struct det_child_spec specs[] = {
        { .name = "one",
          .kind = "node",
          .config = "{host: \"{{ .IP }}/{{ .DEVICE }}\"}",
          .variables = "{DEVICE: d1}",
          .location = "{line: k}" },
        { .name = "two", .kind = "node", .config = "host: {{ .location_path }}\nport: 9" },
    };
    struct lab lab;

    lab_open(&lab, forest_options(seed));
    node_of("lab/a")->children = specs;
    node_of("lab/a")->child_count = 2;
    lab_apply(
        &lab, "variables: {IP: ip}\nchildren: [{name: a, kind: node, location: {site: s}, "
              "variables: {DEVICE: none}}]");
    assert_host(&lab, "lab/a/one", "ip/d1");
    assert_string_equal(node_of("lab/a/two")->host, "s");
    assert_int_equal(node_of("lab/a/two")->port, 9);
    forest_end(&lab);
}

/* What is wrong in each, and what must be said. */
static const struct {
    const char *config, *printed;
} wrong[] = {
    { "{host: \"{{ .MISSING }}\"}", "MISSING" },
    { "{host: \"{{ .MAP.deep }}\"}", "deep" },
    { "{host: \"{{ .IP \"}", "" },
    { "{host: \"{{ if }}\"}", "" },
    { "{host: [1, 2]}", "host" },
    { "{port: \"many\"}", "port" },
    { "{port: 70000}", "port" },
    { "{prot: 1}", "prot" },
    { "{port: 666}", "666" },
    { "\"a: b: c\"", "" },
};

SENTENCE(wrong_config_keeps_the_last_good_one_with_a_reason)
{
    struct lab lab;
    struct det_worker_status status;
    char yaml[512];

    lab_open(&lab, forest_options(seed));
    lab_apply(
        &lab, "children: [{name: a, kind: node, config: {host: good, port: 1}, children: [" NODE(
                  "c") "]}, " NODE("b") "]");
    lab_run(&lab, 3 * DET_SECOND);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(
            yaml, sizeof yaml,
            "variables: {IP: x, MAP: {a: 1}}\nchildren: [{name: a, kind: node, config: %s, "
            "children: [" NODE("c") "]}, " NODE("b") "]",
            wrong[i].config);
        lab_apply(&lab, yaml);
        assert_host(&lab, "lab/a", "good");
        status = lab_status(&lab, "lab/a");
        if (!status.degraded_by[0] || !strstr(status.degraded_by, wrong[i].printed))
            fail_msg("%s: %s", wrong[i].config, status.degraded_by);
        assert_string_equal(status.state, "well");
        lab_assert_state(&lab, "lab/b", "well");
        lab_assert_state(&lab, "lab/a/c", "well");
    }
    /* Seen by the parent, and told once each. */
    assert_true(
        reported_times(DET_WORKER_EVENT_DERIVE_FAILED, "lab/a") +
            reported_times(DET_WORKER_EVENT_TEMPLATE_FAILED, "lab/a") ==
        sizeof wrong / sizeof wrong[0]);
    assert_int_equal(lab_status(&lab, "lab").child_count, 2);
    lab_apply(&lab, "children: [{name: a, kind: node, config: {host: better, port: 2}}]");
    assert_host(&lab, "lab/a", "better");
    assert_string_equal(lab_status(&lab, "lab/a").degraded_by, "");
    assert_int_equal(node_of("lab/a")->opened, 1);
    forest_end(&lab);
}

SENTENCE(absent_config_and_empty_template_are_accepted)
{
    struct lab lab;

    lab_open(&lab, forest_options(seed));
    lab_apply(
        &lab,
        "children: [{name: a, kind: node}, {name: b, kind: node, config: \"\"}, {name: c, "
        "kind: node, config: {}}, {name: d, kind: node, config: \"{{ if false }}x{{ end }}\"}]");
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "well");
    lab_assert_state(&lab, "lab/b", "well");
    lab_assert_state(&lab, "lab/c", "well");
    lab_assert_state(&lab, "lab/d", "well");
    forest_end(&lab);
}

SENTENCE(unchanged_config_is_not_derived_again)
{
    struct lab lab;
    uint32_t derives;

    lab_open(&lab, forest_options(seed));
    lab_apply(&lab, "children: [" NODE_OVER("a", NODE("b")) "]");
    lab_run(&lab, 3 * DET_SECOND);
    derives = node_of("lab/a/b")->derives;
    assert_int_equal(derives, 1);
    for (int i = 0; i < 5; i++) {
        lab_apply(&lab, "children: [" NODE_OVER("a", NODE("b")) "]");
        lab_run(&lab, DET_SECOND);
    }
    /* A variable that nobody below looks at may or may not be a reason; a sibling is none. */
    lab_apply(&lab, "children: [" NODE("z") ", " NODE_OVER("a", NODE("b")) "]");
    lab_run(&lab, DET_SECOND);
    assert_int_equal(node_of("lab/a/b")->derives, derives);
    assert_int_equal(reported_times(DET_WORKER_EVENT_DERIVED, "lab/a/b"), 1);
    forest_end(&lab);
}

SENTENCE(config_changed_during_an_action_applies_to_the_next)
{
    struct lab lab;

    lab_open(&lab, forest_options(seed));
    node_of("lab/a")->act_takes = 5 * DET_SECOND;
    lab_apply(&lab, "children: [{name: a, kind: node, config: {host: h, port: 1}}]");
    lab_run(&lab, 3 * DET_SECOND);
    assert_true(lab_status(&lab, "lab/a").is_action_pending);
    lab_apply(&lab, "children: [{name: a, kind: node, config: {host: h, port: 2}}]");
    lab_run(&lab, DET_SECOND);
    assert_int_equal(node_of("lab/a")->acted_port, 0);
    lab_run(&lab, 10 * DET_SECOND);
    assert_int_equal(node_of("lab/a")->acts, 1);
    assert_int_equal(node_of("lab/a")->acted_port, 1); /* what it began with, unharmed */
    assert_int_equal(node_of("lab/a")->port, 2);
    node_of("lab/a")->is_up = false;
    lab_run(&lab, 10 * DET_SECOND);
    assert_int_equal(node_of("lab/a")->acted_port, 2);
    forest_end(&lab);
}

SENTENCE(spec_is_applied_completely_or_not_at_all)
{
    static const char *const bad[] = {
        "children: [{name: a}]",
        "children: [{kind: node}]",
        "children: {a: 1}",
        "children: [{name: \"\", kind: node}]",
        "children: [{name: a/b, kind: node}]",
        "children: [{name: a, kind: node, run_in: [nowhere]}]",
        "children: [{name: a, kind: node, chidlren: []}]",
        "children: [{name: a, kind: node, location: {planet: x}}]",
        "childern: []",
        "variables: [a]",
        "- a",
        "{",
    };
    struct lab lab;

    lab_open(&lab, forest_options(seed));
    lab_apply(&lab, "children: [" NODE("a") "]");
    lab_run(&lab, 3 * DET_SECOND);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct det_error error = { 0 };
        int r = det_workers_apply(lab.workers, bad[i], &error);

        if (r != DET_ERR_INVALID && r != DET_ERR_MALFORMED)
            fail_msg("%s: %s", bad[i], det_error_name(r));
        assert_true(error.text[0]);
    }
    lab_run(&lab, 2 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "well");
    assert_int_equal(node_of("lab/a")->derives, 1);
    assert_int_equal(lab_status(&lab, "lab").child_count, 1);
    forest_end(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_variable_up_the_tree_is_used),
        cmocka_unit_test(globals_are_seen_everywhere_and_may_change),
        cmocka_unit_test(missing_globals_matter_only_where_they_are_used),
        cmocka_unit_test(a_location_goes_down_the_tree_level_by_level),
        cmocka_unit_test(a_worker_knows_its_id_and_that_of_its_parent),
        cmocka_unit_test(children_of_a_kind_have_the_variables_of_their_parent_and_their_own),
        cmocka_unit_test(wrong_config_keeps_the_last_good_one_with_a_reason),
        cmocka_unit_test(absent_config_and_empty_template_are_accepted),
        cmocka_unit_test(unchanged_config_is_not_derived_again),
        cmocka_unit_test(config_changed_during_an_action_applies_to_the_next),
        cmocka_unit_test(spec_is_applied_completely_or_not_at_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
