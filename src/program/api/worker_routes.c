/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_routes.c - workers, by the verbs of `up`. In a path an id has '~' for '/': that is in no
 * name, and nobody on the way decodes it. */
#include <string.h>

#include "api/api_internal.h"
#include "daemon/daemon.h"

#define CONFIG_MAX (256 << 10)

/* The id that a path names. */
static const char *worker_of(struct api_call *call)
{
    char *id = det_arena_copy(&call->arena, call->parameters[0]);

    for (char *at = id; at && (at = strchr(at, '~'));)
        *at = '/';
    return id;
}

#define NAME "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

/* Names with slashes between them. */
static bool is_worker(const char *id)
{
    size_t size = strspn(id, NAME);

    while (size > 0 && size <= DET_WORKER_NAME_MAX && id[size] == '/') {
        id += size + 1;
        size = strspn(id, NAME);
    }
    return size > 0 && size <= DET_WORKER_NAME_MAX && !id[size];
}

bool api_query_worker(struct api_call *call, const char *key, const char **ret)
{
    *ret = api_query(call, key);
    if (!*ret || (strlen(*ret) <= DET_WORKER_PATH_MAX && is_worker(*ret)))
        return true;
    api_fail(call, DET_ERR_INVALID, "'%s' is the id of a worker, such as root/press", key);
    return false;
}

/* Whether it can be the name of a kind; else the call has failed. */
static bool check_kind(struct api_call *call, const char *kind)
{
    size_t size = strlen(kind);

    if (size > 0 && size <= DET_WORKER_NAME_MAX && strspn(kind, NAME) == size)
        return true;
    api_fail(
        call, DET_ERR_INVALID, "'kind' has 1 to %d characters of A-Z a-z 0-9 . _ -",
        DET_WORKER_NAME_MAX);
    return false;
}

bool api_query_kind(struct api_call *call, const char **ret)
{
    *ret = api_query(call, "kind");
    return !*ret || check_kind(call, *ret);
}

static bool read_phase(struct api_call *call, json_t *arguments)
{
    const char *phase = api_query(call, "phase");

    for (enum det_phase i = DET_PHASE_STOPPED; phase && i <= DET_PHASE_STOPPING; i++) {
        if (strcmp(phase, det_phase_name(i)) == 0)
            return json_object_set_new(arguments, "phase", json_string(phase)) == 0;
    }
    if (phase)
        api_fail(
            call, DET_ERR_INVALID, "'phase' is stopped, starting, running, degraded or stopping");
    return !phase;
}

/* "120~root/press": so many were passed, of which that was the last one. */
static bool read_after(struct api_call *call, json_t *arguments)
{
    const char *after = api_query(call, "after"), *mark = after ? strchr(after, '~') : NULL;
    uint64_t skip = 0;

    if (!after)
        return true;
    if (!mark || mark - after > 9 ||
        det_parse_u64(det_view_of(after, (size_t)(mark - after)), &skip) < 0 ||
        strlen(mark + 1) > DET_WORKER_PATH_MAX || !is_worker(mark + 1)) {
        api_fail(call, DET_ERR_INVALID, "'after' is the 'next' of the page before");
        return false;
    }
    return json_object_set_new(arguments, "after", json_string(mark + 1)) == 0 &&
           json_object_set_new(arguments, "skip", json_integer((json_int_t)skip)) == 0;
}

static bool put_text(json_t *arguments, const char *key, const char *text)
{
    return !text || json_object_set_new(arguments, key, json_string(text)) == 0;
}

static bool read_list(struct api_call *call, json_t *arguments)
{
    const char *below, *kind;
    size_t limit = 0;
    bool is_unwell = false;

    return api_query_limit(call, &limit) && api_query_worker(call, "below", &below) &&
           api_query_kind(call, &kind) && api_query_bool(call, "unwell", &is_unwell) &&
           read_phase(call, arguments) && read_after(call, arguments) &&
           put_text(arguments, "id", below) && put_text(arguments, "kind", kind) &&
           (!api_query(call, "unwell") ||
            json_object_set_new(arguments, "unwell", json_boolean(is_unwell)) == 0) &&
           json_object_set_new(arguments, "limit", json_integer((json_int_t)limit)) == 0;
}

