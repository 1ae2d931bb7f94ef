/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lease_test.c - leases, locks and fences, and whose timers and effects are whose: two
 * openings of one store are two nodes. Time passes by moving what is stored, not by waiting. */
#include "store/postgres/postgres_test.h"

/* Two nodes on one store. */
struct pair {
    char *url;
    struct pad *one, *other;
};

static struct pair pair_open(void)
{
    struct pair pair = { .url = det_test_postgres_url(server, NULL) };

    pair.one = desk_at(pair.url, NULL);
    pair.other = neighbour(pair.one, pair.url);
    return pair;
}

static void pair_close(struct pair *pair)
{
    desk_close(pair->other);
    desk_close(pair->one);
    free(pair->url);
}

static int lease(
    struct det_store *store, enum det_store_lease_verb verb, const char *owner, uint64_t token,
    struct det_store_lease *ret)
{
    return store->ops->lease(
        store, &(struct det_store_lease_change){ verb, "sweeper", owner, token, DET_MINUTE }, ret);
}

static int lock(
    struct pad *pad, enum det_store_lease_verb verb, const char *owner, uint64_t token,
    struct det_store_lease *ret)
{
    return pad->store->ops->lock(
        pad->store, pad->machine,
        &(struct det_store_lease_change){ verb, "p", owner, token, DET_MINUTE }, ret);
}

static void a_lease_has_one_holder_and_each_grant_a_higher_token(void **state)
{
    struct pair pair = pair_open();
    struct det_store *one = pair.one->store, *other = pair.other->store;
    struct det_store_lease held;

    (void)state;
    assert_int_equal(lease(one, DET_LEASE_READ, NULL, 0, &held), 0);
    assert_int_equal(held.token, 0);
    assert_int_equal(lease(one, DET_LEASE_RENEW, NULL, 1, &held), DET_ERR_LOCK_LOST);
    assert_int_equal(lease(one, DET_LEASE_ACQUIRE, "one", 0, &held), 0);
    assert_int_equal(held.token, 1);
    assert_string_equal(held.owner, "one");
    assert_true(held.expires_at > one->ops->now(one) + 50 * DET_SECOND);
    assert_int_equal(lease(other, DET_LEASE_ACQUIRE, "other", 0, &held), DET_ERR_LOCKED);
    assert_string_equal(held.owner, "one");
    assert_int_equal(lease(one, DET_LEASE_RENEW, NULL, 1, &held), 0);
    assert_int_equal(lease(other, DET_LEASE_RENEW, NULL, 2, &held), DET_ERR_LOCK_LOST);
    assert_int_equal(lease(one, DET_LEASE_RELEASE, NULL, 1, &held), 0);
    assert_string_equal(held.owner, "");
    assert_int_equal(lease(other, DET_LEASE_ACQUIRE, "other", 0, &held), 0);
    assert_int_equal(held.token, 2);
    assert_int_equal(lease(one, DET_LEASE_RELEASE, NULL, 1, &held), DET_ERR_LOCK_LOST);
    assert_int_equal(held.token, 2);
    assert_string_equal(held.owner, "other");
    pair_close(&pair);
}

static void lapsed_lease_can_be_acquired_by_others(void **state)
{
    struct pair pair = pair_open();
    struct det_store *one = pair.one->store, *other = pair.other->store;
    struct det_store_lease held;

    (void)state;
    assert_int_equal(lease(one, DET_LEASE_ACQUIRE, "one", 0, &held), 0);
    free(sql(one, "UPDATE @leases SET expires_at = 5"));
    assert_int_equal(lease(one, DET_LEASE_READ, NULL, 0, &held), 0);
    assert_string_equal(held.owner, "");
    assert_int_equal(lease(one, DET_LEASE_RENEW, NULL, 1, &held), DET_ERR_LOCK_LOST);
    assert_int_equal(lease(other, DET_LEASE_ACQUIRE, "other", 0, &held), 0);
    assert_int_equal(held.token, 2);
    pair_close(&pair);
}

