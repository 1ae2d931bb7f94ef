/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api_routes.c - every operation of src/console/openapi.yaml: its path, who may, how it is run. */
#include <stdio.h>
#include <string.h>

#include "cli/api_parts.h"

#define INSTANCE "/v1/machines/{machine}/instances/{id}"
#define SLOT     "/v1/slots/{slot}/submissions"
#define WORKER   "/v1/workers/{worker}"

const struct api_route api_routes[] = {
    { HTTP_GET, "/livez", GUARD_PUBLIC, API_INLINE, api_livez, NULL },
    { HTTP_GET, "/readyz", TOKENS_METRICS, API_OWN, api_readyz, NULL },
    { HTTP_GET, "/metrics", TOKENS_METRICS, API_OWN, api_metrics, NULL },
    { HTTP_GET, "/v1/openapi.yaml", TOKENS_READ, API_INLINE, api_openapi, NULL },
    { HTTP_POST, "/v1/session", GUARD_PUBLIC, API_POOL, api_redeem, NULL },
    { HTTP_DELETE, "/v1/session", TOKENS_READ, API_POOL, api_sign_out, NULL },
    { HTTP_GET, "/v1/status", TOKENS_READ, API_OWN, api_get_status, NULL },
    { HTTP_GET, "/v1/store", TOKENS_READ, API_POOL, api_get_store, NULL },
    { HTTP_GET, "/v1/overview", TOKENS_READ, API_OWN, api_get_overview, NULL },
    { HTTP_GET, "/v1/rates", TOKENS_READ, API_INLINE, api_get_rates, "span_s" },
    { HTTP_GET, "/v1/machines", TOKENS_READ, API_POOL, api_get_machines, NULL },
    { HTTP_GET, "/v1/machines/{machine}", TOKENS_READ, API_POOL, api_get_machine, NULL },
    { HTTP_GET, "/v1/machines/{machine}/diagram", TOKENS_READ, API_POOL, api_get_diagram,
      "format" },
    { HTTP_POST, "/v1/definitions", TOKENS_READ, API_POOL, api_check_definition, NULL },
    { HTTP_GET, "/v1/machines/{machine}/instances", TOKENS_READ, API_POOL, api_list_instances,
      "state stopped moved_before after limit" },
    { HTTP_POST, "/v1/machines/{machine}/instances", TOKENS_SEND, API_POOL, api_start, NULL },
    { HTTP_GET, INSTANCE, TOKENS_READ, API_OWN, api_get_instance, NULL },
    { HTTP_POST, INSTANCE "/events", TOKENS_SEND, API_OWN, api_send, NULL },
    { HTTP_POST, INSTANCE "/batch", TOKENS_SEND, API_POOL, api_send_all, NULL },
    { HTTP_POST, "/v1/batches", TOKENS_SEND, API_OWN, api_batch, NULL },
    { HTTP_POST, INSTANCE "/cancel", TOKENS_SEND, API_POOL, api_cancel, NULL },
    { HTTP_POST, INSTANCE "/retry", TOKENS_SEND, API_POOL, api_retry, NULL },
    { HTTP_GET, INSTANCE "/history", TOKENS_READ, API_POOL, api_get_history, "after limit data" },
    { HTTP_GET, INSTANCE "/trace", TOKENS_READ, API_POOL, api_get_trace, NULL },
    { HTTP_GET, INSTANCE "/diagram", TOKENS_READ, API_POOL, api_get_instance_diagram, "format" },
    { HTTP_GET, INSTANCE "/why", TOKENS_READ, API_POOL, api_get_why, NULL },
    { HTTP_GET, INSTANCE "/lock", TOKENS_READ, API_POOL, api_get_lock, NULL },
    { HTTP_GET, "/v1/timers", TOKENS_READ, API_POOL, api_list_timers, "machine after limit" },
    { HTTP_GET, "/v1/effects", TOKENS_READ, API_POOL, api_list_effects,
      "machine dead after limit" },
    { HTTP_GET, "/v1/locks", TOKENS_READ, API_POOL, api_list_locks, "machine after limit" },
    { HTTP_GET, "/v1/log", TOKENS_READ, API_POOL, api_list_log,
      "after backward machine id event state since until limit" },
    { HTTP_GET, "/v1/events", TOKENS_READ, API_OWN, api_get_events, "after machine id topics" },
    { HTTP_GET, "/v1/tasks", TOKENS_READ, API_OWN, api_get_tasks, NULL },
    { HTTP_GET, "/v1/tasks/{task}", TOKENS_READ, API_OWN, api_get_task, NULL },
    { HTTP_GET, "/v1/tasks/{task}/logs", TOKENS_READ, API_OWN, api_get_logs, "lines follow" },
    { HTTP_POST, "/v1/tasks/{task}/{order}", TOKENS_ADMIN, API_OWN, api_order, NULL },
    { HTTP_GET, "/v1/tree", TOKENS_READ, API_OWN, api_get_tree, NULL },
    { HTTP_GET, "/v1/slots", TOKENS_READ, API_OWN, api_get_slots, NULL },
    { HTTP_GET, SLOT, TOKENS_READ, API_OWN, api_list_jobs, "state after limit" },
    { HTTP_POST, SLOT, TOKENS_ADMIN, API_OWN, api_submit, NULL },
    { HTTP_POST, SLOT "/{job}/{change}", TOKENS_ADMIN, API_OWN, api_change_job, NULL },
    { HTTP_GET, "/v1/workers", TOKENS_READ, API_OWN, api_list_workers,
      "below phase kind unwell after limit" },
    { HTTP_GET, WORKER, TOKENS_READ, API_OWN, api_get_worker, NULL },
    { HTTP_PUT, WORKER, TOKENS_ADMIN, API_OWN, api_put_worker, NULL },
    { HTTP_DELETE, WORKER, TOKENS_ADMIN, API_OWN, api_delete_worker, NULL },
    { HTTP_GET, WORKER "/history", TOKENS_READ, API_OWN, api_get_worker_history, NULL },
    { HTTP_POST, WORKER "/order", TOKENS_ADMIN, API_OWN, api_order_worker, NULL },
    { HTTP_GET, "/v1/documents", TOKENS_READ, API_POOL, api_list_documents,
      "below kind role after limit" },
    { HTTP_GET, "/v1/deltas", TOKENS_READ, API_OWN, api_get_deltas,
      "after below kind role follow limit" },
    { HTTP_GET, NULL, 0, API_INLINE, NULL, NULL },
};

