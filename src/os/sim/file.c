/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file.c - the file operations of the simulated world: random faults, then the disk.
 *
 * Every operation has the same order: another thread may run first; then the trace; then a fault,
 * if the seed injects one; then the disk. It owns nothing while another thread may run, because
 * that thread may kill it. */
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/memory.h"
#include "os/os.h"
#include "os/sim/simulation.h"

enum operation {
    OPERATION_OPEN = 1,
    OPERATION_READ,
    OPERATION_WRITE,
    OPERATION_SYNC,
    OPERATION_TRUNCATE,
    OPERATION_RENAME,
    OPERATION_REMOVE,
    OPERATION_FOLDER_SYNC,
    OPERATION_FOLDER_MAKE,
    OPERATION_POWER_CUT,
    OPERATION_FAULT,
    OPERATION_LOCK,
};

struct det_file {
    struct det_list link;
    const struct det_process *process; /* owner, or NULL */
    struct det_disk_node *node;
    unsigned flags;
    uint64_t power_cuts; /* power cuts before it was opened */
    bool is_locked;
};

static void trace_operation(struct det_sim *sim, enum operation operation, uint64_t detail)
{
    det_sim_trace(sim, TRACE_DISK, operation, detail);
}

static void begin_path(struct det_sim *sim, enum operation operation, const char *path)
{
    det_schedule_preempt(sim);
    trace_operation(sim, operation, det_hash64(path, strlen(path), 0));
}

/* Returns 0, or DET_ERR_IO if the power was cut since the file was opened. */
static int begin_file(struct det_sim *sim, enum operation operation, const struct det_file *file)
{
    det_schedule_preempt(sim);
    trace_operation(sim, operation, file->node->number);
    return file->power_cuts == sim->disk.power_cuts ? 0 : DET_ERR_IO;
}

static bool draw_fault(struct det_sim *sim, uint32_t millionths)
{
    if (!det_chance_happens(&sim->disk.chance, millionths))
        return false;
    trace_operation(sim, OPERATION_FAULT, 0);
    return true;
}

/* The rule of the real world: a path is not empty, and not too long. */
static int check_path(const char *path)
{
    size_t length = strlen(path);

    if (length >= DET_PATH_MAX)
        return DET_ERR_INVALID;
    return length ? 0 : DET_ERR_NOT_FOUND;
}

/* Returns the node to open, created if requested. */
static int find_or_create(
    struct det_sim *sim, const char *path, unsigned flags, struct det_disk_node **ret)
{
    struct det_disk_node *node = det_disk_find(&sim->disk, path);

    if (!node && !(flags & DET_FILE_CREATE))
        return DET_ERR_NOT_FOUND;
    if (!node)
        return det_disk_create(&sim->disk, path, false, ret);
    if (flags & DET_FILE_EXCLUSIVE)
        return DET_ERR_EXISTS;
    if (node->is_folder)
        return DET_ERR_IO;
    *ret = node;
    return 0;
}

int det_sim_file_open(
    struct det_world *world, const char *path, unsigned flags, struct det_file **ret)
{
    struct det_sim *sim = det_sim_of(world);
    struct det_file *file;
    int r;

    det_assert(flags & (DET_FILE_READ | DET_FILE_WRITE));
    r = check_path(path);
    if (r < 0)
        return r;
    begin_path(sim, OPERATION_OPEN, path);
    file = DET_NEW(sim->allocator, struct det_file);
    if (!file)
        return DET_ERR_NO_MEMORY;
    r = find_or_create(sim, path, flags, &file->node);
    if (r < 0) {
        DET_DELETE(sim->allocator, file);
        return r;
    }
    det_disk_node_hold(file->node);
    det_list_append(&sim->files, &file->link);
    file->process = sim->current->process;
    file->flags = flags;
    file->power_cuts = sim->disk.power_cuts;
    *ret = file;
    return 0;
}

