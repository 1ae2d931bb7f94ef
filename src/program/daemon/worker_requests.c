/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_requests.c - changes of workers, which wait for the store.
 *
 *     request (loop) --> change --pool--> the supervisor, the store --loop--> answer
 *
 * A change has copies of all its input in its arena: the request may be gone when the pool runs
 * it. */
#include "daemon/worker_requests.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "daemon/daemon.h"
#include "daemon/workers_internal.h"
#include "worker/spec.h"

struct change {
    struct det_job job;
    struct up_workers *workers;
    struct up_request *request; /* NULL: the client has disconnected */
    struct det_arena arena;     /* of the texts */
    void (*run)(struct change *change);
    const char *kind; /* of the answer */
    const char *id, *parent;
    bool is_order;
    enum det_worker_order order;
    struct det_child_spec spec;
    int result;
    struct det_error error;
};

static void run_change(void *argument)
{
    struct change *change = argument;

    change->run(change);
}

static void free_change(struct change *change)
{
    const struct det_allocator *allocator = change->arena.allocator;

    det_arena_deinit(&change->arena);
    DET_DELETE(allocator, change);
}

static void answer_change(struct change *change)
{
    struct det_json_writer *json = change->request->json;

    det_json_open(json, NULL, '{');
    det_json_text(json, "kind", change->kind);
    det_json_text(json, "id", change->id);
    if (change->is_order)
        det_json_text(json, "order", up_worker_order_name(change->order));
    det_json_close(json, '}');
    up_request_end(change->request);
}

static void end_change(void *argument)
{
    struct change *change = argument;

    det_assert(change->workers->jobs > 0);
    change->workers->jobs--;
    if (!change->request)
        ;
    else if (change->job.is_dropped)
        up_request_fail(change->request, DET_ERR_CLOSED, CLI_SHUTDOWN);
    else if (change->result < 0)
        up_request_fail(
            change->request, change->result, "%s",
            change->error.text[0] ? change->error.text : det_error_text(change->result));
    else
        answer_change(change);
    free_change(change);
}

static void on_gone(void *user)
{
    struct change *change = user;

    change->request = NULL;
}

/* NULL: the request has failed. */
static struct change *open_change(
    struct up *up, struct up_request *request, const char *kind, void (*run)(struct change *change))
{
    struct up_workers *workers = up_workers_asked(up, request);
    struct change *change;

    if (!workers)
        return NULL;
    change = DET_NEW(up_allocator(up), struct change);
    if (!change) {
        up_request_fail_memory(request);
        return NULL;
    }
    det_arena_init(&change->arena, up_allocator(up));
    change->workers = workers;
    change->request = request;
    change->kind = kind;
    change->run = run;
    change->job = (struct det_job){
        .run = run_change, .done = end_change, .argument = change, .loop = up_loop(up)
    };
    return change;
}

static void submit_change(struct change *change)
{
    det_assert(change->workers->pool && change->run);
    up_request_keep(change->request, on_gone, change);
    change->workers->jobs++;
    det_pool_submit(change->workers->pool, &change->job);
}

static void submit_or_fail(struct change *change, int r)
{
    if (r == 0) {
        submit_change(change);
        return;
    }
    det_assert(r < 0);
    up_request_fail(change->request, r, "%s", change->error.text);
    free_change(change);
}

static int fail_memory(struct change *change)
{
    return det_error_set(&change->error, DET_ERR_NO_MEMORY, "out of memory");
}

/* Changes an existing worker. */
static void submit_for(struct change *change, const char *id)
{
    char found[DET_WORKER_PATH_MAX + 1];

    if (!up_workers_find(change->workers, change->request, id, found)) {
        free_change(change);
        return;
    }
    change->id = det_arena_copy(&change->arena, found);
    submit_or_fail(change, change->id ? 0 : fail_memory(change));
}

/* Creating and deleting. */

static void run_put(struct change *change)
{
    change->result = det_workers_upsert(
        change->workers->supervisor, change->parent, &change->spec, &change->error);
}

static void run_delete(struct change *change)
{
    change->result = det_workers_delete(change->workers->supervisor, change->id, &change->error);
}

