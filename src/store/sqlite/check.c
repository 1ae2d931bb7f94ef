/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* check.c - verifies a store: the file, every checksum, the chain of every instance, and that every
 * row belongs to an instance. It uses one reading transaction, which does not block writers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "store/document.h"
#include "store/sqlite/sqlite.h"

struct checking {
    struct sqlite_connection *reader;
    int (*visit)(void *context, const struct det_store_finding *row);
    void *context;
    int64_t chained; /* events reached through chains */
};

/* The instance under check. */
struct subject {
    const struct sqlite_head *row;
    int64_t last_event;
    struct det_chain_hash start; /* of its start, if recorded */
    bool has_snapshot;           /* a valid one */
    uint64_t snapshot_sequence;
    struct det_chain_hash snapshot_hash;
};

static int report_finding(
    const struct checking *checking, const struct subject *subject, uint64_t sequence,
    const char *text)
{
    return checking->visit(
        checking->context,
        &(struct det_store_finding){ .machine = subject ? subject->row->head.machine : NULL,
                                     .id = subject ? subject->row->head.id : NULL,
                                     .sequence = sequence,
                                     .text = text });
}

/* Damage that prevents reading is a finding, and the check continues. */
static int excuse_damage(
    const struct checking *checking, const struct subject *subject, int r, const char *text)
{
    return r == DET_ERR_CORRUPT ? report_finding(checking, subject, 0, text) : r;
}

int det_sqlite_finding(const char *text)
{
    static const char before[] = "error code=";
    const char *code = strstr(text, before);
    int r = code ? det_sqlite_error((int)strtol(code + sizeof before - 1, NULL, 10)) : 0;

    return r == DET_ERR_NO_MEMORY || r == DET_ERR_IO ? r : 0;
}

static int check_line(const struct checking *checking, const char *text)
{
    int r;

    r = det_sqlite_finding(text);
    if (r < 0)
        return r;
    return strcmp(text, "ok") == 0 ? 0 : report_finding(checking, NULL, 0, text);
}

static int check_file(const struct checking *checking)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(checking->reader, STATEMENT_INTEGRITY, &call);
    while ((r = det_sqlite_step(&call)) > 0) {
        r = check_line(checking, det_sqlite_get_text(&call, 0, false));
        if (r != 0)
            break;
    }
    det_sqlite_end(&call);
    return excuse_damage(checking, NULL, r, "the file cannot be checked");
}

static bool hashes_equal(const struct det_chain_hash *a, const struct det_chain_hash *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* The first event shows whether this start is its predecessor. */
static int read_start(const struct checking *checking, struct subject *subject)
{
    const struct det_chain_head *head = &subject->row->head;
    struct det_chain_start start = { head->machine, head->id, .at = head->started_at };
    struct sqlite_call call;
    int r;

    det_sqlite_call(checking->reader, STATEMENT_START_READ, &call);
    det_sqlite_number(&call, subject->row->key);
    r = det_sqlite_step(&call);
    if (r > 0) {
        start.version = (uint64_t)det_sqlite_get_number(&call, 1);
        start.state = det_sqlite_get_text(&call, 2, false);
        start.data = det_sqlite_get_bytes(&call, 3);
        start.at = det_sqlite_get_number(&call, 4);
    }
    subject->start = det_chain_start(&start);
    det_sqlite_end(&call);
    return r < 0 ? r : det_sqlite_error(call.code);
}

static int check_snapshot(const struct checking *checking, struct subject *subject)
{
    struct sqlite_call call;
    struct sqlite_head row;
    const char *text = NULL;
    int r;

    det_sqlite_call(checking->reader, STATEMENT_SNAPSHOT_READ, &call);
    det_sqlite_number(&call, subject->row->key);
    r = det_sqlite_step(&call);
    if (r > 0) {
        const char *history = det_sqlite_get_text(&call, 15, false);

        r = det_sqlite_head_read(&call, &row);
        if (r == DET_ERR_CORRUPT ||
            (r == 0 && det_chain_snapshot_checksum(
                           &row.head, history, det_sqlite_get_number(&call, 16)) != row.checksum))
            text = "the snapshot does not match its checksum; it is not used";
        else if (r == 0 && row.head.sequence > subject->row->head.sequence)
            text = "the snapshot is newer than the instance";
        else if (r == 0) {
            subject->has_snapshot = true;
            subject->snapshot_sequence = row.head.sequence;
            subject->snapshot_hash = row.head.hash;
        }
    }
    det_sqlite_end(&call);
    return text ? report_finding(checking, subject, 0, text) : r;
}

/* The hash before the first kept event, whose number is `sequence`. False: unknown, because more,
 * or fewer, events were deleted than the snapshot covers. */
static bool hash_before(
    const struct subject *subject, uint64_t sequence, struct det_chain_hash *ret)
{
    if (sequence == 1)
        *ret = subject->start;
    else if (subject->has_snapshot && subject->snapshot_sequence == sequence - 1)
        *ret = subject->snapshot_hash;
    else
        return false;
    return true;
}

/* The problem at the beginning of the chain, before `sequence`; NULL: none. */
static const char *check_beginning(const struct subject *subject, uint64_t sequence)
{
    if (sequence == 1)
        return NULL;
    if (!subject->has_snapshot || subject->snapshot_sequence < sequence - 1)
        return "older events are missing, and no snapshot covers them";
    return NULL;
}

/* Computes the event's hash from its predecessor. */
static const char *check_event(
    const struct subject *subject, const struct sqlite_event *event,
    const struct det_chain_hash *before)
{
    struct det_chain_event content = event->event;
    struct det_chain_hash hash;

    content.machine = subject->row->head.machine;
    content.id = subject->row->head.id;
    hash = det_chain_next(before, &content);
    if (hashes_equal(&hash, &event->hash))
        return NULL;
    return content.sequence == 1 ? "the event does not match its hash or the start of the instance"
                                 : "the event does not match its hash";
}

/* The hash of the event at a position, for its successor. */
static int read_hash(
    const struct checking *checking, const struct subject *subject, int64_t position,
    struct det_chain_hash *ret)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(checking->reader, STATEMENT_EVENT_STEP, &call);
    det_sqlite_number(&call, position);
    det_sqlite_number(&call, subject->row->key);
    r = det_sqlite_step(&call);
    if (r > 0)
        r = det_sqlite_get_hash(&call, 4, ret);
    else if (r == 0)
        r = DET_ERR_CORRUPT;
    det_sqlite_end(&call);
    return r;
}

