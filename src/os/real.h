/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real.h - the parts of the real world, one file each; real_world.c makes the table of them. */
#ifndef DET_OS_REAL_H
#define DET_OS_REAL_H

#include <detent/driver/world.h>

struct det_process_guard;
struct timespec;

struct det_real_world {
    struct det_world world;
    const struct det_allocator *allocator; /* NULL in the shared world; tests inject a failing
                                            * allocator */
    struct det_process_guard *guard;       /* NULL: its processes are not guarded */
};

static inline const struct det_allocator *det_real_allocator(struct det_world *world)
{
    return ((struct det_real_world *)(void *)world)->allocator;
}

/* Returns the guard of its processes once started; NULL if there is none. */
struct det_process_guard *det_real_guard(struct det_world *world);

/* Translates an errno to an error of the library. Never 0. */
int det_real_error(int number);
struct timespec det_real_timespec(det_time time);

det_time det_real_now(struct det_world *world, enum det_clock clock);
void det_real_random(struct det_world *world, void *target, size_t size);

int det_real_thread_start(
    struct det_world *world, const char *name, det_thread_fn *run, void *argument,
    struct det_thread **ret);
void det_real_thread_join(struct det_world *world, struct det_thread *thread);
const void *det_real_thread_self(struct det_world *world);
int det_real_mutex_open(struct det_world *world, struct det_mutex **ret);
void det_real_mutex_close(struct det_world *world, struct det_mutex *mutex);
void det_real_mutex_lock(struct det_world *world, struct det_mutex *mutex);
void det_real_mutex_unlock(struct det_world *world, struct det_mutex *mutex);
int det_real_condition_open(struct det_world *world, struct det_condition **ret);
void det_real_condition_close(struct det_world *world, struct det_condition *condition);
int det_real_condition_wait(
    struct det_world *world, struct det_condition *condition, struct det_mutex *mutex,
    det_time deadline);
void det_real_condition_signal(struct det_world *world, struct det_condition *condition);
void det_real_condition_broadcast(struct det_world *world, struct det_condition *condition);

int det_real_poller_open(struct det_world *world, struct det_poller **ret);
void det_real_poller_close(struct det_world *world, struct det_poller *poller);
int det_real_poller_watch(
    struct det_world *world, struct det_poller *poller, int descriptor, unsigned events, void *tag);
int det_real_poller_wait(
    struct det_world *world, struct det_poller *poller, struct det_poll_event *events, int capacity,
    det_time deadline);
void det_real_poller_wake(struct det_world *world, struct det_poller *poller);
int det_real_poller_descriptor(struct det_world *world, struct det_poller *poller);

int det_real_file_open(
    struct det_world *world, const char *path, unsigned flags, struct det_file **ret);
void det_real_file_close(struct det_world *world, struct det_file *file);
int64_t det_real_file_read(
    struct det_world *world, struct det_file *file, uint64_t offset, void *target, size_t size);
int det_real_file_write(
    struct det_world *world, struct det_file *file, uint64_t offset, const void *data, size_t size);
int det_real_file_sync(struct det_world *world, struct det_file *file);
int det_real_file_truncate(struct det_world *world, struct det_file *file, uint64_t size);
int64_t det_real_file_size(struct det_world *world, struct det_file *file);
int det_real_file_rename(struct det_world *world, const char *from, const char *to);
int det_real_file_remove(struct det_world *world, const char *path);
int det_real_folder_sync(struct det_world *world, const char *path);
int det_real_folder_make(struct det_world *world, const char *path);
int det_real_file_lock(struct det_world *world, struct det_file *file);
void det_real_file_forget(struct det_world *world, struct det_file *file);
void det_real_file_share(struct det_world *world, struct det_file *file, const char *path);
bool det_real_path_is_remote(struct det_world *world, const char *path);
int64_t det_real_self_number(struct det_world *world);
/* By the type that statfs() reports; pure. */
bool det_real_filesystem_is_remote(int64_t type);

/* Kills all processes that were started in the world of a guard, also without `ends_with_us`, and
 * waits up to `span` for their exit. For a program about to call _exit(). From any thread. */
void det_process_guard_kill(struct det_process_guard *guard, det_time span);

int det_real_process_start(
    struct det_world *world, const struct det_process_options *options, struct det_process **ret,
    struct det_error *reterr);
int det_real_process_kill(struct det_world *world, struct det_process *process, int signal);
int det_real_process_wait(
    struct det_world *world, struct det_process *process, det_time deadline,
    struct det_process_end *ret);
int64_t det_real_process_number(struct det_world *world, struct det_process *process);
int det_real_process_descriptor(struct det_world *world, struct det_process *process);
int det_real_process_stream(
    struct det_world *world, struct det_process *process, enum det_process_stream stream);
int64_t det_real_process_read(
    struct det_world *world, struct det_process *process, enum det_process_stream stream,
    void *target, size_t size);
void det_real_process_close(struct det_world *world, struct det_process *process);

#endif
