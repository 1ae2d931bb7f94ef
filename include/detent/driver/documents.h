/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/documents.h - operations with which a store keeps the documents of workers: `documents` of
 * the store's operations. docs/formats/sql_schema.md has the tables, docs/formats/workers.md the
 * contents.
 *
 * A document is a JSON object under a kind, an id and a role. A change of a document is a delta:
 *
 *     save  {"a":1,"b":2}          sync 7, version 1   delta {"added":{"a":1,"b":2}}
 *     save  {"a":1,"b":2}          nothing: not a byte is written
 *     save  {"a":1,"b":3,"c":4}    sync 8, version 2   delta {"added":{"c":4},
 *                                                             "modified":{"b":{"old":2,"new":3}}}
 *     save  {"a":1}                sync 9, version 3   delta {"removed":{"b":3,"c":4}}
 *     drop                         sync 10             delta {"removed":{"a":1}}
 *
 * Rules
 *   1. A sync id identifies one change of one document. Sync ids grow over all documents, processes
 *      and restarts. A reader that has seen all deltas up to a sync id has no gap.
 *   2. The version counts the changes of one document from 1; created_at does not change. A drop
 *      resets both.
 *   3. The saves of one call are one commit: all or none, and durable when the call returns 0.
 *   4. One call of `list` or `deltas` reads one snapshot, and `ret` is the position of that
 *      snapshot.
 *   5. Only the top-level fields of a document are distinguished. Values are compared as JSON:
 *      spaces, escapes and the order of members do not count, and 1.0 equals 1. DET_ERR_INVALID,
 *      and nothing of the call is saved, if a document is not a JSON object, has a duplicate field
 *      at any depth, or is too large or too deep.
 *   6. Only `compact` and `restore` drop deltas, the oldest first. A reader whose position is older
 *      than `oldest` must read the documents again.
 *   7. A store opened for reading answers every change with DET_ERR_READ_ONLY. */
#ifndef DETENT_DRIVER_DOCUMENTS_H
#define DETENT_DRIVER_DOCUMENTS_H

#include <detent/base.h>

DET_BEGIN

struct det_store;

#define DET_DOCUMENT_ID_MAX   512 /* bytes in an id: UTF-8, no control characters, not empty */
#define DET_DOCUMENT_KIND_MAX 64  /* bytes in a kind: [A-Za-z0-9._-], not empty */
#define DET_DOCUMENT_MAX      (1 << 20) /* bytes in a document */
#define DET_DOCUMENT_DEPTH    62 /* nested objects and arrays, including the document itself */

/* The roles, each with its name in the tables. */
#define DET_DOCUMENT_ROLES(X) \
    X(IDENTITY, "identity")   \
    X(DESIRED, "desired")     \
    X(OBSERVED, "observed")   \
    X(SPEC, "spec")
enum det_document_role {
#define DET_DOCUMENT_ROLE(name, text) DET_DOCUMENT_##name,
    DET_DOCUMENT_ROLES(DET_DOCUMENT_ROLE)
#undef DET_DOCUMENT_ROLE
};

enum det_document_change {
    DET_DOCUMENT_CREATED,
    DET_DOCUMENT_CHANGED,
    DET_DOCUMENT_DROPPED,
};

/* The desired content of a document: its text (borrowed), or a drop. */
struct det_document_save {
    const char *kind, *id;
    enum det_document_role role;
    bool is_drop;      /* dropping a missing document is not an error */
    bool has_expected; /* save only if the version is `expected`, else DET_ERR_CONFLICT */
    const char *text;
    size_t size;
    uint64_t expected; /* 0: the document does not exist */
};
struct det_document_saved {
    bool is_changed;  /* false: the content is unchanged */
    uint64_t sync;    /* sync id of this change, or of the last one */
    uint64_t version; /* 0: the document does not exist */
};

struct det_document {
    const char *kind, *id;
    enum det_document_role role;
    uint64_t sync, version;
    det_time created_at, updated_at; /* by the store's clock */
    const char *text;                /* the text as saved */
    size_t size;
};

struct det_delta {
    uint64_t sync;
    det_time at;
    const char *kind, *id;
    enum det_document_role role;
    enum det_document_change change;
    uint64_t version; /* version after this change; of a drop, the last version */
    const char
        *text; /* {"added": {...}, "modified": {...}, "removed": {...}}, without empty members */
    size_t size;
};

struct det_document_query {
    const char *kind;  /* NULL: any */
    const char *id;    /* NULL: any */
    const char *below; /* an id: matches it and the ids that begin with it and "/"; NULL: any */
    bool has_role;
    enum det_document_role role;
    const char *after_id; /* list: start after this id, in the order of ids, then kinds, then roles
                           * as above; NULL: start at the first */
    uint64_t after;       /* deltas: start after this sync id */
    size_t limit;         /* at most this many documents or deltas; 0: all. All documents of one id
                           * are listed together, so a list may exceed the limit */
};

struct det_document_position {
    uint64_t latest; /* sync id of the newest change; 0: no change yet */
    uint64_t oldest; /* oldest sync id whose delta is kept; latest + 1: no delta is kept */
};

struct det_document_keep {
    det_time since;     /* drop deltas older than this, by the store's clock; 0: no limit of age */
    uint64_t count_max; /* keep at most this many of the newest deltas; 0: no limit of count */
    uint64_t bytes_max; /* keep at most this many bytes of the newest deltas; 0: no limit of size */
};

struct det_document_ops {
    /* Saves in the given order, even if two are of one document. `ret` has `count` elements; it may
     * be NULL. */
    int (*save)(
        struct det_store *store, const struct det_document_save *saves, size_t count,
        struct det_document_saved *ret, struct det_error *reterr);
    /* Lists documents. `visit` must not call the store; its non-zero return value is returned.
     * `ret` is written before the first visit; it may be NULL. */
    int (*list)(
        struct det_store *store, const struct det_document_query *query,
        int (*visit)(void *context, const struct det_document *document), void *context,
        struct det_document_position *ret);
    /* Lists deltas by sync id. */
    int (*deltas)(
        struct det_store *store, const struct det_document_query *query,
        int (*visit)(void *context, const struct det_delta *delta), void *context,
        struct det_document_position *ret);
    int (*position)(struct det_store *store, struct det_document_position *ret);
    /* Drops deltas in several transactions, so that other users of the store do not wait. `ret` is
     * the number of dropped deltas, even after an error. */
    int (*compact)(struct det_store *store, const struct det_document_keep *keep, uint64_t *ret);
    /* Imports a document of another store with its version and times, but with a sync id and a
     * delta of this store. An existing document is not changed. New sync ids are above `floor`, the
     * latest of the other store. If this store had fewer, its deltas are dropped, so every reader
     * starts again. */
    int (*restore)(
        struct det_store *store, const struct det_document *document, uint64_t floor,
        bool *ret_is_new);
};

DET_END
#endif