static void lock_excludes_others_and_commit_checks_its_fence(void **state)
{
    struct pair pair = pair_open();
    struct det_store_lease held;
    struct pad before;

    (void)state;
    assert_int_equal(lock(pair.one, DET_LEASE_ACQUIRE, "one", 0, &held), 0);
    assert_int_equal(held.token, 1);
    assert_int_equal(lock(pair.other, DET_LEASE_ACQUIRE, "other", 0, &held), DET_ERR_LOCKED);
    assert_string_equal(held.owner, "one");
    before = *pair.other;
    assert_int_equal(send(pair.other, BARE, NULL), DET_ERR_LOCKED);
    *pair.other = before;
    begin(pair.one);
    add_event(pair.one, BARE);
    pair.one->commit.fence = 1;
    assert_int_equal(commit(pair.one), 0);
    assert_int_equal(lock(pair.one, DET_LEASE_READ, NULL, 0, &held), 0);
    assert_int_equal(held.sequence, 1);
    assert_int_equal(held.token, 1);
    /* The holder sleeps past its lease; its fence is old when it wakes. */
    free(sql(pair.one->store, "UPDATE @instances SET lock_until = 5"));
    assert_int_equal(lock(pair.one, DET_LEASE_RENEW, NULL, 1, &held), DET_ERR_LOCK_LOST);
    assert_int_equal(lock(pair.other, DET_LEASE_ACQUIRE, "other", 0, &held), 0);
    assert_int_equal(held.token, 2);
    before = *pair.one;
    begin(pair.one);
    add_event(pair.one, BARE);
    pair.one->commit.fence = 1;
    assert_int_equal(commit(pair.one), DET_ERR_LOCK_LOST);
    *pair.one = before;
    assert_int_equal(lock(pair.one, DET_LEASE_RELEASE, NULL, 1, &held), DET_ERR_LOCK_LOST);
    assert_int_equal(lock(pair.other, DET_LEASE_RELEASE, NULL, 2, &held), 0);
    assert_int_equal(send(pair.one, BARE, NULL), 0);
    pair_close(&pair);
}

static void a_lock_needs_an_instance(void **state)
{
    struct pad *pad = desk_open();
    struct det_store_lease held;

    (void)state;
    for (int verb = DET_LEASE_ACQUIRE; verb <= DET_LEASE_READ; verb++)
        assert_int_equal(
            pad->store->ops->lock(
                pad->store, pad->machine,
                &(struct det_store_lease_change){ (enum det_store_lease_verb)verb, "nobody", "me",
                                                  1, DET_SECOND },
                &held),
            DET_ERR_NOT_FOUND);
    desk_close(pad);
}

static void a_lock_that_lapsed_does_not_lock(void **state)
{
    struct pair pair = pair_open();
    struct det_store_lease held;

    (void)state;
    assert_int_equal(lock(pair.one, DET_LEASE_ACQUIRE, "one", 0, &held), 0);
    free(sql(pair.one->store, "UPDATE @instances SET lock_until = 5"));
    assert_int_equal(send(pair.other, BARE, NULL), 0);
    pair_close(&pair);
}

/* A timer and an effect of a node. */
static void leave_work(struct pad *pad, det_time due)
{
    static const struct pad_event value = { .kind = SMALL };
    static const uint64_t data;
    const struct det_store_timer_change timer = { DET_STORE_SET,
                                                  { .event = SMALL, .visit = 1, .due = due } };
    struct det_store_effect_change effect = {
        DET_STORE_SET, { .index = 0, .next = due + 1, .data = &data, .event = &value }
    };

    begin(pad);
    add_event(pad, BARE);
    effect.effect.sequence = pad->head.sequence;
    pad->commit.timers = &timer;
    pad->commit.timer_count = 1;
    pad->commit.effects = &effect;
    pad->commit.effect_count = 1;
    assert_int_equal(commit(pad), 0);
}

struct listed {
    size_t count;
    det_time first;
    bool is_timer;
};

