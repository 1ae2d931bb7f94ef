/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay_mock_test.h - makes the mock relay fail, and shows what it received. All functions are for
 * any thread. */
#ifndef DET_KINDS_RELAY_MOCK_TEST_H
#define DET_KINDS_RELAY_MOCK_TEST_H

#include "base/text.h"
#include "kinds/relay_mock_internal.h"

/* Queues a fault. DET_ERR_LIMIT: 64 are queued. */
DET_MUST_CHECK static inline int relay_mock_fail(
    struct relay_mock *mock, enum relay_mock_call call, const struct relay_mock_fault *fault)
{
    struct relay_mock_faults *faults = &mock->faults[call];
    int r = DET_ERR_LIMIT;

    relay_mock_lock(mock);
    if (faults->count < RELAY_MOCK_FAULTS_MAX) {
        faults->list[(faults->first + faults->count++) % RELAY_MOCK_FAULTS_MAX] = *fault;
        r = 0;
    }
    relay_mock_unlock(mock);
    return r;
}

/* From now on a push with these words in a content is answered with 422; NULL: none is. */
static inline void relay_mock_poison(struct relay_mock *mock, const char *words)
{
    relay_mock_lock(mock);
    mock->poison = words;
    relay_mock_unlock(mock);
}

/* Revokes every token: calls are answered with 401 until a client logs in. */
static inline void relay_mock_expire(struct relay_mock *mock)
{
    relay_mock_lock(mock);
    mock->token = 0;
    relay_mock_unlock(mock);
}

/* Limits the messages per pull; 0: all. */
static inline void relay_mock_set_most(struct relay_mock *mock, uint32_t most)
{
    relay_mock_lock(mock);
    mock->most = most;
    relay_mock_unlock(mock);
}

/* Waits until the count is at least so much: 0, or DET_ERR_TIMEOUT at the monotonic deadline. */
DET_MUST_CHECK static inline int relay_mock_wait(
    struct relay_mock *mock, enum relay_mock_count which, uint64_t at_least, det_time deadline)
{
    int r = 0;

    relay_mock_lock(mock);
    while (r == 0 && mock->counts[which] < at_least)
        r = det_condition_wait(mock->world, mock->changed, mock->mutex, deadline);
    relay_mock_unlock(mock);
    return r;
}

/* Returns a received message by its index, from 0; it lives as long as the mock. NULL: not yet. */
static inline const struct channel_message *relay_mock_pushed(
    struct relay_mock *mock, uint64_t index)
{
    struct det_list *node;

    relay_mock_lock(mock);
    node = mock->pushed.next;
    for (; node != &mock->pushed && index > 0; index--)
        node = node->next;
    relay_mock_unlock(mock);
    return node == &mock->pushed ? NULL : DET_CONTAINER(node, struct channel_message, node);
}

/* The head of the last call of a kind, as it was sent; cut if it is long. */
static inline void relay_mock_head(
    struct relay_mock *mock, enum relay_mock_call call, char *target, size_t capacity)
{
    relay_mock_lock(mock);
    (void)det_text_copy(target, capacity, mock->heads[call]);
    relay_mock_unlock(mock);
}

#endif
