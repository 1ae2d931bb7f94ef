/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document_stage.c - one call of `save`: computes the changes that a driver writes. */
#include "store/document.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "record/json.h"

#define ROLE_COUNT (DET_DOCUMENT_SPEC + 1)
#define SIZE_MIN   2 /* "{}" */
/* An id, a kind and a role, with a line feed after the first two. */
#define NAME_SIZE (DET_DOCUMENT_ID_MAX + DET_DOCUMENT_KIND_MAX + 4)

_Static_assert(DET_DOCUMENT_DEPTH + 2 == DET_JSON_DEPTH_MAX, "so that deltas can be read");

/* Names in tables. */

int det_document_role_find(const char *name, enum det_document_role *ret)
{
    for (enum det_document_role role = 0; role < ROLE_COUNT; role++) {
        if (name && strcmp(name, det_document_role_name(role)) == 0) {
            *ret = role;
            return 0;
        }
    }
    return DET_ERR_CORRUPT;
}

int det_document_change_find(const char *name, enum det_document_change *ret)
{
    for (enum det_document_change change = 0; change <= DET_DOCUMENT_DROPPED; change++) {
        if (name && strcmp(name, det_document_change_name(change)) == 0) {
            *ret = change;
            return 0;
        }
    }
    return DET_ERR_CORRUPT;
}

bool det_document_is_below(const char *id, const char *below)
{
    size_t length = strlen(below);

    return strncmp(id, below, length) == 0 && (!id[length] || id[length] == '/');
}

static const char *later_of(const char *left, const char *right)
{
    return right && strcmp(left, right) < 0 ? right : left;
}

int det_document_range(
    const struct det_document_query *query, const char **ret_low, struct det_buffer *high)
{
    *ret_low = later_of(later_of(later_of("", query->id), query->below), query->after_id);
    if (query->id) {
        /* Ids have no control characters. */
        det_buffer_append_text(high, query->id);
        det_buffer_append_char(high, 1);
    } else if (query->below) {
        det_buffer_append_text(high, query->below);
        det_buffer_append_char(high, '/' + 1);
    } else {
        /* Appends the last Unicode character as often as an id can contain it. */
        for (int i = 0; i < DET_DOCUMENT_ID_MAX / 4; i++)
            det_buffer_append_text(high, "\xf4\x8f\xbf\xbf");
        det_buffer_append_char(high, 1);
    }
    return det_buffer_status(high);
}

/* Checking. */

static bool is_kind(const char *kind)
{
    size_t length = kind ? strlen(kind) : 0;

    return length > 0 && length <= DET_DOCUMENT_KIND_MAX && det_name_is_valid(kind);
}

static bool is_id(const char *id)
{
    size_t length = id ? strlen(id) : 0;

    if (length == 0 || length > DET_DOCUMENT_ID_MAX || det_utf8_check(id, length) < length)
        return false;
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)id[i] < ' ' || id[i] == 0x7f)
            return false;
    }
    return true;
}

static int check_save(const struct det_document_save *save, struct det_error *reterr)
{
    if (!is_kind(save->kind))
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "\"%.100s\" is not a valid kind of document; use 1 to %d of [A-Za-z0-9._-]",
            save->kind ? save->kind : "", DET_DOCUMENT_KIND_MAX);
    if (!is_id(save->id))
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "the id of a document of the kind %s is not valid; use 1 to %d bytes of UTF-8 without "
            "control characters",
            save->kind, DET_DOCUMENT_ID_MAX);
    if ((unsigned)save->role >= ROLE_COUNT)
        return det_error_set(
            reterr, DET_ERR_INVALID, "%s %s: the role %u is unknown", save->kind, save->id,
            (unsigned)save->role);
    if (!save->is_drop && (!save->text || save->size < SIZE_MIN || save->size > DET_DOCUMENT_MAX))
        return det_error_set(
            reterr, DET_ERR_INVALID, "%s %s: the document has %zu byte%s; it must have %d to %d",
            save->kind, save->id, save->size, det_plural(save->size), SIZE_MIN, DET_DOCUMENT_MAX);
    return 0;
}

/* Cells. */

static int no_memory(struct det_error *reterr)
{
    return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory: cannot save documents");
}

static void write_name(const struct det_document_save *save, char target[NAME_SIZE])
{
    (void)snprintf(target, NAME_SIZE, "%s\n%s\n%u", save->id, save->kind, (unsigned)save->role);
}

static int add_cell(struct det_document_stage *stage, const struct det_document_save *save)
{
    struct det_document_cell *cell;
    char name[NAME_SIZE];
    int r;

    write_name(save, name);
    if (det_map_get(&stage->cell_of, name))
        return 0;
    cell = det_arena_alloc(&stage->arena, sizeof *cell);
    if (!cell)
        return DET_ERR_NO_MEMORY;
    *cell = (struct det_document_cell){ .kind = save->kind, .id = save->id, .role = save->role };
    cell->name = det_arena_copy(&stage->arena, name);
    if (!cell->name)
        return DET_ERR_NO_MEMORY;
    r = det_map_put(&stage->cell_of, cell);
    if (r == 0)
        stage->cells[stage->cell_count++] = cell;
    return r;
}

