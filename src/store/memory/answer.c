/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* answer.c - the remembered event ids of an instance in the memory store: a list in the order of
 * arrival, and a map. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "store/memory/memory.h"

const struct memory_answer *det_memory_answer_find(
    const struct memory_instance *instance, const char *event_id)
{
    return instance->more ? det_map_get(&instance->more->answer_of, event_id) : NULL;
}

/* The list and the map have the same ones: the oldest is first. */
static void assert_answers(const struct memory_more *more)
{
    det_assert(det_list_is_empty(&more->answers) == (more->answer_of.count == 0));
    if (DET_CHECKS && more->answer_of.count) {
        const struct memory_answer *oldest =
            DET_CONTAINER(more->answers.next, struct memory_answer, node);

        det_assert(det_map_get(&more->answer_of, oldest->id) == oldest);
    }
}

int det_memory_answer_reserve(
    struct memory_store *store, struct memory_more *more, struct memory_answer **ret)
{
    int r;

    *ret = NULL;
    if (more->answer_of.count == store->event_ids_kept)
        return 0;
    r = det_map_reserve(&more->answer_of);
    if (r < 0)
        return r;
    *ret = DET_NEW(store->store.allocator, struct memory_answer);
    if (!*ret)
        return DET_ERR_NO_MEMORY;
    det_list_init(&(*ret)->node);
    return 0;
}

static struct memory_answer *take_oldest(struct memory_more *more)
{
    struct det_list *node = det_list_take(&more->answers);
    struct memory_answer *oldest = DET_CONTAINER(node, struct memory_answer, node);
    const void *removed;

    det_assert(node);
    removed = det_map_remove(&more->answer_of, oldest->id);
    det_assert(removed == oldest);
    assert_answers(more);
    return oldest;
}

void det_memory_answer_put(
    struct memory_more *more, struct memory_answer *made, const struct det_store_commit *commit)
{
    struct memory_answer *answer = made ? made : take_oldest(more);
    int r;

    memcpy(answer->text, commit->event_id, strlen(commit->event_id) + 1);
    answer->id = answer->text;
    answer->answer = commit->answer;
    if (!answer->answer.request)
        answer->answer.event = UINT16_MAX;
    answer->at =
        commit->event_count ? commit->events[commit->event_count - 1].at : commit->head->started_at;
    det_list_append(&more->answers, &answer->node);
    r = det_map_put(&more->answer_of, answer);
    det_assert(r == 0);
    assert_answers(more);
}

void det_memory_answer_forget(struct memory_store *store, struct memory_more *more, det_time before)
{
    while (!det_list_is_empty(&more->answers) &&
           DET_CONTAINER(more->answers.next, struct memory_answer, node)->at < before)
        det_memory_answer_close(store, take_oldest(more));
}

void det_memory_answer_close(struct memory_store *store, struct memory_answer *answer)
{
    if (answer)
        DET_DELETE(store->store.allocator, answer);
}

void det_memory_answer_close_all(struct memory_store *store, struct memory_more *more)
{
    struct det_list *node;

    while ((node = det_list_take(&more->answers)))
        det_memory_answer_close(store, DET_CONTAINER(node, struct memory_answer, node));
    det_map_deinit(&more->answer_of);
}
