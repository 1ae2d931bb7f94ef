/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* verbs_test.c - the verbs of `detent up`, on a loop that the test turns: what they answer, what
 * they refuse, and that each of them survives a lack of memory. */
#include "daemon/verbs.h"

#include "lib/test.h"

#include <stdlib.h>

#include "base/buffer.h"
#include "daemon/lookups.h"
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

/* One call, and what was answered to it: a line for each part. */
struct spoken {
    struct up_errand errand;
    json_t *arguments;
    bool is_over, is_gone;
    bool is_cut; /* there was no memory for a part */
    size_t size;
    char answer[1 << 16];
};

struct stage {
    struct det_test_memory memory;
    struct cli cli;
    struct up_options options;
    struct up up;
    bool is_selected[5];
    struct up_known known[5];
    struct spoken spoken;
};

static void on_line(void *user, const struct det_line *line)
{
    struct up *up = user;

    up_lines_add(&up->lines, line, 1);
}

static void on_end(void *user, const struct det_task_end *end)
{
    up_known_ended(user, end);
    up_waits_ended(user, end);
}

static void on_patience(void *argument)
{
    (void)argument;
}

static void turn(struct stage *stage)
{
    det_time now = det_world_now(NULL, DET_CLOCK_MONOTONIC);

    assert_true(det_loop_turn(stage->up.loop, now + PATIENCE) > 0);
    up_follow_all(&stage->up);
}

static struct spoken *spoken_of(struct socket_call *call)
{
    return (struct spoken *)(void *)call;
}

static void put_part(struct socket_call *call, const char *key, json_t *value_take)
{
    struct spoken *spoken = spoken_of(call);
    char *text = value_take ? json_dumps(value_take, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    spoken->is_cut |= !text;
    if (text && !spoken->is_gone)
        spoken->size += (size_t)snprintf(
            spoken->answer + spoken->size, sizeof spoken->answer - spoken->size, "{\"%s\":%s}\n",
            key, text);
    assert_true(spoken->size < sizeof spoken->answer);
    free(text);
    json_decref(value_take);
}

static size_t none_waits(const struct socket_call *call)
{
    (void)call;
    return 0;
}

static bool is_gone(const struct socket_call *call)
{
    return ((const struct spoken *)(const void *)call)->is_gone;
}

static void release(struct socket_call *call)
{
    struct spoken *spoken = spoken_of(call);

    assert_false(spoken->is_over);
    spoken->is_over = true;
    det_list_remove(&spoken->errand.node);
    json_decref(spoken->arguments);
}

static void say(struct stage *stage, const char *verb, const char *arguments)
{
    static const struct socket_call_ops ops = { put_part, none_waits, is_gone, release };
    struct spoken *spoken = &stage->spoken;

    assert_true(spoken->is_over);
    *spoken = (struct spoken){ .errand.call.ops = &ops,
                               .arguments = json_loads(arguments ? arguments : "{}", 0, NULL) };
    assert_non_null(spoken->arguments);
    up_run_errand(&stage->up, &spoken->errand, verb, spoken->arguments);
}

/* Who asked goes away. */
static void hang_up(struct stage *stage)
{
    struct socket_call *call = &stage->spoken.errand.call;

    if (stage->spoken.is_over)
        return;
    stage->spoken.is_gone = true;
    if (call->on_gone)
        call->on_gone(call->user);
    release(call);
}

/* Turns the loop until an answer says `end`, or no more is said: then false. */
static bool hear(struct stage *stage, const char *end)
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
    struct stage *stage, const char *verb, const char *arguments, const char *end, const char *part)
{
    say(stage, verb, arguments);
    assert_true(hear(stage, end));
    if (!strstr(stage->spoken.answer, part))
        fail_msg("no '%s' in the answer to %s: %s", part, verb, stage->spoken.answer);
}

#define DONE "\"kind\":\"done\""
#define END  "\"end\":true"

