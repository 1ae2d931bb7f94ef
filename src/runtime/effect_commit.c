/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect_commit.c - the end of an effect, which is a commit: that it is done and what it produced
 * go in together, so that a product is taken exactly once, however often the effect ran. */
#include <stdio.h>

#include "base/checked.h"
#include "runtime/batch.h"

/* Whether the effect may produce what it did, and whether that can be recorded. */
static int check_product(const struct det_errand *errand, struct det_error *reterr)
{
    const struct det_served *served = errand->due.resident->served;
    const struct det_effect_def *effect = &served->machine->effects[errand->row.effect];
    unsigned kind = det_event_kind(errand->product);

    for (unsigned i = 0; i < effect->produces_count; i++) {
        if (effect->produces[i] == kind)
            return det_decide_check(served, errand->product, reterr);
    }
    if (kind == DET_PRODUCT_UNWRITTEN)
        return det_error_set(
            reterr, DET_ERR_INVALID, "it returned DET_EFFECT_PRODUCED, but wrote no event");
    if (kind >= served->machine->event_count)
        return det_decide_check(served, errand->product, reterr);
    return det_error_set(
        reterr, DET_ERR_INVALID, "EFFECT(%s) does not list %s", effect->name,
        served->machine->events[kind].name);
}

static void end_failed(struct det_batch_item *item, struct det_errand *errand, det_time now)
{
    struct det_runtime *runtime = item->turn.runtime;
    struct det_ending *ending = &item->of.ending;
    struct det_effect_policy policy = det_errand_policy(runtime, errand);
    struct det_store_effect *row = &errand->row;

    row->last_error = errand->result;
    row->next = det_add_time(
        now, det_errand_backoff(runtime, &policy, row->attempts, errand->call.retry_after));
    row->is_dead =
        row->attempts >= policy.attempts_max || row->next > det_errand_deadline(runtime, errand);
    ending->is_dead = row->is_dead;
    item->turn.errand_change = DET_STORE_UPDATE;
    ending->trouble = row->is_dead ? DET_INCIDENT_EFFECT_DEAD : DET_INCIDENT_EFFECT_FAILED;
    ending->code = errand->result;
    if (errand->said)
        det_error_set(&item->error, errand->result, "%s", errand->said);
    if (errand->is_spent)
        det_error_set(
            &item->error, errand->result, "the process ended during attempt %u", row->attempts);
    if (errand->answer > DET_EFFECT_PRODUCED)
        det_error_set(
            &item->error, errand->result,
            "it returned %d, which is neither DET_EFFECT_DONE, DET_EFFECT_PRODUCED, "
            "DET_EFFECT_POSTPONED nor an error",
            errand->answer);
    det_errand_explain(runtime, errand, item->error.code ? item->error.text : NULL);
}

static void end_produced(struct det_batch_item *item, struct det_errand *errand)
{
    struct det_effect_policy policy = det_errand_policy(item->turn.runtime, errand);
    struct det_ending *ending = &item->of.ending;
    int r = check_product(errand, &item->error);

    ending->trouble = DET_INCIDENT_PRODUCT_REJECTED;
    item->turn.is_last_attempt = errand->deliveries + 1 >= policy.attempts_max;
    if (r < 0) {
        errand->row.is_dead = ending->is_dead = true;
        errand->row.last_error = ending->code = r;
        det_errand_explain(item->turn.runtime, errand, item->error.text);
        item->turn.errand_change = DET_STORE_UPDATE;
    } else {
        item->event = errand->product;
        item->turn.request.visit = policy.same_visit_only ? errand->row.asked : 0;
    }
}

static void report_end(const struct det_batch_item *item)
{
    const struct det_ending *ending = &item->of.ending;

    det_runtime_trouble(
        item->turn.runtime, item->turn.resident,
        &(struct det_incident){ .kind = ending->trouble,
                                .name = ending->effect,
                                .key = ending->key,
                                .attempt = ending->attempt,
                                .code = ending->code },
        &item->error);
}

static void count_up(struct det_runtime_counts *counts, const struct det_batch_item *item)
{
    const struct det_ending *ending = &item->of.ending;

    if (ending->code && ending->trouble == DET_INCIDENT_PRODUCT_REJECTED)
        counts->products_rejected++;
    if (ending->result < 0)
        counts->effects_failed++;
    if (ending->is_dead || (item->turn.rejected && item->turn.rejected != DET_ERR_CONFLICT))
        counts->effects_dead++;
    else if (ending->result >= 0)
        counts->effects_done++;
}

/* The end could not be recorded: the same again, later. Other writers are no failure. Lock held. */
static void end_later(const struct det_turn *turn, struct det_errand *errand, int r)
{
    struct det_effect_policy policy = det_errand_policy(turn->runtime, errand);

    errand->row.is_dead = false;
    errand->deliveries += !det_turn_met_others(r);
    det_errand_wait(
        turn->runtime, turn->shard, errand,
        det_add_time(turn->now, det_errand_backoff(turn->runtime, &policy, errand->deliveries, 0)));
}

/* Whether it is still the loop's: nothing was committed about it, or that it is gone. */
static bool is_ours(const struct det_batch_item *item)
{
    return item->result < 0 || item->turn.is_found_done ||
           item->turn.errand_change == DET_STORE_TAKE;
}

/* After the turn, which was one of a batch. Until now the resident stays. The errand may be gone at
 * the end of this. */
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
    if (is_ours(item) && ending->errand->is_gone)
        det_errand_drop(turn->runtime, turn->shard, ending->errand);
    else if (is_ours(item))
        end_later(turn, ending->errand, r);
    turn->resident->pins--;
    det_shard_unlock(turn->runtime, turn->shard);
    det_due_handled(turn->runtime);
}

static void item_init(
    struct det_batch_item *item, struct det_runtime *runtime, struct det_errand *errand)
{
    struct det_resident *resident = errand->due.resident;
    struct det_ending *ending = &item->of.ending;

    *ending = (struct det_ending){ .errand = errand,
                                   .result = errand->result,
                                   .attempt = errand->row.attempts,
                                   .effect = errand->call.effect };
    snprintf(ending->key, sizeof ending->key, "%s", errand->key);
    item->ended = ended;
    det_turn_init(&item->turn, runtime, resident->served, resident->hash);
    item->turn.resident = resident;
    item->turn.error = &item->error;
    item->turn.is_internal = true;
    item->turn.errand = errand;
    item->turn.request.trace = errand->row.trace;
}

void det_errand_end(struct det_runtime *runtime, struct det_shard *shard, struct det_errand *errand)
{
    struct det_batch_item *item = det_batch_next(runtime->batch);

    item_init(item, runtime, errand);
    if (errand->result < 0)
        end_failed(item, errand, det_runtime_now(runtime));
    else if (errand->result == DET_EFFECT_PRODUCED)
        end_produced(item, errand);
    errand->due.resident->pins++;
    det_batch_begin(runtime->batch, item);
    det_shard_lock(runtime, shard);
}
