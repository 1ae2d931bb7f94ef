/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* recorder.c - a queue, and a thread that combines its items into few calls of the store.
 *
 *     queue ---- all of it at once ----> taken ---- the first of it ----> group: one save()
 *     (mutex)                            (the thread's)
 *
 * Invariants
 *   1. An item is in `queue`, or in `taken`, or posted; once posted it is not accessed.
 *   2. Items leave `taken` only from its front, so the order of submission is that of the commits.
 *   3. An item counts as waiting from its submission until its end was posted.
 *   4. The first `suspects` of `taken` were refused together: one of them is invalid. They are
 *      halved repeatedly until it is alone. */
#include "worker/recorder.h"

#include <string.h>

#include <detent/driver/loop.h>
#include <detent/driver/store.h>
#include <detent/tool/documents.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "os/os.h"

/* One block of memory: this, the saves, their results, the texts. Freed after its end is
 * reported. */
struct recording {
    struct det_recorder_item item;
    const struct det_allocator *allocator;
    size_t size; /* size of the block */
    void (*done)(void *argument, const struct det_recorded *recorded);
    void *argument;
    struct det_document_save *saves;
    struct det_document_saved *saved;
    size_t count, bytes;
    int code;
    struct det_error error;
    struct det_post post;
};

/* One call of the store: the first `count` of `taken`. */
struct group {
    size_t count, saves_count, bytes;
    struct det_document_save saves[DET_RECORDER_SAVES_MAX];
    struct det_document_saved saved[DET_RECORDER_SAVES_MAX];
};

struct det_recorder {
    struct det_world *world;
    const struct det_allocator *allocator;
    struct det_store *store;
    struct det_loop *loop;
    /* The following fields are unused when it is inline. */
    struct det_thread *thread;
    struct det_mutex *mutex;
    struct det_condition *changed; /* signals `queue` or `is_closing` */
    struct det_list queue;
    uint64_t waiting_count;
    size_t waiting_bytes;
    bool is_closing;
    /* Used by the thread alone. */
    struct det_list taken;
    size_t suspects;
    struct group *group;
};

static struct det_recorder_item *item_of(struct det_list *node)
{
    return DET_CONTAINER(node, struct det_recorder_item, node);
}

static struct recording *recording_of(struct det_recorder_item *item)
{
    det_assert(!item->is_job);
    return DET_CONTAINER(item, struct recording, item);
}

/* Creating a recording. */

static size_t text_room(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static size_t room_of(const struct det_document_save *save)
{
    return text_room(save->kind) + text_room(save->id) + (save->text ? save->size + 1 : 0);
}

/* Copies `size` bytes and a 0 to *place, and advances it. */
static const char *put_bytes(char **place, const char *bytes, size_t size)
{
    char *start = *place;

    if (!bytes)
        return NULL;
    memcpy(start, bytes, size);
    start[size] = 0;
    *place += size + 1;
    return start;
}

static void copy_save(
    struct det_document_save *target, const struct det_document_save *save, char **place)
{
    *target = *save;
    target->kind = put_bytes(place, save->kind, save->kind ? strlen(save->kind) : 0);
    target->id = put_bytes(place, save->id, save->id ? strlen(save->id) : 0);
    target->text = put_bytes(place, save->text, save->size);
}

/* With copies of all borrowed texts, or without copies if it is saved at once. */
static struct recording *new_recording(
    const struct det_allocator *allocator, const struct det_recording *wanted, bool is_copy)
{
    size_t size = sizeof(struct recording) +
                  wanted->count * (sizeof *wanted->saves + sizeof(struct det_document_saved));
    struct recording *recording;
    char *place;

    for (size_t i = 0; is_copy && i < wanted->count; i++)
        size += room_of(&wanted->saves[i]);
    recording = det_alloc(allocator, size);
    if (!recording)
        return NULL;
    memset(recording, 0, sizeof *recording);
    recording->allocator = allocator;
    recording->size = size;
    recording->done = wanted->done;
    recording->argument = wanted->argument;
    recording->count = wanted->count;
    recording->saves = (struct det_document_save *)(void *)(recording + 1);
    recording->saved = (struct det_document_saved *)(void *)(recording->saves + wanted->count);
    place = (char *)(recording->saved + wanted->count);
    for (size_t i = 0; i < wanted->count; i++) {
        if (is_copy)
            copy_save(&recording->saves[i], &wanted->saves[i], &place);
        else
            recording->saves[i] = wanted->saves[i];
        recording->bytes += wanted->saves[i].text ? wanted->saves[i].size : 0;
    }
    det_assert(place == (char *)recording + size);
    return recording;
}

/* Reporting the end. */

static void report_recording(void *argument)
{
    struct recording *recording = argument;
    struct det_recorded recorded = { .code = recording->code, .count = recording->count };

    if (recording->code < 0)
        recorded.error = &recording->error;
    else
        recorded.saved = recording->saved;
    if (recording->done)
        recording->done(recording->argument, &recorded);
    det_free(recording->allocator, recording, recording->size);
}

static void end_recording(
    struct det_recorder *recorder, struct recording *recording, int code,
    const struct det_error *error)
{
    recording->code = code;
    if (code < 0)
        recording->error = *error;
    recording->post = (struct det_post){ .run = report_recording, .argument = recording };
    det_loop_post(recorder->loop, &recording->post);
}

static void report_job(void *argument)
{
    struct det_recorder_job *job = argument;

    job->done(job->argument, job->code);
}

static void run_job(struct det_recorder *recorder, struct det_recorder_job *job)
{
    job->code = job->run(job->argument, recorder->store);
    job->post = (struct det_post){ .run = report_job, .argument = job };
    det_loop_post(recorder->loop, &job->post);
}

/* Saving. */

/* Supplies a text for an error without one. */
static int save(
    struct det_recorder *recorder, const struct det_document_save *saves, size_t count,
    struct det_document_saved *saved, struct det_error *reterr)
{
    int r;

    reterr->code = 0;
    if (!recorder->store) {
        memset(saved, 0, count * sizeof *saved);
        return 0;
    }
    r = det_store_documents_save(recorder->store, saves, count, saved, reterr);
    det_assert(r <= 0);
    if (r < 0 && reterr->code != r)
        (void)det_error_set(
            reterr, r, "the store did not save %zu document%s, the first is \"%s\": %s", count,
            det_plural(count), saves[0].id ? saves[0].id : "", det_error_text(r));
    return r;
}

static bool fits(const struct group *group, const struct recording *recording)
{
    return group->count == 0 || (group->saves_count + recording->count <= DET_RECORDER_SAVES_MAX &&
                                 group->bytes + recording->bytes <= DET_RECORDER_BYTES_MAX);
}

/* The first of `taken`, up to the next job or the limits. They stay there until the result is
 * known. */
static void gather(struct det_recorder *recorder)
{
    size_t count_max = recorder->suspects ? (recorder->suspects + 1) / 2 : SIZE_MAX;
    struct group *group = recorder->group;

    group->count = group->saves_count = group->bytes = 0;
    DET_LIST_EACH(node, &recorder->taken)
    {
        struct recording *recording;

        if (item_of(node)->is_job || group->count == count_max)
            break;
        recording = recording_of(item_of(node));
        if (!fits(group, recording))
            break;
        memcpy(
            &group->saves[group->saves_count], recording->saves,
            recording->count * sizeof *recording->saves);
        group->saves_count += recording->count;
        group->bytes += recording->bytes;
        group->count++;
    }
    det_assert(group->count > 0 && group->count <= count_max);
    det_assert(group->saves_count <= DET_RECORDER_SAVES_MAX);
}

/* Finished items wait no more. */
static void advance(struct det_recorder *recorder, size_t count, size_t bytes)
{
    det_mutex_lock(recorder->world, recorder->mutex);
    det_assert(recorder->waiting_count >= count && recorder->waiting_bytes >= bytes);
    recorder->waiting_count -= count;
    recorder->waiting_bytes -= bytes;
    det_mutex_unlock(recorder->world, recorder->mutex);
}

static void end_group(struct det_recorder *recorder, int code, const struct det_error *error)
{
    struct group *group = recorder->group;
    size_t first = 0, bytes = 0;

    for (size_t i = 0; i < group->count; i++) {
        struct recording *recording = recording_of(item_of(recorder->taken.next));
        size_t count = recording->count;

        det_list_remove(&recording->item.node);
        bytes += recording->size;
        memcpy(recording->saved, &group->saved[first], count * sizeof *recording->saved);
        end_recording(recorder, recording, code, error);
        first += count;
    }
    det_assert(first == group->saves_count);
    advance(recorder, group->count, bytes);
}

static void save_group(struct det_recorder *recorder)
{
    struct group *group = recorder->group;
    struct det_error error;
    int r;

    gather(recorder);
    r = save(recorder, group->saves, group->saves_count, group->saved, &error);
    if ((r == DET_ERR_INVALID || r == DET_ERR_CONFLICT) && group->count > 1) {
        recorder->suspects = group->count;
        return;
    }
    /* A recording that was refused alone is the invalid one; the others are unknown. */
    recorder->suspects =
        r == 0 && recorder->suspects > group->count ? recorder->suspects - group->count : 0;
    end_group(recorder, r, &error);
}

/* The thread. */

static void serve_first(struct det_recorder *recorder)
{
    struct det_recorder_item *item = item_of(recorder->taken.next);

    if (!item->is_job) {
        save_group(recorder);
        return;
    }
    det_list_remove(&item->node);
    run_job(recorder, DET_CONTAINER(item, struct det_recorder_job, item));
    advance(recorder, 1, 0);
}

/* Moves all nodes of `from`, which is not empty, to `to`, which is empty. */
static void move_all(struct det_list *to, struct det_list *from)
{
    det_assert(det_list_is_empty(to) && !det_list_is_empty(from));
    *to = *from;
    to->next->previous = to->previous->next = to;
    det_list_init(from);
}

/* Waits for work; false: no more work will come. */
static bool take_queue(struct det_recorder *recorder)
{
    bool is_empty;

    det_mutex_lock(recorder->world, recorder->mutex);
    while (det_list_is_empty(&recorder->queue) && !recorder->is_closing)
        (void)det_condition_wait(recorder->world, recorder->changed, recorder->mutex, DET_NEVER);
    is_empty = det_list_is_empty(&recorder->queue);
    if (!is_empty)
        move_all(&recorder->taken, &recorder->queue);
    det_mutex_unlock(recorder->world, recorder->mutex);
    return !is_empty;
}

static void recorder_main(void *argument)
{
    struct det_recorder *recorder = argument;

    while (take_queue(recorder))
        while (!det_list_is_empty(&recorder->taken))
            serve_first(recorder);
}

/* Opening and closing. */

static int start(struct det_recorder *recorder)
{
    struct det_world *world = recorder->world;
    int r;

    recorder->group = DET_NEW(recorder->allocator, struct group);
    if (!recorder->group)
        return DET_ERR_NO_MEMORY;
    r = det_mutex_open(world, &recorder->mutex);
    if (r == 0)
        r = det_condition_open(world, &recorder->changed);
    if (r == 0)
        r = det_thread_start(world, "det-recorder", recorder_main, recorder, &recorder->thread);
    return r;
}

int det_recorder_open(
    struct det_world *world, const struct det_allocator *allocator, struct det_store *store,
    struct det_loop *loop, bool is_inline, struct det_recorder **ret)
{
    struct det_recorder *recorder;
    int r;

    det_assert((store || is_inline) && loop);
    if (store && !store->ops->documents)
        return DET_ERR_UNSUPPORTED;
    recorder = DET_NEW(allocator, struct det_recorder);
    if (!recorder)
        return DET_ERR_NO_MEMORY;
    recorder->world = det_world_or_real(world);
    recorder->allocator = allocator;
    recorder->store = store;
    recorder->loop = loop;
    det_list_init(&recorder->queue);
    det_list_init(&recorder->taken);
    r = is_inline ? 0 : start(recorder);
    if (r < 0) {
        det_recorder_close(recorder);
        return r;
    }
    *ret = recorder;
    return 0;
}

static void stop(struct det_recorder *recorder)
{
    det_mutex_lock(recorder->world, recorder->mutex);
    recorder->is_closing = true;
    det_condition_signal(recorder->world, recorder->changed);
    det_mutex_unlock(recorder->world, recorder->mutex);
    det_thread_join(recorder->world, recorder->thread);
    det_assert(recorder->waiting_count == 0 && recorder->waiting_bytes == 0);
}

void det_recorder_close(struct det_recorder *recorder)
{
    if (!recorder)
        return;
    if (recorder->thread)
        stop(recorder);
    det_condition_close(recorder->world, recorder->changed);
    det_mutex_close(recorder->world, recorder->mutex);
    if (recorder->group)
        DET_DELETE(recorder->allocator, recorder->group);
    DET_DELETE(recorder->allocator, recorder);
}

/* Submitting. */

static void enqueue(struct det_recorder *recorder, struct det_recorder_item *item, size_t bytes)
{
    bool was_empty;

    det_mutex_lock(recorder->world, recorder->mutex);
    det_assert(!recorder->is_closing);
    was_empty = det_list_is_empty(&recorder->queue);
    det_list_append(&recorder->queue, &item->node);
    recorder->waiting_count++;
    recorder->waiting_bytes += bytes;
    if (was_empty)
        det_condition_signal(recorder->world, recorder->changed);
    det_mutex_unlock(recorder->world, recorder->mutex);
}

static void save_inline(struct det_recorder *recorder, struct recording *recording)
{
    struct det_error error;
    int r;

    r = save(recorder, recording->saves, recording->count, recording->saved, &error);
    end_recording(recorder, recording, r, &error);
}

int det_recorder_submit(struct det_recorder *recorder, const struct det_recording *wanted)
{
    struct recording *recording;

    det_assert(wanted->count > 0 && wanted->count <= DET_RECORDER_SAVES_MAX);
    recording = new_recording(recorder->allocator, wanted, recorder->thread);
    if (!recording)
        return DET_ERR_NO_MEMORY;
    if (recorder->thread)
        enqueue(recorder, &recording->item, recording->size);
    else
        save_inline(recorder, recording);
    return 0;
}

void det_recorder_send(struct det_recorder *recorder, struct det_recorder_job *job)
{
    det_assert(job->run && job->done);
    job->item.is_job = true;
    if (recorder->thread)
        enqueue(recorder, &job->item, 0);
    else
        run_job(recorder, job);
}

int det_recorder_load(
    struct det_recorder *recorder, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_document *document), void *context)
{
    return recorder->store ? det_store_documents_list(recorder->store, query, visit, context, NULL)
                           : 0;
}

void det_recorder_waiting(struct det_recorder *recorder, struct det_recorder_waiting *ret)
{
    *ret = (struct det_recorder_waiting){ 0 };
    if (!recorder->thread)
        return;
    det_mutex_lock(recorder->world, recorder->mutex);
    ret->count = recorder->waiting_count;
    ret->bytes = recorder->waiting_bytes;
    det_mutex_unlock(recorder->world, recorder->mutex);
}
