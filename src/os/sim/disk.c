/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* disk.c - the names of the simulated disk, and their changes that are not durable yet. */
#include "os/sim/disk.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"

#define DISK_STREAM 3

struct name {
    const char *path; /* the map's key */
    struct det_disk_node *current, *durable;
    size_t size; /* size of this block, including the path */
    char text[];
};

/* `node` moves from `from` (if any) to `to` (if any). Applies to the durable names only where they
 * still, or already, match: earlier changes may have been lost. */
struct change {
    struct det_list link;
    struct name *from, *to;
    struct det_disk_node *node;
};

void det_disk_init(struct det_disk *disk, const struct det_allocator *allocator, uint64_t seed)
{
    disk->allocator = allocator;
    det_chance_init(&disk->chance, seed, DISK_STREAM);
    /* The seed of the map is constant: its order must be the same in every run. */
    det_map_init(&disk->names, allocator, 0, offsetof(struct name, path));
    det_list_init(&disk->nodes);
    det_list_init(&disk->changes);
}

static void set_node(struct det_disk *disk, struct det_disk_node **slot, struct det_disk_node *node)
{
    if (node)
        det_disk_node_hold(node);
    det_disk_node_drop(disk, *slot);
    *slot = node;
}

static void free_change(struct det_disk *disk, struct change *change)
{
    det_list_remove(&change->link);
    det_disk_node_drop(disk, change->node);
    DET_DELETE(disk->allocator, change);
}

void det_disk_deinit(struct det_disk *disk)
{
    struct name *name;
    size_t cursor = 0;

    while (!det_list_is_empty(&disk->changes))
        free_change(disk, DET_CONTAINER(disk->changes.next, struct change, link));
    while ((name = det_map_next(&disk->names, &cursor))) {
        set_node(disk, &name->current, NULL);
        set_node(disk, &name->durable, NULL);
        det_free(disk->allocator, name, name->size);
    }
    det_map_deinit(&disk->names);
    /* Every file is closed, so nothing else can hold a node. */
    det_assert(det_list_is_empty(&disk->nodes));
}

/* Returns the name of a path, created if necessary; NULL without memory. */
static struct name *name_of(struct det_disk *disk, const char *path)
{
    struct name *name = det_map_get(&disk->names, path);
    size_t length = strlen(path);

    if (name)
        return name;
    name = det_alloc_zero(disk->allocator, sizeof *name + length + 1);
    if (!name)
        return NULL;
    name->size = sizeof *name + length + 1;
    memcpy(name->text, path, length);
    name->path = name->text;
    if (det_map_put(&disk->names, name) < 0) {
        det_free(disk->allocator, name, name->size);
        return NULL;
    }
    return name;
}

struct det_disk_node *det_disk_find(const struct det_disk *disk, const char *path)
{
    const struct name *name = det_map_get(&disk->names, path);

    return name ? name->current : NULL;
}

/* Changes the visible state at once, and queues the change for the sync of the folder. */
static int change_names(
    struct det_disk *disk, struct name *from, struct name *to, struct det_disk_node *node)
{
    struct change *change;

    change = DET_NEW(disk->allocator, struct change);
    if (!change)
        return DET_ERR_NO_MEMORY;
    change->from = from;
    change->to = to;
    set_node(disk, &change->node, node);
    det_list_append(&disk->changes, &change->link);
    if (from)
        set_node(disk, &from->current, NULL);
    if (to)
        set_node(disk, &to->current, node);
    return 0;
}

int det_disk_create(
    struct det_disk *disk, const char *path, bool is_folder, struct det_disk_node **ret)
{
    struct name *name = name_of(disk, path);
    struct det_disk_node *node;
    int r;

    if (!name)
        return DET_ERR_NO_MEMORY;
    node = det_disk_node_new(disk, is_folder);
    if (!node)
        return DET_ERR_NO_MEMORY;
    r = change_names(disk, NULL, name, node);
    /* The name holds the reference from here on; without a name it is dropped. */
    det_disk_node_drop(disk, node);
    if (r < 0)
        return r;
    *ret = node;
    return 0;
}

int det_disk_move(struct det_disk *disk, const char *from, const char *to)
{
    struct name *source = det_map_get(&disk->names, from), *target = NULL;

    det_assert(source && source->current);
    if (to) {
        target = name_of(disk, to);
        if (!target)
            return DET_ERR_NO_MEMORY;
        if (target == source)
            return 0;
    }
    return change_names(disk, source, target, source->current);
}

static void apply_change(struct det_disk *disk, const struct change *change)
{
    if (change->from && change->from->durable == change->node)
        set_node(disk, &change->from->durable, NULL);
    if (change->to)
        set_node(disk, &change->to->durable, change->node);
}

/* A rename belongs to the folder of its target. */
static bool change_is_in(const struct change *change, const char *folder)
{
    const char *path = change->to ? change->to->path : change->from->path;
    char own[DET_PATH_MAX];
    size_t length = strlen(folder);
    int r;

    while (length > 1 && folder[length - 1] == '/')
        length--;
    r = det_file_folder(path, own);
    det_assert(r == 0);
    return strlen(own) == length && memcmp(own, folder, length) == 0;
}

static void end_changes(struct det_disk *disk, const char *folder, bool durably)
{
    struct det_list *next;

    for (struct det_list *link = disk->changes.next; link != &disk->changes; link = next) {
        struct change *change = DET_CONTAINER(link, struct change, link);

        next = link->next;
        if (!change_is_in(change, folder))
            continue;
        if (durably)
            apply_change(disk, change);
        free_change(disk, change);
    }
}

void det_disk_folder_sync(struct det_disk *disk, const char *path)
{
    end_changes(disk, path, true);
}

void det_disk_folder_forget(struct det_disk *disk, const char *path)
{
    end_changes(disk, path, false);
}

void det_disk_power_cut(struct det_disk *disk)
{
    struct name *name;
    size_t cursor = 0;

    disk->power_cuts++;
    while (!det_list_is_empty(&disk->changes)) {
        struct change *change = DET_CONTAINER(disk->changes.next, struct change, link);

        if (det_chance_below(&disk->chance, 2))
            apply_change(disk, change);
        free_change(disk, change);
    }
    while ((name = det_map_next(&disk->names, &cursor)))
        set_node(disk, &name->current, name->durable);
    DET_LIST_EACH(link, &disk->nodes)
    det_disk_node_power_cut(disk, DET_CONTAINER(link, struct det_disk_node, link));
}
