/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* incarnation.c - what lives as long as one life of a worker: its dependencies, its lock, what it
 * provides for those below. It is closed, on the crew, when neither the worker nor a run of it has
 * it any more; one that a run has which was given up is closed when that comes back, or never. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "worker/tree.h"

static char *copy(char **place, const char *text)
{
    size_t size = strlen(text) + 1;
    char *at = *place;

    memcpy(at, text, size);
    *place += size;
    return at;
}

int det_body_new(struct det_worker *worker, struct det_body **ret)
{
    struct det_workers *workers = worker->workers;
    const struct det_worker_identity *identity = &worker->identity;
    size_t head = det_aligned(sizeof(struct det_body)), deps = det_aligned(worker->kind->deps_size);
    size_t size = head + deps + strlen(identity->id) + strlen(identity->path) +
                  strlen(identity->name) + strlen(identity->kind) + 4;
    struct det_body *body = det_alloc_zero(workers->allocator, size);
    char *place;
    int r;

    det_assert(!worker->body);
    if (!body)
        return DET_ERR_NO_MEMORY;
    r = det_mutex_open(workers->world, &body->mutex);
    if (r < 0) {
        det_free(workers->allocator, body, size);
        return r;
    }
    body->workers = workers;
    body->kind = worker->kind;
    body->size = size;
    body->holders = 1;
    det_list_init(&body->provided);
    body->deps = (char *)body + head;
    place = (char *)body->deps + deps;
    body->identity.id = copy(&place, identity->id);
    body->identity.path = copy(&place, identity->path);
    body->identity.name = copy(&place, identity->name);
    body->identity.kind = copy(&place, identity->kind);
    if (worker->parent && worker->parent->body) {
        body->parent = worker->parent->body;
        det_body_hold(body->parent);
    }
    workers->outstanding.bodies++;
    *ret = body;
    return 0;
}

void det_body_hold(struct det_body *body)
{
    /* When nobody holds it any more, only the run of its close() does. */
    det_assert(body->holders > 0 || !body->is_open);
    body->holders++;
}

static void free_body(struct det_body *body)
{
    struct det_workers *workers = body->workers;
    struct det_list *node;

    det_assert(!body->holders && !body->is_open && !body->closing);
    det_assert(workers->outstanding.bodies > 0);
    while ((node = det_list_take(&body->provided)))
        DET_DELETE(workers->allocator, DET_CONTAINER(node, struct det_offer, node));
    det_mutex_close(workers->world, body->mutex);
    det_free(workers->allocator, body, body->size);
    workers->outstanding.bodies--;
}

/* Without memory for a run, or when what was given up comes back at the very end, it is closed
 * right here: rather a loop that waits than dependencies that are never closed. */
static void close_it(struct det_body *body)
{
    struct det_run *run;

    body->is_open = false;
    if (!body->kind->close)
        return;
    if (!body->workers->actors || det_run_new_close(body, &run) < 0) {
        body->kind->close(body->deps);
        return;
    }
    det_run_start(run, DET_NEVER);
}

/* Whether nobody holds it any more, and it is closed. */
static bool let_go(struct det_body *body)
{
    det_assert(body->holders > 0);
    if (--body->holders)
        return false;
    if (body->is_open)
        close_it(body);
    return !body->holders;
}

void det_body_drop(struct det_body *body)
{
    while (body && let_go(body)) {
        struct det_body *parent = body->parent;
        struct det_worker *worker = body->closing;

        body->closing = NULL;
        free_body(body);
        if (worker)
            det_life_closed(worker);
        body = parent;
    }
}
