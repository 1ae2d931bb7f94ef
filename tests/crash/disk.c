/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* disk.c - files in memory and the log of their changes. */
#include "crash/disk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

/* Makes room for `size` bytes; new bytes are not initialized. */
static void bytes_reserve(struct crash_bytes *bytes, size_t size)
{
    size_t capacity = bytes->capacity ? bytes->capacity : 4096;

    if (size <= bytes->capacity)
        return;
    while (capacity < size)
        capacity *= 2;
    bytes->data = must(realloc(bytes->data, capacity));
    bytes->capacity = capacity;
}

void crash_bytes_resize(struct crash_bytes *bytes, uint64_t size)
{
    bytes_reserve(bytes, (size_t)size);
    if (size > bytes->size)
        memset(bytes->data + bytes->size, 0, (size_t)size - bytes->size);
    bytes->size = (size_t)size;
}

void crash_bytes_write(struct crash_bytes *bytes, uint64_t offset, const void *data, size_t size)
{
    if (offset + size > bytes->size)
        crash_bytes_resize(bytes, offset + size);
    memcpy(bytes->data + offset, data, size);
}

void crash_bytes_copy(struct crash_bytes *target, const struct crash_bytes *source)
{
    target->size = 0;
    bytes_reserve(target, source->size);
    if (source->size)
        memcpy(target->data, source->data, source->size);
    target->size = source->size;
}

static struct crash_op *record(struct crash_disk *disk, enum crash_kind kind)
{
    struct crash_op *op;

    if (disk->op_count == disk->op_capacity) {
        disk->op_capacity = disk->op_capacity ? 2 * disk->op_capacity : 1024;
        disk->ops = must(realloc(disk->ops, disk->op_capacity * sizeof *disk->ops));
    }
    op = &disk->ops[disk->op_count++];
    *op = (struct crash_op){ .kind = kind };
    return op;
}

static void record_node(struct crash_disk *disk, enum crash_kind kind, unsigned node)
{
    if (disk->is_recording)
        record(disk, kind)->node = node;
}

void crash_disk_init(struct crash_disk *disk)
{
    memset(disk, 0, sizeof *disk);
}

void crash_shm_free(struct crash_shm *shm)
{
    for (unsigned i = 0; i < CRASH_SHM_MAX; i++)
        free(shm->regions[i]);
    memset(shm, 0, sizeof *shm);
}

void crash_disk_clear(struct crash_disk *disk)
{
    for (unsigned i = 0; i < disk->name_count; i++)
        crash_shm_free(&disk->names[i].shm);
    for (unsigned i = 0; i < disk->node_count; i++)
        disk->nodes[i].size = 0;
    for (size_t i = 0; i < disk->op_count; i++)
        free(disk->ops[i].data);
    memset(disk->names, 0, sizeof disk->names);
    disk->name_count = disk->node_count = 0;
    disk->op_count = 0;
    for (size_t i = 0; i < disk->grave_count; i++)
        free(disk->graves[i]);
    disk->grave_count = 0;
    disk->sync_count = disk->failed_syncs = disk->change_count = disk->deaths = 0;
    disk->fault = (struct crash_fault){ 0 };
    disk->is_recording = false;
}

void crash_disk_deinit(struct crash_disk *disk)
{
    crash_disk_clear(disk);
    for (unsigned i = 0; i < CRASH_NODES; i++)
        free(disk->nodes[i].data);
    free(disk->graves);
    free(disk->ops);
    memset(disk, 0, sizeof *disk);
}

size_t crash_disk_record(struct crash_disk *disk)
{
    struct crash_op *op;

    assert(!disk->is_recording && disk->op_count == 0);
    for (unsigned i = 0; i < disk->name_count; i++) {
        int node = disk->names[i].node;

        if (node < 0)
            continue;
        op = record(disk, CRASH_CREATE);
        op->name = i;
        op->node = (unsigned)node;
        op = record(disk, CRASH_WRITE);
        op->node = (unsigned)node;
        op->size = disk->nodes[node].size;
        op->data = must(malloc(op->size + 1));
        if (op->size)
            memcpy(op->data, disk->nodes[node].data, op->size);
        record(disk, CRASH_SYNC)->node = (unsigned)node;
    }
    record(disk, CRASH_FOLDER_SYNC);
    disk->is_recording = true;
    return disk->op_count;
}

/* The locks of dead processes are gone; their shared memory stays, but no other process sees it. */
static void bury(struct crash_disk *disk)
{
    disk->deaths++;
    for (unsigned i = 0; i < disk->name_count; i++) {
        struct crash_name *name = &disk->names[i];

        disk->graves =
            must(realloc(disk->graves, (disk->grave_count + CRASH_SHM_MAX) * sizeof *disk->graves));
        memcpy(disk->graves + disk->grave_count, name->shm.regions, sizeof name->shm.regions);
        disk->grave_count += CRASH_SHM_MAX;
        memset(&name->shm, 0, sizeof name->shm);
        name->shared = 0;
        name->is_reserved = name->is_pending = name->is_exclusive = false;
    }
}

