/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* incarnation.c - the resources of one life of a worker: its dependencies, its lock, the things it
 * provides to its subtree. It is closed, on the thread pool, when neither the worker nor a run
 * holds it; if an abandoned run holds it, it is closed when that returns, or never. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "worker/worker_tree.h"

static char *copy(char **place, const char *text)
{
    size_t size = strlen(text) + 1;
    char *at = *place;

    memcpy(at, text, size);
    *place += size;
    return at;
}

int det_incarnation_new(struct det_worker *worker, struct det_incarnation **ret)
{
    struct det_workers *workers = worker->workers;
    const struct det_worker_identity *identity = &worker->identity;
    size_t head = det_aligned(sizeof(struct det_incarnation)),
           deps = det_aligned(worker->kind->deps_size);
    size_t size = head + deps + strlen(identity->id) + strlen(identity->path) +
                  strlen(identity->name) + strlen(identity->kind) + 4;
    struct det_incarnation *incarnation = det_alloc_zero(workers->allocator, size);
    char *place;
    int r;

    det_assert(!worker->incarnation);
    if (!incarnation)
        return DET_ERR_NO_MEMORY;
    r = det_mutex_open(workers->world, &incarnation->mutex);
    if (r < 0) {
        det_free(workers->allocator, incarnation, size);
        return r;
    }
    incarnation->workers = workers;
    incarnation->kind = worker->kind;
    incarnation->size = size;
    incarnation->holders = 1;
    det_list_init(&incarnation->provided);
    incarnation->deps = (char *)incarnation + head;
    place = (char *)incarnation->deps + deps;
    incarnation->identity.id = copy(&place, identity->id);
    incarnation->identity.path = copy(&place, identity->path);
    incarnation->identity.name = copy(&place, identity->name);
    incarnation->identity.kind = copy(&place, identity->kind);
    det_assert(place == (char *)incarnation + size);
    det_assert(!worker->parent || worker->parent->workers == workers);
    if (worker->parent && worker->parent->incarnation) {
        incarnation->parent = worker->parent->incarnation;
        det_incarnation_hold(incarnation->parent);
    }
    workers->outstanding.incarnations++;
    *ret = incarnation;
    return 0;
}

void det_incarnation_hold(struct det_incarnation *incarnation)
{
    /* Without holders, only the run of close() may hold it. */
    det_assert(incarnation->holders > 0 || !incarnation->is_open);
    incarnation->holders++;
}

static void free_incarnation(struct det_incarnation *incarnation)
{
    struct det_workers *workers = incarnation->workers;
    struct det_list *node;

    det_assert(!incarnation->holders && !incarnation->is_open && !incarnation->closing);
    det_assert(workers->outstanding.incarnations > 0);
    while ((node = det_list_take(&incarnation->provided)))
        DET_DELETE(workers->allocator, DET_CONTAINER(node, struct det_offer, node));
    det_mutex_close(workers->world, incarnation->mutex);
    det_free(workers->allocator, incarnation, incarnation->size);
    workers->outstanding.incarnations--;
}

/* Without memory for a run, or when an abandoned run returns after the threads are closed, close()
 * runs on the loop: a waiting loop is better than dependencies that are never closed. */
static void close_it(struct det_incarnation *incarnation)
{
    struct det_run *run;

    incarnation->is_open = false;
    if (!incarnation->kind->close)
        return;
    if (!incarnation->workers->actors || det_run_new_close(incarnation, &run) < 0) {
        incarnation->kind->close(incarnation->deps);
        return;
    }
    det_run_start(run, DET_NEVER);
}

/* True if it has no holders left and is closed. */
static bool let_go(struct det_incarnation *incarnation)
{
    det_assert(incarnation->holders > 0);
    if (--incarnation->holders)
        return false;
    if (incarnation->is_open)
        close_it(incarnation);
    return !incarnation->holders;
}

void det_incarnation_drop(struct det_incarnation *incarnation)
{
    while (incarnation && let_go(incarnation)) {
        struct det_incarnation *parent = incarnation->parent;
        struct det_worker *worker = incarnation->closing;

        incarnation->closing = NULL;
        free_incarnation(incarnation);
        if (worker)
            det_life_closed(worker);
        incarnation = parent;
    }
}
