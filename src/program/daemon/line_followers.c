/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* line_followers.c - readers of lines and of events: each has a place of its own, and gets what
 * lies behind it as fast as it takes it. What has gone before it came there is counted, not kept: a
 * slow reader costs nobody anything.
 *
 *     open --all there was is sent--> ended            (a reader that does not follow)
 *         \--the client went away---> freed */
#include <string.h>

#include "base/memory.h"
#include "daemon/daemon.h"
#include "daemon/task_json.h"

/* What may wait for a client before it gets more. */
#define WAITING_MAX (256 << 10)

struct follower {
    struct det_list node;
    struct up *up;
    struct socket_call *call;
    bool is_of_events;
    bool goes_on;
    uint64_t place;  /* the number of the last line or event that it has seen */
    uint64_t last;   /* of the one to end with, unless it goes on */
    uint64_t missed; /* lines, of whomever, since the last one that was sent */
    json_t *names;   /* NULL: all */
};

static void free_follower(struct follower *follower)
{
    det_list_remove(&follower->node);
    json_decref(follower->names);
    DET_DELETE(follower->up->cli->allocator, follower);
}

static void on_gone(void *user)
{
    free_follower(user);
}

static bool wants(const struct follower *follower, const char *name)
{
    size_t count = json_array_size(follower->names);

    for (size_t i = 0; i < count; i++) {
        if (strcmp(json_string_value(json_array_get(follower->names, i)), name) == 0)
            return true;
    }
    return !follower->names;
}

static bool has_room(const struct follower *follower)
{
    return socket_call_waiting(follower->call) < WAITING_MAX;
}

/* False: the client takes no more now. */
static bool send_lines(struct follower *follower)
{
    const struct up_lines *lines = &follower->up->lines;
    const struct up_line *line = up_lines_after(lines, follower->place);

    for (; line; line = up_lines_next(lines, line)) {
        if (!follower->goes_on && line->number > follower->last)
            break;
        if (!has_room(follower))
            return false;
        follower->missed += line->number - follower->place - 1;
        follower->place = line->number;
        if (!wants(follower, line->name))
            continue;
        (void)socket_call_send(follower->call, up_json_line(line, follower->missed));
        follower->missed = 0;
    }
    return true;
}

static bool send_events(struct follower *follower)
{
    struct det_bus *bus = det_tasks_bus(follower->up->tasks);
    struct det_task_event event;
    uint64_t lost;

    while (has_room(follower)) {
        if (!follower->goes_on && follower->place >= follower->last)
            return true;
        if (det_bus_read(bus, &follower->place, &event, &lost) != 1)
            return true;
        (void)socket_call_send(follower->call, up_json_event(&event, lost));
    }
    return false;
}

static void advance(struct follower *follower)
{
    bool is_through = follower->is_of_events ? send_events(follower) : send_lines(follower);
    struct socket_call *call = follower->call;

    if (!is_through || follower->goes_on)
        return;
    /* First: names are of the request, which another thread frees when its call is over. */
    free_follower(follower);
    socket_call_end(call);
}

static void open_follower(struct up *up, struct socket_call *call, const struct follower *wanted)
{
    struct follower *follower = DET_NEW(up->cli->allocator, struct follower);

    if (!follower) {
        socket_call_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
        return;
    }
    *follower = *wanted;
    follower->up = up;
    follower->call = call;
    json_incref(follower->names);
    det_list_init(&follower->node);
    det_list_append(&up->followers, &follower->node);
    socket_call_keep(call, on_gone, follower);
    advance(follower);
}

void up_follow_lines(
    struct up *up, struct socket_call *call, json_t *names, size_t count, bool goes_on)
{
    struct follower wanted = { .goes_on = goes_on, .last = up->lines.newest, .names = names };
    const struct up_line *line = NULL;

    /* Nothing before the first of them is missed. */
    wanted.place = up->lines.newest;
    while (count > 0 && (line = up_lines_previous(&up->lines, line))) {
        count -= wants(&wanted, line->name);
        wanted.place = line->number - 1;
    }
    open_follower(up, call, &wanted);
}

void up_follow_events(struct up *up, struct socket_call *call, uint64_t after, bool goes_on)
{
    struct follower wanted = {
        .is_of_events = true,
        .goes_on = goes_on,
        .place = after,
        .last = det_bus_newest(det_tasks_bus(up->tasks)),
    };

    open_follower(up, call, &wanted);
}

void up_follow_all(struct up *up)
{
    struct det_list *next;

    for (struct det_list *node = up->followers.next; node != &up->followers; node = next) {
        next = node->next;
        advance(DET_CONTAINER(node, struct follower, node));
    }
}
