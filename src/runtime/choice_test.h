/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* choice_test.h - the machine of choice_test.fsm in a laboratory.
 *
 * Every function of the machine writes its name into the log, guards with where their alternative
 * leads; the guards that lab->yes names say yes. */
#ifndef DET_RUNTIME_CHOICE_TEST_H
#define DET_RUNTIME_CHOICE_TEST_H

#include <detent/detent.h>
#include <detent/sim.h>

#define FSM_SPEC "runtime/choice_test.fsm"
#include <detent/fsm/declare.h>
#define FSM_SPEC "runtime/choice_test.fsm"
#include <detent/fsm/define.h>

#include "lib/test.h"

struct lab {
    struct det_sim *sim;
    struct det_store *store;
    struct det_runtime *runtime;
    const char *yes;     /* names of guards, with blanks between them */
    const char *forgets; /* the guard that says yes once; NULL: none */
    det_time nap;        /* duration of every guard */
    bool is_producing;
    int incident_code; /* of the last one; 0: none */
    char log[512];
};

static inline void note_word(struct lab *lab, const char *word)
{
    size_t used = strlen(lab->log);

    snprintf(lab->log + used, sizeof lab->log - used, used > 0 ? " %s" : "%s", word);
}

/* Lets time pass, with public means only. */
static inline void nap(struct lab *lab)
{
    struct det_world *world = det_sim_world(lab->sim);
    det_time until = det_world_now(world, DET_CLOCK_MONOTONIC) + lab->nap;
    struct det_loop *loop;

    if (lab->nap == 0 || det_loop_open(world, NULL, &loop) < 0)
        return;
    while (det_world_now(world, DET_CLOCK_MONOTONIC) < until)
        if (det_loop_turn(loop, until) < 0)
            break;
    det_loop_close(loop);
}

static inline bool ask(const char *name, const struct det_move *move)
{
    struct lab *lab = move->user;
    char word[64];

    snprintf(word, sizeof word, "%s>%s", name, pick_state_name(move->to));
    note_word(lab, word);
    nap(lab);
    if (strstr(lab->yes, name) == NULL)
        return false;
    if (lab->forgets != NULL && strcmp(lab->forgets, name) == 0)
        lab->yes = "";
    return true;
}

#define LAB_GUARD(name)                                                                            \
    static bool name(                                                                              \
        const struct det_move *move, const struct pick_data *data, const struct pick_event *event) \
    {                                                                                              \
        (void)data;                                                                                \
        (void)event;                                                                               \
        return ask(#name, move);                                                                   \
    }
#define LAB_HOOK(name)                                                                             \
    static int name(                                                                               \
        const struct det_move *move, const struct pick_data *data, const struct pick_event *event) \
    {                                                                                              \
        (void)data;                                                                                \
        (void)event;                                                                               \
        note_word(move->user, #name);                                                              \
        return 0;                                                                                  \
    }

LAB_GUARD(is_one)
LAB_GUARD(is_two)
LAB_GUARD(is_three)
LAB_HOOK(exit_idle)
LAB_HOOK(on_left)
LAB_HOOK(on_right)
LAB_HOOK(enter_left)
LAB_HOOK(enter_right)

static void add_one(struct pick_data *data, const struct pick_event *event)
{
    (void)event;
    data->count++;
}

static void add_hundred(struct pick_data *data, const struct pick_event *event)
{
    (void)event;
    data->count += 100;
}

static int job_left(
    struct det_effect_call *call, const struct pick_data *data, const struct pick_event *event,
    struct pick_event *ret)
{
    (void)data;
    (void)event;
    (void)ret;
    note_word(call->move.user, "job_left");
    return DET_EFFECT_DONE;
}

static int job_right(
    struct det_effect_call *call, const struct pick_data *data, const struct pick_event *event,
    struct pick_event *ret)
{
    struct lab *lab = call->move.user;

    (void)data;
    (void)event;
    note_word(lab, "job_right");
    *ret = pick_worked();
    return lab->is_producing ? DET_EFFECT_PRODUCED : DET_EFFECT_DONE;
}

static inline void receive_incident(void *context, const struct det_incident *incident)
{
    struct lab *lab = context;

    lab->incident_code = incident->code;
}

static inline int open_in(struct lab *lab, const struct det_allocator *allocator)
{
    struct det_store_options kept = { .allocator = allocator };
    struct det_runtime_options options = {
        .allocator = allocator,
        .user = lab,
        .observer = lab,
        .incident = receive_incident,
    };
    int r;

    *lab = (struct lab){ .yes = "" };
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = 3 }, &lab->sim, NULL), 0);
    kept.world = options.world = det_sim_world(lab->sim);
    r = det_store_open_with("memory:", &kept, &lab->store, NULL);
    return r < 0 ? r : det_runtime_open(lab->store, &options, &lab->runtime, NULL);
}

static inline void close_lab(struct lab *lab)
{
    det_runtime_close(lab->runtime);
    det_store_close(lab->store);
    det_sim_close(lab->sim);
}

/* With an instance in IDLE. */
static inline void open_lab(struct lab *lab)
{
    assert_int_equal(open_in(lab, NULL), 0);
    assert_int_equal(
        pick_instance_start(lab->runtime, "a", (struct pick_data){ .amount = 1 }, NULL), 0);
}

static inline struct pick_event go(void)
{
    return pick_go((struct load){ .amount = 7 });
}

static inline void send(struct lab *lab, const char *yes, struct pick_event event)
{
    lab->log[0] = '\0';
    lab->yes = yes;
    assert_int_equal(pick_send(lab->runtime, "a", event, NULL), 0);
    assert_int_equal(det_sim_settle(lab->sim), 0);
}

static inline struct det_instance get(struct lab *lab, struct pick_data *data)
{
    struct det_instance at;

    assert_int_equal(pick_instance_get(lab->runtime, "a", &at, data), 0);
    return at;
}

static inline int list_timer(void *context, const struct det_timer_record *row)
{
    char *list = context;

    snprintf(list + strlen(list), 64 - strlen(list), "[%s]", row->name);
    return 0;
}

static inline void assert_timers(struct lab *lab, const char *expected)
{
    char list[64] = "";

    assert_int_equal(
        det_runtime_timers(lab->runtime, &pick_machine, "a", list_timer, list, NULL), 0);
    assert_string_equal(list, expected);
}

#endif
