/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* served_internal.h - shared by the files of served_store.h. */
#ifndef DET_CLIENT_SERVED_INTERNAL_H
#define DET_CLIENT_SERVED_INTERNAL_H

#include <detent/driver/store.h>

#include "client/daemon_client.h"
#include "os/os.h"

/* Maximum number of idle connections: the visit of an operation may call another one. */
#define SERVED_CLIENTS 4
/* Result of a visit that needs no more rows. */
#define SERVED_ENOUGH 1000
#define SERVED_PAGE   1000

struct served_store {
    struct det_store store; /* first */
    char project[DET_PATH_MAX];
    struct daemon_client *clients[SERVED_CLIENTS]; /* idle */
    size_t client_count;
    det_time now, read_at; /* the store's clock; the monotonic time when it was read */
    struct det_error error;
};

/* A running request. */
struct served_call {
    struct served_store *store;
    struct daemon_client *client;
    struct det_buffer path;
    bool has_query;
};

/* Begins a request: add the parts of its path, then "?key=value" by pairs, with "after" last. It
 * must end with served_end(), which returns `r` and keeps its error. */
void served_begin(struct served_call *call, struct det_store *store);
int served_end(struct served_call *call, int r);
/* Fails since a value of the answer is not valid: DET_ERR_IO. */
int served_invalid(struct det_store *store);
/* Adds "/v1/machines/", the name and `rest`. */
void served_machine_path(
    struct served_call *call, const struct det_machine *machine, const char *rest);
/* Adds the path of an instance. */
void served_instance_path(
    struct served_call *call, const struct det_machine *machine, const char *id, const char *rest);
void served_query(struct served_call *call, const char *key, const char *value); /* NULL: none */
void served_query_bool(struct served_call *call, const char *key, bool value);   /* false: none */
void served_query_number(struct served_call *call, const char *key, uint64_t value);
void served_query_time(struct served_call *call, const char *key, det_time value); /* 0: none */
/* served_ask() sends the request. served_next() reads the next value of the answer: 1; 0: there is
 * none; or an error. */
DET_MUST_CHECK int served_ask(struct served_call *call);
DET_MUST_CHECK int served_next(struct served_call *call, const struct det_json_value **ret);
/* Sends the request and reads the only value of the answer: 0 or an error. */
DET_MUST_CHECK int served_get(struct served_call *call, const struct det_json_value **ret);

/* served_instance.c */
int served_load(
    struct det_store *store, const struct det_machine *machine, const char *id,
    const struct det_store_rows *rows, struct det_store_loaded *ret);
void served_release(struct det_store *store, struct det_store_instance *instance);
int served_events(
    struct det_store *store, struct det_store_instance *instance, uint64_t after,
    int (*visit)(void *context, const struct det_store_event *row), void *context);
int served_start(
    struct det_store *store, struct det_store_instance *instance, struct det_store_start *ret);
int served_lock(
    struct det_store *store, const struct det_machine *machine,
    const struct det_store_lease_change *change, struct det_store_lease *ret);

/* served_lists.c */
int served_machines(
    struct det_store *store,
    int (*visit)(void *context, const char *name, uint32_t version, const char *spec),
    void *context);
int served_list(
    struct det_store *store, const struct det_machine *machine, const struct det_store_query *query,
    int (*visit)(void *context, const struct det_store_listed *row), void *context);
int served_due(
    struct det_store *store, const struct det_machine *machine,
    const struct det_store_due_query *query,
    int (*visit)(void *context, const struct det_store_due *row), void *context,
    det_time *ret_next);
extern const struct det_job_ops served_jobs;
extern const struct det_document_ops served_documents;

#endif
