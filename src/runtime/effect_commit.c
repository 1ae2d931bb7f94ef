/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect_commit.c - the end of an effect, which is a commit: the end and the product are stored
 * together, so a product is accepted exactly once, however often the effect ran. */
#include <stdio.h>

#include "base/checked.h"
#include "runtime/turn_batch.h"

/* Checks that the effect may produce this event, and that the event can be recorded. */
static int check_product(const struct det_effect_run *effect_run, struct det_error *reterr)
{
    const struct det_served *served = effect_run->due.resident->served;
    const struct det_effect_def *effect = &served->machine->effects[effect_run->row.effect];
    unsigned kind = det_event_kind(effect_run->product);

    for (unsigned i = 0; i < effect->produces_count; i++) {
        if (effect->produces[i] == kind)
            return det_decide_check(served, effect_run->product, reterr);
    }
    if (kind == DET_PRODUCT_UNWRITTEN)
        return det_error_set(
            reterr, DET_ERR_INVALID, "returned DET_EFFECT_PRODUCED, but wrote no event");
    if (kind >= served->machine->event_count)
        return det_decide_check(served, effect_run->product, reterr);
    return det_error_set(
        reterr, DET_ERR_INVALID, "EFFECT(%s) does not list %s", effect->name,
        served->machine->events[kind].name);
}

static void end_failed(struct det_batch_item *item, struct det_effect_run *effect_run, det_time now)
{
    struct det_runtime *runtime = item->turn.runtime;
    struct det_ending *ending = &item->of.ending;
    struct det_effect_policy policy = det_effect_run_policy(runtime, effect_run);
    struct det_store_effect *row = &effect_run->row;

    row->last_error = effect_run->result;
    row->next = det_add_time(
        now, det_effect_run_backoff(runtime, &policy, row->attempts, effect_run->call.retry_after));
    row->is_dead = row->attempts >= policy.attempts_max ||
                   row->next > det_effect_run_deadline(runtime, effect_run);
    ending->is_dead = row->is_dead;
    item->turn.effect_run_change = DET_STORE_UPDATE;
    ending->incident = row->is_dead ? DET_INCIDENT_EFFECT_DEAD : DET_INCIDENT_EFFECT_FAILED;
    ending->code = effect_run->result;
    if (effect_run->failure_text)
        det_error_set(&item->error, effect_run->result, "%s", effect_run->failure_text);
    if (effect_run->is_spent)
        det_error_set(
            &item->error, effect_run->result, "the process ended during attempt %u", row->attempts);
    if (effect_run->answer > DET_EFFECT_PRODUCED)
        det_error_set(
            &item->error, effect_run->result,
            "returned %d, which is neither DET_EFFECT_DONE, DET_EFFECT_PRODUCED, "
            "DET_EFFECT_POSTPONED nor an error",
            effect_run->answer);
    det_effect_run_explain(runtime, effect_run, item->error.code ? item->error.text : NULL);
}

static void end_produced(struct det_batch_item *item, struct det_effect_run *effect_run)
{
    struct det_effect_policy policy = det_effect_run_policy(item->turn.runtime, effect_run);
    struct det_ending *ending = &item->of.ending;
    int r = check_product(effect_run, &item->error);

    ending->incident = DET_INCIDENT_PRODUCT_REJECTED;
    item->turn.is_last_attempt = effect_run->deliveries + 1 >= policy.attempts_max;
    if (r < 0) {
        effect_run->row.is_dead = ending->is_dead = true;
        effect_run->row.last_error = ending->code = r;
        det_effect_run_explain(item->turn.runtime, effect_run, item->error.text);
        item->turn.effect_run_change = DET_STORE_UPDATE;
    } else {
        item->event = effect_run->product;
        item->turn.request.visit = policy.same_visit_only ? effect_run->row.asked : 0;
    }
}

