/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* act.c - actions. next() is not called while one runs, nor until an observation that began after
 * its end: it would decide by an outdated state. A failed action is not started again before its
 * delay is over, a successful one not more often than the worker is observed. */
#include <detent/driver/policy.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "worker/worker_tree.h"

static const char *name_of(const struct det_worker *worker, uint16_t action)
{
    return worker->kind->actions[action].name;
}

/* No observation that has begun so far opens the gate. */
static void shut_gate(struct det_worker *worker)
{
    if (!worker->kind->collect) {
        worker->observing.gate = 0;
        return;
    }
    det_assert(worker->observing.sequence <= worker->observing.collect_sequence);
    worker->observing.gate = worker->observing.collect_sequence + 1;
    det_worker_publish(worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_GATE_PENDING });
}

static det_time timeout_of(const struct det_worker *worker, uint16_t action)
{
    det_time own = worker->kind->actions[action].timeout;

    return own ? own : worker->workers->limits.action_timeout;
}

void det_act_start(struct det_worker *worker, uint16_t action)
{
    struct det_workers *workers = worker->workers;
    const struct det_record *desired = det_record_of(worker->kind->desired);
    struct det_action *it = &worker->acting.actions[action];

    det_assert(
        action < worker->kind->action_count && det_life_is_live(worker) && worker->incarnation);
    if (it->run || workers->now < it->again_at)
        return;
    if (worker->incarnation->lost_actions[action] >= DET_LOST_MAX) {
        det_worker_set_reason(worker, "waiting for an abandoned action to return");
        return;
    }
    if (det_worker_threads_queued(workers->actors) >= workers->limits.action_queue) {
        it->again_at = workers->now + DET_SECOND;
        det_worker_publish(
            worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_ACTION_QUEUE_FULL,
                                               .action = name_of(worker, action) });
        return;
    }
    if (det_run_new(worker, DET_RUN_ACTION, action, &it->run) < 0) {
        it->run = NULL;
        return;
    }
    if (desired)
        memcpy(it->run->desired, worker->desire.value, desired->size);
    worker->acting.running++;
    det_assert(worker->acting.running <= worker->kind->action_count);
    /* While an action runs, no observation that begins before its end counts: see done(). */
    worker->observing.gate = UINT64_MAX;
    det_worker_publish(
        worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_ACTION_ENQUEUED,
                                           .action = name_of(worker, action),
                                           .reason = worker->reason });
    det_run_start(it->run, timeout_of(worker, action));
}

void det_act_visit(struct det_worker *worker)
{
    if (!worker->acting.running)
        return;
    for (uint16_t i = 0; i < worker->kind->action_count; i++) {
        struct det_run *run = worker->acting.actions[i].run;

        if (run && det_run_watch(run))
            det_act_lost(worker, i, 3 * timeout_of(worker, i));
    }
}

void det_act_cancel(struct det_worker *worker)
{
    if (!worker->acting.running)
        return;
    for (uint16_t i = 0; i < worker->kind->action_count; i++)
        if (worker->acting.actions[i].run)
            det_run_cancel(worker->acting.actions[i].run);
}

void det_act_forget(struct det_worker *worker)
{
    for (uint16_t i = 0; i < worker->kind->action_count; i++) {
        worker->acting.actions[i].again_at = 0;
        worker->acting.actions[i].delay = 0;
        worker->acting.actions[i].failures = 0;
    }
}

static void back_off(struct det_worker *worker, struct det_action *it)
{
    struct det_workers *workers = worker->workers;
    uint64_t chance = (uint64_t)det_workers_chance(workers, INT64_MAX) << 1;

    it->delay = det_backoff_delay(&workers->limits.action_backoff, it->failures, it->delay, chance);
    it->failures++;
    it->again_at = workers->now + it->delay;
    worker->counts.failures++;
    worker->counts.actions_failed++;
}

/* After any kind of end the gate opens with the next observation. */
static void end(
    struct det_worker *worker, uint16_t action, int code, det_time took, const char *why)
{
    struct det_workers *workers = worker->workers;
    struct det_action *it = &worker->acting.actions[action];
    det_time every =
        worker->kind->observe_every ? worker->kind->observe_every : workers->limits.observe_every;

    det_assert(it->run && worker->acting.running > 0);
    it->run = NULL;
    worker->acting.running--;
    worker->acting.last = (struct det_action_end){
        .action = name_of(worker, action), .at = workers->now, .took = took, .code = code
    };
    det_text_copy(worker->acting.last.text, sizeof worker->acting.last.text, why);
    det_history_action(worker, name_of(worker, action), code, took, why);
    if (code < 0)
        back_off(worker, it);
    else {
        it->failures = 0;
        it->delay = 0;
        it->again_at = workers->now - took + every;
        worker->counts.failures = 0;
        worker->counts.actions_done++;
    }
    if (worker->acting.running)
        return;
    shut_gate(worker);
    if (!worker->observing.collect)
        det_collect_soon(worker);
}

void det_act_done(struct det_worker *worker, struct det_run *run)
{
    uint16_t action = run->action;
    det_time took =
        run->ended_at - atomic_load_explicit(&run->job.started_at, memory_order_acquire);
    const char *text = run->code >= 0 ? "" : run->text[0] ? run->text : det_error_text(run->code);

    det_assert(run->kind == DET_RUN_ACTION && action < worker->kind->action_count);
    det_assert(worker->acting.actions[action].run == run);
    if (run->job.is_dropped)
        took = 0;
    if (run->code == DET_ERR_CANCELLED && run->lateness) {
        run->code = DET_ERR_TIMEOUT;
        text = "the action exceeded its timeout and was cancelled";
    }
    end(worker, action, run->code, took, text);
    if (run->has_panicked)
        det_panic_note(worker, DET_WORKER_EVENT_ACTION_PANIC, text, name_of(worker, action));
    else
        det_worker_publish(
            worker,
            (struct det_worker_event){ .kind = run->code < 0 ? DET_WORKER_EVENT_ACTION_FAILED
                                                             : DET_WORKER_EVENT_ACTION_COMPLETED,
                                       .action = name_of(worker, action),
                                       .code = run->code,
                                       .reason = text,
                                       .number = worker->acting.actions[action].failures,
                                       .took = took });
    det_run_free(run);
    det_worker_visit(worker);
}

void det_act_lost(struct det_worker *worker, uint16_t action, det_time took)
{
    end(worker, action, DET_ERR_TIMEOUT, took, "the action did not return and was abandoned");
}
