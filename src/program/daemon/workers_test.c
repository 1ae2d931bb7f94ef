/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers_test.c - the workers of `detent up` in a simulated world: events, answers to requests, a
 * reload, closing. tests/e2e/workers.py tests the complete program. */
#include "daemon/workers_test.h"
#include "daemon/project_internal.h"

static void worker_tree_starts_and_is_listed(void **state)
{
    struct up_worker_history history = { .id = "plant/press" };
    const struct det_json_value *answer;
    struct stage stage;

    (void)state;
    open_stage(
        &stage, HEAD "  children:\n"
                     "    - {name: hello, kind: helloworld}\n"
                     "    - {name: press, kind: examplechild, config: {address: x}}\n");
    spend(&stage, 10 * DET_SECOND);
    answer = list_workers(&stage, NULL);
    assert_int_equal(answer->count, 3);
    assert_string_equal(text_of(answer, 0, "id"), "plant");
    assert_int_equal(det_json_get(answer->first, "parent")->kind, DET_JSON_NULL);
    assert_string_equal(text_of(answer, 1, "state"), "running");
    assert_string_equal(text_of(answer, 2, "parent"), "plant");
    assert_string_equal(text_of(answer, 2, "freshness"), "fresh");
    answer = ask(&stage, run_show, "press");
    assert_string_equal(det_json_get_text(answer, "id"), "plant/press");
    assert_string_equal(desired_address(answer), "x");
    answer = ask(&stage, run_history, &history);
    assert_string_equal(text_of(det_json_get(answer, "items"), 0, "to"), "connected");
    assert_string_equal(text_of(det_json_get(answer, "items"), 0, "kind"), "worker_history");
    assert_printed(&stage, "workers = worker_added worker=plant(application) number=1\n");
    assert_printed(&stage, "to=connected reason=\"connected to x\"");
    close_stage(&stage);
}

/* Pages of two: the last id continues, or the count if that worker is gone. */
static void workers_are_listed_in_pages(void **state)
{
    struct up_worker_page page = every_worker();
    const struct det_json_value *answer;
    struct stage stage;

    (void)state;
    open_stage(
        &stage, HEAD "  children: [{name: a, kind: noop}, {name: b, kind: noop}, "
                     "{name: c, kind: noop}]\n");
    spend(&stage, 5 * DET_SECOND);
    page.limit = 2;
    answer = ask(&stage, run_list, &page);
    assert_int_equal(answer->count, 2);
    assert_string_equal(page.last, "plant/a");
    assert_int_equal(page.passed, 2);
    assert_true(page.has_more);
    page = (struct up_worker_page){
        .limit = 2, .size_max = SIZE_MAX, .after = "plant/gone", .skip = 2
    };
    answer = ask(&stage, run_list, &page);
    assert_string_equal(text_of(answer, 0, "id"), "plant/b");
    assert_string_equal(page.last, "plant/c");
    assert_int_equal(page.passed, 4);
    assert_false(page.has_more);
    /* One worker is larger than the page. */
    page = (struct up_worker_page){ .limit = 2, .size_max = 2, .after = "plant/a" };
    answer = ask(&stage, run_list, &page);
    assert_int_equal(answer->count, 1);
    assert_string_equal(page.last, "plant/b");
    assert_int_equal(page.passed, 3);
    assert_true(page.has_more);
    page = (struct up_worker_page){
        .limit = 2, .size_max = SIZE_MAX, .has_phase = true, .phase = DET_PHASE_STOPPING
    };
    assert_int_equal(ask(&stage, run_list, &page)->count, 0);
    assert_string_equal(page.last, "");
    close_stage(&stage);
}