static void report_end(const struct det_batch_item *item)
{
    const struct det_ending *ending = &item->of.ending;

    det_runtime_report_incident(
        item->turn.runtime, item->turn.resident,
        &(struct det_incident){ .kind = ending->incident,
                                .name = ending->effect,
                                .key = ending->key,
                                .attempt = ending->attempt,
                                .code = ending->code },
        &item->error);
}

static void count_up(struct det_runtime_counts *counts, const struct det_batch_item *item)
{
    const struct det_ending *ending = &item->of.ending;

    if (ending->code && ending->incident == DET_INCIDENT_PRODUCT_REJECTED)
        counts->products_rejected++;
    if (ending->result < 0)
        counts->effects_failed++;
    if (ending->is_dead || (item->turn.rejected && item->turn.rejected != DET_ERR_CONFLICT))
        counts->effects_dead++;
    else if (ending->result >= 0)
        counts->effects_done++;
}

/* The end could not be recorded: it is retried later. Conflicts with other writers are no failure.
 * Lock held. */
static void end_later(const struct det_turn *turn, struct det_effect_run *effect_run, int r)
{
    struct det_effect_policy policy = det_effect_run_policy(turn->runtime, effect_run);

    effect_run->row.is_dead = false;
    effect_run->deliveries += !det_turn_met_others(r);
    det_effect_run_wait(
        turn->runtime, turn->shard, effect_run,
        det_add_time(
            turn->now, det_effect_run_backoff(turn->runtime, &policy, effect_run->deliveries, 0)));
}

/* True if the loop still owns the effect: no commit has changed or removed it. */
static bool is_ours(const struct det_batch_item *item)
{
    return item->result < 0 || item->turn.is_found_done ||
           item->turn.effect_run_change == DET_STORE_TAKE;
}

/* After a turn of a batch. The resident is pinned until now. The effect may be freed at the end. */
static void ended(struct det_batch_item *item)
{
    struct det_ending *ending = &item->of.ending;
    struct det_turn *turn = &item->turn;
    int r = item->result;

    if (r == 0 && turn->rejected)
        ending->code = turn->rejected;
    if (r < 0)
        ending->code = item->event && r != DET_ERR_NOT_FOUND && !det_turn_met_others(r) ? r : 0;
    if (ending->code)
        report_end(item);
    det_shard_lock(turn->runtime, turn->shard);
    if (r == 0)
        count_up(&turn->shard->counts, item);
    if (is_ours(item) && ending->effect_run->is_gone)
        det_effect_run_drop(turn->runtime, turn->shard, ending->effect_run);
    else if (is_ours(item))
        end_later(turn, ending->effect_run, r);
    turn->resident->pins--;
    det_shard_unlock(turn->runtime, turn->shard);
    det_due_handled(turn->runtime);
}

static void item_init(
    struct det_batch_item *item, struct det_runtime *runtime, struct det_effect_run *effect_run)
{
    struct det_resident *resident = effect_run->due.resident;
    struct det_ending *ending = &item->of.ending;

    *ending = (struct det_ending){ .effect_run = effect_run,
                                   .result = effect_run->result,
                                   .attempt = effect_run->row.attempts,
                                   .effect = effect_run->call.effect };
    snprintf(ending->key, sizeof ending->key, "%s", effect_run->key);
    item->ended = ended;
    det_turn_init(&item->turn, runtime, resident->served, resident->hash);
    item->turn.resident = resident;
    item->turn.error = &item->error;
    item->turn.is_internal = true;
    item->turn.effect_run = effect_run;
    item->turn.request.trace = effect_run->row.trace;
}

void det_effect_run_end(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run)
{
    struct det_batch_item *item = det_batch_next(runtime->batch);

    item_init(item, runtime, effect_run);
    if (effect_run->result < 0)
        end_failed(item, effect_run, det_runtime_now(runtime));
    else if (effect_run->result == DET_EFFECT_PRODUCED)
        end_produced(item, effect_run);
    effect_run->due.resident->pins++;
    det_batch_begin(runtime->batch, item);
    det_shard_lock(runtime, shard);
}
