/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sim.h - the simulated world: virtual time, seeded scheduling, a disk that can fail.
 *
 * All objects opened with det_sim_world() run in the calling thread. Threads are fibers: at each
 * blocking operation the scheduler picks one of the runnable fibers by the seed. The clocks move
 * only when no fiber can run, straight to the next deadline. A week thus passes in microseconds,
 * and the same seed gives the same run: det_sim_hash() proves it.
 *
 *     struct det_sim *sim;
 *     det_sim_open(&(struct det_sim_options){ .seed = 42 }, &sim, NULL);
 *     ... open a runtime on det_sim_world(sim), send events ...
 *     det_sim_advance(sim, 30 * DET_MINUTE);    every timer due in the next half hour fires
 *     det_sim_close(sim);
 *
 * The thread that opened the simulation is its first thread: when it blocks, for example in a send,
 * the others run. Do not use one simulation from two real threads.
 *
 * When no fiber can run and none waits for a deadline, the first thread's wait returns
 * DET_ERR_DEADLOCK. If that wait is for a mutex or for a thread's end, which cannot return an
 * error, the program stops with a message. After `steps_max` steps every wait of the first thread
 * returns DET_ERR_LIMIT and no other thread runs again. In both cases the simulation may be closed
 * as it is.
 *
 * Limits: a thread that spins without calling the world, for example on an atomic, is never
 * preempted and `steps_max` does not stop it. The clocks do not move while a fiber can run, so
 * polling the time without waiting does not end. There are no networks and no descriptors, except
 * for the numbers of simulated processes. Thread sanitizer does not support fibers (address
 * sanitizer does). */
#ifndef DETENT_SIM_H
#define DETENT_SIM_H

#include <detent/world.h>

DET_BEGIN

struct det_sim;

/* Chances in millionths per operation; 0: never. */
struct det_sim_disk_faults {
    uint32_t read_error;  /* DET_ERR_IO */
    uint32_t write_error; /* DET_ERR_IO after any part of it was written */
    uint32_t sync_error;  /* DET_ERR_IO, and the unsynced writes of that file (or changes in that
                           * folder) are lost: reads show them until a power cut, and the next sync
                           * succeeds */
    uint32_t no_space;    /* DET_ERR_NO_SPACE before any part was written */
};

struct det_sim_options {
    uint64_t seed;
    det_time wall;      /* the wall clock at the start; 0: 2026-01-01T00:00:00Z */
    uint32_t preempt;   /* chance, in millionths, of a thread switch at an operation that need not
                         * block (lock, signal, post); 0: 100,000 (one in ten); UINT32_MAX: never */
    uint64_t steps_max; /* scheduler steps before a run fails with LIMIT; 0: 100,000,000 */
    size_t stack_size;  /* of a simulated thread; 0: 256 KiB */
    struct det_sim_disk_faults disk;
    const struct det_allocator *allocator;
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* must be zero */
};

/* `options` NULL: all zero. */
DET_API int det_sim_open(
    const struct det_sim_options *options, struct det_sim **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Closes the simulation. All threads must be joined, all files and processes closed, unless the
 * simulation failed (DET_ERR_DEADLOCK, DET_ERR_LIMIT): then the rest is dropped. */
DET_API void det_sim_close(struct det_sim *sim);
DET_SCOPED_CLOSE(sim)

/* The simulated world, for the options of other objects. Lives as long as the simulation. */
DET_API struct det_world *det_sim_world(struct det_sim *sim);

/* Runs everything that can run now, without moving the clocks. First thread only. */
DET_API int det_sim_settle(struct det_sim *sim) DET_MUST_CHECK;
/* Moves the clocks forward by `span`, stopping at each deadline on the way to run its timers;
 * returns when all is settled at the end of the span. First thread only. */
DET_API int det_sim_advance(struct det_sim *sim, det_time span) DET_MUST_CHECK;
/* Moves the wall clock in either direction; the other clocks do not change. */
DET_API void det_sim_jump_wall(struct det_sim *sim, det_time by);
/* Simulates machine sleep: boot and wall clocks move, the monotonic clock does not. */
DET_API void det_sim_suspend(struct det_sim *sim, det_time span);

/* A random number of the simulation, for the test's own choices; part of the trace. */
DET_API uint64_t det_sim_random(struct det_sim *sim);
/* Below `bound` (> 0), without bias. */
DET_API uint64_t det_sim_random_below(struct det_sim *sim, uint64_t bound);
/* True with a chance of `millionths`. */
DET_API bool det_sim_chance(struct det_sim *sim, uint32_t millionths);

/* Adds bytes to the trace: test results that must be equal in two runs of a seed. */
DET_API void det_sim_note(struct det_sim *sim, const void *data, size_t size);
/* A hash over the run so far: schedule, clocks, random numbers, disk, notes. */
DET_API uint64_t det_sim_hash(const struct det_sim *sim);
DET_API uint64_t det_sim_steps(const struct det_sim *sim);

/* Sets the disk faults. Files live in memory, in one flat namespace of paths: a file needs no
 * folder, but folder_make() returns DET_ERR_EXISTS the second time. A file is at most 1 GiB. */
DET_API void det_sim_set_disk_faults(struct det_sim *sim, const struct det_sim_disk_faults *faults);
/* Simulates a power cut. Every write since the last sync of its file is, by the seed, kept, lost or
 * torn at a sector of 512 bytes, independently of other writes (so later ones may survive earlier
 * ones). Every create, rename and remove since the last sync of its folder is kept or lost. Open
 * files are dead: every operation on them returns DET_ERR_IO. The next open finds what was kept. */
DET_API void det_sim_power_cut(struct det_sim *sim);

DET_END
#endif
