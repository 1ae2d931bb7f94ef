/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* run_parts.c - accessors of struct up for files that do not include run.h, in alphabetical
 * order. */
#include "daemon/machines.h"
#include "daemon/project_internal.h"
#include "daemon/run.h"
#include "daemon/task_output_internal.h"
#include "daemon/tasks_internal.h"
#include "daemon/telemetry.h"
#include "daemon/workers_internal.h"

const struct det_allocator *up_allocator(const struct up *up)
{
    return up->output.outer->allocator;
}

struct api *up_api(const struct up *up)
{
    return up->front.api;
}

struct up_audit *up_audit(const struct up *up)
{
    return up->audit;
}

struct cli *up_cli(const struct up *up)
{
    return up->cli;
}

struct det_store *up_common_store(const struct up *up)
{
    return up->shared ? up->shared : up->machines ? up->machines->store : NULL;
}

const struct config *up_config(const struct up *up)
{
    return &up->project->file.config;
}

struct det_arena *up_config_arena(const struct up *up)
{
    return &up->project->file.arena;
}

const char *up_config_path(const struct up *up)
{
    return up->project->file.path;
}

uint32_t up_effects_max(const struct up *up)
{
    return up->effects_max;
}

const char *up_folder(const struct up *up)
{
    return up->project->folder;
}

bool up_has_output_room(struct up *up)
{
    return up_output_has_room(&up->output);
}

struct up_log *up_log(const struct up *up)
{
    return up->log;
}

struct det_logger *up_logger(const struct up *up)
{
    return up->log ? up->log->logger : NULL;
}

struct det_loop *up_loop(const struct up *up)
{
    return up->loop;
}

struct up_machines *up_machines(const struct up *up)
{
    return up->machines;
}

struct det_metrics *up_metrics(const struct up *up)
{
    return up->observe ? up->observe->metrics : NULL;
}

struct up_observe *up_observe(const struct up *up)
{
    return up->observe;
}

struct det_list *up_open_requests(struct up *up)
{
    return &up->requests;
}

const struct up_options *up_options(const struct up *up)
{
    return up->options;
}

struct up_api_place *up_api_place(struct up *up)
{
    return &up->front;
}

struct prefix *up_prefix(struct up *up)
{
    return &up->log->prefix;
}

struct up_project *up_project(const struct up *up)
{
    return up->project;
}

void up_set_audit(struct up *up, struct up_audit *audit)
{
    up->audit = audit;
}

void up_set_effects_max(struct up *up, uint32_t effects_max)
{
    up->effects_max = effects_max;
}

void up_set_log(struct up *up, struct up_log *log)
{
    up->log = log;
}

void up_set_machines(struct up *up, struct up_machines *machines)
{
    up->machines = machines;
}

void up_set_observe(struct up *up, struct up_observe *observe)
{
    up->observe = observe;
}

void up_set_shared_store(struct up *up, struct det_store *store)
{
    up->shared = store;
}

void up_set_slots(struct up *up, struct up_slots *slots)
{
    up->slots = slots;
}

void up_set_tasks(struct up *up, struct up_tasks *tasks)
{
    up->tasks = tasks;
}

void up_set_workers(struct up *up, struct up_workers *workers)
{
    up->workers = workers;
}

struct det_store *up_shared_store(const struct up *up)
{
    return up->shared;
}

struct up_slots *up_slots(const struct up *up)
{
    return up->slots;
}

const struct reload_item *up_standing_items(const struct up *up)
{
    return up->earlier.standing;
}

struct up_tasks *up_tasks(const struct up *up)
{
    return up->tasks;
}

struct det_tasks *up_tasks_supervisor(const struct up *up)
{
    return up->tasks ? up->tasks->supervisor : NULL;
}

struct up_workers *up_workers(const struct up *up)
{
    return up->workers;
}

struct det_world *up_world(const struct up *up)
{
    return up->output.outer->world;
}
