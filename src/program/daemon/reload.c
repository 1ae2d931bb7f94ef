/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reload.c - the states of a reload: the functions that reload.fsm names.
 *
 * The work of a state is done in reload_run.c and not by actions, since applying a plan turns the
 * loop, on which the gateway runs.
 *
 * Invariants
 *   1. No client waits in the state IDLE.
 *   2. A plan for display is not applied.
 *   3. A thread asks the store only in the state PROBING, or after the run stopped during it.
 *   4. An answer of the store is valid for one reload. */
#include "base/assert.h"
#include "daemon/reload_states.h"

#define FSM_LOCAL
#define FSM_SPEC "daemon/reload.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "daemon/reload.fsm"
#include <detent/fsm/define.h>

static enum up_reload_state state_of(const struct up_reload *reload)
{
    return (enum up_reload_state)det_component_state(&reload->component);
}

static bool reload_is_sound(const struct up_reload *reload)
{
    switch (state_of(reload)) {
    case UP_RELOAD_IDLE:
        return !reload->client.request && !reload->probe && !reload->is_plan &&
               !reload->store_has_answered;
    case UP_RELOAD_WANTED:
    case UP_RELOAD_TRYING:
        return !reload->probe;
    case UP_RELOAD_PROBING:
        return !reload->store_has_answered;
    case UP_RELOAD_APPLYING:
        return !reload->probe && !reload->is_plan;
    case UP_RELOAD_OVER:
        return !reload->client.request;
    case up_reload_state_count:
        break;
    }
    return false;
}

/* Guards and actions. */

static bool is_signalled(const struct up_reload *reload, const struct up_reload_event *event)
{
    (void)event;
    return reload->is_signalled;
}

static int remember(
    struct up_reload *reload, const struct up_reload_event *event, struct up_reload_event *ret)
{
    (void)event;
    (void)ret;
    reload->is_signalled = true;
    return DET_EFFECT_DONE;
}

static int take_signal(
    struct up_reload *reload, const struct up_reload_event *event, struct up_reload_event *ret)
{
    (void)event;
    (void)ret;
    reload->is_signalled = false;
    return DET_EFFECT_DONE;
}

static int note_answer(
    struct up_reload *reload, const struct up_reload_event *event, struct up_reload_event *ret)
{
    (void)event;
    (void)ret;
    reload->store_has_answered = true;
    return DET_EFFECT_DONE;
}

static int forget(
    struct up_reload *reload, const struct up_reload_event *event, struct up_reload_event *ret)
{
    (void)event;
    (void)ret;
    reload->is_plan = reload->store_has_answered = false;
    return DET_EFFECT_DONE;
}

static int refuse_client(
    struct up_reload *reload, const struct up_reload_event *event, struct up_reload_event *ret)
{
    (void)event;
    (void)ret;
    reload->refuse_client(reload->up);
    return DET_EFFECT_DONE;
}

/* The only place where the state changes. */
static bool offer_event(struct up_reload *reload, struct up_reload_event event)
{
    enum up_reload_state from = state_of(reload);
    int r = up_reload_offer(reload, event);

    /* Refused: no reload is requested. Closed: the run stops. */
    det_assert(r == 0 || r == DET_ERR_REFUSED || r == DET_ERR_CLOSED);
    return state_of(reload) != from;
}

int reload_supervise(struct up_reload *reload, struct det_executor *executor)
{
    const struct det_supervise_options options = { .without_handle = true };

    return up_reload_supervise(executor, reload, &options, NULL, NULL);
}

void reload_on_signal(struct up_reload *reload)
{
    (void)offer_event(reload, up_reload_signal());
}

bool reload_on_request(
    struct up_reload *reload, const struct up_reload_client *client, bool is_plan)
{
    bool is_taken = offer_event(reload, up_reload_request());

    if (is_taken) {
        reload->client = *client;
        reload->is_plan = is_plan;
    }
    return is_taken;
}

bool reload_on_turn(struct up_reload *reload)
{
    return offer_event(reload, up_reload_turn());
}

void reload_on_probe(struct up_reload *reload)
{
    (void)offer_event(reload, up_reload_probe());
}

void reload_on_answer(struct up_reload *reload)
{
    (void)offer_event(reload, up_reload_answer());
}

void reload_on_apply(struct up_reload *reload)
{
    (void)offer_event(reload, up_reload_apply());
}

void reload_on_finish(struct up_reload *reload)
{
    (void)offer_event(reload, up_reload_finish());
}

void reload_on_stop(struct up_reload *reload)
{
    (void)offer_event(reload, up_reload_stop());
}

bool reload_is_probing(const struct up_reload *reload)
{
    return state_of(reload) == UP_RELOAD_PROBING;
}
