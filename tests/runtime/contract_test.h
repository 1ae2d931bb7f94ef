/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract_test.h - the machine of contract_test.fsm in a laboratory: a simulated world, a memory
 * store, a runtime, and a log of everything that its functions and observers were called for.
 *
 * Functions of the machine log their name, the observer logs "note:<sequence>", both into
 * lab->log, so that one string says in which order things happened. What a function does beyond
 * that is chosen by the test: lab->deny names the one that says no, lab->hook and lab->job run
 * inside. All of it runs in one real thread; nothing here asserts but in the first one. */
#ifndef DET_CONTRACT_TEST_H
#define DET_CONTRACT_TEST_H

#include <limits.h>

#include <detent/detent.h>
#include <detent/sim.h>

#define FSM_SPEC "runtime/contract_test.fsm"
#include <detent/fsm/declare.h>
#define FSM_SPEC "runtime/contract_test.fsm"
#include <detent/fsm/define.h>

#include "lib/test.h"

#define LAB_CALLS_MAX 512
#define LAB_TEXT_MAX  24576

struct lab;

typedef int lab_hook_fn(struct lab *lab, const char *name, const struct det_move *move);
typedef int lab_job_fn(struct lab *lab, struct det_effect_call *call, struct probe_event *ret);

struct lab_call {
    char effect[16];
    char key[160];
    uint32_t attempt;
    det_time now;
    uint64_t amount;
    struct det_move move;
};

struct lab_note {
    struct det_note note; /* its pointers are not to be followed */
    char instance[DET_ID_MAX + 1];
    char cause[160];
    struct probe_event event;
    struct probe_data data;
};

struct lab_incident {
    struct det_incident incident; /* its pointers are not to be followed */
    char instance[DET_ID_MAX + 1];
    char name[32];
    char key[160];
    char text[640];
};

struct lab {
    struct det_sim *sim;
    struct det_world *world;
    struct det_store *store;
    struct det_runtime *runtime;
    struct det_runtime_options options;

    const char *deny; /* the guard or hook that says no */
    lab_hook_fn *hook;
    lab_job_fn *job;
    void *context; /* of the two */
    void (*watch)(struct lab *lab, const struct det_note *note);

    char log[LAB_TEXT_MAX];
    struct lab_call calls[LAB_CALLS_MAX];
    size_t call_count;
    struct lab_note notes[LAB_CALLS_MAX];
    size_t note_count;
    struct lab_incident incidents[LAB_CALLS_MAX];
    size_t incident_count;
};

static inline void lab_log(struct lab *lab, const char *word)
{
    size_t used = strlen(lab->log);

    snprintf(lab->log + used, sizeof lab->log - used, used > 0 ? " %s" : "%s", word);
}

/* Lets this thread wait in virtual time, with public means only. */
static inline void lab_nap(struct lab *lab, det_time span)
{
    det_time until = det_world_now(lab->world, DET_CLOCK_MONOTONIC) + span;
    struct det_loop *loop;

    if (det_loop_open(lab->world, NULL, &loop) < 0)
        return;
    while (det_world_now(lab->world, DET_CLOCK_MONOTONIC) < until)
        if (det_loop_turn(loop, until) < 0)
            break;
    det_loop_close(loop);
}

#define LAB_DENIED (-77)

static inline int lab_hook(const char *name, const struct det_move *move)
{
    struct lab *lab = move->user;

    lab_log(lab, name);
    if (lab->hook != NULL) {
        int r = lab->hook(lab, name, move);
        if (r < 0)
            return r;
    }
    return lab->deny != NULL && strcmp(lab->deny, name) == 0 ? LAB_DENIED : 0;
}

