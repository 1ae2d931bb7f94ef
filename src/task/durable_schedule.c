/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable_schedule.c - schedules whose times are in the store: each time is submitted once.
 *
 *     no row --> row: the next time ---- it is over: missed ----> row: the one after
 *                     ^      \---- it is due: row and submission, in one transaction
 *                     +------ another process was first: read again
 *
 * The last time also records when the schedule was added, so that its times continue over restarts.
 *
 * Invariants:
 *   1  the times of a row only grow, and the token of the row changes with them: of all processes
 *      that see a due time, one submits it
 *   2  the id of a submission depends only on the schedule and its time: an imported submission is
 *      not repeated */
#include <detent/driver/schedule.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "task/durable.h"

#define SCHEDULE_NAME_MAX 100
#define ID_SIZE           (SCHEDULE_NAME_MAX + 1 + DET_TIME_TEXT)
/* Missed times submitted in one step. */
#define FIRINGS_MAX 64

static int make_table(
    const struct det_durable_schedule *schedule, det_time last, struct det_timetable *ret,
    struct det_error *reterr)
{
    struct det_schedule plain = schedule->schedule;

    plain.spread = 0;
    return det_timetable_init(ret, &plain, last, 0, reterr);
}

int det_durable_schedules_check(const struct det_durable_options *options, struct det_error *reterr)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < options->schedule_count; i++) {
        const struct det_durable_schedule *schedule = &options->schedules[i];
        struct det_timetable table;

        if (!schedule->name || !det_name_is_valid(schedule->name) ||
            strlen(schedule->name) > SCHEDULE_NAME_MAX)
            return det_error_set(
                reterr, DET_ERR_INVALID,
                "the name of a durable schedule is 1 to %d of letters, digits, '.', '_' and '-'",
                SCHEDULE_NAME_MAX);
        r = make_table(schedule, DET_SECOND, &table, reterr);
        if (r == 0 && !table.is_on)
            r = det_error_set(reterr, DET_ERR_INVALID, "schedule %s has no times", schedule->name);
    }
    return r;
}

static int see_row(void *context, const struct det_job_row *job)
{
    bool *is_there = context;

    (void)job;
    *is_there = true;
    return 0;
}

/* The id of a due submission. Versions up to 0.1 used nanoseconds: an existing submission with such
 * an id, for example from an import, counts as this one. The row needs no such check, as its token
 * changes with both forms (invariant 1). */
static int make_id(
    struct det_durable *durable, const struct det_durable_schedule *schedule, det_time due,
    char id[ID_SIZE])
{
    char time[DET_TIME_TEXT];
    bool is_there = false;
    int r;

    (void)snprintf(id, ID_SIZE, "%s:%lld", schedule->name, (long long)due);
    r = durable->ops->list(
        durable->options.store,
        &(struct det_job_query){ .queue = durable->options.queue, .id = id, .limit = 1 }, see_row,
        &is_there);
    if (r < 0)
        return r;
    if (!is_there)
        (void)snprintf(
            id, ID_SIZE, "%s:%s", schedule->name, det_format_time_basic(due, time, sizeof time));
    return 0;
}

/* Advances the row, and submits `due` (0: none). 1: check again; 0: wait; or an error. */
static int fire(
    struct det_durable *durable, const struct det_durable_schedule *schedule,
    const struct det_job_firing *move, det_time due)
{
    char id[ID_SIZE];
    struct det_job_put put = { durable->options.queue, id, schedule->work, schedule->body,
                               schedule->size,         0 };
    struct det_job_firing firing = *move;
    int r;

    r = due ? make_id(durable, schedule, due, id) : 0;
    if (r < 0)
        return r;
    firing.name = schedule->name;
    firing.job = due ? &put : NULL;
    r = durable->ops->fire(durable->options.store, &firing);
    if (r == 0 && due)
        det_durable_wake(durable);
    return r == 0 || r == DET_ERR_CONFLICT ? 1 : r;
}

/* The due time, or 0; `ret_next` is the time after it. */
static det_time due_of(
    struct det_timetable *table, const struct det_job_schedule *row, det_time now,
    det_time *ret_next)
{
    det_time due = row->next_at;

    if (table->missed != DET_MISSED_SKIP)
        due = det_timetable_next(table, row->last_at, now, NULL);
    *ret_next = due;
    if (due > now)
        return 0;
    *ret_next = det_timetable_next(table, due, now, NULL);
    return det_timetable_is_over(table, due, now) ? 0 : due;
}

/* One step of a schedule. 1: check again; 0: wait until `ret_next`; or an error. */
static int step(
    struct det_durable *durable, const struct det_durable_schedule *schedule, det_time *ret_next)
{
    struct det_store *store = durable->options.store;
    det_time now = store->ops->now(store), due;
    struct det_job_schedule row;
    struct det_timetable table;
    int r;

    r = durable->ops->schedule(store, schedule->name, &row);
    if (r < 0)
        return r;
    r = make_table(schedule, row.token ? row.last_at : now, &table, NULL);
    if (r < 0)
        return r;
    if (!row.token)
        return fire(
            durable, schedule,
            &(struct det_job_firing){ .next_at = det_timetable_next(&table, 0, now, NULL),
                                      .last_at = now },
            0);
    due = due_of(&table, &row, now, ret_next);
    if (!due && row.next_at > now)
        return 0;
    return fire(
        durable, schedule,
        &(struct det_job_firing){
            .token = row.token, .next_at = *ret_next, .last_at = due ? due : row.next_at },
        due);
}

det_time det_durable_schedules_run(struct det_durable *durable)
{
    const struct det_durable_options *options = &durable->options;
    det_time span = options->poll;

    for (size_t i = 0; i < options->schedule_count; i++) {
        det_time next = DET_NEVER, left;
        int r = 1;

        for (int n = 0; r > 0 && n < FIRINGS_MAX; n++)
            r = step(durable, &options->schedules[i], &next);
        left = r > 0 ? 0 : r < 0 ? options->poll : next - options->store->ops->now(options->store);
        if (left < span)
            span = left;
    }
    return span > DET_MILLISECOND ? span : DET_MILLISECOND;
}
