/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* import_jobs.c - imports jobs and schedules one by one; existing ones stay unchanged. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/hex.h"
#include "store/jobs.h"
#include "transfer/import_internal.h"

int import_refuse(struct import *import, struct det_json_object *members)
{
    if (members->has_failed)
        return DET_ERR_NO_MEMORY;
    det_assert(members->wrong[0]);
    snprintf(import->wrong, sizeof import->wrong, "'%s' is missing or invalid", members->wrong);
    return DET_ERR_MALFORMED;
}

/* Two hexadecimal digits a byte. */
static const void *read_body(struct det_json_object *members, size_t *ret_size)
{
    const char *text = det_json_object_text(members, "body");
    size_t size = strlen(text) / 2;
    unsigned char *body = det_arena_alloc(members->arena, size + 1);

    if (!body) {
        members->has_failed = true;
        return NULL;
    }
    if (text[2 * size] || !det_hex_read(text, body, size)) {
        det_json_object_fail(members, "body");
        return NULL;
    }
    *ret_size = size;
    return body;
}

static det_time time_of(struct det_json_object *members, const char *key)
{
    return det_json_object_find(members, key) ? det_json_object_time(members, key) : 0;
}

static uint32_t count_of(struct det_json_object *members, const char *key)
{
    uint64_t count = det_json_object_number(members, key);

    if (count > UINT32_MAX)
        det_json_object_fail(members, key);
    return (uint32_t)count;
}

int import_settle(struct import *import, int r, bool is_new, uint64_t *count, uint64_t *passed)
{
    if (r == DET_ERR_INVALID) {
        snprintf(import->wrong, sizeof import->wrong, "its values contradict each other");
        return DET_ERR_MALFORMED;
    }
    det_assert(r == 0 || !is_new);
    if (r == 0 && is_new)
        ++*count;
    else if (r == 0)
        ++*passed;
    return r;
}

int import_job(struct import *import, struct det_json_object *members)
{
    const struct cli_store *store = import->store;
    struct det_job_row row = {
        .queue = det_json_object_text(members, "queue"),
        .id = det_json_object_text(members, "id"),
        .task = det_json_object_text(members, "task"),
        .due_at = time_of(members, "due_at"),
        .attempts = count_of(members, "attempts"),
        .lost = count_of(members, "lost"),
        .submitted_at = det_json_object_time(members, "submitted_at"),
        .ended_at = time_of(members, "ended_at"),
        .reason = det_json_object_text_or_null(members, "reason"),
    };
    bool is_new = false;
    int r;

    row.body = read_body(members, &row.body_size);
    if (det_jobs_state_find(det_json_object_text(members, "state"), &row.state) < 0)
        det_json_object_fail(members, "state");
    if (members->has_failed || members->wrong[0])
        return import_refuse(import, members);
    r = store->ops->jobs->restore(store->store, &row, &is_new);
    return import_settle(import, r, is_new, &import->jobs, &import->passed_jobs);
}

int import_schedule(struct import *import, struct det_json_object *members)
{
    const struct cli_store *store = import->store;
    const struct det_job_firing firing = {
        .name = det_json_object_text(members, "name"),
        .next_at = det_json_object_time(members, "next_at"),
        .last_at = time_of(members, "last_at"),
    };
    int r;

    if (members->has_failed || members->wrong[0])
        return import_refuse(import, members);
    r = store->ops->jobs->fire(store->store, &firing);
    return import_settle(
        import, r == DET_ERR_CONFLICT ? 0 : r, r == 0, &import->schedules, &import->passed_jobs);
}
