/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* keep_test.c - manual snapshots, snapshots by policy, pruning, queries, and retried dead
 * letters. */
#include "runtime/faulty_test.h"
#include "runtime/runtime.h"

/* The sequence of the snapshot; 0: no snapshot. */
static uint64_t snapshot_of(struct fixture *f, const char *id, struct det_store_snapshot *ret)
{
    static const struct det_store_rows none = { 0 };
    const struct det_store_ops *ops = f->store->ops;
    struct order_data data;
    struct det_store_loaded loaded = { .data = &data };
    int r;

    ret->loaded.data = &data;
    assert_int_equal(ops->load(f->store, f->order, id, &none, &loaded), 0);
    r = ops->snapshot(f->store, loaded.instance, ret);
    ops->release(f->store, loaded.instance);
    ret->loaded.data = NULL;
    if (r == DET_ERR_NOT_FOUND)
        return 0;
    assert_int_equal(r, 0);
    return ret->loaded.head.sequence;
}

static uint64_t snapshot_at(struct fixture *f, const char *id)
{
    struct det_store_snapshot snapshot;

    return snapshot_of(f, id, &snapshot);
}

static int first_event(void *context, const struct det_event_record *row)
{
    uint64_t *first = context;

    *first = row->sequence;
    return 1;
}

/* The sequence of the first event that is kept; 0: none is. */
static uint64_t first_kept(struct fixture *f, const char *id)
{
    uint64_t first = 0;
    int r = det_runtime_events(f->runtime, f->order, id, 0, first_event, &first, NULL);

    assert_int_equal(r, first > 0);
    return first;
}

static void ping(struct fixture *f, const char *id, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        assert_int_equal(send_kind(f, id, PING), 0);
}

static int snapshot(struct fixture *f, const char *id)
{
    return det_runtime_snapshot(f->runtime, f->order, id, &f->error);
}

static void a_manual_snapshot_is_the_head(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct det_store_snapshot taken;

    (void)state;
    assert_int_equal(start(f, "o-1"), 0);
    ping(f, "o-1", 2);
    assert_int_equal(send_kind(f, "o-1", TOUCH), 0);
    assert_int_equal(snapshot_at(f, "o-1"), 0);
    advance(f, DET_SECOND);
    assert_int_equal(snapshot(f, "o-1"), 0);
    assert_int_equal(snapshot_of(f, "o-1", &taken), 3);
    assert_int_equal(taken.loaded.head.state, PENDING);
    assert_int_equal(taken.loaded.head.visit, get(f, "o-1").visit);
    assert_int_equal(taken.loaded.head.transition_count, 1);
    assert_int_equal(taken.loaded.history_count, 1);
    assert_int_equal(taken.loaded.history[0], PENDING);
    assert_true(taken.taken_at >= taken.loaded.head.last_transition_at + DET_SECOND);
    assert_int_equal(get(f, "o-1").sequence, 3);
    fixture_close(f);
}

static void snapshot_of_a_missing_instance_is_not_found(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    (void)state;
    assert_int_equal(snapshot(f, "o-1"), DET_ERR_NOT_FOUND);
    assert_non_null(strstr(f->error.text, "start it first"));
    assert_int_equal(
        det_runtime_prune(f->runtime, f->order, "o-1", 5, NULL, &f->error), DET_ERR_NOT_FOUND);
    assert_int_equal(
        det_runtime_retry(f->runtime, f->order, "o-1", "k", &f->error), DET_ERR_NOT_FOUND);
    fixture_close(f);
}

static void every_n_events_the_head_becomes_the_snapshot(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ .snapshots = { .every = 10 } });

    (void)state;
    assert_int_equal(start(f, "o-1"), 0);
    ping(f, "o-1", 9);
    assert_int_equal(snapshot_at(f, "o-1"), 0);
    ping(f, "o-1", 16);
    assert_int_equal(snapshot_at(f, "o-1"), 20);
    assert_int_equal(first_kept(f, "o-1"), 1);
    fixture_close(f);
}

