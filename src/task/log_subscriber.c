/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_subscriber.c - passes each event as a line to a function of the caller. */
#include <detent/bus.h>

static int write_event(void *user, const struct det_task_event *event)
{
    const struct det_task_log_writer *writer = user;
    char line[DET_TASK_EVENT_LINE_MAX + 1];
    size_t size;

    if (writer->is_json)
        size = det_task_event_json(event, line, sizeof line - 1);
    else
        size = det_task_event_text(event, line, sizeof line - 1);
    line[size++] = '\n';
    return writer->write(writer->user, line, size);
}

struct det_subscriber det_task_log_subscriber(const struct det_task_log_writer *writer)
{
    /* The `user` of a subscriber is not const, but this one is only read. */
    union {
        const void *borrowed;
        void *user;
    } pointer = { .borrowed = writer };

    return (struct det_subscriber){
        .name = "log",
        .on_event = write_event,
        .user = pointer.user,
    };
}
