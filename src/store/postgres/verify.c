/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* verify.c - pruning, and verification of a whole store.
 *
 * The check walks the heads and the events side by side, both in the order of the keys, in one
 * snapshot transaction, with a page of each in memory. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "os/os.h"
#include "store/contract.h"
#include "store/document.h"
#include "store/postgres/postgres.h"
#include "store/postgres/session.h"
#include "store/row.h"
#include "store/sql/instance.h"
#include "store/sql/log.h"

#define PAGE_ROWS 512

struct pruning {
    int64_t key;
    uint64_t sequence, ret;
    det_time answers_before;
};

static void send_pruning(struct postgres_exchange *exchange, void *context)
{
    const struct pruning *pruning = context;
    struct postgres_parameters events = { 0 }, answers = { 0 };

    det_postgres_add_number(&events, pruning->key);
    det_postgres_add_number(&events, (int64_t)pruning->sequence);
    det_postgres_add_number(&answers, pruning->key);
    det_postgres_add_number(&answers, pruning->answers_before);
    det_postgres_ask(exchange, POSTGRES_PRUNE_EVENTS, &events);
    det_postgres_ask(exchange, POSTGRES_PRUNE_ANSWERS, &answers);
}

static int take_pruning(struct postgres_exchange *exchange, void *context)
{
    struct pruning *pruning = context;

    pruning->ret = (uint64_t)det_postgres_number(exchange->results[0], 0, 0);
    return 0;
}

int det_postgres_prune(
    struct det_store *base, struct det_store_instance *instance, uint64_t sequence,
    det_time answers_before, uint64_t *ret)
{
    struct postgres_store *store = postgres_store_of(base);
    struct pruning pruning = { postgres_instance_of(instance)->key, sequence, 0, answers_before };
    const struct postgres_job job = { send_pruning, take_pruning, &pruning, true, 0 };
    int r;

    det_contract_prune(instance, ret);
    if (store->sql.is_read_only)
        return DET_ERR_READ_ONLY;
    if (sequence > INT64_MAX)
        pruning.sequence = INT64_MAX;
    r = det_postgres_run(store, &job, NULL);
    if (r == 0)
        *ret = pruning.ret;
    return r;
}

struct checking {
    struct postgres_session session;
    int (*visit)(void *context, const struct det_store_finding *row);
    void (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;
    PGresult *heads, *events;
    int event; /* index of the next row of `events` */
    int64_t last_key;
    int64_t event_key, event_sequence; /* of the last event read */
    uint64_t done, total;
};

/* Columns of CHECK_HEADS, with the first columns of head and snapshot. */
enum { OF_HEAD = 3, OF_SNAPSHOT = 16, HAS_SNAPSHOT = 15, HEAD_CHECKSUM = 14, MOVED = 11 };
/* The first column of the start. */
enum { OF_START = 30 };

static int report_finding(struct checking *checking, int row, uint64_t sequence, const char *text)
{
    const struct det_store_finding finding = {
        .machine = row < 0 ? NULL : det_postgres_text(checking->heads, row, 1),
        .id = row < 0 ? NULL : det_postgres_text(checking->heads, row, 2),
        .sequence = sequence,
        .text = text,
    };

    return checking->visit(checking->context, &finding);
}

/* A damaged value does not match its checksum. */
static struct det_chain_head read_head(const PGresult *rows, int row, int first)
{
    const struct det_sql_row place = det_postgres_row(rows, row);
    struct det_chain_head head;