/* Checks one event of the walk. `ret_position` is the next position; 0: the end. */
static int check_link(
    struct checking *checking, const struct subject *subject, int64_t position, uint64_t sequence,
    int64_t *ret_position)
{
    struct det_chain_hash before;
    struct sqlite_event event;
    struct sqlite_call call;
    const char *text = NULL;
    bool is_known = false;
    int r;

    *ret_position = 0;
    r = det_sqlite_event_read(checking->reader, position, subject->row->key, &call, &event);
    if (r == DET_ERR_CORRUPT)
        text = "the event is missing or cannot be read, and so are those before it";
    else if (r == 0 && event.event.sequence != sequence)
        text = "another event is at the position of this one";
    if (r < 0 || text) {
        det_sqlite_end(&call);
        return text ? report_finding(checking, subject, sequence, text) : r;
    }
    checking->chained++;
    if (sequence == subject->row->head.sequence &&
        !hashes_equal(&event.hash, &subject->row->head.hash))
        text = "the head does not match its last event";
    if (event.previous) {
        r = read_hash(checking, subject, event.previous, &before);
        is_known = r == 0;
    } else {
        text = text ? text : check_beginning(subject, sequence);
        is_known = hash_before(subject, sequence, &before);
    }
    if (!text && is_known)
        text = check_event(subject, &event, &before);
    *ret_position = event.previous;
    det_sqlite_end(&call);
    if (r < 0 && r != DET_ERR_CORRUPT)
        return r;
    return text ? report_finding(checking, subject, sequence, text) : 0;
}

static int check_chain(struct checking *checking, const struct subject *subject)
{
    const struct det_chain_head *head = &subject->row->head;
    uint64_t sequence = head->sequence;
    int64_t position = subject->last_event;
    struct det_chain_hash before;
    const char *text;
    int r = 0;

    if (!position) {
        text = check_beginning(subject, sequence + 1);
        if (!text && hash_before(subject, sequence + 1, &before) &&
            !hashes_equal(&before, &head->hash))
            text = sequence ? "the head does not match its hash"
                            : "the head does not match its hash or the start";
        return text ? report_finding(checking, subject, 0, text) : 0;
    }
    while (r == 0 && position)
        r = check_link(checking, subject, position, sequence--, &position);
    return r;
}

