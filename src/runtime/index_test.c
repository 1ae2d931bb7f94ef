/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* index_test.c - the index against a plain list, with hashes that collide on purpose. */
#include "lib/test.h"

#include "runtime/index.h"
#include "runtime/resident.h"

#define MANY 300

struct world {
    struct det_resident residents[MANY];
    char ids[MANY][8];
    bool is_in[MANY];
};

/* Few homes, so that runs are long and wrap round the end. */
static uint64_t bad_hash(unsigned i)
{
    return i % 7 == 0 ? UINT64_MAX : (uint64_t)(i % 5) * 3;
}

static struct world *world_open(void)
{
    struct world *world = calloc(1, sizeof *world);

    assert_non_null(world);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(world->ids[i], sizeof world->ids[i], "i%u", i);
        world->residents[i].id = world->ids[i];
    }
    return world;
}

static void assert_same(const struct world *world, const struct det_index *index)
{
    size_t in = 0, walked = 0;

    for (unsigned i = 0; i < MANY; i++) {
        const struct det_index_slot *slot = det_index_find(index, bad_hash(i), world->ids[i]);

        assert_ptr_equal(
            slot ? slot->resident : NULL, world->is_in[i] ? &world->residents[i] : NULL);
        in += world->is_in[i];
    }
    for (size_t cursor = 0; det_index_next(index, &cursor);)
        walked++;
    assert_int_equal(walked, in);
    assert_int_equal(index->count, in);
}

static void index_finds_entries_until_they_are_removed(void **state)
{
    struct world *world = world_open();
    struct det_index index;
    uint64_t seed = 3;

    (void)state;
    det_index_init(&index, NULL);
    det_index_remove(&index, 1, "none");
    for (int i = 0; i < 3000; i++) {
        unsigned n = (unsigned)(det_test_random(&seed) % MANY);

        if (world->is_in[n])
            det_index_remove(&index, bad_hash(n), world->ids[n]);
        else
            assert_int_equal(det_index_put(&index, bad_hash(n), &world->residents[n]), 0);
        world->is_in[n] = !world->is_in[n];
        det_index_prefetch(&index, bad_hash(n));
        if (i % 50 == 0)
            assert_same(world, &index);
    }
    assert_same(world, &index);
    det_index_deinit(&index);
    free(world);
}

static int fill(struct det_test_memory *memory, void *argument)
{
    struct world *world = argument;
    struct det_index index;
    int r = 0;

    det_index_init(&index, &memory->allocator);
    memset(world->is_in, 0, sizeof world->is_in);
    for (unsigned i = 0; r == 0 && i < 40; i++) {
        r = det_index_put(&index, bad_hash(i), &world->residents[i]);
        world->is_in[i] = r == 0;
        assert_same(world, &index);
    }
    det_index_deinit(&index);
    return r;
}

static void index_is_unchanged_by_failed_allocations(void **state)
{
    struct world *world = world_open();

    (void)state;
    det_test_each_failure(fill, world);
    free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_finds_entries_until_they_are_removed),
        cmocka_unit_test(index_is_unchanged_by_failed_allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
