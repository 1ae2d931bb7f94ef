/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api.h - the HTTP API of `detent up` (src/program/api/openapi.yaml): what its files share.
 *
 *     http thread:  request --guard--> route --> api_call --inline--> answer
 *                                         |         |--lane: reads a store of its own--> answer
 *                                         |         |--runtime: submit ... done -------> answer
 *                                         |         \--loop of `up`: a verb (call.h) --> answer
 *                                         \--> assets of the console
 *
 *     api.c           a request from its headers to its call
 *     api_server.c      opens, listens, closes
 *     routes.c    the table of routes.def, and who may ask for what
 *     call_life.c      one request from its match to its answer, which comes in time
 *     client_error.c     what a client is shown of an error
 *     request_body.c      the body of a request: an object with the members that it may have
 *     audit_requests.c     who acts, and who is refused
 *     lanes.c     which call runs next on which threads
 *     store_readers.c    stores that are open for reading, one for each thread that needs one
 *     instance_writes.c      start, send, cancel, retry
 *     batch.c     many sends in one request
 *     instance_routes.c  an instance: where it stands, its history, why
 *     list_routes.c     instances, timers, effects, locks; log_pages.c: the log
 *     overview.c  all at one sight; counts.c: how much of what there is
 *     host_routes.c      the process itself, and sessions; readiness.c: whether it can do its work
 *     machine_routes.c  definitions and drawings
 *     daemon_routes.c        what the loop of `up` knows: tasks, groups, slots, jobs, status
 *     worker_routes.c   workers; document_pages.c: what the store has about them; delta_stream.c:
 *                     changes of that, as they come
 *     verb_stream.c    verbs of `up` that go on
 *     stream_feed.c      clients that are told what happens: begun, kept alive, ended
 *     event_stream.c    the log, as it grows; log_reader.c: pages of it;
 *                     live_events.c: tasks and `up`; log_stream.c: lines
 *
 * Invariants
 *   1. An api_call is of the http thread, but while a thread of a lane, the runtime or `up` has
 *      it; each gives it back by a post, exactly once.
 *   2. Whoever went away, or was told that it takes too long, is not waited for: its call has no
 *      exchange any more. What it wanted to be done happens all the same.
 *   3. What was written is answered after its commit. */
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
#define API_PAGE_BYTES     (256 << 10) /* a page of a list takes no more rows behind this */

struct api;
struct api_call;
struct up;

enum api_mode {
    API_INLINE, /* answered at once, on the http thread */
    API_POOL,   /* run in its lane, which may block */
    API_OWN,    /* takes the call, and gives it to api_finish() when it is answered */
};

struct api_route {
    enum http_method method;
    const char *pattern; /* "/v1/machines/{machine}"; what is in braces is a parameter */
    unsigned scope;
    enum api_mode mode;
    void (*run)(struct api_call *call);
    const char *query; /* the keys it takes, with blanks between; NULL: none */
    const char *words; /* what the last parameter may be, as above; NULL: anything */
};

/* A store that is open for reading, and what is complained about it. */
struct api_reader {
    struct api_reader *next;
    struct cli cli;
    struct cli_store store;
    char *text; /* what was complained since it was taken */
    size_t text_size;
    bool is_open;
};

struct api_call {
    struct det_job job;
    /* While the API is paused: what goes on with it then. */
    struct det_list held_node;
    void (*resume)(void *argument);
    void *resume_argument;
    bool is_inside;            /* it may use the machines and the store */
    bool has_begun;            /* it was run */
    struct det_list lane_node; /* while it waits for a thread */
    struct det_list late_node; /* while somebody waits for it */
    det_time late_at;          /* monotonic */
    struct api *api;
    struct http_exchange *exchange; /* NULL: nobody waits for it any more */
    atomic_bool is_left;            /* the same, for other threads */
    const struct api_route *route;
    struct det_arena arena;
    struct url url;
    const char *parameters[API_PARAMETERS_MAX];
    struct det_view body;
    const char *key;                       /* Idempotency-Key; NULL: none */
    const struct det_trace_context *trace; /* of its traceparent; NULL: none */
    const char *peer;
    char who[TOKENS_ID_SIZE + 1]; /* the id of its token, or "unix"; "": nobody needs one */
    struct audit_deed *deed;      /* NULL: it is not one */
    struct api_reader *reader;    /* while it is in its lane */
    /* The answer; a status of 0 is 200. */
    unsigned status;
    const char *type; /* NULL: JSON */
    struct det_json_writer json;
    struct det_json_writer aside; /* a second text on the way, for who needs one */
    void (*deferred)(struct api_call *call);
    void (*then)(struct api_call *call); /* takes it from there, unless it failed; NULL: nobody */
    const char *guessed; /* it was a guess: 401 with this text, after `wait`; NULL: it was none */
    det_time wait;
    size_t decoded; /* bytes of events that it has as structs */
    void *own;      /* of the route */
    unsigned own_number;
};

