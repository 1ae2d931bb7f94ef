/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_cases.c - the log: all commits in order, read in pages, each from the end of the last one.
 * The test compares it with a list of its commits. */
#include <detent/tool/store.h>

#include "conform/conform.h"

#include "os/os.h"

#define LOGGED_MAX 4096
#define SUBJECTS   6
#define STEPS      400

/* A row in the list of the test: expected, or read. */
struct entry {
    uint64_t position; /* 0: not seen yet */
    char id[16];
    uint64_t sequence, visit;
    bool is_start;
    char from[16], to[16], event[16], outcome[16], event_id[16];
    det_time at;
};

struct entries {
    struct entry rows[LOGGED_MAX];
    size_t count, stop_at;
};

static bool has_log(const struct box *box)
{
    return box->store->ops->log != NULL;
}

/* No text of this suite is longer. */
static void copy(char target[16], const char *text)
{
    assert_true(!text || strlen(text) < 16);
    memset(target, 0, 16);
    for (size_t i = 0; text && i < 15 && text[i]; i++)
        target[i] = text[i];
}

static int add_row(void *context, const struct det_store_logged *row)
{
    struct entries *entries = context;
    struct entry *entry = &entries->rows[entries->count++];

    assert_true(entries->count <= LOGGED_MAX);
    assert_string_equal(row->machine, "parcel");
    *entry = (struct entry){ .position = row->position,
                             .sequence = row->sequence,
                             .visit = row->visit,
                             .is_start = row->is_start,
                             .at = row->at };
    copy(entry->id, row->id);
    copy(entry->from, row->from);
    copy(entry->to, row->to);
    copy(entry->event, row->event);
    copy(entry->outcome, row->outcome);
    copy(entry->event_id, row->event_id);
    assert_int_equal(row->version, parcel_machine.version);
    return entries->count == entries->stop_at ? 66 : 0;
}

/* Reads page by page; returns the end. */
static uint64_t read_log(
    struct det_store *store, struct det_store_log_query query, struct entries *ret)
{
    uint64_t next = query.after, before;
    size_t count;

    ret->count = ret->stop_at = 0;
    do {
        before = next;
        count = ret->count;
        query.after = before;
        assert_int_equal(det_store_log(store, &query, add_row, ret, &next), 0);
        if (query.limit)
            assert_true(ret->count - count <= query.limit);
        if (query.budget)
            assert_true(ret->count - count <= query.budget);
        if (query.is_backward && next == 0)
            return 0;
    } while (next != before);
    return next;
}

static struct entries *all_of(struct box *box)
{
    static struct entries entries;

    read_log(box->store, (struct det_store_log_query){ 0 }, &entries);
    return &entries;
}

static void a_store_in_memory_has_no_log(void **state)
{
    struct box *box = *state;
    uint64_t next = 7;

    if (has_log(box))
        return;
    assert_int_equal(det_store_log(box->store, NULL, add_row, NULL, &next), DET_ERR_UNSUPPORTED);
    assert_int_equal(next, 7);
}

static void the_log_of_an_empty_store_is_empty(void **state)
{
    struct box *box = *state;
    struct entries entries;

    if (!has_log(box))
        return;
    assert_int_equal(read_log(box->store, (struct det_store_log_query){ 0 }, &entries), 0);
    assert_int_equal(entries.count, 0);
    assert_int_equal(
        read_log(box->store, (struct det_store_log_query){ .after = 100 }, &entries), 100);
    read_log(box->store, (struct det_store_log_query){ .is_backward = true }, &entries);
    assert_int_equal(entries.count, 0);
}

static int check_payloads(void *context, const struct det_store_logged *row)
{
    unsigned *seen = context;

    if (row->is_start)
        assert_true(row->payload && row->payload_size > 0);
    if (row->sequence == 1)
        assert_true(row->payload && row->payload_size > 0 && row->choice == 2 && row->is_timeout);
    if (row->sequence == 2) {
        assert_string_equal(row->cause, "parcel/p/1/0");
        assert_null(row->payload);
        assert_null(row->event);
    }
    assert_null(row->trace);
    ++*seen;
    return 0;
}

