/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* daemon.h - one run of `detent up`, on one loop: what its files share.
 *
 *               all tasks are gone, or a stop is wanted        the verdict
 *     running ----------------------------------------> stopping --------> over
 *        | drain                                    ^      | once more: force
 *        +------------> draining -------------------+
 *
 *     daemon.c            opens the parts, turns the loop, closes them, exit code
 *     task_selection.c    which tasks of the file run, by the names given
 *     add_tasks.c         groups, slots and tasks of the file to the supervisor of tasks
 *     configured_tasks.c  the tasks of the file, also those that have ended or wait to be added
 *     process_guard.c     the record of started processes, and their end when we are killed
 *     idle.c              what is said and done when nothing happens any more
 *     signal_watch.c      SIGINT, SIGTERM, SIGHUP, SIGCHLD by a descriptor on the loop
 *     stop_deadline.c     the thread that takes SIGINT and SIGTERM, and ends a stop that hangs
 *     notices.c           events of the bus as notes between the lines
 *     output_queue.c      what is printed, without waiting for its reader
 *     line_buffer.c       the newest lines, for `logs`
 *     task_log_files.c    the files that tasks have for their output
 *     line_followers.c    readers of lines and events, at their own pace
 *     task_waits.c        calls that wait for tasks to start or to end
 *     task_json.c         tasks, slots, groups and ends as objects
 *     verbs.c             what the HTTP API can ask
 *     task_orders.c       restart, stop, drain
 *     submit_requests.c   jobs
 *     machines.c          machines: their store, their runtime, their notices
 *     durable_slots.c     slots whose queue is in the store
 *     job_requests.c      requests to durable slots
 *     slot_requests.c     what runs and waits in the slots
 *     store_watch.c       whether the store can be reached
 *     telemetry.c         metrics and traces
 *     workers.c           workers: their supervisor, their notices
 *     worker_requests.c   requests to workers that need the store
 *     posted_requests.c   requests of the HTTP API, which fills struct up_front
 *
 * Everything is for the loop's thread, which is the one of main(); machines have threads of their
 * own, which post to the loop what is to be told. */
#ifndef DET_DAEMON_DAEMON_H
#define DET_DAEMON_DAEMON_H

#include <detent/driver/loop.h>
#include <detent/driver/process_guard.h>
#include <detent/durable.h>

#include <jansson.h>
#include <signal.h>
#include <stdatomic.h>

#include "auth/tokens.h"
#include "base/list.h"
#include "config/project_file.h"
#include "config/socket_place.h"
#include "daemon/audit.h"
#include "daemon/call.h"
#include "daemon/line_buffer.h"
#include "daemon/output_queue.h"
#include "daemon/serve.h"
#include "observe/log_line.h"
#include "os/os.h"
#include "terminal/line_prefix.h"

/* The name before notes that are about no task. */
#define UP_NAME "detent"
/* Signals that come so soon after the first one are the same wish: a wrapper passes on what the
 * terminal has sent to all of us, say. */
#define UP_SAME_WISH (250 * DET_MILLISECOND)
/* In the folder of the socket; docs/formats/processes.md. */
#define UP_PROCESSES "processes"

enum up_state { UP_RUNNING, UP_DRAINING, UP_STOPPING, UP_OVER };

struct up;

#define UP_LINK_TEXT 256

/* The HTTP API as the daemon sees it: the command fills the table (api_front), the daemon calls it
 * on its loop unless a line says otherwise. NULL: this daemon has no API. */
struct up_front {
    /* Binds the addresses, reads certificate and tokens: whatever can refuse a start. */
    int (*prepare)(struct up *up, struct det_error *reterr);
    int (*open)(struct up *up, struct det_error *reterr);
    /* Nothing of it uses the machines or the store from here on, until resume(). Connections,
     * streams and calls that wait for the daemon stay; `is_end`: nothing new is taken. Turns the
     * loop. */
    void (*pause)(struct up *up, bool is_end);
    /* It goes on by the file that is in place now; `has_new_http`: its section `http` is another
     * one. An error: it is still paused. Turns the loop. */
    int (*resume)(struct up *up, bool has_new_http, struct det_error *reterr);
    /* Takes no further request and answers those it has. Turns the loop. */
    void (*close)(struct up *up);
    void (*free)(struct up *up);
    /* Reads certificate and key again, for new connections. */
    void (*renew)(struct up *up);
    /* True when one of their files has changed since it was read. */
    bool (*has_new_files)(const struct up *up);
    /* Prints the addresses for people. */
    void (*say)(struct up *up);
    /* The first address of a browser; NULL: there is none. */
    const char *(*address)(const struct up *up);
    /* Something was committed. Any thread. */
    void (*notice)(struct up *up);
    /* A link to the console that signs its reader in, of UP_LINK_TEXT bytes. False: nothing listens
     * for browsers. */
    bool (*console_link)(const struct up *up, char *target, size_t size);
};