/* call_life.c */

/* Before the first of them. */
void api_calls_open(struct api *api);
/* The call of a request, with copies of all it needs; NULL: no memory. */
struct api_call *api_call_open(
    struct api *api, struct http_exchange *exchange, const struct api_route *route,
    const char *const *parameters, const struct url *url, struct det_arena *arena_take);
/* Sends what the call has as its answer, and closes it. On the http thread. */
void api_finish(struct api_call *call);
/* Runs `run` in its lane and then finishes it. */
void api_defer(struct api_call *call, void (*run)(struct api_call *call));
/* It becomes a stream: nobody waits for its end, and it does not hold up a pause. */
void api_call_streams(struct api_call *call);

/* api_pause.c: on the http thread, but for the first two. */

/* No call is run that may use the machines or the store, and those on their way are waited for;
 * calls that wait for `up`, and streams, stay. What comes then waits for api_resume(), or is
 * refused if all of it ends. On the loop of `up`, which is turned. */
void api_pause(struct up *up, bool is_end);
/* By the file that `up` has now; `has_new_http`: with a server of its own for new connections. An
 * error: it is still paused. On the loop of `up`, which is turned. */
DET_MUST_CHECK int api_resume(struct up *up, bool has_new_http, struct det_error *reterr);
/* Runs it with the call, now or when it is resumed. */
void api_enter(struct api_call *call, void (*run)(void *argument), void *argument);
/* It only waits from here on: for `up`, or as a stream. */
void api_rest(struct api_call *call);
/* What was inside of the machines and the store, and is not any more. */
void api_leave(struct api *api);
/* Whether the call was held and has not begun: it is not held any more. */
bool api_unhold(struct api_call *call);
/* Those that are held fail: it stops. */
void api_held_end(struct api *api);
/* Servers of before a reload whose last connection has ended; all of them, if `is_end`. */
void api_old_servers_close(struct api *api, bool is_end);
size_t api_connections(const struct api *api);
/* Whether all it does is look. */
bool api_is_read(const struct api_route *route);
/* Makes the answer an error; whatever was written before is forgotten. From whoever has it. */
void api_fail(struct api_call *call, int code, const char *format, ...) DET_PRINTF(3, 4);
/* The same, with what the error knows: state, event, sequences. */
void api_fail_with(struct api_call *call, int code, const struct det_error *error);
/* The status of an error. */
unsigned api_status_of(int code);
/* An error of the reader, which was complained about with this exit code. */
void api_fail_reader(struct api_call *call, int exit_code);

/* client_error.c */

/* Whose errors are shown in full: NULL. */
const struct api *api_error_reader(const struct api_call *call);
/* An error as a member of an object that is open. A text that names the store is replaced by a
 * fixed sentence, and told by `up` instead; `api` NULL: for our own user, who may read it. From any
 * thread. */
void api_error_line(
    const struct api *api, struct det_json_writer *json, int code, const struct det_error *error);
/* Whether a text has the path or the address of the store in it, or words of its server. Either may
 * be NULL. */
bool api_names_store(const char *text, const char *address, const char *url);

/* Values of the query. False: the call has failed. What is not there leaves `ret` as it is. */
bool api_query_number(
    struct api_call *call, const char *key, uint64_t least, uint64_t most, uint64_t *ret);
bool api_query_bool(struct api_call *call, const char *key, bool *ret);
bool api_query_time(struct api_call *call, const char *key, det_time *ret);
/* The id of an instance; NULL: there is none. */
bool api_query_id(struct api_call *call, const char *key, const char **ret);
bool api_query_limit(struct api_call *call, size_t *ret);
const char *api_query(const struct api_call *call, const char *key);
/* Whether a list that is being written ends here for its length, and goes on with the next page. */
bool api_page_is_full(const struct api_call *call);

/* store_readers.c: in a lane. */

/* A reader of this call; false: the call has failed. */
bool api_reader_take(struct api_call *call);
/* The same for who has no call; `ret_code` is the exit code of opening the store, and what was
 * complained is its text. NULL: no memory. */
struct api_reader *api_reader_open(struct api *api, int *ret_code);
void api_reader_give(struct api *api, struct api_reader *reader);
/* The definition of a name; NULL: it has none that can be read. */
const struct det_machine *api_reader_find(struct api_reader *reader, const char *name);
void api_readers_close(struct api *api);
/* Machine and instance by the first two parameters. False: the call has failed. */
bool api_reader_machine(struct api_call *call, const char *name, struct det_machine **ret);
bool api_reader_instance(struct api_call *call, struct instance *ret);

/* api.c, api_server.c */

/* Series of requests that were counted lately. */
#define API_SEEN 256
struct api_seen {
    const char *route, *method;
    unsigned status;
    struct det_series *requests, *duration;
};

/* Which file was read: of certificate, key and those who sign for clients. */
#define API_TLS_FILES 3
struct api_stamp {
    uint64_t device, number;
    int64_t size;
    det_time changed;
};

