/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lookups.c - what the HTTP API can look at on the loop: the status, tasks and groups. */
#include <detent/driver/policy.h>

#include "daemon/lookups.h"

#include <string.h>
#include <unistd.h>

#include "daemon/machines.h"
#include "daemon/task_json.h"
#include "daemon/workers.h"

#define DELAYS 10

const char *up_state_name(const struct up *up)
{
    static const char *const states[] = {
        [UP_RUNNING] = "running",
        [UP_DRAINING] = "draining",
        [UP_STOPPING] = "stopping",
        [UP_OVER] = "stopping",
    };

    return states[up->state];
}

static void put_counts(struct det_json_writer *json, const struct det_tasks_counts *counts)
{
    det_json_open(json, "tasks", '{');
    det_json_number(json, "registered", counts->registered);
    det_json_number(json, "queued", counts->queued);
    det_json_number(json, "running", counts->running);
    det_json_number(json, "waiting", counts->waiting);
    det_json_number(json, "backing_off", counts->backing_off);
    det_json_number(json, "resting", counts->resting);
    det_json_number(json, "held", counts->held);
    det_json_number(json, "stuck", counts->stuck);
    det_json_number(json, "added", counts->added);
    det_json_number(json, "finished", counts->finished);
    det_json_number(json, "restarts", counts->restarts);
    det_json_number(json, "rejected", counts->rejected);
    det_json_number(json, "events_lost", counts->events_lost);
    det_json_close(json, '}');
}

void up_write_status(struct up *up, struct det_json_writer *json, const char *key)
{
    struct det_tasks_counts counts = det_tasks_counts(up->tasks);
    char away[UP_AWAY_TEXT];

    det_json_open(json, key, '{');
    det_json_text(json, "kind", "status");
    det_json_bytes(json, "project", up->project, strlen(up->project));
    det_json_number(json, "process", (uint64_t)getpid());
    det_json_time(json, "since", up->since);
    det_json_text(json, "state", up_state_name(up));
    det_json_text(json, "version", det_version());
    det_json_number(json, "machines", up_machines_count(up));
    det_json_text(json, "api", up_address(up));
    if (up_store_is_away(up, away))
        det_json_bytes(json, "away", away, strlen(away));
    else
        det_json_null(json, "away");
    if (up->workers)
        up_write_workers_figures(up, json, "workers");
    else
        det_json_null(json, "workers");
    put_counts(json, &counts);
    det_json_close(json, '}');
}

static int put_task(void *user, const struct det_task_info *info)
{
    struct det_json_writer *json = user;

    det_json_open(json, NULL, '{');
    up_write_task(json, info);
    det_json_close(json, '}');
    return det_buffer_status(&json->text);
}

static int put_group(void *user, const struct det_task_group_info *info)
{
    struct det_json_writer *json = user;

    det_json_open(json, NULL, '{');
    up_write_group(json, info);
    det_json_close(json, '}');
    return det_buffer_status(&json->text);
}

int up_write_tasks(struct up *up, struct det_json_writer *json, const char *key)
{
    int r;

    det_json_open(json, key, '[');
    r = up_each_task(up, put_task, json);
    det_json_close(json, ']');
    return r;
}

int up_write_groups(struct up *up, struct det_json_writer *json, const char *key)
{
    int r;

    det_json_open(json, key, '[');
    r = det_tasks_each_group(up->tasks, put_group, json);
    det_json_close(json, ']');
    return r;
}

/* A job has the policy that it was submitted with, which nobody keeps: the defaults then. */
static void put_delays(struct up *up, struct det_json_writer *json, const char *name)
{
    const struct config *config = &up->file.config;
    int index = up_find_task(up, name);
    struct det_policy policy = { .restart = DET_RESTART_INHERIT };
    det_time least = 0, most = 0;

    if (index >= 0)
        policy = config->tasks[index].spec.policy;
    det_json_open(json, "backoff", '[');
    if (det_policy_resolve(&policy, &config->defaults, &policy, NULL) == 0) {
        for (uint32_t i = 0; i < DELAYS; i++) {
            least = det_backoff_delay(&policy.backoff, i, least, 0);
            most = det_backoff_delay(&policy.backoff, i, most, UINT64_MAX);
            det_json_open(json, NULL, '{');
            det_json_number(json, "failures", i + 1);
            det_json_signed(json, "base_ns", det_backoff_base(&policy.backoff, i));
            det_json_signed(json, "least_ns", least);
            det_json_signed(json, "most_ns", most);
            det_json_close(json, '}');
        }
    }
    det_json_close(json, ']');
}

struct search {
    const char *name;
    struct det_json_writer *json; /* NULL: it need not be written */
    bool is_found;
};

static int find_task(void *user, const struct det_task_info *info)
{
    struct search *search = user;

    if (search->is_found || strcmp(info->name, search->name) != 0)
        return 0;
    search->is_found = true;
    if (search->json)
        up_write_task(search->json, info);
    return 0;
}

int up_has_task(struct up *up, const char *name)
{
    struct search search = { .name = name };
    int r = up_each_task(up, find_task, &search);

    return r < 0 ? r : search.is_found;
}

int up_write_one_task(struct up *up, struct det_json_writer *json, const char *name)
{
    struct search search = { .name = name, .json = json };
    int r;

    det_json_open(json, NULL, '{');
    r = up_each_task(up, find_task, &search);
    put_delays(up, json, name);
    det_json_close(json, '}');
    return r < 0 ? r : search.is_found ? 0 : DET_ERR_NOT_FOUND;
}