struct up_options {
    const struct up_front *front;
    const char *path; /* of the file, as it is shown */
    const char *const *names;
    size_t name_count; /* 0: all tasks */
    const char *journal;
    bool has_times, is_quiet;
    const char *listen; /* goes before the file; NULL: nothing does */
    const char *log;    /* the same: "text", "json" */
    const char *user;   /* to become; NULL: nobody else */
    bool is_serving;    /* `detent serve`: it goes on until it is told to stop */
    bool may_be_root;   /* of serve */
};

/* The last attempt that failed: what follows from it is told together with it. */
struct up_failure {
    det_task_id id;
    char reason[DET_TASK_REASON_MAX + 1];
};

/* A task of the file: where it is. */
struct up_known {
    det_task_id id;  /* 0: the supervisor does not have it */
    bool is_pending; /* it waits for others before it is given to the supervisor */
    bool has_ended;
    bool is_replaced;        /* it begins anew when it has ended, by what the file says now */
    bool is_told;            /* why it is held */
    struct det_task_end end; /* the last one */
    det_time at;             /* wall: since when it is pending, or has ended */
};

/* A slot whose queue is in the store. */
struct up_durable {
    const struct config_slot *slot;
    struct det_process_spec process;
    struct det_task_spec spec;
    struct det_durable_work work;
    struct det_durable_schedule
        *schedules; /* as many as the slot has; their bodies are of free() */
    struct det_durable *queue;
};

/* What happened in each step of the last day, in a ring: rates.c. Of the http thread. */
#define UP_RATES      4
#define UP_RATE_STEPS 17280
struct up_rates {
    uint32_t steps[UP_RATES][UP_RATE_STEPS];
    size_t next, taken;
    uint64_t last[UP_RATES];
    det_time sampled_at; /* wall */
};

struct up {
    struct cli *cli; /* once it is open: that of `output` */
    struct up_output output;
    const struct up_options *options;
    struct serve_notify notify;         /* our own supervisor */
    struct up_retired *retired;         /* files that were in its place before */
    const struct reload_item *standing; /* what runs otherwise than the file says: reload.h */
    bool reload_wanted, is_reloading, reload_is_plan;
    bool reload_signalled;    /* SIGHUP came */
    bool store_is_probed;     /* it has answered, and a reload goes on */
    struct det_thread *probe; /* asks the store; NULL: nobody does */
    struct det_post probe_post;
    struct up_store_report {
        struct det_post post;
        _Atomic(det_time) next; /* monotonic; DET_NEVER: one is posted, and has the text */
        char text[DET_ERROR_TEXT_MAX];
    } store_report;
    int probe_result;       /* of the thread, before it posts */
    bool was_refused;       /* the file of the last reload */
    struct det_logger *log; /* NULL: it speaks to people, or prints data */
    enum det_log_level log_level;
    struct socket_call *reload_call; /* that wants it; NULL: a signal does */
    struct serve_sockets sockets;    /* that were given to us, or bound before anything else */
    bool has_sockets;                /* they were bound, or there are none */
    struct serve_local local;        /* the same, where it is a path */
    struct config_file file;
    char project[DET_PATH_MAX];    /* the folder of the file */
    bool *is_selected;             /* by index of the file's tasks */
    struct up_known *known;        /* the same */
    struct det_task_end early_end; /* the one of the highest id since a task is being added */
    size_t selected_count;
    det_time since;                  /* wall */
    struct det_process_guard *guard; /* its world is that of all below */
    struct det_loop *loop;
    struct det_tasks *tasks;
    struct det_store *store; /* of durable slots, or that of the machines; NULL: there are none */
    struct up_durable *durables;
    size_t durable_count;
    struct det_pool *asks;     /* of what is asked of durable slots */
    struct det_list resting;   /* those of them that look again after a while */
    struct det_list beginning; /* jobs of these whose tasks are being added */
    struct det_subscription *notes_subscription, *journal_subscription;
    struct det_task_journal *journal;
    struct up_observe *observe;
    struct up_machines *machines; /* NULL: none are served */
    uint32_t effects_max;         /* `limits.effects` of the start; 0: none were served yet */
    struct up_workers *workers;   /* NULL: there are none */
    struct det_store *shared;     /* theirs, and that of all others; NULL: there are none */
    bool tasks_are_over;          /* none is left, and none comes any more */
    bool serves_machines;
    struct socket_listener door; /* .detent/detent.sock, and the lock of the project */
    struct prefix prefix;
    struct up_lines lines;
    struct up_log_file *log_files; /* that were written to */
    struct up_failure failure;
    struct det_list waits, followers, errands;
    atomic_uint_fast64_t restarts; /* attempts after the first, of all tasks */
    struct tokens *tokens;         /* NULL: not open yet */
    struct audit *audit;           /* the same */
    struct det_post audit_post;
    struct up_rates rates;
    struct api *api;                /* NULL: nobody listens */
    _Atomic(struct api *) listener; /* the same, for who commits; it changes under the lock */
    struct det_mutex *listener_lock;
    const char *submitting; /* the name of the one that is being added; NULL: none is */
    uint64_t job_count;     /* jobs that were given a name */
    uint32_t job_tag;       /* of this process, in the names of durable jobs; 0: not drawn yet */

