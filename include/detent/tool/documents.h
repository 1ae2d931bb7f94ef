/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tool/documents.h - reads and follows the documents of a store: the operations of
 * driver/documents.h, for programs. Any thread, even while a runtime or workers use the store.
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

/* The operations of driver/documents.h. All return DET_ERR_UNSUPPORTED if the store has no
 * documents; a NULL `query` or `keep` means all zero. */
/* DET_ERR_INVALID, DET_ERR_CONFLICT, DET_ERR_READ_ONLY: nothing was saved, and `reterr` has the
 * document and the reason. `ret`, of `count` elements, may be NULL. */
DET_API int det_store_documents_save(
    struct det_store *store, const struct det_document_save *saves, size_t count,
    struct det_document_saved *ret, struct det_error *reterr) DET_MUST_CHECK;
/* Visits documents of one snapshot, whose position is written to `ret` (may be NULL) before the
 * first visit. `visit` must not use the store; a non-zero return value ends the walk and is
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
/* `ret` is the number of dropped deltas, even after an error; it may be NULL. */
DET_API int det_store_documents_compact(
    struct det_store *store, const struct det_document_keep *keep, uint64_t *ret) DET_MUST_CHECK;

/* A follower: it has seen all changes up to `position`; 0: none yet. */
struct det_documents_follower {
    uint64_t position;
    struct det_document_query wanted; /* kind, id, below, role; other fields are ignored */
    size_t limit;                     /* deltas per call; 0: 100 */
    /* The callbacks must not use the store; a non-zero return value ends the call and is
     * returned. */
    /* Earlier results are obsolete: all documents follow, as of `position`; NULL: see
     * is_bootstrap. */
    int (*begin)(void *context, uint64_t position);
    int (*document)(void *context, const struct det_document *document);
    int (*delta)(void *context, const struct det_delta *delta);
    void *context;
};
struct det_documents_followed {
    uint64_t position; /* position for the next call */
    size_t count;      /* number of visited documents or deltas */
    bool is_bootstrap; /* all documents were visited, since the follower was new or its position was
                        * compacted */
    bool has_more;     /* more deltas are available now */
};

/* One step of a follower: visits a bounded number of deltas after its position, in order; or, if
 * the follower is new or its position is older than the oldest delta, all documents of one
 * snapshot. At or beyond the newest change it visits nothing, and the position does not change. If
 * the call fails, or a visit ends it, `ret` is not written: repeat it from the same position. */
DET_API int det_documents_follow(
    struct det_store *store, const struct det_documents_follower *follower,
    struct det_documents_followed *ret) DET_MUST_CHECK;

DET_END
#endif
