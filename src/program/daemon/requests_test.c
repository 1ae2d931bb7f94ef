/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* requests_test.c - requests to the daemon, on a loop that the test turns: answers, refusals, and
 * each request out of memory. */

#include "lib/test.h"

#include <stdlib.h>

#include "base/buffer.h"
#include "daemon/lookups.h"
#include "daemon/project_internal.h"
#include "daemon/run.h"
#include "daemon/slots.h"
#include "daemon/task_output_internal.h"
#include "daemon/tasks_internal.h"
#include "yaml/datum.h"
#include "json/writer.h"

#define PATIENCE (10 * DET_MINUTE)

static const char file_text[] =
    "version: 1\n"
    "groups: {group: {}, inner: {parent: group}}\n"
    "slots: {batch: {depth: 2}}\n"
    "tasks:\n"
    "  web: {run: [sh, -c, 'echo one; echo two >&2; exec sleep 60'], restart: always}\n"
    "  member: {run: sleep 60, group: inner}\n"
    "  done: {run: 'true', restart: never}\n"
    "  job: {run: sleep 60, slot: batch}\n"
    "  queued: {run: sleep 60, slot: batch}\n";

/* A request and its answer: a line for each part. */
struct spoken {
    struct up_request request;
    struct det_json_writer json;
    bool is_over, is_gone;
    bool is_cut; /* out of memory for a part */
    size_t size;
    char answer[1 << 16];
};

struct stage {
    struct det_test_memory memory;
    struct cli cli;
    struct up_options options;
    struct up up;
    struct up_project project;
    bool is_selected[5];
    struct up_configured known[5];
    struct spoken spoken;
};

static void turn(struct stage *stage)
{
    det_time now = det_world_now(NULL, DET_CLOCK_MONOTONIC);

    assert_true(det_loop_turn(stage->up.loop, now + PATIENCE) > 0);
    up_follow_all(&stage->up);
}

static struct spoken *spoken_of(struct up_request *request)
{
    return DET_CONTAINER(request, struct spoken, request);
}

static void add_answer(struct spoken *spoken, const char *key)
{
    const char *text = det_buffer_text(&spoken->json.text);

    spoken->is_cut |= det_buffer_status(&spoken->json.text) < 0;
    if (!spoken->is_cut && !spoken->is_gone)
        spoken->size += (size_t)snprintf(
            spoken->answer + spoken->size, sizeof spoken->answer - spoken->size, "{\"%s\":%s}\n",
            key, text);
    assert_true(spoken->size < sizeof spoken->answer);
    det_json_writer_clear(&spoken->json);
}

static void on_part(struct up_request *request)
{
    add_answer(spoken_of(request), "data");
}

static void on_finished(struct up_request *request)
{
    struct spoken *spoken = spoken_of(request);

    assert_false(spoken->is_over);
    spoken->is_over = true;
    if (spoken->json.text.size > 0)
        add_answer(spoken, "data");
    if (request->error.code < 0) {
        det_json_text(&spoken->json, NULL, request->error.text);
        add_answer(spoken, "error");
    } else {
        det_json_bool(&spoken->json, NULL, true);
        add_answer(spoken, "end");
    }
    det_json_writer_deinit(&spoken->json);
}

typedef void ask_fn(struct up *up, struct up_request *request, void *arguments);

static void print(struct stage *stage, ask_fn *run, void *arguments)
{
    static const struct up_request_ops ops = { .part = on_part, .finished = on_finished };
    struct spoken *spoken = &stage->spoken;

    assert_true(spoken->is_over);
    *spoken = (struct spoken){ 0 };
    det_json_writer_init(&spoken->json, &stage->memory.allocator);
    spoken->request = (struct up_request){ .ops = &ops, .json = &spoken->json };
    up_request_open(&stage->up, &spoken->request);
    run(&stage->up, &spoken->request, arguments);
}

/* The client disconnects. */
static void hang_up(struct stage *stage)
{
    if (stage->spoken.is_over)
        return;
    stage->spoken.is_gone = true;
    up_request_abandon(&stage->spoken.request);
}

/* Turns the loop until an answer has `end`; false: no more answers. */
static bool receive(struct stage *stage, const char *end)
{
    const struct spoken *spoken = &stage->spoken;

    while (!strstr(spoken->answer, end) && !strstr(spoken->answer, "\"error\"")) {
        if (spoken->is_over || spoken->is_cut)
            return false;
        turn(stage);
    }
    return !spoken->is_cut;
}

static void ask(
    struct stage *stage, ask_fn *run, void *arguments, const char *end, const char *part)
{
    print(stage, run, arguments);
    assert_true(receive(stage, end));
    if (!strstr(stage->spoken.answer, part))
        fail_msg("no '%s' in the answer: %s", part, stage->spoken.answer);
}