static void open_parts(struct stage *stage)
{
    struct up *up = &stage->up;
    struct det_tasks_options tasks = {
        .loop = up->loop,
        .grace = -1,
        .on_line = on_line,
        .on_end = on_end,
        .user = up,
    };
    struct det_subscriber notes = up_notes_subscriber(up);

    assert_int_equal(det_tasks_open(&tasks, &up->tasks, NULL), 0);
    assert_int_equal(
        det_bus_subscribe(det_tasks_bus(up->tasks), &notes, &up->notes_subscription, NULL), 0);
}

static void read_file(struct up *up)
{
    static const char *const none[] = { NULL };
    static struct cli_problems problems;
    struct det_datum *root;

    det_arena_init(&up->file.arena, NULL);
    assert_int_equal(
        det_yaml_read(&up->file.arena, file_text, sizeof file_text - 1, &root, &problems.items[0]),
        0);
    assert_int_equal(config_read(&up->file.arena, root, &up->file.config, &problems), 0);
    assert_int_equal(config_settle(&up->file.config, &up->file.arena, up->project, none), 0);
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
    up->cli = &stage.cli;
    up->options = &stage.options;
    snprintf(up->project, sizeof up->project, "%s", folder);
    free(folder);
    up->patience.run = on_patience;
    up->is_selected = stage.is_selected;
    up->known = stage.known;
    memset(stage.is_selected, 1, sizeof stage.is_selected);
    det_list_init(&up->waits);
    det_list_init(&up->followers);
    det_list_init(&up->errands);
    up_lines_init(&up->lines, NULL);
    up->output.limit = SIZE_MAX;
    prefix_init(&up->prefix, &stage.cli, false);
    assert_int_equal(det_loop_open(NULL, NULL, &up->loop), 0);
    read_file(up);
    open_parts(&stage);
    assert_int_equal(up_add_all(up, NULL), 0);
    stage.spoken.is_over = true;
    *state = &stage;
    return 0;
}

static int close_stage(void **state)
{
    struct stage *stage = *state;
    struct up *up = &stage->up;
    char *folder = strdup(up->project);

    hang_up(stage);
    assert_true(det_list_is_empty(&up->waits) && det_list_is_empty(&up->followers));
    det_tasks_close(up->tasks);
    det_loop_close(up->loop);
    up_lines_deinit(&up->lines);
    det_arena_deinit(&up->file.arena);
    fclose(stage->cli.out);
    det_test_memory_deinit(&stage->memory);
    det_test_folder_remove(folder);
    return 0;
}

/* Whether what is written about it has the part. */
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

static void look(struct stage *stage, const char *part)
{
    if (!looks_like(stage, part))
        fail_msg("nothing looks like '%s'", part);
}

static void everything_can_be_looked_at(void **state)
{
    struct stage *stage = *state;
    struct det_json_writer json;

    look(stage, "\"state\":\"running\"");
    look(stage, "\"name\":\"web\"");
    look(stage, "\"state\":\"queued\"");
    look(stage, "\"name\":\"inner\",\"parent\":\"group\"");
    ask(stage, "slots", NULL, END, "\"owner_name\":\"job\"");
    assert_int_equal(up_has_task(&stage->up, "queued"), 1);
    assert_int_equal(up_has_task(&stage->up, "nobody"), 0);
    det_json_writer_init(&json, NULL);
    assert_int_equal(up_write_one_task(&stage->up, &json, "web"), 0);
    assert_non_null(strstr(det_buffer_text(&json.text), "\"base_ns\""));
    det_json_writer_clear(&json);
    assert_int_equal(up_write_one_task(&stage->up, &json, "nobody"), DET_ERR_NOT_FOUND);
    det_json_writer_deinit(&json);
}

