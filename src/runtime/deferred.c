/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* deferred.c - events that were kept for a later state, when that has come. */
#include "base/assert.h"
#include "runtime/turn.h"

/* The first deferred event, in order, that the state takes now. */
static struct det_kept *find_retry(const struct det_turn *turn)
{
    const struct det_resident *resident = turn->resident;

    if (!det_resident_kept(resident) || resident->head.is_stopped)
        return NULL;
    DET_LIST_EACH(node, &resident->more->kept)
    {
        struct det_kept *kept = DET_CONTAINER(node, struct det_kept, node);

        if (det_machine_step(
                turn->served->machine, resident->head.state, det_event_kind(kept->event))
                ->outcome != DET_UNHANDLED)
            return kept;
    }
    return NULL;
}

static void tell_refused(
    struct det_turn *turn, const struct det_kept *kept, int code, const struct det_error *error)
{
    det_runtime_trouble(
        turn->runtime, turn->resident,
        &(struct det_trouble){ .kind = DET_TROUBLE_EVENT_DEAD,
                               .name =
                                   turn->served->machine->events[det_event_kind(kept->event)].name,
                               .code = code },
        error);
}

static bool is_refusal(int r)
{
    return r == DET_ERR_REFUSED || r == DET_ERR_ACTION_FAILED || r == DET_ERR_TIMEOUT ||
           r == DET_ERR_INVALID || r == DET_ERR_UNBOUND || r == DET_ERR_LIMIT;
}

/* It is taken out of what is deferred: so there is something to commit. */
static int commit_one(struct det_turn *turn, struct det_store_commit *commit, struct det_sent *ret)
{
    int r;

    r = det_turn_collect(turn, commit, ret);
    if (r < 0)
        return r;
    det_assert(r > 0);
    return det_turn_stored(turn, commit, det_turn_store(turn, commit));
}

/* Its sender has gone: what refuses it now makes it a dead letter. */
static int retry_one(struct det_turn *turn, struct det_kept *kept)
{
    struct det_error error = { 0 };
    struct det_store_commit commit;
    struct det_sent sent;
    int r, refused = 0;

    turn->retried = kept;
    turn->error = &error;
    r = det_draft_begin(turn, 1);
    if (r == 0)
        r = det_decide_event(turn, kept->event);
    if (is_refusal(r)) {
        refused = r;
        det_draft_discard(turn);
        r = det_draft_begin(turn, 0);
    }
    if (r < 0)
        det_draft_discard(turn);
    else
        r = commit_one(turn, &commit, &sent);
    turn->retried = NULL;
    turn->error = NULL;
    if (r < 0)
        return r;
    if (refused)
        tell_refused(turn, kept, refused, &error);
    det_kept_close(turn->runtime, turn->served->machine, kept);
    return 0;
}

void det_turn_retry_deferred(struct det_turn *turn)
{
    struct det_error *error = turn->error;
    struct det_kept *kept;
    int r = 0;

    if (!det_resident_kept(turn->resident))
        return;
    turn->error = NULL;
    turn->action = NULL;
    while (r == 0 && (kept = find_retry(turn)))
        r = retry_one(turn, kept);
    turn->error = error;
}
