/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* daemon_routes.c - what the loop of `up` knows and does: tasks, groups, slots, jobs.
 *
 *     http thread: errand --post--> loop of `up`: a verb, with the errand as its call
 *                  answer <--post-- when the verb has finished it */
#include <detent/driver/loop.h>
#include <detent/tool/store.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_internal.h"
#include "base/memory.h"
#include "daemon/lookups.h"
#include "daemon/machines.h"

struct errand {
    struct up_errand it;
    struct det_post post;
    struct api_call *asker;
    const char *verb;
    json_t *arguments;
    json_t *parts; /* an array */
    struct det_error error;
    void (*answer)(struct api_call *call, json_t *parts);
    bool takes_call; /* of the answer: it finishes the call itself */
};

/* On the loop of `up`. */

static struct errand *errand_of(struct socket_call *call)
{
    return (struct errand *)(void *)call;
}

static void put_part(struct socket_call *call, const char *key, json_t *value_take)
{
    struct errand *errand = errand_of(call);

    if (strcmp(key, "error") == 0) {
        const char *text = json_string_value(json_object_get(value_take, "text"));
        const char *name = json_string_value(json_object_get(value_take, "code"));

        det_error_set(
            &errand->error, name ? socket_error_code(name) : DET_ERR_NO_MEMORY, "%s",
            text ? text : "there is no memory left");
        json_decref(value_take);
    } else if (strcmp(key, "data") == 0 && json_array_append_new(errand->parts, value_take) < 0) {
        det_error_set(&errand->error, DET_ERR_NO_MEMORY, "there is no memory left");
    }
}

static size_t none_waits(const struct socket_call *call)
{
    (void)call;
    return 0;
}

static bool is_wanted(const struct socket_call *call)
{
    (void)call;
    return false;
}

static void finish_errand(void *argument);

static void release_errand(struct socket_call *call)
{
    struct errand *errand = errand_of(call);

    det_list_remove(&errand->it.node);
    errand->post = (struct det_post){ .run = finish_errand, .argument = errand };
    det_loop_post(errand->asker->api->loop, &errand->post);
}

static const struct socket_call_ops errand_ops = { put_part, none_waits, is_wanted,
                                                   release_errand };

static void run_errand(void *argument)
{
    struct errand *errand = argument;

    up_run_errand(errand->asker->api->up, &errand->it, errand->verb, errand->arguments);
}

/* On the http thread. */

static void free_errand(struct errand *errand, const struct det_allocator *allocator)
{
    json_decref(errand->arguments);
    json_decref(errand->parts);
    DET_DELETE(allocator, errand);
}

static void answer_errand(void *argument)
{
    struct errand *errand = argument;
    struct api_call *call = errand->asker;
    /* The call may be over before its errand is. */
    const struct det_allocator *allocator = call->api->allocator;
    bool has_failed = errand->error.code < 0;

    if (has_failed)
        api_fail_with(call, errand->error.code, &errand->error);
    else
        errand->answer(call, errand->parts);
    if (has_failed || !errand->takes_call)
        api_finish(call);
    free_errand(errand, allocator);
}

/* What writes the answer may look at the machines. */
static void finish_errand(void *argument)
{
    struct errand *errand = argument;

    api_enter(errand->asker, answer_errand, errand);
}

/* `arguments` may be NULL for want of memory. */
static void ask_daemon(
    struct api_call *call, const char *verb, json_t *arguments_take,
    void (*answer)(struct api_call *call, json_t *parts), bool takes_call)
{
    struct api *api = call->api;
    struct errand *errand = DET_NEW(api->allocator, struct errand);

    if (errand) {
        errand->it.call.ops = &errand_ops;
        errand->asker = call;
        errand->verb = verb;
        errand->arguments = arguments_take;
        errand->parts = json_array();
        errand->answer = answer;
        errand->takes_call = takes_call;
    } else {
        json_decref(arguments_take);
    }
    if (!errand || !arguments_take || !errand->parts) {
        if (errand)
            free_errand(errand, api->allocator);
        api_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
        api_finish(call);
        return;
    }
    api_rest(call);
    errand->post = (struct det_post){ .run = run_errand, .argument = errand };
    det_loop_post(api->up->loop, &errand->post);
}

void api_ask(
    struct api_call *call, const char *verb, json_t *arguments_take,
    void (*answer)(struct api_call *call, json_t *parts))
{
    ask_daemon(call, verb, arguments_take, answer, false);
}

void api_ask_further(
    struct api_call *call, const char *verb, json_t *arguments_take,
    void (*take)(struct api_call *call, json_t *parts))
{
    ask_daemon(call, verb, arguments_take, take, true);
}

/* What is written on the loop of `up` itself. */

struct visit {
    struct det_post post;
    struct api_call *call;
    void (*run)(struct up *up, struct api_call *call);
    void (*then)(struct api_call *call); /* NULL: nothing */
};

static void continue_visit(void *argument)
{
    struct visit *visit = argument;

    if (visit->then && !visit->call->status)
        visit->then(visit->call);
    else
        api_finish(visit->call);
}

