/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect_section_test.c - effects of a detent.yaml: what is read, what is wrong with them, alone
 * and together with a definition. */
#include "config/config_internal.h"
#include "config/config_test.h"

#include <detent/tool/spec.h>

static const char spec_text[] = "#define FSM_NAME order\n"
                                "#define FSM_PREFIX ORDER\n"
                                "STATE(A, a, INITIAL)\n"
                                "STATE(B, b)\n"
                                "EVENT(PAY, pay)\n"
                                "INTERNAL(CHARGED, charged)\n"
                                "INTERNAL(DECLINED, declined)\n"
                                "EFFECT(charge, CHARGED, DECLINED)\n"
                                "EFFECT(mail)\n"
                                "ON(A, PAY, B, DO(charge, mail))\n"
                                "ON(B, CHARGED, A)\n"
                                "ON(B, DECLINED, A)\n";

#define MACHINE "version: 1\nmachines:\n  order:\n    effects:\n"

static const char whole[] =
    MACHINE "      charge:\n"
            "        command: [./charge, --fast]\n"
            "        exits: {0: charged, 3: declined, 9: nothing}\n"
            "        timeout: 10s\n"
            "        attempts: 5\n"
            "        backoff: 200ms..4s\n"
            "        deadline: 1h\n"
            "        same_visit: true\n"
            "        environment: {MODE: fast}\n"
            "        pass: [TOKEN]\n"
            "      mail:\n"
            "        http: PUT https://host/x\n"
            "        headers: {X-Shop: one}\n"
            "        secret: {Authorization: \"file:token\", X-Key: \"env:KEY\"}\n"
            "        statuses: {2xx: nothing, 402: declined}\n";

static void an_effect_is_a_command_with_a_policy(void **state)
{
    const struct config_effect *effect;
    struct project project;

    (void)state;
    open_right(&project, whole);
    assert_string_equal(project.config.store, "sqlite:detent.db");
    assert_true(project.config.machines[0].is_served);
    assert_int_equal(project.config.machines[0].effect_count, 2);
    effect = &project.config.machines[0].effects[0];
    assert_string_equal(effect->name, "charge");
    assert_string_equal(effect->argv[1], "--fast");
    assert_int_equal(effect->timeout, 10 * DET_SECOND);
    assert_int_equal(effect->policy.attempts_max, 5);
    assert_int_equal(effect->policy.backoff_first, 200 * DET_MILLISECOND);
    assert_int_equal(effect->policy.backoff_max, 4 * DET_SECOND);
    assert_int_equal(effect->policy.deadline, DET_HOUR);
    assert_true(effect->policy.same_visit_only);
    assert_string_equal(effect->environment[0], "MODE=fast");
    assert_string_equal(effect->pass[0], "TOKEN");
    assert_int_equal(effect->answer_count, 3);
    assert_int_equal(effect->answers[1].least, 3);
    assert_string_equal(effect->answers[1].event, "declined");
    close_project(&project);
}

static void an_effect_is_an_http_call_with_secrets_that_stand_elsewhere(void **state)
{
    const struct config_effect *effect;
    struct project project;

    (void)state;
    open_right(&project, whole);
    effect = &project.config.machines[0].effects[1];
    assert_null(effect->argv);
    assert_string_equal(effect->method, "PUT");
    assert_string_equal(effect->url, "https://host/x");
    assert_int_equal(effect->timeout, CONFIG_EFFECT_TIMEOUT);
    assert_int_equal(effect->headers.count, 3);
    assert_string_equal(effect->headers.items[0].value, "one");
    assert_int_equal(effect->headers.items[1].from, CONFIG_HEADER_FILE);
    assert_string_equal(effect->headers.items[1].value, "token");
    assert_int_equal(effect->headers.items[2].from, CONFIG_HEADER_VARIABLE);
    assert_int_equal(effect->answers[0].least, 200);
    assert_int_equal(effect->answers[0].most, 299);
    close_project(&project);
}

static void folders_environment_and_secrets_are_resolved(void **state)
{
    static const char *const base[] = { "PATH=/bin", "TOKEN=t", "OTHER=o", "MODE=slow", NULL };
    const struct config_effect *effect;
    struct project project;

    (void)state;
    open_right(&project, whole);
    assert_int_equal(config_settle(&project.config, &project.arena, "/shop", base), 0);
    assert_string_equal(project.config.machines[0].spec, "/shop/order.fsm");
    effect = &project.config.machines[0].effects[0];
    assert_string_equal(effect->folder, "/shop");
    assert_string_equal(effect->environment[0], "PATH=/bin");
    assert_string_equal(effect->environment[1], "TOKEN=t");
    assert_string_equal(effect->environment[2], "MODE=fast");
    assert_null(effect->environment[3]);
    assert_string_equal(
        project.config.machines[0].effects[1].headers.items[1].value, "/shop/token");
    close_project(&project);
}

