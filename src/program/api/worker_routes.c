/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_routes.c - workers. In a path, an id has '~' instead of '/': names do not contain it, and
 * proxies do not decode it. */
#include <string.h>

#include "api/api_internal.h"
#include "daemon/worker_queries.h"
#include "daemon/worker_requests.h"
#include "daemon/worker_totals.h"

#define CONFIG_MAX (256 << 10)

/* Returns the id of the path; NULL: no memory. */
static char *worker_of(struct api_call *call)
{
    char *id = det_arena_copy(&call->arena, call->parameters[0]);

    for (char *at = id; at && (at = strchr(at, '~'));)
        *at = '/';
    return id;
}

#define NAME "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

/* Returns true for names separated by slashes. */
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
    api_fail(call, DET_ERR_INVALID, "'%s' must be the id of a worker, such as root/press", key);
    return false;
}

/* Checks the name of a kind. False: the call has failed. */
static bool check_kind(struct api_call *call, const char *kind)
{
    size_t size = strlen(kind);

    if (size > 0 && size <= DET_WORKER_NAME_MAX && strspn(kind, NAME) == size)
        return true;
    api_fail(
        call, DET_ERR_INVALID, "'kind' must have 1 to %d characters of A-Z a-z 0-9 . _ -",
        DET_WORKER_NAME_MAX);
    return false;
}

bool api_query_kind(struct api_call *call, const char **ret)
{
    *ret = api_query(call, "kind");
    return !*ret || check_kind(call, *ret);
}

static void fail_memory(struct api_call *call)
{
    api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
    api_finish(call);
}

/* Allocates zeroed arguments of a request. NULL: no memory, and the call is finished. */
static void *new_arguments(struct api_call *call, size_t size)
{
    void *arguments = det_arena_alloc(&call->arena, size);

    if (!arguments)
        fail_memory(call);
    return arguments;
}

/* Lists. */

static bool read_phase(struct api_call *call, struct up_worker_page *page)
{
    const char *phase = api_query(call, "phase");

    page->has_phase = phase != NULL;
    if (!phase)
        return true;
    for (page->phase = DET_PHASE_STOPPED; page->phase <= DET_PHASE_STOPPING; page->phase++) {
        if (strcmp(phase, det_phase_name(page->phase)) == 0)
            return true;
    }
    api_fail(
        call, DET_ERR_INVALID, "'phase' must be stopped, starting, running, degraded or stopping");
    return false;
}

/* Reads "120~root/press": 120 workers were passed, root/press was the last one. */
static bool read_after(struct api_call *call, struct up_worker_page *page)
{
    const char *after = api_query(call, "after"), *mark = after ? strchr(after, '~') : NULL;

    if (!after)
        return true;
    if (!mark || mark - after > 9 ||
        det_parse_u64(det_view_of(after, (size_t)(mark - after)), &page->skip) < 0 ||
        strlen(mark + 1) > DET_WORKER_PATH_MAX || !is_worker(mark + 1)) {
        api_fail(call, DET_ERR_INVALID, "'after' must be the 'next' of the previous page");
        return false;
    }
    page->after = mark + 1;
    return true;
}

static bool read_page(struct api_call *call, struct up_worker_page *page)
{
    page->size_max = API_PAGE_BYTES;
    page->has_unwell = api_query(call, "unwell") != NULL;
    return api_query_limit(call, &page->limit) && api_query_worker(call, "below", &page->below) &&
           api_query_kind(call, &page->kind) && api_query_bool(call, "unwell", &page->is_unwell) &&
           read_phase(call, page) && read_after(call, page);
}

static void run_list(struct up *up, struct up_request *request, void *arguments)
{
    up_list_workers(up, request, arguments);
}

static void end_list(struct api_call *call)
{
    const struct up_worker_page *page = call->own;

    det_json_close(&call->json, ']');
    if (page->has_more)
        det_json_format(
            &call->json, "next", "%llu~%s", (unsigned long long)page->passed, page->last);
    else
        det_json_null(&call->json, "next");
    det_json_close(&call->json, '}');
    api_finish(call);
}

void api_list_workers(struct api_call *call)
{
    struct up_worker_page *page = new_arguments(call, sizeof *page);

    if (!page)
        return;
    if (!read_page(call, page)) {
        api_finish(call);
        return;
    }
    call->own = page;
    det_json_open(&call->json, NULL, '{');
    det_json_open(&call->json, "items", '[');
    api_request(call, run_list, page, end_list);
}

/* The summary. */

static void write_summary(struct up *up, struct api_call *call)
{
    struct det_json_writer *json = &call->json;
    struct up_worker_totals totals;

    if (up_total_workers(up, &call->arena, &totals) < 0) {
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
        return;
    }
    det_json_open(json, NULL, '{');
    det_json_text(json, "kind", "workers_summary");
    up_write_worker_totals(json, "workers", &totals);
    det_json_open(json, "unwell", '[');
    for (size_t i = 0; i < totals.unwell_shown; i++) {
        det_json_open(json, NULL, '{');
        det_json_text(json, "id", totals.unwell[i].id);
        det_json_text(json, "why", totals.unwell[i].why);
        det_json_close(json, '}');
    }
    det_json_close(json, ']');
    if (totals.are_there)
        det_json_number(json, "unwell_total", totals.unwell_count);
    det_json_close(json, '}');
}

void api_get_workers_summary(struct api_call *call)
{
    api_on_daemon(call, write_summary, NULL);
}

/* One worker. */

/* Runs a request with the id of the path. */
static void request_worker(
    struct api_call *call, void (*run)(struct up *up, struct up_request *request, void *arguments))
{
    char *id = worker_of(call);

