/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tool/documents.h - documents of a store, and what has changed in them: what driver/documents.h
 * says, for programs that only use it. From any thread, also while a runtime or workers use the
 * store.
 *
 *     position 0 ----> all documents, as they are at 41      position 41
 *     position 41 ---> delta 42, delta 43                    position 43
 *     position 43 ---> nothing                               position 43
 *     (deltas up to 60 were compacted)
 *     position 43 ---> all documents, as they are at 75      position 75 */
#ifndef DETENT_TOOL_DOCUMENTS_H
#define DETENT_TOOL_DOCUMENTS_H

#include <detent/driver/documents.h>
#include <detent/store.h>

DET_BEGIN

/* "identity", "desired", "observed", "spec". */
DET_API const char *det_document_role_name(enum det_document_role role);
/* "created", "changed", "dropped". */
DET_API const char *det_document_change_name(enum det_document_change change);

/* The operations of driver/documents.h. All of them answer DET_ERR_UNSUPPORTED where a store has no
 * documents; a `query` or a `keep` that is NULL is one of zeros. */
/* DET_ERR_INVALID, DET_ERR_CONFLICT, DET_ERR_READ_ONLY: nothing was saved, and `reterr` says which
 * one it was and why. `ret`, of `count` elements, may be NULL. */
DET_API int det_store_documents_save(
    struct det_store *store, const struct det_document_save *saves, size_t count,
    struct det_document_saved *ret, struct det_error *reterr) DET_MUST_CHECK;
/* All that is visited is of one moment, whose position is written to `ret`, which may be NULL,
 * before the first visit. `visit` must not use the store; a non-zero answer ends it and is
 * returned. */
DET_API int det_store_documents_list(
    struct det_store *store, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_document *document), void *context,
    struct det_document_position *ret) DET_MUST_CHECK;
DET_API int det_store_documents_deltas(
    struct det_store *store, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_delta *delta), void *context,
    struct det_document_position *ret) DET_MUST_CHECK;
DET_API int det_store_documents_position(struct det_store *store, struct det_document_position *ret)
    DET_MUST_CHECK;
/* `ret`, how many deltas have gone, also when it failed then, may be NULL. */
DET_API int det_store_documents_compact(
    struct det_store *store, const struct det_document_keep *keep, uint64_t *ret) DET_MUST_CHECK;

/* A follower: it has seen all changes up to `position`, and nothing yet when that is 0. */
struct det_documents_follower {
    uint64_t position;
    struct det_document_query wanted; /* kind, id, below, role; the rest does not count */
    size_t limit;                     /* deltas in one call; 0: 100 */
    /* None of them may use the store; a non-zero answer ends it and is returned. */
    /* What was seen is obsolete: all documents follow, as they are at `position`; NULL: it is seen
     * from the answer. */
    int (*begin)(void *context, uint64_t position);
    int (*document)(void *context, const struct det_document *document);
    int (*delta)(void *context, const struct det_delta *delta);
    void *context;
};
struct det_documents_followed {
    uint64_t position; /* where to go on */
    size_t count;      /* documents or deltas that were visited */
    bool is_bootstrap; /* all documents, since it was new or behind what was compacted */
    bool has_more;     /* deltas, at once */
};

/* One step of following: the deltas after its position, in order, a bounded number of them; or,
 * when it is new or behind the oldest delta, all documents of one moment. Who is at the head, or
 * ahead of it, gets nothing and stays where it is. When it fails, or a visit ends it, `ret` is not
 * written: ask again from the same position. */
DET_API int det_documents_follow(
    struct det_store *store, const struct det_documents_follower *follower,
    struct det_documents_followed *ret) DET_MUST_CHECK;

DET_END
#endif
