/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api.h - the HTTP API of `detent up` (src/console/openapi.yaml): what its files share.
 *
 *     http thread:  request --guard--> route --> api_call --inline--> answer
 *                                         |         |--pool: reads a store of its own--> answer
 *                                         |         |--runtime: submit ... done -------> answer
 *                                         |         \--loop of `up`: a verb (call.h) --> answer
 *                                         \--> assets of the console
 *
 *     api.c           a request from its headers to its call
 *     api_life.c      opens, listens, closes
 *     api_routes.c    the table, and who may ask for what
 *     api_call.c      one request from its match to its answer
 *     api_reader.c    stores that are open for reading, one for each thread of the pool
 *     api_send.c      start, send, batches, cancel, retry
 *     api_instance.c  an instance: where it stands, its history, why
 *     api_lists.c     instances, timers, effects, the log
 *     api_machines.c  definitions and drawings
 *     api_up.c        what the loop of `up` knows: tasks, groups, slots, jobs, status
 *     api_events.c    what happens, as it happens
 *
 * Invariants
 *   1. An api_call is of the http thread, but while a thread of the pool, the runtime or `up` has
 *      it; each gives it back by a post, exactly once.
 *   2. Whoever went away is not waited for: its call has no exchange any more, and what it asked
 *      for happens all the same.
 *   3. What was written is answered after its commit. */
#ifndef DET_CLI_API_H
#define DET_CLI_API_H

#include <detent/spec.h>
#include <stdatomic.h>

#include "base/text.h"
#include "cli/config.h"
#include "cli/instance.h"
#include "cli/line.h"
#include "console/guard.h"
#include "console/http.h"
#include "console/url.h"
#include "os/pool.h"

#define API_PARAMETERS_MAX 4
#define API_LIMIT          100
#define API_LIMIT_MAX      1000

struct api;
struct api_call;
struct up;

enum api_mode {
    API_INLINE, /* answered at once, on the http thread */
    API_POOL,   /* run on the pool, which may block */
    API_OWN,    /* takes the call, and gives it to api_finish() when it is answered */
};

struct api_route {
    enum http_method method;
    const char *pattern; /* "/v1/machines/{machine}"; what is in braces is a parameter */
    unsigned scope;
    enum api_mode mode;
    void (*run)(struct api_call *call);
    const char *query; /* the keys it takes, with blanks between; NULL: none */
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
    struct api *api;
    struct http_exchange *exchange; /* NULL: who asked went away */
    const struct api_route *route;
    struct det_arena arena;
    struct url url;
    const char *parameters[API_PARAMETERS_MAX];
    struct det_view body;
    const char *key;                       /* Idempotency-Key; NULL: none */
    const struct det_trace_context *trace; /* of its traceparent; NULL: none */
    const char *peer;
    char who[TOKENS_ID_SIZE + 1]; /* the id of its token, or "unix"; "": nobody needs one */
    struct api_reader *reader;    /* while it is on the pool */
    /* The answer; a status of 0 is 200. */
    unsigned status;
    const char *type; /* NULL: JSON */
    struct line line;
    struct line aside; /* a second text on the way, for who needs one */
    void (*deferred)(struct api_call *call);
    const char *guessed; /* it was a guess: 401 with this text, after `wait`; NULL: it was none */
    det_time wait;
    void *own; /* of the route */
    unsigned own_number;
};

/* api_call.c */

/* The call of a request, with copies of all it needs; NULL: no memory. */
struct api_call *api_call_open(
    struct api *api, struct http_exchange *exchange, const struct api_route *route,
    const char *const *parameters, const struct url *url, struct det_arena *arena_take);
/* Sends what the call has as its answer, and closes it. On the http thread. */
void api_finish(struct api_call *call);
/* The same from another thread. */
void api_finish_later(struct api_call *call);
/* Gives the pool a job; while it closes the job is dropped. On the http thread. */
void api_run_job(struct api *api, struct det_job *job);
/* Runs `run` on the pool and then finishes it. */
void api_defer(struct api_call *call, void (*run)(struct api_call *call));
/* Makes the answer an error; whatever was written before is forgotten. From whoever has it. */
void api_fail(struct api_call *call, int code, const char *format, ...) DET_PRINTF(3, 4);
/* The same, with what the error knows: state, event, sequences. */
void api_fail_with(struct api_call *call, int code, const struct det_error *error);
/* The status of an error. */
unsigned api_status_of(int code);
/* An error as a member of an object that is open. */
void api_error_line(struct line *line, int code, const struct det_error *error);
/* An error of the reader, which was complained about with this exit code. */
void api_fail_reader(struct api_call *call, int exit_code);

/* Values of the query. False: the call has failed. What is not there leaves `ret` as it is. */
bool api_query_number(
    struct api_call *call, const char *key, uint64_t least, uint64_t most, uint64_t *ret);
bool api_query_bool(struct api_call *call, const char *key, bool *ret);
bool api_query_time(struct api_call *call, const char *key, det_time *ret);
/* The id of an instance; NULL: there is none. */
bool api_query_id(struct api_call *call, const char *key, const char **ret);
bool api_query_limit(struct api_call *call, size_t *ret);
const char *api_query(const struct api_call *call, const char *key);

/* api_reader.c: on the pool. */

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

/* api.c, api_life.c */

/* Series of requests that were counted lately. */
#define API_SEEN 256
struct api_seen {
    const char *route, *method;
    unsigned status;
    struct det_series *requests, *duration;
};

struct api {
    struct up *up;           /* its loop changes it: others have what they need below */
    struct config_http http; /* as the file was when it was opened, which stays as long */
    const struct det_allocator *allocator;
    struct det_world *world;
    struct det_loop *loop; /* runs on a thread of its own */
    struct http_server *server;
    struct det_pool *pool;  /* NULL: it closes, and nothing is run any more */
    struct det_mutex *lock; /* of the readers */
    struct api_reader *readers;
    const char *address, *url; /* of the store; NULL: there is none */
    const char *shown;         /* for browsers; NULL: it listens nowhere for them */
    char shown_text[160];
    struct guard guard;
    size_t guesses;        /* answers to wrong tokens that are kept back */
    struct tokens *tokens; /* those of `up` */
    struct api_events *events;
    struct api_counts *counts;
    struct det_timer rates_timer;
    struct api_seen seen[API_SEEN];
    det_time stock_next;   /* under the lock of the counts */
    size_t calls, streams; /* on their way */
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

/* Listens from now on. Close it in either case. On the loop of `up`, as the others below. */
DET_MUST_CHECK int api_open(struct up *up, struct det_error *reterr);
/* No further request is taken, and what is asked is answered. Turns the loop of `up`. */
void api_close(struct up *up);
/* Reads certificate and key again, for new connections. */
void api_renew(struct up *up);
/* When nobody can notice anything any more: after the machines. */
void api_free(struct up *up);
/* Tells people where it is. */
void api_say(struct up *up);
/* "http://127.0.0.1:7788", the first address of a browser; NULL: there is none. */
const char *api_address(const struct up *up);
/* Something was committed: who follows the log is to be told. From any thread. */
void api_notice(struct api *api);

/* api_events.c */
DET_MUST_CHECK int api_events_open(struct api *api, struct det_error *reterr);
/* Those who follow are told that it is over. On the http thread. */
void api_events_end(struct api *api);
/* After that thread has ended. */
void api_events_close(struct api *api);
/* How many follow. On the http thread. */
size_t api_events_count(const struct api *api);

/* Ends with a NULL pattern. */
extern const struct api_route api_routes[];

#endif