static void worker_history_is_read_in_pages(void **state)
{
    struct up_worker_history history = { .id = "press", .has_after = true };
    const struct det_json_value *answer;
    struct stage stage;
    uint64_t next;

    (void)state;
    open_stage(
        &stage, HEAD "  children: [{name: press, kind: examplechild, config: {address: x}}]\n");
    spend(&stage, 10 * DET_SECOND);
    answer = ask(&stage, run_history, &history);
    next = det_json_get_number(answer, "next");
    assert_true(next > 0);
    assert_int_equal(det_json_get(answer, "items")->count, next);
    assert_int_equal(det_json_get_number(det_json_get(answer, "items")->first, "sequence"), 1);
    assert_int_equal(det_json_get_number(answer, "lost"), 0);
    history.after = next;
    answer = ask(&stage, run_history, &history);
    assert_int_equal(det_json_get(answer, "items")->count, 0);
    assert_int_equal(det_json_get_number(answer, "next"), next);
    /* The cursor of an earlier run. */
    history.after = next + 1000;
    answer = ask(&stage, run_history, &history);
    assert_int_equal(det_json_get(answer, "items")->count, next);
    assert_int_equal(det_json_get_number(answer, "next"), next);
    history = (struct up_worker_history){ .id = "press" };
    assert_int_equal(det_json_get_number(ask(&stage, run_history, &history), "next"), next);
    close_stage(&stage);
}

