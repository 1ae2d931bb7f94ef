/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* commit_test.c - commits on PostgreSQL: what is written is loaded, each condition decides
 * for its own commit, and a batch is as good as its commits one after the other. */
/* test: sanitized */
#include "store/postgres/postgres_test.h"

static void committed_data_is_loaded(void **state)
{
    struct pad *pad = desk_open();
    struct found found;

    (void)state;
    pad->data = 7;
    begin(pad);
    add_event(pad, SMALL);
    pad->value.as.small = 3;
    pad->commit.data = &pad->data;
    assert_int_equal(commit(pad), 0);
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_int_equal(found.loaded.head.sequence, 1);
    assert_int_equal(found.loaded.head.visit, 2);
    assert_int_equal(found.loaded.head.state, 1);
    assert_int_equal(found.loaded.head.transition_count, 1);
    assert_int_equal(found.loaded.head.started_at, 100);
    assert_int_equal(found.loaded.head.last_transition_at, 101);
    assert_false(found.loaded.head.is_stopped);
    assert_int_equal(found.data, 7);
    assert_int_equal(found.loaded.history_count, 1);
    assert_int_equal(found.loaded.history[0], 0);
    assert_int_equal(look_up(pad, "q", &found), DET_ERR_NOT_FOUND);
    desk_close(pad);
}

static void an_event_goes_through_with_all_that_it_carries(void **state)
{
    struct pad *pad = desk_open();
    struct rows rows = { 0 };

    (void)state;
    for (uint64_t i = 1; i <= 30; i++) {
        char id[32], cause[32];

        snprintf(id, sizeof id, "id-%d", (int)i);
        snprintf(cause, sizeof cause, "pad/p/%d/0", (int)i);
        begin(pad);
        memset(&pad->value, 0, sizeof pad->value);
        add_event(pad, (unsigned)(i * 7 % 3));
        if (pad->value.kind == SMALL)
            pad->value.as.small = i * 3;
        if (pad->value.kind == TEXT)
            snprintf(pad->value.as.note.text, 100, "text %d", (int)i);
        if (i % 4 == 0)
            pad->event.event_id = id;
        if (i % 5 == 0)
            pad->event.cause = cause;
        assert_int_equal(commit(pad), 0);
    }
    assert_int_equal(walk(pad, 0, &rows), 0);
    assert_int_equal(rows.count, 30);
    assert_int_equal(rows.ids, 7);
    assert_int_equal(rows.causes, 6);
    assert_int_equal(walk(pad, 10, &rows), 0);
    assert_int_equal(rows.first, 11);
    rows.stop_at = 20;
    assert_int_equal(walk(pad, 0, &rows), 99);
    assert_int_equal(rows.last, 20);
    desk_close(pad);
}

static void many_events_are_walked_page_by_page(void **state)
{
    struct pad *pad = desk_open();
    struct det_store_event events[250];
    struct rows rows = { 0 };

    (void)state;
    memset(&pad->value, 0, sizeof pad->value);
    for (int batch = 0; batch < 10; batch++) {
        begin(pad);
        for (int i = 0; i < 250; i++) {
            add_event(pad, BARE);
            events[i] = pad->event;
        }
        pad->commit.events = events;
        pad->commit.event_count = 250;
        assert_int_equal(commit(pad), 0);
    }
    assert_int_equal(walk(pad, 0, &rows), 0);
    assert_int_equal(rows.count, 2500);
    desk_close(pad);
}

static void a_sequence_that_has_moved_is_a_conflict(void **state)
{
    char *url = det_test_postgres_url(server, NULL);
    struct pad *pad = desk_at(url, NULL), *other = neighbour(pad, url);
    struct found found;

    (void)state;
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_int_equal(send(other, BARE, NULL), DET_ERR_CONFLICT);
    assert_int_equal(other->commit.actual, 2);
    /* A handle with another sequence than the runtime expects: no statement is sent. */
    begin(pad);
    add_event(pad, BARE);
    pad->commit.expected = 1;
    assert_int_equal(commit(pad), DET_ERR_CONFLICT);
    assert_int_equal(pad->commit.actual, 2);
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_int_equal(found.loaded.head.sequence, 2);
    desk_close(other);
    desk_close(pad);
    free(url);
}

static void an_instance_is_started_once(void **state)
{
    char *url = det_test_postgres_url(server, NULL);
    struct pad *pad = desk_at(url, NULL), *other = neighbour(pad, url);
    struct det_store_instance *first = other->instance;

    (void)state;
    assert_int_equal(start(other, "p"), DET_ERR_EXISTS);
    assert_ptr_equal(other->instance, first);
    desk_close(other);
    desk_close(pad);
    free(url);
}