void det_sim_file_close(struct det_world *world, struct det_file *file)
{
    struct det_sim *sim = det_sim_of(world);

    det_list_remove(&file->link);
    det_disk_node_drop(&sim->disk, file->node);
    DET_DELETE(sim->allocator, file);
}

void det_sim_files_close(struct det_sim *sim, const struct det_process *process)
{
    struct det_list *next;

    for (struct det_list *link = sim->files.next; link != &sim->files; link = next) {
        struct det_file *file = DET_CONTAINER(link, struct det_file, link);

        next = link->next;
        if (!process || file->process == process)
            det_sim_file_close(&sim->world, file);
    }
}

int64_t det_sim_file_read(
    struct det_world *world, struct det_file *file, uint64_t offset, void *target, size_t size)
{
    struct det_sim *sim = det_sim_of(world);
    const struct det_disk_node *node = file->node;
    int r;

    r = begin_file(sim, OPERATION_READ, file);
    if (r < 0)
        return r;
    if (offset > INT64_MAX || size > INT64_MAX - offset)
        return DET_ERR_INVALID;
    if (!(file->flags & DET_FILE_READ) || draw_fault(sim, sim->disk.faults.read_error))
        return DET_ERR_IO;
    if (offset >= node->current_size)
        return 0;
    if (size > node->current_size - offset)
        size = node->current_size - (size_t)offset;
    memcpy(target, node->current + offset, size);
    return (int64_t)size;
}

/* A write that fails half-way leaves any prefix of it. */
static int write_part(
    struct det_sim *sim, struct det_disk_node *node, uint64_t offset, const void *data, size_t size)
{
    int r;

    size = (size_t)det_chance_below(&sim->disk.chance, size + 1);
    r = det_disk_node_write(&sim->disk, node, offset, data, size);
    return r < 0 ? r : DET_ERR_IO;
}

int det_sim_file_write(
    struct det_world *world, struct det_file *file, uint64_t offset, const void *data, size_t size)
{
    struct det_sim *sim = det_sim_of(world);
    int r;

    r = begin_file(sim, OPERATION_WRITE, file);
    if (r < 0)
        return r;
    if (offset > INT64_MAX || size > INT64_MAX - offset)
        return DET_ERR_INVALID;
    if (!(file->flags & DET_FILE_WRITE))
        return DET_ERR_IO;
    if (!size)
        return 0;
    trace_operation(sim, OPERATION_WRITE, det_hash64(data, size, offset));
    if (draw_fault(sim, sim->disk.faults.no_space))
        return DET_ERR_NO_SPACE;
    if (draw_fault(sim, sim->disk.faults.write_error))
        return write_part(sim, file->node, offset, data, size);
    return det_disk_node_write(&sim->disk, file->node, offset, data, size);
}

int det_sim_file_sync(struct det_world *world, struct det_file *file)
{
    struct det_sim *sim = det_sim_of(world);
    int r;

    r = begin_file(sim, OPERATION_SYNC, file);
    if (r < 0)
        return r;
    if (draw_fault(sim, sim->disk.faults.sync_error)) {
        /* Readers still see the writes, and the next sync succeeds: neither means that they are on
         * the disk. */
        det_disk_node_forget(&sim->disk, file->node);
        return DET_ERR_IO;
    }
    det_disk_node_sync(&sim->disk, file->node);
    return 0;
}

int det_sim_file_truncate(struct det_world *world, struct det_file *file, uint64_t size)
{
    struct det_sim *sim = det_sim_of(world);
    int r;

    r = begin_file(sim, OPERATION_TRUNCATE, file);
    if (r < 0)
        return r;
    trace_operation(sim, OPERATION_TRUNCATE, size);
    if (size > INT64_MAX || !(file->flags & DET_FILE_WRITE))
        return DET_ERR_INVALID;
    return det_disk_node_write(&sim->disk, file->node, size, NULL, 0);
}