/* Clients that are told what happens: stream_feed.h. */
struct api_feeds {
    struct det_list list;
    size_t count;
    struct det_timer beat;
    unsigned beats;
    bool is_over; /* it stops: nobody begins any more */
};

/*     serving --pause--> pausing --what was inside has left--> paused --resume--> serving
 *                                                                \--closed */
enum api_state { API_SERVING, API_PAUSING, API_PAUSED };

/* Servers of before a reload, while they have connections. One more, and the first is closed. */
#define API_OLD_SERVERS 8

struct api {
    struct up *up;           /* its loop changes it: others have what they need below */
    struct config_http http; /* as the file was when it was opened, which stays as long */
    struct api_stamp stamps[API_TLS_FILES]; /* of the loop of `up` */
    const struct det_allocator *allocator;
    struct det_world *world;
    struct det_loop *loop; /* runs on a thread of its own */
    struct http_server *server;
    struct http_server *old_servers[API_OLD_SERVERS];
    enum api_state state;
    bool is_ending; /* it is paused for good */
    size_t inside;  /* calls, and jobs of streams, that may use the machines and the store */
    struct det_list held, held_jobs;
    struct det_post quiet_post, resume_post;
    bool is_quiet, is_resumed; /* of the loop of `up` */
    bool has_new_http;
    int resume_result;
    struct det_error resume_error;
    struct api_lane lanes[API_LANE_COUNT];
    struct det_list late_calls; /* that are not answered, the oldest first */
    struct det_timer late;
    bool is_late_set;
    struct det_mutex *lock; /* of the readers */
    struct api_reader *readers;
    const char *address, *url; /* of the store; NULL: there is none */
    const char *shown;         /* for browsers; NULL: it listens nowhere for them */
    char shown_text[160];
    struct guard guard;
    struct det_list guesses; /* answers to wrong tokens that are kept back */
    size_t guess_count;
    struct tokens *tokens; /* those of `up` */
    struct api_events *events;
    struct api_deltas *deltas;
    struct api_feeds feeds;
    struct api_counts *counts;
    struct det_timer rates_timer;
    struct api_seen seen[API_SEEN];
    det_time stock_next;   /* under the lock of the counts */
    size_t calls, streams; /* on their way */
    atomic_size_t decoded; /* bytes of events as structs, of all calls */
    struct det_post post, closed_post;
    struct det_timer patience;
    det_time close_by, write_by;
    atomic_bool is_closed;
    bool has_started;
    bool is_renewing;
    struct det_post renew_post;
    int renew_result;
    struct det_error renew_error;
};

/* Binds the addresses, reads the certificate and the tokens: what a start may be refused for. Call
 * it before anything is served, so that a start that fails has begun no effect. api_open() does
 * what is left of it, as after a reload. */
DET_MUST_CHECK int api_prepare(struct up *up, struct det_error *reterr);

/* A server as the file says, listening. On the http thread, or before there is one. */
DET_MUST_CHECK int api_server_open(
    struct api *api, struct http_server **ret, struct det_error *reterr);
/* What it takes from the file and from the machines, when nobody reads it. */
DET_MUST_CHECK int api_learn(struct api *api, struct det_error *reterr);
/* Sockets of all addresses. On the loop of `up`. */
DET_MUST_CHECK int api_bind(struct up *up, struct det_error *reterr);
/* Listens from now on. Close it in either case. On the loop of `up`, as the others below. */
DET_MUST_CHECK int api_open(struct up *up, struct det_error *reterr);
/* No further request is taken, and what is asked is answered. Turns the loop of `up`. */
void api_close(struct up *up);
/* Reads certificate and key again, for new connections. */
void api_renew(struct up *up);
/* Whether one of their files is another one than that which was read. */
bool api_has_new_files(const struct up *up);
/* After the machines, if these are closed too: their last calls give back what they have. */
void api_free(struct up *up);
/* Tells people where it is. */
void api_say(struct up *up);
/* "http://127.0.0.1:7788", the first address of a browser; NULL: there is none. */
const char *api_address(const struct up *up);
/* Something was committed: who follows the log is to be told. From any thread, also while the API
 * is closed and opened again. */
void api_notice(struct up *up);

/* The functions above, for the daemon. */
extern const struct up_front api_front;

/* event_stream.c */
DET_MUST_CHECK int api_events_open(struct api *api, struct det_error *reterr);
/* Those who follow are told that it is over. On the http thread. */
void api_events_end(struct api *api);
/* After that thread has ended. */
void api_events_close(struct api *api);

/* delta_stream.c; as those of events. Who follows is told by api_events_end(). */
DET_MUST_CHECK int api_deltas_open(struct api *api, struct det_error *reterr);
void api_deltas_close(struct api *api);

/* Ends with a NULL pattern. */
extern const struct api_route api_routes[];

#endif
