/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* id_map_test.c - ids are found while they are in, and only then, through growth and removal. */
#include "base/id_map.h"

#include "lib/test.h"

#define MANY 1000

static void id_map_finds_only_present_ids(void **state)
{
    static struct det_id_node nodes[MANY];
    struct det_id_map map;

    (void)state;
    det_id_map_init(&map, NULL);
    assert_null(det_id_map_get(&map, 1));
    for (unsigned i = 0; i < MANY; i++) {
        nodes[i].id = 1 + 7 * i;
        assert_int_equal(det_id_map_reserve(&map), 0);
        det_id_map_put(&map, &nodes[i]);
    }
    assert_int_equal(map.count, MANY);
    for (unsigned i = 0; i < MANY; i += 2)
        det_id_map_remove(&map, &nodes[i]);
    for (unsigned i = 0; i < MANY; i++)
        assert_ptr_equal(det_id_map_get(&map, 1 + 7 * i), i % 2 ? &nodes[i] : NULL);
    assert_null(det_id_map_get(&map, 2));
    assert_int_equal(map.count, MANY / 2);
    det_id_map_deinit(&map);
}

static int fill(struct det_test_memory *memory, void *argument)
{
    struct det_id_node nodes[200] = { { .id = 0 } };
    struct det_id_map map;
    int r = 0;

    (void)argument;
    det_id_map_init(&map, &memory->allocator);
    for (unsigned i = 0; i < 200 && r == 0; i++) {
        nodes[i].id = i;
        r = det_id_map_reserve(&map);
        if (r == 0)
            det_id_map_put(&map, &nodes[i]);
        else
            for (unsigned k = 0; k < i; k++)
                assert_ptr_equal(det_id_map_get(&map, k), &nodes[k]);
    }
    det_id_map_deinit(&map);
    return r;
}

static void id_map_keeps_its_entries_on_allocation_failure(void **state)
{
    (void)state;
    det_test_each_failure(fill, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(id_map_finds_only_present_ids),
        cmocka_unit_test(id_map_keeps_its_entries_on_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