static int make_cells(struct det_document_stage *stage, struct det_error *reterr)
{
    size_t count = stage->save_count;
    int r = 0;

    stage->cells = det_arena_array(&stage->arena, count, sizeof(struct det_document_cell *));
    stage->changes = det_arena_array(&stage->arena, count, sizeof *stage->changes);
    stage->saved = det_arena_array(&stage->arena, count, sizeof *stage->saved);
    if (!stage->cells || !stage->changes || !stage->saved)
        return no_memory(reterr);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = add_cell(stage, &stage->saves[i]);
    return r < 0 ? no_memory(reterr) : 0;
}

int det_document_stage_open(
    struct det_document_stage *stage, const struct det_allocator *allocator,
    const struct det_document_save *saves, size_t count, struct det_error *reterr)
{
    int r = 0;

    *stage = (struct det_document_stage){ .saves = saves, .save_count = count };
    det_arena_init(&stage->arena, allocator);
    det_map_init(&stage->cell_of, allocator, 0, offsetof(struct det_document_cell, name));
    det_document_fields_init(&stage->old, allocator);
    det_document_fields_init(&stage->new, allocator);
    det_buffer_init(&stage->delta, allocator);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = check_save(&saves[i], reterr);
    return r < 0 || !count ? r : make_cells(stage, reterr);
}

int det_document_stage_open_restored(
    struct det_document_stage *stage, const struct det_allocator *allocator,
    const struct det_document *document, uint64_t floor)
{
    const struct det_document_save save = {
        .kind = document->kind,
        .id = document->id,
        .role = document->role,
        .text = document->text,
        .size = document->size,
    };
    int r;

    r = det_document_stage_open(stage, allocator, NULL, 0, NULL);
    stage->restored = document;
    stage->restored_save = save;
    stage->floor = floor;
    stage->saves = &stage->restored_save;
    stage->save_count = 1;
    if (r == 0)
        r = check_save(&save, NULL);
    if (r == 0 && (!document->version || document->version > INT64_MAX || floor > INT64_MAX / 2 ||
                   document->created_at <= 0 || document->updated_at < document->created_at))
        r = DET_ERR_INVALID;
    return r < 0 ? r : make_cells(stage, NULL);
}

bool det_document_stage_is_new(const struct det_document_stage *stage)
{
    return stage->change_count > 0;
}

void det_document_stage_close(struct det_document_stage *stage)
{
    det_buffer_deinit(&stage->delta);
    det_document_fields_deinit(&stage->old);
    det_document_fields_deinit(&stage->new);
    det_map_deinit(&stage->cell_of);
    det_arena_deinit(&stage->arena);
}

int det_document_stage_fill(
    struct det_document_stage *stage, struct det_document_cell *cell,
    const struct det_document *document)
{
    cell->text = det_arena_copy_n(&stage->arena, document->text, document->size);
    if (!cell->text)
        return DET_ERR_NO_MEMORY;
    cell->size = document->size;
    cell->sync = document->sync;
    cell->version = document->version;
    cell->created_at = document->created_at;
    cell->is_there = cell->was_there = true;
    return 0;
}

/* Judging. */

/* Prepends the name of the document to a reason. */
static int name_it(
    const struct det_document_save *save, int code, const struct det_error *error,
    struct det_error *reterr)
{
    if (code == DET_ERR_NO_MEMORY)
        return no_memory(reterr);
    return det_error_set(
        reterr, code, "%s %s, %s: %s", save->kind, save->id, det_document_role_name(save->role),
        error->text);
}

static int check_expected(
    const struct det_document_save *save, const struct det_document_cell *cell,
    struct det_error *reterr)
{
    if (!save->has_expected || save->expected == cell->version)
        return 0;
    (void)det_error_set(
        reterr, DET_ERR_CONFLICT,
        "%s %s, %s: the version is %llu, not %llu; read the document again", save->kind, save->id,
        det_document_role_name(save->role), (unsigned long long)cell->version,
        (unsigned long long)save->expected);
    if (reterr) {
        reterr->expected = save->expected;
        reterr->actual = cell->version;
    }
    return DET_ERR_CONFLICT;
}

