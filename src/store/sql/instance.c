/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance.c - parts that an instance has at most once: the answer to an event id, the start, the
 * snapshot. */
#include "store/sql/instance.h"

#include <string.h>

#include "store/row.h"
#include "store/sql/renames.h"

/* Columns of ANSWER_FIND. */
enum {
    ANSWER_OUTCOME,
    ANSWER_STATE,
    ANSWER_SEQUENCE,
    ANSWER_VISIT,
    ANSWER_EVENT,
    ANSWER_REQUEST,
    ANSWER_COMPLETE,
};

/* Columns of START_READ. */
enum { START_POSITION, START_VERSION, START_STATE, START_DATA, START_AT, START_COMPLETE };

/* Columns of SNAPSHOT_READ. */
enum { SNAPSHOT_HEAD = 3, SNAPSHOT_CHECKSUM = 14, SNAPSHOT_HISTORY, SNAPSHOT_TAKEN_AT };

struct lookup {
    const struct det_store *store;
    const struct det_machine *machine;
    int64_t key;
    bool is_found;
    void *ret;
};

int det_sql_head_read(const struct det_sql_row *row, int first, struct det_chain_head *ret)
{
    struct det_chain_bytes hash = det_sql_bytes(row, first + 10);
    int r;

    *ret = (struct det_chain_head){
        .machine = det_sql_text(row, 1),
        .id = det_sql_text(row, 2),
        .version = det_sql_count(row, first),
        .state = det_sql_text(row, first + 1),
        .sequence = det_sql_count(row, first + 2),
        .visit = det_sql_count(row, first + 3),
        .transitions = det_sql_count(row, first + 4),
        .started_at = det_sql_number(row, first + 5),
        .moved_at = det_sql_number(row, first + 6),
        .is_stopped = det_sql_flag(row, first + 7),
        .reason = det_sql_text_or_null(row, first + 8),
        .data = det_sql_bytes(row, first + 9),
    };
    r = det_sql_status(row);
    if (r < 0)
        return r;
    if (!hash.data || hash.size != sizeof ret->hash.bytes)
        return DET_ERR_CORRUPT;
    memcpy(ret->hash.bytes, hash.data, hash.size);
    return 0;
}

static int look_up(
    struct lookup *lookup, struct det_store *store, struct det_store_instance *instance,
    enum det_sql_statement statement, const char *event_id,
    int (*read)(void *context, const struct det_sql_row *row))
{
    struct det_sql_values values = { 0 };
    const struct det_sql_question question = {
        .statement = statement, .values = &values, .read = read, .context = lookup
    };
    int r;

    lookup->store = store;
    lookup->key = det_sql_ops_of(store)->key_of(instance, &lookup->machine);
    det_sql_add_number(&values, lookup->key);
    if (event_id)
        det_sql_add_text(&values, event_id);
    r = det_sql_ask(store, &question, 1, NULL);
    return r == 0 && !lookup->is_found ? DET_ERR_NOT_FOUND : r;
}

static int read_answer(void *context, const struct det_sql_row *row)
{
    struct lookup *lookup = context;
    struct det_store_answer *ret = lookup->ret;
    int outcome = det_outcome_find(det_sql_text(row, ANSWER_OUTCOME)), state, r;

    lookup->is_found = true;
    *ret = (struct det_store_answer){
        .outcome = (uint16_t)outcome,
        .request = det_sql_count(row, ANSWER_REQUEST),
        .sequence = det_sql_count(row, ANSWER_SEQUENCE),
        .visit = det_sql_count(row, ANSWER_VISIT),
    };
    state = det_row_state_find(lookup->machine, det_sql_text(row, ANSWER_STATE), &ret->state);
    /* An event that is no longer in the machine has no number. */
    if (det_row_event_find(lookup->machine, det_sql_text_or_null(row, ANSWER_EVENT), &ret->event) <
        0)
        ret->event = UINT16_MAX;
    r = det_sql_check(row, ANSWER_COMPLETE);
    if (r < 0)
        return r;
    return outcome < 0 ? DET_ERR_VERSION : state;
}

int det_sql_answer(
    struct det_store *store, struct det_store_instance *instance, const char *event_id,
    struct det_store_answer *ret)
{
    struct lookup lookup = { .ret = ret };

    return look_up(&lookup, store, instance, DET_SQL_ANSWER_FIND, event_id, read_answer);
}

static int read_start(void *context, const struct det_sql_row *row)
{
    struct lookup *lookup = context;
    struct det_store_start *ret = lookup->ret;
    struct det_chain_bytes data = det_sql_bytes(row, START_DATA);
    const char *state = det_sql_text(row, START_STATE);
    int r;

    lookup->is_found = true;
    ret->version = (uint32_t)det_sql_number(row, START_VERSION);
    ret->at = det_sql_number(row, START_AT);
    r = det_sql_check(row, START_COMPLETE);
    if (r == 0)
        r = det_row_data_decode(lookup->store, lookup->machine, data, ret->data);
    if (r < 0)
        return r;
    state = det_sql_renamed(
        lookup->store, lookup->machine->name, DET_NAME_STATE, det_sql_number(row, START_POSITION),
        state);
    return det_row_state_find(lookup->machine, state, &ret->state);
}

int det_sql_start(
    struct det_store *store, struct det_store_instance *instance, struct det_store_start *ret)
{
    struct lookup lookup = { .ret = ret };

    return look_up(&lookup, store, instance, DET_SQL_START_READ, NULL, read_start);
}

static int read_snapshot(void *context, const struct det_sql_row *row)
{
    struct lookup *lookup = context;
    struct det_store_snapshot *ret = lookup->ret;
    const char *history = det_sql_text(row, SNAPSHOT_HISTORY);
    struct det_chain_head head;
    int r;

    lookup->is_found = true;
    r = det_sql_head_read(row, SNAPSHOT_HEAD, &head);
    if (r < 0)
        return r;
    ret->taken_at = det_sql_number(row, SNAPSHOT_TAKEN_AT);
    if (det_chain_snapshot_checksum(&head, history, ret->taken_at) !=
        det_sql_count(row, SNAPSHOT_CHECKSUM))
        return DET_ERR_CORRUPT;
    r = det_row_head_read(lookup->store, lookup->machine, &head, &ret->loaded);
    if (r == 0)
        r = det_row_history_read(lookup->machine, history, &ret->loaded);
    return r;
}

int det_sql_snapshot(
    struct det_store *store, struct det_store_instance *instance, struct det_store_snapshot *ret)
{
    struct lookup lookup = { .ret = ret };

    return look_up(&lookup, store, instance, DET_SQL_SNAPSHOT_READ, NULL, read_snapshot);
}