static int count_due(void *context, const struct det_store_due *row)
{
    struct listed *listed = context;

    if (!listed->count++) {
        listed->first = row->due;
        listed->is_timer = row->is_timer;
    }
    assert_string_equal(row->id, "p");
    return 0;
}

static size_t due(struct pad *pad, det_time before, size_t limit, det_time *ret_next)
{
    struct listed listed = { 0 };

    assert_int_equal(
        pad->store->ops->due(
            pad->store, pad->machine,
            &(struct det_store_due_query){ .before = before, .limit = limit }, count_due, &listed,
            ret_next),
        0);
    return listed.count;
}

static void due_rows_are_listed_only_for_their_owner(void **state)
{
    struct pair pair = pair_open();
    det_time next;

    (void)state;
    assert_int_equal(due(pair.one, DET_NEVER - 1, 10, &next), 0);
    assert_int_equal(next, DET_NEVER);
    leave_work(pair.one, 1000);
    assert_int_equal(due(pair.one, 999, 10, &next), 0);
    assert_int_equal(next, 1000);
    assert_int_equal(due(pair.one, 1000, 10, &next), 1);
    assert_int_equal(next, 1001);
    assert_int_equal(due(pair.one, 2000, 10, &next), 2);
    assert_int_equal(next, DET_NEVER);
    assert_int_equal(due(pair.one, 2000, 1, &next), 1);
    assert_int_equal(next, 1001);
    assert_int_equal(due(pair.one, 2000, 0, &next), 0);
    assert_int_equal(next, 1000);
    assert_int_equal(due(pair.other, 2000, 10, &next), 0);
    assert_int_equal(next, DET_NEVER);
    pair_close(&pair);
}

static int node_lease(struct det_store *store, struct det_store_lease *ret)
{
    char name[64];

    snprintf(name, sizeof name, "node/%s", store->owner);
    return store->ops->lease(
        store,
        &(struct det_store_lease_change){ DET_LEASE_ACQUIRE, name, store->owner, 0, DET_MINUTE },
        ret);
}

/* One was released, one has lapsed long ago, one just now; one belongs to another node. */
static void a_node_that_begins_clears_the_leases_of_nodes_that_are_gone(void **state)
{
    struct pair pair = pair_open();
    struct det_store_lease held;
    char *text, name[64];

    (void)state;
    assert_int_equal(node_lease(pair.one->store, &held), 0);
    snprintf(name, sizeof name, "node/%s", pair.one->store->owner);
    assert_int_equal(
        pair.one->store->ops->lease(
            pair.one->store,
            &(struct det_store_lease_change){ DET_LEASE_RELEASE, name, NULL, held.token, 0 },
            &held),
        0);
    free(
        sql(pair.one->store,
            "INSERT INTO @leases (name, token, owner, expires_at) SELECT name, 1, 'x', at FROM "
            "(SELECT " POSTGRES_CLOCK " AS now) c, LATERAL (VALUES "
            "('node/' || repeat('a', 32), 5), "
            "('node/' || repeat('b', 32), c.now - 25 * 3600 * 1000000000::int8), "
            "('node/' || repeat('c', 32), c.now - 23 * 3600 * 1000000000::int8), "
            "('node/' || repeat('d', 32), c.now + 3600 * 1000000000::int8), "
            "('node/mine', 5), ('sweeper/pad', 5)) v (name, at)"));
    assert_int_equal(node_lease(pair.other->store, &held), 0);
    assert_int_equal(held.token, 1);
    text =
        sql(pair.one->store,
            "SELECT string_agg(left(name, 9), ' ' ORDER BY name COLLATE \"C\") FROM @leases "
            "WHERE owner = 'x'");
    assert_string_equal(text, "node/cccc node/dddd node/mine sweeper/p");
    free(text);
    text = sql(pair.one->store, "SELECT count(*) FROM @leases");
    assert_string_equal(text, "5");
    free(text);
    /* A lease with the first name has no trace of the earlier one. */
    assert_int_equal(node_lease(pair.one->store, &held), 0);
    assert_int_equal(held.token, 1);
    pair_close(&pair);
}