#define END          "\"end\":true"
#define RESTART(...) ((struct up_order){ .kind = UP_ORDER_RESTART, __VA_ARGS__ })
#define STOP(...)    ((struct up_order){ .kind = UP_ORDER_STOP, __VA_ARGS__ })
#define DRAIN(...)   ((struct up_order){ .kind = UP_ORDER_DRAIN, __VA_ARGS__ })

static void give_order(struct up *up, struct up_request *request, void *arguments)
{
    up_give_order(up, request, arguments);
}

static void give(struct stage *stage, struct up_order order)
{
    print(stage, give_order, &order);
}

static void order(struct stage *stage, struct up_order order, const char *part)
{
    ask(stage, give_order, &order, END, part);
}

static void list_slots(struct up *up, struct up_request *request, void *arguments)
{
    static const struct up_slots_viewer nobody;

    (void)arguments;
    up_list_slots(up, request, &nobody);
}

static void submit(struct up *up, struct up_request *request, void *arguments)
{
    up_submit(up, request, arguments);
}

#define RUN(...)                  \
    .argv = (const char *const[]) \
    {                             \
        __VA_ARGS__, NULL         \
    }
/* Submits a job with these fields. */
#define SUBMIT(stage, end, part, ...) \
    ask(stage, submit, &(struct up_submission){ __VA_ARGS__ }, end, part)

#define DONE "\"kind\":\"done\""

static void read_file(struct up *up)
{
    static const char *const none[] = { NULL };
    static struct cli_problems problems;
    struct det_datum *root;

    det_arena_init(&up->project->file.arena, NULL);
    assert_int_equal(
        det_yaml_read(
            &up->project->file.arena, file_text, sizeof file_text - 1, &root, &problems.items[0]),
        0);
    assert_int_equal(
        config_read(&up->project->file.arena, root, &up->project->file.config, &problems), 0);
    assert_int_equal(
        config_settle(
            &up->project->file.config, &up->project->file.arena, up->project->folder, none),
        0);
}

static int open_stage(void **state)
{
    static struct stage stage;
    struct up *up = &stage.up;
    char *folder = det_test_folder();

    stage = (struct stage){ .cli = { .world = det_world_real() } };
    det_test_memory_init(&stage.memory);
    stage.cli.allocator = &stage.memory.allocator;
    stage.cli.out = stage.cli.err = fopen("/dev/null", "w");
    up->cli = up->output.outer = &stage.cli;
    up->options = &stage.options;
    up->project = &stage.project;
    snprintf(up->project->folder, sizeof up->project->folder, "%s", folder);
    free(folder);
    up->project->is_selected = stage.is_selected;
    up->project->configured = stage.known;
    memset(stage.is_selected, 1, sizeof stage.is_selected);
    det_list_init(&up->requests);
    up->output.limit = SIZE_MAX;
    assert_int_equal(up_log_open(up), 0);
    assert_int_equal(det_loop_open(NULL, NULL, &up->loop), 0);
    assert_int_equal(up_life_open(up, &up_daemon_life), 0);
    read_file(up);
    assert_int_equal(up_tasks_open(up, NULL), 0);
    assert_int_equal(up_slots_open(up, NULL), 0);
    assert_int_equal(up_add_all(up, NULL), 0);
    up_begin(up);
    stage.spoken.is_over = true;
    *state = &stage;
    return 0;
}

static int close_stage(void **state)
{
    struct stage *stage = *state;
    struct up *up = &stage->up;
    char *folder = strdup(up->project->folder);

    hang_up(stage);
    assert_true(det_list_is_empty(&up->tasks->waits) && det_list_is_empty(&up->log->followers));
    up_slots_close(up);
    up_tasks_close(up);
    up_life_close(up->life);
    det_loop_close(up->loop);
    up_log_close(up);
    det_arena_deinit(&up->project->file.arena);
    fclose(stage->cli.out);
    det_test_memory_deinit(&stage->memory);
    det_test_folder_remove(folder);
    return 0;
}

/* True if the description of the task has the part. */
static bool looks_like(struct stage *stage, const char *part)
{
    struct det_json_writer json;
    bool is_there;

    det_json_writer_init(&json, NULL);
    det_json_open(&json, NULL, '{');
    up_write_status(&stage->up, &json, "status");
    assert_int_equal(up_write_groups(&stage->up, &json, "groups"), 0);
    assert_int_equal(up_write_tasks(&stage->up, &json, "tasks"), 0);
    det_json_close(&json, '}');
    is_there = strstr(det_buffer_text(&json.text), part);
    det_json_writer_deinit(&json);
    return is_there;
}

static void inspect(struct stage *stage, const char *part)
{
    if (!looks_like(stage, part))
        fail_msg("nothing looks like '%s'", part);
}

