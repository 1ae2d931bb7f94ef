/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* faulty_test.h - a store around another one that fails on request: before the commit, after it, or
 * without saying which. */
#ifndef DET_RUNTIME_FAULTY_TEST_H
#define DET_RUNTIME_FAULTY_TEST_H

#include <stdatomic.h>

#include <detent/driver/store.h>

#include "base/list.h"
#include "runtime/runtime_test.h"

enum fault {
    FAULT_NONE,
    FAULT_BEFORE, /* nothing is committed, and it says so with `code` */
    FAULT_AFTER,  /* it is committed, and it says `code` */
};

struct faulty {
    struct det_store store;
    struct det_store *inner;
    enum fault fault;
    int code;
    bool is_of_call;                  /* the call says `code`, not its commit */
    int skip;                         /* commits that pass before the fault */
    int times;                        /* faults, then it passes again */
    int loads_skipped, loads_failing; /* number of calls that pass, then of those that fail */
    int load_code;                    /* result of a failing load; 0: DET_ERR_IO */
    int answers_failing, listings_failing;
    int serves_failing;  /* with DET_ERR_BUSY */
    const char *damaged; /* this instance cannot be loaded */
    atomic_uint commits, loads, faults, listings, calls;
    atomic_size_t most;     /* commits in one call */
    det_time release_takes; /* in the simulated world */
    det_time commit_takes;  /* the same, for a call */
    det_time load_takes;    /* the next one */
    /* Chances in millionths, drawn from the simulation, if it is set. */
    struct det_sim *sim;
    uint32_t before_chance, after_chance, load_chance;
};

static inline struct faulty *faulty_of(struct det_store *store)
{
    return DET_CONTAINER(store, struct faulty, store);
}

static inline void faulty_close(struct det_store *store)
{
    det_store_close(faulty_of(store)->inner);
}

static inline int faulty_serve(
    struct det_store *store, const struct det_machine *machine, struct det_error *reterr)
{
    struct faulty *faulty = faulty_of(store);

    if (faulty->serves_failing > 0) {
        faulty->serves_failing--;
        return det_error_set(reterr, DET_ERR_BUSY, "the store is busy for long");
    }
    return faulty->inner->ops->serve(faulty->inner, machine, reterr);
}

static inline det_time faulty_now(struct det_store *store)
{
    struct det_store *inner = faulty_of(store)->inner;

    return inner->ops->now(inner);
}

static inline enum fault faulty_draw(struct faulty *faulty)
{
    faulty->commits++;
    if (faulty->sim && det_sim_chance(faulty->sim, faulty->before_chance))
        return FAULT_BEFORE;
    if (faulty->sim && det_sim_chance(faulty->sim, faulty->after_chance))
        return FAULT_AFTER;
    if (faulty->fault == FAULT_NONE || faulty->times <= 0)
        return FAULT_NONE;
    if (faulty->skip > 0) {
        faulty->skip--;
        return FAULT_NONE;
    }
    faulty->times--;
    return faulty->fault;
}

static inline int faulty_commit_one(struct faulty *faulty, struct det_store_commit *commit)
{
    enum fault fault = faulty_draw(faulty);
    int r;

    if (fault == FAULT_NONE)
        return faulty->inner->ops->commit(faulty->inner, &commit, 1);
    faulty->faults++;
    if (fault == FAULT_AFTER) {
        struct det_store_instance *handle = commit->instance;

        r = faulty->inner->ops->commit(faulty->inner, &commit, 1);
        commit->instance = handle;
        if (r < 0 || commit->result < 0)
            return r;
    }
    commit->actual = 77;
    r = faulty->code ? faulty->code : DET_ERR_IO;
    commit->result = faulty->is_of_call ? 0 : r;
    return faulty->is_of_call ? r : 0;
}

/* When the call fails, the commits after the fault are not made. */
static inline int faulty_commit(
    struct det_store *store, struct det_store_commit *const *commits, size_t count)
{
    struct faulty *faulty = faulty_of(store);
    int r = 0;

    assert_true(count > 0);
    faulty->calls++;
    if (faulty->commit_takes)
        wait_in(store->world, faulty->commit_takes);
    if (count > faulty->most)
        faulty->most = count;
    for (size_t i = 0; r == 0 && i < count; i++) {
        for (size_t k = 0; k < i; k++)
            assert_true(
                commits[k]->machine != commits[i]->machine ||
                strcmp(commits[k]->id, commits[i]->id) != 0);
        r = faulty_commit_one(faulty, commits[i]);
    }
    return r;
}

