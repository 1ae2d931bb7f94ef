/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* bed.c - the simulated world with recorded disks instead of its own. */
#include "crash/bed.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crash/memo.h"

#define URL(vfs) "sqlite:store.db?vfs=" vfs "&checkpoint_pages=60&cache_pages=64"

/* The bed whose world is in use. */
static struct crash_bed *current;

/* The folder of the store is that of the recorded disk. */
static int bed_folder_sync(struct det_world *world, const char *path)
{
    (void)world, (void)path;
    crash_disk_sync_folder(current->active);
    return 0;
}

/* Opening a file to drop its cached pages drops those of the recorded disk: the simulation's own
 * file is used meanwhile. */
static int bed_file_open(
    struct det_world *world, const char *path, unsigned flags, struct det_file **ret)
{
    struct crash_disk *disk = current->active;
    int r;

    if (disk->memo)
        crash_memo_read(disk->memo, path, CRASH_ASK_EXISTS, 0, 0);
    for (unsigned i = 0; i < disk->name_count; i++)
        if (disk->names[i].node >= 0 && !strcmp(disk->names[i].path, path)) {
            r = current->world_ops->file_open(
                world, path, flags | DET_FILE_WRITE | DET_FILE_CREATE, ret);
            if (r == 0)
                current->opened[i] = *ret;
            return r;
        }
    return current->world_ops->file_open(world, path, flags, ret);
}

static void bed_file_forget(struct det_world *world, struct det_file *file)
{
    struct crash_disk *disk = current->active;

    (void)world;
    if (crash_has_bug("remember"))
        return;
    for (unsigned i = 0; i < disk->name_count; i++)
        if (current->opened[i] == file && disk->names[i].node >= 0 && disk->is_recording) {
            crash_disk_forget(disk, (unsigned)disk->names[i].node);
            current->forgotten++;
        }
}

static void hook_world(struct crash_bed *bed)
{
    struct det_world *world = det_sim_world(bed->sim);

    bed->world_ops = world->ops;
    bed->ops = *world->ops;
    bed->ops.folder_sync = bed_folder_sync;
    bed->ops.file_open = bed_file_open;
    bed->ops.file_forget = bed_file_forget;
    world->ops = &bed->ops;
    current = bed;
}

static void must(bool is_well, const char *what)
{
    if (is_well)
        return;
    fprintf(stderr, "crash: %s\n", what);
    abort();
}

/* One thread, and memory is not counted: a store is opened some hundred times a second. */
static void set_up_sqlite(void)
{
    (void)sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    must(sqlite3_initialize() == SQLITE_OK, "no SQLite");
}

void crash_bed_open(struct crash_bed *bed, uint64_t seed)
{
    static const char *const names[CRASH_LEVELS] = { "crash0", "crash1", "crash2" };
    const struct det_sim_options options = { .seed = seed };

    memset(bed, 0, sizeof *bed);
    set_up_sqlite();
    (void)sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, 1 + (int)(seed & 0xffff), NULL);
    must(det_sim_open(&options, &bed->sim, NULL) == 0, "no simulation");
    hook_world(bed);
    for (unsigned i = 0; i < CRASH_LEVELS; i++) {
        crash_disk_init(&bed->disks[i]);
        bed->vfs[i] = crash_vfs_register(names[i], &bed->disks[i]);
    }
    bed->active = &bed->disks[0];
    (void)crash_disk_record(bed->active);
}

const char *crash_bed_url(unsigned level)
{
    static const char *const urls[CRASH_LEVELS] = { URL("crash0"), URL("crash1"), URL("crash2") };

    return urls[level];
}

void crash_bed_close(struct crash_bed *bed)
{
    for (unsigned i = 0; i < CRASH_LEVELS; i++) {
        crash_vfs_unregister(bed->vfs[i]);
        crash_disk_deinit(&bed->disks[i]);
    }
    det_sim_close(bed->sim);
    current = NULL;
}

uint64_t crash_setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

uint64_t crash_seed(void)
{
    return crash_setting("CRASH_SEED", 1) + 1000 * crash_setting("CRASH_SEED_ADDED", 0);
}

bool crash_has_bug(const char *name)
{
    const char *bug = getenv("CRASH_BUG");

    return bug && strcmp(bug, name) == 0;
}