#define LAB_HOOK(name)                                              \
    static int name(                                                \
        const struct det_move *move, const struct probe_data *data, \
        const struct probe_event *event)                            \
    {                                                               \
        (void)data;                                                 \
        (void)event;                                                \
        return lab_hook(#name, move);                               \
    }

LAB_HOOK(check_go)
LAB_HOOK(check_again)
LAB_HOOK(check_touch)
LAB_HOOK(check_quit)
LAB_HOOK(enter_idle)
LAB_HOOK(exit_idle)
LAB_HOOK(enter_busy)
LAB_HOOK(exit_busy)

static bool may_go(
    const struct det_move *move, const struct probe_data *data, const struct probe_event *event)
{
    (void)data;
    (void)event;
    return lab_hook("may_go", move) == 0;
}

static void tally(struct probe_data *data, const struct probe_event *event)
{
    (void)event;
    data->count++;
}

/* One letter per event, so that the trail tells their order. */
static void append(struct probe_data *data, const struct probe_event *event)
{
    size_t used = strlen(data->trail);

    if (used + 1 < sizeof data->trail) {
        data->trail[used] = (char)('a' + event->later.amount % 26);
        data->trail[used + 1] = '\0';
    }
}

static void note_time(
    const struct det_move *move, const struct probe_data *data, struct probe_event *event)
{
    (void)data;
    event->remind.armed_at = move->now;
}

static inline int lab_effect(
    const char *name, struct det_effect_call *call, const struct probe_event *event,
    struct probe_event *ret)
{
    struct lab *lab = call->move.user;

    if (lab->call_count < LAB_CALLS_MAX) {
        struct lab_call *kept = &lab->calls[lab->call_count++];

        snprintf(kept->effect, sizeof kept->effect, "%s", call->effect);
        snprintf(kept->key, sizeof kept->key, "%s", call->key);
        kept->attempt = call->attempt;
        kept->now = call->now;
        kept->amount = event->kind == PROBE_WORK ? event->work.amount : 0;
        kept->move = call->move;
    }
    lab_log(lab, name);
    return lab->job != NULL ? lab->job(lab, call, ret) : DET_EFFECT_DONE;
}

static int job(
    struct det_effect_call *call, const struct probe_data *data, const struct probe_event *event,
    struct probe_event *ret)
{
    (void)data;
    return lab_effect("job", call, event, ret);
}

static int other(
    struct det_effect_call *call, const struct probe_data *data, const struct probe_event *event,
    struct probe_event *ret)
{
    (void)data;
    return lab_effect("other", call, event, ret);
}

static inline void lab_observe(void *context, const struct det_note *note)
{
    struct lab *lab = context;
    char word[32];

    if (lab->note_count < LAB_CALLS_MAX) {
        struct lab_note *kept = &lab->notes[lab->note_count++];

        kept->note = *note;
        snprintf(kept->instance, sizeof kept->instance, "%s", note->instance);
        snprintf(kept->cause, sizeof kept->cause, "%s", note->cause ? note->cause : "");
        if (note->event_value != NULL && note->machine == &probe_machine)
            kept->event = *(const struct probe_event *)note->event_value;
        if (note->data != NULL && note->machine == &probe_machine)
            kept->data = *(const struct probe_data *)note->data;
    }
    snprintf(word, sizeof word, "note:%llu", (unsigned long long)note->sequence);
    lab_log(lab, word);
    if (lab->watch != NULL)
        lab->watch(lab, note);
}

static inline void lab_report_error(void *context, const struct det_incident *incident)
{
    struct lab *lab = context;

    if (lab->incident_count < LAB_CALLS_MAX) {
        struct lab_incident *kept = &lab->incidents[lab->incident_count++];

        kept->incident = *incident;
        snprintf(kept->instance, sizeof kept->instance, "%s", incident->instance);
        snprintf(kept->name, sizeof kept->name, "%s", incident->name ? incident->name : "(null)");
        snprintf(kept->key, sizeof kept->key, "%s", incident->key ? incident->key : "");
        snprintf(kept->text, sizeof kept->text, "%s", incident->text);
    }
}

static inline size_t lab_incidents(const struct lab *lab, enum det_incident_kind kind)
{
    size_t count = 0;

    for (size_t i = 0; i < lab->incident_count; i++)
        count += lab->incidents[i].incident.kind == kind;
    return count;
}

static inline void lab_runtime_open(struct lab *lab)
{
    lab->options.world = lab->world;
    lab->options.user = lab;
    lab->options.observer = lab;
    lab->options.observe = lab_observe;
    lab->options.incident = lab_report_error;
    assert_int_equal(det_runtime_open(lab->store, &lab->options, &lab->runtime, NULL), 0);
}

/* The process ends and another begins on the same store; what was pending goes on. */
static inline void lab_reopen(struct lab *lab)
{
    det_runtime_close(lab->runtime);
    lab_runtime_open(lab);
    assert_int_equal(det_runtime_serve(lab->runtime, &probe_machine, NULL), 0);
}

static inline struct lab *lab_open_with(
    uint64_t seed, const struct det_store_options *store_options,
    const struct det_runtime_options *options)
{
    struct det_store_options with =
        store_options ? *store_options : (struct det_store_options){ 0 };
    struct lab *lab = calloc(1, sizeof *lab);

    assert_non_null(lab);
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = seed }, &lab->sim, NULL), 0);
    lab->world = det_sim_world(lab->sim);
    with.world = lab->world;
    assert_int_equal(det_store_open_with("memory:", &with, &lab->store, NULL), 0);
    if (options != NULL)
        lab->options = *options;
    lab_runtime_open(lab);
    return lab;
}

