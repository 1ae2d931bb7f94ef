/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api.h - the HTTP API of `detent up` (src/program/api/openapi.yaml): what its files share.
 *
 *     http thread:  request --guard--> route --> api_call --inline--> answer
 *                                         |         |--lane: a store opened for reading --> answer
 *                                         |         |--runtime: submit ... done ---------> answer
 *                                         |         \--daemon's loop: loop_request.h ----> answer
 *                                         \--> files of the console
 *
 *     api.c              a request from its headers to its call
 *     api_server.c       opens, listens, closes; api_pause.c: pauses during a reload
 *     routes.c           the table of routes.def; matches paths
 *     call_life.c        a call from its match to its answer, with a deadline
 *     client_error.c     errors as clients see them
 *     request_body.c     parses the body: a JSON object with known members
 *     audit_requests.c   the audit log of actions and refusals
 *     lanes.c            schedules calls on threads that may block
 *     store_readers.c    stores opened for reading, one per thread
 *     instance_writes.c  start, send, cancel, retry; event_batch.c: many sends in one request
 *     instance_routes.c  one instance: its state, its history, why
 *     list_routes.c      instances, timers, effects, locks, jobs; log_pages.c: the log
 *     overview.c         the overview; counts.c: counts and metrics; rates.c: rates over time
 *     host_routes.c      liveness, sessions, the description; readiness.c: readiness
 *     machine_routes.c   definitions and diagrams
 *     daemon_routes.c    tasks, groups, slots, jobs, status
 *     daemon_request.c   requests to the daemon; request_stream.c: with an answer in parts
 *     submissions.c      submissions of jobs; long_calls.c: orders and reloads
 *     worker_routes.c    workers; document_pages.c: their documents; delta_stream.c: their changes
 *     flow_routes.c      flows; flow_reading.c: their journals; flow_stream.c: their rows
 *     stream_feed.c      begins, keeps alive and ends Server-Sent Events
 *     event_stream.c     the log as a stream; log_reader.c: its pages
 *     live_events.c      task events and daemon status; log_stream.c: task lines and events
 *
 * Invariants
 *   1. An api_call belongs to the http thread, except while a lane, the runtime or the daemon has
 *      it; each returns it by a post, exactly once.
 *   2. When the client disconnects or its deadline passes, `exchange` of the call becomes NULL. A
 *      write still completes.
 *   3. A write is answered after its commit. */
#ifndef DET_API_API_H
#define DET_API_API_H

#include <detent/driver/loop.h>
#include <detent/tool/spec.h>
#include <stdatomic.h>

#include "api/lanes.h"
#include "auth/guard.h"
#include "base/text.h"
#include "config/config.h"
#include "daemon/audit.h"
#include "http/http.h"
#include "http/url.h"
#include "inspect/stored_instance.h"
#include "json/writer.h"

#define API_PARAMETERS_MAX 4
#define API_LIMIT          100
#define API_LIMIT_MAX      1000
#define API_PAGE_BYTES     (256 << 10) /* a page of a list ends after this size */

struct api;
struct api_call;
struct up;

enum api_mode {
    API_INLINE, /* answered at once on the http thread */
    API_POOL,   /* run in a lane, where it may block */
    API_OWN,    /* owns the call until it calls api_finish() */
};

struct api_route {
    enum http_method method;
    const char *pattern; /* "/v1/machines/{machine}"; braces mark a parameter */
    unsigned scope;
    enum api_mode mode;
    void (*run)(struct api_call *call);
    const char *query; /* permitted query keys, separated by blanks; NULL: none */
    const char *words; /* permitted words of the last parameter; NULL: any */
};

/* A store opened for reading, with its error messages. */
struct api_reader {
    struct api_reader *next;
    struct cli cli;
    struct cli_store store;
    char *text; /* error messages since it was taken */
    size_t text_size;
    bool is_open;
};

struct api_call {
    struct det_job job;
    /* Runs when the API resumes, while this call is in `held`. */
    struct det_list held_node;
    void (*resume)(void *argument);
    void *resume_argument;
    bool is_inside;            /* it may use the machines and the store */
    bool has_begun;            /* its route was run */
    struct det_list lane_node; /* while waiting for a thread */
    struct det_list late_node; /* until it is answered */
    det_time late_at;          /* monotonic */
    struct api *api;
    struct http_exchange *exchange; /* NULL: no client waits for the answer */
    atomic_bool is_left;            /* `exchange` is NULL, for other threads */
    const struct api_route *route;
    struct det_arena arena;
    struct url url;
    const char *parameters[API_PARAMETERS_MAX];
    struct det_view body;
    const char *key;                       /* Idempotency-Key; NULL: none */
    const struct det_trace_context *trace; /* from its traceparent; NULL: none */
    const char *peer;
    char who[TOKENS_ID_SIZE + 1]; /* id of its token, or "unix"; "": no token was required */
    struct audit_action *action;  /* entry of the audit log; NULL: not audited */
    struct api_reader *reader;    /* while it runs in a lane */
    /* The answer; status 0: 200. */
    unsigned status;
    const char *type; /* NULL: JSON */
    struct det_json_writer json;
    struct det_json_writer scratch; /* a second text, for routes that need one */
    void (*deferred)(struct api_call *call);
    void (*then)(struct api_call *call); /* runs after the handler unless it failed; NULL: none */
    const char *wrong_code; /* answered with 401 and this text, after `wait`; NULL: none */
    det_time wait;
    size_t decoded; /* bytes of its decoded events */
    void *own;      /* for the route */
    unsigned own_number;
};

