/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* simulation.h - the internals of a simulated world: its threads, clocks, trace, disk and programs.
 *
 *      runnable --picked--> running --waits--> waiting --woken, timed out--> runnable
 *                              |                  |
 *                              +----ends----------+--killed--> ended
 *
 * Invariants
 *   1. Exactly one thread is running: `current`.
 *   2. A thread is in `runnable` exactly when it is runnable, and in `deadlines` or a list of
 *      waiters only when it is waiting.
 *   3. No switch, wake or end allocates: room for every thread in `runnable` and `deadlines` is
 *      reserved when it starts.
 *   4. The trace contains no address, only numbers that are the same in every run of a seed. */
#ifndef DET_OS_SIM_SIMULATION_H
#define DET_OS_SIM_SIMULATION_H

#include <detent/driver/world.h>
#include <detent/sim.h>

#include "base/heap.h"
#include "base/list.h"
#include "os/sim/disk.h"
#include "os/sim/fiber.h"
#include "os/sim/random.h"

enum det_thread_state {
    THREAD_RUNNABLE,
    THREAD_RUNNING,
    THREAD_WAITING,
    THREAD_ENDED,
};

/* Reason for a wait; `det_schedule_wait()` documents the results of each. */
enum det_wait {
    WAIT_MUTEX,
    WAIT_JOIN,
    WAIT_CONDITION,
    WAIT_POLLER,
    WAIT_PROCESS,
    WAIT_IDLE, /* the first thread in settle and advance, until nothing else can run */
};

enum det_sim_trace_kind {
    TRACE_SCHEDULE = 1,
    TRACE_CLOCK,
    TRACE_RANDOM,
    TRACE_DISK,
    TRACE_PROCESS,
    TRACE_NOTE,
};

struct det_thread {
    struct det_list all;     /* in the simulation's threads */
    struct det_list waiting; /* in the waiters of what it waits for */
    struct det_list joiners;
    struct det_heap_node deadline;
    struct det_context context;
    struct det_sim *sim;
    struct det_process *process; /* the simulated program it belongs to, or NULL */
    det_thread_fn *run;
    void *argument;
    uint64_t number; /* 0: the first thread */
    enum det_thread_state state;
    enum det_wait wait;
    size_t position; /* in `runnable` */
    int result;      /* result of its wait */
};

struct det_sim {
    struct det_world world;
    struct det_sim_options options;
    const struct det_allocator *allocator;
    const void *owner; /* the OS thread that runs the simulation */

    struct det_thread first;
    struct det_thread *current;
    struct det_list threads; /* all but the first */
    size_t threads_count;
    uint64_t threads_started;
    struct det_thread **runnable;
    size_t runnable_count;
    size_t runnable_capacity;
    struct det_heap deadlines;
    uint64_t steps;
    int failed;       /* DET_ERR_DEADLOCK or DET_ERR_LIMIT once reported */
    unsigned ignored; /* consecutive calls that ignored `failed` */
    det_time idle_until;

    det_time now;
    det_time boot_offset;
    det_time wall_offset;

    struct det_chance schedule_chance;
    struct det_chance user_chance;
    uint64_t hash;

    struct det_disk disk;
    struct det_list files; /* the open ones */
    struct det_list pollers;
    struct det_list programs;
    struct det_list processes;
    int processes_started;
};

static inline struct det_sim *det_sim_of(struct det_world *world)
{
    return DET_CONTAINER(world, struct det_sim, world);
}

void det_sim_trace(struct det_sim *sim, enum det_sim_trace_kind kind, uint64_t a, uint64_t b);

/* Starts a thread of `process`, runnable. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_schedule_start(
    struct det_sim *sim, det_thread_fn *run, void *argument, struct det_process *process,
    struct det_thread **ret);
/* Waits in `waiters` (NULL: in no list). Returns 0 when woken, DET_ERR_TIMEOUT at the deadline; in
 * the first thread also DET_ERR_LIMIT, and DET_ERR_DEADLOCK for conditions, pollers and processes.
 * A deadlock of mutexes and joins, which cannot return errors, aborts. */
int det_schedule_wait(
    struct det_sim *sim, struct det_list *waiters, enum det_wait wait, det_time deadline);
/* Wakes a random one of the waiters. */
void det_schedule_wake_one(struct det_sim *sim, struct det_list *waiters);
void det_schedule_wake_all(struct det_sim *sim, struct det_list *waiters);
/* Lets any thread continue, including this one. */
void det_schedule_yield(struct det_sim *sim);
/* Yields with the probability of the options, if another thread is runnable. */
void det_schedule_preempt(struct det_sim *sim);
/* Ends another thread where it is; its stack is not unwound. */
void det_schedule_drop(struct det_sim *sim, struct det_thread *thread);
/* Ends the running thread. */
_Noreturn void det_schedule_leave(struct det_sim *sim);
/* Frees a thread that has ended or will not be resumed. */
void det_schedule_free(struct det_sim *sim, struct det_thread *thread);

