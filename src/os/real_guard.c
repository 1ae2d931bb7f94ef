/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_guard.c - a real world whose processes are recorded and do not outlive the program.
 *
 * Invariants
 *   1. A process of this world has a slot before it is forked, and fills it before its exec.
 *   2. The slot is free again only after the process was reaped and its group was killed.
 *   3. The helper, while it lives, has the record mapped and waits for this program's end. */
#include "os/real_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/reserved.h"
#include "os/os.h"
#include "os/real_process.h"

/* Time limit for processes to exit after they were killed. */
#define CLOSE_SPAN (10 * DET_SECOND)

int det_process_guard_open(const struct det_allocator *allocator, struct det_process_guard **ret)
{
    struct det_process_guard *guard = DET_NEW(allocator, struct det_process_guard);
    int r;

    if (!guard)
        return DET_ERR_NO_MEMORY;
    guard->world.world = *det_world_real();
    guard->world.allocator = allocator;
    guard->world.guard = guard;
    guard->allocator = allocator;
    guard->file = guard->self = guard->cgroup = -1;
    r = pthread_mutex_init(&guard->lock, NULL);
    det_assert(r == 0);
    *ret = guard;
    return 0;
}

struct det_world *det_process_guard_world(struct det_process_guard *guard)
{
    return &guard->world.world;
}

/* Processes of an earlier run. */

struct left {
    const struct det_process_guard_options *options;
    pid_t last;
};

static void on_left(void *user, const struct det_process_guard_seen *seen, const char *command)
{
    struct left *left = user;

    left->last = seen->number;
    if (left->options->on_left)
        left->options->on_left(left->options->user, seen->number, command);
}

static int end_left(
    const struct det_process_guard_options *options, const struct det_process_guard_run *run,
    const struct det_process_guard_record *record, size_t size, struct det_error *reterr)
{
    struct left left = { .options = options };
    struct det_process_guard_options own = { .grace = options->grace, .user = &left };
    size_t count = (size - sizeof *record) / sizeof *record->slots;
    struct det_process_guard_scan scan;
    int r;

    if (det_process_guard_scan_init(&scan, run, record, count, true) < 0)
        return det_error_set(
            reterr, DET_ERR_UNSUPPORTED, "cannot scan /proc for processes of an earlier run");
    r = det_process_guard_end_all(&scan, &own, on_left);
    det_process_guard_scan_deinit(&scan);
    if (r == DET_ERR_TIMEOUT)
        return det_error_set(
            reterr, r,
            "process %d of an earlier run is still alive and cannot be killed; end it first",
            (int)left.last);
    return r < 0
               ? det_error_set(
                     reterr, r, "cannot end the processes of an earlier run: %s", det_error_text(r))
               : 0;
}

static int recover_run(const struct det_process_guard_options *options, struct det_error *reterr)
{
    struct det_process_guard_record *record;
    struct det_process_guard_run run;
    size_t size = 0;
    int r;

    r = det_process_guard_record_load(options->path, &run, &record, &size);
    if (r == DET_ERR_CORRUPT)
        return det_error_set(
            reterr, r,
            "%.200s, the record of processes of an earlier run, is damaged; find such processes "
            "with ps, end them, and remove the file",
            options->path);
    if (r < 0)
        return det_error_set(reterr, r, "cannot read %.200s: %s", options->path, det_error_text(r));
    r = record ? end_left(options, &run, record, size, reterr) : 0;
    det_process_guard_record_unload(record, size);
    return r;
}

/* "DETENT_RUN=", the runs that this program belongs to, then its own. */
static void make_marks(struct det_process_guard *guard)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): read as the environment of children is */
    const char *outer = getenv("DETENT_RUN");
    size_t most = sizeof guard->tied - sizeof DET_GUARD_VARIABLE - DET_GUARD_ID_SIZE - 8;

    if (!outer || strlen(outer) > most)
        outer = "";
    (void)snprintf(
        guard->tied, sizeof guard->tied, DET_GUARD_VARIABLE "%s%s%s", outer, *outer ? ":" : "",
        guard->run.name);
    (void)snprintf(
        guard->kept, sizeof guard->kept, DET_GUARD_VARIABLE "%s%s%s-kept", outer, *outer ? ":" : "",
        guard->run.name);
}

static bool open_scan(
    const struct det_process_guard *guard, bool with_kept, struct det_process_guard_scan *ret)
{
    return det_process_guard_scan_init(
               ret, &guard->run, guard->record, DET_PROCESS_GUARD_MAX, with_kept) == 0;
}

/* Kills living processes that are tied to the run. Returns true if none of the run is left,
 * including those that were kept, which the next start ends. */
static bool end_tied(const struct det_process_guard *guard)
{
    det_time deadline = det_real_now(NULL, DET_CLOCK_MONOTONIC) + CLOSE_SPAN;
    struct det_process_guard_scan scan;
    bool is_over;

    if (guard->count == 0)
        return !*guard->run.cgroup || det_process_guard_cgroup_remove(guard->run.cgroup);
    if (!open_scan(guard, false, &scan))
        return false;
    is_over = det_process_guard_kill_all(&scan, deadline);
    scan.with_kept = true;
    is_over = is_over && det_process_guard_scan_run(&scan, 0, NULL, NULL) == 0;
    det_process_guard_scan_deinit(&scan);
    return is_over;
}

