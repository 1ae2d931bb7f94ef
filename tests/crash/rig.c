/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rig.c - runs plans on a recorded disk and looks at what power cuts leave. */
#include "crash/rig.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <detent/driver/world.h>

#define TOLD_MAX 10
#define URL(vfs) "sqlite:store.db?vfs=" vfs

/* The simulated world has one rig, which its disk operations are for. */
static struct crash_rig *current;

/* The folder of the store is that of the recorded disk. */
static int rig_folder_sync(struct det_world *world, const char *path)
{
    (void)world, (void)path;
    crash_disk_sync_folder(current->active);
    return 0;
}

/* Whoever opens a file to have it forgotten forgets that of the recorded disk: the simulation's own
 * stands in for it meanwhile. */
static int rig_file_open(
    struct det_world *world, const char *path, unsigned flags, struct det_file **ret)
{
    struct crash_disk *disk = current->active;
    int r;

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

static void rig_file_forget(struct det_world *world, struct det_file *file)
{
    struct crash_disk *disk = current->active;

    (void)world;
    for (unsigned i = 0; i < disk->name_count; i++)
        if (current->opened[i] == file && disk->names[i].node >= 0 && disk->is_recording) {
            crash_disk_forget(disk, (unsigned)disk->names[i].node);
            current->forgotten++;
        }
}

static void hook_world(struct crash_rig *rig)
{
    struct det_world *world = det_sim_world(rig->sim);

    rig->world_ops = world->ops;
    rig->ops = *world->ops;
    rig->ops.folder_sync = rig_folder_sync;
    rig->ops.file_open = rig_file_open;
    rig->ops.file_forget = rig_file_forget;
    world->ops = &rig->ops;
    current = rig;
}

static void must(bool is_well, const char *what)
{
    if (is_well)
        return;
    fprintf(stderr, "crash: %s\n", what);
    abort();
}

void crash_rig_open(struct crash_rig *rig, const struct crash_plan_options *options)
{
    static const char *const names[CRASH_LEVELS] = { "crash0", "crash1", "crash2" };
    static const char *const urls[CRASH_LEVELS] = { URL("crash0"), URL("crash1"), URL("crash2") };
    struct det_store_options store = { .connections = 1 };

    memset(rig, 0, sizeof *rig);
    (void)sqlite3_initialize();
    (void)sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, 1 + (int)(options->seed & 0xffff), NULL);
    must(det_sim_open(NULL, &rig->sim, NULL) == 0, "no simulation");
    hook_world(rig);
    store.world = det_sim_world(rig->sim);
    for (unsigned i = 0; i < CRASH_LEVELS; i++) {
        crash_disk_init(&rig->levels[i].disk);
        rig->levels[i].vfs = crash_vfs_register(names[i], &rig->levels[i].disk);
        crash_run_init(&rig->levels[i].run, urls[i], &store);
    }
    rig->plan = crash_plan_open(options);
    rig->found = calloc(1, sizeof *rig->found);
    must(rig->found, "no memory");
    rig->active = &rig->levels[0].disk;
    (void)crash_disk_record(rig->active);
}

void crash_rig_close(struct crash_rig *rig)
{
    for (unsigned i = 0; i < CRASH_LEVELS; i++) {
        rig->active = &rig->levels[i].disk;
        crash_run_deinit(&rig->levels[i].run);
        crash_vfs_unregister(rig->levels[i].vfs);
        crash_disk_deinit(&rig->levels[i].disk);
    }
    crash_plan_close(rig->plan);
    free(rig->found);
    det_sim_close(rig->sim);
    current = NULL;
}

static void answer(struct crash_rig *rig, size_t step)
{
    const struct crash_disk *disk = &rig->levels[0].disk;

    rig->answered = step;
    if (rig->plan->steps[step - 1].kind == CRASH_STEP_REOPEN)
        rig->forgiven = disk->failed_syncs;
    if (disk->failed_syncs > rig->forgiven)
        rig->answered_late++;
    crash_disk_mark(&rig->levels[0].disk, 2 * step);
}

/* The definition that is served after a step. */
static unsigned version_at(const struct crash_rig *rig, size_t step)
{
    return step ? rig->plan->steps[step - 1].version : 1;
}

int crash_rig_run(struct crash_rig *rig, size_t from, size_t to)
{
    struct crash_level *level = &rig->levels[0];
    int r;

    rig->active = &level->disk;
    rig->forgiven = level->disk.failed_syncs;
    r = crash_run_open(&level->run, version_at(rig, from));
    for (size_t i = from + 1; i <= to && r == 0; i++) {
        rig->begun = i;
        crash_disk_mark(&level->disk, 2 * i - 1);
        if (rig->answers_early)
            answer(rig, i);
        r = crash_run_step(&level->run, &rig->plan->steps[i - 1]);
        if (r == 0)
            answer(rig, i);
    }
    return r;
}

