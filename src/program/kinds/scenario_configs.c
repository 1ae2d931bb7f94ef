/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* scenario_configs.c - the scenarios that consist of a config. */
#include "kinds/scenario.h"

#define SCENARIO(name_, summary_, duration_, ...)          \
    extern const struct det_scenario det_scenario_##name_; \
    const struct det_scenario det_scenario_##name_ = {     \
        .name = #name_,                                    \
        .summary = (summary_),                             \
        .duration = (duration_)*DET_SECOND,                \
        .config = __VA_ARGS__,                             \
    };

SCENARIO(
    simple, "a parent that alternately stops and runs, with two children", 45,
    "variables:\n"
    "  IP: 192.168.1.100\n"
    "  PORT: 502\n"
    "children:\n"
    "  - name: parent-1\n"
    "    kind: exampleparent\n"
    "    config:\n"
    "      children_count: 2\n")

SCENARIO(
    failing, "actions that fail: one recovers, one never does, one requests a restart", 120,
    "children:\n"
    "  - name: recovers\n"
    "    kind: examplefailing\n"
    "    config: { should_fail: true, max_failures: 3 }\n"
    "  - name: stays-down\n"
    "    kind: examplefailing\n"
    "    config: { should_fail: true, max_failures: 999999 }\n"
    "  - name: restarts\n"
    "    kind: examplefailing\n"
    "    config: { should_fail: true, max_failures: 999999, restart_after_failures: 5 }\n")

SCENARIO(
    panic, "an action that panics: it is reported and retried, and affects no other worker", 30,
    "children:\n"
    "  - name: panics\n"
    "    kind: examplepanic\n"
    "    config: { should_panic: true }\n"
    "  - name: beside-it\n"
    "    kind: examplepanic\n")

SCENARIO(
    slow, "an action that takes two seconds, and can be cancelled", 10,
    "children:\n"
    "  - name: slow\n"
    "    kind: exampleslow\n"
    "    config: { delay_seconds: 2 }\n")

SCENARIO(
    cascade, "a parent that is degraded while its failing children are not healthy", 90,
    "children:\n"
    "  - name: parent-1\n"
    "    kind: exampleparent\n"
    "    config:\n"
    "      children_count: 2\n"
    "      child_kind: examplefailing\n"
    "      child_config: \"{ should_fail: true, max_failures: 3, failure_cycles: 2 }\"\n")

SCENARIO(
    timeout, "quick, slow, failing, and failing until it is restarted, side by side", 120,
    "children:\n"
    "  - name: quick\n"
    "    kind: exampleslow\n"
    "  - name: slow\n"
    "    kind: exampleslow\n"
    "    config: { delay_seconds: 2 }\n"
    "  - name: retried\n"
    "    kind: examplefailing\n"
    "    config: { should_fail: true, max_failures: 3 }\n"
    "  - name: combined\n"
    "    kind: examplefailing\n"
    "    config: { should_fail: true, max_failures: 5, restart_after_failures: 10 }\n")

SCENARIO(
    configerror, "invalid configs: each affects only its own worker", 30,
    "variables:\n"
    "  IP: 192.168.1.100\n"
    "  PORT: 502\n"
    "children:\n"
    "  - name: valid\n"
    "    kind: exampleparent\n"
    "    config: { children_count: 2 }\n"
    "  - name: bad-count\n"
    "    kind: exampleparent\n"
    "    config: { children_count: not-a-number }\n"
    "  - name: empty\n"
    "    kind: exampleparent\n"
    "  - name: bad-failures\n"
    "    kind: examplefailing\n"
    "    config: { should_fail: true, max_failures: three }\n")

SCENARIO(
    inheritance, "variables and a location that children inherit", 20,
    "variables:\n"
    "  IP: 10.0.0.1\n"
    "  PORT: 4840\n"
    "location: { enterprise: acme, site: north, area: press }\n"
    "children:\n"
    "  - name: parent-1\n"
    "    kind: exampleparent\n"
    "    variables: { PORT: 4841, CONNECTION_NAME: press-line }\n"
    "    config: |\n"
    "      children_count: 2\n"
    "      child_config: |\n"
    "        address: \"{{ .IP }}:{{ .PORT }}\"\n"
    /* Escaped: the child expands it, not the parent. */
    "        device: \"{{ .location_path }}/{{ .CONNECTION_NAME }}/{{ \"{{ .DEVICE_ID }}\" }}\"\n")

SCENARIO(
    concurrent, "five workers that do not wait for each other", 10,
    "children:\n"
    "  - { name: hello-1, kind: helloworld }\n"
    "  - { name: hello-2, kind: helloworld }\n"
    "  - { name: hello-3, kind: helloworld }\n"
    "  - { name: hello-4, kind: helloworld }\n"
    "  - { name: hello-5, kind: helloworld }\n")

SCENARIO(
    helloworld, "says hello; degraded while the file `mood` in this folder says `sad`", 20,
    "children:\n"
    "  - name: hello\n"
    "    kind: helloworld\n"
    "    config: { mood_file: mood }\n")

SCENARIO(
    persistence, "a worker that deletes the old history of the others", 120,
    "variables:\n"
    "  IP: 192.168.1.100\n"
    "  PORT: 502\n"
    "children:\n"
    "  - name: keeper\n"
    "    kind: persistence\n"
    "    config: { interval_seconds: 10, keep_deltas: 20 }\n"
    "  - name: parent-1\n"
    "    kind: exampleparent\n"
    "    config: { children_count: 2, rest_seconds: 1, run_seconds: 3 }\n")

SCENARIO(
    noop, "workers that do nothing", 5,
    "children:\n"
    "  - { name: noop-1, kind: noop, config: { value: one } }\n"
    "  - { name: noop-2, kind: noop, config: { value: two }, disabled: true }\n")