    enum up_state state;
    bool has_news;               /* something has happened since it was looked at */
    bool is_empty;               /* nothing is left to run */
    bool has_begun;              /* the loop takes signals */
    bool has_failed;             /* a task of the file failed for good */
    bool was_forced;             /* something did not stop by itself */
    det_time stop_at;            /* monotonic: when it began */
    struct det_timer patience;   /* tells who still stops */
    struct det_timer quiet;      /* nothing has happened for a while */
    struct det_timer store_look; /* whether the store can be reached */
    struct det_timer guard_tend; /* the process that guards the others is started again */
    bool is_unguarded;           /* it could not be started, and that was told */
    det_time away_since;         /* monotonic: since when it cannot; 0: it can */
    struct up_deadline *deadline;
    struct det_watch signal_watch; /* descriptor -1: not open */
    struct det_watch stop_watch;   /* SIGINT and SIGTERM, as the thread of the deadline hands on */
    int stop_signals, stop_pipe;   /* that thread's */
    sigset_t mask_before;
};

/* Whether the name is one of the file's tasks; its index, or -1. */
int up_find_task(const struct up *up, const char *name);
const struct config_group *up_find_group(const struct up *up, const char *name);
/* Whether `group` (NULL: none) is `name` or below it. */
bool up_is_in_group(const struct up *up, const char *group, const char *name);

/* up.c */

/* "http://127.0.0.1:7788", the first address of a browser; NULL: there is none. */
const char *up_address(const struct up *up);

/* The whole of `detent up` and of `detent serve`, in the folder we are in. An exit code. */
DET_MUST_CHECK int up_run(struct cli *cli, struct up_options *options);

/* Puts what the file names into its folder. CLI_OK or an exit code. */
DET_MUST_CHECK int up_settle(struct up *up);
/* Our own supervisor hears that it is ready, also again. */
void up_tell_ready(struct up *up);
/* The one place where a state changes. */
void up_set_state(struct up *up, enum up_state state);
/* Nothing is left to wait for. */
void up_begin_stop(struct up *up);
/* The first time: all are asked to stop; the second time: forced. */
void up_stop(struct up *up, const char *why);
/* Nothing more is admitted; what runs comes to its own end. Returns how many, or an error. */
int up_drain(struct up *up);

/* task_selection.c */

/* CLI_OK or an exit code, after it was said what is wrong. */
DET_MUST_CHECK int up_select(struct up *up);

/* process_guard.c */

/* From here on `cli` has the world whose processes are guarded. */
DET_MUST_CHECK int up_guard_open(struct up *up);
/* Ends what an earlier detent has left, which waits for it. */
DET_MUST_CHECK int up_guard_start(struct up *up, struct det_error *reterr);
/* On SIGCHLD. */
void up_guard_tend(struct up *up);

/* add_tasks.c */

DET_MUST_CHECK int up_add_all(struct up *up, struct det_error *reterr);

/* durable_slots.c */

DET_MUST_CHECK int up_durable_open(struct up *up, struct det_error *reterr);
/* Nothing more is taken out of the queues. */
void up_durable_drain(struct up *up);
/* Before the tasks; turns the loop. */
void up_durable_close(struct up *up);
/* The queue of a durable slot; NULL: it is not one. */
struct det_durable *up_durable_find(const struct up *up, const char *slot);
/* What a job is kept as. NULL: no memory. */
json_t *up_durable_body(json_t *run_take, const char *folder, uint32_t retries, det_time timeout);

/* Which job a task does: "import", or "import, attempt 2". It is told once, when the task starts;
 * NULL: there is none. */