static void arguments_are_strict(void **state)
{
    struct stage *stage = *state;

    ask(stage, "slots", "{\"a\":1}", "}\n", "'slots' has no argument 'a'");
    ask(stage, "restart", "{\"name\":\"\"}", "}\n", "is a text that is not empty");
    ask(stage, "restart", NULL, "}\n", "needs the argument 'name'");
    ask(stage, "stop", "{\"wait\":\"yes\"}", "}\n", "is true or false");
    ask(stage, "stop", "{\"purge\":true}", "}\n", "needs the name of a slot");
    ask(stage, "drain", "{\"nam\":\"web\"}", "}\n", "has no argument");
    ask(stage, "logs", "{\"lines\":-1}", "}\n", "is a whole number from 0");
    ask(stage, "logs", "{\"names\":[1]}", "}\n", "is an array of texts");
    ask(stage, "logs", "{\"names\":\"web\"}", "}\n", "is an array of texts");
    ask(stage, "events", "{\"after\":1.5}", "}\n", "is a whole number from 0");
    ask(stage, "submit", "{\"environment\":{\"A\":1}}", "}\n", "from names to texts");
    ask(stage, "submit", "{\"environment\":{\"A=B\":\"1\"}}", "}\n", "from names to texts");
    ask(stage, "submit", "{\"run\":[]}", "}\n", "needs 'run'");
    ask(stage, "submit", "{\"run\":[\"\"]}", "}\n", "has no name");
    ask(stage, "submit", "{\"run\":[\"true\"],\"slot\":\"batch\",\"admission\":\"now\"}", "}\n",
        "not 'now'");
    ask(stage, "submit", "{\"run\":[\"true\"],\"admission\":\"drop\"}", "}\n", "needs 'slot'");
    ask(stage, "submit", "{\"run\":[\"true\"],\"slot\":\"bach\"}", "}\n",
        "there is no slot 'bach'; did you mean 'batch'? --new-slot makes it");
    ask(stage, "submit", "{\"run\":[\"true\"],\"slot\":\"new\",\"new_slot\":true}", "}\n",
        "\"started\":true");
    ask(stage, "submit", "{\"run\":[\"true\"],\"name\":\"a b\"}", "}\n", "is no name");
    ask(stage, "submit", "{\"run\":[\"true\"],\"retries\":4294967295}", "}\n", "too large");
    ask(stage, "submit", "{\"run\":[\"true\"],\"name\":\"a\\u0007\"}", "}\n", "INVALID");
}

static void names_that_are_not_there_are_told(void **state)
{
    struct stage *stage = *state;

    ask(stage, "stop", "{\"name\":\"bach\"}", "}\n", "did you mean 'batch'?");
    ask(stage, "drain", "{\"name\":\"membr\"}", "}\n", "did you mean 'member'?");
    ask(stage, "restart", "{\"name\":\"batch\"}", "}\n", "there is no task or group 'batch'");
    ask(stage, "stop", "{\"name\":\"zzzzzzzz\"}", "}\n", "or slot 'zzzzzzzz'\"");
}

static void orders_reach_their_tasks(void **state)
{
    struct stage *stage = *state;

    ask(stage, "restart", "{\"name\":\"web\",\"wait\":true}", "}\n", "\"count\":1");
    ask(stage, "restart", "{\"name\":\"queued\"}", "}\n", "\"count\":0");
    ask(stage, "restart", "{\"name\":\"group\",\"wait\":true}", "}\n", "\"count\":1");
    ask(stage, "stop", "{\"name\":\"web\",\"wait\":true}", "}\n", "\"count\":1");
    ask(stage, "stop", "{\"name\":\"web\"}", "}\n", "\"count\":0");
    ask(stage, "restart", "{\"name\":\"web\",\"wait\":true}", "}\n", "\"count\":1");
    ask(stage, "stop", "{\"name\":\"group\",\"wait\":true}", "}\n", "\"count\":1");
    ask(stage, "stop", "{\"name\":\"group\",\"wait\":true}", "}\n", "\"count\":0");
    ask(stage, "drain", "{\"name\":\"queued\",\"wait\":true}", "}\n", "\"count\":1");
    ask(stage, "drain", "{\"name\":\"inner\",\"wait\":true}", "}\n", "\"count\":1");
    ask(stage, "stop", "{\"name\":\"batch\",\"purge\":true,\"wait\":true}", "}\n", "\"count\":1");
}

