/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* process_guard.c - opens the guard, which ends recorded processes when detent is killed, and ends
 * processes that an earlier detent has left running. */
#include <detent/driver/loop.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/text.h"
#include "config/socket_place.h"
#include "daemon/run.h"
#include "os/os.h"

#define GRACE_MAX  (10 * DET_SECOND)
#define TEND_EVERY DET_SECOND
/* Processes of an earlier detent that are reported one by one. */
#define NAMED_MAX 8

struct up_guard {
    struct det_process_guard *guard;
    struct det_timer tend; /* next attempt to restart the guard process */
    bool is_unguarded;     /* the restart has failed, which was reported */
};

struct left {
    struct up *up;
    size_t count;
};

static void on_left(void *user, int64_t number, const char *command)
{
    struct left *left = user;

    left->count++;
    if (left->count <= NAMED_MAX)
        up_note(
            left->up, UP_NAME, "ending process %lld (%s), left running by an earlier detent",
            (long long)number, command);
}

int up_guard_open(struct up *up)
{
    const struct det_allocator *allocator = up->cli->allocator;
    struct up_guard *guard = DET_NEW(allocator, struct up_guard);
    int r;

    if (!guard)
        return DET_ERR_NO_MEMORY;
    r = det_process_guard_open(allocator, &guard->guard);
    if (r < 0) {
        DET_DELETE(allocator, guard);
        return r;
    }
    up->guard = guard;
    up->output.cli.world = det_process_guard_world(guard->guard);
    return 0;
}

void up_guard_close(struct up *up)
{
    if (!up->guard)
        return;
    det_process_guard_close(up->guard->guard);
    DET_DELETE(up->cli->allocator, up->guard);
    up->guard = NULL;
}

bool up_guard_is_helper(const struct up *up, int64_t number)
{
    return up->guard && det_process_guard_is_helper(up->guard->guard, number);
}

int up_guard_start(struct up *up, struct det_error *reterr)
{
    char path[DET_PATH_MAX + sizeof SOCKET_FOLDER + sizeof UP_PROCESSES + 2];
    struct left left = { .up = up };
    det_time grace = up_config(up)->limits.grace;
    struct det_process_guard_options options = {
        .path = path,
        .grace = grace && grace < GRACE_MAX ? grace : GRACE_MAX,
        .on_left = on_left,
        .user = &left,
    };
    int r;

    (void)snprintf(path, sizeof path, "%s/" SOCKET_FOLDER "/" UP_PROCESSES, up_folder(up));
    r = det_process_guard_start(up->guard->guard, &options, reterr);
    if (r == 0)
        up_deadline_guard(up, up->guard->guard);
    if (r == 0 && left.count > NAMED_MAX)
        up_note(
            up, UP_NAME, "and %zu other%s", left.count - NAMED_MAX,
            det_plural(left.count - NAMED_MAX));
    return r;
}

static void on_tend(void *argument)
{
    up_guard_tend(argument);
}

/* Out of memory for the timer, the next SIGCHLD is the next attempt. */
static void tend_later(struct up *up)
{
    up->guard->tend = (struct det_timer){ .run = on_tend, .argument = up };
    (void)!det_loop_timer_set(up->loop, &up->guard->tend, det_loop_now(up->loop) + TEND_EVERY);
}

void up_guard_tend(struct up *up)
{
    int r = up->guard ? det_process_guard_tend(up->guard->guard) : 0;

    if (r == 0)
        return;
    det_loop_timer_cancel(up->loop, &up->guard->tend);
    if (r > 0)
        up_note_failure(up, UP_NAME, "the guard process was killed; a new one is running");
    else if (!up->guard->is_unguarded)
        up_note_failure(
            up, UP_NAME,
            "the guard process was killed and cannot be restarted: %s; retrying every second",
            det_error_text(r));
    up->guard->is_unguarded = r < 0;
    if (r < 0)
        tend_later(up);
}
