/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_test.h - a laboratory for tasks: a world (simulated or real), a supervisor in it, an
 * audit that keeps every event, and work that does what a script says.
 *
 * It was written from the headers alone. A script is a string, one letter for each attempt, the
 * last one again and again:
 *
 *     o  succeeds                     h  waits until it is cancelled, and obeys
 *     f  fails with a text            l  waits until it is cancelled, and says that it succeeded
 *     p  fails with a code only       w  waits for `span`, or until it is cancelled; succeeds
 *     F  fails for ever (fatal)       s  ignores its cancel until it is told to succeed
 *     c  claims to be cancelled       r  blocks for `span` whatever happens; succeeds (functions)
 *     t  claims to be timed out       x  answers what no function may answer
 *     b  blocks until it is told, which a step must never do: it keeps the loop
 *
 * Nothing is asserted on a second thread. Times are virtual: nothing waits in a simulated world. */
#ifndef DET_TASK_BEHAVIOUR_TEST_H
#define DET_TASK_BEHAVIOUR_TEST_H

#include "task/behaviour_lab_test.h"

#define LAB_RUNS_MAX 64

enum lab_kind { LAB_FUNCTION, LAB_STEP, LAB_KIND_COUNT };

struct script {
    struct lab *lab;
    const char *acts;
    det_time span;
    det_task_id id;
    enum lab_kind kind;
    int32_t exit_code;
    bool has_exit_code;
    bool reported; /* see 's' */

    /* What happened. */
    atomic_bool overlapped; /* two attempts at the same time */
    atomic_bool is_inside;
    atomic_uint runs; /* attempts that began */
    atomic_uint cancels;
    atomic_uint released;
    uint32_t attempt;
    det_time wake_at;
    det_time begun[LAB_RUNS_MAX];
};

static inline int script_block(struct script *script)
{
    struct lab *lab = script->lab;
    int r = 0;

    det_mutex_lock(lab->world, lab->mutex);
    while (!script->reported && r == 0)
        r = det_condition_wait(lab->world, lab->changed, lab->mutex, DET_NEVER);
    det_mutex_unlock(lab->world, lab->mutex);
    return r;
}

static inline bool script_was_signalled(struct script *script)
{
    bool reported;

    det_mutex_lock(script->lab->world, script->lab->mutex);
    reported = script->reported;
    det_mutex_unlock(script->lab->world, script->lab->mutex);
    return reported;
}

static inline char script_act(const struct script *script, uint32_t attempt)
{
    size_t length = strlen(script->acts);

    return script->acts[attempt <= length ? attempt - 1 : length - 1];
}

static inline void script_begin(struct script *script, uint32_t attempt)
{
    unsigned run = atomic_fetch_add(&script->runs, 1);
    unsigned active = atomic_fetch_add(&script->lab->active, 1) + 1;
    unsigned peak = atomic_load(&script->lab->active_peak);

    while (active > peak && !atomic_compare_exchange_weak(&script->lab->active_peak, &peak, active))
        ;
    if (atomic_exchange(&script->is_inside, true))
        atomic_store(&script->overlapped, true);
    script->attempt = attempt;
    script->wake_at = 0;
    if (run < LAB_RUNS_MAX)
        script->begun[run] = lab_now(script->lab);
}

static inline int script_end(struct script *script, int result)
{
    atomic_store(&script->is_inside, false);
    atomic_fetch_sub(&script->lab->active, 1);
    return result;
}

/* The acts that end at once; 1 for the others. */
static inline int script_answer(struct script *script, struct det_task_context *context, char act)
{
    if (script->has_exit_code)
        det_task_set_exit_code(context, script->exit_code);
    switch (act) {
    case 'o':
        return 0;
    case 'f':
        return det_task_fail(context, DET_ERR_IO, "trouble %u", det_task_attempt(context));
    case 'p':
        return DET_ERR_IO;
    case 'F':
        return det_task_fatal(context, DET_ERR_CORRUPT, "doom %u", det_task_attempt(context));
    case 'c':
        return DET_ERR_CANCELLED;
    case 't':
        return DET_ERR_TIMEOUT;
    case 'x':
        return 4711;
    default:
        return 1;
    }
}

static inline int script_function(struct det_task_context *context, void *argument)
{
    struct script *script = argument;
    struct lab *lab = script->lab;
    char act = script_act(script, det_task_attempt(context));
    int r;

    script_begin(script, det_task_attempt(context));
    r = script_answer(script, context, act);
    if (r != 1)
        return script_end(script, r);
    if (act == 'w') {
        r = det_task_wait(context, lab_now(lab) + script->span);
    } else if (act == 'r') {
        r = det_world_sleep(lab->world, script->span);
    } else if (act == 's' || act == 'b') {
        r = script_block(script);
    } else {
        r = det_task_wait(context, DET_NEVER);
        if (act == 'l')
            r = 0;
    }
    if (det_task_is_cancelled(context))
        atomic_fetch_add(&script->cancels, 1);
    return script_end(script, r);
}