/* call_life.c */

/* Call it before the first api_call_open(). */
void api_calls_open(struct api *api);
/* Creates the call of a request and copies all it needs. NULL: no memory. */
struct api_call *api_call_open(
    struct api *api, struct http_exchange *exchange, const struct api_route *route,
    const char *const *parameters, const struct url *url, struct det_arena *arena_take);
/* Sends the answer and closes the call. On the http thread. */
void api_finish(struct api_call *call);
/* Runs `run` in a lane, then finishes the call. */
void api_defer(struct api_call *call, void (*run)(struct api_call *call));
/* The call becomes a stream: it has no deadline and does not delay a pause. */
void api_call_streams(struct api_call *call);

/* api_pause.c: on the http thread, except the first two. */

/* Waits until no call uses the machines or the store. Streams, and calls that wait for the daemon,
 * continue. New calls wait for api_resume(); if `is_end`, they are refused. Turns the daemon's
 * loop, on which it is called. */
void api_pause(struct up *up, bool is_end);
/* Resumes with the current detent.yaml; `has_new_http`: opens a new server if its settings changed.
 * After an error the API is still paused. Turns the daemon's loop, on which it is called. */
DET_MUST_CHECK int api_resume(struct up *up, bool has_new_http, struct det_error *reterr);
/* Runs `run`, now or when the API is resumed. */
void api_enter(struct api_call *call, void (*run)(void *argument), void *argument);
/* The call stops using the machines and the store: it waits for the daemon, or becomes a stream. */
void api_call_release_store(struct api_call *call);
/* The same for a job of a stream. */
void api_release_store(struct api *api);
/* Returns true if the call was held and has not begun; it is no longer held. */
bool api_unhold(struct api_call *call);
/* Refuses held calls, since the API is closing. */
void api_held_end(struct api *api);
/* Closes replaced servers without connections; all of them if `is_end`. */
void api_old_servers_close(struct api *api, bool is_end);
size_t api_connections(const struct api *api);
/* Returns true if the route changes nothing. */
bool api_is_read(const struct api_route *route);
/* Makes the answer an error and discards what was written. On any thread that has the call. */
void api_fail(struct api_call *call, int code, const char *format, ...) DET_PRINTF(3, 4);
/* Like api_fail(), with the state, event and sequences of the error. */
void api_fail_with(struct api_call *call, int code, const struct det_error *error);
/* Fails with the messages of the reader, which ended with this exit code. */
void api_fail_reader(struct api_call *call, int exit_code);

/* client_error.c */

/* Returns the `api` for api_error_line(); NULL if the client may see errors in full. */
const struct api *api_error_reader(const struct api_call *call);
/* Writes an error as a member of the open object. A text that names the store is replaced by a
 * fixed sentence and goes to the log instead, unless `api` is NULL: our own user may read it. On
 * any thread. */
void api_error_line(
    const struct api *api, struct det_json_writer *json, int code, const struct det_error *error);
/* Returns true if a text contains the path or address of the store, or words of its server. Both
 * may be NULL. */
bool api_names_store(const char *text, const char *address, const char *url);

/* Values of the query; a missing one leaves `ret` unchanged. False: the call has failed. */
bool api_query_number(
    struct api_call *call, const char *key, uint64_t least, uint64_t most, uint64_t *ret);
bool api_query_bool(struct api_call *call, const char *key, bool *ret);
bool api_query_time(struct api_call *call, const char *key, det_time *ret);
/* The id of an instance; NULL if missing. */
bool api_query_id(struct api_call *call, const char *key, const char **ret);
bool api_query_limit(struct api_call *call, size_t *ret);
const char *api_query(const struct api_call *call, const char *key);
/* Returns true if a page has reached its size limit. */
bool api_page_is_full(const struct api_call *call);

/* store_readers.c: in a lane. */

/* Takes a reader for this call. False: the call has failed. */
bool api_reader_take(struct api_call *call);
/* Takes a reader without a call. `ret_code` is the exit code of opening the store; error messages
 * are in its text. NULL: no memory. */