static void log_row_describes_the_event(void **state)
{
    struct box *box = *state;
    struct subject *subject;
    const struct entries *log;
    struct draft draft;
    uint64_t next;
    unsigned seen = 0;

    if (!has_log(box))
        return;
    subject = subject_start(box, "p");
    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_GOTO, PARCEL_PACKED)->choice = 2;
    draft.events[0].is_timeout = true;
    draft_event_id(&draft, "an-id");
    draft_stop(&draft, "enough");
    draft.events[1].cause = "parcel/p/1/0";
    assert_int_equal(draft_commit(&draft), 0);
    log = all_of(box);
    assert_int_equal(log->count, 3);
    assert_true(log->rows[0].is_start && log->rows[0].sequence == 0 && log->rows[0].visit == 1);
    assert_string_equal(log->rows[0].outcome, "start");
    assert_string_equal(log->rows[0].from, "");
    assert_string_equal(log->rows[0].to, parcel_machine.states[PARCEL_CREATED].name);
    assert_true(log->rows[0].at == subject->head.started_at);
    assert_string_equal(log->rows[1].event, parcel_machine.events[PARCEL_COUNT].name);
    assert_string_equal(log->rows[1].outcome, "goto");
    assert_string_equal(log->rows[1].from, parcel_machine.states[PARCEL_CREATED].name);
    assert_string_equal(log->rows[1].to, parcel_machine.states[PARCEL_PACKED].name);
    assert_string_equal(log->rows[1].event_id, "an-id");
    assert_string_equal(log->rows[2].outcome, "stop");
    assert_int_equal(log->rows[2].visit, subject->head.visit);
    assert_int_equal(det_store_log(box->store, NULL, check_payloads, &seen, &next), 0);
    assert_int_equal(seen, 3);
    assert_int_equal(next, log->rows[2].position);
}

static void visitor_result_ends_the_log(void **state)
{
    struct box *box = *state;
    struct entries entries = { .stop_at = 2 };
    uint64_t next = 77;

    if (!has_log(box))
        return;
    for (int i = 0; i < 4; i++) {
        char id[8];

        snprintf(id, sizeof id, "p%d", i);
        subject_start(box, id);
    }
    assert_int_equal(det_store_log(box->store, NULL, add_row, &entries, &next), 66);
    assert_int_equal(entries.count, 2);
    assert_int_equal(next, 77);
    /* It knows where it was. */
    assert_int_equal(
        read_log(
            box->store, (struct det_store_log_query){ .after = entries.rows[1].position },
            &entries),
        all_of(box)->rows[3].position);
    assert_int_equal(entries.count, 2);
    assert_string_equal(entries.rows[0].id, "p2");
}

static void log_budget_counts_filtered_rows(void **state)
{
    struct box *box = *state;
    struct det_store_log_query query = { .id = "p9", .budget = 3 };
    struct entries entries = { .count = 0 };
    uint64_t next = 0;

    if (!has_log(box))
        return;
    for (int i = 0; i < 10; i++) {
        char id[8];

        snprintf(id, sizeof id, "p%d", i);
        subject_start(box, id);
    }
    for (int i = 0; i < 3; i++) {
        query.after = next;
        assert_int_equal(det_store_log(box->store, &query, add_row, &entries, &next), 0);
        assert_int_equal(entries.count, 0);
        assert_int_equal(next, all_of(box)->rows[3 * i + 2].position);
    }
    query.after = next;
    assert_int_equal(det_store_log(box->store, &query, add_row, &entries, &next), 0);
    assert_int_equal(entries.count, 1);
}

/* The model. */

struct model_log {
    struct box *box;
    struct subject *subjects[SUBJECTS];
    struct entries expected, found;
    uint64_t highest; /* of all positions ever seen */
};

static const char *state_name(unsigned state)
{
    return parcel_machine.states[state].name;
}

static void expect(struct model_log *model, const struct subject *subject, struct entry entry)
{
    copy(entry.id, subject->id);
    assert_true(model->expected.count < LOGGED_MAX);
    model->expected.rows[model->expected.count++] = entry;
}