static inline int script_step(struct det_task_context *context, void *argument)
{
    struct script *script = argument;
    char act = script_act(script, det_task_attempt(context));
    int r;

    if (script->attempt != det_task_attempt(context)) {
        script_begin(script, det_task_attempt(context));
        if (act == 'w')
            script->wake_at = lab_now(script->lab) + script->span;
    }
    r = script_answer(script, context, act);
    if (r != 1)
        return script_end(script, r);
    if (act == 'b')
        return script_end(script, script_block(script));
    if (act == 's' && script_was_signalled(script))
        return script_end(script, DET_STEP_DONE);
    if (act != 's' && det_task_is_cancelled(context)) {
        atomic_fetch_add(&script->cancels, 1);
        return script_end(script, act == 'l' ? DET_STEP_DONE : DET_ERR_CANCELLED);
    }
    if (act == 'w') {
        if (lab_now(script->lab) >= script->wake_at)
            return script_end(script, DET_STEP_DONE);
        det_task_wake_at(context, script->wake_at);
    }
    return DET_STEP_WAIT;
}

static inline void script_release(void *argument)
{
    struct script *script = argument;

    atomic_fetch_add(&script->released, 1);
}

static inline struct det_task_spec script_spec(
    struct script *script, const char *name, const struct det_policy *policy)
{
    struct det_task_spec spec = { .name = name, .argument = script, .release = script_release };

    if (script->kind == LAB_STEP)
        spec.step = script_step;
    else
        spec.function = script_function;
    if (policy != NULL)
        spec.policy = *policy;
    return spec;
}

/* One attempt, no matter how it ends. */
static const struct det_policy lab_once = { .restart = DET_RESTART_NEVER };

/* The laboratory. */

/* `lab->sim` and `lab->world` are set, and `lab->loop` if there is one. */
static inline void lab_set_up(struct lab *lab, const struct det_tasks_options *options)
{
    struct det_tasks_options filled = options ? *options : (struct det_tasks_options){ 0 };
    struct det_subscriber audit = {
        .name = "audit", .delivery = DET_DELIVER_LOSSLESS, .on_event = lab_on_event, .user = lab
    };
    struct det_error error = { 0 };
    int r;

    det_test_memory_init(&lab->memory);
    assert_int_equal(det_mutex_open(lab->world, &lab->mutex), 0);
    assert_int_equal(det_condition_open(lab->world, &lab->changed), 0);
    filled.world = lab->world;
    filled.allocator = &lab->memory.allocator;
    filled.loop = lab->loop;
    filled.on_end = lab_on_end;
    filled.on_empty = lab_on_empty;
    filled.user = lab;
    r = det_tasks_open(&filled, &lab->tasks, &error);
    if (r < 0)
        fail_msg("open: %s", error.text);
    assert_int_equal(det_bus_subscribe(det_tasks_bus(lab->tasks), &audit, &lab->audit, NULL), 0);
}

static inline struct lab *lab_new(uint64_t seed)
{
    struct lab *lab = calloc(1, sizeof *lab);

    assert_non_null(lab);
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = seed }, &lab->sim, NULL), 0);
    lab->world = det_sim_world(lab->sim);
    return lab;
}

/* A simulated world; the supervisor has a thread of its own. */
static inline struct lab *lab_open_seed(uint64_t seed, const struct det_tasks_options *options)
{
    struct lab *lab = lab_new(seed);

    lab_set_up(lab, options);
    return lab;
}

/* By the seed of the environment, so that all that holds can be tried over many of them:
 * LAB_SEED=7 task.behaviour_slot_test */
static inline struct lab *lab_open(const struct det_tasks_options *options)
{
    const char *text = getenv("LAB_SEED"); /* NOLINT(concurrency-mt-unsafe): one thread */

    return lab_open_seed(text ? strtoull(text, NULL, 10) : 1, options);
}

/* A simulated world; the supervisor lives on lab->loop, which the first thread turns. */
static inline struct lab *lab_open_on_loop(const struct det_tasks_options *options)
{
    struct lab *lab = lab_new(1);

    assert_int_equal(det_loop_open(lab->world, NULL, &lab->loop), 0);
    lab_set_up(lab, options);
    return lab;
}

static inline struct lab *lab_open_real(const struct det_tasks_options *options)
{
    struct lab *lab = calloc(1, sizeof *lab);

    assert_non_null(lab);
    lab->world = det_world_real();
    lab_set_up(lab, options);
    return lab;
}