static void problems_are_reported_at_their_place(void **state)
{
    static const struct {
        const char *effect, *part;
        unsigned column;
    } cases[] = {
        { "x: {}", "needs 'command' or 'http'", 10 },
        { "x: {command: a, http: https://h}", "either a 'command' or an 'http' call", 23 },
        { "x: {http: https://h, exits: {0: a}}", "'exits' goes with 'command'", 28 },
        { "x: {command: a, statuses: {200: a}}", "'statuses' goes with 'http'", 23 },
        { "x: {comand: a}", "did you mean 'command'", 11 },
        { "x: {run: a}", "'command'", 11 },
        { "x: {http: GET https://h}", "POST, PUT or PATCH, not 'GET'", 17 },
        { "x: {http: ftp://h}", "a method and a URL", 17 },
        { "x: {http: \"POST https://\"}", "a method and a URL", 17 },
        { "x: {http: \"https://h/\\ta\"}", "a method and a URL", 17 },
        { "x: {http: \"https://me:secret@h/\"}", "seen by many", 17 },
        { "x: {http: [a]}", "a method and a URL", 17 },
        { "x: {command: a, exits: {256: a}}", "is not an exit code", 31 },
        { "x: {command: a, exits: {2xx: a}}", "is not an exit code", 31 },
        { "x: {command: a, exits: {1: [a]}}", "an event", 34 },
        { "x: {command: a, exits: a}", "'exits'", 30 },
        { "x: {http: https://h, statuses: {6xx: a}}", "is not a status", 39 },
        { "x: {http: https://h, headers: a}", "'headers'", 37 },
        { "x: {http: https://h, headers: {\"a b\": c}}", "not the name of a header", 38 },
        { "x: {http: https://h, headers: {host: c}}", "set by detent itself", 38 },
        { "x: {http: https://h, headers: {A: \"b\\nc\"}}", "has one line", 41 },
        { "x: {http: https://h, headers: {A: [b]}}", "value of a header", 41 },
        { "x: {http: https://h, secret: {A: hunter2}}", "a secret is a reference", 40 },
        { "x: {command: a, backoff: 1s}", "such as 100ms..30s", 32 },
        { "x: {command: a, backoff: 9s..1s}", "such as 100ms..30s", 32 },
        { "x: {command: a, attempts: 0}", "from 1 to 1000000", 33 },
        { "x: {command: a, timeout: 2h}", "'timeout' is at most 1h", 32 },
        { "x: {command: a, same_visit: maybe}", "true", 35 },
        { "x: {command: a, pass: [\"a b\"]}", "names of variables", 30 },
        { "x: {command: a, pass: a}", "'pass'", 29 },
        { "x: {command: a | b}", "needs a shell", 20 },
        { "x: a", "an effect", 10 },
    };
    char text[512];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, MACHINE "      %s\n", cases[i].effect);
        expect_wrong(text, 5, cases[i].column, cases[i].part);
    }
    expect_wrong("version: 1\nmachines:\n  order:\n    effects: a\n", 4, 14, "'effects'");
}

static void literal_secret_is_not_repeated_in_the_error(void **state)
{
    struct project project;

    (void)state;
    assert_int_equal(
        open_project(&project, NULL, MACHINE "      x: {http: https://h, secret: {A: hunter2}}\n"),
        DET_ERR_MALFORMED);
    assert_null(strstr(project.problems.items[0].text, "hunter2"));
    close_project(&project);
}

/* The problems of a machine with its definition, in one text. */
static const char *check_with(const char *yaml, const char *text, char *target, size_t size)
{
    struct cli_problems problems = { .count = 0 };
    struct project project;
    struct det_spec *spec;
    size_t used = 0;
    int r;

    open_right(&project, yaml);
    assert_int_equal(det_spec_read("order.fsm", text, strlen(text), NULL, &spec), 0);
    assert_non_null(det_spec_machine(spec));
    r = config_check_machine(&project.config.machines[0], det_spec_machine(spec), &problems);
    assert_int_equal(r, problems.count ? DET_ERR_MALFORMED : 0);
    *target = '\0';
    for (size_t i = 0; i < problems.count; i++)
        used += (size_t)snprintf(
            target + used, size - used, "%u:%u: %s\n", problems.items[i].line,
            problems.items[i].column, problems.items[i].text);
    det_spec_close(spec);
    close_project(&project);
    return target;
}