static void expect_start(struct model_log *model, const struct subject *subject)
{
    struct entry entry = { .is_start = true, .visit = 1, .at = subject->head.started_at };

    copy(entry.to, state_name(subject->head.state));
    copy(entry.outcome, "start");
    expect(model, subject, entry);
}

static void expect_events(struct model_log *model, const struct draft *draft)
{
    static const char *const outcomes[] = {
        [DET_OUTCOME_GOTO] = "goto",
        [DET_OUTCOME_STAY] = "stay",
        [DET_OUTCOME_STOP] = "stop",
        [DET_OUTCOME_DEFERRED] = "deferred",
        [DET_OUTCOME_DEAD_LETTER] = "dead_letter",
    };

    for (size_t i = 0; i < draft->commit.event_count; i++) {
        const struct det_store_event *event = &draft->events[i];
        struct entry entry = { .sequence = event->sequence,
                               .visit = event->visit,
                               .at = event->at };

        copy(entry.from, state_name(event->from));
        copy(entry.to, state_name(event->to));
        copy(
            entry.event,
            event->event == UINT16_MAX ? NULL : parcel_machine.events[event->event].name);
        copy(entry.outcome, outcomes[event->outcome]);
        copy(entry.event_id, event->event_id);
        expect(model, draft->subject, entry);
    }
}

static uint64_t chance(uint64_t *seed, uint64_t below)
{
    return det_test_random(seed) % below;
}

static void step_write(struct model_log *model, struct subject *subject, uint64_t *seed)
{
    struct draft draft;
    char id[16];

    draft_init(&draft, subject);
    for (uint64_t n = chance(seed, 3) + 1; n > 0; n--)
        draft_event(
            &draft, chance(seed, 2) ? PARCEL_COUNT : PARCEL_HOLD,
            chance(seed, 2) ? DET_OUTCOME_GOTO : DET_OUTCOME_STAY,
            chance(seed, 2) ? PARCEL_PACKED : PARCEL_HELD);
    if (chance(seed, 4) == 0) {
        snprintf(id, sizeof id, "e%u", (unsigned)chance(seed, 1000));
        draft_event_id(&draft, id);
    }
    if (chance(seed, 8) == 0)
        draft.commit.expected += 1000; /* it is refused, and leaves no row */
    if (draft_commit(&draft) == 0)
        expect_events(model, &draft);
}

static void prune(struct model_log *model, struct subject *subject, uint64_t up_to)
{
    struct entries *expected = &model->expected;
    struct draft draft;
    size_t kept = 0;
    uint64_t gone;

    draft_init(&draft, subject);
    draft_snapshot(&draft);
    assert_int_equal(draft_commit(&draft), 0);
    assert_int_equal(
        model->box->store->ops->prune(model->box->store, subject->instance, up_to, 0, &gone), 0);
    if (up_to == 0)
        return;
    for (size_t i = 0; i < expected->count; i++) {
        const struct entry *entry = &expected->rows[i];

        if (strcmp(entry->id, subject->id) == 0 && entry->sequence <= up_to)
            continue;
        expected->rows[kept++] = *entry;
    }
    expected->count = kept;
}

/* The newest rows were deleted before the reopening: their positions must not be assigned again. */
static void step_reopen(struct model_log *model)
{
    for (size_t i = 0; i < SUBJECTS && model->expected.count; i++) {
        struct subject *subject = model->subjects[i];
        const char *last = model->expected.rows[model->expected.count - 1].id;

        if (subject && strcmp(subject->id, last) == 0)
            prune(model, subject, subject->head.sequence);
    }
    box_reopen(model->box);
    for (size_t i = 0; i < SUBJECTS; i++) {
        struct subject *subject = model->subjects[i];

        if (!subject)
            continue;
        subject->store = model->box->store;
        subject_load(subject);
    }
}

static void step(struct model_log *model, uint64_t *seed)
{
    size_t which = chance(seed, SUBJECTS);
    char id[8];

    if (!model->subjects[which]) {
        snprintf(id, sizeof id, "p%zu", which);
        model->subjects[which] = subject_start(model->box, id);
        expect_start(model, model->subjects[which]);
    } else if (chance(seed, 10) == 0) {
        prune(
            model, model->subjects[which], chance(seed, model->subjects[which]->head.sequence + 1));
    } else {
        step_write(model, model->subjects[which], seed);
    }
}