/* Lets everything happen that can happen now. */
static inline void lab_settle(struct lab *lab)
{
    if (lab->loop == NULL) {
        assert_int_equal(det_sim_settle(lab->sim), 0);
        return;
    }
    for (unsigned quiet = 0, turns = 0; quiet < 2; turns++) {
        int ran = det_loop_turn(lab->loop, 0);

        assert_true(ran >= 0 && turns < 1000000);
        assert_int_equal(det_sim_settle(lab->sim), 0);
        quiet = ran == 0 ? quiet + 1 : 0;
    }
}

static inline void lab_advance(struct lab *lab, det_time span)
{
    assert_null(lab->loop);
    assert_int_equal(det_sim_advance(lab->sim, span), 0);
}

static inline void lab_close(struct lab *lab)
{
    det_tasks_close(lab->tasks);
    det_loop_close(lab->loop);
    det_condition_close(lab->world, lab->changed);
    det_mutex_close(lab->world, lab->mutex);
    det_test_memory_deinit(&lab->memory);
    if (lab->sim != NULL)
        det_sim_close(lab->sim);
    free(lab->events);
    free(lab);
}

/* Adds the script under a name; the test fails when it is not admitted. */
static inline struct det_waiter *lab_add(
    struct lab *lab, struct script *script, const char *name, const struct det_policy *policy)
{
    struct det_task_spec spec;
    struct det_waiter *waiter = NULL;
    struct det_error error = { 0 };
    int r;

    script->lab = lab;
    spec = script_spec(script, name, policy);
    r = det_tasks_add(lab->tasks, &spec, &waiter, &script->id, &error);
    if (r < 0)
        fail_msg("add %s: %s", name, error.text);
    assert_non_null(waiter);
    assert_true(script->id > 0);
    return waiter;
}

/* Submits the script to a slot; any answer. */
static inline int lab_submit(
    struct lab *lab, const char *slot, enum det_admission admission, struct script *script,
    const char *name, struct det_admitted *ret)
{
    struct det_task_spec spec;
    int r;

    script->lab = lab;
    spec = script_spec(script, name, &lab_once);
    *ret = (struct det_admitted){ 0 };
    r = det_slot_submit(
        lab->tasks, &(struct det_submission){ .slot = slot, .admission = admission, .task = &spec },
        NULL, ret, NULL);
    if (r == 0 || r == DET_ERR_REFUSED)
        script->id = ret->id;
    return r;
}

/* Waits for the end, for ever, and closes the waiter. */
static inline struct det_task_end lab_end(struct det_waiter *waiter)
{
    struct det_task_end end = { 0 };

    assert_int_equal(det_waiter_wait(waiter, DET_NEVER, &end), 0);
    det_waiter_close(waiter);
    return end;
}

/* Adds the script, and waits for its end. */
static inline struct det_task_end lab_run(
    struct lab *lab, struct script *script, const char *name, const struct det_policy *policy)
{
    return lab_end(lab_add(lab, script, name, policy));
}

/* Lets an 's' go on. */
static inline void lab_report(struct lab *lab, struct script *script)
{
    det_mutex_lock(lab->world, lab->mutex);
    script->reported = true;
    det_condition_broadcast(lab->world, lab->changed);
    det_mutex_unlock(lab->world, lab->mutex);
    if (script->kind == LAB_STEP)
        (void)!det_tasks_wake(lab->tasks, script->id);
}

/* The end that on_end() told of an id; the test fails unless it came exactly once. */
static inline struct det_task_end lab_end_of(struct lab *lab, det_task_id id)
{
    struct det_task_end found = { 0 };
    size_t count = 0;

    det_mutex_lock(lab->world, lab->mutex);
    for (size_t i = 0; i < lab->end_count; i++) {
        if (lab->ends[i].id == id) {
            found = lab->ends[i];
            count++;
        }
    }
    det_mutex_unlock(lab->world, lab->mutex);
    assert_int_equal(count, 1);
    return found;
}

/* What one look at a task shows. */
struct lab_inspect {
    det_task_id id;
    char state[16];
    uint32_t attempt, failures;
    bool is_removing, was_found;
};

static inline int lab_inspect_at(void *user, const struct det_task_info *info)
{
    struct lab_inspect *look = user;

    look->id = info->id;
    snprintf(look->state, sizeof look->state, "%s", info->state);
    look->attempt = info->attempt;
    look->failures = info->failures;
    look->is_removing = info->is_removing;
    look->was_found = true;
    return 0;
}

static inline struct lab_inspect lab_inspect(struct lab *lab, det_task_id id)
{
    struct lab_inspect look = { 0 };
    int r = det_tasks_get(lab->tasks, id, lab_inspect_at, &look);

    assert_true(look.was_found ? r >= 0 : r == 0 || r == DET_ERR_NOT_FOUND);
    return look;
}

/* Each kind of work that has no program of its own; the scripts are zero but for it. */
#define FOR_EACH_KIND(kind) \
    for (enum lab_kind kind = LAB_FUNCTION; kind < LAB_KIND_COUNT; kind = (enum lab_kind)(kind + 1))

#endif