static void end_visit(void *argument)
{
    struct visit *visit = argument;

    api_enter(visit->call, continue_visit, visit);
}

static void run_visit(void *argument)
{
    struct visit *visit = argument;

    visit->run(visit->call->api->up, visit->call);
    visit->post = (struct det_post){ .run = end_visit, .argument = visit };
    det_loop_post(visit->call->api->loop, &visit->post);
}

void api_on_daemon(
    struct api_call *call, void (*run)(struct up *up, struct api_call *call),
    void (*then)(struct api_call *call))
{
    struct visit *visit = det_arena_alloc(&call->arena, sizeof *visit);

    if (!visit) {
        api_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
        api_finish(call);
        return;
    }
    *visit = (struct visit){
        .post = { .run = run_visit, .argument = visit }, .call = call, .run = run, .then = then
    };
    api_rest(call);
    det_loop_post(call->api->up->loop, &visit->post);
}

/* Answers. */

void api_put_json(struct api_call *call, const char *key, json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    det_json_raw(&call->json, key, text, text ? strlen(text) : 0);
    free(text);
}

static void answer_items(struct api_call *call, json_t *parts)
{
    det_json_open(&call->json, NULL, '{');
    api_put_json(call, "items", parts);
    det_json_close(&call->json, '}');
}

static void answer_one(struct api_call *call, json_t *parts)
{
    api_put_json(call, NULL, json_array_get(parts, 0));
}

static void fail_if(struct api_call *call, int r)
{
    if (r < 0)
        api_fail(call, r, "%s", det_error_text(r));
}

static void write_tasks(struct up *up, struct api_call *call)
{
    int r;

    det_json_open(&call->json, NULL, '{');
    r = up_write_tasks(up, &call->json, "items");
    det_json_close(&call->json, '}');
    fail_if(call, r);
}

void api_get_tasks(struct api_call *call)
{
    api_on_daemon(call, write_tasks, NULL);
}

static void fail_task(struct api_call *call)
{
    api_fail(call, DET_ERR_NOT_FOUND, "there is no task '%s'", call->parameters[0]);
}

static void write_task(struct up *up, struct api_call *call)
{
    int r = up_write_one_task(up, &call->json, call->parameters[0]);

    if (r == DET_ERR_NOT_FOUND)
        fail_task(call);
    else
        fail_if(call, r);
}

void api_get_task(struct api_call *call)
{
    api_on_daemon(call, write_task, NULL);
}

static void write_tree(struct up *up, struct api_call *call)
{
    int r;

    det_json_open(&call->json, NULL, '{');
    r = up_write_groups(up, &call->json, "groups");
    if (r == 0)
        r = up_write_tasks(up, &call->json, "tasks");
    det_json_close(&call->json, '}');
    fail_if(call, r);
}

void api_get_tree(struct api_call *call)
{
    api_on_daemon(call, write_tree, NULL);
}

void api_get_slots(struct api_call *call)
{
    api_ask(call, "slots", json_object(), answer_items);
}

static void look_for_task(struct up *up, struct api_call *call)
{
    int r = up_has_task(up, call->parameters[0]);

    if (r == 0)
        fail_task(call);
    else
        fail_if(call, r);
}

/* One that is there, and whose lines are to be followed. */
static void follow_logs(struct api_call *call)
{
    api_follow(
        call, "logs",
        json_pack(
            "{s:[s], s:I, s:b}", "names", call->parameters[0], "lines",
            (json_int_t)call->own_number, "follow", 1),
        "line");
}

static void answer_none(struct api_call *call)
{
    det_json_open(&call->json, NULL, '{');
    det_json_open(&call->json, "items", '[');
    det_json_close(&call->json, ']');
    det_json_close(&call->json, '}');
    api_finish(call);
}

/* One without a line may be none at all. */
static void take_logs(struct api_call *call, json_t *parts)
{
    if (json_array_size(parts) > 0) {
        answer_items(call, parts);
        api_finish(call);
        return;
    }
    api_on_daemon(call, look_for_task, answer_none);
}

void api_get_logs(struct api_call *call)
{
    const char *name = call->parameters[0];
    uint64_t lines = 100;
    bool follows = false;

    if (!api_query_number(call, "lines", 0, 10000, &lines) ||
        !api_query_bool(call, "follow", &follows)) {
        api_finish(call);
        return;
    }
    call->own_number = (unsigned)lines;
    if (follows)
        api_on_daemon(call, look_for_task, follow_logs);
    else
        api_ask_further(
            call, "logs", json_pack("{s:[s], s:I}", "names", name, "lines", (json_int_t)lines),
            take_logs);
}

/* Lines of several tasks, and what happens to all of them. */

/* "a,b" as an array. NULL: no memory. */
static json_t *split_names(const char *names)
{
    json_t *all = json_array();

    while (all && *names) {
        size_t size = strcspn(names, ",");

        if (size && json_array_append_new(all, json_stringn(names, size)) < 0) {
            json_decref(all);
            return NULL;
        }
        names += size + (names[size] == ',');
    }
    return all;
}