    (void)!det_sql_head_read(&place, first, &head);
    return head;
}

static int check_head(struct checking *checking, int row, const struct det_chain_head *head)
{
    if (det_chain_head_checksum(head) ==
        (uint64_t)det_postgres_number(checking->heads, row, HEAD_CHECKSUM))
        return 0;
    return report_finding(checking, row, 0, "the head is damaged: its checksum does not match");
}

static int check_snapshot(struct checking *checking, int row, struct det_chain_head *ret)
{
    const PGresult *rows = checking->heads;

    *ret = read_head(rows, row, OF_SNAPSHOT);
    if (det_chain_snapshot_checksum(
            ret, det_postgres_text(rows, row, OF_SNAPSHOT + 12),
            det_postgres_number(rows, row, OF_SNAPSHOT + 13)) ==
        (uint64_t)det_postgres_number(rows, row, OF_SNAPSHOT + MOVED))
        return 0;
    ret->sequence = 0;
    return report_finding(checking, row, 0, "the snapshot is damaged: its checksum does not match");
}

static int next_events(struct checking *checking)
{
    struct postgres_parameters parameters = { 0 };

    checking->event = 0;
    det_postgres_add_number(&parameters, checking->event_key);
    det_postgres_add_number(&parameters, checking->event_sequence);
    det_postgres_add_number(&parameters, checking->last_key);
    det_postgres_add_number(&parameters, PAGE_ROWS);
    return det_postgres_session_ask(
        &checking->session, POSTGRES_CHECK_EVENTS, &parameters, &checking->events);
}

/* The next event of an instance: 1; 0: none. Skips events without an instance. */
static int next_event(struct checking *checking, int64_t key)
{
    int r;

    for (;;) {
        if (!checking->events || checking->event == PQntuples(checking->events)) {
            if (checking->events && PQntuples(checking->events) < PAGE_ROWS)
                return 0;
            r = next_events(checking);
            if (r < 0)
                return r;
            if (PQntuples(checking->events) == 0)
                return 0;
        }
        if (det_postgres_number(checking->events, checking->event, 0) > key)
            return 0;
        checking->event_key = det_postgres_number(checking->events, checking->event, 0);
        checking->event_sequence = det_postgres_number(checking->events, checking->event, 1);
        checking->event++;
        if (checking->event_key == key)
            return 1;
    }
}

/* Progress along the chain of an instance. */
struct chain {
    struct det_chain_hash hash;
    uint64_t sequence;
    bool is_begun;
    bool is_known; /* the hash belongs to this sequence */
};

static int check_link(
    struct checking *checking, int row, const struct det_chain_head *head, struct chain *chain)
{
    const struct det_sql_row place = det_postgres_row(checking->events, checking->event - 1);
    struct det_chain_bytes stored;
    struct det_chain_event event = det_sql_event_read(&place, &stored);
    struct det_chain_hash hash;
    int r = 0;

