/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* audit.c - a ring of deeds between those who see them and the one who writes them down. */
#include "daemon/audit.h"

#include "base/memory.h"
#include "os/os.h"

#define RING             128
#define REFUSALS_AT_ONCE 20
#define REFUSAL_EVERY    DET_SECOND

struct audit {
    struct audit_options options;
    struct det_mutex *mutex; /* over what follows */
    struct audit_deed deeds[RING];
    size_t first, count;
    uint64_t not_told;
    det_time paid; /* monotonic: until when refusals are paid for */
    bool is_woken;
};

const char *audit_outcome_name(enum audit_outcome outcome)
{
    static const char *const names[] = { "done", "failed", "refused", "unknown", "trouble" };

    return names[outcome];
}

int audit_open(const struct audit_options *options, struct audit **ret)
{
    struct audit *audit = DET_NEW(options->allocator, struct audit);
    int r;

    if (!audit)
        return DET_ERR_NO_MEMORY;
    audit->options = *options;
    audit->options.world = det_world_or_real(options->world);
    r = det_mutex_open(audit->options.world, &audit->mutex);
    if (r < 0)
        DET_DELETE(options->allocator, audit);
    else
        *ret = audit;
    return r;
}

void audit_close(struct audit *audit)
{
    if (!audit)
        return;
    audit_tell(audit);
    det_mutex_close(audit->options.world, audit->mutex);
    DET_DELETE(audit->options.allocator, audit);
}

static bool is_too_much(struct audit *audit, const struct audit_deed *deed)
{
    det_time now, paid;

    if (audit->count == RING)
        return true;
    if (deed->outcome != AUDIT_REFUSED)
        return false;
    now = det_world_now(audit->options.world, DET_CLOCK_MONOTONIC);
    paid = (audit->paid > now ? audit->paid : now) + REFUSAL_EVERY;
    if (paid - now > REFUSALS_AT_ONCE * REFUSAL_EVERY)
        return true;
    audit->paid = paid;
    return false;
}

static void put(struct audit *audit, const struct audit_deed *deed)
{
    struct audit_deed *place = &audit->deeds[(audit->first + audit->count++) % RING];

    *place = *deed;
    place->not_told = audit->not_told;
    audit->not_told = 0;
}

void audit_add(struct audit *audit, const struct audit_deed *deed)
{
    bool shall_wake = false;

    if (!audit)
        return;
    det_mutex_lock(audit->options.world, audit->mutex);
    if (is_too_much(audit, deed)) {
        audit->not_told++;
    } else {
        put(audit, deed);
        shall_wake = !audit->is_woken;
        audit->is_woken = true;
    }
    det_mutex_unlock(audit->options.world, audit->mutex);
    if (shall_wake)
        audit->options.wake(audit->options.user);
}

static bool take(struct audit *audit, struct audit_deed *ret)
{
    bool is_there;

    det_mutex_lock(audit->options.world, audit->mutex);
    is_there = audit->count > 0;
    if (is_there) {
        *ret = audit->deeds[audit->first];
        audit->first = (audit->first + 1) % RING;
        audit->count--;
    }
    audit->is_woken = is_there;
    det_mutex_unlock(audit->options.world, audit->mutex);
    return is_there;
}

void audit_tell(struct audit *audit)
{
    struct audit_deed deed;

    while (audit && take(audit, &deed))
        audit->options.say(audit->options.user, &deed);
}
