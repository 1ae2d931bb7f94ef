/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* helloworld.c - the smallest complete worker: it observes, acts and decides. */
#include <string.h>

#include "kinds/kinds.h"
#include "os/os.h"

#define WORKER_SPEC "kinds/helloworld.worker"
#include <detent/worker/declare.h>

struct helloworld_deps {
    bool hello_said;
};

#define WORKER_SPEC "kinds/helloworld.worker"
#include <detent/worker/define.h>

static bool is_sad(const struct helloworld_view *view)
{
    return strcmp(view->observed->mood, "sad") == 0;
}

static struct helloworld_next helloworld_in_stopped(const struct helloworld_view *view)
{
    (void)view;
    return helloworld_goto(HELLOWORLD_TRYING_TO_START, "must run");
}

static struct helloworld_next helloworld_in_trying_to_start(const struct helloworld_view *view)
{
    if (view->observed->hello_said)
        return helloworld_goto(HELLOWORLD_RUNNING, "hello was said");
    return helloworld_do(HELLOWORLD_SAY_HELLO, "hello not said yet");
}

static struct helloworld_next helloworld_in_running(const struct helloworld_view *view)
{
    if (is_sad(view))
        return helloworld_goto(HELLOWORLD_DEGRADED, "the mood is sad");
    return helloworld_hold("running");
}

static struct helloworld_next helloworld_in_degraded(const struct helloworld_view *view)
{
    if (!is_sad(view))
        return helloworld_goto(HELLOWORLD_RUNNING, "the mood is better");
    return helloworld_hold("the mood is sad");
}

static int helloworld_do_say_hello(
    struct det_worker_context *context, struct helloworld_deps *deps,
    const struct helloworld_desired *desired)
{
    (void)desired;
    det_worker_lock(context);
    if (!deps->hello_said)
        det_worker_count(context, "hellos_said", 1);
    deps->hello_said = true;
    det_worker_unlock(context);
    return 0;
}

/* Returns the first word of the file; "" if there is none. */
static void read_mood(struct det_file *file, struct det_world *world, char *target, size_t size)
{
    int64_t length = det_file_read(world, file, 0, target, size - 1);

    target[length > 0 ? length : 0] = '\0';
    target[strcspn(target, " \t\r\n")] = '\0';
}

static int helloworld_collect(
    struct det_worker_context *context, struct helloworld_deps *deps,
    const struct helloworld_desired *desired, struct helloworld_observed *observed)
{
    struct det_file *file;

    det_worker_lock(context);
    observed->hello_said = deps->hello_said;
    det_worker_unlock(context);
    if (*desired->mood_file &&
        det_file_open(context->world, desired->mood_file, DET_FILE_READ, &file) == 0) {
        read_mood(file, context->world, observed->mood, sizeof observed->mood);
        det_file_close(context->world, file);
    }
    return 0;
}

static int helloworld_open(struct det_worker_context *context, struct helloworld_deps *deps)
{
    (void)context;
    (void)deps;
    return 0;
}

static void helloworld_close(struct helloworld_deps *deps)
{
    (void)deps;
}