/* Whether the path has the segments of the pattern; what is in braces is any, and its text is where
 * `parameters` points to, up to the next slash. A path is looked at as it came: our own words have
 * nothing that would be encoded. */
static bool fits(const char *pattern, const char *path, const char **parameters)
{
    size_t count = 0;

    while (*pattern == '/' && *path == '/') {
        pattern++;
        path++;
        if (*pattern == '{') {
            parameters[count++] = path;
            if (*path == '/' || *path == '\0')
                return false;
            pattern = strchr(pattern, '}') + 1;
            path = strchrnul(path, '/');
            continue;
        }
        while (*pattern && *pattern != '/' && *pattern == *path) {
            pattern++;
            path++;
        }
    }
    return *pattern == '\0' && *path == '\0';
}

static bool fits_method(const struct api_route *route, enum http_method method)
{
    return route->method == method || (route->method == HTTP_GET && method == HTTP_HEAD);
}

const struct api_route *api_match(const struct http_request *request, unsigned *ret_status)
{
    const char *parameters[API_PARAMETERS_MAX];

    *ret_status = 404;
    for (const struct api_route *route = api_routes; route->pattern; route++) {
        if (!fits(route->pattern, request->path, parameters))
            continue;
        if (fits_method(route, request->method))
            return route;
        *ret_status = 405;
    }
    return NULL;
}

void api_parameters(const struct api_route *route, const char *path, const char **parameters)
{
    (void)fits(route->pattern, path, parameters);
}

const char *api_method_name(enum http_method method)
{
    static const char *const names[] = { "GET",   "HEAD",   "POST",    "PUT",
                                         "PATCH", "DELETE", "OPTIONS", "other" };

    return names[method];
}

void api_methods(const char *path, char *target, size_t size)
{
    const char *parameters[API_PARAMETERS_MAX];
    unsigned methods = 0;
    size_t used = 0;

    for (const struct api_route *route = api_routes; route->pattern; route++) {
        if (fits(route->pattern, path, parameters))
            methods |= 1u << route->method;
    }
    for (enum http_method method = 0; method < HTTP_METHODS; method++) {
        if (methods & 1u << method)
            used += (size_t)snprintf(
                target + used, size - used, "%s%s", used ? ", " : "", api_method_name(method));
    }
}

bool api_is_ours(const char *path)
{
    static const char *const own[] = { "/v1", "/livez", "/readyz", "/metrics" };

    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        size_t size = strlen(own[i]);

        if (strncmp(path, own[i], size) == 0 && (path[size] == '/' || path[size] == '\0'))
            return true;
    }
    return false;
}

bool api_takes_key(const struct api_route *route)
{
    static api_run_fn *const keyed[] = { api_start, api_send,   api_send_all,
                                         api_batch, api_cancel, api_submit };

    for (size_t i = 0; i < sizeof keyed / sizeof *keyed; i++) {
        if (route->run == keyed[i])
            return true;
    }
    return route->method == HTTP_GET;
}

const char *api_unknown_query(const struct api_route *route, const struct url *url)
{
    for (size_t i = 0; i < url->query_count; i++) {
        if (!route->query || !api_is_listed(route->query, det_view_text(url->query[i].key)))
            return url->query[i].key;
    }
    return NULL;
}
