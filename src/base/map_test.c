/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* map_test.c - the map against a naive model, round the end of its table, and without memory. */
#include "base/map.h"
#include "lib/test.h"

#define ITEMS 400

struct item {
    char text[32];
    char *key;  /* to the text, and not the first member */
    bool is_in; /* the model: whether the map should hold it */
    bool was_seen;
};

static void fill_items(struct item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        items[i] = (struct item){ .is_in = false };
        (void)snprintf(items[i].text, sizeof items[i].text, "item-%zu", i);
        items[i].key = items[i].text;
    }
}

static void init_map(struct det_map *map, const struct det_allocator *allocator, uint64_t seed)
{
    det_map_init(map, allocator, seed, offsetof(struct item, key));
}

static void an_empty_map_holds_nothing(void **state)
{
    struct det_map map;
    size_t cursor = 0;

    (void)state;
    init_map(&map, NULL, 1);
    assert_null(det_map_get(&map, "key"));
    assert_null(det_map_remove(&map, "key"));
    assert_null(det_map_next(&map, &cursor));
    det_map_deinit(&map);
}

static void a_value_is_found_by_an_equal_key(void **state)
{
    struct det_map map;
    struct item items[2];
    char key[] = "item-1";

    (void)state;
    fill_items(items, 2);
    init_map(&map, NULL, 1);
    assert_int_equal(det_map_put(&map, &items[0]), 0);
    assert_int_equal(det_map_put(&map, &items[1]), 0);
    assert_ptr_equal(det_map_get(&map, key), &items[1]);
    assert_null(det_map_get(&map, "item-"));
    assert_null(det_map_get(&map, ""));
    assert_ptr_equal(det_map_remove(&map, key), &items[1]);
    assert_null(det_map_remove(&map, key));
    assert_null(det_map_get(&map, key));
    assert_ptr_equal(det_map_get(&map, "item-0"), &items[0]);
    det_map_deinit(&map);
}

static void put_of_an_existing_key_keeps_its_value(void **state)
{
    struct det_map map;
    struct item first, second;

    (void)state;
    fill_items(&first, 1);
    fill_items(&second, 1);
    init_map(&map, NULL, 1);
    assert_int_equal(det_map_put(&map, &first), 0);
    assert_int_equal(det_map_put(&map, &second), DET_ERR_EXISTS);
    assert_int_equal(map.count, 1);
    assert_ptr_equal(det_map_get(&map, "item-0"), &first);
    det_map_deinit(&map);
}

/* Every item is where the model says, and a walk meets each of them once. */
static void check_against_model(const struct det_map *map, struct item *items, size_t count)
{
    struct item *item;
    size_t cursor = 0, expected = 0;

    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(det_map_get(map, items[i].key), items[i].is_in ? &items[i] : NULL);
        items[i].was_seen = false;
        expected += items[i].is_in ? 1 : 0;
    }
    assert_int_equal(map->count, expected);
    assert_true(map->count <= map->capacity / 4 * 3);
    while ((item = det_map_next(map, &cursor)) != NULL) {
        assert_true(item->is_in && !item->was_seen);
        item->was_seen = true;
        expected--;
    }
    assert_int_equal(expected, 0);
    assert_null(det_map_next(map, &cursor));
}

static void random_step(struct det_map *map, struct item *item, bool wants_in)
{
    if (wants_in) {
        assert_int_equal(det_map_put(map, item), item->is_in ? DET_ERR_EXISTS : 0);
        item->is_in = true;
    } else {
        assert_ptr_equal(det_map_remove(map, item->key), item->is_in ? item : NULL);
        item->is_in = false;
    }
}

static void random_operations_agree_with_the_model(void **state)
{
    static struct item items[ITEMS];
    uint64_t seed = 4;

    (void)state;
    for (uint64_t round = 0; round < 40; round++) {
        struct det_test_memory memory;
        struct det_map map;
        /* Few items make crowded small tables, many make it grow. */
        size_t count = 1 + (size_t)(det_test_random(&seed) % ITEMS);

        fill_items(items, ITEMS);
        det_test_memory_init(&memory);
        init_map(&map, &memory.allocator, round);
        for (int step = 0; step < 3000; step++) {
            struct item *item = &items[det_test_random(&seed) % count];

            random_step(&map, item, det_test_random(&seed) % 16 < 5 + round % 7);
            if (step % 100 == 0)
                check_against_model(&map, items, count);
        }
        check_against_model(&map, items, count);
        det_map_deinit(&map);
        det_test_memory_deinit(&memory);
    }
}

