/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers_test.c - the workers of `detent up` in a simulated world: what is told of them, what
 * the verbs answer, a reload, the end. tests/e2e/workers.py has the program as a whole. */
#include "daemon/workers_test.h"

/* The tests. */

static void a_tree_comes_up_and_is_told(void **state)
{
    struct stage stage;
    json_t *list;

    (void)state;
    open_stage(
        &stage, HEAD "  children:\n"
                     "    - {name: hello, kind: helloworld}\n"
                     "    - {name: press, kind: examplechild, config: {address: x}}\n");
    spend(&stage, 10 * DET_SECOND);
    list = ask(&stage, "workers-list", NULL);
    assert_int_equal(json_array_size(list), 3);
    assert_string_equal(text_of(list, 0, "id"), "plant");
    assert_string_equal(text_of(list, 1, "state"), "running");
    assert_string_equal(text_of(list, 2, "freshness"), "fresh");
    json_decref(list);
    list = ask(&stage, "workers-show", json_pack("{s:s}", "id", "press"));
    assert_string_equal(text_of(list, 0, "id"), "plant/press");
    assert_string_equal(desired_address(list), "x");
    json_decref(list);
    list = ask(&stage, "workers-history", json_pack("{s:s}", "id", "plant/press"));
    assert_string_equal(text_of(list, 0, "to"), "connected");
    json_decref(list);
    assert_printed(&stage, "workers = worker_added worker=plant(application) number=1\n");
    assert_printed(&stage, "to=connected reason=\"connected to x\"");
    close_stage(&stage);
}

static void what_built_in_kinds_inherit_is_provided(void **state)
{
    struct stage stage;
    json_t *list;

    (void)state;
    open_stage(
        &stage, HEAD "  children:\n"
                     "    - {name: compact, kind: persistence}\n"
                     "    - name: relay\n"
                     "      kind: communicator\n"
                     "      config: {relay_url: \"http://127.0.0.1:1\", auth_token: abc}\n");
    spend(&stage, 5 * DET_SECOND);
    list = ask(&stage, "workers-list", NULL);
    assert_int_equal(json_array_size(list), 3);
    assert_string_equal(text_of(list, 1, "state"), "running");
    assert_string_equal(text_of(list, 2, "state"), "authenticating");
    json_decref(list);
    close_stage(&stage);
}

static void deliver(struct stage *stage, const struct det_message *text)
{
    struct channel_message *message;
    struct det_list list;

    det_list_init(&list);
    assert_int_equal(channel_message_open(NULL, text, &message), 0);
    det_list_append(&list, &message->node);
    channel_deliver(stage->up.workers->channel, &list);
}

static void a_message_is_told_with_its_sender_and_its_beginning(void **state)
{
    char large[700] = "", expected[400] = "";
    struct stage stage;

    (void)state;
    open_stage(&stage, HEAD "  children: [{name: hello, kind: helloworld}]\n");
    memset(large, 'x', sizeof large - 1);
    deliver(
        &stage, &(struct det_message){
                    .instance = "boiler", .content = "one\ntwo", .email = "", .trace_id = "t-1" });
    deliver(
        &stage, &(struct det_message){
                    .instance = "boiler", .content = large, .email = "", .trace_id = "" });
    spend(&stage, 3 * DET_SECOND);
    assert_printed(&stage, "message_received instance=boiler trace_id=t-1 content=\"one\\ntwo\"\n");
    snprintf(
        expected, sizeof expected, "message_received instance=boiler content=%.200s cut_from=699\n",
        large);
    assert_printed(&stage, expected);
    close_stage(&stage);
}

static void figures_are_taken_by_the_loop(void **state)
{
    struct stage stage;
    struct det_buffer text;

    (void)state;
    open_stage(&stage, HEAD "  children: [{name: hello, kind: helloworld}]\n");
    spend(&stage, 5 * DET_SECOND);
    det_buffer_init(&text, NULL);
    det_metrics_write(stage.up.observe->metrics, DET_METRICS_TEXT, &text);
    assert_non_null(strstr(det_buffer_text(&text), "detent_workers{phase=\"running\"} 2\n"));
    assert_non_null(strstr(
        det_buffer_text(&text), "detent_worker_value{kind=\"helloworld\",worker=\"plant/hello\","
                                "name=\"hellos_said\"} 1\n"));
    det_buffer_deinit(&text);
    close_stage(&stage);
}

