/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* heap_test.c - the heap against a naive model, and without memory. */
#include "base/heap.h"
#include "lib/test.h"

#define NODES 200

struct fixture {
    struct det_heap heap;
    struct det_heap_node nodes[NODES];
    /* The model: for each node whether it is in, its key, and when it came among equals. */
    bool is_in[NODES];
    int64_t keys[NODES];
    uint64_t orders[NODES];
    uint64_t next_order;
};

static void init_fixture(struct fixture *fixture, const struct det_allocator *allocator)
{
    *fixture = (struct fixture){ .next_order = 0 };
    det_heap_init(&fixture->heap, allocator);
    for (size_t i = 0; i < NODES; i++)
        det_heap_node_init(&fixture->nodes[i]);
}

static int insert(struct fixture *fixture, size_t i, int64_t key)
{
    int r = det_heap_insert(&fixture->heap, &fixture->nodes[i], key);

    if (r < 0)
        return r;
    fixture->is_in[i] = true;
    fixture->keys[i] = key;
    fixture->orders[i] = fixture->next_order++;
    return 0;
}

static void take_out(struct fixture *fixture, size_t i)
{
    det_heap_remove(&fixture->heap, &fixture->nodes[i]);
    fixture->is_in[i] = false;
}

static void rekey(struct fixture *fixture, size_t i, int64_t key)
{
    det_heap_rekey(&fixture->heap, &fixture->nodes[i], key);
    fixture->keys[i] = key;
    fixture->orders[i] = fixture->next_order++;
}

/* The first by the model: by key, then by insertion; NODES: none. */
static size_t model_first(const struct fixture *fixture)
{
    size_t first = NODES;

    for (size_t i = 0; i < NODES; i++) {
        if (!fixture->is_in[i])
            continue;
        if (first == NODES || fixture->keys[i] < fixture->keys[first] ||
            (fixture->keys[i] == fixture->keys[first] &&
             fixture->orders[i] < fixture->orders[first]))
            first = i;
    }
    return first;
}

static void check_against_model(const struct fixture *fixture)
{
    size_t first = model_first(fixture), count = 0;

    for (size_t i = 0; i < NODES; i++) {
        assert_int_equal(det_heap_contains(&fixture->nodes[i]), fixture->is_in[i]);
        count += fixture->is_in[i] ? 1 : 0;
    }
    assert_int_equal(fixture->heap.count, count);
    assert_ptr_equal(
        det_heap_first(&fixture->heap), first == NODES ? NULL : &fixture->nodes[first]);
}

static void an_empty_heap_has_no_first(void **state)
{
    struct det_heap heap;

    (void)state;
    det_heap_init(&heap, NULL);
    assert_null(det_heap_first(&heap));
    det_heap_deinit(&heap);
}

static void equal_keys_leave_in_insertion_order(void **state)
{
    static struct fixture fixture;

    (void)state;
    init_fixture(&fixture, NULL);
    for (size_t i = 0; i < NODES; i++)
        assert_int_equal(insert(&fixture, i, 7), 0);
    /* A new key that is the old one still counts as a new insertion. */
    rekey(&fixture, 0, 7);
    for (size_t i = 1; i < NODES; i++) {
        assert_ptr_equal(det_heap_first(&fixture.heap), &fixture.nodes[i]);
        take_out(&fixture, i);
    }
    assert_ptr_equal(det_heap_first(&fixture.heap), &fixture.nodes[0]);
    det_heap_deinit(&fixture.heap);
}

static void keys_of_the_whole_range_are_ordered(void **state)
{
    static const int64_t keys[] = { 0, INT64_MAX, -1, INT64_MIN, 1 };
    static const size_t sorted[] = { 3, 2, 0, 4, 1 };
    static struct fixture fixture;

    (void)state;
    init_fixture(&fixture, NULL);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(insert(&fixture, i, keys[i]), 0);
    for (size_t i = 0; i < 5; i++) {
        assert_ptr_equal(det_heap_first(&fixture.heap), &fixture.nodes[sorted[i]]);
        take_out(&fixture, sorted[i]);
    }
    det_heap_deinit(&fixture.heap);
}