int64_t det_sim_file_size(struct det_world *world, struct det_file *file)
{
    struct det_sim *sim = det_sim_of(world);

    if (file->power_cuts != sim->disk.power_cuts)
        return DET_ERR_IO;
    return (int64_t)file->node->current_size;
}

int det_sim_file_rename(struct det_world *world, const char *from, const char *to)
{
    struct det_sim *sim = det_sim_of(world);
    const struct det_disk_node *target;
    int r;

    begin_path(sim, OPERATION_RENAME, from);
    trace_operation(sim, OPERATION_RENAME, det_hash64(to, strlen(to), 0));
    if (!det_disk_find(&sim->disk, from))
        return DET_ERR_NOT_FOUND;
    r = check_path(to);
    if (r < 0)
        return r;
    target = det_disk_find(&sim->disk, to);
    if (target && target->is_folder)
        return DET_ERR_IO;
    return det_disk_move(&sim->disk, from, to);
}

int det_sim_file_remove(struct det_world *world, const char *path)
{
    struct det_sim *sim = det_sim_of(world);
    const struct det_disk_node *node;

    begin_path(sim, OPERATION_REMOVE, path);
    node = det_disk_find(&sim->disk, path);
    if (!node)
        return DET_ERR_NOT_FOUND;
    if (node->is_folder)
        return DET_ERR_IO;
    return det_disk_move(&sim->disk, path, NULL);
}

int det_sim_folder_sync(struct det_world *world, const char *path)
{
    struct det_sim *sim = det_sim_of(world);

    begin_path(sim, OPERATION_FOLDER_SYNC, path);
    if (draw_fault(sim, sim->disk.faults.sync_error)) {
        det_disk_folder_forget(&sim->disk, path);
        return DET_ERR_IO;
    }
    det_disk_folder_sync(&sim->disk, path);
    return 0;
}

int det_sim_folder_make(struct det_world *world, const char *path)
{
    struct det_sim *sim = det_sim_of(world);
    struct det_disk_node *node;
    int r;

    r = check_path(path);
    if (r < 0)
        return r;
    begin_path(sim, OPERATION_FOLDER_MAKE, path);
    if (det_disk_find(&sim->disk, path))
        return DET_ERR_EXISTS;
    return det_disk_create(&sim->disk, path, true, &node);
}

/* A lock is lost when the power is cut. */
int det_sim_file_lock(struct det_world *world, struct det_file *file)
{
    struct det_sim *sim = det_sim_of(world);
    int r;

    r = begin_file(sim, OPERATION_LOCK, file);
    if (r < 0)
        return r;
    DET_LIST_EACH(link, &sim->files)
    {
        const struct det_file *other = DET_CONTAINER(link, struct det_file, link);

        if (other != file && other->node == file->node && other->is_locked &&
            other->power_cuts == sim->disk.power_cuts)
            return DET_ERR_BUSY;
    }
    file->is_locked = true;
    return 0;
}

void det_sim_file_forget(struct det_world *world, struct det_file *file)
{
    (void)world;
    (void)file;
}

/* A simulation has no other users. */
void det_sim_file_share(struct det_world *world, struct det_file *file, const char *path)
{
    (void)world;
    (void)file;
    (void)path;
}

bool det_sim_path_is_remote(struct det_world *world, const char *path)
{
    (void)world;
    (void)path;
    return false;
}

/* The simulation itself is process 1. */
int64_t det_sim_self_number(struct det_world *world)
{
    struct det_process *process = det_sim_of(world)->current->process;

    return process ? det_sim_process_number(world, process) : 1;
}

void det_sim_set_disk_faults(struct det_sim *sim, const struct det_sim_disk_faults *faults)
{
    sim->disk.faults = *faults;
}

void det_sim_power_cut(struct det_sim *sim)
{
    trace_operation(sim, OPERATION_POWER_CUT, sim->disk.power_cuts);
    det_disk_power_cut(&sim->disk);
}