static void every_view_can_be_requested(void **state)
{
    struct stage *stage = *state;
    struct det_json_writer json;

    inspect(stage, "\"state\":\"running\"");
    inspect(stage, "\"name\":\"web\"");
    inspect(stage, "\"state\":\"queued\"");
    inspect(stage, "\"name\":\"inner\",\"parent\":\"group\"");
    ask(stage, list_slots, NULL, END, "\"owner_name\":\"job\"");
    assert_int_equal(up_slot_exists(&stage->up, "batch"), 1);
    assert_int_equal(up_slot_exists(&stage->up, "nobody"), 0);
    assert_int_equal(up_has_task(&stage->up, "queued"), 1);
    assert_int_equal(up_has_task(&stage->up, "nobody"), 0);
    det_json_writer_init(&json, NULL);
    assert_int_equal(up_write_one_task(&stage->up, &json, "web"), 0);
    assert_non_null(strstr(det_buffer_text(&json.text), "\"base_ns\""));
    det_json_writer_clear(&json);
    assert_int_equal(up_write_one_task(&stage->up, &json, "nobody"), DET_ERR_NOT_FOUND);
    det_json_writer_deinit(&json);
}

static void invalid_submissions_are_refused(void **state)
{
    struct stage *stage = *state;

    SUBMIT(stage, "}\n", "needs 'run'", .slot = "batch");
    SUBMIT(stage, "}\n", "has no name", RUN(""));
    SUBMIT(
        stage, "}\n", "there is no slot 'bach'; did you mean 'batch'? --new-slot creates it",
        RUN("true"), .slot = "bach");
    SUBMIT(stage, "}\n", "\"started\":true", RUN("true"), .slot = "new", .creates_slot = true);
    SUBMIT(stage, "}\n", "is not a name", RUN("true"), .name = "a b");
    SUBMIT(stage, "}\n", "is not a name", RUN("true"), .name = "a\a");
    SUBMIT(stage, "}\n", "too large", RUN("true"), .retries = 4294967295);
    SUBMIT(stage, "}\n", "cannot keep a key", RUN("true"), .slot = "batch", .key = "a");
}

static void unknown_names_are_reported(void **state)
{
    struct stage *stage = *state;

    order(stage, STOP(.name = "bach"), "did you mean 'batch'?");
    order(stage, DRAIN(.name = "membr"), "did you mean 'member'?");
    order(stage, STOP(.name = "queud"), "did you mean 'queued'?");
    order(stage, RESTART(.name = "batch"), "there is no task or group 'batch'");
    order(stage, STOP(.name = "zzzzzzzz"), "or slot 'zzzzzzzz'\"");
}

static void orders_reach_their_tasks(void **state)
{
    struct stage *stage = *state;

    order(stage, RESTART(.name = "web", .waits = true), "\"count\":1");
    order(stage, RESTART(.name = "queued"), "\"count\":0");
    order(stage, RESTART(.name = "group", .waits = true), "\"count\":1");
    order(stage, STOP(.name = "web", .waits = true), "\"count\":1");
    order(stage, STOP(.name = "web"), "\"count\":0");
    order(stage, RESTART(.name = "web", .waits = true), "\"count\":1");
    order(stage, STOP(.name = "group", .waits = true), "\"count\":1");
    order(stage, STOP(.name = "group", .waits = true), "\"count\":0");
    order(stage, DRAIN(.name = "queued", .waits = true), "\"count\":1");
    order(stage, DRAIN(.name = "inner", .waits = true), "\"count\":1");
    order(stage, STOP(.name = "batch", .waits = true, .purges = true), "\"count\":1");
}

static void job_that_cannot_start_ends_as_failed(void **state)
{
    struct stage *stage = *state;

    SUBMIT(stage, END, "\"outcome\":\"failed\"", RUN("no-such-program"), .wait_wanted = true);
    SUBMIT(stage, END, "\"outcome\":\"failed\"", RUN("/no/such/"), .wait_wanted = true);
    SUBMIT(
        stage, END, "\"outcome\":\"completed\"", RUN("true"), .folder = "/", .wait_wanted = true);
    SUBMIT(
        stage, END, "\"outcome\":\"failed\"", RUN("true"), .folder = "none", .wait_wanted = true);
}

static void a_job_has_the_environment_that_was_submitted(void **state)
{
    static const struct up_variable variables[] = { { "A", "one" }, { "HOME", "two" } };
    struct stage *stage = *state;

    SUBMIT(
        stage, END, "\"outcome\":\"completed\"",
        RUN("sh", "-c", "test \"$A$HOME\" = onetwo && test -n \"$PATH\""), .environment = variables,
        .environment_count = 2, .wait_wanted = true);
}

