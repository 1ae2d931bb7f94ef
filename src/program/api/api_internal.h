/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api_internal.h - the routes of the API, and what the files of its handlers share. */
#ifndef DET_API_API_INTERNAL_H
#define DET_API_API_INTERNAL_H

#include "api/api.h"
#include "json/object.h"

/* api.c: what the server calls, on the http thread. */
void api_handle(void *context, struct http_exchange *exchange);
unsigned api_admit(void *context, struct http_exchange *exchange, struct http_answer *ret);
void api_count_request(void *context, const struct http_done *done);
/* The answer of what is not a call, or not any more. */
void api_refuse(
    struct http_exchange *exchange, unsigned status, const char *code, const char *text);
/* All of those that are kept back are answered now: nobody waits for who guesses. */
void api_guesses_end(struct api *api);
/* Answers 401 with this text after a while, instead of who keeps the exchange. False: too many wait
 * for theirs, or there is no memory. */
bool api_keep_back(
    struct api *api, struct http_exchange *exchange, det_time wait, const char *text);

/* api_server.c */
void api_note_address(struct api *api);
/* Which files of TLS are the ones that were read. */
void api_take_stamps(struct api *api);

/* What is known of a request since its headers have come: the note of its exchange. */
struct api_note {
    const struct api_route *route; /* NULL: there is none */
    const char *label;             /* in metrics: the pattern of the route, or what it is instead */
    unsigned status;               /* without a route: why; 0: it is for the console's files */
    char who[TOKENS_ID_SIZE + 1];  /* see api_call */
};
_Static_assert(sizeof(struct api_note) <= HTTP_NOTE_SIZE, "a note has its place");

/* audit_requests.c: who did what, for the log of `up`. */

/* Whether it is told of who asks for this. */
bool api_is_audited(const struct api_route *route);
/* Who asks for it, from where; NULL: no memory. */
struct audit_deed *api_deed(struct det_arena *arena, struct http_exchange *exchange);
/* "by token k3v9x2ap": the reason of who gives none, which is kept with what was done. */
const char *api_actor(struct api_call *call);
/* It was answered. On the http thread. */
void api_audit(struct api *api, struct audit_deed *deed, unsigned status);
/* The same of one that was refused, or of any other, which is not told of. */
void api_audit_refusal(struct api *api, const struct http_done *done);

/* routes.c */

/* The route of a request, by its path as it came. NULL: there is none; `ret_status` is then 404 or
 * 405. */
const struct api_route *api_match(const struct http_request *request, unsigned *ret_status);
/* The parameters of a path that the route has matched, of which there are at most
 * API_PARAMETERS_MAX: each is where it begins in the path. */
void api_parameters(const struct api_route *route, const char *path, const char **parameters);
/* "GET"; "other" of one that is none of ours. */
const char *api_method_name(enum http_method method);
/* The methods that a path takes: "GET, POST". */
void api_methods(const char *path, char *target, size_t size);
/* Whether a path is one of the API, and not of the console. */
bool api_is_ours(const char *path);
/* Whether an Idempotency-Key is kept, or nothing is changed anyway. Where it could not be kept it
 * is refused: who sends one relies on it. */
bool api_takes_key(const struct api_route *route);
/* The first key of the query that the route does not take; NULL: it takes all. */
const char *api_unknown_query(const struct api_route *route, const struct url *url);

/* request_body.c: the body of a request as an object. */

/* Whether a list, with blanks between its words, has it. */
bool api_is_listed(const char *list, struct det_view word);
/* Its members, of which only those of `keys`, with blanks between them, may be there. NULL: the
 * call has failed. */
struct det_json_object *api_body(struct api_call *call, const char *keys);
/* The same for an object within it: 0 or an error. */
DET_MUST_CHECK int api_object(
    struct det_json_object *members, struct det_arena *arena, const struct det_json_value *value,
    const char *keys, struct det_error *reterr);
/* Whether all that was read from it was right; else the call has failed. */
bool api_body_is_right(struct api_call *call, const struct det_json_object *members);
/* The raw JSON of a member that is an object; NULL: there is none. */
bool api_body_object(
    struct api_call *call, struct det_json_object *members, const char *key, struct det_view *ret);
