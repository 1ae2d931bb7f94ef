/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* process_guard.c - what is started is recorded and dies with us; what an earlier detent has left
 * is ended before anything is started. */
#include <detent/driver/loop.h>
#include <stdio.h>

#include "base/text.h"
#include "config/socket_place.h"
#include "daemon/daemon.h"
#include "os/os.h"

#define GRACE_MAX  (10 * DET_SECOND)
#define TEND_EVERY DET_SECOND
/* So many are named. */
#define NAMED_MAX 8

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
            left->up, UP_NAME, "ends process %lld (%s), which an earlier detent has left running",
            (long long)number, command);
}

int up_guard_open(struct up *up)
{
    int r;

    r = det_process_guard_open(up->cli->allocator, &up->guard);
    if (r == 0)
        up->output.cli.world = det_process_guard_world(up->guard);
    return r;
}

int up_guard_start(struct up *up, struct det_error *reterr)
{
    char path[DET_PATH_MAX + sizeof SOCKET_FOLDER + sizeof UP_PROCESSES + 2];
    struct left left = { .up = up };
    det_time grace = up->file.config.limits.grace;
    struct det_process_guard_options options = {
        .path = path,
        .grace = grace && grace < GRACE_MAX ? grace : GRACE_MAX,
        .on_left = on_left,
        .user = &left,
    };
    int r;

    (void)snprintf(path, sizeof path, "%s/" SOCKET_FOLDER "/" UP_PROCESSES, up->project);
    r = det_process_guard_start(up->guard, &options, reterr);
    if (r == 0)
        up_deadline_guard(up);
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

/* Without a timer the next child that ends is the next chance. */
static void tend_later(struct up *up)
{
    up->guard_tend = (struct det_timer){ .run = on_tend, .argument = up };
    (void)!det_loop_timer_set(up->loop, &up->guard_tend, det_loop_now(up->loop) + TEND_EVERY);
}

void up_guard_tend(struct up *up)
{
    int r = up->guard ? det_process_guard_tend(up->guard) : 0;

    if (r == 0)
        return;
    det_loop_timer_cancel(up->loop, &up->guard_tend);
    if (r > 0)
        up_note_failure(up, UP_NAME, "the process that guards the others was killed; another runs");
    else if (!up->is_unguarded)
        up_note_failure(
            up, UP_NAME,
            "the process that guards the others was killed, and another cannot be started: %s; "
            "tried again every second",
            det_error_text(r));
    up->is_unguarded = r < 0;
    if (r < 0)
        tend_later(up);
}
