/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* audit.c - a ring of audit records between the threads that add them and the loop that logs
 * them. */
#include "daemon/audit.h"

#include "base/memory.h"
#include "os/os.h"

#define RING             128
#define REFUSALS_AT_ONCE 20
#define REFUSAL_EVERY    DET_SECOND

struct audit {
    struct audit_options options;
    struct det_mutex *mutex; /* protects the members below */
    struct audit_action actions[RING];
    size_t first, count;
    uint64_t not_reported;
    det_time paid; /* monotonic: end of the rate already used by refusals */
    bool is_woken;
};

const char *audit_outcome_name(enum audit_outcome outcome)
{
    static const char *const names[] = { "done", "failed", "refused", "unknown", "incident" };

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
    audit_report(audit);
    det_mutex_close(audit->options.world, audit->mutex);
    DET_DELETE(audit->options.allocator, audit);
}

static bool is_too_much(struct audit *audit, const struct audit_action *action)
{
    det_time now, paid;

    if (audit->count == RING)
        return true;
    if (action->outcome != AUDIT_REFUSED)
        return false;
    now = det_world_now(audit->options.world, DET_CLOCK_MONOTONIC);
    paid = (audit->paid > now ? audit->paid : now) + REFUSAL_EVERY;
    if (paid - now > REFUSALS_AT_ONCE * REFUSAL_EVERY)
        return true;
    audit->paid = paid;
    return false;
}

static void put_record(struct audit *audit, const struct audit_action *action)
{
    struct audit_action *place = &audit->actions[(audit->first + audit->count++) % RING];

    *place = *action;
    place->not_reported = audit->not_reported;
    audit->not_reported = 0;
}

void audit_add(struct audit *audit, const struct audit_action *action)
{
    bool wake_wanted = false;

    if (!audit)
        return;
    det_mutex_lock(audit->options.world, audit->mutex);
    if (is_too_much(audit, action)) {
        audit->not_reported++;
    } else {
        put_record(audit, action);
        wake_wanted = !audit->is_woken;
        audit->is_woken = true;
    }
    det_mutex_unlock(audit->options.world, audit->mutex);
    if (wake_wanted)
        audit->options.wake(audit->options.user);
}

static bool take_record(struct audit *audit, struct audit_action *ret)
{
    bool is_there;

    det_mutex_lock(audit->options.world, audit->mutex);
    is_there = audit->count > 0;
    if (is_there) {
        *ret = audit->actions[audit->first];
        audit->first = (audit->first + 1) % RING;
        audit->count--;
    }
    audit->is_woken = is_there;
    det_mutex_unlock(audit->options.world, audit->mutex);
    return is_there;
}

void audit_report(struct audit *audit)
{
    struct audit_action action;

    while (audit && take_record(audit, &action))
        audit->options.report(audit->options.user, &action);
}
