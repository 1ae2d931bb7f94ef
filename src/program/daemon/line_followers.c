/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* line_followers.c - readers of lines and of events. Each has its own position and reads from there
 * at its own pace. Items removed before it reads them are counted, not kept: a slow reader costs no
 * memory.
 *
 *     open --all items were sent--> ended              (a reader that does not follow)
 *         \--the client disconnects---> freed */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "daemon/daemon.h"
#include "daemon/task_json.h"
#include "daemon/task_output_internal.h"

/* Bytes that may wait for a client before more are sent. */
#define WAITING_MAX (256 << 10)

struct follower {
    struct det_list node;
    struct up *up;
    struct up_request *request;
    bool is_of_events;
    bool goes_on;
    uint64_t place;  /* number of the last line or event sent */
    uint64_t last;   /* number of the last one to send, unless it follows */
    uint64_t missed; /* lines of any task lost since the last one sent */
    struct up_names names;
};

static void free_follower(struct follower *follower)
{
    det_list_remove(&follower->node);
    DET_DELETE(up_allocator(follower->up), follower);
}

static void on_gone(void *user)
{
    free_follower(user);
}

static bool is_wanted(const struct up_names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->items[i], name) == 0)
            return true;
    }
    return !names->items;
}

static bool has_room(const struct follower *follower)
{
    return up_request_waiting(follower->request) < WAITING_MAX;
}

/* False: the client accepts no more now. */
static bool send_lines(struct follower *follower)
{
    const struct up_lines *lines = &up_log(follower->up)->lines;
    const struct up_line *line = up_lines_after(lines, follower->place);
    struct det_json_writer *json = follower->request->json;

    for (; line; line = up_lines_next(lines, line)) {
        if (!follower->goes_on && line->number > follower->last)
            break;
        if (!has_room(follower))
            return false;
        det_assert(line->number > follower->place);
        follower->missed += line->number - follower->place - 1;
        follower->place = line->number;
        if (!is_wanted(&follower->names, line->name))
            continue;
        det_json_open(json, NULL, '{');
        up_write_line(json, line, follower->missed);
        det_json_close(json, '}');
        up_request_part(follower->request);
        follower->missed = 0;
    }
    return true;
}

static bool send_events(struct follower *follower)
{
    struct det_bus *bus = det_tasks_bus(up_tasks_supervisor(follower->up));
    struct det_json_writer *json = follower->request->json;
    struct det_task_event event;
    uint64_t lost;

    while (has_room(follower)) {
        if (!follower->goes_on && follower->place >= follower->last)
            return true;
        if (det_bus_read(bus, &follower->place, &event, &lost) != 1)
            return true;
        det_json_open(json, NULL, '{');
        up_write_event(json, &event, lost);
        det_json_close(json, '}');
        up_request_part(follower->request);
    }
    return false;
}

static void advance_follower(struct follower *follower)
{
    bool is_through = follower->is_of_events ? send_events(follower) : send_lines(follower);
    struct up_request *request = follower->request;

    det_assert(request && !det_list_is_empty(&follower->node));
    if (!is_through || follower->goes_on)
        return;
    /* First: another thread frees the names once the request is finished. */
    free_follower(follower);
    up_request_end(request);
}

static void open_follower(struct up *up, struct up_request *request, const struct follower *wanted)
{
    struct follower *follower = DET_NEW(up_allocator(up), struct follower);

    if (!follower) {
        up_request_fail_memory(request);
        return;
    }
    det_assert(wanted->goes_on || wanted->is_of_events || wanted->place <= wanted->last);
    *follower = *wanted;
    follower->up = up;
    follower->request = request;
    det_list_init(&follower->node);
    det_list_append(&up_log(up)->followers, &follower->node);
    up_request_keep(request, on_gone, follower);
    advance_follower(follower);
}

void up_follow_lines(
    struct up *up, struct up_request *request, const struct up_names *names, size_t count,
    bool goes_on)
{
    struct follower wanted = { .goes_on = goes_on,
                               .last = up_log(up)->lines.newest,
                               .names = *names };
    const struct up_line *line = NULL;

    /* Lines before the first one do not count as missed. */
    wanted.place = up_log(up)->lines.newest;
    while (count > 0 && (line = up_lines_previous(&up_log(up)->lines, line))) {
        count -= is_wanted(names, line->name);
        wanted.place = line->number - 1;
    }
    open_follower(up, request, &wanted);
}

void up_follow_events(struct up *up, struct up_request *request, uint64_t after, bool goes_on)
{
    uint64_t newest = det_bus_newest(det_tasks_bus(up_tasks_supervisor(up)));
    struct follower wanted = {
        .is_of_events = true,
        .goes_on = goes_on,
        .place = after == UP_NEW_EVENTS ? newest : after,
        .last = newest,
    };

    open_follower(up, request, &wanted);
}

void up_follow_all(struct up *up)
{
    struct det_list *next;

    for (struct det_list *node = up_log(up)->followers.next; node != &up_log(up)->followers;
         node = next) {
        next = node->next;
        advance_follower(DET_CONTAINER(node, struct follower, node));
    }
}