static void a_known_event_id_changes_nothing_and_has_its_answer(void **state)
{
    struct pad *pad = desk_open();
    struct det_store_answer answer;
    struct found found;

    (void)state;
    assert_int_equal(send(pad, BARE, "pay-1"), 0);
    assert_int_equal(send(pad, BARE, "pay-1"), DET_ERR_EXISTS);
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_int_equal(found.loaded.head.sequence, 1);
    assert_int_equal(pad->store->ops->answer(pad->store, pad->instance, "pay-1", &answer), 0);
    assert_int_equal(answer.outcome, DET_OUTCOME_GOTO);
    assert_int_equal(answer.state, 1);
    assert_int_equal(answer.sequence, 1);
    assert_int_equal(answer.visit, 2);
    assert_int_equal(
        pad->store->ops->answer(pad->store, pad->instance, "pay-2", &answer), DET_ERR_NOT_FOUND);
    desk_close(pad);
}

static void a_stop_keeps_its_reason(void **state)
{
    struct pad *pad = desk_open();
    struct found found;

    (void)state;
    begin(pad);
    add_event(pad, BARE);
    pad->event.event = UINT16_MAX;
    pad->event.value = NULL;
    pad->event.outcome = DET_OUTCOME_STOP;
    pad->head.is_stopped = true;
    pad->commit.reason = "that is enough";
    assert_int_equal(commit(pad), 0);
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_true(found.loaded.head.is_stopped);
    assert_string_equal(found.loaded.reason, "that is enough");
    /* Another commit does not change it, and its checksum matches. */
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_string_equal(found.loaded.reason, "that is enough");
    desk_close(pad);
}

static void a_snapshot_is_replaced_only_by_a_newer_one(void **state)
{
    char *url = det_test_postgres_url(server, NULL);
    struct pad *pad = desk_at(url, NULL), *other = neighbour(pad, url);
    static const uint16_t history[] = { 1, 0 };
    struct det_store_snapshot snapshot = { 0 };
    uint64_t data = 0;

    (void)state;
    snapshot.loaded.data = &data;
    assert_int_equal(
        pad->store->ops->snapshot(pad->store, pad->instance, &snapshot), DET_ERR_NOT_FOUND);
    pad->data = 77;
    begin(pad);
    add_event(pad, BARE);
    pad->commit.data = &pad->data;
    pad->commit.is_snapshot = true;
    pad->commit.history = history;
    pad->commit.history_count = 2;
    assert_int_equal(commit(pad), 0);
    /* Of an older head. */
    begin(other);
    other->commit.is_snapshot = true;
    assert_int_equal(commit(other), DET_ERR_CONFLICT);
    /* The same commit again: the instance exists. */
    begin(pad);
    pad->commit.is_snapshot = true;
    assert_int_equal(commit(pad), 0);
    assert_int_equal(pad->store->ops->snapshot(pad->store, pad->instance, &snapshot), 0);
    assert_int_equal(snapshot.loaded.head.sequence, 1);
    assert_int_equal(snapshot.loaded.head.state, 1);
    assert_int_equal(snapshot.loaded.history_count, 2);
    assert_int_equal(snapshot.loaded.history[0], 1);
    assert_int_equal(data, 77);
    assert_true(snapshot.taken_at > 0);
    desk_close(other);
    desk_close(pad);
    free(url);
}

/* A batch of commits of all kinds, of which some fail. */
static void each_commit_of_a_batch_has_its_own_result(void **state)
{
    enum { COUNT = 6 };
    char *url = det_test_postgres_url(server, NULL);
    struct pad *first = desk_at(url, NULL), *pads[COUNT];
    struct det_store_commit *commits[COUNT];
    struct det_store_timer_change take = timer_change(DET_STORE_TAKE, 0, 1000, NULL);
    static const int expected[COUNT] = { 0, DET_ERR_CONFLICT, 0, DET_ERR_NOT_FOUND, DET_ERR_EXISTS,
                                         0 };
    char id[64];

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        struct pad *pad = calloc(1, sizeof *pad);

        assert_non_null(pad);
        pads[i] = pad;
        pad->machine = first->machine;
        pad->store = first->store;
        snprintf(id, sizeof id, "b%d", i);
        assert_int_equal(start(pad, id), 0);
        begin(pad);
        add_event(pad, BARE);
        commits[i] = &pad->commit;
    }
    free(sql(first->store, "UPDATE @instances SET sequence = 5 WHERE id = 'b1'"));
    pads[3]->commit.timers = &take;
    pads[3]->commit.timer_count = 1;
    begin(pads[4]);
    pads[4]->commit.id = "b0";
    pads[4]->commit.is_new = true;
    pads[4]->commit.data = &pads[4]->data;
    pads[5]->commit.event_id = "once";
    assert_int_equal(first->store->ops->commit(first->store, commits, COUNT), 0);
    for (int i = 0; i < COUNT; i++) {
        struct found found;

        assert_int_equal(commits[i]->result, expected[i]);
        snprintf(id, sizeof id, "b%d", i);
        if (i != 1) {
            assert_int_equal(look_up(first, id, &found), 0);
            assert_int_equal(found.loaded.head.sequence, expected[i] == 0);
        }
    }
    assert_int_equal(commits[1]->actual, 5);
    for (int i = 0; i < COUNT; i++) {
        first->store->ops->release(first->store, pads[i]->instance);
        free(pads[i]);
    }
    desk_close(first);
    free(url);
}