/* Compares the existing and the requested document of a cell. */
static int compare_cells(
    struct det_document_stage *stage, const struct det_document_save *save,
    const struct det_document_cell *cell, bool *ret_is_same, struct det_error *reterr)
{
    bool is_there = cell->is_there;
    int r = 0;

    *ret_is_same = save->is_drop ? !is_there
                                 : is_there && save->size == cell->size &&
                                       memcmp(save->text, cell->text, save->size) == 0;
    if (*ret_is_same)
        return 0;
    if (!save->is_drop)
        r = det_document_fields_read(&stage->new, save->text, save->size, reterr);
    /* A modified value is nested two levels deeper in the delta. */
    if (r == 0 && !save->is_drop && stage->new.depth > DET_DOCUMENT_DEPTH)
        r = det_error_set(
            reterr, DET_ERR_INVALID, "%u levels deep; use at most %d", stage->new.depth,
            DET_DOCUMENT_DEPTH);
    if (r < 0 || !is_there)
        return r;
    r = det_document_fields_read(&stage->old, cell->text, cell->size, reterr);
    if (r < 0)
        return r == DET_ERR_INVALID ? DET_ERR_CORRUPT : r;
    *ret_is_same = !save->is_drop && det_document_fields_equal(&stage->old, &stage->new);
    return 0;
}

/* Writes the delta of the fields compared last. */
static int write_change(
    struct det_document_stage *stage, const struct det_document_save *save,
    const struct det_document_cell *cell, struct det_document_changed *changed)
{
    int r;

    det_document_write_delta(
        cell->is_there ? &stage->old : NULL, save->is_drop ? NULL : &stage->new, &stage->delta);
    r = det_buffer_status(&stage->delta);
    if (r < 0)
        return r;
    changed->size = stage->delta.size;
    changed->text = det_arena_copy_n(&stage->arena, stage->delta.data, stage->delta.size);
    if (!changed->text)
        return DET_ERR_NO_MEMORY;
    changed->cell = cell;
    changed->change = save->is_drop    ? DET_DOCUMENT_DROPPED
                      : cell->is_there ? DET_DOCUMENT_CHANGED
                                       : DET_DOCUMENT_CREATED;
    changed->version = cell->version + !save->is_drop;
    return 0;
}

static void change_cell(
    struct det_document_cell *cell, const struct det_document_save *save, uint64_t sync,
    det_time now)
{
    det_assert(cell->is_there || !save->is_drop);
    cell->is_changed = true;
    if (!cell->is_there)
        cell->created_at = now;
    cell->is_there = !save->is_drop;
    cell->version = save->is_drop ? 0 : cell->version + 1;
    cell->updated_at = now;
    cell->sync = sync;
    cell->text = save->is_drop ? NULL : save->text;
    cell->size = save->is_drop ? 0 : save->size;
}

static int validate_one(
    struct det_document_stage *stage, size_t index, uint64_t sync, det_time now,
    struct det_error *reterr)
{
    const struct det_document_save *save = &stage->saves[index];
    struct det_document_changed *changed = &stage->changes[stage->change_count];
    struct det_document_cell *cell;
    struct det_error error = { 0 };
    char name[NAME_SIZE];
    bool is_same;
    int r;

    write_name(save, name);
    cell = det_map_get(&stage->cell_of, name);
    r = check_expected(save, cell, reterr);
    if (r < 0)
        return r;
    r = compare_cells(stage, save, cell, &is_same, &error);
    if (r == 0 && !is_same)
        r = write_change(stage, save, cell, changed);
    if (r < 0)
        return name_it(save, r, &error, reterr);
    if (!is_same) {
        changed->sync = sync;
        stage->change_count++;
        change_cell(cell, save, sync, now);
    }
    stage->saved[index] = (struct det_document_saved){ !is_same, cell->sync, cell->version };
    return 0;
}

/* Keeps version and times of an imported document. */
static void take_over(struct det_document_stage *stage, struct det_document_cell *cell)
{
    cell->version = stage->changes[0].version = stage->restored->version;
    cell->created_at = stage->restored->created_at;
    cell->updated_at = stage->restored->updated_at;
}

int det_document_stage_validate(
    struct det_document_stage *stage, uint64_t latest, det_time now, struct det_error *reterr)
{
    int r = 0;

    det_assert(stage->change_count == 0 && stage->base == 0 && stage->latest == 0);
    stage->drops_deltas = stage->floor > latest;
    stage->base = stage->drops_deltas ? stage->floor : latest;
    for (size_t i = 0; r == 0 && i < stage->save_count; i++) {
        if (!stage->restored || !stage->cells[i]->is_there)
            r = validate_one(stage, i, stage->base + stage->change_count + 1, now, reterr);
    }
    if (stage->change_count && stage->restored)
        take_over(stage, stage->cells[0]);
    det_assert(stage->change_count <= stage->save_count);
    stage->latest = stage->base + stage->change_count;
    return r;
}

void det_document_stage_answer(
    const struct det_document_stage *stage, struct det_document_saved *ret)
{
    if (ret && stage->save_count)
        memcpy(ret, stage->saved, stage->save_count * sizeof *ret);
}