static int check_instance(struct checking *checking, struct subject *subject)
{
    int r = 0;

    if (det_chain_head_checksum(&subject->row->head) != subject->row->checksum)
        r = report_finding(checking, subject, 0, "the head does not match its checksum");
    if (r == 0)
        r = read_start(checking, subject);
    if (r == 0)
        r = check_snapshot(checking, subject);
    return r != 0 ? r : check_chain(checking, subject);
}

/* The first instance after `*key`: 1, or 0: none. */
static int check_next(struct checking *checking, int64_t *key)
{
    struct sqlite_call call;
    struct sqlite_head row;
    struct subject subject = { .row = &row };
    int r;

    det_sqlite_call(checking->reader, STATEMENT_INSTANCE_NEXT, &call);
    det_sqlite_number(&call, *key);
    r = det_sqlite_step(&call);
    if (r > 0) {
        r = det_sqlite_head_read(&call, &row);
        *key = row.key;
        subject.last_event = det_sqlite_get_number(&call, 15);
        if (r == 0)
            r = excuse_damage(
                checking, &subject, check_instance(checking, &subject),
                "not all of the instance can be read");
        else
            r = excuse_damage(checking, &subject, r, "the head cannot be read");
        r = r == 0 ? 1 : r;
    }
    det_sqlite_end(&call);
    return r;
}

/* Counting errors are reported where the rows are read. */
static int count_rows(
    const struct checking *checking, enum sqlite_statement statement, int64_t *ret)
{
    int r;

    r = det_sqlite_ask_number(checking->reader, statement, ret);
    return r == DET_ERR_CORRUPT ? 0 : r;
}

static int check_orphans(const struct checking *checking)
{
    static const struct {
        enum sqlite_statement statement;
        const char *name;
    } tables[] = {
        { STATEMENT_ORPHAN_EVENTS, "events" },
        { STATEMENT_ORPHAN_STARTS, "starts" },
        { STATEMENT_ORPHAN_SNAPSHOTS, "snapshots" },
        { STATEMENT_ORPHAN_TIMERS, "timers" },
        { STATEMENT_ORPHAN_OUTBOX, "effects" },
        { STATEMENT_ORPHAN_DEAD_LETTERS, "dead letters" },
        { STATEMENT_ORPHAN_DEFERRED, "deferred events" },
        { STATEMENT_ORPHAN_ANSWERS, "answers" },
    };
    int64_t found = 0, events = 0, strangers = 0;
    char text[128];
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof tables / sizeof tables[0]; i++) {
        found = 0;
        r = det_sqlite_ask_number(checking->reader, tables[i].statement, &found);
        if (i == 0)
            strangers = found;
        if (r == DET_ERR_CORRUPT) {
            (void)snprintf(text, sizeof text, "not all %s can be read", tables[i].name);
            r = report_finding(checking, NULL, 0, text);
        } else if (r == 0 && found) {
            (void)snprintf(
                text, sizeof text, "%lld %.*s belong%s to no instance", (long long)found,
                (int)strlen(tables[i].name) - (found == 1), tables[i].name, found == 1 ? "s" : "");
            r = report_finding(checking, NULL, 0, text);
        }
    }
    if (r == 0)
        r = count_rows(checking, STATEMENT_EVENT_COUNT, &events);
    if (r == 0 && events > strangers && events - strangers > checking->chained) {
        (void)snprintf(
            text, sizeof text, "%lld event%s not in the chain of the instance",
            (long long)(events - strangers - checking->chained),
            events - strangers - checking->chained == 1 ? " is" : "s are");
        r = report_finding(checking, NULL, 0, text);
    }
    return r;
}

/* Reports the rows of a statement. `what` is the kind of rows that do not match their checksums;
 * NULL: `text` is the problem. */
static int report_rows(
    const struct checking *checking, enum sqlite_statement statement, const char *what,
    const char *text)
{
    struct sqlite_call call;
    char line[512];
    int r;

    det_sqlite_call(checking->reader, statement, &call);
    while ((r = det_sqlite_step(&call)) > 0) {
        const char *which = det_sqlite_get_text(&call, 2, true);

        (void)snprintf(
            line, sizeof line, "the %s \"%s\" does not match its checksum", what ? what : "",
            which ? which : "");
        r = checking->visit(
            checking->context,
            &(struct det_store_finding){ .machine = det_sqlite_get_text(&call, 0, true),
                                         .id = det_sqlite_get_text(&call, 1, true),
                                         .text = what ? line : text });
        if (r != 0)
            break;
    }
    det_sqlite_end(&call);
    return excuse_damage(checking, NULL, r, "not all rows can be read");
}