static void random_step(struct fixture *fixture, uint64_t *seed)
{
    size_t i = (size_t)(det_test_random(seed) % NODES);
    int64_t key = (int64_t)(det_test_random(seed) % 50) - 25;
    uint64_t choice = det_test_random(seed) % 3;

    if (!fixture->is_in[i])
        assert_int_equal(insert(fixture, i, key), 0);
    else if (choice == 0)
        take_out(fixture, i);
    else if (choice == 1)
        rekey(fixture, i, key);
    else
        take_out(fixture, model_first(fixture));
}

static void random_operations_agree_with_the_model(void **state)
{
    static struct fixture fixture;
    uint64_t seed = 8;

    (void)state;
    for (int round = 0; round < 10; round++) {
        struct det_test_memory memory;

        det_test_memory_init(&memory);
        init_fixture(&fixture, &memory.allocator);
        for (int step = 0; step < 3000; step++) {
            random_step(&fixture, &seed);
            check_against_model(&fixture);
        }
        while (fixture.heap.count > 0) {
            take_out(&fixture, model_first(&fixture));
            check_against_model(&fixture);
        }
        det_heap_deinit(&fixture.heap);
        det_test_memory_deinit(&memory);
    }
}

static void inserts_into_reserved_room_cannot_fail(void **state)
{
    static struct fixture fixture;
    struct det_test_memory memory;

    (void)state;
    det_test_memory_init(&memory);
    init_fixture(&fixture, &memory.allocator);
    assert_int_equal(det_heap_reserve(&fixture.heap, NODES), 0);
    memory.fail_at = memory.calls + 1;
    memory.fail_sticky = true;
    for (size_t i = 0; i < NODES; i++)
        assert_int_equal(insert(&fixture, i, (int64_t)i), 0);
    assert_false(memory.failed);
    det_heap_deinit(&fixture.heap);
    det_test_memory_deinit(&memory);
}

static void impossible_heap_capacity_is_out_of_memory(void **state)
{
    struct det_test_memory memory;
    struct det_heap heap;

    (void)state;
    det_test_memory_init(&memory);
    det_heap_init(&heap, &memory.allocator);
    /* Too many to double up to, and too many to multiply by their size. */
    assert_int_equal(det_heap_reserve(&heap, SIZE_MAX), DET_ERR_NO_MEMORY);
    assert_int_equal(det_heap_reserve(&heap, SIZE_MAX / 4), DET_ERR_NO_MEMORY);
    assert_int_equal(memory.calls, 0);
    assert_int_equal(heap.capacity, 0);
    det_heap_deinit(&heap);
    det_test_memory_deinit(&memory);
}

static int fill(struct det_test_memory *memory, void *argument)
{
    struct fixture *fixture = argument;
    int r = 0;

    init_fixture(fixture, &memory->allocator);
    for (size_t i = 0; i < NODES && r == 0; i++)
        r = insert(fixture, i, -(int64_t)i);
    check_against_model(fixture);
    det_heap_deinit(&fixture->heap);
    return r;
}

static void failed_allocation_changes_nothing(void **state)
{
    static struct fixture fixture;

    (void)state;
    det_test_each_failure(fill, &fixture);
}

static void insert_twice(void *argument)
{
    (void)insert(argument, 0, 1);
    (void)insert(argument, 0, 2);
}

static void remove_what_is_not_in(void *argument)
{
    take_out(argument, 1);
}

static void rekey_what_is_not_in(void *argument)
{
    rekey(argument, 1, 5);
}

static void misplaced_nodes_abort(void **state)
{
    static struct fixture fixture;

    (void)state;
    init_fixture(&fixture, NULL);
    assert_true(det_test_aborts(insert_twice, &fixture, "!det_heap_contains(node)"));
    assert_true(det_test_aborts(remove_what_is_not_in, &fixture, "node->position < heap->count"));
    assert_true(det_test_aborts(rekey_what_is_not_in, &fixture, "node->position < heap->count"));
    det_heap_deinit(&fixture.heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_heap_has_no_first),
        cmocka_unit_test(equal_keys_leave_in_insertion_order),
        cmocka_unit_test(keys_of_the_whole_range_are_ordered),
        cmocka_unit_test(random_operations_agree_with_the_model),
        cmocka_unit_test(inserts_into_reserved_room_cannot_fail),
        cmocka_unit_test(impossible_heap_capacity_is_out_of_memory),
        cmocka_unit_test(failed_allocation_changes_nothing),
        cmocka_unit_test(misplaced_nodes_abort),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