static void built_in_kinds_get_their_inherited_dependencies(void **state)
{
    const struct det_json_value *list;
    struct stage stage;

    (void)state;
    open_stage(
        &stage, HEAD "  children:\n"
                     "    - {name: compact, kind: persistence}\n"
                     "    - name: relay\n"
                     "      kind: communicator\n"
                     "      config: {relay_url: \"http://127.0.0.1:1\", auth_token: abc}\n");
    spend(&stage, 5 * DET_SECOND);
    list = list_workers(&stage, NULL);
    assert_int_equal(list->count, 3);
    assert_string_equal(text_of(list, 1, "state"), "running");
    assert_string_equal(text_of(list, 2, "state"), "authenticating");
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

static void message_is_printed_with_its_sender_and_a_prefix(void **state)
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

static void worker_metrics_are_collected_on_the_loop(void **state)
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

static void totals_include_all_workers(void **state)
{
    struct up_worker_totals totals;
    struct det_arena arena;
    struct stage stage;

    (void)state;
    det_arena_init(&arena, NULL);
    open_stage(
        &stage, HEAD "  children:\n"
                     "    - {name: a, kind: noop}\n"
                     "    - name: oven\n"
                     "      kind: examplefailing\n"
                     "      config: {should_fail: true, max_failures: 999999}\n");
    spend(&stage, 10 * DET_SECOND);
    assert_int_equal(up_total_workers(&stage.up, &arena, &totals), 0);
    assert_true(totals.are_there);
    assert_int_equal(totals.summary.workers, 3);
    assert_int_equal(totals.unwell_count, 1);
    assert_int_equal(totals.unwell_shown, 1);
    assert_string_equal(totals.unwell[0].id, "plant/oven");
    assert_true(*totals.unwell[0].why != '\0');
    close_stage(&stage);
    det_arena_deinit(&arena);
}

static void refuse_put(
    struct stage *stage, const struct up_worker_put *put, int code, const char *part)
{
    struct up_worker_put copy = *put;

    expect_refusal(stage, run_put, &copy, code, part);
}

static void workers_are_created_and_deleted(void **state)
{
    static const char *const running[] = { "running" }, *const flying[] = { "flying" };
    struct up_worker_put extra = { .id = "extra",
                                   .kind = "examplechild",
                                   .config = "address: '{{ .A }}'",
                                   .variables = "{A: here}",
                                   .run_in = running,
                                   .run_in_count = 1 };
    const struct det_json_value *answer;
    struct stage stage;

    (void)state;
    open_stage(&stage, HEAD "  children: [{name: hello, kind: helloworld}]\n");
    answer = ask(&stage, run_put, &extra);
    assert_string_equal(det_json_get_text(answer, "kind"), "worker_put");
    assert_string_equal(det_json_get_text(answer, "id"), "plant/extra");
    spend(&stage, 5 * DET_SECOND);
    assert_state(&stage, "plant/extra", "connected");
    refuse_put(
        &stage, &(struct up_worker_put){ .id = "x", .kind = "nop" }, DET_ERR_NOT_FOUND,
        "did you mean 'noop'?");
    refuse_put(
        &stage, &(struct up_worker_put){ .id = "a/x", .kind = "noop" }, DET_ERR_NOT_FOUND,
        "plant/a");
    refuse_put(
        &stage, &(struct up_worker_put){ .id = "hello", .kind = "noop" }, DET_ERR_EXISTS,
        "in its own spec");
    refuse_put(
        &stage,
        &(struct up_worker_put){ .id = "x", .kind = "noop", .run_in = flying, .run_in_count = 1 },
        DET_ERR_INVALID, "flying");
    refuse_put(
        &stage, &(struct up_worker_put){ .id = "plant", .kind = "noop" }, DET_ERR_INVALID,
        "not the id of a child worker");
    expect_refusal(&stage, run_delete, "extr", DET_ERR_NOT_FOUND, "did you mean 'extra'?");
    answer = ask(&stage, run_delete, "extra");
    assert_string_equal(det_json_get_text(answer, "kind"), "worker_deleted");
    spend(&stage, 5 * DET_SECOND);
    expect_refusal(&stage, run_show, "extra", DET_ERR_NOT_FOUND, "no worker");
    close_stage(&stage);
}

static void worker_orders_are_executed(void **state)
{
    struct order order = { "hello", DET_WORKER_ORDER_DISABLE };
    struct stage stage;

    (void)state;
    open_stage(&stage, HEAD "  children: [{name: hello, kind: helloworld}]\n");
    spend(&stage, 5 * DET_SECOND);
    assert_string_equal(det_json_get_text(ask(&stage, run_order, &order), "order"), "disable");
    spend(&stage, 5 * DET_SECOND);
    assert_state(&stage, "hello", "stopped");
    order.order = DET_WORKER_ORDER_ENABLE;
    assert_string_equal(det_json_get_text(ask(&stage, run_order, &order), "id"), "plant/hello");
    spend(&stage, 5 * DET_SECOND);
    assert_state(&stage, "hello", "running");
    order.id = "nobody";
    expect_refusal(&stage, run_order, &order, DET_ERR_NOT_FOUND, "no worker 'nobody'");
    close_stage(&stage);
}

/* The change is made, and nothing is written for a disconnected client. */
static void a_client_may_disconnect(void **state)
{
    struct up_worker_put late = { .id = "late", .kind = "noop" };
    struct answer answer;
    struct stage stage;

    (void)state;
    open_stage(&stage, HEAD);
    spend(&stage, DET_SECOND);
    begin_ask(&stage, &answer, run_put, &late);
    assert_false(answer.is_finished);
    assert_true(answer.request.is_kept);
    up_request_abandon(&answer.request);
    spend(&stage, 5 * DET_SECOND);
    assert_state(&stage, "late", "running");
    assert_int_equal(answer.json.text.size, 0);
    free_answer(&answer);
    close_stage(&stage);
}

/* Closing waits for the request, and turns the loop itself. */
static void close_finishes_a_pending_request(void **state)
{
    struct up_worker_put late = { .id = "late", .kind = "noop" };
    struct answer answer;
    struct stage stage;

    (void)state;
    open_stage(&stage, HEAD);
    begin_ask(&stage, &answer, run_put, &late);
    up_workers_close(&stage.up);
    assert_true(answer.is_finished);
    free_answer(&answer);
    close_stage(&stage);
}

/* No answer has its config or its variables. */
static void configs_and_variables_are_not_in_answers(void **state)
{
    struct up_worker_put extra = {
        .id = "extra", .kind = "noop", .config = "# hunter2", .variables = "{A: hunter2}"
    };
    struct up_worker_history history = { .id = "extra" };
    struct stage stage;

    (void)state;
    open_stage(&stage, HEAD "  children: [{name: hello, kind: helloworld}]\n");
    ask(&stage, run_put, &extra);
    assert_null(strstr(det_buffer_text(&stage.answer.json.text), "hunter2"));
    spend(&stage, 5 * DET_SECOND);
    list_workers(&stage, "extra");
    assert_null(strstr(det_buffer_text(&stage.answer.json.text), "hunter2"));
    ask(&stage, run_show, "extra");
    assert_null(strstr(det_buffer_text(&stage.answer.json.text), "hunter2"));
    ask(&stage, run_history, &history);
    assert_null(strstr(det_buffer_text(&stage.answer.json.text), "hunter2"));
    close_stage(&stage);
}

static void reloaded_file_replaces_the_tree(void **state)
{
    struct cli_problems problems = { .count = 0 };
    struct det_error error = { 0 };
    struct stage stage;
    struct det_arena old;

    (void)state;
    open_stage(
        &stage, HEAD "  globals: {x: one}\n  children:\n"
                     "    - {name: a, kind: examplechild, config: {address: '{{ .global.x }}'}}\n"
                     "    - {name: goes, kind: noop}\n");
    spend(&stage, 5 * DET_SECOND);
    old = stage.project.file.arena;
    read_file(
        &stage, HEAD "  globals: {x: two}\n  children:\n"
                     "    - {name: a, kind: examplechild, config: {address: '{{ .global.x }}'}}\n"
                     "    - {name: comes, kind: noop}\n");
    /* Nothing points into the old file. */
    det_arena_deinit(&old);
    assert_int_equal(up_workers_check(&stage.up, &stage.project.file.config.workers, &problems), 0);
    assert_int_equal(up_workers_reload(&stage.up, &error), 0);
    spend(&stage, 5 * DET_SECOND);
    assert_state(&stage, "comes", "running");
    assert_string_equal(desired_address(ask(&stage, run_show, "a")), "two");
    expect_refusal(&stage, run_show, "goes", DET_ERR_NOT_FOUND, "no worker");
    close_stage(&stage);
}

static void workers_stop_gracefully_or_forced(void **state)
{
    struct stage stage;

    (void)state;
    open_stage(&stage, HEAD "  children: [{name: hello, kind: helloworld}]\n");
    spend(&stage, 5 * DET_SECOND);
    assert_false(up_workers_are_over(&stage.up));
    up_begin_stop(&stage.up);
    expect_refusal(&stage, run_show, "hello", DET_ERR_CLOSED, "shutting down");
    spend(&stage, 5 * DET_SECOND);
    assert_true(up_workers_are_over(&stage.up));
    up_workers_finish(&stage.up);
    up_check_empty(&stage.up);
    assert_true(up_is_over(&stage.up));
    assert_false(up_was_forced(&stage.up));
    close_stage(&stage);

    /* An action that ignores its cancellation keeps its worker from stopping. */
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

static void an_unknown_kind_is_reported(void **state)
{
    struct cli_problems problems = { .count = 0 };
    struct stage stage;

    (void)state;
    open_stage(&stage, HEAD);
    det_arena_deinit(&stage.project.file.arena);
    read_file(&stage, HEAD "  children: [{name: a, kind: nop}]\n");
    assert_int_equal(
        up_workers_check(&stage.up, &stage.project.file.config.workers, &problems),
        DET_ERR_MALFORMED);
    assert_int_equal(problems.items[0].line, 4);
    close_stage(&stage);
}

static void requests_without_workers_are_unsupported(void **state)
{
    struct stage stage;

    (void)state;
    open_stage(&stage, "version: 1\ntasks: {a: {run: 'true'}}\n");
    assert_null(stage.up.workers);
    assert_true(up_workers_are_over(&stage.up));
    expect_refusal(&stage, run_show, "hello", DET_ERR_UNSUPPORTED, "has no workers");
    up_workers_stop(&stage.up);
    up_workers_finish(&stage.up);
    close_stage(&stage);
}

/* Opens with limited memory; it can be closed in either case. */
static void opening_out_of_memory_is_reported(void **state)
{
    struct det_test_memory memory;
    struct det_error error = { 0 };
    struct stage stage;
    bool has_failed = true;
    int r;

    (void)state;
    for (uint64_t number = 1; has_failed; number += 1 + number / 16) {
        open_stage(&stage, "version: 1\ntasks: {a: {run: 'true'}}\n");
        det_arena_deinit(&stage.project.file.arena);
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

/* Fails each allocation once. */
static void try_request(
    struct stage *stage, struct det_test_memory *memory, request_fn *run, void *arguments)
{
    bool has_failed = true;

    for (uint64_t number = 1; has_failed; number++) {
        const struct answer *answer;
        int code;

        det_test_memory_fail(memory, number, false);
        answer = finish_ask(stage, run, arguments);
        has_failed = det_test_memory_fail(memory, 0, false);
        code = answer->request.error.code;
        if (code == 0)
            code = det_buffer_status(&answer->json.text);
        if (code != 0 && (code != DET_ERR_NO_MEMORY || !has_failed))
            fail_msg("%s", answer->request.error.text);
    }
}

static void run_list_again(struct up *up, struct up_request *request, void *arguments)
{
    struct up_worker_page *page = arguments;

    *page = every_worker();
    page->below = "plant";
    run_list(up, request, page);
}

static void run_totals(struct up *up, struct up_request *request, void *arguments)
{
    struct up_worker_totals totals;

    if (up_total_workers(up, arguments, &totals) < 0) {
        up_request_fail_memory(request);
        return;
    }
    up_write_worker_totals(request->json, NULL, &totals);
    up_request_end(request);
}

static void out_of_memory_fails_a_request(void **state)
{
    struct up_worker_put extra = { .id = "extra", .kind = "noop", .variables = "{A: here}" };
    struct up_worker_history history = { .id = "oven", .has_after = true };
    struct order order = { "extra", DET_WORKER_ORDER_DISABLE };
    struct det_test_memory memory;
    struct up_worker_page page;
    struct det_error error = { 0 };
    struct det_arena arena;
    struct stage stage;

    (void)state;
    open_stage(&stage, "version: 1\ntasks: {a: {run: 'true'}}\n");
    det_arena_deinit(&stage.project.file.arena);
    read_file(
        &stage, HEAD "  children:\n"
                     "    - name: oven\n"
                     "      kind: examplefailing\n"
                     "      config: {should_fail: true, max_failures: 999999}\n");
    det_test_memory_init(&memory);
    stage.cli.allocator = &memory.allocator;
    det_arena_init(&arena, &memory.allocator);
    assert_int_equal(up_workers_open(&stage.up, &error), 0);
    spend(&stage, 5 * DET_SECOND);
    try_request(&stage, &memory, run_put, &extra);
    spend(&stage, 5 * DET_SECOND);
    try_request(&stage, &memory, run_order, &order);
    try_request(&stage, &memory, run_list_again, &page);
    try_request(&stage, &memory, run_totals, &arena);
    try_request(&stage, &memory, run_show, "oven");
    try_request(&stage, &memory, run_history, &history);
    free_answer(&stage.answer);
    det_arena_deinit(&arena);
    up_workers_close(&stage.up);
    stage.cli.allocator = NULL;
    det_test_memory_deinit(&memory);
    close_stage(&stage);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker_tree_starts_and_is_listed),
        cmocka_unit_test(workers_are_listed_in_pages),
        cmocka_unit_test(worker_history_is_read_in_pages),
        cmocka_unit_test(built_in_kinds_get_their_inherited_dependencies),
        cmocka_unit_test(message_is_printed_with_its_sender_and_a_prefix),
        cmocka_unit_test(worker_metrics_are_collected_on_the_loop),
        cmocka_unit_test(totals_include_all_workers),
        cmocka_unit_test(workers_are_created_and_deleted),
        cmocka_unit_test(worker_orders_are_executed),
        cmocka_unit_test(a_client_may_disconnect),
        cmocka_unit_test(close_finishes_a_pending_request),
        cmocka_unit_test(configs_and_variables_are_not_in_answers),
        cmocka_unit_test(reloaded_file_replaces_the_tree),
        cmocka_unit_test(workers_stop_gracefully_or_forced),
        cmocka_unit_test(an_unknown_kind_is_reported),
        cmocka_unit_test(requests_without_workers_are_unsupported),
        cmocka_unit_test(opening_out_of_memory_is_reported),
        cmocka_unit_test(out_of_memory_fails_a_request),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
