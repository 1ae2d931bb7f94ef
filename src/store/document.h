/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document.h - what the documents of all drivers have in common: which are valid, what is different
 * between two of them, and one call of `save` from the documents it is about to what becomes of
 * them.
 *
 *     driver                          stage
 *     saves -----------------------> cells: one for each document, whatever its roles in the call
 *     reads what is there ----------> into the cells
 *                                     judge: in the order of the saves, each against its cell
 *     writes the cells that changed
 *     and a delta for each change <-- changes, with their sync ids
 *
 * All of it is pure. */
#ifndef DET_STORE_DOCUMENT_H
#define DET_STORE_DOCUMENT_H

#include <string.h>

#include <detent/tool/documents.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/map.h"
#include "base/text.h"

/* Others come between two of these. */
#define DET_DELTAS_DROPPED_AT_ONCE 500

/* document.c: the fields at the top of a JSON object. */

/* `place` is where it stands in the canonical bytes: the name, then the value. */
struct det_document_field {
    struct det_view key, value; /* as they stand in the text: the key without quotes, escaped */
    size_t place, key_size, size;
    const char *bytes; /* those of `place`, while they are sorted */
};

/* In the order of their names. Two values are equal when their canonical bytes are. */
struct det_document_fields {
    const struct det_allocator *allocator;
    struct det_buffer canonical, scratch;
    struct det_document_field *items;
    size_t count, capacity;
    unsigned depth; /* of the document */
};

void det_document_fields_init(
    struct det_document_fields *fields, const struct det_allocator *allocator);
void det_document_fields_deinit(struct det_document_fields *fields);
/* Reads a document, in place of what was read before; the text is borrowed as long. DET_ERR_INVALID
 * with the reason when it is none. */
DET_MUST_CHECK int det_document_fields_read(
    struct det_document_fields *fields, const char *text, size_t size, struct det_error *reterr);
bool det_document_fields_equal(
    const struct det_document_fields *left, const struct det_document_fields *right);
/* Orders by bytes; a prefix comes first. */
static inline int det_document_compare_bytes(
    const char *left, size_t left_size, const char *right, size_t right_size)
{
    size_t size = left_size < right_size ? left_size : right_size;
    int order = memcmp(left, right, size);

    return order != 0 ? order : (left_size > right_size) - (left_size < right_size);
}

/* document_delta.c */
/* What is different, as JSON; NULL: there is no document. */
void det_document_write_delta(
    const struct det_document_fields *old, const struct det_document_fields *new,
    struct det_buffer *text);

/* document_stage.c: one call of `save`. */

/* A document, before and then after. */
struct det_document_cell {
    const char *name; /* of the map */
    const char *kind, *id;
    enum det_document_role role;
    /* The driver's, when it is there; else all zero. `text` lives as long as the stage. */
    const char *text;
    size_t size;
    uint64_t sync, version;
    det_time created_at;
    /* The stage's. */
    det_time updated_at;
    bool was_there, is_there, is_changed;
};

struct det_document_changed {
    const struct det_document_cell *cell;
    enum det_document_change change;
    uint64_t sync, version;
    const char *text; /* the delta */
    size_t size;
};

struct det_document_stage {
    struct det_arena arena;
    struct det_map cell_of;
    const struct det_document_save *saves;
    size_t save_count;
    struct det_document_cell **cells;
    struct det_document_changed *changes;
    struct det_document_saved *saved;
    size_t cell_count, change_count;
    /* One document that is brought in, instead of saves. */
    const struct det_document *restored; /* NULL: none */
    struct det_document_save restored_save;
    uint64_t floor;
    /* What it has come to. */
    uint64_t base, latest; /* the changes have the sync ids after `base`, up to `latest` */
    bool drops_deltas;     /* all that are there, before anything else */
    struct det_document_fields old, new;
    struct det_buffer delta;
};

/* Checks the saves, which are borrowed, and makes the cells. Close it in either case. */
DET_MUST_CHECK int det_document_stage_open(
    struct det_document_stage *stage, const struct det_allocator *allocator,
    const struct det_document_save *saves, size_t count, struct det_error *reterr);
/* The same for a document that comes from another store. */
DET_MUST_CHECK int det_document_stage_open_restored(
    struct det_document_stage *stage, const struct det_allocator *allocator,
    const struct det_document *document, uint64_t floor);
/* Whether it was one, and is new. */
bool det_document_stage_is_new(const struct det_document_stage *stage);
void det_document_stage_close(struct det_document_stage *stage);
/* What is there; the text is copied. */
DET_MUST_CHECK int det_document_stage_fill(
    struct det_document_stage *stage, struct det_document_cell *cell,
    const struct det_document *document);
/* Decides all of it: the changes get the sync ids after `latest`. DET_ERR_INVALID,
 * DET_ERR_CONFLICT. It may be done once. */
DET_MUST_CHECK int det_document_stage_judge(
    struct det_document_stage *stage, uint64_t latest, det_time now, struct det_error *reterr);
/* NULL: not wanted. */
void det_document_stage_answer(
    const struct det_document_stage *stage, struct det_document_saved *ret);

/* document_check.c: a part of a driver's `check`. */
struct det_store_finding;
DET_MUST_CHECK int det_documents_check(
    struct det_store *store, int (*visit)(void *context, const struct det_store_finding *row),
    void *context);

/* Names in tables. DET_ERR_CORRUPT for any other. */
DET_MUST_CHECK int det_document_role_find(const char *name, enum det_document_role *ret);
DET_MUST_CHECK int det_document_change_find(const char *name, enum det_document_change *ret);

/* The ids that a list is about, as bytes: from `ret_low` on, which is the query's, and before what
 * `high`, which is empty, gets. Not all of them need be wanted. */
DET_MUST_CHECK int det_document_range(
    const struct det_document_query *query, const char **ret_low, struct det_buffer *high);

/* Whether an id is below another one, or that one. */
bool det_document_is_below(const char *id, const char *below);

#endif
