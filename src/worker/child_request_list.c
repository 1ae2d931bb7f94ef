/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* child_request_list.c - the requests of one worker, in order, and found by name: with an index
 * once there are many. Without memory for the index, the search is linear.
 *
 * Invariant: with an index, every request of the list is in it; `same` links those of the same
 * name and another origin. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "worker/worker_tree.h"

#define INDEX_FROM 32 /* number of requests from which there is an index */

static struct det_child_request *request_of(struct det_list *node)
{
    return DET_CONTAINER(node, struct det_child_request, node);
}

void det_child_requests_drop_index(struct det_worker *worker)
{
    if (!worker->requests.index)
        return;
    det_map_deinit(worker->requests.index);
    DET_DELETE(worker->workers->allocator, worker->requests.index);
    worker->requests.index = NULL;
}

static int index_add(struct det_map *index, struct det_child_request *request)
{
    struct det_child_request *first = det_map_get(index, request->key);

    request->same = NULL;
    if (!first)
        return det_map_put(index, request);
    request->same = first->same;
    first->same = request;
    return 0;
}

static int index_remove(struct det_map *index, struct det_child_request *request)
{
    struct det_child_request *first = det_map_get(index, request->key);

    if (first != request) {
        while (first && first->same != request)
            first = first->same;
        if (first)
            first->same = request->same;
        return 0;
    }
    det_map_remove(index, request->key);
    return request->same ? det_map_put(index, request->same) : 0;
}

static void build_index(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;
    int r = 0;

    worker->requests.index = DET_NEW(workers->allocator, struct det_map);
    if (!worker->requests.index)
        return;
    det_map_init(
        worker->requests.index, workers->allocator, workers->chance,
        offsetof(struct det_child_request, key));
    for (struct det_list *node = worker->requests.all.next; node != &worker->requests.all && r == 0;
         node = node->next)
        r = index_add(worker->requests.index, request_of(node));
    if (r < 0)
        det_child_requests_drop_index(worker);
}

void det_child_requests_insert(
    struct det_worker *worker, struct det_list *place, struct det_child_request *request)
{
    det_assert(request->name[0] && !request->same);
    request->key = request->name;
    det_list_insert_before(place, &request->node);
    worker->requests.count++;
    det_assert(!det_list_is_empty(&worker->requests.all));
    if (!worker->requests.index) {
        /* Powers of two only, so that a lack of memory does not cause an attempt each time. */
        if (worker->requests.count >= INDEX_FROM &&
            (worker->requests.count & (worker->requests.count - 1)) == 0)
            build_index(worker);
    } else if (index_add(worker->requests.index, request) < 0)
        det_child_requests_drop_index(worker);
}

void det_child_requests_remove(struct det_worker *worker, struct det_child_request *request)
{
    if (worker->requests.round_at == &request->node)
        worker->requests.round_at = request->node.next;
    if (worker->requests.index && index_remove(worker->requests.index, request) < 0)
        det_child_requests_drop_index(worker);
    request->same = NULL;
    det_assert(worker->requests.count > 0);
    worker->requests.count--;
    det_list_remove(&request->node);
    det_assert(!worker->requests.count == det_list_is_empty(&worker->requests.all));
}

struct det_child_request *det_child_requests_find(
    const struct det_worker *worker, const char *name, enum det_child_request_origin origin)
{
    if (worker->requests.index) {
        struct det_child_request *request = det_map_get(worker->requests.index, name);

        while (request && request->origin != origin)
            request = request->same;
        return request;
    }
    for (struct det_list *node = worker->requests.all.next; node != &worker->requests.all;
         node = node->next) {
        struct det_child_request *request = request_of(node);

        if (request->origin == origin && !strcmp(request->name, name))
            return request;
    }
    return NULL;
}

bool det_child_requests_have(const struct det_worker *worker, const char *name)
{
    return det_child_requests_find(worker, name, DET_REQUEST_KIND) ||
           det_child_requests_find(worker, name, DET_REQUEST_YAML) ||
           det_child_requests_find(worker, name, DET_REQUEST_MANUAL);
}