/* The last part is about the page. */
static void answer_list(struct api_call *call, json_t *parts)
{
    size_t count = json_array_size(parts) - 1, written = 0;
    const json_t *page = json_array_get(parts, count);
    uint64_t passed = (uint64_t)json_integer_value(json_object_get(page, "passed"));
    const char *last = NULL;
    char next[DET_WORKER_PATH_MAX + 32];

    det_json_open(&call->json, NULL, '{');
    det_json_open(&call->json, "items", '[');
    for (; written < count && !api_page_is_full(call); written++) {
        json_t *worker = json_array_get(parts, written);

        api_put_json(call, NULL, worker);
        last = json_string_value(json_object_get(worker, "id"));
    }
    det_json_close(&call->json, ']');
    if (last && (written < count || json_is_true(json_object_get(page, "has_more"))))
        snprintf(next, sizeof next, "%llu~%s", (unsigned long long)passed + written, last);
    else
        last = NULL;
    det_json_text(&call->json, "next", last ? next : NULL);
    det_json_close(&call->json, '}');
}

/* Asks, unless what is asked for is wrong. */
static void ask(
    struct api_call *call, const char *verb, bool is_right, json_t *arguments_take,
    void (*answer)(struct api_call *call, json_t *parts))
{
    if (is_right || !call->status) {
        if (!is_right) {
            json_decref(arguments_take);
            arguments_take = NULL; /* There was no memory for it. */
        }
        api_ask(call, verb, arguments_take, answer);
        return;
    }
    json_decref(arguments_take);
    api_finish(call);
}

void api_list_workers(struct api_call *call)
{
    json_t *arguments = json_object();

    ask(call, "workers-list", read_list(call, arguments), arguments, answer_list);
}

/* One of them. */

static void answer_one(struct api_call *call, json_t *parts)
{
    api_put_json(call, NULL, json_array_get(parts, 0));
}

static json_t *about(struct api_call *call)
{
    const char *id = worker_of(call);

    return id ? json_pack("{s:s}", "id", id) : NULL;
}

void api_get_worker(struct api_call *call)
{
    api_ask(call, "workers-show", about(call), answer_one);
}

/* The history of one. */

static uint64_t sequence_at(json_t *parts, size_t index)
{
    return (uint64_t)json_integer_value(json_object_get(json_array_get(parts, index), "sequence"));
}

/* `next` is the cursor for what comes later; `lost` is how many rows came after the given cursor
 * and are not remembered any more. */
static void answer_history(struct api_call *call, json_t *parts)
{
    size_t count = json_array_size(parts);
    uint64_t after = 0, next, first = sequence_at(parts, 0);
    bool is_drained = api_query(call, "after") != NULL;

    if (is_drained && !api_query_number(call, "after", 0, INT64_MAX, &after))
        return;
    next = !count ? after : sequence_at(parts, is_drained ? count - 1 : 0);
    det_json_open(&call->json, NULL, '{');
    api_put_json(call, "items", parts);
    det_json_number(&call->json, "next", next);
    det_json_number(
        &call->json, "lost", is_drained && count ? first - (first > after ? after : 0) - 1 : 0);
    det_json_close(&call->json, '}');
}

void api_get_worker_history(struct api_call *call)
{
    json_t *arguments = about(call);
    uint64_t after = 0;
    bool is_right = api_query_number(call, "after", 0, INT64_MAX, &after);

    if (is_right && arguments && api_query(call, "after"))
        is_right = json_object_set_new(arguments, "after", json_integer((json_int_t)after)) == 0;
    ask(call, "workers-history", is_right, arguments, answer_history);
}

