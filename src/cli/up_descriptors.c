/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* up_descriptors.c - who gets how many descriptors: what the tasks, slots and effects of the file
 * need comes first, and connections get what is left.
 *
 *     limit | our own: store, sockets, logs | tasks, slots | effects | local | connections |
 */
#include "cli/up_descriptors.h"

#include "console/http_words.h"
#include "os/os.h"

#define OWN           128 /* readers of the store, loops, sockets, logs, files that are read */
#define PER_PROCESS   3   /* output, error, and one to wait for its end */
#define EFFECTS       16  /* that run at the same time */
#define PER_EFFECT    6
#define LEAST         16 /* connections that there may always be, of either kind */
#define LOCAL_PERCENT 25

static uint64_t needed_for(const struct config *config)
{
    uint64_t processes = 0, more = 0;

    for (size_t i = 0; i < config->task_count; i++) {
        processes++;
        more += config->tasks[i].process.has_notify;
        more += config->tasks[i].log.path != NULL;
    }
    for (size_t i = 0; i < config->slot_count; i++)
        processes += config->slots[i].options.width ? config->slots[i].options.width : 1;
    return OWN + processes * PER_PROCESS + more +
           (config->machine_count ? EFFECTS * PER_EFFECT : 0);
}

void up_descriptors_check(struct up *up)
{
    const struct config *config = &up->file.config;
    uint64_t needed = needed_for(config), limit = det_descriptors_limit();

    if (needed <= limit)
        return;
    up_note_failure(
        up, UP_NAME,
        "%zu task%s and %zu slot%s need about %llu descriptors, and the hard limit is %llu: raise "
        "it ('ulimit -Hn %llu' as root, LimitNOFILE= of a unit); a start without a descriptor "
        "waits until one is free",
        config->task_count, det_plural(config->task_count), config->slot_count,
        det_plural(config->slot_count), (unsigned long long)needed, (unsigned long long)limit,
        (unsigned long long)needed);
}

static void clamp(uint32_t *limit, uint64_t most)
{
    if (most < LEAST)
        most = LEAST;
    if (*limit > most)
        *limit = (uint32_t)most;
}

void up_descriptors_clamp(const struct config *config, struct http_limits *limits)
{
    uint64_t needed = needed_for(config), limit = det_descriptors_limit();
    uint64_t left = limit > needed ? limit - needed : 0;

    http_limits_settle(limits);
    clamp(&limits->local_connections_max, left * LOCAL_PERCENT / 100);
    clamp(
        &limits->connections_max,
        left > limits->local_connections_max ? left - limits->local_connections_max : 0);
}