static inline int faulty_load(
    struct det_store *store, const struct det_machine *machine, const char *id,
    const struct det_store_rows *rows, struct det_store_loaded *ret)
{
    struct faulty *faulty = faulty_of(store);
    det_time takes = faulty->load_takes;

    faulty->loads++;
    if (takes) {
        faulty->load_takes = 0;
        wait_in(store->world, takes);
    }
    if (faulty->loads_skipped > 0) {
        faulty->loads_skipped--;
    } else if (faulty->loads_failing > 0) {
        faulty->loads_failing--;
        return faulty->load_code ? faulty->load_code : DET_ERR_IO;
    }
    if (faulty->sim && det_sim_chance(faulty->sim, faulty->load_chance))
        return DET_ERR_IO;
    if (faulty->damaged && strcmp(id, faulty->damaged) == 0)
        return DET_ERR_CORRUPT;
    return faulty->inner->ops->load(faulty->inner, machine, id, rows, ret);
}

static inline void faulty_release(struct det_store *store, struct det_store_instance *instance)
{
    struct faulty *faulty = faulty_of(store);

    if (faulty->release_takes)
        wait_in(store->world, faulty->release_takes);
    faulty->inner->ops->release(faulty->inner, instance);
}

static inline int faulty_answer(
    struct det_store *store, struct det_store_instance *instance, const char *event_id,
    struct det_store_answer *ret)
{
    struct faulty *faulty = faulty_of(store);

    if (faulty->answers_failing > 0) {
        faulty->answers_failing--;
        return DET_ERR_IO;
    }
    return faulty->inner->ops->answer(faulty->inner, instance, event_id, ret);
}

static inline int faulty_events(
    struct det_store *store, struct det_store_instance *instance, uint64_t after,
    int (*visit)(void *context, const struct det_store_event *row), void *context)
{
    struct det_store *inner = faulty_of(store)->inner;

    return inner->ops->events(inner, instance, after, visit, context);
}

static inline int faulty_list(
    struct det_store *store, const struct det_machine *machine, const struct det_store_query *query,
    int (*visit)(void *context, const struct det_store_listed *row), void *context)
{
    struct det_store *inner = faulty_of(store)->inner;

    return inner->ops->list(inner, machine, query, visit, context);
}

static inline int faulty_due(
    struct det_store *store, const struct det_machine *machine,
    const struct det_store_due_query *query,
    int (*visit)(void *context, const struct det_store_due *row), void *context, det_time *ret_next)
{
    struct faulty *faulty = faulty_of(store);
    struct det_store *inner = faulty->inner;

    faulty->listings++;
    if (faulty->listings_failing > 0) {
        faulty->listings_failing--;
        return DET_ERR_IO;
    }
    return inner->ops->due(inner, machine, query, visit, context, ret_next);
}

#define FAULTY_OPS(quick)                                                                         \
    {                                                                                             \
        .is_quick = (quick), .close = faulty_close, .now = faulty_now, .serve = faulty_serve,     \
        .commit = faulty_commit, .load = faulty_load, .release = faulty_release,                  \
        .answer = faulty_answer, .events = faulty_events, .list = faulty_list, .due = faulty_due, \
    }

/* Does not block if the inner one does not, or acts like a store that blocks. */
static const struct det_store_ops faulty_quick_ops = FAULTY_OPS(true);
static const struct det_store_ops faulty_slow_ops = FAULTY_OPS(false);

/* Puts it around the fixture's store, which must not be in use. */
static inline void faulty_wrap(struct faulty *faulty, struct fixture *f, bool is_quick)
{
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    *faulty = (struct faulty){
        .store = { .ops = is_quick ? &faulty_quick_ops : &faulty_slow_ops,
                   .world = det_sim_world(f->sim) },
        .inner = f->store,
    };
    f->store = &faulty->store;
    fixture_reopen(f, (struct det_runtime_options){ 0 });
}

static inline void faulty_set(struct faulty *faulty, enum fault fault, int code, int skip)
{
    faulty->fault = fault;
    faulty->code = code;
    faulty->skip = skip;
    faulty->times = 1;
}

#endif
