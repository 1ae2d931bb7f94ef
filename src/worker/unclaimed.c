/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* unclaimed.c - documents of workers of earlier runs that are no longer requested. Identities in
 * the store are kept by parent at the start; a new worker claims its own. When a parent knows all
 * of its children, the unclaimed ones below it are dropped with their subtrees. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "worker/worker_tree.h"

/* The unclaimed children of one parent. */
struct unclaimed {
    const char *key; /* id of the parent */
    struct det_list list;
    char parent[];
};

static const char *id_of(const struct det_known *known)
{
    return strchr(known->key, '\n') + 1;
}

static struct unclaimed *open_group(struct det_workers *workers, const char *id, size_t size)
{
    struct unclaimed *group = det_alloc_zero(workers->allocator, sizeof *group + size + 1);

    if (!group)
        return NULL;
    memcpy(group->parent, id, size);
    group->key = group->parent;
    det_list_init(&group->list);
    if (det_map_put(&workers->earlier.unclaimed, group) == 0)
        return group;
    det_free(workers->allocator, group, sizeof *group + size + 1);
    return NULL;
}

static void close_group(struct det_workers *workers, struct unclaimed *group)
{
    det_assert(det_list_is_empty(&group->list));
    det_map_remove(&workers->earlier.unclaimed, group->key);
    det_free(workers->allocator, group, sizeof *group + strlen(group->parent) + 1);
}

int det_unclaimed_add(struct det_workers *workers, struct det_known *known)
{
    const char *id = id_of(known), *slash = strrchr(id, '/');
    char parent[DET_WORKER_PATH_MAX + 1];
    struct unclaimed *group;
    size_t size;

    if (!slash || (size_t)(slash - id) >= sizeof parent)
        return 0;
    size = (size_t)(slash - id);
    memcpy(parent, id, size);
    parent[size] = '\0';
    group = det_map_get(&workers->earlier.unclaimed, parent);
    if (!group)
        group = open_group(workers, parent, size);
    if (!group)
        return DET_ERR_NO_MEMORY;
    det_list_remove(&known->node);
    det_list_append(&group->list, &known->node);
    return 0;
}

bool det_unclaimed_below(const struct det_worker *worker)
{
    return det_map_get(&worker->workers->earlier.unclaimed, worker->identity.id) != NULL;
}

/* True if the parent has a request for this worker: one that could not be fulfilled, because its
 * kind is missing or workers_max is reached, may be fulfilled in the next run. */
static bool is_wished(const struct det_worker *parent, const struct det_known *known)
{
    const char *name = strrchr(id_of(known), '/') + 1;
    size_t kind_size = (size_t)(strchr(known->key, '\n') - known->key);

    for (enum det_child_request_origin i = DET_REQUEST_KIND; i <= DET_REQUEST_MANUAL; i++) {
        const struct det_child_request *request = det_child_requests_find(parent, name, i);

        if (request && strlen(request->kind) == kind_size &&
            !memcmp(request->kind, known->key, kind_size))
            return true;
    }
    return false;
}

/* Moves the group, and the groups of its members without a worker, into `list`. */
static void gather(struct det_workers *workers, const char *parent, struct det_list *list)
{
    struct unclaimed *group = det_map_get(&workers->earlier.unclaimed, parent);
    struct det_list *node;

    if (!group)
        return;
    while ((node = det_list_take(&group->list)))
        det_list_append(list, node);
    close_group(workers, group);
}

static void drop_all(struct det_workers *workers, struct det_list *list)
{
    struct det_list *node;

    while ((node = det_list_take(list))) {
        struct det_known *known = DET_CONTAINER(node, struct det_known, node);

        /* A worker decides about its own children. */
        if (!det_map_get(&workers->map, id_of(known)))
            gather(workers, id_of(known), list);
        det_record_drop_known(workers, known);
    }
}

void det_unclaimed_drop(struct det_worker *parent)
{
    struct det_list all, unwanted, *node;

    det_list_init(&all);
    det_list_init(&unwanted);
    parent->children.has_unclaimed = false;
    gather(parent->workers, parent->identity.id, &all);
    while ((node = det_list_take(&all)))
        if (parent->leaving.is_forgotten ||
            !is_wished(parent, DET_CONTAINER(node, struct det_known, node)))
            det_list_append(&unwanted, node);
    drop_all(parent->workers, &unwanted);
}

void det_unclaimed_free(struct det_workers *workers)
{
    struct unclaimed *group;
    size_t cursor = 0;

    while ((group = det_map_next(&workers->earlier.unclaimed, &cursor)))
        det_free(workers->allocator, group, sizeof *group + strlen(group->parent) + 1);
    det_map_deinit(&workers->earlier.unclaimed);
}
