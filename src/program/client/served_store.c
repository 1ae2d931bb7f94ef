/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* served_store.c - finds the process that serves a store, and sends it requests. */
#include "client/served_store.h"

#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "client/served_internal.h"

/* For the next part of an answer, which waits for the disk of the daemon. */
#define PATIENCE (60 * DET_SECOND)
/* For the answer of /v1/served, which needs no disk. */
#define PATIENCE_SERVED (10 * DET_SECOND)

/* Requests. */

static struct served_store *served_of(struct det_store *store)
{
    return (struct served_store *)(void *)store;
}

void served_begin(struct served_call *call, struct det_store *store)
{
    struct served_store *served = served_of(store);

    det_assert(served->client_count <= SERVED_CLIENTS);
    *call = (struct served_call){ .store = served };
    det_buffer_init(&call->path, store->allocator);
    if (served->client_count)
        call->client = served->clients[--served->client_count];
}

/* Errors of the data have the messages of a store. */
static bool is_about_data(int r)
{
    return r == DET_ERR_NOT_FOUND || r == DET_ERR_CORRUPT || r == DET_ERR_VERSION ||
           r == DET_ERR_NO_MEMORY;
}

int served_end(struct served_call *call, int r)
{
    struct served_store *served = call->store;

    det_assert(served->client_count <= SERVED_CLIENTS);
    det_buffer_deinit(&call->path);
    if (r >= 0 && call->client && served->client_count < SERVED_CLIENTS)
        served->clients[served->client_count++] = call->client;
    else
        daemon_client_close(call->client);
    if (is_about_data(r))
        served->error.code = 0;
    return r;
}

int served_invalid(struct det_store *store)
{
    struct served_store *served = (struct served_store *)store;

    return daemon_client_fail_invalid(&served->error);
}

void served_machine_path(
    struct served_call *call, const struct det_machine *machine, const char *rest)
{
    det_buffer_append_text(&call->path, "/v1/machines/");
    daemon_path_add(&call->path, machine->name);
    det_buffer_append_text(&call->path, rest);
}

void served_instance_path(
    struct served_call *call, const struct det_machine *machine, const char *id, const char *rest)
{
    served_machine_path(call, machine, "/instances/");
    daemon_path_add(&call->path, id);
    det_buffer_append_text(&call->path, rest);
}

void served_query(struct served_call *call, const char *key, const char *value)
{
    if (!value)
        return;
    /* The path comes before the query. */
    det_assert(call->path.size > 0 || det_buffer_status(&call->path) < 0);
    det_buffer_format(&call->path, "%c%s=", call->has_query ? '&' : '?', key);
    daemon_path_add(&call->path, value);
    call->has_query = true;
}

void served_query_bool(struct served_call *call, const char *key, bool value)
{
    served_query(call, key, value ? "true" : NULL);
}

void served_query_number(struct served_call *call, const char *key, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    served_query(call, key, text);
}

void served_query_time(struct served_call *call, const char *key, det_time value)
{
    char text[DET_TIME_TEXT];

    if (!value)
        return;
    det_format_time(value, text, sizeof text);
    served_query(call, key, text);
}

int served_ask(struct served_call *call)
{
    struct served_store *served = call->store;
    int r = 0;

    det_assert(det_buffer_status(&call->path) < 0 || det_buffer_text(&call->path)[0] == '/');
    served->error = (struct det_error){ 0 };
    if (!call->client)
        r = daemon_client_open(
            served->project, served->store.allocator, &call->client, &served->error);
    /* It was there when the store was opened. */
    if (r == DET_ERR_NOT_FOUND)
        r = det_error_set(
            &served->error, DET_ERR_CLOSED, "the running detent has exited during the read");
    if (r == 0)
        r = daemon_client_ask(
            call->client, "GET", daemon_path_text(&call->path), NULL, NULL, &served->error);
    return r;
}

int served_next(struct served_call *call, const struct det_json_value **ret)
{
    det_time patience = call->store->now ? PATIENCE : PATIENCE_SERVED;
    det_time deadline = det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) + patience;

    return daemon_client_next(call->client, deadline, ret, &call->store->error);
}

int served_get(struct served_call *call, const struct det_json_value **ret)
{
    int r = served_ask(call);

    if (r == 0)
        r = served_next(call, ret);
    if (r == 0)
        r = det_error_set(&call->store->error, DET_ERR_IO, "an answer is empty");
    return r < 0 ? r : 0;
}

/* The store. */

