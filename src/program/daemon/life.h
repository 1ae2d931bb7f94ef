/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* life.h - the life of a run, from its start to its end, and the facts that decide the exit code.
 *
 * life.fsm has the states and events; every change of state goes through the gateway in life.c. The
 * effects of a change are the functions of struct up_life_handler, which daemon.c provides. All
 * functions run on the loop's thread. */
#ifndef DET_DAEMON_LIFE_H
#define DET_DAEMON_LIFE_H

#include <detent/supervise.h>

/* Signals within this time of the first one count as the same request: a wrapper may forward a
 * signal that the terminal has sent to the whole process group. */
#define UP_SAME_STOP (250 * DET_MILLISECOND)

struct up;
struct up_life;

/* The effects of life.fsm. None of these functions may turn the loop. */
struct up_life_handler {
    /* Requests the stop of tasks, machines and workers. `why` is the reason in the message,
     * "interrupted"; NULL: no message. */
    void (*stop)(struct up *up, const char *why);
    /* Kills tasks and workers that have not ended. */
    void (*force)(struct up *up, const char *why);
    /* True when tasks and workers have ended. */
    bool (*is_empty)(const struct up *up);
    /* The time that the run has to stop. */
    det_time (*grace)(const struct up *up);
    /* Reports tasks and workers that have not ended; `is_late`: the grace is over. */
    void (*report_stop)(struct up *up, bool is_late);
    /* The run is idle. Returns true, after a message, if no task can proceed. */
    bool (*report_idle)(struct up *up);
};

/* Opens the component on the loop of `up`, in the state STARTING. 0 or DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int up_life_open(struct up *up, const struct up_life_handler *handler);
/* Before the loop is closed; NULL does nothing. */
void up_life_close(struct up_life *life);
/* The executor, for other components on the same loop. */
struct det_executor *up_executor(const struct up *up);

/* The state; STARTING before up_life_open(). */

/* Starting or running: new work is admitted. */
bool up_is_running(const struct up *up);
bool up_has_begun(const struct up *up);
/* Stopping or over. */
bool up_is_stopping(const struct up *up);
bool up_is_over(const struct up *up);
/* The state for clients: "running", "draining", "stopping". */
const char *up_state_name(const struct up *up);
/* Wall clock. */
det_time up_started_at(const struct up *up);
/* Monotonic clock; the run must be stopping. */
det_time up_stop_began_at(const struct up *up);

/* All parts are open and all tasks are added. */
void up_begin(struct up *up);
/* Admits no new work. */
void up_set_draining(struct up *up);
/* Requests a stop because no work is left or none can proceed. No effect on a run that stops. */
void up_begin_stop(struct up *up);
/* Requests a stop with a message that has the reason. Repeated on a run that stops: kills tasks and
 * workers that have not ended. */
void up_stop(struct up *up, const char *why);
/* Tasks or workers have ended: the run is over if all of both have. */
void up_check_empty(struct up *up);

/* Schedules a check, after this turn of the loop, of which tasks can start and whether work is
 * left. */
void up_check_again(struct up *up);
/* True once after up_check_again(); never on a run that stops. */
bool up_take_check(struct up *up);
/* Restarts the idle timer, at whose end report_idle is called. */
void up_idle_arm(struct up *up);

/* For the exit code: a task of the file failed permanently; a task or worker had to be killed. */
void up_set_failed(struct up *up);
bool up_has_failed(const struct up *up);
void up_set_forced(struct up *up);
bool up_was_forced(const struct up *up);

#endif