/* The raw JSON of an event's payload: the member `payload`, or `data`, its deprecated name; "{}" if
 * there is neither. An error: both are there, or it is no object. */
DET_MUST_CHECK int api_payload(
    const struct det_json_object *members, struct det_view *ret, struct det_error *reterr);
/* The sequence that a send depends on, at most 2^63 - 1; 0 in the body: no event yet. Not there:
 * `ret` stays. What is wrong is noted in `members`. */
void api_read_expected(struct det_json_object *members, uint64_t *ret);
/* The same; false: the call has failed. */
bool api_body_expected(struct api_call *call, struct det_json_object *members, uint64_t *ret);
/* A text of at most `most` bytes; NULL: there is none. */
bool api_body_text(
    struct api_call *call, struct det_json_object *members, const char *key, size_t most,
    const char **ret);

/* machine_routes.c, ..: run by the route. */
typedef void api_run_fn(struct api_call *call);
api_run_fn api_get_machine, api_get_diagram, api_check_definition, api_get_trace,
    api_get_instance_diagram;
/* instance_routes.c */
api_run_fn api_get_running_effects, api_get_instance, api_get_why, api_get_lock, api_get_history;
/* list_routes.c */
api_run_fn api_list_instances, api_list_timers, api_list_effects, api_list_locks, api_list_log,
    api_list_jobs;
/* counts.c */
api_run_fn api_get_machines, api_get_store;
/* instance_writes.c, batch.c */
api_run_fn api_start, api_send, api_send_all, api_batch, api_cancel, api_retry;
/* daemon_routes.c */
api_run_fn api_get_status, api_get_overview, api_get_tasks, api_get_task, api_get_logs,
    api_get_tree, api_get_slots, api_change_job, api_readyz, api_make_console_link, api_get_served,
    api_get_lines, api_get_task_events, api_get_workers_summary;
/* long_calls.c */
api_run_fn api_order, api_submit, api_submit_alone, api_stop_all, api_drain_all, api_reload;
/* Runs `run` on the loop of `up`, which writes the answer of the call or fails it; then `then` on
 * the http thread, unless it failed; NULL: it is finished. */
void api_on_daemon(
    struct api_call *call, void (*run)(struct up *up, struct api_call *call),
    void (*then)(struct api_call *call));
/* Asks `up` by one of its verbs, and gives the parts of its answer to `answer`, on the http thread,
 * which writes the answer of the call. `arguments` NULL: for want of memory. */
void api_ask(
    struct api_call *call, const char *verb, json_t *arguments_take,
    void (*answer)(struct api_call *call, json_t *parts));
/* The same, but `take` has the call from then on, and finishes it or asks further. */
void api_ask_further(
    struct api_call *call, const char *verb, json_t *arguments_take,
    void (*take)(struct api_call *call, json_t *parts));
void api_put_json(struct api_call *call, const char *key, json_t *value);
/* rates.c */
DET_MUST_CHECK int api_rates_open(struct api *api);
void api_write_rates(struct api_call *call);
api_run_fn api_get_rates;
/* event_stream.c */
api_run_fn api_get_events;
/* log_stream.c: what a verb of `up` sends, as events of this name. */
void api_follow(struct api_call *call, const char *verb, json_t *arguments_take, const char *event);
/* worker_routes.c */
api_run_fn api_list_workers, api_get_worker, api_get_worker_history, api_put_worker,
    api_delete_worker, api_order_worker;
/* Values of the query, NULL: there is none. False: the call has failed. */
bool api_query_worker(struct api_call *call, const char *key, const char **ret);
bool api_query_kind(struct api_call *call, const char **ret);
/* document_pages.c, delta_stream.c */
api_run_fn api_list_documents, api_get_deltas;
/* host_routes.c */
api_run_fn api_livez, api_metrics, api_openapi, api_redeem, api_sign_out;

/* The machines that `up` serves, from any thread: its runtime, which is there if there is one; the
 * definition of a name, NULL if it is not served. */
struct det_runtime *api_runtime(const struct api *api);
const struct det_machine *api_find_served(const struct api *api, const char *name);
size_t api_served_count(const struct api *api);
/* The definition that is served; false: the call has failed. */
bool api_served(struct api_call *call, const char *name, const struct det_machine **ret);

#endif
