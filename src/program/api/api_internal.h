/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api_internal.h - functions shared by the files of the API, and its routes. */
#ifndef DET_API_API_INTERNAL_H
#define DET_API_API_INTERNAL_H

#include "api/api.h"
#include "daemon/loop_request.h"
#include "json/object.h"

/* api.c: callbacks of the server, on the http thread. */
void api_handle(void *context, struct http_exchange *exchange);
unsigned api_admit(void *context, struct http_exchange *exchange, struct http_answer *ret);
void api_count_request(void *context, const struct http_done *done);
/* Refuses a request that has no call, or whose call must not be used. */
void api_refuse(
    struct http_exchange *exchange, unsigned status, const char *code, const char *text);
/* Sends all delayed 401 answers now. */
void api_guesses_end(struct api *api);
/* Answers 401 with this text after `wait`, and takes over the exchange until then. False: too many
 * are delayed already, or there is no memory. */
bool api_keep_back(
    struct api *api, struct http_exchange *exchange, det_time wait, const char *text);

/* api_server.c */
void api_note_address(struct api *api);
/* Records the identities of the loaded TLS files. */
void api_take_stamps(struct api *api);

/* Facts known from the headers of a request: the note of its exchange. */
struct api_note {
    const struct api_route *route; /* NULL: there is none */
    const char *label;             /* in metrics: the pattern, "unknown" or "console" */
    unsigned status;               /* without a route: 404 or 405; 0: a file of the console */
    char who[TOKENS_ID_SIZE + 1];  /* see api_call */
};
_Static_assert(sizeof(struct api_note) <= HTTP_NOTE_SIZE, "a note has its place");

/* audit_requests.c: the audit log. */

/* Returns true if requests for this route are audited. */
bool api_is_audited(const struct api_route *route);
/* Creates the audit entry of a request; NULL: no memory. */
struct audit_action *api_action(struct det_arena *arena, struct http_exchange *exchange);
/* Returns "by token k3v9x2ap": the default reason of a cancel. */
const char *api_actor(struct api_call *call);
/* Writes the entry of an answered call. On the http thread. */
void api_audit(struct api *api, struct audit_action *action, unsigned status);
/* Writes an entry if the request was refused; otherwise does nothing. */
void api_audit_refusal(struct api *api, const struct http_done *done);

/* routes.c */

/* Returns the route for a path as received; NULL: none, and `ret_status` is 404 or 405. */
const struct api_route *api_match(const struct http_request *request, unsigned *ret_status);
/* Returns pointers to the parameters in a matched path, at most API_PARAMETERS_MAX. Each extends to
 * the next slash. */
void api_parameters(const struct api_route *route, const char *path, const char **parameters);
/* Returns "GET"; "other" for an unknown method. */
const char *api_method_name(enum http_method method);
/* Prints the methods of a path: "GET, POST". */
void api_methods(const char *path, char *target, size_t size);
/* Returns true if a path belongs to the API and not to the console. */
bool api_is_ours(const char *path);
/* Returns true if an Idempotency-Key is stored, or the route changes nothing. Other routes refuse a
 * key: its sender would rely on it. */
bool api_takes_key(const struct api_route *route);
/* Returns the first query key that the route does not permit; NULL: none. */
const char *api_unknown_query(const struct api_route *route, const struct url *url);

/* request_body.c */

/* Returns true if a list of words, separated by blanks, contains this one. */
bool api_is_listed(const char *list, struct det_view word);
/* Parses the body as an object. Members must be listed in `keys`, separated by blanks. NULL: the
 * call has failed. */
struct det_json_object *api_body(struct api_call *call, const char *keys);
/* Like api_body() for a nested object; returns 0 or an error. */
DET_MUST_CHECK int api_object(
    struct det_json_object *members, struct det_arena *arena, const struct det_json_value *value,
    const char *keys, struct det_error *reterr);
/* Returns true if every member read so far was valid; otherwise the call has failed. */
bool api_body_is_right(struct api_call *call, const struct det_json_object *members);
/* Returns the raw JSON of an object member; "{}" if missing. False: the call has failed. */
bool api_body_object(
    struct api_call *call, struct det_json_object *members, const char *key, struct det_view *ret);
/* Returns the raw JSON of a payload: the member `payload`, or its deprecated name `data`; "{}" if
 * both are missing. Fails if both are given, or if it is not an object. */
DET_MUST_CHECK int api_payload(
    const struct det_json_object *members, struct det_view *ret, struct det_error *reterr);
/* Reads `expected`, at most 2^63 - 1; 0 means that the instance has no event yet. If missing, `ret`
 * is unchanged; if invalid, `members` notes it. */