static void manual_snapshot_does_not_shift_the_policy(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ .snapshots = { .every = 10 } });

    (void)state;
    assert_int_equal(start(f, "o-1"), 0);
    ping(f, "o-1", 9);
    assert_int_equal(snapshot(f, "o-1"), 0);
    assert_int_equal(snapshot_at(f, "o-1"), 9);
    ping(f, "o-1", 1);
    assert_int_equal(snapshot_at(f, "o-1"), 10);
    fixture_close(f);
}

static void batch_over_the_interval_snapshots_once_at_its_end(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ .snapshots = { .every = 10 } });
    struct order_event event = { .kind = PING };
    const void *events[15];

    (void)state;
    for (size_t i = 0; i < 15; i++)
        events[i] = &event;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(
        det_runtime_send_all(f->runtime, f->order, "o-1", events, 15, NULL, &f->sent, NULL), 0);
    assert_int_equal(snapshot_at(f, "o-1"), 15);
    fixture_close(f);
}

static void first_event_of_each_span_takes_a_snapshot(void **state)
{
    struct fixture *f =
        fixture_open((struct det_runtime_options){ .snapshots = { .span = DET_MINUTE } });
    uint64_t first;

    (void)state;
    assert_int_equal(start(f, "o-1"), 0);
    advance(f, DET_MINUTE);
    assert_int_equal(send_kind(f, "o-1", TOUCH), 0);
    first = snapshot_at(f, "o-1");
    assert_int_equal(first, 1);
    assert_int_equal(send_kind(f, "o-1", TOUCH), 0);
    assert_int_equal(snapshot_at(f, "o-1"), first);
    advance(f, DET_MINUTE);
    assert_int_equal(send_kind(f, "o-1", TOUCH), 0);
    assert_int_equal(snapshot_at(f, "o-1"), 3);
    fixture_close(f);
}

static void events_without_a_transition_count_for_the_snapshot_span(void **state)
{
    struct fixture *f =
        fixture_open((struct det_runtime_options){ .snapshots = { .span = DET_MINUTE } });

    (void)state;
    assert_int_equal(start(f, "o-1"), 0);
    advance(f, DET_MINUTE);
    ping(f, "o-1", 5);
    assert_int_equal(snapshot_at(f, "o-1"), 1);
    advance(f, DET_MINUTE);
    ping(f, "o-1", 2);
    assert_int_equal(snapshot_at(f, "o-1"), 6);
    fixture_close(f);
}