/* Restores the state before the start. The helper ends last: we may be killed at any moment. */
static void end_run(struct det_process_guard *guard)
{
    bool is_over;

    if (!guard->record)
        return;
    is_over = end_tied(guard);
    guard->helper_wanted = false;
    det_process_guard_helper_stop(guard);
    det_process_guard_record_close(guard, is_over);
    if (guard->self >= 0)
        close(guard->self);
    guard->self = -1;
}

int det_process_guard_start(
    struct det_process_guard *guard, const struct det_process_guard_options *options,
    struct det_error *reterr)
{
    int r, number;

    det_assert(!guard->record && options->path);
    r = det_reserved_check(options->reserved, "a guard of processes", reterr);
    if (r == 0)
        r = recover_run(options, reterr);
    if (r < 0)
        return r;
    r = det_process_guard_record_create(guard, options->path);
    if (r < 0)
        return det_error_set(
            reterr, r, "cannot create %.200s, the record of started processes: %s", options->path,
            det_error_text(r));
    make_marks(guard);
    guard->self = pidfd_open(getpid(), 0);
    guard->helper_wanted = guard->self >= 0 && det_process_guard_helper_start(guard) == 0;
    if (guard->helper_wanted)
        return 0;
    number = errno;
    end_run(guard);
    return det_error_set(
        reterr, det_real_error(number), "cannot start the helper that guards the processes: %s",
        strerrordesc_np(number));
}

int det_process_guard_tend(struct det_process_guard *guard)
{
    if (!guard->helper_wanted || (guard->helper && waitpid(guard->helper, NULL, WNOHANG) == 0))
        return 0;
    guard->helper = 0;
    return det_process_guard_helper_start(guard) == 0 ? 1 : det_real_error(errno);
}

bool det_process_guard_is_helper(struct det_process_guard *guard, int64_t number)
{
    return guard->helper > 0 && number == guard->helper;
}

/* Slots. */

struct det_process_guard *det_real_guard(struct det_world *world)
{
    struct det_process_guard *guard = ((struct det_real_world *)(void *)world)->guard;

    return guard && guard->record ? guard : NULL;
}

static int take_slot(struct det_process_guard *guard, struct det_process_guard_slot **ret)
{
    struct det_process_guard_record *record = guard->record;
    uint32_t index = guard->count;
    int r;

    if (guard->free && guard->free <= index) {
        *ret = &record->slots[guard->free - 1];
        guard->free = (*ret)->next;
        return 0;
    }
    if (index == guard->allocated) {
        r = det_process_guard_record_grow(guard, index + DET_GUARD_SLOTS_STEP);
        if (r < 0)
            return r;
    }
    *ret = &record->slots[index];
    record->count = guard->count = index + 1;
    return 0;
}

/* The beginning of the command line. */
static void copy_command(const char *const *argv, char target[DET_GUARD_TEXT_SIZE])
{
    size_t used = 0;

    for (; *argv && used < DET_GUARD_TEXT_SIZE - 1; argv++) {
        int size =
            snprintf(target + used, DET_GUARD_TEXT_SIZE - used, "%s%s", used ? " " : "", *argv);

        used += size > 0 ? (size_t)size : 0;
    }
}

int det_process_guard_claim(
    struct det_process_guard *guard, const struct det_process_options *options,
    struct det_process_guard_slot **ret)
{
    struct det_process_guard_slot *slot = NULL;
    int r;

    pthread_mutex_lock(&guard->lock);
    r = take_slot(guard, &slot);
    if (r == 0) {
        slot->number = 0;
        slot->is_kept = !options->ends_with_us;
        copy_command(options->argv, slot->command);
        slot->state = DET_GUARD_CLAIMED;
        *ret = slot;
    }
    pthread_mutex_unlock(&guard->lock);
    return r;
}

void det_process_guard_release(struct det_process_guard *guard, struct det_process_guard_slot *slot)
{
    pthread_mutex_lock(&guard->lock);
    slot->state = DET_GUARD_FREE;
    slot->next = guard->free;
    guard->free = (uint32_t)(slot - guard->record->slots) + 1;
    pthread_mutex_unlock(&guard->lock);
}

int det_process_guard_record_self(struct det_process_guard_slot *slot, int cgroup)
{
    struct det_process_guard_seen self;
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_seen = proc >= 0 && det_process_guard_find(proc, getpid(), &self);

    if (proc >= 0)
        close(proc);
    if (!is_seen)
        return -1;
    slot->number = (uint32_t)self.number;
    slot->start = self.start;
    slot->state = DET_GUARD_LIVE;
    /* A child that cannot join the cgroup is still identified by the record and its mark. */
    if (cgroup >= 0 && !slot->is_kept)
        (void)!write(cgroup, "0", 1);
    return 0;
}

void det_process_guard_kill(struct det_process_guard *guard, det_time span)
{
    struct det_process_guard_scan scan;

    if (!guard->record || !open_scan(guard, true, &scan))
        return;
    (void)det_process_guard_kill_all(&scan, det_real_now(NULL, DET_CLOCK_MONOTONIC) + span);
    det_process_guard_scan_deinit(&scan);
}

void det_process_guard_close(struct det_process_guard *guard)
{
    if (!guard)
        return;
    end_run(guard);
    pthread_mutex_destroy(&guard->lock);
    DET_DELETE(guard->allocator, guard);
}
