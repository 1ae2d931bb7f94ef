/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lease.h - the rules of leases and locks, for drivers that keep them as plain values. */
#ifndef DET_STORE_LEASE_H
#define DET_STORE_LEASE_H

#include <detent/driver/store.h>

/* Validates a change, independent of the lease. */
bool det_lease_is_valid(const struct det_store_lease_change *change);
/* Applies a change to a lease. If it is refused (DET_ERR_LOCKED, DET_ERR_LOCK_LOST), the lease is
 * unchanged. `expires_at` is 0 for a lease that was released or never granted. */
int det_lease_change(
    struct det_store_lease *lease, const struct det_store_lease_change *change, det_time now);

#endif
