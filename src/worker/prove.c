/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* prove.c - det_worker_prove(): tests the pure functions of a kind with random views. */
#include "worker/prove.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/reserved.h"
#include "base/text.h"

#define VIEWS     200
#define STEPS_MAX 64
/* Number of configs to try until derive() accepts one. */
#define CONFIGS_MAX 10000

static int DET_PRINTF(2, 3) fail(struct det_prove *prove, const char *text, ...)
{
    char sentence[DET_ERROR_TEXT_MAX];
    va_list arguments;

    va_start(arguments, text);
    (void)vsnprintf(sentence, sizeof sentence, text, arguments);
    va_end(arguments);
    return det_error_set(
        prove->reterr, DET_ERR_INVALID, "worker %s, seed %llu: %s", prove->kind->name,
        (unsigned long long)prove->options->seed, sentence);
}

static bool stops(enum det_phase phase)
{
    return phase == DET_PHASE_STOPPED || phase == DET_PHASE_STOPPING;
}

static int DET_PRINTF(2, 3) refuse(struct det_derive *derive, const char *text, ...)
{
    (void)derive;
    (void)text;
    return DET_ERR_INVALID;
}

static bool is_same_desired(const struct det_prove *prove)
{
    return prove->desired_record == NULL ||
           det_record_equal(prove->desired_record, prove->desired, prove->desired_again);
}

/* Derives twice and compares; 1: it was refused. */
static int derive_once(struct det_prove *prove)
{
    struct det_worker_identity identity = { "proof", "proof", prove->kind->name, "proof" };
    struct det_derive derive = { &identity, "", refuse };
    int first, second;

    memcpy(prove->config_again, prove->config, prove->config_size);
    memset(prove->desired, 0, prove->desired_size);
    memset(prove->desired_again, 0, prove->desired_size);
    first = prove->kind->derive(&derive, prove->config, prove->desired);
    if (memcmp(prove->config, prove->config_again, prove->config_size) != 0)
        return fail(prove, "derive() changes the config");
    second = prove->kind->derive(&derive, prove->config, prove->desired_again);
    if (first != second || (first >= 0 && !is_same_desired(prove)))
        return fail(prove, "derive() gives different results for one config");
    if (first >= 0 && prove->desired_record != NULL &&
        det_record_validate(prove->desired_record, prove->desired, NULL) < 0)
        return fail(prove, "derive() returned an invalid desired state");
    return first < 0 ? 1 : 0;
}

/* One in eight is empty, as for a worker without a config. */
static void fill_config(struct det_prove *prove, unsigned number)
{
    if (prove->config_record != NULL && number % 8 != 7)
        det_prove_record(&prove->chance, prove->config_record, prove->config);
    else
        memset(prove->config, 0, prove->config_size);
}

/* Derives until a config is accepted; DET_ERR_INVALID: none is, or derive() is not pure. */
static int prove_derive(struct det_prove *prove)
{
    for (unsigned i = 0; i < CONFIGS_MAX; i++) {
        int r = 0;

        fill_config(prove, i);
        if (prove->options->adjust_config != NULL)
            prove->options->adjust_config(prove->options->context, prove->config);
        if (prove->kind->derive != NULL)
            r = derive_once(prove);
        else
            memcpy(prove->desired, prove->config, prove->desired_size);
        if (r <= 0)
            return r;
        prove->proof.refused++;
    }
    return fail(
        prove, "derive() refuses %d random configs; let adjust_config make valid ones",
        CONFIGS_MAX);
}

/* Counts and hashes the children that children() adds. */
struct listed {
    struct det_children children; /* the first member: the argument of the kind */
    unsigned count;
    uint64_t letters;
    bool is_bad;
};

static int add_child(struct det_children *children, const struct det_child_spec *spec)
{
    struct listed *listed = (struct listed *)children;

    listed->count++;
    listed->is_bad |= spec->name == NULL || *spec->name == '\0' || spec->kind == NULL;
    for (const char *c = spec->name; c != NULL && *c != '\0'; c++)
        listed->letters = listed->letters * 31 + (unsigned char)*c;
    for (const char *c = spec->kind; c != NULL && *c != '\0'; c++)
        listed->letters = listed->letters * 31 + (unsigned char)*c;
    listed->letters = listed->letters * 31 + spec->run_in + spec->is_disabled;
    return 0;
}