static inline struct lab *lab_open(void)
{
    return lab_open_with(1, NULL, NULL);
}

static inline void lab_close(struct lab *lab)
{
    det_runtime_close(lab->runtime);
    det_store_close(lab->store);
    det_sim_close(lab->sim);
    free(lab);
}

static inline det_time lab_wall(const struct lab *lab)
{
    return det_world_now(lab->world, DET_CLOCK_WALL);
}

static inline void lab_advance(struct lab *lab, det_time span)
{
    assert_int_equal(det_sim_advance(lab->sim, span), 0);
}

static inline void lab_settle(struct lab *lab)
{
    assert_int_equal(det_sim_settle(lab->sim), 0);
}

static inline void lab_start(struct lab *lab, const char *instance)
{
    assert_int_equal(
        probe_instance_start(lab->runtime, instance, (struct probe_data){ 0 }, NULL), 0);
}

static inline struct det_sent lab_send(
    struct lab *lab, const char *instance, struct probe_event event)
{
    struct det_sent sent = { 0 };

    assert_int_equal(probe_send(lab->runtime, instance, event, &sent), 0);
    return sent;
}

static inline struct probe_event lab_go(void)
{
    return probe_go((struct load){ .amount = 7, .note = "seven" });
}

static inline struct probe_event lab_later(uint64_t letter)
{
    return probe_later((struct load){ .amount = letter });
}

static inline struct probe_event lab_work(uint64_t amount)
{
    return probe_work((struct load){ .amount = amount, .note = "work" });
}

/* Starts an instance and moves it to BUSY: sequence 1, visit 2. The log begins after that. */
static inline void lab_busy(struct lab *lab, const char *instance)
{
    lab_start(lab, instance);
    lab_send(lab, instance, lab_go());
    lab->log[0] = '\0';
}

static inline struct det_instance lab_get(struct lab *lab, const char *instance)
{
    struct det_instance ret;

    assert_int_equal(det_runtime_get(lab->runtime, &probe_machine, instance, &ret, NULL, NULL), 0);
    return ret;
}

static inline struct probe_data lab_data(struct lab *lab, const char *instance)
{
    struct det_instance ret;
    struct probe_data data;

    assert_int_equal(probe_instance_get(lab->runtime, instance, &ret, &data), 0);
    return data;
}

static inline struct det_runtime_counts lab_counts(struct lab *lab)
{
    struct det_runtime_counts counts;

    det_runtime_counts(lab->runtime, &counts);
    return counts;
}

