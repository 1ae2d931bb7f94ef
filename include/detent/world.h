/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* world.h - the interface to the operating system: clocks, random numbers, files, threads,
 * processes.
 *
 * The library reaches the operating system only through the struct det_world in its options. There
 * are two: the real one, and the simulated one of sim.h, which runs the same code in one thread in
 * virtual time, so that the same seed gives the same run. A NULL world means the real one. */
#ifndef DETENT_WORLD_H
#define DETENT_WORLD_H

#include <detent/base.h>

DET_BEGIN

struct det_world;

enum det_clock {
    DET_CLOCK_MONOTONIC, /* never jumps; stops while the machine sleeps */
    DET_CLOCK_BOOT,      /* never jumps; counts while the machine sleeps: leases */
    DET_CLOCK_WALL,      /* since 1970, UTC; may jump in either direction: for deadlines that
                          * outlive the process */
    DET_CLOCK_TICK,      /* monotonic, as of the kernel's last tick: up to 10 ms late, but faster to
                          * read */
};

/* Limits of a process, inherited by its children. */
enum det_limit_kind {
    DET_LIMIT_CPU,        /* seconds of processor time; beyond it: SIGKILL */
    DET_LIMIT_MEMORY,     /* bytes of address space; beyond it allocations fail */
    DET_LIMIT_OPEN_FILES, /* open descriptors */
    DET_LIMIT_PROCESSES,  /* processes and threads of its user; ineffective for root */
    DET_LIMIT_CORE,       /* bytes of a core dump */
    DET_LIMIT_FILE_SIZE,  /* bytes of a file that it writes; beyond it: SIGXFSZ */
    DET_LIMIT_STACK,      /* bytes of the main thread's stack */
};
#define DET_LIMIT_KINDS 7
struct det_process_limit {
    enum det_limit_kind kind;
    uint64_t most;
};

/* The real Linux world. Shared, immutable, needs no closing. */
DET_API struct det_world *det_world_real(void);
DET_API det_time det_world_now(struct det_world *world, enum det_clock clock);
DET_API void det_world_random(struct det_world *world, void *target, size_t size);
DET_API uint64_t det_world_random_u64(struct det_world *world);
/* Blocks the calling thread for a span of monotonic time: for effects that poll, and for tests that
 * imitate a slow service. In a simulated world other threads run meanwhile. Fails only with
 * DET_ERR_NO_MEMORY. */
DET_API int det_world_sleep(struct det_world *world, det_time span) DET_MUST_CHECK;

DET_END
#endif
