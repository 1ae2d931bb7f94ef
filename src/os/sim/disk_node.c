/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* disk_node.c - the bytes of one simulated file: current content, durable content, pending
 * writes. */
#include <string.h>

#include "base/memory.h"
#include "os/sim/disk.h"

/* A write, or a truncation when `is_truncation`: then the file ends at `offset`. */
struct write {
    struct det_list link;
    bool is_truncation;
    size_t offset;
    size_t size;
    unsigned char data[];
};

enum fate {
    FATE_KEPT,
    FATE_LOST,
    FATE_TORN,
};

struct det_disk_node *det_disk_node_new(struct det_disk *disk, bool is_folder)
{
    struct det_disk_node *node;

    node = DET_NEW(disk->allocator, struct det_disk_node);
    if (!node)
        return NULL;
    node->number = ++disk->nodes_made;
    node->references = 1;
    node->is_folder = is_folder;
    det_list_init(&node->writes);
    det_list_append(&disk->nodes, &node->link);
    return node;
}

void det_disk_node_hold(struct det_disk_node *node)
{
    node->references++;
}

void det_disk_node_drop(struct det_disk *disk, struct det_disk_node *node)
{
    if (!node || --node->references)
        return;
    det_disk_node_forget(disk, node);
    det_list_remove(&node->link);
    det_free(disk->allocator, node->current, node->capacity);
    det_free(disk->allocator, node->durable, node->capacity);
    DET_DELETE(disk->allocator, node);
}

static unsigned char *grown_copy(
    struct det_disk *disk, const unsigned char *bytes, size_t size, size_t capacity)
{
    unsigned char *copy = det_alloc_zero(disk->allocator, capacity);

    if (copy && size)
        memcpy(copy, bytes, size);
    return copy;
}

/* Reserves room for `size` bytes in both images. */
static int reserve_images(struct det_disk *disk, struct det_disk_node *node, size_t size)
{
    size_t capacity = node->capacity ? node->capacity : DET_DISK_SECTOR;
    unsigned char *current, *durable;

    if (size <= node->capacity)
        return 0;
    while (capacity < size)
        capacity *= 2;
    current = grown_copy(disk, node->current, node->current_size, capacity);
    durable = grown_copy(disk, node->durable, node->durable_size, capacity);
    if (!current || !durable) {
        det_free(disk->allocator, current, capacity);
        det_free(disk->allocator, durable, capacity);
        return DET_ERR_NO_MEMORY;
    }
    det_free(disk->allocator, node->current, node->capacity);
    det_free(disk->allocator, node->durable, node->capacity);
    node->current = current;
    node->durable = durable;
    node->capacity = capacity;
    return 0;
}

static void put_bytes(
    unsigned char *bytes, size_t *size, const struct write *write, size_t from, size_t count)
{
    memcpy(bytes + write->offset + from, write->data + from, count);
    if (*size < write->offset + from + count)
        *size = write->offset + from + count;
}

static void cut_bytes(unsigned char *bytes, size_t *size, size_t end)
{
    if (end < *size)
        memset(bytes + end, 0, *size - end);
    *size = end;
}

static void apply_write(unsigned char *bytes, size_t *size, const struct write *write)
{
    if (write->is_truncation)
        cut_bytes(bytes, size, write->offset);
    else
        put_bytes(bytes, size, write, 0, write->size);
}

int det_disk_node_write(
    struct det_disk *disk, struct det_disk_node *node, uint64_t offset, const void *data,
    size_t size)
{
    struct write *write;
    int r;

    if (data && !size)
        return 0;
    if (offset > DET_DISK_FILE_MAX || size > DET_DISK_FILE_MAX - offset)
        return DET_ERR_NO_SPACE;
    r = reserve_images(disk, node, (size_t)offset + size);
    if (r < 0)
        return r;
    write = det_alloc(disk->allocator, sizeof *write + size);
    if (!write)
        return DET_ERR_NO_MEMORY;
    write->is_truncation = !data;
    write->offset = (size_t)offset;
    write->size = size;
    if (data)
        memcpy(write->data, data, size);
    det_list_append(&node->writes, &write->link);
    apply_write(node->current, &node->current_size, write);
    return 0;
}

static struct write *take_write(struct det_disk_node *node)
{
    struct det_list *link = det_list_take(&node->writes);

    return link ? DET_CONTAINER(link, struct write, link) : NULL;
}

static void free_write(struct det_disk *disk, struct write *write)
{
    det_free(disk->allocator, write, sizeof *write + write->size);
}

void det_disk_node_sync(struct det_disk *disk, struct det_disk_node *node)
{
    struct write *write;

    while ((write = take_write(node))) {
        apply_write(node->durable, &node->durable_size, write);
        free_write(disk, write);
    }
}

void det_disk_node_forget(struct det_disk *disk, struct det_disk_node *node)
{
    struct write *write;

    while ((write = take_write(node)))
        free_write(disk, write);
}

/* Each sector of the write is kept or lost on its own. */
static void apply_torn(struct det_disk *disk, struct det_disk_node *node, const struct write *write)
{
    size_t at = 0;

    while (at < write->size) {
        size_t count = DET_DISK_SECTOR - (write->offset + at) % DET_DISK_SECTOR;

        if (count > write->size - at)
            count = write->size - at;
        if (det_chance_below(&disk->chance, 2))
            put_bytes(node->durable, &node->durable_size, write, at, count);
        at += count;
    }
}

static void meet_fate(struct det_disk *disk, struct det_disk_node *node, const struct write *write)
{
    enum fate fate = (enum fate)det_chance_below(&disk->chance, write->is_truncation ? 2 : 3);

    switch (fate) {
    case FATE_KEPT:
        apply_write(node->durable, &node->durable_size, write);
        break;
    case FATE_TORN:
        apply_torn(disk, node, write);
        break;
    case FATE_LOST:
        break;
    }
}

void det_disk_node_power_cut(struct det_disk *disk, struct det_disk_node *node)
{
    struct write *write;

    while ((write = take_write(node))) {
        meet_fate(disk, node, write);
        free_write(disk, write);
    }
    if (node->capacity)
        memcpy(node->current, node->durable, node->capacity);
    node->current_size = node->durable_size;
}