static void close_store(struct det_store *store)
{
    struct served_store *served = served_of(store);

    while (served->client_count)
        daemon_client_close(served->clients[--served->client_count]);
    DET_DELETE(store->allocator, served);
}

static det_time now(struct det_store *store)
{
    const struct served_store *served = served_of(store);

    return served->now + det_world_now(store->world, DET_CLOCK_MONOTONIC) - served->read_at;
}

/* The process that serves the store has compared it with its own definition. */
static int serve(
    struct det_store *store, const struct det_machine *machine, struct det_error *reterr)
{
    (void)store;
    (void)machine;
    (void)reterr;
    return 0;
}

static int nodes(struct det_store *store, uint64_t *ret)
{
    (void)store;
    *ret = 1;
    return 0;
}

static int commit(struct det_store *store, struct det_store_commit *const *commits, size_t count)
{
    (void)store;
    (void)commits;
    (void)count;
    return DET_ERR_READ_ONLY;
}

static const struct det_store_ops served_ops = {
    .has_free_events = true,
    .close = close_store,
    .now = now,
    .serve = serve,
    .commit = commit,
    .load = served_load,
    .release = served_release,
    .events = served_events,
    .list = served_list,
    .due = served_due,
    .nodes = nodes,
    .lock = served_lock,
    .start = served_start,
    .machines = served_machines,
    .jobs = &served_jobs,
    .documents = &served_documents,
};

/* Finding the process. */

/* True if the process has the store of this address open. */
static bool is_same(const struct cli_store *store, const struct det_json_value *served)
{
    const char *url = det_json_get_text(served, "url"), *file = det_json_get_text(served, "file");
    char path[DET_PATH_MAX];
    struct stat own, other;

    if (!cli_store_file(store->address, path))
        return url && !file && strcmp(url, store->url) == 0;
    return file && stat(path, &own) == 0 && stat(file, &other) == 0 && own.st_dev == other.st_dev &&
           own.st_ino == other.st_ino;
}

/* Returns the identity of the store of machines, jobs or workers; NULL: none. */
static const char *identity_of(const struct det_json_value *served)
{
    const char *identity = det_json_get_text(served, "store");

    if (!identity)
        identity = det_json_get_text(served, "jobs");
    return identity ? identity : det_json_get_text(served, "workers");
}

static bool take_served(
    struct cli_store *store, struct served_store *served, const struct det_json_value *answer)
{
    const char *identity = identity_of(answer), *needed = store->request.served_for;

    served->now = det_json_get_time(answer, "now");
    served->read_at = det_world_now(served->store.world, DET_CLOCK_MONOTONIC);
    return identity && (!needed || det_json_get_text(answer, needed)) && is_same(store, answer) &&
           det_text_copy(served->store.identity, sizeof served->store.identity, identity);
}

static bool find_served(struct cli_store *store, struct served_store *served)
{
    const struct det_json_value *answer = NULL;
    struct served_call call;
    bool is_found;

    if (socket_find(".", served->project, &served->error) < 0 ||
        daemon_client_open(
            served->project, store->cli->allocator, &served->clients[0], &served->error) < 0)
        return false;
    served->client_count = 1;
    served_begin(&call, &served->store);
    det_buffer_append_text(&call.path, "/v1/served");
    is_found = served_get(&call, &answer) == 0 && take_served(store, served, answer);
    (void)served_end(&call, is_found ? 0 : DET_ERR_NOT_FOUND);
    return is_found;
}

/* The `open_served` of a request. Returns false if no process serves the store; then the caller
 * opens the store itself. */
static bool find_process(struct cli_store *store)
{
    struct served_store *served = DET_NEW(store->cli->allocator, struct served_store);

    if (!served)
        return false;
    served->store = (struct det_store){ .ops = &served_ops,
                                        .world = det_world_or_real(store->cli->world),
                                        .allocator = store->cli->allocator };
    if (!find_served(store, served)) {
        close_store(&served->store);
        return false;
    }
    store->store = &served->store;
    store->served_error = &served->error;
    return true;
}

int served_store_open(struct cli *cli, const struct store_request *request, struct cli_store *store)
{
    struct store_request served = *request;

    served.open_served = find_process;
    return cli_store_open(cli, &served, store);
}

int served_store_connect(
    struct cli_store *store, struct daemon_client **ret, struct det_error *reterr)
{
    det_assert(store->is_served);
    return daemon_client_open(served_of(store->store)->project, store->cli->allocator, ret, reterr);
}