void api_read_expected(struct det_json_object *members, uint64_t *ret);
/* Like api_read_expected(). False: the call has failed. */
bool api_body_expected(struct api_call *call, struct det_json_object *members, uint64_t *ret);
/* Reads a text of at most `most` bytes; NULL if missing. False: the call has failed. */
bool api_body_text(
    struct api_call *call, struct det_json_object *members, const char *key, size_t most,
    const char **ret);

/* Functions of routes. machine_routes.c */
typedef void api_run_fn(struct api_call *call);
api_run_fn api_get_machine, api_get_diagram, api_check_definition, api_get_trace,
    api_get_instance_diagram;
enum api_format { API_FORMAT_MERMAID, API_FORMAT_DOT, API_FORMAT_SVG };
/* Reads the query key `format`. False: the call has failed. */
bool api_read_format(struct api_call *call, enum api_format *ret);
/* Answers with a drawing: Mermaid, or DOT, from which SVG is made. In a lane. */
void api_write_drawing(
    struct api_call *call, enum api_format format, const char *text, size_t size);
/* instance_routes.c */
api_run_fn api_get_running_effects, api_get_instance, api_get_why, api_get_lock, api_get_history;
/* list_routes.c */
api_run_fn api_list_instances, api_list_timers, api_list_effects, api_list_locks, api_list_log,
    api_list_jobs, api_list_all_jobs, api_list_definitions, api_list_due;
/* counts.c */
api_run_fn api_get_machines, api_get_store;
/* instance_writes.c, event_batch.c */
api_run_fn api_start, api_send, api_send_all, api_batch, api_cancel, api_retry;
/* daemon_routes.c */
api_run_fn api_get_status, api_get_overview, api_get_tasks, api_get_task, api_get_logs,
    api_get_tree, api_get_slots, api_change_job, api_readyz, api_make_console_link, api_get_served,
    api_get_lines, api_get_task_events;
/* submissions.c */
api_run_fn api_submit, api_submit_alone;
/* long_calls.c */
api_run_fn api_order, api_stop_all, api_drain_all, api_reload, api_order_flow;
/* Runs `run` on the daemon's loop, which writes the answer or fails the call. Then, unless the call
 * failed, runs `then` on the http thread; NULL: finishes the call. */
void api_on_daemon(
    struct api_call *call, void (*run)(struct up *up, struct api_call *call),
    void (*then)(struct api_call *call));
/* daemon_request.c: runs `run` on the daemon's loop with a request; it writes the answer and
 * finishes the request now or later. Then, unless the request failed, runs `then` on the http
 * thread; NULL: finishes the call. `arguments` are in the arena of the call; the daemon may write
 * results to them. */
typedef void api_request_fn(struct up *up, struct up_request *request, void *arguments);
void api_request(
    struct api_call *call, api_request_fn *run, void *arguments,
    void (*then)(struct api_call *call));
/* rates.c */
DET_MUST_CHECK int api_rates_open(struct api *api);
void api_write_rates(struct api_call *call);
api_run_fn api_get_rates;
/* event_stream.c */
api_run_fn api_get_events;
/* daemon_routes.c: fails because the task in the path does not exist. */
void api_fail_task(struct api_call *call);
/* worker_routes.c */
api_run_fn api_list_workers, api_get_worker, api_get_worker_history, api_put_worker,
    api_delete_worker, api_order_worker, api_get_workers_summary;
/* flow_routes.c */
api_run_fn api_list_flows, api_get_flow, api_get_flow_diagram, api_list_flow_facts,
    api_list_flow_rows;
/* flow_stage.c */
api_run_fn api_get_flow_stage;
/* flow_stream.c */
api_run_fn api_get_flow_stream;
/* Values of the query; NULL if missing. False: the call has failed. */
bool api_query_worker(struct api_call *call, const char *key, const char **ret);
bool api_query_kind(struct api_call *call, const char **ret);
/* document_pages.c, delta_stream.c */
api_run_fn api_list_documents, api_get_deltas;
/* host_routes.c */
api_run_fn api_livez, api_metrics, api_openapi, api_redeem, api_get_session, api_sign_out;

/* Served machines, on any thread. The runtime exists if a machine is served; api_find_served()
 * returns NULL if this one is not. */
struct det_runtime *api_runtime(const struct api *api);
const struct det_machine *api_find_served(const struct api *api, const char *name);
/* Returns a served definition. False: the call has failed. */
bool api_served(struct api_call *call, const char *name, const struct det_machine **ret);

#endif