static void closed_slots_refuse_submissions(void **state)
{
    struct stage *stage = *state;

    up_slots_close(&stage->up);
    SUBMIT(stage, "}\n", "admits no more jobs", RUN("true"));
    ask(stage, list_slots, NULL, "}\n", CLI_SHUTDOWN);
}

static void draining_admits_nothing_more(void **state)
{
    struct stage *stage = *state;

    order(stage, DRAIN(), DONE);
    inspect(stage, "\"state\":\"draining\"");
    SUBMIT(stage, "}\n", "admits no more jobs", RUN("true"));
    inspect(stage, "\"name\":\"job\"");
    while (!looks_like(stage, "\"state\":\"stopped\""))
        turn(stage);
    order(stage, RESTART(.name = "queued"), "\"count\":0");
}

static void a_stop_of_all_is_answered_at_the_end(void **state)
{
    struct stage *stage = *state;

    give(stage, STOP(.waits = true));
    while (!up_is_over(&stage->up))
        turn(stage);
    up_waits_over(&stage->up);
    assert_true(receive(stage, DONE));
    assert_non_null(strstr(stage->spoken.answer, DONE));
    order(stage, STOP(), DONE);
    inspect(stage, "\"state\":\"stopping\"");
}

static const struct up_names all_names;

static void follow_lines(struct up *up, struct up_request *request, void *none)
{
    (void)none;
    up_follow_lines(up, request, &all_names, 10, true);
}

static void list_lines(struct up *up, struct up_request *request, void *none)
{
    (void)none;
    up_follow_lines(up, request, &all_names, 10, false);
}

static void list_events(struct up *up, struct up_request *request, void *none)
{
    (void)none;
    up_follow_events(up, request, 0, false);
}

static void disconnected_client_is_removed(void **state)
{
    struct stage *stage = *state;

    print(stage, follow_lines, NULL);
    while (det_list_is_empty(&stage->up.log->followers))
        turn(stage);
    hang_up(stage);
    assert_true(det_list_is_empty(&stage->up.log->followers));
    give(stage, DRAIN(.name = "job", .waits = true));
    while (det_list_is_empty(&stage->up.tasks->waits))
        turn(stage);
    hang_up(stage);
    assert_true(det_list_is_empty(&stage->up.tasks->waits));
    print(
        stage, submit,
        &(struct up_submission){ RUN("sleep", "60"), .slot = "new", .creates_slot = true,
                                 .wait_wanted = true });
    assert_true(receive(stage, "submitted"));
    hang_up(stage);
    assert_true(det_list_is_empty(&stage->up.tasks->waits));
    inspect(stage, "\"kind\":\"status\"");
}

/* Repeats the request, each time with one more successful allocation, until all succeed. */
static void ask_without_memory(struct stage *stage, ask_fn *run, void *arguments)
{
    bool is_met = true;

    for (uint64_t n = 1; is_met; n++) {
        stage->memory.failed = false;
        stage->memory.fail_at = stage->memory.calls + n;
        print(stage, run, arguments);
        /* A task that cannot start for lack of memory is postponed by a second. */
        while (!stage->spoken.is_over && !stage->memory.failed)
            turn(stage);
        stage->memory.fail_at = 0;
        hang_up(stage);
        is_met = stage->memory.failed;
        assert_true(n < 1000);
    }
    inspect(stage, "\"kind\":\"status\"");
}

static void requests_survive_every_failed_allocation(void **state)
{
    static const struct up_variable variable = { "A", "1" };
    struct stage *stage = *state;

    ask_without_memory(stage, list_slots, NULL);
    ask_without_memory(stage, give_order, &RESTART(.name = "web", .waits = true));
    ask_without_memory(stage, give_order, &RESTART(.name = "group", .waits = true));
    ask_without_memory(
        stage, submit,
        &(struct up_submission){ RUN("true"), .environment = &variable, .environment_count = 1,
                                 .folder = "/", .wait_wanted = true });
    ask_without_memory(stage, list_lines, NULL);
    ask_without_memory(stage, list_events, NULL);
    ask_without_memory(stage, give_order, &STOP(.name = "group", .waits = true));
    ask_without_memory(stage, give_order, &STOP(.name = "batch", .waits = true));
    ask_without_memory(stage, give_order, &DRAIN(.name = "inner", .waits = true));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_view_can_be_requested),
        TEST(invalid_submissions_are_refused),
        TEST(unknown_names_are_reported),
        TEST(orders_reach_their_tasks),
        TEST(job_that_cannot_start_ends_as_failed),
        TEST(disconnected_client_is_removed),
        TEST(draining_admits_nothing_more),
        TEST(a_stop_of_all_is_answered_at_the_end),
        TEST(requests_survive_every_failed_allocation),
        TEST(closed_slots_refuse_submissions),
        TEST(a_job_has_the_environment_that_was_submitted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
