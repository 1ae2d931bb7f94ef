/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_requests.c - one task by its name, with the delays of its policy. */
#include <string.h>

#include "daemon/task_json.h"
#include "daemon/verbs.h"

#define DELAYS 10

/* A job has the policy that it was submitted with, which nobody keeps: the defaults then. */
static json_t *delays_of(struct up *up, const char *name)
{
    const struct config *config = &up->file.config;
    int index = up_find_task(up, name);
    struct det_policy policy = { .restart = DET_RESTART_INHERIT };
    json_t *all = json_array();
    det_time least = 0, most = 0;

    if (index >= 0)
        policy = config->tasks[index].spec.policy;
    if (det_policy_resolve(&policy, &config->defaults, &policy, NULL) < 0)
        return all;
    for (uint32_t i = 0; i < DELAYS; i++) {
        least = det_backoff_delay(&policy.backoff, i, least, 0);
        most = det_backoff_delay(&policy.backoff, i, most, UINT64_MAX);
        json_array_append_new(
            all, json_pack(
                     "{s:I, s:I, s:I, s:I}", "failures", (json_int_t)i + 1, "base_ns",
                     (json_int_t)det_backoff_base(&policy.backoff, i), "least_ns",
                     (json_int_t)least, "most_ns", (json_int_t)most));
    }
    return all;
}

struct search {
    const char *name;
    json_t *found;
};

static int find(void *user, const struct det_task_info *info)
{
    struct search *search = user;

    if (search->found || strcmp(info->name, search->name) != 0)
        return 0;
    search->found = up_json_task(info);
    return search->found ? 0 : DET_ERR_NO_MEMORY;
}

void up_run_task(void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument table[] = { { "name", UP_TEXT }, { NULL, UP_TEXT } };
    struct up *up = context;
    struct search search = { .name = up_argument_text(request, "name") };
    int r;

    if (!up_arguments_check(request, call, table))
        return;
    if (!search.name) {
        socket_call_fail(call, DET_ERR_INVALID, "'task' needs 'name'");
        return;
    }
    r = up_each_task(up, find, &search);
    if (r < 0 || !search.found) {
        json_decref(search.found);
        socket_call_fail(call, r < 0 ? r : DET_ERR_NOT_FOUND, "there is no task '%s'", search.name);
        return;
    }
    json_object_set_new(search.found, "backoff", delays_of(up, search.name));
    socket_call_answer(call, search.found);
}
