/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stores_test.h - one machine with the instance o-1 in each kind of store, and its first timer. */
#ifndef DET_RUNTIME_STORES_TEST_H
#define DET_RUNTIME_STORES_TEST_H

#include "lib/shared_store.h"
#include "runtime/runtime_test.h"

struct bench {
    struct fixture *f;
    struct det_shared *shared;
    char *folder;
};

static const struct det_runtime_options options = { .effects = { .jitter_percent = UINT32_MAX } };

static inline void open_sqlite(struct bench *bench)
{
    char url[600];

    bench->folder = det_test_folder();
    snprintf(url, sizeof url, "sqlite:%s/test.db", bench->folder);
    assert_int_equal(
        det_store_open_with(
            url, &(struct det_store_options){ .world = det_sim_world(bench->f->sim) },
            &bench->f->store, &bench->f->error),
        0);
}

static inline void bench_open(
    struct bench *bench, struct det_machine *(*machine)(void), const char *kind)
{
    struct fixture *f = fixture_open(options);

    *bench = (struct bench){ .f = f };
    if (strcmp(kind, "memory") != 0) {
        det_runtime_close(f->runtime);
        f->runtime = NULL;
        det_store_close(f->store);
        if (strcmp(kind, "sqlite") == 0) {
            open_sqlite(bench);
        } else {
            bench->shared = det_shared_open(f->sim, NULL);
            f->store = det_shared_node(bench->shared);
        }
        fixture_reopen(f, options);
    }
    det_machine_close(f->order);
    f->order = machine();
    assert_int_equal(start(f, "o-1"), 0);
}

static inline void bench_close(struct bench *bench)
{
    det_runtime_close(bench->f->runtime);
    bench->f->runtime = NULL;
    if (bench->shared) {
        det_store_close(bench->f->store);
        bench->f->store = NULL;
        det_shared_close(bench->shared);
    }
    fixture_close(bench->f);
    if (bench->folder)
        det_test_folder_remove(bench->folder);
}

static inline void in_each_store(
    struct det_machine *(*machine)(void), void (*run)(struct fixture *f))
{
    static const char *const kinds[] = { "memory", "sqlite", "shared" };
    struct bench bench;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        bench_open(&bench, machine, kinds[i]);
        run(bench.f);
        bench_close(&bench);
    }
}

static inline void restart(struct fixture *f, struct det_runtime_options with)
{
    fixture_reopen(f, with);
    assert_int_equal(det_runtime_serve(f->runtime, f->order, &f->error), 0);
}

/* A turn of a timer of o-1 in the memory store: what comes before it, how long it takes, and what
 * holds after it with memory enough again. */
struct turn {
    struct det_machine *(*machine)(void);
    void (*prepare)(struct fixture *f);
    det_time span;
    void (*check)(struct fixture *f);
};

/* The n-th allocation of the turn fails. Returns whether there was one. */
static inline bool turn_without_memory(const struct turn *turn, uint64_t number)
{
    struct det_runtime_options poor = options;
    struct det_test_memory memory;
    struct bench bench;
    bool has_failed;

    det_test_memory_init(&memory);
    bench_open(&bench, turn->machine, "memory");
    poor.allocator = &memory.allocator;
    restart(bench.f, poor);
    turn->prepare(bench.f);
    (void)det_test_memory_fail(&memory, number, false);
    advance(bench.f, turn->span);
    has_failed = det_test_memory_fail(&memory, 0, false);
    turn->check(bench.f);
    bench_close(&bench);
    det_test_memory_deinit(&memory);
    return has_failed;
}

static inline void each_allocation_fails(const struct turn *turn)
{
    uint64_t number = 1;

    while (turn_without_memory(turn, number))
        number++;
    assert_true(number > 1);
}

static struct det_timer_record record;
static char reason[DET_REASON_MAX + 1];

static inline int take_record(void *context, const struct det_timer_record *row)
{
    (void)context;
    record = *row;
    snprintf(reason, sizeof reason, "%s", row->reason ? row->reason : "");
    return 1;
}

/* False: not available. */
static inline bool inspect(struct fixture *f)
{
    memset(&record, 0, sizeof record);
    return det_runtime_timers(f->runtime, f->order, "o-1", take_record, NULL, NULL) == 1;
}

#endif
