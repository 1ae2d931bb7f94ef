/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* os.h - short names for the operations of a world, and helpers built on them. driver/world.h has
 * the contract of each operation. */
#ifndef DET_OS_OS_H
#define DET_OS_OS_H

#include <detent/driver/world.h>

/* NULL means the real world. */
static inline struct det_world *det_world_or_real(struct det_world *world)
{
    return world ? world : det_world_real();
}

static inline const void *det_thread_self(struct det_world *world)
{
    return world->ops->thread_self(world);
}

/* Costs one branch in the real world. */
static inline void det_thread_preempt(struct det_world *world)
{
    if (world->ops->preempt)
        world->ops->preempt(world);
}

static inline int det_thread_start(
    struct det_world *world, const char *name, det_thread_fn *run, void *argument,
    struct det_thread **ret)
{
    return world->ops->thread_start(world, name, run, argument, ret);
}

static inline void det_thread_join(struct det_world *world, struct det_thread *thread)
{
    world->ops->thread_join(world, thread);
}

static inline int det_mutex_open(struct det_world *world, struct det_mutex **ret)
{
    return world->ops->mutex_open(world, ret);
}

/* Close functions accept NULL here, so that a partly built object is freed by the same code. */
static inline void det_mutex_close(struct det_world *world, struct det_mutex *mutex)
{
    if (mutex)
        world->ops->mutex_close(world, mutex);
}

static inline void det_mutex_lock(struct det_world *world, struct det_mutex *mutex)
{
    world->ops->mutex_lock(world, mutex);
}

static inline void det_mutex_unlock(struct det_world *world, struct det_mutex *mutex)
{
    world->ops->mutex_unlock(world, mutex);
}

static inline int det_condition_open(struct det_world *world, struct det_condition **ret)
{
    return world->ops->condition_open(world, ret);
}

static inline void det_condition_close(struct det_world *world, struct det_condition *condition)
{
    if (condition)
        world->ops->condition_close(world, condition);
}

static inline int det_condition_wait(
    struct det_world *world, struct det_condition *condition, struct det_mutex *mutex,
    det_time deadline)
{
    return world->ops->condition_wait(world, condition, mutex, deadline);
}

static inline void det_condition_signal(struct det_world *world, struct det_condition *condition)
{
    world->ops->condition_signal(world, condition);
}

static inline void det_condition_broadcast(struct det_world *world, struct det_condition *condition)
{
    world->ops->condition_broadcast(world, condition);
}

static inline int det_file_open(
    struct det_world *world, const char *path, unsigned flags, struct det_file **ret)
{
    return world->ops->file_open(world, path, flags, ret);
}

static inline void det_file_close(struct det_world *world, struct det_file *file)
{
    if (file)
        world->ops->file_close(world, file);
}

static inline int64_t det_file_read(
    struct det_world *world, struct det_file *file, uint64_t offset, void *target, size_t size)
{
    return world->ops->file_read(world, file, offset, target, size);
}

static inline int det_file_write(
    struct det_world *world, struct det_file *file, uint64_t offset, const void *data, size_t size)
{
    return world->ops->file_write(world, file, offset, data, size);
}

static inline int det_file_sync(struct det_world *world, struct det_file *file)
{
    return world->ops->file_sync(world, file);
}

static inline int det_file_truncate(struct det_world *world, struct det_file *file, uint64_t size)
{
    return world->ops->file_truncate(world, file, size);
}

static inline int64_t det_file_size(struct det_world *world, struct det_file *file)
{
    return world->ops->file_size(world, file);
}

static inline int det_file_remove(struct det_world *world, const char *path)
{
    return world->ops->file_remove(world, path);
}

static inline int det_folder_sync(struct det_world *world, const char *path)
{
    return world->ops->folder_sync(world, path);
}

static inline int det_file_lock(struct det_world *world, struct det_file *file)
{
    return world->ops->file_lock(world, file);
}

static inline void det_file_forget(struct det_world *world, struct det_file *file)
{
    world->ops->file_forget(world, file);
}

static inline void det_file_share(struct det_world *world, struct det_file *file, const char *path)
{
    world->ops->file_share(world, file, path);
}

static inline bool det_path_is_remote(struct det_world *world, const char *path)
{
    return world->ops->path_is_remote(world, path);
}

static inline int64_t det_self_number(struct det_world *world)
{
    return world->ops->self_number(world);
}

/* The longest path, with its final NUL, that det_file_replace() and det_file_folder() accept. */
#define DET_PATH_MAX 4096

/* Writes the folder of `path` into `target`, which has DET_PATH_MAX bytes: "a" for "a/b", "/" for
 * "/b", "." for "b". Returns DET_ERR_INVALID if the path is empty or too long. */
DET_MUST_CHECK int det_file_folder(const char *path, char *target);
/* Writes a whole file atomically: after a crash either the old or the new content is complete.
 * Writes <path>.tmp, syncs it, renames it, syncs the folder. After an error either content may be
 * present. One writer per path at a time. */
DET_MUST_CHECK int det_file_replace(
    struct det_world *world, const char *path, const void *data, size_t size);
/* Renames a file to a name that is free, or whose file is replaced; det_folder_sync() makes it
 * durable. */
DET_MUST_CHECK int det_file_rename(struct det_world *world, const char *from, const char *to);
/* Loads a whole file into memory of `allocator` (size + 1 bytes, the last one 0). Returns
 * DET_ERR_LIMIT if it is larger than `limit`. Free it with det_free(allocator, data, size + 1). */
DET_MUST_CHECK int det_file_load(
    struct det_world *world, const struct det_allocator *allocator, const char *path, size_t limit,
    char **ret, size_t *ret_size);

/* descriptors.c */

/* Returns true if this errno means that the process or the machine is out of descriptors, processes
 * or memory: EMFILE, ENFILE, ENOMEM, EAGAIN. */
bool det_errno_is_shortage(int number);
/* Returns true if the result of a call that opens and loads a file means that this process is short
 * of memory or descriptors. DET_ERR_LIMIT also means that a file is too large: it counts as a
 * shortage only while no descriptor can be opened. */
bool det_error_is_shortage(int error);
/* Raises the soft descriptor limit to the hard one, at most 2^20. Call it at the start of a
 * program, before threads exist; children get the original limit. */
void det_descriptors_raise(void);
/* Returns the current soft limit. */
uint64_t det_descriptors_limit(void);
/* Returns true if fewer than `count` (at most 16) more descriptors can be opened now. */
bool det_descriptors_are_short(unsigned count);

#endif
