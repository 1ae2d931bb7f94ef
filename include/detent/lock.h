/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lock.h - exclusive access to an instance: several sends and reads without events of others in
 * between.
 *
 *     DET_SCOPED(lock) lock = NULL;
 *
 *     r = det_lock_open(runtime, &order_machine, "order-42", NULL, &lock, &error);
 *     if (r == 0)
 *         r = det_lock_send(lock, &pay, NULL, &sent);
 *
 * A lock is a lease: a heartbeat renews it, and it lapses, by the clock of the store, when its
 * holder is gone. Each grant has a number, the fence, one higher than the last; the store checks
 * the fence inside every commit. A holder that was stopped for too long can therefore no longer
 * write:
 *
 *     grant 7 ---- A sends --- A is stopped ................ A sends: LOCK_LOST
 *                                     grant 8 ---- B sends
 *
 * While a lock is held, other sends to the instance wait up to the `wait` of their own lock
 * options, then fail with DET_ERR_LOCKED (with the holder and the end of the lock). A failed send
 * does not undo earlier ones; det_runtime_send_all() sends all or nothing. A lock belongs to its
 * handle, not to a thread or a process: opening it a second time waits. */
#ifndef DETENT_LOCK_H
#define DETENT_LOCK_H

#include <detent/runtime.h>

DET_BEGIN

struct det_lock;

/* What happens when the lock is lost. */
enum det_lock_lost {
    DET_LOCK_LOST_FAIL_FAST, /* later sends and reads under the lock fail with DET_ERR_LOCK_LOST */
    DET_LOCK_LOST_CONTINUE,  /* `lost` is called once; sends continue without a lock */
};

struct det_lock_options {
    det_time span;           /* 0: 30 s */
    det_time wait;           /* longest wait for other holders; 0: 10 s; DET_NEVER: no limit; -1: do
                              * not wait */
    det_time retry;          /* interval of attempts, unless notified earlier; 0: 100 ms */
    det_time renewal;        /* interval of heartbeats; 0: a third of the span */
    uint32_t jitter_percent; /* random variation of the renewal in both directions; 0: 10;
                              * UINT32_MAX: none */
    enum det_lock_lost on_lost;
    void (*lost)(void *user); /* called on the runtime's loop, with FAIL_FAST too; may be NULL */
    void *user;
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* must be zero */
};
/* Predefined options: 30 s and 10 s; 10 s and 5 s; 5 minutes and 30 s. */
DET_API extern const struct det_lock_options det_lock_default, det_lock_fast, det_lock_long_running;

/* `options` NULL: the default. DET_ERR_LOCKED (error.holder, error.until): not free in time;
 * DET_ERR_NOT_FOUND: no such instance. */
DET_API int det_lock_open(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    const struct det_lock_options *options, struct det_lock **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Releases the lock. */
DET_API void det_lock_close(struct det_lock *lock);
DET_SCOPED_CLOSE(lock)

/* Like det_runtime_send(), det_runtime_send_all() and det_runtime_get(), under the lock. */
DET_API int det_lock_send(
    struct det_lock *lock, const void *event, const struct det_send_options *options,
    struct det_sent *ret, struct det_error *reterr) DET_MUST_CHECK;
DET_API int det_lock_send_all(
    struct det_lock *lock, const void *const *events, size_t count,
    const struct det_send_options *options, struct det_sent *ret,
    struct det_error *reterr) DET_MUST_CHECK;
DET_API int det_lock_get(
    struct det_lock *lock, struct det_instance *ret, void *ret_data,
    struct det_error *reterr) DET_MUST_CHECK;
/* The number of the grant. */
DET_API uint64_t det_lock_fence(const struct det_lock *lock);
/* False once the lock is lost or may be lost: the holder stops some time before others can acquire
 * it. */
DET_API bool det_lock_is_held(struct det_lock *lock);

/* A lease by name with its own heartbeat, to elect one leader among processes. */
struct det_lease;

struct det_lease_options {
    det_time span;    /* 0: 30 s */
    det_time renewal; /* interval of heartbeats and of attempts to acquire; 0: a third of the
                       * span */
    /* Name shown to others, at most 47 bytes; a random suffix makes it unique. NULL: the identity
     * of this opening of the store. */
    const char *owner;
    /* Called on the runtime's loop whenever the lease is acquired or lost. */
    void (*changed)(void *user, bool is_held, uint64_t fence);
    void *user;
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* must be zero */
};
/* Tries to acquire the lease until it is closed. Does not wait. */
DET_API int det_lease_open(
    struct det_runtime *runtime, const char *name, const struct det_lease_options *options,
    struct det_lease **ret, struct det_error *reterr) DET_MUST_CHECK;
/* Releases the lease, so that others need not wait until it lapses. */
DET_API void det_lease_close(struct det_lease *lease);
DET_SCOPED_CLOSE(lease)
/* True only while no other holder is possible, by the local clock. `ret_fence` may be NULL. */
DET_API bool det_lease_is_held(struct det_lease *lease, uint64_t *ret_fence);

DET_END
#endif
