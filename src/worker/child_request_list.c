/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* child_request_list.c - the wishes of one worker, in their order, and found by name: with an index
 * once they are many. Without memory for the index they are searched one after the other.
 *
 * Invariant: with an index, every wish of the list is in it; `same` leads to those of the same name
 * and another origin. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "worker/tree.h"

#define INDEX_FROM 32 /* wishes */

static struct det_wish *wish_of(struct det_list *node)
{
    return DET_CONTAINER(node, struct det_wish, node);
}

void det_wishes_drop_index(struct det_worker *worker)
{
    if (!worker->wishes.index)
        return;
    det_map_deinit(worker->wishes.index);
    DET_DELETE(worker->workers->allocator, worker->wishes.index);
    worker->wishes.index = NULL;
}

static int index_add(struct det_map *index, struct det_wish *wish)
{
    struct det_wish *first = det_map_get(index, wish->key);

    wish->same = NULL;
    if (!first)
        return det_map_put(index, wish);
    wish->same = first->same;
    first->same = wish;
    return 0;
}

static int index_remove(struct det_map *index, struct det_wish *wish)
{
    struct det_wish *first = det_map_get(index, wish->key);

    if (first != wish) {
        while (first && first->same != wish)
            first = first->same;
        if (first)
            first->same = wish->same;
        return 0;
    }
    det_map_remove(index, wish->key);
    return wish->same ? det_map_put(index, wish->same) : 0;
}

static void build_index(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;
    int r = 0;

    worker->wishes.index = DET_NEW(workers->allocator, struct det_map);
    if (!worker->wishes.index)
        return;
    det_map_init(
        worker->wishes.index, workers->allocator, workers->chance, offsetof(struct det_wish, key));
    for (struct det_list *node = worker->wishes.all.next; node != &worker->wishes.all && r == 0;
         node = node->next)
        r = index_add(worker->wishes.index, wish_of(node));
    if (r < 0)
        det_wishes_drop_index(worker);
}

void det_wishes_insert(struct det_worker *worker, struct det_list *place, struct det_wish *wish)
{
    det_assert(wish->name[0] && !wish->same);
    wish->key = wish->name;
    det_list_insert_before(place, &wish->node);
    worker->wishes.count++;
    if (!worker->wishes.index) {
        /* A power of two only, so that a lack of memory does not cost a try each time. */
        if (worker->wishes.count >= INDEX_FROM &&
            (worker->wishes.count & (worker->wishes.count - 1)) == 0)
            build_index(worker);
    } else if (index_add(worker->wishes.index, wish) < 0)
        det_wishes_drop_index(worker);
}

void det_wishes_remove(struct det_worker *worker, struct det_wish *wish)
{
    if (worker->wishes.round_at == &wish->node)
        worker->wishes.round_at = wish->node.next;
    if (worker->wishes.index && index_remove(worker->wishes.index, wish) < 0)
        det_wishes_drop_index(worker);
    wish->same = NULL;
    det_assert(worker->wishes.count > 0);
    worker->wishes.count--;
    det_list_remove(&wish->node);
}

struct det_wish *det_wishes_find(
    const struct det_worker *worker, const char *name, enum det_wish_origin origin)
{
    if (worker->wishes.index) {
        struct det_wish *wish = det_map_get(worker->wishes.index, name);

        while (wish && wish->origin != origin)
            wish = wish->same;
        return wish;
    }
    for (struct det_list *node = worker->wishes.all.next; node != &worker->wishes.all;
         node = node->next) {
        struct det_wish *wish = wish_of(node);

        if (wish->origin == origin && !strcmp(wish->name, name))
            return wish;
    }
    return NULL;
}

bool det_wishes_have(const struct det_worker *worker, const char *name)
{
    return det_wishes_find(worker, name, DET_WISH_KIND) ||
           det_wishes_find(worker, name, DET_WISH_YAML) ||
           det_wishes_find(worker, name, DET_WISH_HAND);
}
