/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document.h - the common part of documents for all drivers: validation, differences, and one call
 * of `save`, from the requested documents to the resulting changes.
 *
 *     driver                          stage
 *     saves -----------------------> cells: one per document of the call, for all its roles
 *     reads existing documents -----> into the cells
 *                                     judge: in the order of the saves, each against its cell
 *     writes the changed cells
 *     and a delta per change <------- changes, with their sync ids
 *
 * All functions are pure. */
#ifndef DET_STORE_DOCUMENT_H
#define DET_STORE_DOCUMENT_H

#include <string.h>

#include <detent/tool/documents.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/map.h"
#include "base/text.h"

/* Deltas are dropped in batches of this size; other transactions run between two batches. */
#define DET_DELTAS_DROPPED_AT_ONCE 500

/* document.c: the top-level fields of a JSON object. */

/* `place` is the offset in the canonical bytes: the name, then the value. */
struct det_document_field {
    struct det_view key, value; /* as in the text: the key without quotes, escaped */
    size_t place, key_size, size;
    const char *bytes; /* the bytes at `place`, during sorting */
};

/* Sorted by name. Two values are equal when their canonical bytes are. */
struct det_document_fields {
    const struct det_allocator *allocator;
    struct det_buffer canonical, scratch;
    struct det_document_field *items;
    size_t count, capacity;
    unsigned depth; /* nesting depth of the document */
};

void det_document_fields_init(
    struct det_document_fields *fields, const struct det_allocator *allocator);
void det_document_fields_deinit(struct det_document_fields *fields);
/* Parses a document and replaces earlier contents; the text is borrowed until the next call.
 * DET_ERR_INVALID with the reason. */
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
/* Writes the difference of two documents as JSON; NULL: the document does not exist. */
void det_document_write_delta(
    const struct det_document_fields *old, const struct det_document_fields *new,
    struct det_buffer *text);

/* document_stage.c: one call of `save`. */

/* A document before and after the call. */
struct det_document_cell {
    const char *name; /* key of the map */
    const char *kind, *id;
    enum det_document_role role;
    /* Filled by the driver if the document exists; else all zero. `text` lives as long as the
     * stage. */
    const char *text;
    size_t size;
    uint64_t sync, version;
    det_time created_at;
    /* Filled by the stage. */
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
    /* An imported document, instead of saves. */
    const struct det_document *restored; /* NULL: none */
    struct det_document_save restored_save;
    uint64_t floor;
    /* The result. */
    uint64_t base, latest; /* the changes have the sync ids after `base`, up to `latest` */
    bool drops_deltas;     /* drop all existing deltas first */
    struct det_document_fields old, new;
    struct det_buffer delta;
};

/* Checks the saves, which are borrowed, and makes the cells. Close the stage also after an
 * error. */
DET_MUST_CHECK int det_document_stage_open(
    struct det_document_stage *stage, const struct det_allocator *allocator,
    const struct det_document_save *saves, size_t count, struct det_error *reterr);
/* Like det_document_stage_open(), for an imported document. */
DET_MUST_CHECK int det_document_stage_open_restored(
    struct det_document_stage *stage, const struct det_allocator *allocator,
    const struct det_document *document, uint64_t floor);
/* True if the stage imports a document that did not exist. */
bool det_document_stage_is_new(const struct det_document_stage *stage);
void det_document_stage_close(struct det_document_stage *stage);
/* Sets the existing document of a cell; the text is copied. */
DET_MUST_CHECK int det_document_stage_fill(
    struct det_document_stage *stage, struct det_document_cell *cell,
    const struct det_document *document);
/* Decides about all saves: changes get the sync ids after `latest`. DET_ERR_INVALID,
 * DET_ERR_CONFLICT. Call this once. */
DET_MUST_CHECK int det_document_stage_validate(
    struct det_document_stage *stage, uint64_t latest, det_time now, struct det_error *reterr);
/* `ret` may be NULL. */
void det_document_stage_answer(
    const struct det_document_stage *stage, struct det_document_saved *ret);

/* document_check.c: documents in a driver's `check`. */
struct det_store_finding;
DET_MUST_CHECK int det_documents_check(
    struct det_store *store, int (*visit)(void *context, const struct det_store_finding *row),
    void *context);

/* Converts a name in the tables to a role. DET_ERR_CORRUPT: unknown. */
DET_MUST_CHECK int det_document_role_find(const char *name, enum det_document_role *ret);
DET_MUST_CHECK int det_document_change_find(const char *name, enum det_document_change *ret);

/* The byte range of ids for a list: from `ret_low` on, which belongs to the query, and before the
 * bytes appended to `high`, which is empty. The range may contain other ids. */
DET_MUST_CHECK int det_document_range(
    const struct det_document_query *query, const char **ret_low, struct det_buffer *high);

/* True if `id` equals `below` or is in its subtree. */
bool det_document_is_below(const char *id, const char *below);

#endif
