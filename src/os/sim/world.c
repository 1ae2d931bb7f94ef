/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* world.c - the simulated world: its table of operations, its options, its trace. */
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/reserved.h"
#include "os/real.h"
#include "os/sim/simulation.h"

#define SCHEDULE_STREAM    1
#define USER_STREAM        2

#define PREEMPT_DEFAULT    100000
#define STEPS_MAX_DEFAULT  100000000
#define STACK_SIZE_DEFAULT ((size_t)256 * 1024)
#define STACK_SIZE_MAX     ((size_t)1 << 30)
/* 2026-01-01T00:00:00Z */
#define WALL_DEFAULT (1767225600 * DET_SECOND)
/* Not 0, which as a deadline means "do not wait". */
#define MONOTONIC_START DET_SECOND

static det_time sim_now(struct det_world *world, enum det_clock clock)
{
    const struct det_sim *sim = det_sim_of(world);

    switch (clock) {
    case DET_CLOCK_MONOTONIC:
    case DET_CLOCK_TICK:
        return sim->now;
    case DET_CLOCK_BOOT:
        return sim->now + sim->boot_offset;
    case DET_CLOCK_WALL:
        return sim->now + sim->wall_offset;
    }
    det_assert_failed("no such clock", __FILE__, __LINE__);
}

static void sim_random(struct det_world *world, void *target, size_t size)
{
    struct det_sim *sim = det_sim_of(world);
    char *at = target;

    while (size) {
        uint64_t number = det_sim_random(sim);
        size_t count = size < sizeof number ? size : sizeof number;

        memcpy(at, &number, count);
        at += count;
        size -= count;
    }
}

static const struct det_world_ops operations = {
    .version = DET_WORLD_VERSION,
    .name = "sim",
    .now = sim_now,
    .random = sim_random,
    .thread_start = det_sim_thread_start,
    .thread_join = det_sim_thread_join,
    .thread_self = det_sim_thread_self,
    .preempt = det_sim_preempt,
    .mutex_open = det_sim_mutex_open,
    .mutex_close = det_sim_mutex_close,
    .mutex_lock = det_sim_mutex_lock,
    .mutex_unlock = det_sim_mutex_unlock,
    .condition_open = det_sim_condition_open,
    .condition_close = det_sim_condition_close,
    .condition_wait = det_sim_condition_wait,
    .condition_signal = det_sim_condition_signal,
    .condition_broadcast = det_sim_condition_broadcast,
    .poller_open = det_sim_poller_open,
    .poller_close = det_sim_poller_close,
    .poller_watch = det_sim_poller_watch,
    .poller_wait = det_sim_poller_wait,
    .poller_wake = det_sim_poller_wake,
    .poller_descriptor = det_sim_poller_descriptor,
    .file_open = det_sim_file_open,
    .file_close = det_sim_file_close,
    .file_read = det_sim_file_read,
    .file_write = det_sim_file_write,
    .file_sync = det_sim_file_sync,
    .file_truncate = det_sim_file_truncate,
    .file_size = det_sim_file_size,
    .file_rename = det_sim_file_rename,
    .file_remove = det_sim_file_remove,
    .folder_sync = det_sim_folder_sync,
    .folder_make = det_sim_folder_make,
    .file_lock = det_sim_file_lock,
    .file_forget = det_sim_file_forget,
    .file_share = det_sim_file_share,
    .path_is_remote = det_sim_path_is_remote,
    .self_number = det_sim_self_number,
    .process_start = det_sim_process_start,
    .process_kill = det_sim_process_kill,
    .process_wait = det_sim_process_wait,
    .process_number = det_sim_process_number,
    .process_descriptor = det_sim_process_descriptor,
    .process_stream = det_sim_process_stream,
    .process_read = det_sim_process_read,
    .process_close = det_sim_process_close,
};

static bool faults_are_valid(const struct det_sim_disk_faults *faults)
{
    return faults->read_error <= DET_CHANCE_ONE && faults->write_error <= DET_CHANCE_ONE &&
           faults->sync_error <= DET_CHANCE_ONE && faults->no_space <= DET_CHANCE_ONE;
}

static int check_options(const struct det_sim_options *options, struct det_error *reterr)
{
    int r = det_reserved_check(options->reserved, "a simulation", reterr);

    if (r < 0)
        return r;
    if (options->preempt > DET_CHANCE_ONE && options->preempt != UINT32_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "`preempt` is %u millionths; use at most 1000000, or UINT32_MAX for never",
            options->preempt);
    if (!faults_are_valid(&options->disk))
        return det_error_set(
            reterr, DET_ERR_INVALID, "the probability of a disk fault exceeds 1000000 millionths");
    if (options->wall < 0)
        return det_error_set(reterr, DET_ERR_INVALID, "the wall clock would start before 1970");
    if (options->stack_size > STACK_SIZE_MAX)
        return det_error_set(
            reterr, DET_ERR_LIMIT, "stack_size is %zu bytes; use at most %zu", options->stack_size,
            STACK_SIZE_MAX);
    return 0;
}