struct api_reader *api_reader_open(struct api *api, int *ret_code);
void api_reader_give(struct api *api, struct api_reader *reader);
/* Returns the definition with this name; NULL if it cannot be read. */
const struct det_machine *api_reader_find(struct api_reader *reader, const char *name);
void api_readers_close(struct api *api);
/* Machine and instance named by the first two parameters. False: the call has failed. */
bool api_reader_machine(struct api_call *call, const char *name, struct det_machine **ret);
bool api_reader_instance(struct api_call *call, struct instance *ret);

/* api.c, api_server.c */

/* Cache of metric series of requests. */
#define API_SERIES_CACHE 256
struct api_series {
    const char *route, *method;
    unsigned status;
    struct det_series *requests, *duration;
};

/* Identities of the loaded files: certificate, key, CAs of clients. */
#define API_TLS_FILES 3
struct api_stamp {
    uint64_t device, number;
    int64_t size;
    det_time changed;
};

/* Clients of Server-Sent Events: stream_feed.h. */
struct api_feeds {
    struct det_list list;
    size_t count;
    struct det_timer beat;
    unsigned beats;
    bool is_over; /* closing: no new streams */
};

/*     serving --pause--> pausing --no call is inside--> paused --resume--> serving
 *                                                         \--> closed */
enum api_state { API_SERVING, API_PAUSING, API_PAUSED };

/* State of a pause, during a reload or shutdown: api_pause.c. */
struct api_pausing {
    enum api_state state;
    bool is_ending; /* paused until closed */
    size_t inside;  /* calls, and jobs of streams, that use the machines and the store */
    struct det_list held, held_jobs;
    struct det_post quiet_post, resume_post;
    bool is_quiet, is_resumed; /* used on the daemon's loop only */
    bool has_new_http;
    int resume_result;
    struct det_error resume_error;
};

/* Unanswered calls, oldest first. */
struct api_late {
    struct det_list calls;
    struct det_timer timer;
    bool is_set;
};

/* Shutdown of the http thread. */
struct api_end {
    struct det_post post, closed_post;
    struct det_timer grace_timer;
    det_time close_by, write_by;
    atomic_bool is_closed;
};

/* Reload of certificate and key. */
struct api_renewal {
    bool is_running;
    struct det_post post;
    int result;
    struct det_error error;
};

/* The store, opened for reading once per lane thread that needs it. */
struct api_source {
    struct det_mutex *lock; /* guards `readers` */
    struct api_reader *readers;
    const char *address, *url; /* NULL: no store */
};

/* Delayed answers to wrong tokens. */
struct api_guesses {
    struct det_list list;
    size_t count;
};

/* Replaced servers that still have connections. At the limit, the oldest is closed. */
#define API_OLD_SERVERS 8

struct api {
    struct up *up;           /* changed on its loop only; other threads use the copies below */
    struct config_http http; /* settings at the last open or reload */
    struct api_stamp stamps[API_TLS_FILES]; /* used on the daemon's loop only */
    const struct det_allocator *allocator;
    struct det_world *world;
    struct det_loop *loop; /* runs on a separate thread */
    struct http_server *server;
    struct http_server *old_servers[API_OLD_SERVERS];
    struct api_pausing pause;
    struct api_lane lanes[API_LANE_COUNT];
    struct api_late late;
    struct api_source source;
    const char *browser_url; /* URL for browsers; NULL: none */
    char browser_url_text[160];
    struct guard guard;
    struct api_guesses guesses;
    struct tokens *tokens; /* the daemon's */
    struct api_events *events;
    struct api_deltas *deltas;
    struct api_flows *flows;
    struct api_feeds feeds;
    struct api_counts *counts;
    struct det_timer rates_timer;
    struct api_series series_cache[API_SERIES_CACHE];
    det_time counts_due;   /* when stored rows are counted again; guarded by the lock of `counts` */
    size_t calls, streams; /* open */
    atomic_size_t decoded; /* bytes of decoded events, of all calls */
    struct api_end end;
    bool has_started;
    struct api_renewal renewal;
};

/* Opens a server with the current settings. On the http thread, or before it runs. */
DET_MUST_CHECK int api_server_open(
    struct api *api, struct http_server **ret, struct det_error *reterr);
/* Copies settings from detent.yaml and the machines; no other thread may read them meanwhile. */
DET_MUST_CHECK int api_copy_settings(struct api *api, struct det_error *reterr);
/* Reports a commit to streams of the log. On any thread, also while the API is closed and opened
 * again. */
void api_notice(struct up *up);

/* The functions that the daemon calls: front.h. */
extern const struct up_front api_front;

/* event_stream.c */
DET_MUST_CHECK int api_events_open(struct api *api, struct det_error *reterr);
/* Ends all streams. On the http thread. */
void api_events_end(struct api *api);
/* After the http thread has ended. */
void api_events_close(struct api *api);

/* delta_stream.c: like those of event_stream.c; api_events_end() ends its streams, too. */
DET_MUST_CHECK int api_deltas_open(struct api *api, struct det_error *reterr);
void api_deltas_close(struct api *api);

/* Ends with a NULL pattern. */
extern const struct api_route api_routes[];

#endif