static size_t adopt(struct pad *pad, size_t limit)
{
    size_t count = 99;

    assert_int_equal(pad->store->ops->adopt(pad->store, pad->machine, limit, &count), 0);
    return count;
}

static void rows_of_a_dead_node_are_adopted_and_its_commits_fail(void **state)
{
    const struct det_store_timer_change take = { DET_STORE_TAKE,
                                                 { .event = SMALL, .visit = 1, .due = 1000 } };
    const struct det_store_effect_change done = { DET_STORE_TAKE, { .sequence = 1 } };
    struct pair pair = pair_open();
    struct det_store_lease held;
    struct pad before;
    det_time next;

    (void)state;
    leave_work(pair.one, 1000);
    assert_int_equal(node_lease(pair.one->store, &held), 0);
    assert_int_equal(adopt(pair.other, 10), 0);
    free(sql(pair.one->store, "UPDATE @leases SET expires_at = 5"));
    assert_int_equal(adopt(pair.other, 1), 1);
    assert_int_equal(adopt(pair.other, 10), 1);
    assert_int_equal(adopt(pair.other, 10), 0);
    assert_int_equal(due(pair.one, 2000, 10, &next), 0);
    assert_int_equal(due(pair.other, 2000, 10, &next), 2);
    /* The first one comes back and wants to fire it. */
    before = *pair.one;
    begin(pair.one);
    add_event(pair.one, BARE);
    pair.one->commit.timers = &take;
    pair.one->commit.timer_count = 1;
    assert_int_equal(commit(pair.one), DET_ERR_NOT_FOUND);
    *pair.one = before;
    begin(pair.one);
    pair.one->commit.effects = &done;
    pair.one->commit.effect_count = 1;
    assert_int_equal(commit(pair.one), DET_ERR_NOT_FOUND);
    *pair.one = before;
    pair_close(&pair);
}

static void two_adopting_nodes_share_no_row(void **state)
{
    enum { COUNT = 40 };
    struct pair pair = pair_open();
    struct pad dead = { 0 };
    struct det_store_lease held;
    size_t one = 0, other = 0, expected = (size_t)2 * COUNT;
    char id[16];

    (void)state;
    assert_int_equal(node_lease(pair.one->store, &held), 0);
    assert_int_equal(node_lease(pair.other->store, &held), 0);
    /* A third node, which ends without releasing its lease. */
    dead.machine = pair.one->machine;
    dead.store = store_at(pair.url, NULL);
    for (int i = 0; i < COUNT; i++) {
        snprintf(id, sizeof id, "x%d", i);
        assert_int_equal(start(&dead, id), 0);
        leave_work(&dead, 1000 + i);
        dead.store->ops->release(dead.store, dead.instance);
    }
    det_store_close(dead.store);
    while (one + other < expected) {
        one += adopt(pair.one, 7);
        other += adopt(pair.other, 7);
    }
    assert_int_equal(one + other, expected);
    assert_int_equal(adopt(pair.one, 7), 0);
    pair_close(&pair);
}

static int collect(void *context, const struct det_store_listed *row)
{
    char *text = context;
    size_t used = strlen(text);

    snprintf(text + used, 256 - used, "%s ", row->id);
    return 0;
}

