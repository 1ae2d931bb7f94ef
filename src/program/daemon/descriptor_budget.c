/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* descriptor_budget.c - divides the descriptors: first those that the tasks, slots, workers and
 * effects of the file need; the rest is for connections.
 *
 *     limit | detent: store, logs | tasks, slots, workers | effects | local | connections | */
#include "daemon/descriptor_budget.h"

#include <string.h>

#include "http/protocol_tables.h"
#include "os/os.h"
#include "worker/spec.h"

#define OWN           128 /* store readers, loops, sockets, logs, files being read */
#define PER_PROCESS   3   /* output, error, pidfd */
#define PER_EFFECT    6
#define PER_FLOW      16 /* its journal, and what its stages read and write */
#define LEAST         16 /* least limit of connections, of either kind */
#define LOCAL_PERCENT 25

/* For each worker of this kind: a connection of libcurl or libmosquitto also has a socket pair that
 * wakes it. */
#define PER_CONNECTION 4
#define PER_WORKER     1 /* the file that it reads */

/* Built-in kinds that hold more than one descriptor. */
static const struct {
    const char *kind;
    unsigned count;
} held[] = {
    { "process", PER_PROCESS },
    { "http_check", PER_CONNECTION },
    { "mqtt_link", PER_CONNECTION },
    { "communicator", PER_CONNECTION },
};

static bool has_isolated(const struct config_workers *workers)
{
    for (size_t i = 0; i < workers->module_count; i++)
        if (workers->modules[i].is_isolated)
            return true;
    return false;
}

/* A worker of an isolated kind is a process. Which kinds are isolated is unknown before their files
 * are loaded, so any kind that is not built in may be. */
static unsigned held_by(const char *kind, bool may_be_isolated)
{
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        if (strcmp(held[i].kind, kind) == 0)
            return held[i].count;
    return may_be_isolated ? PER_PROCESS : PER_WORKER;
}

/* Counts the workers of the file only: those that they create are not known yet. */
static uint64_t needed_for_workers(const struct config_workers *workers, size_t *ret_count)
{
    bool may_be_isolated = has_isolated(workers);
    struct det_spec spec = { 0 };
    uint64_t needed = 0;

    *ret_count = 0;
    if (!workers->spec || det_workers_spec_read_data(&spec, NULL, workers->spec, NULL) < 0)
        return 0;
    for (uint32_t i = 0; i < spec.count; i++)
        needed += held_by(spec.children[i].kind, may_be_isolated);
    *ret_count = spec.count;
    det_spec_deinit(&spec);
    return needed;
}

static uint64_t needed_for(const struct config *config, size_t *ret_workers)
{
    uint64_t processes = 0, more = needed_for_workers(&config->workers, ret_workers);

    for (size_t i = 0; i < config->task_count; i++) {
        processes++;
        more += config->tasks[i].process.has_notify;
        more += config->tasks[i].log.path != NULL;
    }
    for (size_t i = 0; i < config->slot_count; i++)
        processes += config->slots[i].options.width ? config->slots[i].options.width : 1;
    return OWN + processes * PER_PROCESS + more +
           (config->machine_count ? (uint64_t)config_effects(config) * PER_EFFECT : 0) +
           (uint64_t)config->flow_count * PER_FLOW;
}

void up_descriptors_check(struct up *up)
{
    const struct config *config = up_config(up);
    size_t workers;
    uint64_t needed = needed_for(config, &workers), limit = det_descriptors_limit();
    uint32_t effects = config->machine_count ? config_effects(config) : 0;

    if (needed <= limit)
        return;
    up_note_failure(
        up, UP_NAME,
        "%zu task%s, %zu slot%s, %u effect%s at a time, %zu worker%s and %zu flow%s need about "
        "%llu "
        "descriptors, and the hard limit is %llu: raise it ('ulimit -Hn %llu' as root, "
        "LimitNOFILE= of a unit); a start without a descriptor waits until one is free",
        config->task_count, det_plural(config->task_count), config->slot_count,
        det_plural(config->slot_count), effects, det_plural(effects), workers, det_plural(workers),
        config->flow_count, det_plural(config->flow_count), (unsigned long long)needed,
        (unsigned long long)limit, (unsigned long long)needed);
}

static void clamp_limit(uint32_t *limit, uint64_t most)
{
    if (most < LEAST)
        most = LEAST;
    if (*limit > most)
        *limit = (uint32_t)most;
}

void up_descriptors_clamp(const struct config *config, struct http_limits *limits)
{
    size_t workers;
    uint64_t needed = needed_for(config, &workers), limit = det_descriptors_limit();
    uint64_t left = limit > needed ? limit - needed : 0;

    http_limits_settle(limits);
    clamp_limit(&limits->local_connections_max, left * LOCAL_PERCENT / 100);
    clamp_limit(
        &limits->connections_max,
        left > limits->local_connections_max ? left - limits->local_connections_max : 0);
}
