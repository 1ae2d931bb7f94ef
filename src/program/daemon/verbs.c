/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* verbs.c - the table of verbs, their arguments, and the verbs that only look. */
#include "daemon/verbs.h"

#include <string.h>
#include <unistd.h>

#include "daemon/reload.h"
#include "daemon/task_json.h"
#include "daemon/workers.h"

#define LINES_DEFAULT 100

static bool are_texts(json_t *value)
{
    size_t i;
    json_t *item;

    json_array_foreach(value, i, item)
    {
        if (!json_is_string(item))
            return false;
    }
    return true;
}

static bool has_text_values(json_t *value)
{
    const char *key;
    json_t *item;

    json_object_foreach(value, key, item)
    {
        if (!json_is_string(item) || *key == '\0' || strchr(key, '='))
            return false;
    }
    return true;
}

/* NULL when it fits. */
static const char *mismatch(json_t *value, enum up_argument_type type)
{
    switch (type) {
    case UP_TEXT:
        return json_is_string(value) && json_string_length(value) > 0 ? NULL
                                                                      : "a text that is not empty";
    case UP_BOOLEAN:
        return json_is_boolean(value) ? NULL : "true or false";
    case UP_COUNT:
        return json_is_integer(value) && json_integer_value(value) >= 0 ? NULL
                                                                        : "a whole number from 0";
    case UP_TEXTS:
        return json_is_array(value) && are_texts(value) ? NULL : "an array of texts";
    case UP_MAPPING:
        return json_is_object(value) && has_text_values(value) ? NULL
                                                               : "a mapping from names to texts";
    }
    return NULL;
}

static const struct up_argument *find(const struct up_argument *table, const char *name)
{
    while (table->name && strcmp(table->name, name) != 0)
        table++;
    return table->name ? table : NULL;
}

bool up_arguments_check(
    const struct socket_request *request, struct socket_call *call, const struct up_argument *table)
{
    const char *name;
    json_t *value;

    json_object_foreach(request->arguments, name, value)
    {
        const struct up_argument *argument = find(table, name);
        const char *wanted = argument ? mismatch(value, argument->type) : NULL;

        if (!argument) {
            socket_call_fail(
                call, DET_ERR_INVALID, "'%s' has no argument '%s'", request->verb, name);
            return false;
        }
        if (wanted) {
            socket_call_fail(
                call, DET_ERR_INVALID, "the argument '%s' of '%s' is %s", name, request->verb,
                wanted);
            return false;
        }
    }
    return true;
}

json_t *up_argument(const struct socket_request *request, const char *name)
{
    return json_object_get(request->arguments, name);
}

const char *up_argument_text(const struct socket_request *request, const char *name)
{
    return json_string_value(up_argument(request, name));
}

bool up_argument_is_set(const struct socket_request *request, const char *name)
{
    return json_is_true(up_argument(request, name));
}

uint64_t up_argument_count(
    const struct socket_request *request, const char *name, uint64_t otherwise)
{
    json_t *value = up_argument(request, name);

    return value ? (uint64_t)json_integer_value(value) : otherwise;
}

/* Looking. */

static const struct up_argument no_arguments[] = { { NULL, UP_TEXT } };

static void run_slots(void *context, const struct socket_request *request, struct socket_call *call)
{
    struct up *up = context;

    if (up_arguments_check(request, call, no_arguments))
        up_slots_send(up, call);
}

/* Reading along. */

static void run_logs(void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument table[] = {
        { "names", UP_TEXTS }, { "lines", UP_COUNT }, { "follow", UP_BOOLEAN }, { NULL, UP_TEXT }
    };

    if (up_arguments_check(request, call, table))
        up_follow_lines(
            context, call, up_argument(request, "names"),
            (size_t)up_argument_count(request, "lines", LINES_DEFAULT),
            up_argument_is_set(request, "follow"));
}

static void run_events(
    void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument table[] = {
        { "after", UP_COUNT }, { "follow", UP_BOOLEAN }, { "new", UP_BOOLEAN }, { NULL, UP_TEXT }
    };
    struct up *up = context;
    uint64_t after;

    if (!up_arguments_check(request, call, table))
        return;
    after = up_argument_is_set(request, "new") ? det_bus_newest(det_tasks_bus(up->tasks))
                                               : up_argument_count(request, "after", 0);
    up_follow_events(up, call, after, up_argument_is_set(request, "follow"));
}

const struct socket_verb up_verbs[] = {
    { "slots", run_slots },
    { "submit", up_run_submit },
    { "restart", up_run_restart },
    { "stop", up_run_stop },
    { "drain", up_run_drain },
    { "logs", run_logs },
    { "events", run_events },
    { "job", up_run_job },
    { "reload", up_run_reload },
    { "workers-list", up_run_workers_list },
    { "workers-summary", up_run_workers_summary },
    { "workers-show", up_run_workers_show },
    { "workers-history", up_run_workers_history },
    { "workers-upsert", up_run_workers_upsert },
    { "workers-delete", up_run_workers_delete },
    { "workers-order", up_run_workers_order },
    { "workers-dump", up_run_workers_dump },
    { NULL, NULL },
};