/* Copies a text; NULL stays NULL. */
static bool copy_text(struct change *change, const char *text, const char **ret)
{
    *ret = text ? det_arena_copy(&change->arena, text) : NULL;
    return !text || *ret;
}

static int read_states(struct change *change, const struct up_worker_put *put)
{
    const struct det_worker_kind *kind;
    struct det_worker_status status;
    const struct det_spec_child child = {
        .name = change->spec.name,
        .run_in = put->run_in,
        .run_in_count = (uint32_t)put->run_in_count,
    };

    if (!put->run_in_count)
        return 0;
    if (det_workers_get(change->workers->supervisor, change->parent, NULL, &status, NULL, NULL) < 0)
        return det_error_set(
            &change->error, DET_ERR_NOT_FOUND, "there is no worker '%.200s'", change->parent);
    kind = up_workers_kind(change->workers, status.kind);
    return kind ? det_spec_run_in(&child, kind, &change->spec.run_in, &change->error) : 0;
}

/* "plant/press/valve" is valve below plant/press. */
static int read_place(struct change *change, const char *id)
{
    char whole[DET_WORKER_PATH_MAX + 1];
    char *slash;

    (void)up_workers_resolve(change->workers, id, whole);
    slash = strrchr(whole, '/');
    if (!slash || !slash[1])
        return det_error_set(
            &change->error, DET_ERR_INVALID, "'%.200s' is not the id of a child worker", id);
    change->id = det_arena_copy(&change->arena, whole);
    *slash = '\0';
    change->parent = det_arena_copy(&change->arena, whole);
    change->spec.name = change->id ? strrchr(change->id, '/') + 1 : NULL;
    return change->id && change->parent ? 0 : fail_memory(change);
}

static int find_kind(struct change *change)
{
    const struct up_workers *workers = change->workers;
    const char **names = det_arena_array(&change->arena, workers->kind_count + 1, sizeof *names);
    int nearest;

    if (up_workers_kind(workers, change->spec.kind))
        return 0;
    if (!names)
        return fail_memory(change);
    for (size_t i = 0; i < workers->kind_count; i++)
        names[i] = workers->kinds[i]->name;
    nearest = det_text_nearest(change->spec.kind, names, workers->kind_count);
    return det_error_set(
        &change->error, DET_ERR_NOT_FOUND, "there is no kind of worker '%.64s'%s%s%s",
        change->spec.kind, nearest < 0 ? "" : "; did you mean '", nearest < 0 ? "" : names[nearest],
        nearest < 0 ? "" : "'?");
}

static int read_put(struct change *change, const struct up_worker_put *put)
{
    int r = read_place(change, put->id);

    if (r == 0 && (!copy_text(change, put->kind, &change->spec.kind) ||
                   !copy_text(change, put->config, &change->spec.config) ||
                   !copy_text(change, put->variables, &change->spec.variables) ||
                   !copy_text(change, put->location, &change->spec.location)))
        r = fail_memory(change);
    change->spec.is_disabled = put->is_disabled;
    if (r == 0)
        r = find_kind(change);
    return r == 0 ? read_states(change, put) : r;
}

void up_put_worker(struct up *up, struct up_request *request, const struct up_worker_put *put)
{
    struct change *change = open_change(up, request, "worker_put", run_put);

    if (change)
        submit_or_fail(change, read_put(change, put));
}

void up_delete_worker(struct up *up, struct up_request *request, const char *id)
{
    struct change *change = open_change(up, request, "worker_deleted", run_delete);

    if (change)
        submit_for(change, id);
}

/* Orders to workers. */

const char *up_worker_order_name(enum det_worker_order order)
{
    switch (order) {
    case DET_WORKER_ORDER_RESTART:
        return "restart";
    case DET_WORKER_ORDER_DISABLE:
        return "disable";
    case DET_WORKER_ORDER_ENABLE:
        return "enable";
    }
    return "";
}

static void run_order(struct change *change)
{
    change->result =
        det_workers_order(change->workers->supervisor, change->id, change->order, &change->error);
}

void up_order_worker(
    struct up *up, struct up_request *request, const char *id, enum det_worker_order order)
{
    struct change *change = open_change(up, request, "worker_order", run_order);

    if (!change)
        return;
    change->is_order = true;
    change->order = order;
    submit_for(change, id);
}