/* Checks all rows with their own checksum, and that none is missing. */
static int check_rows(const struct checking *checking)
{
    static const struct {
        enum sqlite_statement statement;
        const char *what, *text;
    } tables[] = {
        { STATEMENT_DAMAGED_STORE, NULL, "the row of the store does not match its checksum" },
        { STATEMENT_DAMAGED_DEFINITIONS, "definition", NULL },
        { STATEMENT_DAMAGED_STARTS, NULL, "the start does not match its checksum" },
        { STATEMENT_DAMAGED_TIMERS, "timer", NULL },
        { STATEMENT_DAMAGED_OUTBOX, "effect", NULL },
        { STATEMENT_DAMAGED_DEAD_LETTERS, "dead letter", NULL },
        { STATEMENT_DAMAGED_DEFERRED, "deferred event", NULL },
        { STATEMENT_DAMAGED_ANSWERS, "answer to", NULL },
        { STATEMENT_DAMAGED_RENAMES, "rename", NULL },
        { STATEMENT_DAMAGED_LEASES, "lease", NULL },
        { STATEMENT_DAMAGED_JOBS, "job", NULL },
        { STATEMENT_DAMAGED_SCHEDULES, "schedule", NULL },
        { STATEMENT_DAMAGED_DOCUMENTS, "document", NULL },
        { STATEMENT_DAMAGED_DELTAS, "delta", NULL },
        { STATEMENT_DAMAGED_LOCKS, NULL, "its lock does not match its checksum" },
        { STATEMENT_MISCOUNTED, NULL,
          "timers, effects, deferred events or answers are missing, or are not its own" },
        { STATEMENT_MISSING_INSTANCES, NULL, "instances are missing: their keys have gaps" },
        { STATEMENT_MISSING_RENAMES, NULL, "renames are missing: their numbers have gaps" },
        { STATEMENT_MISSING_DEFINITIONS, NULL,
          "the definition of some of its instances is missing" },
        { STATEMENT_MISSING_DOCUMENTS, NULL, "documents are missing, or older than their deltas" },
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof tables / sizeof tables[0]; i++)
        r = report_rows(checking, tables[i].statement, tables[i].what, tables[i].text);
    return r;
}

/* Checks that acknowledged commits exist. The mark is read before everything else. */
static int check_mark(
    const struct sqlite_store *store, const struct checking *checking,
    const struct sqlite_mark *mark)
{
    struct sqlite_mark now = *mark;
    int64_t position = 0;
    int r;

    r = det_sqlite_ask_number(checking->reader, STATEMENT_EVENT_LAST, &position);
    if (r < 0)
        return excuse_damage(checking, NULL, r, "the last position cannot be read");
    /* A writer may have checkpointed the log of the mark meanwhile, and started another. */
    if (det_sqlite_mark_lost(mark, checking->reader->database, position) == 0 ||
        (det_sqlite_mark_find(store, &now) && now.generation != mark->generation))
        return 0;
    return report_finding(
        checking, NULL, 0,
        "the store has lost acknowledged commits: the log is damaged or missing, or an older copy "
        "is in "
        "its place");
}

static int check_all(
    struct checking *checking, void (*progress)(void *context, uint64_t done, uint64_t total))
{
    int64_t total = 0, done = 0, key = INT64_MIN;
    int r;

    r = check_file(checking);
    if (r == 0)
        r = count_rows(checking, STATEMENT_INSTANCE_COUNT, &total);
    if (r != 0)
        return r;
    while ((r = check_next(checking, &key)) == 1) {
        done++;
        if (progress)
            progress(checking->context, (uint64_t)done, (uint64_t)(total > done ? total : done));
    }
    r = excuse_damage(checking, NULL, r, "not all instances can be read");
    if (r == 0)
        r = check_rows(checking);
    return r != 0 ? r : check_orphans(checking);
}

int det_sqlite_check(
    struct det_store *base, int (*visit)(void *context, const struct det_store_finding *row),
    void (*progress)(void *context, uint64_t done, uint64_t total), void *context)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct checking checking = { .visit = visit, .context = context };
    struct sqlite_mark mark;
    bool has_mark = det_sqlite_mark_find(store, &mark);
    int r;

    r = det_sqlite_reader(store, &checking.reader);
    if (r < 0)
        return r;
    r = has_mark ? check_mark(store, &checking, &mark) : 0;
    if (r == 0)
        r = check_all(&checking, progress);
    det_sqlite_reader_end(store, checking.reader);
    return r != 0 ? r : det_documents_check(base, visit, context);
}
