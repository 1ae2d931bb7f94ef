/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* keep_test.c - leases, locks, snapshots, pruning and the check of the memory store, as far
 * as they are its own: the contract is tests/conform. */
#include "store/memory/memory.h"
#include "store/pad_test.h"

static struct det_store_lease_change acquire(const char *name, const char *owner, det_time span)
{
    return (struct det_store_lease_change){ DET_LEASE_ACQUIRE, name, owner, 0, span };
}

static void invalid_lease_change_is_refused(void **state)
{
    struct pad *pad = pad_open(NULL);
    char name[DET_ID_MAX + 2], owner[DET_OWNER_MAX + 2];
    struct det_store_lease_change changes[] = {
        acquire("", "me", 1),    acquire(name, "me", 1), acquire("x", owner, 1),
        acquire("x", "me", 0),   acquire("x", "me", -1), { DET_LEASE_RENEW, "x", NULL, 1, 0 },
        acquire("p", owner, 10),
    };
    struct det_store_lease lease;

    (void)state;
    memset(name, 'n', sizeof name);
    name[DET_ID_MAX + 1] = 0;
    memset(owner, 'o', sizeof owner);
    owner[DET_OWNER_MAX + 1] = 0;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
        assert_int_equal(pad->store->ops->lease(pad->store, &changes[i], &lease), DET_ERR_INVALID);
    assert_int_equal(
        pad->store->ops->lock(pad->store, pad->machine, &changes[6], &lease), DET_ERR_INVALID);
    changes[1].name = name + 1;
    changes[2].owner = owner + 1;
    assert_int_equal(pad->store->ops->lease(pad->store, &changes[1], &lease), 0);
    assert_int_equal(pad->store->ops->lease(pad->store, &changes[2], &lease), 0);
    assert_string_equal(lease.owner, owner + 1);
    pad_close(pad);
}

static int keep(struct det_test_memory *memory, void *argument)
{
    struct det_store_lease_change lease = acquire("x", "me", DET_HOUR);
    struct det_store_lease_change lock = acquire("p", "me", DET_HOUR);
    struct det_store_lease ret = { 0 };
    struct pad pad;
    int r;

    r = pad_open_in(&pad, &(struct det_store_options){ .allocator = &memory->allocator }, argument);
    if (r == 0)
        r = pad.store->ops->lease(pad.store, &lease, &ret);
    if (r == 0) {
        r = pad.store->ops->lock(pad.store, pad.machine, &lock, &ret);
        assert_int_equal(ret.token, r == 0);
    }
    if (r == 0) {
        begin(&pad);
        add_event(&pad, BARE);
        pad.commit.fence = 1;
        pad.commit.is_snapshot = true;
        r = commit(&pad);
        assert_int_equal(memory_instance_of(pad.instance)->head.sequence, r == 0);
    }
    det_store_close(pad.store);
    return r;
}

static void leases_locks_and_snapshots_without_memory_are_refused(void **state)
{
    struct det_machine *machine = pad_machine(1);

    (void)state;
    det_test_each_failure(keep, machine);
    det_machine_close(machine);
}

static void snap(struct pad *pad)
{
    begin(pad);
    pad->commit.is_snapshot = true;
    assert_int_equal(commit(pad), 0);
}

static void event_ring_continues_after_pruned_events(void **state)
{
    static const uint32_t kept[] = { 1, 3, 64 };

    (void)state;
    for (size_t k = 0; k < 3; k++) {
        struct pad *pad = pad_open(&(struct det_store_options){ .events_kept = kept[k] });
        struct rows rows = { 0 };
        uint64_t gone, first = 1;

        for (uint64_t i = 1; i <= 200; i++) {
            assert_int_equal(send(pad, BARE, NULL), 0);
            if (i % 7 == 0) {
                snap(pad);
                assert_int_equal(
                    pad->store->ops->prune(pad->store, pad->instance, i - 2, 0, &gone), 0);
                if (first < i - 1)
                    first = i - 1;
            }
            if (i >= kept[k] && first < i - kept[k] + 1)
                first = i - kept[k] + 1;
            assert_int_equal(walk(pad, 0, &rows), 0);
            assert_int_equal(rows.first, first);
            assert_int_equal(rows.last, i);
        }
        pad_close(pad);
    }
}

static void options_of_stores_that_last_are_refused(void **state)
{
    struct det_store_options read_only = { .is_read_only = true };
    struct det_store_options foreign = { .identity = "0123456789abcdef0123456789abcdef" };
    struct det_store *store = NULL;
    struct det_error error;

    (void)state;
    assert_int_equal(det_store_open_with("memory:", &read_only, &store, &error), DET_ERR_INVALID);
    assert_int_equal(det_store_open_with("memory:", &foreign, &store, &error), DET_ERR_FOREIGN);
    assert_null(store);
}

