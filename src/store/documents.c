/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* documents.c - the public operations on documents, and the follower. */
#include <detent/tool/documents.h>

#include "base/assert.h"
#include "store/store.h"

#define FOLLOW_DEFAULT 100

/* Ends a walk from within. */
#define ENDED 1

static const struct det_document_query all = { 0 };

const char *det_document_role_name(enum det_document_role role)
{
    static const char *const names[] = {
#define NAME_OF(name, text) [DET_DOCUMENT_##name] = text,
        DET_DOCUMENT_ROLES(NAME_OF)
#undef NAME_OF
    };

    return names[role];
}

const char *det_document_change_name(enum det_document_change change)
{
    static const char *const names[] = {
        [DET_DOCUMENT_CREATED] = "created",
        [DET_DOCUMENT_CHANGED] = "changed",
        [DET_DOCUMENT_DROPPED] = "dropped",
    };

    return names[change];
}

int det_store_documents_save(
    struct det_store *store, const struct det_document_save *saves, size_t count,
    struct det_document_saved *ret, struct det_error *reterr)
{
    if (!store->ops->documents)
        return det_error_set(
            reterr, DET_ERR_UNSUPPORTED, "this store does not support documents; use another one");
    det_assert(saves || !count);
    return store->ops->documents->save(store, saves, count, ret, reterr);
}

int det_store_documents_list(
    struct det_store *store, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_document *document), void *context,
    struct det_document_position *ret)
{
    if (!store->ops->documents)
        return DET_ERR_UNSUPPORTED;
    det_assert(visit);
    return store->ops->documents->list(store, query ? query : &all, visit, context, ret);
}

int det_store_documents_deltas(
    struct det_store *store, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_delta *delta), void *context,
    struct det_document_position *ret)
{
    if (!store->ops->documents)
        return DET_ERR_UNSUPPORTED;
    det_assert(visit);
    return store->ops->documents->deltas(store, query ? query : &all, visit, context, ret);
}

int det_store_documents_position(struct det_store *store, struct det_document_position *ret)
{
    if (!store->ops->documents)
        return DET_ERR_UNSUPPORTED;
    det_assert(ret);
    return store->ops->documents->position(store, ret);
}

int det_store_documents_compact(
    struct det_store *store, const struct det_document_keep *keep, uint64_t *ret)
{
    static const struct det_document_keep nothing = { 0 };
    uint64_t count = 0;
    int r;

    if (!store->ops->documents)
        return DET_ERR_UNSUPPORTED;
    r = store->ops->documents->compact(store, keep ? keep : &nothing, &count);
    if (ret)
        *ret = count;
    return r;
}

/* Following. */

struct following {
    struct det_store *store;
    const struct det_documents_follower *follower;
    struct det_document_position at; /* position of the snapshot */
    struct det_documents_followed so_far;
    bool is_ended;    /* the walk was ended by this file */
    bool is_reported; /* `begin` was called */
};

static bool is_behind(const struct following *following)
{
    uint64_t position = following->follower->position;

    return position < following->at.latest &&
           (position == 0 || position + 1 < following->at.oldest);
}

static struct det_document_query query_of(const struct det_documents_follower *follower)
{
    return (struct det_document_query){
        .kind = follower->wanted.kind,
        .id = follower->wanted.id,
        .below = follower->wanted.below,
        .has_role = follower->wanted.has_role,
        .role = follower->wanted.role,
    };
}

static int follow_delta(void *context, const struct det_delta *delta)
{
    struct following *following = context;
    const struct det_documents_follower *follower = following->follower;
    struct det_documents_followed *so_far = &following->so_far;

    so_far->has_more = so_far->count == (follower->limit ? follower->limit : FOLLOW_DEFAULT);
    following->is_ended = so_far->has_more || is_behind(following);
    if (following->is_ended)
        return ENDED;
    so_far->count++;
    so_far->position = delta->sync;
    return follower->delta(follower->context, delta);
}

static int give_deltas(struct following *following)
{
    const struct det_documents_follower *follower = following->follower;
    struct det_document_query query = query_of(follower);
    int r;

    query.after = follower->position;
    query.limit = (follower->limit ? follower->limit : FOLLOW_DEFAULT) + 1;
    r = det_store_documents_deltas(
        following->store, &query, follow_delta, following, &following->at);
    if (r == ENDED && following->is_ended)
        return 0;
    /* Skip changes that the query does not select. */
    following->so_far.position =
        follower->position > following->at.latest ? follower->position : following->at.latest;
    return r;
}

static int report_begin(struct following *following)
{
    const struct det_documents_follower *follower = following->follower;

    if (following->is_reported)
        return 0;
    following->is_reported = true;
    return follower->begin ? follower->begin(follower->context, following->at.latest) : 0;
}

static int follow_document(void *context, const struct det_document *document)
{
    struct following *following = context;
    int r;

    r = report_begin(following);
    if (r != 0)
        return r;
    following->so_far.count++;
    return following->follower->document(following->follower->context, document);
}

static int give_all(struct following *following)
{
    struct det_document_query query = query_of(following->follower);
    int r;

    following->so_far = (struct det_documents_followed){ .is_bootstrap = true };
    r = det_store_documents_list(
        following->store, &query, follow_document, following, &following->at);
    if (r == 0)
        r = report_begin(following);
    following->so_far.position = following->at.latest;
    return r;
}

int det_documents_follow(
    struct det_store *store, const struct det_documents_follower *follower,
    struct det_documents_followed *ret)
{
    struct following following = { .store = store, .follower = follower };
    int r;

    r = give_deltas(&following);
    if (r == 0 && is_behind(&following))
        r = give_all(&following);
    if (r == 0)
        *ret = following.so_far;
    return r;
}