void api_delete_worker(struct api_call *call)
{
    api_ask(call, "workers-delete", about(call), answer_one);
}

void api_order_worker(struct api_call *call)
{
    struct det_json_object *body = api_body(call, "order");
    const char *order = body ? det_json_object_text(body, "order") : NULL;
    json_t *arguments;

    if (!body || !api_body_is_right(call, body)) {
        api_finish(call);
        return;
    }
    if (!*order) {
        api_fail(call, DET_ERR_INVALID, "'order' is restart, disable or enable");
        api_finish(call);
        return;
    }
    arguments = about(call);
    ask(call, "workers-order", put_text(arguments, "order", order), arguments, answer_one);
}

/* Putting one. */

static bool put_value(json_t *arguments, const char *key, json_t *value_take)
{
    return json_object_set_new(arguments, key, value_take) == 0;
}

/* An object, which is YAML as it is, or YAML as a text. */
static bool put_map(
    struct api_call *call, struct det_json_object *body, const char *key, json_t *arguments)
{
    struct det_view text;

    if (!det_json_object_find(body, key))
        return true;
    if (det_json_object_find(body, key)->kind == DET_JSON_STRING)
        return put_value(arguments, key, json_string(det_json_object_text(body, key)));
    return api_body_object(call, body, key, &text) &&
           put_value(arguments, key, json_stringn(text.data, text.size));
}

static bool add_state(json_t *states, const struct det_json_value *element)
{
    const char *text = det_json_value_text(element);

    return text && *text && strlen(text) <= DET_WORKER_NAME_MAX &&
           json_array_append_new(states, json_string(text)) == 0;
}

static bool put_states(struct api_call *call, struct det_json_object *body, json_t *arguments)
{
    json_t *states = json_array();
    bool is_there = det_json_object_find(body, "run_in"), is_right = true;

    if (is_there) {
        DET_JSON_EACH (element, det_json_object_array(body, "run_in"))
            is_right = is_right && add_state(states, element);
    }
    if (!is_right || json_array_size(states) > DET_WORKER_STATES_MAX)
        det_json_object_fail(body, "run_in");
    if (!is_there || !api_body_is_right(call, body)) {
        json_decref(states);
        return !is_there;
    }
    return put_value(arguments, "run_in", states);
}

static bool put_disabled(struct api_call *call, struct det_json_object *body, json_t *arguments)
{
    bool is_disabled;

    if (!det_json_object_find(body, "disabled"))
        return true;
    is_disabled = det_json_object_bool(body, "disabled");
    return api_body_is_right(call, body) &&
           put_value(arguments, "disabled", json_boolean(is_disabled));
}

/* Nothing is said of one that is empty: there is no text that says nothing. */
static bool put_config(struct api_call *call, struct det_json_object *body, json_t *arguments)
{
    const char *config = NULL;

    return api_body_text(call, body, "config", CONFIG_MAX, &config) &&
           put_text(arguments, "config", config && *config ? config : NULL);
}

static bool put_kind(struct api_call *call, struct det_json_object *body, json_t *arguments)
{
    const char *kind = det_json_object_text(body, "kind");

    return api_body_is_right(call, body) && check_kind(call, kind) &&
           put_text(arguments, "kind", kind);
}

void api_put_worker(struct api_call *call)
{
    struct det_json_object *body = api_body(call, "kind config variables location run_in disabled");
    json_t *arguments;

    if (!body) {
        api_finish(call);
        return;
    }
    arguments = about(call);
    ask(call, "workers-upsert",
        arguments && put_kind(call, body, arguments) && put_config(call, body, arguments) &&
            put_map(call, body, "variables", arguments) &&
            put_map(call, body, "location", arguments) && put_states(call, body, arguments) &&
            put_disabled(call, body, arguments),
        arguments, answer_one);
}