static void workers_are_put_and_taken_away(void **state)
{
    struct stage stage;

    (void)state;
    open_stage(&stage, HEAD "  children: [{name: hello, kind: helloworld}]\n");
    json_decref(
        ask(&stage, "workers-upsert",
            json_pack(
                "{s:s, s:s, s:s, s:s, s:[s]}", "id", "extra", "kind", "examplechild", "config",
                "address: '{{ .A }}'", "variables", "{A: here}", "run_in", "running")));
    spend(&stage, 5 * DET_SECOND);
    assert_state(&stage, "plant/extra", "connected");
    expect_refusal(
        &stage, "workers-upsert", json_pack("{s:s, s:s}", "id", "x", "kind", "nop"), "NOT_FOUND",
        "did you mean 'noop'?");
    expect_refusal(
        &stage, "workers-upsert", json_pack("{s:s, s:s}", "id", "a/x", "kind", "noop"), "NOT_FOUND",
        "plant/a");
    expect_refusal(
        &stage, "workers-upsert", json_pack("{s:s, s:s}", "id", "hello", "kind", "noop"), "EXISTS",
        "in its own spec");
    expect_refusal(
        &stage, "workers-upsert",
        json_pack("{s:s, s:s, s:[s]}", "id", "x", "kind", "noop", "run_in", "flying"), "INVALID",
        "flying");
    expect_refusal(
        &stage, "workers-upsert", json_pack("{s:s}", "id", "x"), "INVALID", "needs 'id' and");
    expect_refusal(
        &stage, "workers-delete", json_pack("{s:s}", "id", "extr"), "NOT_FOUND",
        "did you mean 'extra'?");
    json_decref(ask(&stage, "workers-delete", json_pack("{s:s}", "id", "extra")));
    spend(&stage, 5 * DET_SECOND);
    expect_refusal(
        &stage, "workers-show", json_pack("{s:s}", "id", "extra"), "NOT_FOUND", "no worker");
    close_stage(&stage);
}

static void orders_are_given(void **state)
{
    struct stage stage;

    (void)state;
    open_stage(&stage, HEAD "  children: [{name: hello, kind: helloworld}]\n");
    spend(&stage, 5 * DET_SECOND);
    json_decref(
        ask(&stage, "workers-order", json_pack("{s:s, s:s}", "id", "hello", "order", "disable")));
    spend(&stage, 5 * DET_SECOND);
    assert_state(&stage, "hello", "stopped");
    json_decref(
        ask(&stage, "workers-order", json_pack("{s:s, s:s}", "id", "hello", "order", "enable")));
    spend(&stage, 5 * DET_SECOND);
    assert_state(&stage, "hello", "running");
    expect_refusal(
        &stage, "workers-order", json_pack("{s:s, s:s}", "id", "hello", "order", "sing"), "INVALID",
        "restart, disable or enable");
    close_stage(&stage);
}

/* The answer is nobody's then, and what was asked for happens all the same. */
static void who_asked_may_go_away(void **state)
{
    struct answer answer;
    struct stage stage;

    (void)state;
    open_stage(&stage, HEAD);
    spend(&stage, DET_SECOND);
    begin_ask(
        &stage, &answer, "workers-upsert", json_pack("{s:s, s:s}", "id", "late", "kind", "noop"));
    assert_false(answer.is_finished);
    assert_true(answer.call.is_kept);
    answer.is_gone = true;
    answer.call.on_gone(answer.call.user);
    spend(&stage, 5 * DET_SECOND);
    assert_state(&stage, "late", "running");
    json_decref(answer.parts);
    close_stage(&stage);
}

/* Closing waits for it, though the loop is its own to turn. */
static void a_question_on_its_way_does_not_keep_it_from_closing(void **state)
{
    struct answer answer;
    struct stage stage;

    (void)state;
    open_stage(&stage, HEAD);
    begin_ask(
        &stage, &answer, "workers-upsert", json_pack("{s:s, s:s}", "id", "late", "kind", "noop"));
    up_workers_close(&stage.up);
    assert_true(answer.is_finished);
    json_decref(answer.parts);
    close_stage(&stage);
}

