/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* hash_collision_test.c - ids with the same hash are separate instances, on every path. */
#include "runtime/runtime_test.h"

#include "base/hash.h"

/* The first factor of the hash is the first eight bytes of an id, hidden by this number and the
 * seed. With this seed it is zero for eight a's, whatever follows them. */
#define HASH_KEY UINT64_C(0x9E3779B97F4A7C15)
#define EIGHT_A  UINT64_C(0x6161616161616161)

static const char one[] = "aaaaaaaa:one", two[] = "aaaaaaaa:two";

static void draw_the_seed(struct det_world *world, void *target, size_t size)
{
    const uint64_t seed = EIGHT_A ^ HASH_KEY;

    (void)world;
    assert_int_equal(size, sizeof seed);
    memcpy(target, &seed, sizeof seed);
}

/* The map of the store has the seed too. */
static void in_collision(struct det_runtime_options options, void (*test)(struct fixture *f))
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct det_world *world = det_sim_world(f->sim);
    struct det_world_ops ops = *world->ops;
    struct det_store_options store = { .world = world };

    assert_int_equal(
        det_hash64(one, strlen(one), EIGHT_A ^ HASH_KEY),
        det_hash64(two, strlen(two), EIGHT_A ^ HASH_KEY));
    ops.random = draw_the_seed;
    world->ops = &ops;
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    det_store_close(f->store);
    assert_int_equal(det_store_open_with("memory:", &store, &f->store, &f->error), 0);
    fixture_reopen(f, options);
    test(f);
    fixture_close(f);
}

static void stands_at(struct fixture *f, const char *id, unsigned state, uint64_t sequence)
{
    assert_int_equal(get(f, id).state, state);
    assert_int_equal(get(f, id).sequence, sequence);
}

static void live_side_by_side(struct fixture *f)
{
    assert_int_equal(start(f, one), 0);
    assert_int_equal(start(f, two), 0);
    assert_int_equal(start(f, two), DET_ERR_EXISTS);
    /* User code on the way, then a turn, then neither. */
    assert_int_equal(send_kind(f, two, PING), 0);
    stands_at(f, one, PENDING, 0);
    stands_at(f, two, PENDING, 1);
    assert_int_equal(send_kind(f, two, PAY), 0);
    settle(f);
    assert_int_equal(send_kind(f, two, NOISE), 0);
    assert_int_equal(send_kind(f, two, NOISE), 0);
    stands_at(f, one, PENDING, 0);
    stands_at(f, two, PAID, 5);
    assert_int_equal(send_kind(f, one, PAY), 0);
    settle(f);
    assert_int_equal(send_kind(f, one, NOISE), 0);
    stands_at(f, one, PAID, 3);
    stands_at(f, two, PAID, 5);
    assert_int_equal(send_kind(f, "aaaaaaaa:six", PING), DET_ERR_NOT_FOUND);
    assert_int_equal(counts(f).instances, 2);
}

static void ids_of_one_hash_are_instances_of_their_own(void **state)
{
    (void)state;
    in_collision((struct det_runtime_options){ 0 }, live_side_by_side);
    in_collision((struct det_runtime_options){ .observe = order_observe }, live_side_by_side);
}

static void are_found_again(struct fixture *f)
{
    assert_int_equal(start(f, one), 0);
    assert_int_equal(start(f, two), 0);
    assert_int_equal(send_kind(f, two, TOUCH), 0);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    stands_at(f, two, PENDING, 1);
    stands_at(f, one, PENDING, 0);
    advance(f, 30 * DET_MINUTE);
    stands_at(f, one, CANCELLED, 1);
    stands_at(f, two, CANCELLED, 2);
}

static void the_store_distinguishes_ids_of_one_hash(void **state)
{
    (void)state;
    in_collision((struct det_runtime_options){ 0 }, are_found_again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_of_one_hash_are_instances_of_their_own),
        cmocka_unit_test(the_store_distinguishes_ids_of_one_hash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