static int prove_children(struct det_prove *prove)
{
    struct listed first = { .children = { add_child } }, second = { .children = { add_child } };
    uint64_t before = det_prove_hash(prove);
    int r, again;

    if (prove->kind->children == NULL)
        return 0;
    r = prove->kind->children(&prove->view.view, &first.children);
    again = prove->kind->children(&prove->view.view, &second.children);
    if (before != det_prove_hash(prove))
        return fail(prove, "children() changes its view");
    if (r != again || first.count != second.count || first.letters != second.letters)
        return fail(prove, "children() gives different results for one view");
    if (r >= 0 && first.is_bad)
        return fail(prove, "children() adds a child without a name or a kind");
    return 0;
}

static int check_decision(struct det_prove *prove, uint16_t state, const struct det_next *next)
{
    const struct det_worker_kind *kind = prove->kind;
    const char *name = kind->states[state].name;

    if ((unsigned)next->kind > DET_NEXT_RESTART)
        return fail(prove, "state %s returns an invalid decision", name);
    if (next->reason == NULL || next->reason[0] == '\0')
        return fail(prove, "state %s gives no reason", name);
    if (next->kind == DET_NEXT_GOTO && (next->what >= kind->state_count || next->what == state))
        return fail(prove, "state %s goes to itself, or to an unknown state", name);
    if (next->kind == DET_NEXT_DO && next->what >= kind->action_count)
        return fail(prove, "state %s does an unknown action", name);
    prove->proof.answers[next->kind]++;
    if (next->kind == DET_NEXT_GOTO)
        prove->proof.entered |= DET_IN(next->what);
    if (next->kind == DET_NEXT_DO)
        prove->proof.done |= DET_IN(next->what);
    return 0;
}

/* Calls the state's function twice with the view. */
static int ask(struct det_prove *prove, uint16_t state, struct det_next *ret)
{
    const struct det_worker_state *asked = &prove->kind->states[state];
    char reason[DET_WORKER_REASON_MAX + 1];
    uint64_t before;
    struct det_next again;
    int r;

    prove->view.view.state = state;
    before = det_prove_hash(prove);
    *ret = asked->next(&prove->view.view);
    prove->proof.views++;
    r = check_decision(prove, state, ret);
    if (r < 0)
        return r;
    (void)snprintf(reason, sizeof reason, "%s", ret->reason);
    memset(prove->view.scratch.text, 'x', sizeof prove->view.scratch.text - 1);
    again = asked->next(&prove->view.view);
    if (before != det_prove_hash(prove))
        return fail(prove, "state %s changes its view", asked->name);
    if (again.kind != ret->kind || again.what != ret->what || again.reason == NULL ||
        strncmp(again.reason, reason, strlen(reason)) != 0)
        return fail(
            prove, "state %s decides about the same view first '%s' and then '%s'", asked->name,
            reason, again.reason != NULL ? again.reason : "");
    return 0;
}

/* The next view after a decision: the result of the action, or a random one. */
static void check_again(struct det_prove *prove, uint16_t state, const struct det_next *next)
{
    const struct det_worker_prove_options *options = prove->options;

    if (options->follow == NULL) {
        det_prove_fill_view(prove, state, true);
        return;
    }
    det_prove_stop_children(prove);
    if (next->kind == DET_NEXT_DO)
        options->follow(options->context, next->what, prove->desired, prove->observed);
    else
        prove->view.view.now += DET_MINUTE;
}

/* One step of a stopping worker. 1: it has stopped. */
static int step_to_stop(struct det_prove *prove, uint16_t *state)
{
    const struct det_worker_state *at = &prove->kind->states[*state];
    struct det_next next;
    int r;

    if (at->phase == DET_PHASE_STOPPED)
        return 1;
    if (!stops(at->phase)) {
        *state = at->on_stop;
        return 0;
    }
    r = ask(prove, *state, &next);
    if (r < 0)
        return r;
    if (next.kind == DET_NEXT_RESTART)
        return 1;
    if (next.kind == DET_NEXT_GOTO)
        *state = next.what;
    check_again(prove, *state, &next);
    return 0;
}