/* A commit that the server refuses does not affect the others. */
static void a_poisoned_commit_fails_alone(void **state)
{
    struct pad *pad = desk_open(), other = { 0 };
    struct det_store_commit *commits[2];
    struct found found;

    (void)state;
    other.machine = pad->machine;
    other.store = pad->store;
    assert_int_equal(start(&other, "q"), 0);
    begin(pad);
    add_event(pad, BARE);
    begin(&other);
    add_event(&other, BARE);
    other.commit.reason = "\xff\xfe is not UTF-8";
    commits[0] = &pad->commit;
    commits[1] = &other.commit;
    assert_int_equal(pad->store->ops->commit(pad->store, commits, 2), 0);
    assert_int_equal(commits[0]->result, 0);
    assert_int_equal(commits[1]->result, DET_ERR_INVALID);
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_int_equal(found.loaded.head.sequence, 1);
    assert_int_equal(look_up(pad, "q", &found), 0);
    assert_int_equal(found.loaded.head.sequence, 0);
    pad->store->ops->release(pad->store, other.instance);
    desk_close(pad);
}

static void damage_is_seen_when_loading(void **state)
{
    struct pad *pad = desk_open();
    struct found found;

    (void)state;
    assert_int_equal(send(pad, BARE, NULL), 0);
    free(sql(pad->store, "UPDATE @instances SET visit = 99"));
    assert_int_equal(look_up(pad, "p", &found), DET_ERR_CORRUPT);
    desk_close(pad);
}

/* One event with all that a commit can carry. */
static int send_all(struct pad *pad)
{
    static const uint16_t history[] = { 0, 1 };
    struct pad_event value = { .kind = TEXT };
    const struct det_store_timer_change timer = {
        DET_STORE_SET, { .event = TEXT, .visit = 1, .due = 1000, .value = &value }
    };
    struct det_store_effect_change effect = { DET_STORE_SET,
                                              { .sequence = pad->head.sequence + 1,
                                                .visit = 1,
                                                .next = 1000,
                                                .data = &pad->data,
                                                .event = &value } };
    struct det_store_deferred_change deferred = { DET_STORE_SET,
                                                  { pad->head.sequence + 1, &value } };

    memset(value.as.note.text, 'x', 99);
    pad->value = value;
    begin(pad);
    add_event(pad, TEXT);
    pad->commit.data = &pad->data;
    pad->commit.reason = "because";
    pad->commit.timers = &timer;
    pad->commit.effects = &effect;
    pad->commit.deferred = &deferred;
    pad->commit.timer_count = pad->commit.effect_count = pad->commit.deferred_count = 1;
    pad->commit.is_snapshot = true;
    pad->commit.history = history;
    pad->commit.history_count = 2;
    return commit(pad);
}

/* Each allocation fails once. */
static int scenario(struct det_test_memory *memory, void *argument)
{
    static unsigned runs;
    const char *url = argument;
    struct pad pad = { 0 };
    const struct det_store_options options = { .allocator = &memory->allocator, .connections = 2 };
    struct det_store_timer_change set = timer_change(DET_STORE_SET, 0, 1000, NULL);
    struct found found;
    struct rows rows = { 0 };
    char id[16];
    int r;

    r = det_store_open_with(url, &options, &pad.store, NULL);
    if (r < 0)
        return r;
    pad.machine = pad_machine(1);
    snprintf(id, sizeof id, "m%u", ++runs);
    r = pad.store->ops->serve(pad.store, pad.machine, NULL);
    if (r == 0)
        r = start(&pad, id);
    if (r == 0)
        r = send(&pad, BARE, NULL);
    if (r == 0)
        r = with_timers(&pad, &set, 1);
    if (r == 0)
        r = look_up(&pad, id, &found);
    if (r == 0)
        r = walk(&pad, 0, &rows);
    if (r == 0)
        r = send_all(&pad);
    if (pad.instance)
        pad.store->ops->release(pad.store, pad.instance);
    det_store_close(pad.store);
    det_machine_close(pad.machine);
    return r;
}

