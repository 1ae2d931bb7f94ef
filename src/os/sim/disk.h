/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* disk.h - a disk in memory that forgets what was not synced.
 *
 *      path --> name { current, durable } --> node { current bytes, durable bytes, writes }
 *                        ^ changes: create, rename, remove,      ^ writes and truncations
 *                          until their folder is synced            until the file is synced
 *
 * Readers see `current`; a power cut leaves the `durable` content, and some of the writes and
 * changes in progress, chosen by the seed.
 *
 * Invariants
 *   1. `current` and `durable` bytes of a node have room for `capacity` bytes each, and those
 *      beyond their size are 0; so neither a sync nor a power cut needs memory.
 *   2. A node counts its references: names (current and durable), changes, open files.
 *   3. A name stays in the map until the disk is closed. */
#ifndef DET_OS_SIM_DISK_H
#define DET_OS_SIM_DISK_H

#include <detent/driver/world.h>
#include <detent/sim.h>

#include "base/list.h"
#include "base/map.h"
#include "os/sim/random.h"

#define DET_DISK_SECTOR 512
/* The largest simulated file; a larger one is DET_ERR_NO_SPACE. */
#define DET_DISK_FILE_MAX ((uint64_t)1 << 30)

struct det_disk {
    const struct det_allocator *allocator;
    struct det_sim_disk_faults faults;
    struct det_chance chance;
    struct det_map names;
    struct det_list nodes;   /* in the order they were made */
    struct det_list changes; /* of names, in the order they were made */
    uint64_t nodes_made;
    uint64_t power_cuts; /* a file opened before the last one is dead */
};

/* Bytes on the disk. */
struct det_disk_node {
    struct det_list link;
    struct det_list writes; /* since the last sync */
    uint64_t number;
    unsigned references;
    bool is_folder;
    unsigned char *current, *durable;
    size_t current_size, durable_size;
    size_t capacity;
};

void det_disk_init(struct det_disk *disk, const struct det_allocator *allocator, uint64_t seed);
void det_disk_deinit(struct det_disk *disk);
void det_disk_power_cut(struct det_disk *disk);

/* Creates a node with one reference; NULL without memory. */
struct det_disk_node *det_disk_node_new(struct det_disk *disk, bool is_folder);
void det_disk_node_hold(struct det_disk_node *node);
/* NULL is allowed. */
void det_disk_node_drop(struct det_disk *disk, struct det_disk_node *node);
/* Writes `size` bytes of `data`, or truncates the file at `offset` if `data` is NULL.
 * DET_ERR_NO_MEMORY or DET_ERR_NO_SPACE, and nothing is changed. */
DET_MUST_CHECK int det_disk_node_write(
    struct det_disk *disk, struct det_disk_node *node, uint64_t offset, const void *data,
    size_t size);
/* Makes all writes since the last sync durable, or drops them. */
void det_disk_node_sync(struct det_disk *disk, struct det_disk_node *node);
void det_disk_node_forget(struct det_disk *disk, struct det_disk_node *node);
/* Keeps, loses or tears each pending write; afterwards only the durable state is left. */
void det_disk_node_power_cut(struct det_disk *disk, struct det_disk_node *node);

/* Returns the node at a path; NULL if there is none. */
struct det_disk_node *det_disk_find(const struct det_disk *disk, const char *path);
/* Creates an empty file or folder. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_disk_create(
    struct det_disk *disk, const char *path, bool is_folder, struct det_disk_node **ret);
/* `to` NULL removes. The path must exist. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_disk_move(struct det_disk *disk, const char *from, const char *to);
/* Makes the changes in a folder durable, or drops them. */
void det_disk_folder_sync(struct det_disk *disk, const char *path);
void det_disk_folder_forget(struct det_disk *disk, const char *path);

#endif