/* Everything that can be asked about an instance, as text: equal texts, nothing has happened. */
struct lab_picture {
    char text[LAB_TEXT_MAX];
    size_t size;
};

static inline void DET_PRINTF(2, 3) lab_draw(struct lab_picture *picture, const char *format, ...)
{
    va_list list;
    int n;

    va_start(list, format);
    n = vsnprintf(
        picture->text + picture->size, sizeof picture->text - picture->size, format, list);
    va_end(list);
    if (n > 0 && picture->size + (size_t)n < sizeof picture->text)
        picture->size += (size_t)n;
}

static inline int lab_draw_event(void *context, const struct det_event_record *row)
{
    lab_draw(
        context, "event %llu %llu %u>%u %u %u %d [%s] [%s] %s %lld\n",
        (unsigned long long)row->sequence, (unsigned long long)row->visit, row->from, row->to,
        row->event, row->outcome, row->is_timeout, row->event_id ? row->event_id : "-",
        row->cause ? row->cause : "-", row->event_value ? "value" : "none", (long long)row->at);
    return 0;
}

static inline int lab_draw_timer(void *context, const struct det_timer_record *row)
{
    lab_draw(
        context, "timer [%s] %u %llu %lld\n", row->name, row->event, (unsigned long long)row->visit,
        (long long)row->due);
    return 0;
}

static inline int lab_draw_effect(void *context, const struct det_pending_effect *row)
{
    lab_draw(
        context, "effect %s %s %d %u %d [%s]\n", row->name, row->key, (int)row->state,
        row->attempts, row->last_error, row->reason ? row->reason : "-");
    return 0;
}

static inline void lab_draw_instance(
    struct lab_picture *picture, const struct det_instance *at, const struct probe_data *data)
{
    lab_draw(
        picture, "state %u previous %u sequence %llu visit %llu gotos %llu\n", at->state,
        at->previous, (unsigned long long)at->sequence, (unsigned long long)at->visit,
        (unsigned long long)at->transition_count);
    lab_draw(
        picture, "started %lld last %lld stopped %d [%s] deferred %zu pending %zu history",
        (long long)at->started_at, (long long)at->last_transition_at, at->is_stopped, at->reason,
        at->deferred_count, at->effects_pending);
    for (size_t i = 0; i < at->history_count; i++)
        lab_draw(picture, " %u", at->history[i]);
    lab_draw(
        picture, "\ndata %llu [%s] %u [%s]\n", (unsigned long long)data->amount, data->note,
        data->count, data->trail);
}

static inline struct lab_picture *lab_picture(struct lab *lab, const char *instance)
{
    struct lab_picture *picture = calloc(1, sizeof *picture);
    struct det_runtime *runtime = lab->runtime;
    struct det_instance at = { 0 };
    struct probe_data data = { 0 };
    int r;

    assert_non_null(picture);
    r = probe_instance_get(runtime, instance, &at, &data);
    if (r == DET_ERR_NOT_FOUND) {
        lab_draw(picture, "nothing");
        return picture;
    }
    assert_int_equal(r, 0);
    lab_draw_instance(picture, &at, &data);
    r = det_runtime_timers(runtime, &probe_machine, instance, lab_draw_timer, picture, NULL);
    assert_int_equal(r, 0);
    r = det_runtime_events(runtime, &probe_machine, instance, 0, lab_draw_event, picture, NULL);
    assert_int_equal(r, 0);
    r = det_runtime_effects(runtime, &probe_machine, instance, lab_draw_effect, picture, NULL);
    assert_int_equal(r, 0);
    return picture;
}

/* Compares with a picture taken before, and frees it. */
static inline void lab_assert_unchanged(
    struct lab *lab, const char *instance, struct lab_picture *before)
{
    struct lab_picture *after = lab_picture(lab, instance);

    assert_string_equal(after->text, before->text);
    free(after);
    free(before);
}

#endif
