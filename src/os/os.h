/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* os.h - short names for the operations of a world, and the little that is built right on them.
 * The contract of each is in driver/world.h. */
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

/* Costs one test in the real world. */
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

/* Closing takes NULL here, so that a half-made object is taken down by the same code as a whole. */
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

static inline int det_folder_make(struct det_world *world, const char *path)
{
    return world->ops->folder_make(world, path);
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

/* The longest path that det_file_replace() and det_file_folder() take, with its final 0. */
#define DET_PATH_MAX 4096

/* Writes the folder that holds `path` into `target` of DET_PATH_MAX bytes: "a" of "a/b", "/" of
 * "/b", "." of "b". DET_ERR_INVALID when the path is empty or too long. */
DET_MUST_CHECK int det_file_folder(const char *path, char *target);
/* Writes a whole file so that after a crash either the old or the new one is there, complete:
 * write <path>.tmp, sync, rename, sync the folder. The only place in the tree that renames. After
 * an error either of the two may be there. One writer per path at a time. */
DET_MUST_CHECK int det_file_replace(
    struct det_world *world, const char *path, const void *data, size_t size);
/* A whole file into memory of `allocator` (size + 1 bytes, the last one 0); DET_ERR_LIMIT when it
 * is larger than `limit`. Free it with det_free(allocator, data, size + 1). */
DET_MUST_CHECK int det_file_load(
    struct det_world *world, const struct det_allocator *allocator, const char *path, size_t limit,
    char **ret, size_t *ret_size);

/* descriptors.c */

/* Whether an errno says that this process, or the machine, has no descriptor, process or memory
 * left: EMFILE, ENFILE, ENOMEM, EAGAIN. It says nothing of what was to be done. */
bool det_errno_is_shortage(int number);
/* Whether the result of a call that opens and loads a file says that this process is short of
 * memory or descriptors. DET_ERR_LIMIT also means that a file is too large: it is a shortage only
 * while no descriptor can be opened. */
bool det_error_is_shortage(int error);
/* Raises the soft limit of descriptors to the hard one, at most 2^20. For the start of a program,
 * before there are threads; children get the limit that was there before. */
void det_descriptors_raise(void);
/* The soft limit as it is now. */
uint64_t det_descriptors_limit(void);
/* Whether fewer than `count` (at most 16) more could be opened now. */
bool det_descriptors_are_short(unsigned count);

#endif