bool crash_disk_begin(struct crash_disk *disk, uint64_t deaths)
{
    if (deaths != disk->deaths)
        return false;
    disk->change_count++;
    if (disk->change_count != disk->fault.dies_at)
        return true;
    bury(disk);
    return false;
}

unsigned crash_disk_name(struct crash_disk *disk, const char *path)
{
    struct crash_name *name;

    for (unsigned i = 0; i < disk->name_count; i++)
        if (!strcmp(disk->names[i].path, path))
            return i;
    assert(disk->name_count < CRASH_NAMES && strlen(path) <= CRASH_PATH_MAX);
    name = &disk->names[disk->name_count];
    memset(name, 0, sizeof *name);
    memcpy(name->path, path, strlen(path) + 1);
    name->node = -1;
    return disk->name_count++;
}

void crash_disk_create(struct crash_disk *disk, unsigned name)
{
    struct crash_op *op;

    assert(disk->names[name].node < 0 && disk->node_count < CRASH_NODES);
    disk->names[name].node = (int)disk->node_count;
    disk->nodes[disk->node_count].size = 0;
    if (disk->is_recording) {
        op = record(disk, CRASH_CREATE);
        op->name = name;
        op->node = disk->node_count;
    }
    disk->node_count++;
}

void crash_disk_delete(struct crash_disk *disk, unsigned name)
{
    assert(disk->names[name].node >= 0);
    disk->names[name].node = -1;
    if (disk->is_recording)
        record(disk, CRASH_DELETE)->name = name;
}

void crash_disk_write(
    struct crash_disk *disk, unsigned node, uint64_t offset, const void *data, size_t size)
{
    struct crash_op *op;

    crash_bytes_write(&disk->nodes[node], offset, data, size);
    if (!disk->is_recording)
        return;
    op = record(disk, CRASH_WRITE);
    op->node = node;
    op->offset = offset;
    op->size = size;
    op->data = must(malloc(size ? size : 1));
    memcpy(op->data, data, size);
}

void crash_disk_truncate(struct crash_disk *disk, unsigned node, uint64_t size)
{
    struct crash_op *op;

    crash_bytes_resize(&disk->nodes[node], size);
    if (!disk->is_recording)
        return;
    op = record(disk, CRASH_TRUNCATE);
    op->node = node;
    op->offset = size;
}

bool crash_disk_sync(struct crash_disk *disk, unsigned node)
{
    const struct crash_fault *fault = &disk->fault;

    disk->sync_count++;
    if (fault->sync_at && (disk->sync_count == fault->sync_at ||
                           (fault->is_sticky && disk->sync_count > fault->sync_at))) {
        disk->failed_syncs++;
        disk->failed_at = disk->op_count;
        if (fault->drops)
            record_node(disk, CRASH_DROP, node);
        return false;
    }
    if (!fault->ignores_syncs)
        record_node(disk, CRASH_SYNC, node);
    return true;
}

void crash_disk_sync_folder(struct crash_disk *disk)
{
    if (!disk->fault.ignores_syncs)
        record_node(disk, CRASH_FOLDER_SYNC, 0);
}

/* The writes to a node within a part of the log. */
static void replay(struct crash_disk *disk, unsigned node, size_t from, size_t end)
{
    for (size_t i = from; i < end; i++) {
        const struct crash_op *op = &disk->ops[i];

        if (op->node != node)
            continue;
        if (op->kind == CRASH_WRITE)
            crash_bytes_write(&disk->nodes[node], op->offset, op->data, op->size);
        else if (op->kind == CRASH_TRUNCATE)
            crash_bytes_resize(&disk->nodes[node], op->offset);
    }
}

void crash_disk_forget(struct crash_disk *disk, unsigned node)
{
    size_t from = 0;

    assert(disk->is_recording);
    disk->nodes[node].size = 0;
    for (size_t i = 0; i < disk->op_count; i++) {
        const struct crash_op *op = &disk->ops[i];

        if (op->node != node || (op->kind != CRASH_SYNC && op->kind != CRASH_DROP))
            continue;
        if (op->kind == CRASH_SYNC)
            replay(disk, node, from, i);
        from = i + 1;
    }
    replay(disk, node, from, disk->op_count);
}

void crash_disk_mark(struct crash_disk *disk, uint64_t number)
{
    if (disk->is_recording)
        record(disk, CRASH_MARK)->offset = number;
}