static void tell(const struct crash_rig *rig, const struct crash_cut *cut, const char *text)
{
    if (CRASH_FAULTS_SUM(rig->faults) <= TOLD_MAX)
        printf(
            "place %zu, step %llu %s, state %016llx: %s\n", cut->place,
            (unsigned long long)(cut->mark + 1) / 2, cut->mark % 2 ? "begun" : "answered",
            (unsigned long long)cut->state, text);
}

static void blame(
    struct crash_rig *rig, const struct crash_cut *cut, uint64_t *count, const char *text)
{
    ++*count;
    tell(rig, cut, text);
}

static void compare(struct crash_rig *rig, struct crash_run *run, const struct crash_cut *cut)
{
    const struct crash_model *answered = &rig->plan->models[cut->mark / 2];
    const struct crash_model *begun = &rig->plan->models[(cut->mark + 1) / 2];
    unsigned findings = 0;
    char text[512];
    int r;

    r = crash_run_look(run, rig->found);
    if (r < 0) {
        blame(rig, cut, &rig->faults.unchecked, run->text);
        return;
    }
    if (!crash_model_check(rig->found, answered, begun, &rig->faults, text, sizeof text))
        tell(rig, cut, text);
    r = crash_run_check(run, &findings);
    if (r < 0 || findings)
        blame(rig, cut, &rig->faults.unchecked, run->text);
}

/* Opens the store of a level and compares; everything that a program does after a crash. */
static void look_at(struct crash_rig *rig, struct crash_level *level, const struct crash_cut *cut)
{
    int r;

    rig->active = &level->disk;
    level->run.text[0] = 0;
    r = crash_run_open(&level->run, version_at(rig, (size_t)cut->mark / 2));
    if (r < 0)
        blame(rig, cut, &rig->faults.unopened, level->run.text);
    else
        compare(rig, &level->run, cut);
    crash_run_close(&level->run);
}

int64_t crash_rig_stand(struct crash_rig *rig)
{
    struct crash_level *level = &rig->levels[0];
    int64_t at = -1;

    rig->active = &level->disk;
    if (crash_run_open(&level->run, version_at(rig, rig->answered)) == 0 &&
        crash_run_look(&level->run, rig->found) == 0) {
        if (!memcmp(rig->found, &rig->plan->models[rig->answered], sizeof *rig->found))
            at = (int64_t)rig->answered;
        else if (!memcmp(rig->found, &rig->plan->models[rig->begun], sizeof *rig->found))
            at = (int64_t)rig->begun;
    }
    crash_run_close(&level->run);
    return at;
}

struct nested {
    struct crash_rig *rig;
    uint64_t mark; /* of the first cut */
};

static int look_nested(void *context, const struct crash_cut *cut, struct crash_disk *disk)
{
    struct nested *nested = context;
    struct crash_cut both = { cut->place, nested->mark, cut->state };

    (void)disk;
    nested->rig->nested_states++;
    look_at(nested->rig, &nested->rig->levels[2], &both);
    return 0;
}

/* While the store of the first cut is opened and looked at, the disk is recorded; then the power
 * goes at every place of that. */
static void look_and_cut(struct crash_rig *rig, const struct crash_cut *cut)
{
    struct crash_disk *disk = &rig->levels[1].disk;
    struct crash_cut_options options = { .chances = 2, .seed = cut->state, .singles_max = 8 };
    struct nested nested = { rig, cut->mark };

    options.first = crash_disk_record(disk);
    look_at(rig, &rig->levels[1], cut);
    (void)crash_cut_each(disk, &options, &rig->levels[2].disk, look_nested, &nested, NULL);
}

static int look(void *context, const struct crash_cut *cut, struct crash_disk *disk)
{
    struct crash_rig *rig = context;

    (void)disk;
    rig->states++;
    if (rig->nested_every && cut->state / 64 % rig->nested_every == 0)
        look_and_cut(rig, cut);
    else
        look_at(rig, &rig->levels[1], cut);
    return 0;
}

void crash_rig_cut(struct crash_rig *rig, const struct crash_cut_options *options)
{
    (void)crash_cut_each(&rig->levels[0].disk, options, &rig->levels[1].disk, look, rig, NULL);
}

uint64_t crash_setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

void crash_report(const char *what, uint64_t count, const struct crash_faults *faults)
{
    printf(
        "%s: %llu, lost %llu, doubled %llu, timers lost %llu, effects lost %llu, halves %llu, "
        "unopened %llu, unchecked %llu\n",
        what, (unsigned long long)count, (unsigned long long)faults->lost,
        (unsigned long long)faults->doubled, (unsigned long long)faults->timers,
        (unsigned long long)faults->effects, (unsigned long long)faults->halves,
        (unsigned long long)faults->unopened, (unsigned long long)faults->unchecked);
    fflush(stdout);
}
