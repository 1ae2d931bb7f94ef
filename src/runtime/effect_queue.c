/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect_queue.c - reports effects that have waited for a thread for a second.
 *
 *     none waits --one is submitted without a free thread--> watched --a second later, one waits-->
 *     reported --none waits--> none waits
 *
 * The loop checks once a second while effects wait, and not otherwise. A burst of short effects
 * ends before the first check, and is not reported. */
#include <stdio.h>

#include "base/checked.h"
#include "base/text.h"
#include "os/pool.h"
#include "runtime/runtime.h"

#define LOOK_SPAN   DET_SECOND
#define HOLDERS_MAX 3 /* number of effects named in a report */

/* An effect and the number of its threads. */
struct holder {
    const struct det_machine *machine;
    unsigned effect;
    unsigned threads;
};

void det_effect_queue_watch(struct det_runtime *runtime)
{
    det_time none = DET_NEVER, next = det_add_time(det_runtime_now(runtime), LOOK_SPAN);

    if (atomic_compare_exchange_strong(&runtime->queue_next, &none, next))
        det_due_kick(runtime, next);
}

/* The list is sorted: most threads first. */
static void add_holder(struct holder holders[HOLDERS_MAX], struct holder added)
{
    for (size_t i = 0; i < HOLDERS_MAX && added.threads; i++) {
        if (added.threads > holders[i].threads) {
            struct holder moved = holders[i];

            holders[i] = added;
            added = moved;
        }
    }
}

static unsigned find_holders(struct det_runtime *runtime, struct holder holders[HOLDERS_MAX])
{
    unsigned sum = 0;

    for (size_t i = 0; i < DET_SERVED_BUCKETS; i++) {
        for (const struct det_served *s = atomic_load(&runtime->served[i]); s; s = s->next) {
            for (unsigned k = 0; k < s->machine->effect_count; k++) {
                struct holder holder = { s->machine, k, atomic_load(&s->running[k]) };

                sum += holder.threads;
                add_holder(holders, holder);
            }
        }
    }
    return sum;
}

/* "24 by order.charge, 8 by order.mail" */
static void write_holders(char *target, size_t size, const struct holder holders[HOLDERS_MAX])
{
    size_t used = 0;

    *target = '\0';
    for (size_t i = 0; i < HOLDERS_MAX && holders[i].threads && used < size; i++) {
        const struct det_machine *machine = holders[i].machine;

        used += (size_t)snprintf(
            target + used, size - used, "%s%u by %s.%s", i ? ", " : "", holders[i].threads,
            machine->name, machine->effects[holders[i].effect].name);
    }
}

static void report(struct det_runtime *runtime, unsigned threads)
{
    struct holder holders[HOLDERS_MAX] = { { NULL, 0, 0 } };
    unsigned used = find_holders(runtime, holders), most = runtime->options.pool_threads;
    size_t queued = atomic_load(&runtime->effects_queued);
    struct det_incident incident = { .kind = DET_INCIDENT_EFFECTS_QUEUED,
                                     .instance = "",
                                     .code = threads < most ? DET_ERR_NO_MEMORY : DET_ERR_LIMIT };
    char names[DET_ERROR_TEXT_MAX / 2];
    struct det_error error;

    /* All effects have ended meanwhile. */
    if (!holders[0].threads || !queued)
        return;
    write_holders(names, sizeof names, holders);
    det_error_set(
        &error, incident.code, "%zu effect%s %s for a thread: %u of %u %s in use, %s%s", queued,
        det_plural(queued), queued == 1 ? "waits" : "wait", used, most, det_is_or_are(used), names,
        threads < most ? "; the system provides no more threads" : "");
    incident.machine = holders[0].machine;
    incident.name = holders[0].machine->effects[holders[0].effect].name;
    runtime->is_queue_reported = true;
    det_runtime_report_incident_at(runtime, &incident, &error);
}

void det_effect_queue_due(struct det_runtime *runtime, det_time now)
{
    struct det_pool *pool = atomic_load(&runtime->pool);
    unsigned threads;

    if (!pool || now < atomic_load(&runtime->queue_next))
        return;
    /* Set this first, so that an effect submitted from now on is watched again. */
    atomic_store(&runtime->queue_next, DET_NEVER);
    if (!det_pool_is_short(pool, &threads)) {
        runtime->is_queue_reported = false;
        return;
    }
    atomic_store(&runtime->queue_next, det_add_time(now, LOOK_SPAN));
    if (!runtime->is_queue_reported)
        report(runtime, threads);
}
