/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* world.h - the interface to everything outside: clocks, random numbers, files, threads, processes.
 *
 * The library reaches the world only through a struct det_world that it was given. There are two:
 * the real one, and the simulated one of sim.h, which runs the same code in one thread under
 * virtual time, so that the same seed gives the same run. A NULL world means the real one. */
#ifndef DETENT_WORLD_H
#define DETENT_WORLD_H

#include <detent/base.h>

DET_BEGIN

struct det_world;

enum det_clock {
    DET_CLOCK_MONOTONIC, /* never jumps; stands still while the machine sleeps */
    DET_CLOCK_BOOT,      /* never jumps; counts while the machine sleeps: leases */
    DET_CLOCK_WALL,      /* since 1970, UTC; may jump either way: deadlines that outlive us */
    DET_CLOCK_TICK,      /* monotonic, as of the kernel's last tick: up to 10 ms behind, but read in
                            a fraction of the time */
};

/* What a process may use, at most; what it starts has the same. */
enum det_limit_kind {
    DET_LIMIT_CPU,        /* seconds of processor time; then SIGKILL */
    DET_LIMIT_MEMORY,     /* bytes of address space; more fails */
    DET_LIMIT_OPEN_FILES, /* descriptors */
    DET_LIMIT_PROCESSES,  /* processes and threads of its user; not for root */
    DET_LIMIT_CORE,       /* bytes of a core dump */
    DET_LIMIT_FILE_SIZE,  /* bytes of a file that it writes; then SIGXFSZ */
    DET_LIMIT_STACK,      /* bytes of the main thread */
};
#define DET_LIMIT_KINDS 7
struct det_process_limit {
    enum det_limit_kind kind;
    uint64_t most;
};

/* Linux as it is. Shared, immutable, needs no closing. */
DET_API struct det_world *det_world_real(void);
DET_API det_time det_world_now(struct det_world *world, enum det_clock clock);
DET_API void det_world_random(struct det_world *world, void *target, size_t size);
DET_API uint64_t det_world_random_u64(struct det_world *world);
/* Blocks the calling thread for a span of monotonic time: in an effect that waits for something,
 * and in a test that stands for a slow service. In a simulated world other threads go on meanwhile.
 * Fails only for memory. */
DET_API int det_world_sleep(struct det_world *world, det_time span) DET_MUST_CHECK;

DET_END
#endif