static void what_is_on_record_comes_in_pages(void **state)
{
    struct stage stage;
    json_t *page, *deltas;
    json_int_t after = 0;
    size_t pages = 0;
    bool has_more = true;

    (void)state;
    open_stage(&stage, HEAD "  children: [{name: hello, kind: helloworld}]\n");
    spend(&stage, 5 * DET_SECOND);
    while (has_more) {
        page = ask(&stage, "workers-dump", json_pack("{s:I, s:i}", "after", after, "limit", 3));
        deltas = json_object_get(json_array_get(page, 0), "deltas");
        for (size_t i = 0; i < json_array_size(deltas); i++)
            assert_int_equal(
                json_integer_value(json_object_get(json_array_get(deltas, i), "sync")), ++after);
        has_more = json_is_true(json_object_get(json_array_get(page, 0), "has_more"));
        pages++;
        json_decref(page);
    }
    assert_true(pages > 2);
    page = ask(
        &stage, "workers-dump", json_pack("{s:b, s:s}", "documents", 1, "below", "plant/hello"));
    assert_int_equal(json_array_size(json_object_get(json_array_get(page, 0), "documents")), 3);
    json_decref(page);
    close_stage(&stage);
}

static void assert_hidden(struct stage *stage, json_t *arguments)
{
    json_t *page = ask(stage, "workers-dump", arguments);
    char *text = json_dumps(page, 0);

    assert_non_null(text);
    assert_non_null(strstr(text, "\"spec\""));
    assert_non_null(strstr(text, "{redacted}"));
    assert_null(strstr(text, "hunter2"));
    free(text);
    json_decref(page);
}

static void configs_and_variables_that_were_put_by_hand_are_not_told(void **state)
{
    struct stage stage;

    (void)state;
    open_stage(&stage, HEAD "  children: [{name: hello, kind: helloworld}]\n");
    for (int i = 1; i < 3; i++)
        json_decref(
            ask(&stage, "workers-upsert",
                json_pack(
                    "{s:s, s:s, s:s, s:s}", "id", "extra", "kind", "noop", "config",
                    i == 1 ? "# hunter2" : "# hunter22", "variables",
                    i == 1 ? "{A: hunter2}" : "{A: hunter22}")));
    assert_hidden(&stage, json_pack("{s:b, s:s}", "documents", 1, "below", "plant/extra"));
    assert_hidden(&stage, json_pack("{s:s}", "below", "plant/extra"));
    close_stage(&stage);
}

static void another_file_is_another_tree(void **state)
{
    struct cli_problems problems = { .count = 0 };
    struct det_error error = { 0 };
    struct stage stage;
    struct det_arena old;
    json_t *list;

    (void)state;
    open_stage(
        &stage, HEAD "  globals: {x: one}\n  children:\n"
                     "    - {name: a, kind: examplechild, config: {address: '{{ .global.x }}'}}\n"
                     "    - {name: goes, kind: noop}\n");
    spend(&stage, 5 * DET_SECOND);
    old = stage.up.file.arena;
    read_file(
        &stage, HEAD "  globals: {x: two}\n  children:\n"
                     "    - {name: a, kind: examplechild, config: {address: '{{ .global.x }}'}}\n"
                     "    - {name: comes, kind: noop}\n");
    /* Nothing is left in the old one. */
    det_arena_deinit(&old);
    assert_int_equal(up_workers_check(&stage.up, &stage.up.file.config.workers, &problems), 0);
    assert_int_equal(up_workers_reload(&stage.up, &error), 0);
    spend(&stage, 5 * DET_SECOND);
    assert_state(&stage, "comes", "running");
    list = ask(&stage, "workers-show", json_pack("{s:s}", "id", "a"));
    assert_string_equal(desired_address(list), "two");
    json_decref(list);
    expect_refusal(
        &stage, "workers-show", json_pack("{s:s}", "id", "goes"), "NOT_FOUND", "no worker");
    close_stage(&stage);
}

