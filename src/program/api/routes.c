/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* routes.c - the table of operations of src/program/api/openapi.yaml, and its lookup. */
#include <stdio.h>
#include <string.h>

#include "api/api_internal.h"
#include "base/assert.h"

#define TOKENS_PUBLIC GUARD_PUBLIC

const struct api_route api_routes[] = {
#define API_ROUTE(method, pattern, scope, mode, run, query, words) \
    { HTTP_##method, pattern, TOKENS_##scope, API_##mode, run, query, words },
#include "api/routes.def"
#undef API_ROUTE
    { HTTP_GET, NULL, 0, API_INLINE, NULL, NULL, NULL },
};

/* Returns true if the last parameter may be this word. */
static bool is_word(const struct api_route *route, const char *text)
{
    struct det_view word = det_view_of(text, (size_t)(strchrnul(text, '/') - text));

    return !route->words || api_is_listed(route->words, word);
}

/* Matches a path with a pattern. Sets `parameters` to the segments in braces, each up to the next
 * slash. The path is compared as received: fixed segments contain nothing that clients encode. */
static bool match_pattern(const struct api_route *route, const char *path, const char **parameters)
{
    const char *pattern = route->pattern;
    size_t count = 0;

    while (*pattern == '/' && *path == '/') {
        pattern++;
        path++;
        if (*pattern == '{') {
            parameters[count++] = path;
            if (*path == '/' || *path == '\0')
                return false;
            pattern = strchr(pattern, '}') + 1;
            if (*pattern == '\0' && !is_word(route, path))
                return false;
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

static bool match_method(const struct api_route *route, enum http_method method)
{
    return route->method == method || (route->method == HTTP_GET && method == HTTP_HEAD);
}

const struct api_route *api_match(const struct http_request *request, unsigned *ret_status)
{
    const char *parameters[API_PARAMETERS_MAX];

    *ret_status = 404;
    for (const struct api_route *route = api_routes; route->pattern; route++) {
        if (!match_pattern(route, request->path, parameters))
            continue;
        if (match_method(route, request->method))
            return route;
        *ret_status = 405;
    }
    return NULL;
}

void api_parameters(const struct api_route *route, const char *path, const char **parameters)
{
    (void)match_pattern(route, path, parameters);
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
        if (match_pattern(route, path, parameters))
            methods |= 1u << route->method;
    }
    for (enum http_method method = 0; method < HTTP_METHODS; method++) {
        det_assert(used < size);
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