    if (id)
        api_request(call, run, id, NULL);
    else
        fail_memory(call);
}

static void run_show(struct up *up, struct up_request *request, void *arguments)
{
    up_show_worker(up, request, arguments);
}

void api_get_worker(struct api_call *call)
{
    request_worker(call, run_show);
}

static void run_history(struct up *up, struct up_request *request, void *arguments)
{
    up_show_worker_history(up, request, arguments);
}

void api_get_worker_history(struct api_call *call)
{
    struct up_worker_history *history = new_arguments(call, sizeof *history);

    if (!history)
        return;
    history->id = worker_of(call);
    if (!history->id) {
        fail_memory(call);
        return;
    }
    history->has_after = api_query(call, "after") != NULL;
    if (api_query_number(call, "after", 0, INT64_MAX, &history->after))
        api_request(call, run_history, history, NULL);
    else
        api_finish(call);
}

static void run_delete(struct up *up, struct up_request *request, void *arguments)
{
    up_delete_worker(up, request, arguments);
}

void api_delete_worker(struct api_call *call)
{
    request_worker(call, run_delete);
}

/* Orders. */

struct worker_order {
    const char *id;
    enum det_worker_order order;
};

static bool read_order(struct api_call *call, struct worker_order *ret)
{
    struct det_json_object *body = api_body(call, "order");
    const char *word = body ? det_json_object_text(body, "order") : NULL;

    if (!body || !api_body_is_right(call, body))
        return false;
    for (ret->order = DET_WORKER_ORDER_RESTART; ret->order <= DET_WORKER_ORDER_ENABLE;
         ret->order++) {
        if (strcmp(word, up_worker_order_name(ret->order)) == 0)
            return true;
    }
    api_fail(call, DET_ERR_INVALID, "'order' must be restart, disable or enable");
    return false;
}

static void run_order(struct up *up, struct up_request *request, void *arguments)
{
    const struct worker_order *wanted = arguments;

    up_order_worker(up, request, wanted->id, wanted->order);
}

void api_order_worker(struct api_call *call)
{
    struct worker_order *wanted = new_arguments(call, sizeof *wanted);

    if (!wanted)
        return;
    if (!read_order(call, wanted)) {
        api_finish(call);
        return;
    }
    wanted->id = worker_of(call);
    if (wanted->id)
        api_request(call, run_order, wanted, NULL);
    else
        fail_memory(call);
}

/* Creating a worker. */

/* Reads an object, which is also valid YAML, or a text with YAML. */
static bool read_map(
    struct api_call *call, struct det_json_object *body, const char *key, const char **ret)
{
    const struct det_json_value *member = det_json_object_find(body, key);
    struct det_view text;

    if (!member)
        return true;
    if (member->kind == DET_JSON_STRING) {
        *ret = det_json_object_text(body, key);
        if (!**ret)
            det_json_object_fail(body, key);
        return api_body_is_right(call, body);
    }
    if (!api_body_object(call, body, key, &text))
        return false;
    *ret = det_arena_copy_n(&call->arena, text.data, text.size);
    if (!*ret)
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
    return *ret;
}

static bool is_state(const char *text)
{
    return text && *text && strlen(text) <= DET_WORKER_NAME_MAX;
}

static bool read_states(
    struct api_call *call, struct det_json_object *body, struct up_worker_put *put)
{
    const struct det_json_value *member = det_json_object_find(body, "run_in"), *states;
    const char **names;

    if (!member)
        return true;
    states = det_json_object_array(body, "run_in");
    if (states && states->count > DET_WORKER_STATES_MAX)
        det_json_object_fail(body, "run_in");
    if (!api_body_is_right(call, body))
        return false;
    names = det_arena_array(&call->arena, DET_WORKER_STATES_MAX, sizeof *names);
    if (!names) {
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
        return false;
    }
    DET_JSON_EACH (element, states) {
        names[put->run_in_count] = det_json_value_text(element);
        if (!is_state(names[put->run_in_count++]))
            det_json_object_fail(body, "run_in");
    }
    put->run_in = names;
    return api_body_is_right(call, body);
}

static bool read_disabled(
    struct api_call *call, struct det_json_object *body, struct up_worker_put *put)
{
    if (det_json_object_find(body, "disabled"))
        put->is_disabled = det_json_object_bool(body, "disabled");
    return api_body_is_right(call, body);
}

/* Reads the config; an empty one counts as missing. */
static bool read_config(
    struct api_call *call, struct det_json_object *body, struct up_worker_put *put)
{
    if (!api_body_text(call, body, "config", CONFIG_MAX, &put->config))
        return false;
    if (put->config && !*put->config)
        put->config = NULL;
    return true;
}

static bool read_kind(
    struct api_call *call, struct det_json_object *body, struct up_worker_put *put)
{
    put->kind = det_json_object_text(body, "kind");
    return api_body_is_right(call, body) && check_kind(call, put->kind);
}

static void run_put(struct up *up, struct up_request *request, void *arguments)
{
    up_put_worker(up, request, arguments);
}

void api_put_worker(struct api_call *call)
{
    struct det_json_object *body = api_body(call, "kind config variables location run_in disabled");
    struct up_worker_put *put;

    if (!body) {
        api_finish(call);
        return;
    }
    put = new_arguments(call, sizeof *put);
    if (!put)
        return;
    put->id = worker_of(call);
    if (!put->id)
        fail_memory(call);
    else if (
        read_kind(call, body, put) && read_config(call, body, put) &&
        read_map(call, body, "variables", &put->variables) &&
        read_map(call, body, "location", &put->location) && read_states(call, body, put) &&
        read_disabled(call, body, put))
        api_request(call, run_put, put, NULL);
    else
        api_finish(call);
}