static void it_stops_by_itself_and_is_forced(void **state)
{
    struct stage stage;

    (void)state;
    open_stage(&stage, HEAD "  children: [{name: hello, kind: helloworld}]\n");
    spend(&stage, 5 * DET_SECOND);
    assert_false(up_workers_are_over(&stage.up));
    up_workers_stop(&stage.up);
    stage.up.state = UP_STOPPING;
    expect_refusal(&stage, "workers-list", NULL, "CLOSED", "shutting down");
    spend(&stage, 5 * DET_SECOND);
    assert_true(up_workers_are_over(&stage.up));
    up_workers_finish(&stage.up);
    assert_false(stage.up.was_forced);
    close_stage(&stage);

    /* An action that does not look whether it is cancelled keeps its worker from stopping. */
    open_stage(
        &stage,
        HEAD "  limits: {stop_grace: 100ms}\n"
             "  children: [{name: slow, kind: exampleslow, config: {delay_seconds: 600}}]\n");
    spend(&stage, 5 * DET_SECOND);
    up_workers_stop(&stage.up);
    up_workers_stop(&stage.up);
    up_workers_finish(&stage.up);
    assert_true(up_workers_are_over(&stage.up));
    close_stage(&stage);
}

static void a_kind_that_is_not_there_is_told(void **state)
{
    struct cli_problems problems = { .count = 0 };
    struct stage stage;

    (void)state;
    open_stage(&stage, HEAD);
    det_arena_deinit(&stage.up.file.arena);
    read_file(&stage, HEAD "  children: [{name: a, kind: nop}]\n");
    assert_int_equal(
        up_workers_check(&stage.up, &stage.up.file.config.workers, &problems), DET_ERR_MALFORMED);
    assert_int_equal(problems.items[0].line, 4);
    close_stage(&stage);
}

static void without_workers_there_is_nothing_to_ask(void **state)
{
    struct stage stage;

    (void)state;
    open_stage(&stage, "version: 1\ntasks: {a: {run: 'true'}}\n");
    assert_null(stage.up.workers);
    assert_true(up_workers_are_over(&stage.up));
    expect_refusal(&stage, "workers-list", NULL, "UNSUPPORTED", "has no workers");
    up_workers_stop(&stage.up);
    up_workers_finish(&stage.up);
    close_stage(&stage);
}

/* Opens with what memory there is; whatever comes of it, it can be closed. */
static void a_want_of_memory_is_told(void **state)
{
    struct det_test_memory memory;
    struct det_error error = { 0 };
    struct stage stage;
    bool has_failed = true;
    int r;

    (void)state;
    for (uint64_t number = 1; has_failed; number += 1 + number / 16) {
        open_stage(&stage, "version: 1\ntasks: {a: {run: 'true'}}\n");
        det_arena_deinit(&stage.up.file.arena);
        read_file(&stage, HEAD "  children: [{name: hello, kind: helloworld}]\n");
        det_test_memory_init(&memory);
        stage.cli.allocator = &memory.allocator;
        det_test_memory_fail(&memory, number, false);
        r = up_workers_open(&stage.up, &error);
        if (r == 0)
            spend(&stage, DET_SECOND);
        up_workers_close(&stage.up);
        has_failed = det_test_memory_fail(&memory, 0, false);
        assert_true(r == 0 || (has_failed && error.text[0]));
        stage.cli.allocator = NULL;
        det_test_memory_deinit(&memory);
        close_stage(&stage);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_comes_up_and_is_told),
        cmocka_unit_test(what_built_in_kinds_inherit_is_provided),
        cmocka_unit_test(a_message_is_told_with_its_sender_and_its_beginning),
        cmocka_unit_test(figures_are_taken_by_the_loop),
        cmocka_unit_test(workers_are_put_and_taken_away),
        cmocka_unit_test(orders_are_given),
        cmocka_unit_test(who_asked_may_go_away),
        cmocka_unit_test(a_question_on_its_way_does_not_keep_it_from_closing),
        cmocka_unit_test(what_is_on_record_comes_in_pages),
        cmocka_unit_test(configs_and_variables_that_were_put_by_hand_are_not_told),
        cmocka_unit_test(another_file_is_another_tree),
        cmocka_unit_test(it_stops_by_itself_and_is_forced),
        cmocka_unit_test(a_kind_that_is_not_there_is_told),
        cmocka_unit_test(without_workers_there_is_nothing_to_ask),
        cmocka_unit_test(a_want_of_memory_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