const char *up_durable_take_job(struct up *up, const char *task, char *target, size_t size);

/* job_requests.c */

/* Answers the call when the store has it. The slot is a durable one. */
void up_jobs_submit(
    struct up *up, struct socket_call *call, const char *slot, const char *id, bool shall_wait,
    json_t *body_take);
/* Tells those who wait for the end of a job that it is looked for no more. */
void up_jobs_over(struct up *up);

/* store_watch.c: of machines or of durable slots; there may be none. */

/* Whether it has failed for good. */
bool up_store_is_lost(struct up *up);
/* Whether there is no connection to it for now, and why. */
#define UP_AWAY_TEXT 256
bool up_store_is_away(struct up *up, char text[UP_AWAY_TEXT]);
/* Whether it is reached by a connection, which may be lost. */
bool up_store_is_remote(const struct up *up);
/* Asks it for something, which waits for it: DET_ERR_... when it does not answer. Any thread. */
int up_store_ask(struct up *up);
/* From now on no call waits longer than `span` for it; DET_NEVER: as before. */
void up_store_limit(struct up *up, det_time span);
/* From now on it is told when that changes. */
DET_MUST_CHECK int up_store_watch(struct up *up);
/* Tells the reason of an error that a client of the API is not shown; one in ten seconds. From any
 * thread. */
void up_store_report(struct up *up, const char *text);

/* slot_requests.c */

/* Sends all slots and ends the call; durable ones as the store has them. */
void up_slots_send(struct up *up, struct socket_call *call);

/* configured_tasks.c */

/* Admits the file's task of this index, once more if it has ended, now or when what it depends on
 * is there. DET_ERR_REFUSED: its slot does not take it, or what it depends on has failed. */
DET_MUST_CHECK int up_add_one(struct up *up, size_t index, struct det_error *reterr);
/* Those that can be admitted by now. */
void up_add_pending(struct up *up);
void up_known_ended(struct up *up, const struct det_task_end *end);
/* It is admitted when what it depends on is there. */
void up_known_wait(struct up *up, size_t index);
/* One that is pending has ended with this; false: it is not pending. */
bool up_known_forget(struct up *up, size_t index);
/* Whether somebody wanted to run it and could not. */
bool up_is_refusal(enum det_rejection rejection);
/* Of one that the supervisor does not have. */
const char *up_known_state(const struct up_known *known);
/* What it depends on that has ended otherwise than well; `target`, or NULL: there is none. */
#define UP_OBSTACLE_TEXT (DET_TASK_NAME_MAX + DET_TASK_REASON_MAX + 32)
const char *up_known_obstacle(const struct up *up, size_t index, char *target, size_t size);
/* Whether there is such a group and it stays stopped; `reason` (may be NULL) has room for one. */
bool up_group_has_failed(const struct up *up, const char *name, char *reason);
/* All tasks: those of the supervisor, and those of the file that it does not have. */
typedef int up_each_fn(void *user, const struct det_task_info *info);
DET_MUST_CHECK int up_each_task(struct up *up, up_each_fn *each, void *user);

/* idle.c */

/* Behind each turn: whether nothing is left that could run. */
bool up_is_done(struct up *up);
/* Something has happened. */
void up_quiet_arm(struct up *up);
void up_on_quiet(void *argument);

/* log_output.c */

/* Speaks as the file says by now. 0 or DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int serve_log_open(struct up *up);
void serve_log_close(struct up *up);
/* Whether it is important enough. */
bool serve_log_is_told(const struct up *up, enum det_log_level level);
/* Of one that is open: what is said about this name, and what a task has written. */
void serve_log_note(struct up *up, enum det_log_level level, const char *name, const char *text);
/* The same about an instance of the machine `name`; `trace` NULL: none. */
void serve_log_step(
    struct up *up, enum det_log_level level, const char *name, const char *instance,
    const struct det_trace_context *trace, const char *text);
/* So many lines could not be written. */
void serve_log_lost(struct up *up, uint64_t count);
void serve_log_line(struct up *up, const struct det_line *from);

/* audit_log.c: who acts on it, for the log. From any thread, unless it says otherwise. */

/* On the loop. */
DET_MUST_CHECK int up_audit_open(struct up *up);
void up_audit_close(struct up *up);
/* Of a signal, on the loop. */
void up_audit_signal(struct up *up, const char *what, int64_t uid);
/* Of tokens: see tokens_options. */
void up_tokens_trouble(void *user, const char *text, bool is_closed);
void up_tokens_changed(void *user, const struct token *token, bool is_new);