static void ask_or_follow(
    struct api_call *call, const char *verb, json_t *arguments_take, bool follows,
    const char *event)
{
    if (arguments_take && follows &&
        json_object_set_new(arguments_take, "follow", json_true()) == 0)
        api_follow(call, verb, arguments_take, event);
    else
        api_ask(call, verb, arguments_take, answer_items);
}

void api_get_lines(struct api_call *call)
{
    const char *names = api_query(call, "task");
    uint64_t lines = 100;
    bool follows = false;
    json_t *arguments;

    if (!api_query_number(call, "lines", 0, 10000, &lines) ||
        !api_query_bool(call, "follow", &follows)) {
        api_finish(call);
        return;
    }
    if (names && !names[strspn(names, ",")]) {
        api_fail(call, DET_ERR_INVALID, "'task' names tasks, with commas between them");
        api_finish(call);
        return;
    }
    arguments = json_pack("{s:I}", "lines", (json_int_t)lines);
    if (names && json_object_set_new(arguments, "names", split_names(names)) < 0) {
        json_decref(arguments);
        arguments = NULL;
    }
    ask_or_follow(call, "logs", arguments, follows, "line");
}

void api_get_task_events(struct api_call *call)
{
    bool follows = false, is_new = false;
    uint64_t after = 0;

    if (!api_query_number(call, "after", 0, INT64_MAX, &after) ||
        !api_query_bool(call, "new", &is_new) || !api_query_bool(call, "follow", &follows)) {
        api_finish(call);
        return;
    }
    ask_or_follow(
        call, "events", json_pack("{s:I, s:b}", "after", (json_int_t)after, "new", is_new), follows,
        "task");
}

/* Changes of jobs. Their bodies are small: a tree does no harm. */

static json_t *read_tree(struct api_call *call)
{
    json_error_t error;
    json_t *body = json_loadb(call->body.data, call->body.size, JSON_REJECT_DUPLICATES, &error);

    if (json_is_object(body))
        return body;
    json_decref(body);
    api_fail(call, DET_ERR_MALFORMED, "the body is not a JSON object: %.120s", error.text);
    return NULL;
}

void api_change_job(struct api_call *call)
{
    const char *change = call->parameters[2];
    json_t *body = read_tree(call);

    if (!body) {
        api_finish(call);
        return;
    }
    if (strcmp(change, "cancel") == 0 && !json_object_get(body, "reason"))
        (void)json_object_set_new(body, "reason", json_string(api_actor(call)));
    if (json_object_set_new(body, "change", json_string(change)) < 0 ||
        json_object_set_new(body, "slot", json_string(call->parameters[0])) < 0 ||
        json_object_set_new(body, "job", json_string(call->parameters[1])) < 0) {
        json_decref(body);
        body = NULL;
    }
    api_ask(call, "job", body, answer_one);
}

/* The process itself. */

static void write_status(struct up *up, struct api_call *call)
{
    up_write_status(up, &call->json, NULL);
}

void api_get_status(struct api_call *call)
{
    api_on_daemon(call, write_status, NULL);
}

void api_get_served(struct api_call *call)
{
    const struct up *up = call->api->up;
    const struct up_machines *machines = up->machines;
    struct det_json_writer *json = &call->json;

    det_json_open(json, NULL, '{');
    det_json_text(json, "kind", "machines");
    det_json_text(json, "store", machines ? det_store_identity(machines->store) : NULL);
    det_json_text(json, "url", machines ? machines->url : NULL);
    det_json_text(json, "jobs", up->store ? det_store_identity(up->store) : NULL);
    det_json_open(json, "machines", '[');
    for (size_t i = 0; machines && i < machines->count; i++) {
        if (machines->served[i])
            det_json_text(json, NULL, machines->list[i].name);
    }
    det_json_close(json, ']');
    det_json_close(json, '}');
}

void api_get_workers_summary(struct api_call *call)
{
    api_ask(call, "workers-summary", json_object(), answer_one);
}

static void write_console_link(struct up *up, struct api_call *call)
{
    char link[UP_LINK_TEXT];

    if (!up->options->front->console_link(up, link, sizeof link)) {
        api_fail(
            call, DET_ERR_NOT_FOUND,
            "it listens nowhere for browsers: see http.listen of " CONFIG_FILE_NAME);
        return;
    }
    det_json_open(&call->json, NULL, '{');
    det_json_text(&call->json, "kind", "console");
    det_json_text(&call->json, "url", link);
    det_json_close(&call->json, '}');
}

/* For who shares this machine and this user with us; others sign in by a token. */
void api_make_console_link(struct api_call *call)
{
    if (!api_body(call, "")) {
        api_finish(call);
        return;
    }
    if (!http_request(call->exchange)->is_trusted) {
        api_fail(
            call, DET_ERR_REFUSED, "a link to the console is given over the unix socket alone");
        api_finish(call);
        return;
    }
    api_on_daemon(call, write_console_link, NULL);
}