static void effects_and_events_are_those_of_the_definition(void **state)
{
    char text[2000];

    (void)state;
    assert_string_equal(
        check_with(
            MACHINE "      charge: {command: a, exits: {0: charged}}\n      mail: {command: a}\n",
            spec_text, text, sizeof text),
        "");
    assert_string_equal(
        check_with(
            MACHINE "      chrge: {command: a}\n"
                    "      charge: {command: a, exits: {0: chargd, 1: pay, 2: nothing}}\n",
            spec_text, text, sizeof text),
        "5:7: order has no effect 'chrge'; did you mean 'charge'?\n"
        "6:39: 'chargd' is not an event that EFFECT(charge) lists; did you mean 'charged'?\n"
        "6:50: EFFECT(charge) does not list 'pay' among the events it produces\n"
        "3:3: 'order' has no effect 'mail' here, and its definition asks for it\n");
}

static void machine_without_effects_is_not_checked(void **state)
{
    char text[2000];

    (void)state;
    assert_string_equal(
        check_with("version: 1\nmachines:\n  order: {}\n", spec_text, text, sizeof text), "");
    assert_string_equal(
        check_with("version: 1\nmachines:\n  parcel: {}\n", spec_text, text, sizeof text),
        "3:3: parcel.fsm defines 'order', and this file calls it 'parcel'\n");
}

static void unbound_c_functions_are_reported_with_a_remedy(void **state)
{
    static const char spec[] = "#define FSM_NAME order\n"
                               "#define FSM_PREFIX ORDER\n"
                               "STATE(A, a, INITIAL)\n"
                               "EVENT(PAY, pay)\n"
                               "GUARD(may)\n"
                               "HOOK(look)\n"
                               "STAY(A, PAY, IF(may))\n"
                               "ENTRY(A, look)\n";
    char text[2000];

    (void)state;
    assert_string_equal(
        check_with("version: 1\nmachines:\n  order: {effects: {}}\n", spec, text, sizeof text),
        "3:10: order has functions in C (guard may, hook look), but no module provides them: "
        "name one that does (docs/modules.md), serve it from your own program, or write the "
        "definition without\n");
}

static int read_all(struct det_test_memory *memory, void *argument)
{
    static const char *const base[] = { "PATH=/bin", NULL };
    struct project project;
    int r;

    (void)argument;
    r = open_project(&project, &memory->allocator, whole);
    if (r == 0)
        r = config_settle(&project.config, &project.arena, "/shop", base);
    close_project(&project);
    return r;
}

static void reading_survives_each_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(read_all, NULL);
}

static void exits_and_statuses_of_one_effect_are_kept_in_one_list(void **state)
{
    static const char text[] = "{command: a, exits: {0: a, 1: b, 2: c, 3: d, 4: e, 5: f, 6: g, "
                               "7: h}, statuses: {402: i}}";
    struct project project = { 0 };
    struct config_effect effect = { 0 };
    struct cli_reader reader = { .arena = &project.arena, .problems = &project.problems };
    struct det_datum *root = NULL;
    struct det_yaml_error error;

    (void)state;
    det_arena_init(&project.arena, NULL);
    assert_int_equal(det_yaml_read(&project.arena, text, strlen(text), &root, &error), 0);
    assert_int_equal(config_take_effect(&reader, root, &effect), DET_ERR_MALFORMED);
    assert_non_null(strstr(project.problems.items[0].text, "'statuses' goes with 'http'"));
    assert_int_equal(effect.answer_count, 9);
    assert_string_equal(effect.answers[0].event, "a");
    assert_string_equal(effect.answers[7].event, "h");
    assert_string_equal(effect.answers[8].event, "i");
    close_project(&project);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_effect_is_a_command_with_a_policy),
        cmocka_unit_test(an_effect_is_an_http_call_with_secrets_that_stand_elsewhere),
        cmocka_unit_test(folders_environment_and_secrets_are_resolved),
        cmocka_unit_test(problems_are_reported_at_their_place),
        cmocka_unit_test(literal_secret_is_not_repeated_in_the_error),
        cmocka_unit_test(effects_and_events_are_those_of_the_definition),
        cmocka_unit_test(machine_without_effects_is_not_checked),
        cmocka_unit_test(unbound_c_functions_are_reported_with_a_remedy),
        cmocka_unit_test(exits_and_statuses_of_one_effect_are_kept_in_one_list),
        cmocka_unit_test(reading_survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
