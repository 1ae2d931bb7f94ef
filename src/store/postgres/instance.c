/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance.c - the handle of an instance: the state needed by its next commit. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "store/postgres/postgres.h"

struct postgres_instance *det_postgres_instance_open(
    struct postgres_store *store, const struct det_machine *machine, const char *id)
{
    struct postgres_instance *instance;

    instance = DET_NEW(store->store.allocator, struct postgres_instance);
    if (!instance)
        return NULL;
    instance->machine = machine;
    det_assert(det_text_copy(instance->id, sizeof instance->id, id));
    return instance;
}

int det_postgres_instance_reserve(
    struct postgres_store *store, struct postgres_instance *instance, size_t data_size,
    bool has_reason)
{
    const struct det_allocator *allocator = store->store.allocator;
    char *data;

    if (has_reason && !instance->reason_room) {
        instance->reason_room = det_alloc_zero(allocator, DET_REASON_MAX + 1);
        if (!instance->reason_room)
            return DET_ERR_NO_MEMORY;
    }
    if (data_size <= instance->data_capacity && instance->data)
        return 0;
    data = det_realloc(allocator, instance->data, instance->data_capacity, data_size + 1);
    if (!data)
        return DET_ERR_NO_MEMORY;
    instance->data = data;
    instance->data_capacity = data_size + 1;
    return 0;
}

void det_postgres_instance_keep(
    struct postgres_instance *instance, struct det_chain_bytes data, const char *reason)
{
    if (data.data != instance->data) {
        det_assert(data.size <= instance->data_capacity);
        memcpy(instance->data, data.data, data.size);
        instance->data_size = data.size;
    }
    if (reason) {
        det_assert(det_text_copy(instance->reason_room, DET_REASON_MAX + 1, reason));
        instance->reason = instance->reason_room;
    }
}

void det_postgres_instance_close(struct postgres_store *store, struct postgres_instance *instance)
{
    const struct det_allocator *allocator = store->store.allocator;

    if (!instance)
        return;
    if (instance->data)
        det_free(allocator, instance->data, instance->data_capacity);
    if (instance->reason_room)
        det_free(allocator, instance->reason_room, DET_REASON_MAX + 1);
    DET_DELETE(allocator, instance);
}