static void final_states_and_stops_take_a_snapshot(void **state)
{
    struct fixture *f =
        fixture_open((struct det_runtime_options){ .snapshots = { .on_final = true } });

    (void)state;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(start(f, "o-2"), 0);
    ping(f, "o-1", 3);
    assert_int_equal(snapshot_at(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", CANCEL), 0);
    assert_int_equal(snapshot_at(f, "o-1"), 4);
    assert_int_equal(
        det_runtime_cancel(f->runtime, f->order, "o-2", "enough", NULL, NULL, NULL), 0);
    assert_int_equal(snapshot_at(f, "o-2"), 1);
    fixture_close(f);
}

static void only_what_a_snapshot_covers_is_pruned(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    uint64_t count = 99;

    (void)state;
    assert_int_equal(start(f, "o-1"), 0);
    ping(f, "o-1", 10);
    assert_int_equal(det_runtime_prune(f->runtime, f->order, "o-1", 8, &count, &f->error), 0);
    assert_int_equal(count, 0);
    assert_int_equal(snapshot(f, "o-1"), 0);
    ping(f, "o-1", 3);
    assert_int_equal(det_runtime_prune(f->runtime, f->order, "o-1", 8, &count, &f->error), 0);
    assert_int_equal(count, 8);
    assert_int_equal(first_kept(f, "o-1"), 9);
    assert_int_equal(det_runtime_prune(f->runtime, f->order, "o-1", 99, NULL, &f->error), 0);
    assert_int_equal(first_kept(f, "o-1"), 11);
    fixture_close(f);
}

/* The sequence does not depend on the events that are kept. */
static void a_pruned_instance_accepts_events_after_a_reload(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    (void)state;
    assert_int_equal(start(f, "o-1"), 0);
    ping(f, "o-1", 10);
    assert_int_equal(snapshot(f, "o-1"), 0);
    assert_int_equal(det_runtime_prune(f->runtime, f->order, "o-1", 10, NULL, &f->error), 0);
    assert_int_equal(first_kept(f, "o-1"), 0);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(get(f, "o-1").sequence, 10);
    ping(f, "o-1", 1);
    assert_int_equal(f->sent.sequence, 11);
    assert_int_equal(first_kept(f, "o-1"), 11);
    fixture_close(f);
}

static void the_policy_prunes_after_its_snapshots(void **state)
{
    struct fixture *f = fixture_open(
        (struct det_runtime_options){ .snapshots = { .every = 10, .events_kept = 3 } });

    (void)state;
    assert_int_equal(start(f, "o-1"), 0);
    ping(f, "o-1", 25);
    assert_int_equal(snapshot_at(f, "o-1"), 20);
    assert_int_equal(first_kept(f, "o-1"), 18);
    fixture_close(f);
}

/* A snapshot that fails leaves the instance as it was, and usable. */
static void a_snapshot_that_fails_is_reported_and_changes_nothing(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct faulty faulty;

    (void)state;
    faulty_wrap(&faulty, f, false);
    assert_int_equal(start(f, "o-1"), 0);
    faulty_set(&faulty, FAULT_BEFORE, DET_ERR_IO, 0);
    assert_int_equal(snapshot(f, "o-1"), DET_ERR_IO);
    assert_non_null(strstr(f->error.text, "no snapshot"));
    faulty_set(&faulty, FAULT_BEFORE, DET_ERR_NO_SPACE, 0);
    assert_int_equal(snapshot(f, "o-1"), DET_ERR_NO_SPACE);
    ping(f, "o-1", 1);
    fixture_close(f);
}

struct ids {
    char text[128];
    struct det_listed_instance last;
};

static int note_id(void *context, const struct det_listed_instance *row)
{
    struct ids *ids = context;
    size_t length = strlen(ids->text);

    snprintf(ids->text + length, sizeof ids->text - length, "%s ", row->instance);
    ids->last = *row;
    return 0;
}

static struct ids query(struct fixture *f, struct det_instance_query query)
{
    struct ids ids = { 0 };

    assert_int_equal(det_runtime_query(f->runtime, f->order, &query, note_id, &ids, NULL), 0);
    return ids;
}

static void instances_are_found_by_state_age_and_page(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    char id[8];
    det_time between;

    (void)state;
    for (int i = 5; i > 0; i--) {
        snprintf(id, sizeof id, "o-%d", i);
        assert_int_equal(start(f, id), 0);
    }
    advance(f, DET_SECOND);
    between = f->store->ops->now(f->store);
    advance(f, DET_SECOND);
    assert_int_equal(send_kind(f, "o-2", CANCEL), 0);
    assert_int_equal(det_runtime_cancel(f->runtime, f->order, "o-4", NULL, NULL, NULL, NULL), 0);
    assert_string_equal(query(f, (struct det_instance_query){ 0 }).text, "o-1 o-2 o-3 o-4 o-5 ");
    assert_string_equal(query(f, (struct det_instance_query){ .limit = 2 }).text, "o-1 o-2 ");
    assert_string_equal(
        query(f, (struct det_instance_query){ .after = "o-2", .limit = 2 }).text, "o-3 o-4 ");
    assert_string_equal(
        query(f, (struct det_instance_query){ .has_state = true, .state = CANCELLED }).text,
        "o-2 ");
    assert_string_equal(query(f, (struct det_instance_query){ .only_stopped = true }).text, "o-4 ");
    assert_string_equal(
        query(f, (struct det_instance_query){ .only_running = true }).text, "o-1 o-2 o-3 o-5 ");
    assert_string_equal(
        query(f, (struct det_instance_query){ .moved_before = between, .only_running = true }).text,
        "o-1 o-3 o-5 ");
    assert_int_equal(query(f, (struct det_instance_query){ .limit = 2 }).last.sequence, 1);
    fixture_close(f);
}

static void a_query_that_makes_no_sense_is_refused(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct ids ids = { 0 };

    (void)state;
    assert_int_equal(
        det_runtime_query(
            f->runtime, f->order, &(struct det_instance_query){ .has_state = true, .state = 99 },
            note_id, &ids, NULL),
        DET_ERR_INVALID);
    assert_int_equal(
        det_runtime_query(
            f->runtime, f->order,
            &(struct det_instance_query){ .only_running = true, .only_stopped = true }, note_id,
            &ids, NULL),
        DET_ERR_INVALID);
    assert_int_equal(det_runtime_query(f->runtime, f->order, NULL, note_id, &ids, NULL), 0);
    fixture_close(f);
}

/* An order whose payment failed until it was a dead letter. */
static struct fixture *with_dead_letter(struct faulty *faulty)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    faulty_wrap(faulty, f, false);
    f->control.effect_failures = 8;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    advance(f, 2 * DET_MINUTE);
    assert_int_equal(get(f, "o-1").state, CHARGING);
    assert_int_equal(counts(f).effects_dead, 1);
    assert_int_equal(get(f, "o-1").effects_pending, 0);
    f->control.effect_failures = 0;
    return f;
}

static int retry(struct fixture *f, const char *key)
{
    return det_runtime_retry(f->runtime, f->order, "o-1", key, &f->error);
}

static void a_dead_letter_is_tried_again_with_the_same_key(void **state)
{
    struct faulty faulty;
    struct fixture *f = with_dead_letter(&faulty);

    (void)state;
    assert_int_equal(retry(f, "order/o-1/1/0"), 0);
    settle(f);
    assert_int_equal(get(f, "o-1").state, PAID);
    assert_key(f->control.key, "order/o-1/1/0");
    assert_int_equal(f->control.attempt, 1);
    assert_int_equal(counts(f).effects_done, 1);
    fixture_close(f);
}

static void ambiguous_dead_letter_key_is_refused(void **state)
{
    struct faulty faulty;
    struct fixture *f = with_dead_letter(&faulty);

    (void)state;
    assert_int_equal(retry(f, "0"), 0);
    settle(f);
    fixture_close(f);
    f = with_dead_letter(&faulty);
    for (int i = 0; i < 100 && get(f, "o-1").state != PENDING; i++)
        advance(f, DET_MINUTE);
    assert_int_equal(get(f, "o-1").state, PENDING);
    f->control.effect_failures = 8;
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    advance(f, 2 * DET_MINUTE);
    assert_int_equal(counts(f).effects_dead, 2);
    f->control.effect_failures = 0;
    assert_int_equal(retry(f, "0"), DET_ERR_INVALID);
    assert_non_null(strstr(f->error.text, "order/o-1/1/0"));
    assert_non_null(strstr(f->error.text, "order/o-1/3/0"));
    assert_int_equal(retry(f, "3/0"), 0);
    settle(f);
    assert_int_equal(get(f, "o-1").state, PAID);
    fixture_close(f);
}

static void retry_of_a_live_effect_is_not_found(void **state)
{
    struct faulty faulty;
    struct fixture *f = with_dead_letter(&faulty);

    (void)state;
    assert_int_equal(retry(f, "order/o-1/9/0"), DET_ERR_NOT_FOUND);
    assert_non_null(strstr(f->error.text, "order/o-1/9/0"));
    f->control.effect_failures = 99;
    assert_int_equal(retry(f, "order/o-1/1/0"), 0);
    assert_int_equal(retry(f, "order/o-1/1/0"), DET_ERR_NOT_FOUND);
    /* One that never asked for an effect. */
    assert_int_equal(start(f, "o-2"), 0);
    assert_int_equal(
        det_runtime_retry(f->runtime, f->order, "o-2", "order/o-2/1/0", &f->error),
        DET_ERR_NOT_FOUND);
    fixture_close(f);
}

/* The place for the effect is the first one for which the heap has to grow. */
static void a_retry_without_memory_does_not_happen(void **state)
{
    struct det_test_memory memory;
    struct faulty faulty;
    struct fixture *f = with_dead_letter(&faulty);
    const struct det_shard *shard;
    char id[16];

    (void)state;
    det_test_memory_init(&memory);
    fixture_reopen(
        f, (struct det_runtime_options){
               .allocator = &memory.allocator, .is_passive = true, .shards = 1 });
    assert_int_equal(get(f, "o-1").state, CHARGING);
    shard = &f->runtime->shards[0];
    for (unsigned i = 2; shard->promised < shard->due.capacity; i++) {
        snprintf(id, sizeof id, "o-%u", i);
        assert_int_equal(start(f, id), 0);
    }
    memory.fail_at = memory.calls + 1;
    memory.fail_sticky = true;
    assert_int_equal(retry(f, "order/o-1/1/0"), DET_ERR_NO_MEMORY);
    memory.fail_at = 0;
    assert_int_equal(get(f, "o-1").effects_pending, 0);
    assert_int_equal(retry(f, "order/o-1/1/0"), 0);
    assert_int_equal(get(f, "o-1").effects_pending, 1);
    fixture_close(f);
    det_test_memory_deinit(&memory);
}

static void a_retry_that_cannot_be_recorded_does_not_happen(void **state)
{
    struct faulty faulty;
    struct fixture *f = with_dead_letter(&faulty);

    (void)state;
    faulty_set(&faulty, FAULT_BEFORE, DET_ERR_NO_SPACE, 0);
    assert_int_equal(retry(f, "order/o-1/1/0"), DET_ERR_NO_SPACE);
    settle(f);
    assert_int_equal(get(f, "o-1").state, CHARGING);
    assert_int_equal(get(f, "o-1").effects_pending, 0);
    assert_int_equal(retry(f, "order/o-1/1/0"), 0);
    settle(f);
    assert_int_equal(get(f, "o-1").state, PAID);
    fixture_close(f);
}

static void retry_with_an_unknown_commit_result_is_looked_up(void **state)
{
    struct faulty faulty;
    struct fixture *f = with_dead_letter(&faulty);

    (void)state;
    faulty_set(&faulty, FAULT_AFTER, DET_ERR_IO, 0);
    assert_int_equal(retry(f, "order/o-1/1/0"), DET_ERR_IO);
    settle(f);
    assert_int_equal(get(f, "o-1").state, PAID);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manual_snapshot_is_the_head),
        cmocka_unit_test(snapshot_of_a_missing_instance_is_not_found),
        cmocka_unit_test(every_n_events_the_head_becomes_the_snapshot),
        cmocka_unit_test(manual_snapshot_does_not_shift_the_policy),
        cmocka_unit_test(batch_over_the_interval_snapshots_once_at_its_end),
        cmocka_unit_test(first_event_of_each_span_takes_a_snapshot),
        cmocka_unit_test(events_without_a_transition_count_for_the_snapshot_span),
        cmocka_unit_test(final_states_and_stops_take_a_snapshot),
        cmocka_unit_test(only_what_a_snapshot_covers_is_pruned),
        cmocka_unit_test(a_pruned_instance_accepts_events_after_a_reload),
        cmocka_unit_test(the_policy_prunes_after_its_snapshots),
        cmocka_unit_test(a_snapshot_that_fails_is_reported_and_changes_nothing),
        cmocka_unit_test(instances_are_found_by_state_age_and_page),
        cmocka_unit_test(a_query_that_makes_no_sense_is_refused),
        cmocka_unit_test(a_dead_letter_is_tried_again_with_the_same_key),
        cmocka_unit_test(ambiguous_dead_letter_key_is_refused),
        cmocka_unit_test(retry_of_a_live_effect_is_not_found),
        cmocka_unit_test(a_retry_without_memory_does_not_happen),
        cmocka_unit_test(a_retry_that_cannot_be_recorded_does_not_happen),
        cmocka_unit_test(retry_with_an_unknown_commit_result_is_looked_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
