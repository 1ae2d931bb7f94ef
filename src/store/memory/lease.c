/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lease.c - named leases and locks of instances in the memory store: equal, but kept in two places.
 * store/lease.h has the rules. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/contract.h"
#include "store/lease.h"
#include "store/memory/memory.h"

static size_t lease_size(const char *name)
{
    return sizeof(struct memory_lease) + (name ? strlen(name) + 1 : 0);
}

static struct memory_lease *lease_open(struct memory_store *store, const char *name)
{
    struct memory_lease *lease = det_alloc_zero(store->store.allocator, lease_size(name));

    if (!lease || !name)
        return lease;
    memcpy((char *)lease + sizeof *lease, name, strlen(name) + 1);
    lease->name = (char *)lease + sizeof *lease;
    return lease;
}

void det_memory_lease_close(struct memory_store *store, struct memory_lease *lease)
{
    det_free(store->store.allocator, lease, lease_size(lease->name));
}

int det_memory_lock_check(
    struct memory_store *store, const struct memory_instance *instance, uint64_t fence)
{
    const struct memory_lease *lock = atomic_load_explicit(&instance->lock, memory_order_acquire);
    bool is_held = lock && atomic_load(&lock->expires_at) > det_memory_now(&store->store);

    if (fence)
        return is_held && atomic_load(&lock->token) == fence ? 0 : DET_ERR_LOCK_LOST;
    return is_held ? DET_ERR_LOCKED : 0;
}

/* Commits read the token and the end without a lock: a new grant writes the token before the
 * end. */
static int change_and_report(
    struct memory_lease *lease, const struct det_store_lease_change *change, det_time now,
    struct det_store_lease *ret)
{
    int r;

    ret->token = atomic_load(&lease->token);
    ret->expires_at = atomic_load(&lease->expires_at);
    memcpy(ret->owner, lease->owner, sizeof ret->owner);
    r = det_lease_change(ret, change, now);
    if (r == 0) {
        /* A grant has a number of its own: a holder of an older one is refused. */
        det_assert(ret->token >= atomic_load(&lease->token));
        det_assert(change->verb != DET_LEASE_ACQUIRE || ret->token > atomic_load(&lease->token));
        atomic_store(&lease->token, ret->token);
        memcpy(lease->owner, ret->owner, sizeof lease->owner);
        atomic_store(&lease->expires_at, ret->expires_at);
    }
    if (ret->expires_at <= now)
        ret->owner[0] = 0;
    return r;
}

/* A lease without a grant is not stored; only granting it creates it. */
static int lease_locked(
    struct memory_store *store, const struct det_store_lease_change *change,
    struct det_store_lease *ret)
{
    struct memory_lease *lease = det_map_get(&store->leases, change->name);
    det_time now = det_memory_now(&store->store);
    int r;

    if (lease)
        return change_and_report(lease, change, now, ret);
    if (change->verb != DET_LEASE_ACQUIRE)
        return change->verb == DET_LEASE_READ ? 0 : DET_ERR_LOCK_LOST;
    lease = lease_open(store, change->name);
    if (!lease)
        return DET_ERR_NO_MEMORY;
    r = det_map_put(&store->leases, lease);
    if (r < 0) {
        det_memory_lease_close(store, lease);
        return r;
    }
    return change_and_report(lease, change, now, ret);
}

int det_memory_lease(
    struct det_store *store, const struct det_store_lease_change *change,
    struct det_store_lease *ret)
{
    struct memory_store *memory = memory_store_of(store);
    int r;

    det_contract_lease(change, ret);
    if (!det_lease_is_valid(change))
        return DET_ERR_INVALID;
    *ret = (struct det_store_lease){ 0 };
    det_mutex_lock(store->world, memory->mutex);
    r = lease_locked(memory, change, ret);
    det_mutex_unlock(store->world, memory->mutex);
    return r;
}

static int lock_locked(
    struct memory_store *store, struct memory_instance *instance,
    const struct det_store_lease_change *change, struct det_store_lease *ret)
{
    struct memory_lease *lock = atomic_load(&instance->lock);

    if (!lock && change->verb != DET_LEASE_ACQUIRE)
        return change->verb == DET_LEASE_READ ? 0 : DET_ERR_LOCK_LOST;
    if (!lock) {
        lock = lease_open(store, NULL);
        if (!lock)
            return DET_ERR_NO_MEMORY;
        atomic_store(&instance->lock, lock);
    }
    return change_and_report(lock, change, det_memory_now(&store->store), ret);
}

int det_memory_lock(
    struct det_store *store, const struct det_machine *machine,
    const struct det_store_lease_change *change, struct det_store_lease *ret)
{
    struct memory_store *memory = memory_store_of(store);
    struct memory_instance *instance = det_memory_find(memory, machine, change->name);
    int r;

    det_contract_lease(change, ret);
    if (!instance)
        return DET_ERR_NOT_FOUND;
    if (!det_lease_is_valid(change))
        return DET_ERR_INVALID;
    *ret = (struct det_store_lease){ 0 };
    det_mutex_lock(store->world, memory->mutex);
    r = lock_locked(memory, instance, change, ret);
    ret->sequence = atomic_load_explicit(&instance->listed_sequence, memory_order_relaxed);
    det_mutex_unlock(store->world, memory->mutex);
    return r;
}