/* reload_run.c; over: it stops, and who wants one is told */
void up_reload_over(struct up *up);
/* After the last turn of the loop; the store is limited by now. */
void up_reload_close(struct up *up);

/* Reads the file again; between two turns of the loop. */
void up_reload(struct up *up);
void up_retired_close(struct up *up);

/* task_log_files.c */

void up_log_files_line(struct up *up, const struct det_line *line, det_time at);
void up_log_files_flush(struct up *up);
void up_log_files_close(struct up *up);

/* signal_watch.c */

/* Before there are threads. 0 or an error. */
DET_MUST_CHECK int up_signals_open(struct up *up);
/* Ends what left its group. */
void up_signals_close(struct up *up);
/* Puts the signals back. */
void up_signals_end(struct up *up);

/* stop_deadline.c */

/* With the signalfd of SIGINT and SIGTERM, and where they are handed on to. 0 or an error. */
DET_MUST_CHECK int up_deadline_open(struct up *up, int signals, int forward);
/* The guard has begun: who ends the program kills what was started. */
void up_deadline_guard(struct up *up);
/* A stop begins: the next signal is the second one. */
void up_deadline_arm(struct up *up);
/* When a second signal came (monotonic), DET_NEVER before; for effects. NULL: no thread for it. */
const _Atomic det_time *up_deadline_forced_at(const struct up *up);
/* What the main thread is about to wait for; a constant text, for who is told that it hung. */
void up_deadline_phase(struct up *up, const char *phase);
void up_deadline_close(struct up *up);

/* notices.c */

struct det_subscriber up_notes_subscriber(struct up *up);
void up_note(struct up *up, const char *name, const char *format, ...) DET_PRINTF(3, 4);
/* What is told even to those who want it quiet. */
void up_note_failure(struct up *up, const char *name, const char *format, ...) DET_PRINTF(3, 4);
/* A span as people say it: "1.6s", "250ms", "2m". `target` is returned. */
#define UP_SPAN_TEXT 48
const char *up_span(det_time span, char target[UP_SPAN_TEXT]);
/* How long all of it may take to stop. */
det_time up_grace(const struct up *up);
/* A note of who is still stopping, and when it will be forced. */
void up_note_stopping(struct up *up);

/* task_waits.c */

enum up_wait_kind {
    UP_WAIT_START, /* each has begun an attempt, or has ended */
    UP_WAIT_STOP,  /* the attempt of each has ended; the task may be kept */
    UP_WAIT_END,   /* each has ended */
    UP_WAIT_JOB,   /* the one has ended, and the answer is how */
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

/* Keeps the call until what it waits for has happened. Nothing is answered before up_wait_arm(),
 * which gives the count to be told; so orders can be given in between, whatever follows from them
 * at once. `name` is that of a group. NULL: no memory, which was answered. */
struct up_wait;
struct up_wait *up_wait_open(
    struct up *up, struct socket_call *call, enum up_wait_kind kind, const struct up_ids *ids,
    const char *name);
void up_wait_arm(struct up_wait *wait, size_t count);
/* The job has this id; it may have ended already. */
void up_wait_arm_job(struct up_wait *wait, det_task_id id);
/* Before it was armed: the call is the caller's again, to be finished. */
void up_wait_cancel(struct up_wait *wait);
void up_waits_started(struct up *up, det_task_id id);
void up_waits_stopped(struct up *up, det_task_id id);
void up_waits_ended(struct up *up, const struct det_task_end *end);
void up_waits_group_stopped(struct up *up, const char *group);
/* Answers those who wait for the end of all, when it has come; forgets the others. */
void up_waits_over(struct up *up);

/* line_followers.c */

/* What a reader of lines wants; `names` is an array of texts, or NULL for all tasks. */
void up_follow_lines(
    struct up *up, struct socket_call *call, json_t *names, size_t count, bool goes_on);
void up_follow_events(struct up *up, struct socket_call *call, uint64_t after, bool goes_on);
/* Sends what there is to all who read, as far as they take it. */
void up_follow_all(struct up *up);

/* posted_requests.c: verbs that others than the clients of the socket ask for. */

/* The first member of what they keep of one. It is in the list until it is released. */
struct up_errand {
    struct socket_call call;
    struct det_list node;
};
/* Runs a verb of up_verbs. */
void up_run_errand(struct up *up, struct up_errand *errand, const char *verb, json_t *arguments);
/* Those that are not finished fail: it stops. */
void up_errands_over(struct up *up);

/* task_orders.c */

/* Drains all tasks; returns how many, or an error. */
int up_drain_all(struct up *up);

#endif
