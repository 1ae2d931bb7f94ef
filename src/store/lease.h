/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lease.h - the rules of leases and locks, for the drivers that keep them as plain values. */
#ifndef DET_STORE_LEASE_H
#define DET_STORE_LEASE_H

#include <detent/driver/store.h>

/* Whether what is asked for makes sense, whatever there is. */
bool det_lease_is_valid(const struct det_store_lease_change *change);
/* Makes of a lease what it is afterwards; refused, DET_ERR_LOCKED or DET_ERR_LOCK_LOST, it stays as
 * it is. `expires_at` is 0 for one that was released or never granted. */
int det_lease_change(
    struct det_store_lease *lease, const struct det_store_lease_change *change, det_time now);

#endif
