/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* list.h - intrusive doubly linked circular lists: a head is a node that belongs to no object. */
#ifndef DET_BASE_LIST_H
#define DET_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/assert.h"

struct det_list {
    struct det_list *next, *previous;
};

#define DET_CONTAINER(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* Initializes a head or a node that is in no list. */
static inline void det_list_init(struct det_list *list)
{
    list->next = list->previous = list;
}

static inline bool det_list_is_empty(const struct det_list *list)
{
    return list->next == list;
}

/* Asserts that the neighbours point to the node: detects an object that was freed while in a list,
 * and a node that was never initialized. */
static inline void assert_list(const struct det_list *list)
{
    det_check(list->next->previous == list && list->previous->next == list);
    (void)list;
}

/* Asserts that the node is in no list. */
static inline void det_list_insert_before(struct det_list *place, struct det_list *node)
{
    assert_list(place);
    node->previous = place->previous;
    node->next = place;
    place->previous->next = node;
    place->previous = node;
}

/* Appends a node at the end of the list. */
static inline void det_list_append(struct det_list *head, struct det_list *node)
{
    det_list_insert_before(head, node);
}

static inline void det_list_prepend(struct det_list *head, struct det_list *node)
{
    det_list_insert_before(head->next, node);
}

/* Removes a node from its list; no effect if it is in none. */
static inline void det_list_remove(struct det_list *node)
{
    assert_list(node);
    node->previous->next = node->next;
    node->next->previous = node->previous;
    det_list_init(node);
}

/* Removes and returns the first node; NULL if the list is empty. */
static inline struct det_list *det_list_take(struct det_list *head)
{
    struct det_list *node = head->next;

    if (node == head)
        return NULL;
    det_list_remove(node);
    return node;
}

#define DET_LIST_EACH(node, head) \
    for (struct det_list *node = (head)->next; node != (head); node = node->next)

#endif