static void failed_allocation_leaves_no_partial_change(void **state)
{
    char *url = det_test_postgres_url(server, NULL);

    (void)state;
    desk_close(desk_at(url, NULL));
    det_test_each_failure(scenario, url);
    free(url);
}

enum alone { ALONE_EFFECT, ALONE_DEFERRED, ALONE_SNAPSHOT, ALONE_COUNT };

/* A commit of nothing else, with all the text that there can be. */
static int commit_alone(struct pad *pad, enum alone alone)
{
    struct pad_event value = { .kind = TEXT };
    const struct det_store_effect_change effect = {
        DET_STORE_SET, { .visit = 1, .next = 1000, .data = &pad->data, .event = &value }
    };
    const struct det_store_deferred_change deferred = { DET_STORE_SET, { 1, &value } };
    uint16_t history[DET_HISTORY_MAX] = { 0 };

    memset(value.as.note.text, 'x', 99);
    begin(pad);
    pad->commit.effects = &effect;
    pad->commit.effect_count = alone == ALONE_EFFECT;
    pad->commit.deferred = &deferred;
    pad->commit.deferred_count = alone == ALONE_DEFERRED;
    pad->commit.is_snapshot = alone == ALONE_SNAPSHOT;
    pad->commit.history = history;
    pad->commit.history_count = DET_HISTORY_MAX;
    return commit(pad);
}

static size_t count_all(struct pad *pad, const char *id)
{
    uint64_t data;
    struct det_store_snapshot snapshot = { .loaded.data = &data };
    struct found found;
    int r;

    assert_int_equal(look_up(pad, id, &found), 0);
    r = pad->store->ops->snapshot(pad->store, pad->instance, &snapshot);
    assert_true(r == 0 || r == DET_ERR_NOT_FOUND);
    return found.effect_count + found.deferred_count + (r == 0);
}

/* Commits to a new store, whose buffers are empty; returns true if a call was refused. */
static bool commit_lacking(const char *url, enum alone alone, unsigned lacking)
{
    struct det_test_memory memory;
    const struct det_store_options options = { .allocator = &memory.allocator, .connections = 2 };
    struct pad pad = { 0 };
    char id[16];
    int r;

    det_test_memory_init(&memory);
    pad.machine = pad_machine(1);
    pad.store = store_at(url, &options);
    assert_int_equal(pad.store->ops->serve(pad.store, pad.machine, NULL), 0);
    snprintf(id, sizeof id, "a%u-%u", alone, lacking);
    assert_int_equal(start(&pad, id), 0);
    memory.fail_at = memory.calls + lacking;
    r = commit_alone(&pad, alone);
    memory.fail_at = 0;
    assert_int_equal(r, memory.failed ? DET_ERR_NO_MEMORY : 0);
    assert_int_equal(count_all(&pad, id), r == 0);
    if (r < 0)
        assert_int_equal(commit_alone(&pad, alone), 0);
    assert_int_equal(count_all(&pad, id), 1);
    pad.store->ops->release(pad.store, pad.instance);
    det_store_close(pad.store);
    det_machine_close(pad.machine);
    det_test_memory_deinit(&memory);
    return r < 0;
}

static void commit_without_memory_is_refused_whatever_it_contains(void **state)
{
    char *url = det_test_postgres_url(server, NULL);
    unsigned refused = 0;

    (void)state;
    for (unsigned alone = 0; alone < ALONE_COUNT; alone++) {
        for (unsigned i = 1; commit_lacking(url, (enum alone)alone, i); i++)
            refused++;
    }
    printf("             %u commits refused\n", refused);
    assert_true(refused >= ALONE_COUNT);
    free(url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(committed_data_is_loaded),
        cmocka_unit_test(an_event_goes_through_with_all_that_it_carries),
        cmocka_unit_test(many_events_are_walked_page_by_page),
        cmocka_unit_test(a_sequence_that_has_moved_is_a_conflict),
        cmocka_unit_test(an_instance_is_started_once),
        cmocka_unit_test(a_known_event_id_changes_nothing_and_has_its_answer),
        cmocka_unit_test(a_stop_keeps_its_reason),
        cmocka_unit_test(a_snapshot_is_replaced_only_by_a_newer_one),
        cmocka_unit_test(each_commit_of_a_batch_has_its_own_result),
        cmocka_unit_test(a_poisoned_commit_fails_alone),
        cmocka_unit_test(damage_is_seen_when_loading),
        cmocka_unit_test(failed_allocation_leaves_no_partial_change),
        cmocka_unit_test(commit_without_memory_is_refused_whatever_it_contains),
    };

    return cmocka_run_group_tests(tests, open_server, close_server);
}