struct looked {
    size_t findings;
    uint64_t done, total, sequence;
    char text[120];
    int answer;
};

static int found_wrong(void *context, const struct det_store_finding *row)
{
    struct looked *looked = context;

    assert_string_equal(row->machine, "pad");
    assert_string_equal(row->id, "p");
    looked->findings++;
    looked->sequence = row->sequence;
    snprintf(looked->text, sizeof looked->text, "%s", row->text);
    return looked->answer;
}

static void inspected(void *context, uint64_t done, uint64_t total)
{
    struct looked *looked = context;

    looked->done = done;
    looked->total = total;
}

static struct looked check_now(struct pad *pad)
{
    struct looked looked = { 0 };

    assert_int_equal(pad->store->ops->check(pad->store, found_wrong, inspected, &looked), 0);
    assert_int_equal(looked.done, 1);
    assert_int_equal(looked.total, 1);
    return looked;
}

static struct pad *pad_of_three(void)
{
    struct pad *pad = pad_open(NULL);
    struct pad_event value = { .kind = SMALL };
    struct det_store_effect_change effect = {
        DET_STORE_SET, { .sequence = 2, .data = &pad->data, .event = &value }
    };
    struct det_store_deferred_change deferred = { DET_STORE_SET, { 1, &value } };

    for (int i = 0; i < 3; i++)
        assert_int_equal(send(pad, BARE, NULL), 0);
    begin(pad);
    pad->commit.effects = &effect;
    pad->commit.effect_count = 1;
    pad->commit.deferred = &deferred;
    pad->commit.deferred_count = 1;
    pad->commit.is_snapshot = true;
    assert_int_equal(commit(pad), 0);
    return pad;
}

static void break_it(struct memory_instance *instance, int how)
{
    switch (how) {
    case 0:
        instance->head.state = 9;
        instance->listed = 9;
        break;
    case 1:
        instance->listed_sequence = 4;
        break;
    case 2:
        instance->listed_sequence = instance->head.sequence = 2;
        break;
    case 3:
        memory_row_at(instance, 1)->from = 0;
        break;
    case 4:
        instance->head.visit++;
        break;
    case 5:
        instance->more->snapshot->head.sequence = 4;
        break;
    case 6:
        DET_CONTAINER(instance->more->effects.next, struct memory_effect, node)->row.sequence = 4;
        break;
    case 7:
        DET_CONTAINER(instance->more->deferred.next, struct memory_deferred, node)->row.sequence =
            4;
        break;
    }
}

static void a_check_finds_what_the_invariants_exclude(void **state)
{
    static const char *const words[] = { "state", "lists",   "more events", "start",
                                         "lead",  "effects", "effects",     "effects" };

    (void)state;
    for (int how = 0; how < 8; how++) {
        struct pad *pad = pad_of_three();
        struct looked looked = check_now(pad), stopped = { .answer = 55 };

        assert_int_equal(looked.findings, 0);
        break_it(memory_instance_of(pad->instance), how);
        looked = check_now(pad);
        assert_true(looked.findings >= 1);
        assert_int_equal(pad->store->ops->check(pad->store, found_wrong, NULL, &stopped), 55);
        assert_non_null(strstr(stopped.text, words[how]));
        assert_int_equal(stopped.sequence, how == 3 ? 2 : how == 4 ? 3 : 0);
        pad_close(pad);
    }
}

static int see_machine(void *context, const char *name, uint32_t version, const char *spec)
{
    assert_string_equal(name, "pad");
    assert_int_equal(version, 1);
    assert_null(spec);
    return *(int *)context;
}

static void machines_are_listed_by_name(void **state)
{
    struct pad *pad = pad_open(NULL);
    int answer = 0;

    (void)state;
    assert_int_equal(pad->store->ops->machines(pad->store, see_machine, &answer), 0);
    answer = 3;
    assert_int_equal(pad->store->ops->machines(pad->store, see_machine, &answer), 3);
    pad_close(pad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invalid_lease_change_is_refused),
        cmocka_unit_test(leases_locks_and_snapshots_without_memory_are_refused),
        cmocka_unit_test(event_ring_continues_after_pruned_events),
        cmocka_unit_test(options_of_stores_that_last_are_refused),
        cmocka_unit_test(a_check_finds_what_the_invariants_exclude),
        cmocka_unit_test(machines_are_listed_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