int det_sim_thread_start(
    struct det_world *world, const char *name, det_thread_fn *run, void *argument,
    struct det_thread **ret);
void det_sim_thread_join(struct det_world *world, struct det_thread *thread);
const void *det_sim_thread_self(struct det_world *world);
void det_sim_preempt(struct det_world *world);
int det_sim_mutex_open(struct det_world *world, struct det_mutex **ret);
void det_sim_mutex_close(struct det_world *world, struct det_mutex *mutex);
void det_sim_mutex_lock(struct det_world *world, struct det_mutex *mutex);
void det_sim_mutex_unlock(struct det_world *world, struct det_mutex *mutex);
int det_sim_condition_open(struct det_world *world, struct det_condition **ret);
void det_sim_condition_close(struct det_world *world, struct det_condition *condition);
int det_sim_condition_wait(
    struct det_world *world, struct det_condition *condition, struct det_mutex *mutex,
    det_time deadline);
void det_sim_condition_signal(struct det_world *world, struct det_condition *condition);
void det_sim_condition_broadcast(struct det_world *world, struct det_condition *condition);
int det_sim_poller_open(struct det_world *world, struct det_poller **ret);
void det_sim_poller_close(struct det_world *world, struct det_poller *poller);
int det_sim_poller_watch(
    struct det_world *world, struct det_poller *poller, int descriptor, unsigned events, void *tag);
int det_sim_poller_wait(
    struct det_world *world, struct det_poller *poller, struct det_poll_event *events, int capacity,
    det_time deadline);
void det_sim_poller_wake(struct det_world *world, struct det_poller *poller);
int det_sim_poller_descriptor(struct det_world *world, struct det_poller *poller);
/* The wall clock was set: every poller returns. */
void det_sim_pollers_wake(struct det_sim *sim);
/* A process wrote output or ended: its watchers return. */
void det_sim_pollers_notify(struct det_sim *sim);
/* The process was closed: removes it from all pollers. */
void det_sim_pollers_forget(struct det_sim *sim, const struct det_process *process);

int det_sim_file_open(
    struct det_world *world, const char *path, unsigned flags, struct det_file **ret);
void det_sim_file_close(struct det_world *world, struct det_file *file);
int64_t det_sim_file_read(
    struct det_world *world, struct det_file *file, uint64_t offset, void *target, size_t size);
int det_sim_file_write(
    struct det_world *world, struct det_file *file, uint64_t offset, const void *data, size_t size);
int det_sim_file_sync(struct det_world *world, struct det_file *file);
int det_sim_file_truncate(struct det_world *world, struct det_file *file, uint64_t size);
int64_t det_sim_file_size(struct det_world *world, struct det_file *file);
int det_sim_file_rename(struct det_world *world, const char *from, const char *to);
int det_sim_file_remove(struct det_world *world, const char *path);
int det_sim_folder_sync(struct det_world *world, const char *path);
int det_sim_folder_make(struct det_world *world, const char *path);
int det_sim_file_lock(struct det_world *world, struct det_file *file);
void det_sim_file_forget(struct det_world *world, struct det_file *file);
void det_sim_file_share(struct det_world *world, struct det_file *file, const char *path);
bool det_sim_path_is_remote(struct det_world *world, const char *path);
int64_t det_sim_self_number(struct det_world *world);

/* Closes the files that a process left open; NULL: of all processes. */
void det_sim_files_close(struct det_sim *sim, const struct det_process *process);

int det_sim_process_start(
    struct det_world *world, const struct det_process_options *options, struct det_process **ret,
    struct det_error *reterr);
int det_sim_process_kill(struct det_world *world, struct det_process *process, int signal);
int det_sim_process_wait(
    struct det_world *world, struct det_process *process, det_time deadline,
    struct det_process_end *ret);
int64_t det_sim_process_number(struct det_world *world, struct det_process *process);
int det_sim_process_descriptor(struct det_world *world, struct det_process *process);
int det_sim_process_stream(
    struct det_world *world, struct det_process *process, enum det_process_stream stream);
int64_t det_sim_process_read(
    struct det_world *world, struct det_process *process, enum det_process_stream stream,
    void *target, size_t size);
/* Returns the process that a descriptor belongs to, or NULL. */
struct det_process *det_sim_process_of(struct det_sim *sim, int descriptor);
bool det_sim_process_is_readable(const struct det_process *process, int descriptor);
void det_sim_process_close(struct det_world *world, struct det_process *process);
/* Frees the programs, and the processes left in a simulation that failed. */
void det_sim_programs_free(struct det_sim *sim);

#endif
