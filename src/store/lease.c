/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lease.c - applies a change to a lease.
 *
 *              acquire: token + 1                 renew with the token
 *     free ----------------------> held until ... -------------------> held until later
 *       ^                           |      |
 *       |                           |      | its end has come: free for the next to acquire
 *       +---- release with token ---+------+ */
#include "store/lease.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/text.h"

bool det_lease_is_valid(const struct det_store_lease_change *change)
{
    size_t length;

    det_assert(change->name && (change->owner || change->verb != DET_LEASE_ACQUIRE));
    length = strlen(change->name);
    if (!length || length > DET_ID_MAX)
        return false;
    if (change->verb != DET_LEASE_ACQUIRE && change->verb != DET_LEASE_RENEW)
        return true;
    return change->span > 0 &&
           (change->verb == DET_LEASE_RENEW || strlen(change->owner) <= DET_OWNER_MAX);
}

int det_lease_change(
    struct det_store_lease *lease, const struct det_store_lease_change *change, det_time now)
{
    bool is_held = lease->expires_at > now;

    det_assert(lease->token || !lease->expires_at);
    switch (change->verb) {
    case DET_LEASE_READ:
        return 0;
    case DET_LEASE_ACQUIRE:
        if (is_held)
            return DET_ERR_LOCKED;
        lease->token++;
        (void)det_text_copy(lease->owner, sizeof lease->owner, change->owner);
        lease->expires_at = det_add_time(now, change->span);
        return 0;
    case DET_LEASE_RENEW:
        if (!is_held || lease->token != change->token)
            return DET_ERR_LOCK_LOST;
        lease->expires_at = det_add_time(now, change->span);
        return 0;
    case DET_LEASE_RELEASE:
        /* Lapsed or not: there was no grant since. */
        if (!lease->expires_at || lease->token != change->token)
            return DET_ERR_LOCK_LOST;
        lease->expires_at = 0;
        return 0;
    }
    return DET_ERR_INVALID;
}
