/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* model.c - compares the content of a store with the expected one, and names the difference. */
#include "crash/model.h"

#include <stdio.h>
#include <string.h>

/* A part of an instance: rows of numbers. */
struct part {
    const char *name;
    size_t offset, row_size, row_count;
    const char *const *columns;
};

#define NAME(column)        #column,
#define COLUMNS(what, list) static const char *const what##_columns[] = { list(NAME) NULL }
COLUMNS(head, CRASH_HEAD_COLUMNS);
COLUMNS(event, CRASH_EVENT_COLUMNS);
COLUMNS(timer, CRASH_TIMER_COLUMNS);
COLUMNS(effect, CRASH_EFFECT_COLUMNS);
COLUMNS(deferred, CRASH_DEFERRED_COLUMNS);
COLUMNS(answer, CRASH_ANSWER_COLUMNS);
COLUMNS(snapshot, CRASH_SNAPSHOT_COLUMNS);
COLUMNS(lock, CRASH_LOCK_COLUMNS);
static const char *const counts_columns[] = { "events", "effects", "deferred", NULL };
static const char *const history_columns[] = { "state", NULL };

#define PART(what, member, columns, count)                                                        \
    {                                                                                             \
        what, offsetof(struct crash_instance, member), sizeof columns - sizeof columns[0], count, \
            columns                                                                               \
    }
static const struct part parts[] = {
    PART("head", head, head_columns, 1),
    PART("history", history, history_columns, CRASH_HISTORY),
    PART("number of rows", event_count, counts_columns, 1),
    PART("event", events, event_columns, CRASH_KEPT),
    PART("timer", timers, timer_columns, CRASH_TIMERS),
    PART("effect", effects, effect_columns, CRASH_EFFECTS),
    PART("deferred", deferred, deferred_columns, CRASH_DEFERRED),
    PART("answer", answers, answer_columns, CRASH_IDS),
    PART("snapshot", snapshot, snapshot_columns, 1),
    PART("lock", lock, lock_columns, 1),
};
_Static_assert(sizeof(char *) == sizeof(int64_t), "the size of a row is that of its names");
_Static_assert(
    sizeof(struct crash_instance) % sizeof(int64_t) == 0, "instances have no bytes in between");

/* Writes the first difference within a part; false: none. */
static bool part_differs(
    const struct part *part, const struct crash_instance *found,
    const struct crash_instance *wanted, char *text, size_t size)
{
    size_t columns = part->row_size / sizeof(int64_t);
    const int64_t *a = (const void *)((const char *)found + part->offset);
    const int64_t *b = (const void *)((const char *)wanted + part->offset);

    for (size_t i = 0; i < columns * part->row_count; i++)
        if (a[i] != b[i]) {
            snprintf(
                text, size, "%s %zu, %s: %lld instead of %lld", part->name, i / columns,
                part->columns[i % columns], (long long)a[i], (long long)b[i]);
            return true;
        }
    return false;
}

static void describe(
    const struct crash_instance *found, const struct crash_instance *wanted, char *text,
    size_t size)
{
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (part_differs(&parts[i], found, wanted, text, size))
            return;
    snprintf(text, size, "nothing differs");
}

/* True if the timers, or the effects, are neither as acknowledged nor as begun. */
#define NEITHER(member)                                                    \
    (memcmp(found->member, answered->member, sizeof found->member) != 0 && \
     memcmp(found->member, begun->member, sizeof found->member) != 0)

static void classify(
    const struct crash_instance *found, const struct crash_instance *answered,
    const struct crash_instance *begun, struct crash_faults *faults)
{
    if (found->head.exists < answered->head.exists ||
        found->head.sequence < answered->head.sequence)
        faults->lost++;
    else if (found->head.exists > begun->head.exists || found->head.sequence > begun->head.sequence)
        faults->doubled++;
    else if (NEITHER(timers))
        faults->timers++;
    else if (NEITHER(effects))
        faults->effects++;
    else
        faults->halves++;
}

static bool check_leases(
    const struct crash_model *found, const struct crash_model *answered,
    const struct crash_model *begun, struct crash_faults *faults, char *text, size_t size)
{
    for (size_t i = 0; i < CRASH_LEASES; i++) {
        const struct crash_lock *lease = &found->leases[i];

        if (!memcmp(lease, &answered->leases[i], sizeof *lease) ||
            !memcmp(lease, &begun->leases[i], sizeof *lease))
            continue;
        faults->halves++;
        snprintf(
            text, size, "lease %zu: token %lld instead of %lld", i, (long long)lease->token,
            (long long)answered->leases[i].token);
        return false;
    }
    return true;
}

bool crash_model_check(
    const struct crash_model *found, const struct crash_model *answered,
    const struct crash_model *begun, struct crash_faults *faults, char *text, size_t size)
{
    for (size_t i = 0; i < CRASH_INSTANCES; i++) {
        const struct crash_instance *instance = &found->instances[i];
        char first[160], second[160];

        if (!memcmp(instance, &answered->instances[i], sizeof *instance) ||
            !memcmp(instance, &begun->instances[i], sizeof *instance))
            continue;
        classify(instance, &answered->instances[i], &begun->instances[i], faults);
        describe(instance, &answered->instances[i], first, sizeof first);
        describe(instance, &begun->instances[i], second, sizeof second);
        snprintf(
            text, size, "instance %zu is not as answered (%s), nor as begun (%s)", i, first,
            second);
        return false;
    }
    return check_leases(found, answered, begun, faults, text, size);
}