static void instances_are_listed_in_the_order_of_their_ids(void **state)
{
    static const char *const ids[] = { "b", "B", "a.1", "a-1", "a_1", "10", "9" };
    struct pad *pad = desk_open();
    char text[256] = "";

    (void)state;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        struct pad other = { .machine = pad->machine, .store = pad->store };

        assert_int_equal(start(&other, ids[i]), 0);
        pad->store->ops->release(pad->store, other.instance);
    }
    assert_int_equal(
        pad->store->ops->list(
            pad->store, pad->machine, &(struct det_store_query){ 0 }, collect, text),
        0);
    assert_string_equal(text, "10 9 B a-1 a.1 a_1 b p ");
    text[0] = 0;
    assert_int_equal(
        pad->store->ops->list(
            pad->store, pad->machine, &(struct det_store_query){ .after = "B", .limit = 2 },
            collect, text),
        0);
    assert_string_equal(text, "a-1 a.1 ");
    assert_int_equal(send(pad, BARE, NULL), 0);
    text[0] = 0;
    assert_int_equal(
        pad->store->ops->list(
            pad->store, pad->machine, &(struct det_store_query){ .has_state = true, .state = 1 },
            collect, text),
        0);
    assert_string_equal(text, "p ");
    text[0] = 0;
    assert_int_equal(
        pad->store->ops->list(
            pad->store, pad->machine,
            &(struct det_store_query){ .moved_before = 101, .after = "a_1" }, collect, text),
        0);
    assert_string_equal(text, "b ");
    text[0] = 0;
    assert_int_equal(
        pad->store->ops->list(
            pad->store, pad->machine, &(struct det_store_query){ .stopped = DET_STORE_STOPPED },
            collect, text),
        0);
    assert_string_equal(text, "");
    assert_int_equal(
        pad->store->ops->list(
            pad->store, pad->machine,
            &(struct det_store_query){ .stopped = DET_STORE_RUNNING, .limit = 1 }, collect, text),
        0);
    assert_string_equal(text, "10 ");
    desk_close(pad);
}

static void clock_follows_the_server_and_never_goes_back(void **state)
{
    struct pad *pad = desk_open();
    struct postgres_store *store = postgres_store_of(pad->store);
    det_time boot = det_world_now(det_world_real(), DET_CLOCK_BOOT), offset, now;
    char *text = sql(pad->store, "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8");
    det_time server_time = (det_time)strtoll(text, NULL, 10) * DET_MILLISECOND;

    (void)state;
    free(text);
    now = pad->store->ops->now(pad->store);
    assert_true(now > server_time - DET_SECOND && now < server_time + DET_SECOND);
    offset = atomic_load(&store->offset);
    /* A little earlier: bit by bit. Later: at once. Much earlier: the clock was set. */
    det_postgres_clock(store, boot + offset - 400 * DET_MILLISECOND);
    assert_true(atomic_load(&store->offset) < offset);
    assert_true(atomic_load(&store->offset) > offset - 300 * DET_MILLISECOND);
    det_postgres_clock(store, det_world_now(det_world_real(), DET_CLOCK_BOOT) + offset + DET_HOUR);
    assert_int_equal(atomic_load(&store->offset) / DET_MINUTE, (offset + DET_HOUR) / DET_MINUTE);
    now = pad->store->ops->now(pad->store);
    det_postgres_clock(store, det_world_now(det_world_real(), DET_CLOCK_BOOT) + offset);
    assert_true(atomic_load(&store->offset) < offset + DET_MINUTE);
    assert_true(pad->store->ops->now(pad->store) >= now);
    desk_close(pad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_has_one_holder_and_each_grant_a_higher_token),
        cmocka_unit_test(lapsed_lease_can_be_acquired_by_others),
        cmocka_unit_test(lock_excludes_others_and_commit_checks_its_fence),
        cmocka_unit_test(a_lock_needs_an_instance),
        cmocka_unit_test(a_lock_that_lapsed_does_not_lock),
        cmocka_unit_test(due_rows_are_listed_only_for_their_owner),
        cmocka_unit_test(a_node_that_begins_clears_the_leases_of_nodes_that_are_gone),
        cmocka_unit_test(rows_of_a_dead_node_are_adopted_and_its_commits_fail),
        cmocka_unit_test(two_adopting_nodes_share_no_row),
        cmocka_unit_test(instances_are_listed_in_the_order_of_their_ids),
        cmocka_unit_test(clock_follows_the_server_and_never_goes_back),
    };

    return cmocka_run_group_tests(tests, open_server, close_server);
}
