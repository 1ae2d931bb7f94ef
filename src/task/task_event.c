/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_event.c - makes events about tasks for the bus. */
#include <string.h>

#include "base/text.h"
#include "base/unset.h"
#include "task/registry.h"

void det_event_set_text(char *target, size_t size, const char *text)
{
    (void)det_text_copy(target, size, text);
}

/* Only the used bytes of the texts are written: an event is large, and there are many. */
void det_task_event_init(
    struct det_task_event *event, const struct det_task *task, enum det_task_event_kind kind)
{
    memset(event, 0, offsetof(struct det_task_event, name));
    event->kind = kind;
    event->id = task->node.id;
    event->attempt = task->attempts.number;
    event->reason[0] = 0;
    memcpy(event->name, task->name, strlen(task->name) + 1);
}

void det_task_publish(struct det_task *task, enum det_task_event_kind kind)
{
    DET_UNSET struct det_task_event event;

    det_task_event_init(&event, task, kind);
    det_tasks_publish(task->tasks, &event);
}

void det_tasks_publish(struct det_tasks *tasks, struct det_task_event *event)
{
    event->at = det_tasks_wall(tasks);
    det_bus_publish(tasks->bus, event);
}