static void a_job_that_cannot_start_has_an_end(void **state)
{
    struct stage *stage = *state;

    ask(stage, "submit", "{\"run\":[\"no-such-program\"],\"wait\":true}", END,
        "\"outcome\":\"failed\"");
    ask(stage, "submit", "{\"run\":[\"/no/such/\"],\"wait\":true}", END, "\"outcome\":\"failed\"");
    ask(stage, "submit", "{\"run\":[\"true\"],\"folder\":\"/\",\"wait\":true}", END,
        "\"outcome\":\"completed\"");
    ask(stage, "submit", "{\"run\":[\"true\"],\"folder\":\"none\",\"wait\":true}", END,
        "\"outcome\":\"failed\"");
}

static void draining_admits_nothing_more(void **state)
{
    struct stage *stage = *state;

    ask(stage, "drain", NULL, "}\n", DONE);
    look(stage, "\"state\":\"draining\"");
    ask(stage, "submit", "{\"run\":[\"true\"]}", "}\n", "CLOSED");
    look(stage, "\"name\":\"job\"");
    while (!looks_like(stage, "\"state\":\"stopped\""))
        turn(stage);
    ask(stage, "restart", "{\"name\":\"queued\"}", "}\n", "\"count\":0");
}

static void a_stop_of_all_is_answered_at_the_end(void **state)
{
    struct stage *stage = *state;

    say(stage, "stop", "{\"wait\":true}");
    while (stage->up.state != UP_OVER)
        turn(stage);
    up_waits_over(&stage->up);
    assert_true(hear(stage, DONE));
    assert_non_null(strstr(stage->spoken.answer, DONE));
    ask(stage, "stop", NULL, "}\n", DONE);
    look(stage, "\"state\":\"stopping\"");
}

static void who_goes_away_is_forgotten(void **state)
{
    struct stage *stage = *state;

    say(stage, "logs", "{\"follow\":true}");
    while (det_list_is_empty(&stage->up.followers))
        turn(stage);
    hang_up(stage);
    assert_true(det_list_is_empty(&stage->up.followers));
    say(stage, "drain", "{\"name\":\"job\",\"wait\":true}");
    while (det_list_is_empty(&stage->up.waits))
        turn(stage);
    hang_up(stage);
    assert_true(det_list_is_empty(&stage->up.waits));
    look(stage, "\"kind\":\"status\"");
}

/* Asks again and again, each time with one allocation more that succeeds, until all do. */
static void ask_without_memory(
    struct stage *stage, const char *verb, const char *arguments, const char *end)
{
    bool is_met = true;

    for (uint64_t n = 1; is_met; n++) {
        stage->memory.failed = false;
        stage->memory.fail_at = stage->memory.calls + n;
        say(stage, verb, arguments);
        (void)hear(stage, end);
        stage->memory.fail_at = 0;
        hang_up(stage);
        is_met = stage->memory.failed;
        assert_true(n < 1000);
    }
    look(stage, "\"kind\":\"status\"");
}

static void verbs_survive_a_lack_of_memory(void **state)
{
    struct stage *stage = *state;

    ask_without_memory(stage, "slots", NULL, END);
    ask_without_memory(stage, "restart", "{\"name\":\"web\",\"wait\":true}", DONE);
    ask_without_memory(stage, "restart", "{\"name\":\"group\",\"wait\":true}", DONE);
    ask_without_memory(
        stage, "submit",
        "{\"run\":[\"true\"],\"environment\":{\"A\":\"1\"},\"folder\":\"/\",\"wait\":true}", END);
    ask_without_memory(stage, "logs", NULL, END);
    ask_without_memory(stage, "events", NULL, END);
    ask_without_memory(stage, "stop", "{\"name\":\"group\",\"wait\":true}", DONE);
    ask_without_memory(stage, "stop", "{\"name\":\"batch\",\"wait\":true}", DONE);
    ask_without_memory(stage, "drain", "{\"name\":\"inner\",\"wait\":true}", DONE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(everything_can_be_looked_at),        TEST(arguments_are_strict),
        TEST(names_that_are_not_there_are_told),  TEST(orders_reach_their_tasks),
        TEST(a_job_that_cannot_start_has_an_end), TEST(who_goes_away_is_forgotten),
        TEST(draining_admits_nothing_more),       TEST(a_stop_of_all_is_answered_at_the_end),
        TEST(verbs_survive_a_lack_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