    event.machine = head->machine;
    event.id = head->id;
    if (chain->is_known && event.sequence != chain->sequence + 1) {
        r = report_finding(checking, row, event.sequence, "events before this one are missing");
    } else if (chain->is_known) {
        hash = det_chain_next(&chain->hash, &event);
        if (stored.size != sizeof hash.bytes || memcmp(hash.bytes, stored.data, stored.size) != 0)
            r = report_finding(
                checking, row, event.sequence,
                event.sequence == 1
                    ? "the event, or the start before it, was changed: its hash does not match"
                    : "the event, or the one before it, was changed: its hash does not match");
    }
    /* Continue with the stored hash, so that one damage is reported once. */
    chain->is_known = stored.size == sizeof chain->hash.bytes;
    if (chain->is_known)
        memcpy(chain->hash.bytes, stored.data, stored.size);
    chain->sequence = event.sequence;
    return r;
}

static struct det_chain_hash start_hash(
    const struct checking *checking, int row, const struct det_chain_head *head)
{
    const PGresult *rows = checking->heads;
    struct det_chain_start start = { head->machine, head->id, .at = head->started_at };

    if (det_postgres_text(rows, row, OF_START + 1)) {
        start.version = (uint64_t)det_postgres_number(rows, row, OF_START);
        start.state = det_postgres_text(rows, row, OF_START + 1);
        start.data = det_postgres_bytes(rows, row, OF_START + 2);
        start.at = det_postgres_number(rows, row, OF_START + 3);
    }
    return det_chain_start(&start);
}

/* Checks the first link of the chain (the start, or the snapshot if earlier events are pruned) and
 * that the last hash equals the head's. */
static int check_chain(
    struct checking *checking, int row, const struct det_chain_head *head,
    const struct det_chain_head *snapshot)
{
    int64_t key = det_postgres_number(checking->heads, row, 0);
    uint64_t covered = snapshot ? snapshot->sequence : 0;
    struct chain chain = { 0 };
    int r;

    while ((r = next_event(checking, key)) == 1) {
        uint64_t first = chain.is_begun ? 0 : (uint64_t)checking->event_sequence;

        if (first == 1)
            chain.hash = start_hash(checking, row, head);
        else if (first > 1 && first == covered + 1)
            chain = (struct chain){ .hash = snapshot->hash, .sequence = covered };
        chain.is_known = chain.is_begun ? chain.is_known : first == 1 || first == covered + 1;
        if (first > covered + 1) {
            r = report_finding(
                checking, row, first,
                "events before this one are missing, and no snapshot covers them");
            if (r != 0)
                return r;
        }
        chain.is_begun = true;
        r = check_link(checking, row, head, &chain);
        if (r != 0)
            return r;
    }
    if (r < 0)
        return r;
    if ((chain.is_begun ? chain.sequence : covered) != head->sequence)
        return report_finding(checking, row, head->sequence, "events up to the head are missing");
    if (!chain.is_begun && head->sequence == 0)
        chain = (struct chain){ .hash = start_hash(checking, row, head), .is_begun = true };
    if (chain.is_begun && memcmp(chain.hash.bytes, head->hash.bytes, sizeof head->hash.bytes) != 0)
        return report_finding(
            checking, row, head->sequence,
            head->sequence ? "the hash of the head does not match the last event"
                           : "the hash of the head does not match its start");
    return 0;
}

static int check_instance(struct checking *checking, int row)
{
    struct det_chain_head head = read_head(checking->heads, row, OF_HEAD), snapshot;
    bool has_snapshot = det_postgres_bool(checking->heads, row, HAS_SNAPSHOT);
    int r;

    r = check_head(checking, row, &head);
    if (r == 0 && has_snapshot)
        r = check_snapshot(checking, row, &snapshot);
    if (r == 0)
        r = check_chain(checking, row, &head, has_snapshot && snapshot.sequence ? &snapshot : NULL);
    checking->done++;
    return r;
}

static int check_page(struct checking *checking, int *ret_count)
{
    struct postgres_parameters parameters = { 0 };
    int r;

    det_postgres_add_number(&parameters, checking->last_key);
    det_postgres_add_number(&parameters, PAGE_ROWS);
    r = det_postgres_session_ask(
        &checking->session, POSTGRES_CHECK_HEADS, &parameters, &checking->heads);
    if (r < 0)
        return r;
    *ret_count = PQntuples(checking->heads);
    if (*ret_count == 0)
        return 0;
    checking->last_key = det_postgres_number(checking->heads, *ret_count - 1, 0);
    /* A page of events that ended with the last page of heads is read again, from that place. */
    PQclear(checking->events);
    checking->events = NULL;
    for (int i = 0; r == 0 && i < *ret_count; i++)
        r = check_instance(checking, i);
    if (checking->progress)
        checking->progress(checking->context, checking->done, checking->total);
    return r;
}

static int check_orphans(struct checking *checking)
{
    PGresult *rows = NULL;
    char text[128];
    int r;

    r = det_postgres_session_ask(&checking->session, POSTGRES_CHECK_ORPHANS, NULL, &rows);
    for (int i = 0; r == 0 && i < PQntuples(rows); i++) {
        int64_t count = det_postgres_number(rows, i, 1);

        snprintf(
            text, sizeof text, "%lld row%s of the table %s %s to no instance", (long long)count,
            det_plural((uint64_t)count), det_postgres_text(rows, i, 0),
            count == 1 ? "belongs" : "belong");
        r = report_finding(checking, -1, 0, text);
    }
    PQclear(rows);
    return r;
}

/* Checks rows with their own checksum. */
static int check_rows(struct checking *checking)
{
    PGresult *rows = NULL;
    char text[512];
    int r;

    r = det_postgres_session_ask(&checking->session, POSTGRES_CHECK_ROWS, NULL, &rows);
    for (int i = 0; r == 0 && i < PQntuples(rows); i++) {
        const struct det_store_finding finding = {
            .machine = det_postgres_text(rows, i, 1),
            .id = det_postgres_text(rows, i, 2),
            .text = text,
        };

        snprintf(
            text, sizeof text, "the %s \"%s\" does not match its checksum",
            det_postgres_text(rows, i, 0), det_postgres_text(rows, i, 3));
        r = checking->visit(checking->context, &finding);
    }
    PQclear(rows);
    return r;
}

static int check_all(struct checking *checking)
{
    PGresult *count = NULL;
    int r, rows = 1;

    r = det_postgres_session_ask(&checking->session, POSTGRES_BEGIN_READING, NULL, NULL);
    if (r == 0)
        r = det_postgres_session_ask(&checking->session, POSTGRES_SCAN, NULL, NULL);
    if (r == 0)
        r = det_postgres_session_ask(&checking->session, POSTGRES_CHECK_COUNT, NULL, &count);
    if (r == 0)
        checking->total = (uint64_t)det_postgres_number(count, 0, 0);
    PQclear(count);
    while (r == 0 && rows > 0)
        r = check_page(checking, &rows);
    if (r == 0)
        r = check_rows(checking);
    if (r == 0)
        r = check_orphans(checking);
    if (r == 0)
        r = det_postgres_session_ask(&checking->session, POSTGRES_END_READING, NULL, NULL);
    PQclear(checking->heads);
    PQclear(checking->events);
    return r;
}

int det_postgres_check(
    struct det_store *base, int (*visit)(void *context, const struct det_store_finding *row),
    void (*progress)(void *context, uint64_t done, uint64_t total), void *context)
{
    struct postgres_store *store = postgres_store_of(base);
    struct checking checking = { .visit = visit,
                                 .progress = progress,
                                 .context = context,
                                 .last_key = INT64_MIN,
                                 .event_key = INT64_MIN };
    int r;

    r = det_postgres_session_open(&checking.session, store);
    if (r < 0)
        return r;
    r = check_all(&checking);
    det_postgres_session_close(&checking.session);
    return r != 0 ? r : det_documents_check(base, visit, context);
}
