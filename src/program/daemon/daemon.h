/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* daemon.h - one run of `detent up` on one loop: what its files share. README.md describes the
 * files.
 *
 * All functions run on the loop's thread, which is the main thread. Machines have threads of their
 * own, which post to the loop. Few files know struct up: run.h. */
#ifndef DET_DAEMON_DAEMON_H
#define DET_DAEMON_DAEMON_H

#include <detent/driver/loop.h>
#include <detent/slot.h>

#include <stdatomic.h>

#include "base/list.h"
#include "config/project_file.h"
#include "daemon/audit_log.h"
#include "daemon/front.h"
#include "daemon/host.h"
#include "daemon/life.h"
#include "daemon/loop_request.h"
#include "daemon/output_queue.h"
#include "daemon/process_guard.h"
#include "daemon/project.h"
#include "daemon/run_sockets.h"
#include "daemon/signal_watch.h"
#include "daemon/store_watch.h"
#include "daemon/task_output.h"
#include "daemon/tasks.h"
#include "os/os.h"

/* The name printed before notes about the run itself. */
#define UP_NAME "detent"
/* In the folder of the socket; docs/formats/processes.md. */
#define UP_PROCESSES "processes"

struct api;
struct up;
struct up_audit;
struct up_log;
struct up_machines;
struct up_observe;
struct up_slots;
struct up_tasks;

struct up_options {
    const struct up_front *front;
    const char *path; /* of the file, for display */
    const char *const *names;
    size_t name_count; /* 0: all tasks */
    const char *journal;
    bool has_times, is_quiet;
    const char *listen; /* overrides the file; NULL: not given */
    const char *log;    /* overrides the file: "text", "json"; NULL: not given */
    const char *user;   /* user to change to; NULL: keep the current one */
    bool is_serving;    /* `detent serve`: runs until a stop is requested */
    bool may_be_root;   /* --allow-root */
};

/* run_parts.def, run_parts.c, for files that do not know struct up. */

#define UP_PART(function, type, value) type function(const struct up *up);
#define UP_SET(function, type, member) void function(struct up *up, type member);
#include "daemon/run_parts.def"
#undef UP_PART
#undef UP_SET
/* front.h */
struct up_api_place *up_api_place(struct up *up);
/* True if the output has room for one more line; otherwise counts the line as hidden. */
bool up_has_output_room(struct up *up);
struct det_list *up_open_requests(struct up *up);

/* daemon.c */

/* "http://127.0.0.1:7788", the first address for a browser; NULL: none. */
const char *up_address(const struct up *up);

/* Runs `detent up` or `detent serve` in the working directory. Returns an exit code. */
DET_MUST_CHECK int up_run(struct cli *cli, struct up_options *options);

/* Reports readiness to the service manager; also after a reload. */
void up_notify_ready(struct up *up);
/* The handler of the events of life.fsm. */
extern const struct up_life_handler up_daemon_life;
/* Admits no new tasks and lets running attempts finish. Returns the number of tasks, or an error.
 */
int up_drain(struct up *up);

/* idle.c */

/* After each turn of the loop: true if no work is left. */
bool up_is_done(struct up *up);
/* The run is idle: reports what tasks wait for. Returns true, after a message, if no task can
 * proceed. */
bool up_report_idle(struct up *up);

/* notices.c */

struct det_subscriber up_notes_subscriber(struct up *up);
void up_note(struct up *up, const char *name, const char *format, ...) DET_PRINTF(3, 4);
/* A note that is printed also with --quiet. */
void up_note_failure(struct up *up, const char *name, const char *format, ...) DET_PRINTF(3, 4);
/* A duration rounded for display: "1.6s", "250ms", "2m". Returns `target`. */
#define UP_SPAN_TEXT 48
const char *up_span(det_time span, char target[UP_SPAN_TEXT]);
/* The time that the run has to stop. */
det_time up_grace(const struct up *up);
/* Reports which tasks and workers have not stopped, and when they will be killed. */
void up_note_stopping(struct up *up);

#endif
