/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_subscriber.c - each event as a line through a function of the caller's. */
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
    /* A subscriber's `user` may be written to, and this one is not. */
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
