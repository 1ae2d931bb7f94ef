/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tasks.h - the tasks of a run: their supervisor, orders to them, requests that wait for them. On
 * the loop's thread. */
#ifndef DET_DAEMON_TASKS_H
#define DET_DAEMON_TASKS_H

#include <detent/task.h>

#include "daemon/loop_request.h"

struct up;

/* tasks.c */

/* Opens the supervisor, and with --journal its journal. */
DET_MUST_CHECK int up_tasks_open(struct up *up, struct det_error *reterr);
/* Ends running tasks. No effect if tasks are not open. */
void up_tasks_close(struct up *up);
/* True if no task is left and none can be added. */
bool up_tasks_are_over(const struct up *up);
/* Attempts after the first, of all tasks. Any thread, while tasks are open. */
uint64_t up_tasks_restarts(const struct up *up);

/* task_orders.c */

enum up_order_kind { UP_ORDER_RESTART, UP_ORDER_STOP, UP_ORDER_DRAIN };

struct up_order {
    enum up_order_kind kind;
    const char *name; /* of a task, a group or a slot; NULL: all tasks, not for a restart */
    bool waits;       /* answered when the order is completed, instead of at once */
    bool purges;      /* a stop of a slot that also empties its queue */
};

/* Carries the order out. The answer is {"kind":"done","count":...}, the number of tasks. The order
 * is borrowed for the call. */
void up_give_order(struct up *up, struct up_request *request, const struct up_order *order);
/* Drains all tasks; returns how many, or an error. */
int up_drain_all(struct up *up);

/* task_waits.c */

enum up_wait_kind {
    UP_WAIT_START, /* each has started an attempt, or has ended */
    UP_WAIT_STOP,  /* the attempt of each has ended; the task may be kept */
    UP_WAIT_END,   /* each has ended */
    UP_WAIT_JOB,   /* the job has ended; the answer describes its end */
    UP_WAIT_GROUP, /* the group has stopped */
    UP_WAIT_ALL,   /* the run is over */
};

/* Ids, in the order found. */
struct up_ids {
    det_task_id *items;
    size_t count, capacity;
};
DET_MUST_CHECK int up_ids_add(struct up *up, struct up_ids *ids, det_task_id id);
void up_ids_deinit(struct up *up, struct up_ids *ids);

/* Keeps the request until the event has happened. It is not answered before up_wait_arm(), so the
 * order can be given in between, even if it takes effect at once. `ids` and `group` are copied;
 * NULL if the kind has none. NULL: out of memory, and the request has failed. */
struct up_wait;
struct up_wait *up_wait_open(
    struct up *up, struct up_request *request, enum up_wait_kind kind, const struct up_ids *ids,
    const char *group);
/* `count` is part of the answer. */
void up_wait_arm(struct up_wait *wait, size_t count);
/* The job has this id, the highest so far, and may have ended already. */
void up_wait_arm_job(struct up_wait *wait, det_task_id id);
/* Before arming: returns the request to the caller, who finishes it. */
void up_wait_cancel(struct up_wait *wait);
void up_waits_started(struct up *up, det_task_id id);
void up_waits_stopped(struct up *up, det_task_id id);
void up_waits_ended(struct up *up, const struct det_task_end *end);
void up_waits_group_stopped(struct up *up, const char *group);
/* Answers requests that wait for the end of the run, once it is over. */
void up_waits_over(struct up *up);
/* Ends the request with the number of tasks. */
void up_answer_done(struct up_request *request, size_t count);

#endif