/* Zero selects the default of every option. */
static void set_options(struct det_sim *sim, const struct det_sim_options *options)
{
    sim->options = *options;
    sim->allocator = options->allocator;
    if (!options->wall)
        sim->options.wall = WALL_DEFAULT;
    if (!options->preempt)
        sim->options.preempt = PREEMPT_DEFAULT;
    if (options->preempt == UINT32_MAX)
        sim->options.preempt = 0;
    if (!options->steps_max)
        sim->options.steps_max = STEPS_MAX_DEFAULT;
    if (!options->stack_size)
        sim->options.stack_size = STACK_SIZE_DEFAULT;
}

static void init_first_thread(struct det_sim *sim)
{
    sim->owner = det_real_thread_self(NULL);
    sim->current = &sim->first;
    sim->first.sim = sim;
    sim->first.state = THREAD_RUNNING;
    det_list_init(&sim->first.waiting);
    det_list_init(&sim->first.joiners);
    det_heap_node_init(&sim->first.deadline);
}

/* The first thread waits too, and waiting must not fail. */
static int reserve_for_first(struct det_sim *sim)
{
    sim->runnable = DET_NEW_ARRAY(sim->allocator, 1, struct det_thread *);
    if (!sim->runnable)
        return DET_ERR_NO_MEMORY;
    sim->runnable_capacity = 1;
    return det_heap_reserve(&sim->deadlines, 1);
}

int det_sim_open(
    const struct det_sim_options *options, struct det_sim **ret, struct det_error *reterr)
{
    static const struct det_sim_options defaults;
    struct det_sim *sim;
    int r;

    options = options ? options : &defaults;
    r = check_options(options, reterr);
    if (r < 0)
        return r;
    sim = DET_NEW(options->allocator, struct det_sim);
    if (!sim)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a simulation");
    sim->world.ops = &operations;
    set_options(sim, options);
    sim->now = MONOTONIC_START;
    sim->wall_offset = sim->options.wall - sim->now;
    det_list_init(&sim->threads);
    det_list_init(&sim->files);
    det_list_init(&sim->pollers);
    det_list_init(&sim->programs);
    det_list_init(&sim->processes);
    init_first_thread(sim);
    det_heap_init(&sim->deadlines, sim->allocator);
    det_chance_init(&sim->schedule_chance, options->seed, SCHEDULE_STREAM);
    det_chance_init(&sim->user_chance, options->seed, USER_STREAM);
    det_disk_init(&sim->disk, sim->allocator, options->seed);
    sim->disk.faults = options->disk;
    r = reserve_for_first(sim);
    if (r < 0) {
        det_sim_close(sim);
        return det_error_set(reterr, r, "out of memory for a simulation");
    }
    *ret = sim;
    return 0;
}

void det_sim_close(struct det_sim *sim)
{
    if (!sim)
        return;
    det_assert(sim->current == &sim->first);
    det_assert(
        sim->failed || (!sim->threads_count && det_list_is_empty(&sim->processes) &&
                        det_list_is_empty(&sim->files)));
    while (!det_list_is_empty(&sim->threads))
        det_schedule_free(sim, DET_CONTAINER(sim->threads.next, struct det_thread, all));
    det_sim_programs_free(sim);
    det_sim_files_close(sim, NULL);
    det_disk_deinit(&sim->disk);
    det_heap_deinit(&sim->deadlines);
    if (sim->runnable)
        DET_DELETE_ARRAY(sim->allocator, sim->runnable, sim->runnable_capacity);
    DET_DELETE(sim->allocator, sim);
}

struct det_world *det_sim_world(struct det_sim *sim)
{
    return &sim->world;
}

uint64_t det_sim_random(struct det_sim *sim)
{
    uint64_t number = det_chance_next(&sim->user_chance);

    det_sim_trace(sim, TRACE_RANDOM, number, 0);
    return number;
}

uint64_t det_sim_random_below(struct det_sim *sim, uint64_t bound)
{
    uint64_t number = det_chance_below(&sim->user_chance, bound);

    det_sim_trace(sim, TRACE_RANDOM, number, bound);
    return number;
}

bool det_sim_chance(struct det_sim *sim, uint32_t millionths)
{
    bool happens = det_chance_happens(&sim->user_chance, millionths);

    det_sim_trace(sim, TRACE_RANDOM, happens, millionths);
    return happens;
}

void det_sim_trace(struct det_sim *sim, enum det_sim_trace_kind kind, uint64_t a, uint64_t b)
{
    sim->hash = det_hash_mix(sim->hash, kind);
    sim->hash = det_hash_mix(sim->hash, a);
    sim->hash = det_hash_mix(sim->hash, b);
}

void det_sim_note(struct det_sim *sim, const void *data, size_t size)
{
    det_sim_trace(sim, TRACE_NOTE, det_hash64(data, size, 0), size);
}

uint64_t det_sim_hash(const struct det_sim *sim)
{
    return sim->hash;
}

uint64_t det_sim_steps(const struct det_sim *sim)
{
    return sim->steps;
}
