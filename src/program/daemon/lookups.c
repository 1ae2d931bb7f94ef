/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lookups.c - what the HTTP API reads on the loop: the status, tasks and groups. */
#include <detent/driver/policy.h>
#include <detent/tool/store.h>

#include "daemon/lookups.h"

#include <string.h>
#include <unistd.h>

#include "daemon/flows.h"
#include "daemon/machines.h"
#include "daemon/slots.h"
#include "daemon/task_json.h"
#include "daemon/workers.h"

#define DELAYS 10

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
    struct det_tasks_counts counts = det_tasks_counts(up_tasks_supervisor(up));
    char unreachable[UP_UNREACHABLE_TEXT];

    det_json_open(json, key, '{');
    det_json_text(json, "kind", "status");
    det_json_bytes(json, "project", up_folder(up), strlen(up_folder(up)));
    det_json_number(json, "process", (uint64_t)getpid());
    det_json_time(json, "since", up_started_at(up));
    det_json_text(json, "state", up_state_name(up));
    det_json_text(json, "version", det_version());
    det_json_number(json, "machines", up_machines_count(up));
    det_json_text(json, "api", up_address(up));
    if (up_store_is_unreachable(up, unreachable))
        det_json_bytes(json, "away", unreachable, strlen(unreachable));
    else
        det_json_null(json, "away");
    if (up_has_workers(up))
        up_write_workers_figures(up, json, "workers");
    else
        det_json_null(json, "workers");
    up_write_flows_figures(up, json, "flows");
    put_counts(json, &counts);
    det_json_close(json, '}');
}

static void put_identity(
    struct det_json_writer *json, const char *key, const struct det_store *store)
{
    det_json_text(json, key, store ? det_store_identity(store) : NULL);
}

void up_write_served(
    const struct up *up, struct det_json_writer *json, const char *url, const char *file)
{
    const struct up_machines *machines = up_machines(up);
    struct det_store *stores[] = { machines ? machines->store : NULL, up_slots_store(up),
                                   up_shared_store(up) };
    struct det_store *store = stores[0] ? stores[0] : stores[1] ? stores[1] : stores[2];

    det_json_open(json, NULL, '{');
    det_json_text(json, "kind", "machines");
    put_identity(json, "store", stores[0]);
    det_json_text(json, "url", url);
    det_json_text(json, "file", file);
    put_identity(json, "jobs", stores[1]);
    put_identity(json, "workers", stores[2]);
    if (store)
        det_json_time(json, "now", store->ops->now(store));
    else
        det_json_null(json, "now");
    det_json_open(json, "machines", '[');
    for (size_t i = 0; machines && i < machines->count; i++) {
        if (machines->served[i])
            det_json_text(json, NULL, machines->list[i].name);
    }
    det_json_close(json, ']');
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
    r = det_tasks_each_group(up_tasks_supervisor(up), put_group, json);
    det_json_close(json, ']');
    return r;
}

/* The policy of a job is not kept: writes the defaults. */
static void put_delays(struct up *up, struct det_json_writer *json, const char *name)
{
    const struct config *config = up_config(up);
    int index = up_find_task(up_project(up), name);
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
    struct det_json_writer *json; /* NULL: only searched */
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
