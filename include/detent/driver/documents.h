/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/documents.h - what a store must be able to do so that workers are on record: the
 * `documents` of its operations. docs/formats/sql_schema.md has the tables, docs/formats/workers.md
 * what workers write.
 *
 * A document is a JSON object under a kind, an id and a role. What changes in one is a delta:
 *
 *     save  {"a":1,"b":2}          sync 7, version 1   delta {"added":{"a":1,"b":2}}
 *     save  {"a":1,"b":2}          nothing: not a byte is written
 *     save  {"a":1,"b":3,"c":4}    sync 8, version 2   delta {"added":{"c":4},
 *                                                             "modified":{"b":{"old":2,"new":3}}}
 *     save  {"a":1}                sync 9, version 3   delta {"removed":{"b":3,"c":4}}
 *     drop                         sync 10             delta {"removed":{"a":1}}
 *
 * Rules
 *   1. A sync id is given to one change of one document, and they grow: over all documents, all
 *      processes and all restarts. Whoever has seen all deltas up to one has missed nothing.
 *   2. The version counts the changes of one document from 1; created_at stays what it was. After a
 *      drop both begin anew.
 *   3. The saves of one call are one commit: all or none, and durable when it has answered 0.
 *   4. What one call of `list` or `deltas` shows is of one moment, and `ret` is its position.
 *   5. Only fields at the top of a document are distinguished. Their values are compared as JSON,
 *      so that spaces, escapes and the order of members do not count, and 1.0 is 1. A document that
 *      is no JSON object, has a field twice (at whatever depth), or is too large or too deep is
 *      DET_ERR_INVALID, and nothing of the call is saved.
 *   6. Deltas are dropped by `compact` and `restore` only, the oldest first; who is behind that
 *      must begin with what the documents are now (`oldest` of the position says so).
 *   7. A store opened for reading answers every change with DET_ERR_READ_ONLY. */
#ifndef DETENT_DRIVER_DOCUMENTS_H
#define DETENT_DRIVER_DOCUMENTS_H

#include <detent/base.h>

DET_BEGIN

struct det_store;

#define DET_DOCUMENT_ID_MAX   512       /* bytes of an id: UTF-8, none control; not empty */
#define DET_DOCUMENT_KIND_MAX 64        /* bytes of a kind: [A-Za-z0-9._-]; not empty */
#define DET_DOCUMENT_MAX      (1 << 20) /* bytes of a document */
#define DET_DOCUMENT_DEPTH    62        /* of objects and arrays in it, itself included */

/* Each with its name in the tables. */
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

/* What is to be: the text (borrowed), or none at all. */
struct det_document_save {
    const char *kind, *id;
    enum det_document_role role;
    bool is_drop;      /* one that is not there is dropped already */
    bool has_expected; /* only if its version is `expected`: DET_ERR_CONFLICT */
    const char *text;
    size_t size;
    uint64_t expected; /* 0: it is not there */
};
struct det_document_saved {
    bool is_changed;  /* false: it was so already */
    uint64_t sync;    /* of this change, or of the last one */
    uint64_t version; /* 0: it is not there */
};

struct det_document {
    const char *kind, *id;
    enum det_document_role role;
    uint64_t sync, version;
    det_time created_at, updated_at; /* by the store's clock */
    const char *text;                /* as it was saved */
    size_t size;
};

struct det_delta {
    uint64_t sync;
    det_time at;
    const char *kind, *id;
    enum det_document_role role;
    enum det_document_change change;
    uint64_t version; /* that this change made; of a drop, the last one */
    const char
        *text; /* {"added": {...}, "modified": {...}, "removed": {...}}, empty ones left out */
    size_t size;
};

struct det_document_query {
    const char *kind;  /* NULL: any */
    const char *id;    /* NULL: any */
    const char *below; /* an id: it, and those that begin with it and "/"; NULL: any */
    bool has_role;
    enum det_document_role role;
    const char *after_id; /* list: in the order of ids, then kinds, then roles as above; NULL: from
                             the first */
    uint64_t after;       /* deltas: a sync id */
    size_t limit;         /* documents or deltas; 0: all. Of one id all or none are listed: a list
                             may be longer by its other roles */
};

struct det_document_position {
    uint64_t latest; /* sync id of the newest change; 0: there was none */
    uint64_t oldest; /* deltas are there for every sync id from this on; latest + 1: for none */
};

struct det_document_keep {
    det_time since;     /* deltas older than this may go, by the store's clock; 0: none by age */
    uint64_t count_max; /* and all but the newest so many; 0: none by count */
    uint64_t bytes_max; /* and all but the newest so many bytes of texts; 0: none by size */
};

struct det_document_ops {
    /* In their order, also where two are of one document. `ret`, of `count` elements, may be NULL.
     */
    int (*save)(
        struct det_store *store, const struct det_document_save *saves, size_t count,
        struct det_document_saved *ret, struct det_error *reterr);
    /* `visit` must not call the store; its non-zero answer is returned. `ret` is written before the
     * first visit; it may be NULL. */
    int (*list)(
        struct det_store *store, const struct det_document_query *query,
        int (*visit)(void *context, const struct det_document *document), void *context,
        struct det_document_position *ret);
    /* In the order of sync ids. */
    int (*deltas)(
        struct det_store *store, const struct det_document_query *query,
        int (*visit)(void *context, const struct det_delta *delta), void *context,
        struct det_document_position *ret);
    int (*position)(struct det_store *store, struct det_document_position *ret);
    /* Drops deltas, some after the other, so that others need not wait for all. `ret` is how many,
     * also when it has failed then. */
    int (*compact)(struct det_store *store, const struct det_document_keep *keep, uint64_t *ret);
    /* Brings in a document of another store, with its version and times, but with a sync id and a
     * delta of this one; one that is there is left alone. New sync ids are above `floor`, the
     * latest of the other store: where fewer were, the deltas that are there are dropped, so that
     * whoever follows begins anew. */
    int (*restore)(
        struct det_store *store, const struct det_document *document, uint64_t floor,
        bool *ret_is_new);
};

DET_END
#endif