static bool is_wanted(const struct entry *entry, const struct det_store_log_query *query)
{
    return (!query->id || strcmp(query->id, entry->id) == 0) &&
           (!query->event || strcmp(query->event, entry->event) == 0) &&
           (!query->state || strcmp(query->state, entry->to) == 0) && entry->at >= query->since &&
           (!query->until || entry->at < query->until);
}

static void assert_same(struct entry *expected, const struct entry *found)
{
    struct entry wanted = *expected;

    /* A row keeps its position. */
    if (!wanted.position)
        expected->position = wanted.position = found->position;
    assert_memory_equal(&wanted, found, sizeof wanted);
}

/* Reads with a query, and compares with the list. */
static void compare(struct model_log *model, struct det_store_log_query query)
{
    struct entries *expected = &model->expected, *found = &model->found;
    uint64_t last = query.is_backward ? UINT64_MAX : 0;
    size_t at = 0;

    read_log(model->box->store, query, found);
    for (size_t n = 0; n < expected->count; n++) {
        struct entry *entry = &expected->rows[query.is_backward ? expected->count - 1 - n : n];

        if (!is_wanted(entry, &query))
            continue;
        assert_true(at < found->count);
        assert_same(entry, &found->rows[at]);
        assert_true(query.is_backward ? entry->position < last : entry->position > last);
        last = entry->position;
        at++;
    }
    assert_int_equal(at, found->count);
}

/* New rows have higher positions than all earlier ones. */
static void check_positions(struct model_log *model, size_t known)
{
    struct entries *expected = &model->expected;
    uint64_t before = model->highest;

    for (size_t i = 0; i < expected->count; i++) {
        if (i >= known)
            assert_true(expected->rows[i].position > before);
        if (expected->rows[i].position > model->highest)
            model->highest = expected->rows[i].position;
    }
}

static void inspect_all(struct model_log *model, uint64_t *seed)
{
    static const char *const ids[] = { NULL, NULL, "p0", "p3", "nobody" };
    static const char *const states[] = { NULL, NULL, "is_packed", "held", "created" };
    struct entries *expected = &model->expected;
    size_t known = 0;
    struct det_store_log_query query = {
        .limit = chance(seed, 3) * 7,
        .budget = chance(seed, 2) * 11,
        .id = ids[chance(seed, 5)],
        .state = states[chance(seed, 5)],
        .event = chance(seed, 3) ? NULL : "count",
        .machine = chance(seed, 2) ? "parcel" : NULL,
        .is_backward = chance(seed, 2),
    };

    while (known < expected->count && expected->rows[known].position)
        known++;
    compare(model, (struct det_store_log_query){ 0 });
    check_positions(model, known);
    if (expected->count && chance(seed, 2))
        query.since = expected->rows[chance(seed, expected->count)].at;
    if (expected->count && chance(seed, 4) == 0)
        query.until = expected->rows[chance(seed, expected->count)].at;
    compare(model, query);
}

static void the_log_is_what_was_committed_in_its_order(void **state)
{
    struct model_log *model = calloc(1, sizeof *model);
    uint64_t seed = 11;
    struct box *box = *state;

    assert_non_null(model);
    model->box = box;
    for (int i = 0; has_log(box) && i < STEPS; i++) {
        step(model, &seed);
        if (i % 10 == 9)
            inspect_all(model, &seed);
        if (i % 50 == 49)
            step_reopen(model);
    }
    free(model);
}

static const struct CMUnitTest logs[] = {
    CASE(a_store_in_memory_has_no_log),    CASE(the_log_of_an_empty_store_is_empty),
    CASE(log_row_describes_the_event),     CASE(visitor_result_ends_the_log),
    CASE(log_budget_counts_filtered_rows), CASE(the_log_is_what_was_committed_in_its_order),
};
const struct group log_cases = GROUP_OF(logs);