/* Many seeds, so that runs of slots often go round the end of the table. */
static void items_may_be_removed_during_a_walk(void **state)
{
    static struct item items[48];
    uint64_t random = 5;

    (void)state;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct item *item, *before = NULL;
        struct det_map map;
        size_t cursor = 0, count = 1 + (size_t)(det_test_random(&random) % 48), seen = 0;

        fill_items(items, count);
        init_map(&map, NULL, seed);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(det_map_put(&map, &items[i]), 0);
        while ((item = det_map_next(&map, &cursor)) != NULL) {
            assert_false(item->was_seen);
            item->was_seen = true;
            seen++;
            if (det_test_random(&random) % 2 == 0)
                assert_ptr_equal(det_map_remove(&map, item->key), item);
            else if (before != NULL && det_test_random(&random) % 2 == 0)
                (void)det_map_remove(&map, before->key);
            before = item;
        }
        assert_int_equal(seen, count);
        det_map_deinit(&map);
    }
}

static int fill_and_empty(struct det_test_memory *memory, void *argument)
{
    struct item *items = argument;
    struct det_map map;
    int r = 0;

    fill_items(items, ITEMS);
    init_map(&map, &memory->allocator, 6);
    for (size_t i = 0; i < ITEMS && r == 0; i++) {
        r = det_map_put(&map, &items[i]);
        items[i].is_in = r == 0;
    }
    check_against_model(&map, items, ITEMS);
    for (size_t i = 0; i < ITEMS; i++)
        assert_ptr_equal(det_map_remove(&map, items[i].key), items[i].is_in ? &items[i] : NULL);
    assert_int_equal(map.count, 0);
    det_map_deinit(&map);
    return r;
}

static int reserve_and_put(struct det_test_memory *memory, void *argument)
{
    struct item *items = argument;
    struct det_map map;
    int r = 0;

    fill_items(items, ITEMS);
    init_map(&map, &memory->allocator, 6);
    for (size_t i = 0; i < ITEMS && r == 0; i++) {
        r = det_map_reserve(&map);
        if (r == 0)
            assert_int_equal(det_map_put(&map, &items[i]), 0);
        items[i].is_in = r == 0;
    }
    check_against_model(&map, items, ITEMS);
    det_map_deinit(&map);
    return r;
}

static void after_a_reserve_a_put_cannot_fail(void **state)
{
    static struct item items[ITEMS];

    (void)state;
    det_test_each_failure(reserve_and_put, items);
}

static void failed_allocation_changes_nothing(void **state)
{
    static struct item items[ITEMS];

    (void)state;
    det_test_each_failure(fill_and_empty, items);
}

static void walk_with_a_foreign_cursor(void *argument)
{
    size_t cursor = (size_t)1 << 60;

    (void)det_map_next(argument, &cursor);
}

static void a_foreign_cursor_is_an_assertion(void **state)
{
    struct det_map map;
    struct item item;

    (void)state;
    fill_items(&item, 1);
    init_map(&map, NULL, 1);
    assert_int_equal(det_map_put(&map, &item), 0);
    assert_true(det_test_aborts(walk_with_a_foreign_cursor, &map, "start < map->capacity"));
    det_map_deinit(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_holds_nothing),
        cmocka_unit_test(a_value_is_found_by_an_equal_key),
        cmocka_unit_test(put_of_an_existing_key_keeps_its_value),
        cmocka_unit_test(random_operations_agree_with_the_model),
        cmocka_unit_test(items_may_be_removed_during_a_walk),
        cmocka_unit_test(after_a_reserve_a_put_cannot_fail),
        cmocka_unit_test(failed_allocation_changes_nothing),
        cmocka_unit_test(a_foreign_cursor_is_an_assertion),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