static int prove_stop(struct det_prove *prove, uint16_t from)
{
    uint32_t most = prove->options->steps_max ? prove->options->steps_max : STEPS_MAX;
    uint16_t state = from;

    det_prove_fill_view(prove, state, true);
    prove->proof.stops++;
    for (uint32_t i = 0; i < most; i++) {
        int r = step_to_stop(prove, &state);

        if (r != 0)
            return r < 0 ? r : 0;
    }
    prove->proof.unstopped++;
    if (prove->options->follow == NULL)
        return 0;
    return fail(
        prove, "a stop in %s does not reach STOPPED in %u step%s; it is in %s",
        prove->kind->states[from].name, most, det_plural(most), prove->kind->states[state].name);
}

/* During a stop a running state is not called, and a stopped one rests. */
static int prove_state(struct det_prove *prove, uint16_t state)
{
    bool may_stop = prove->kind->states[state].phase == DET_PHASE_STOPPING;
    struct det_next next;
    int r;

    r = prove_derive(prove);
    if (r < 0)
        return r;
    det_prove_fill_view(prove, state, may_stop && det_chance_below(&prove->chance, 2) == 0);
    r = ask(prove, state, &next);
    if (r == 0)
        r = prove_children(prove);
    return r == 0 ? prove_stop(prove, state) : r;
}

static int prove_states(struct det_prove *prove)
{
    uint32_t views = prove->options->views ? prove->options->views : VIEWS;

    for (uint32_t i = 0; i < views; i++) {
        for (uint16_t state = 0; state < prove->kind->state_count; state++) {
            int r = prove_state(prove, state);

            if (r < 0)
                return r;
        }
    }
    return 0;
}

static size_t size_of(const struct det_record *record)
{
    return record != NULL && record->size > sizeof(struct det_empty) ? record->size
                                                                     : sizeof(struct det_empty);
}

static void set_records(struct det_prove *prove)
{
    prove->desired_record = det_record_of(prove->kind->desired);
    prove->observed_record = det_record_of(prove->kind->observed);
    prove->config_record = det_record_of(prove->kind->config);
    if (prove->config_record == NULL)
        prove->config_record = prove->desired_record;
    prove->config_size = size_of(prove->config_record);
    prove->desired_size = size_of(prove->desired_record);
    prove->observed_size = size_of(prove->observed_record);
}

static int run_rounds(struct det_prove *prove)
{
    const struct det_allocator *allocator = prove->options->allocator;
    int r = DET_ERR_NO_MEMORY;

    prove->config = det_alloc_zero(allocator, prove->config_size);
    prove->config_again = det_alloc_zero(allocator, prove->config_size);
    prove->desired = det_alloc_zero(allocator, prove->desired_size);
    prove->desired_again = det_alloc_zero(allocator, prove->desired_size);
    prove->observed = det_alloc_zero(allocator, prove->observed_size);
    if (prove->config && prove->config_again && prove->desired && prove->desired_again &&
        prove->observed)
        r = prove_states(prove);
    det_free(allocator, prove->config, prove->config_size);
    det_free(allocator, prove->config_again, prove->config_size);
    det_free(allocator, prove->desired, prove->desired_size);
    det_free(allocator, prove->desired_again, prove->desired_size);
    det_free(allocator, prove->observed, prove->observed_size);
    return r;
}

int det_worker_prove(
    const struct det_worker_kind *kind, const struct det_worker_prove_options *options,
    struct det_worker_proof *ret, struct det_error *reterr)
{
    static const struct det_worker_prove_options defaults = { .seed = 1 };
    struct det_prove prove = { .kind = kind, .reterr = reterr };
    int r;

    r = det_worker_kind_check(kind, reterr);
    if (r < 0)
        return r;
    prove.options = options != NULL ? options : &defaults;
    r = det_reserved_check(prove.options->reserved, "a proof", reterr);
    if (r < 0)
        return r;
    det_chance_init(&prove.chance, prove.options->seed, 0);
    set_records(&prove);
    r = run_rounds(&prove);
    *ret = prove.proof;
    return r;
}
