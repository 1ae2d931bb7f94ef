/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* disk_test.c - the simulated disk while it is up: faults, growth, want of memory. */
#include "os/sim/disk_cases.h"

#include "os/sim/disk.h"

static void open_files_are_invalid_after_a_power_cut(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_world *world = det_sim_world(sim);
    struct det_file *file = open_file(world, "a");
    char byte;

    (void)state;
    assert_int_equal(0, det_file_write(world, file, 0, "x", 1));
    det_sim_power_cut(sim);
    assert_int_equal(DET_ERR_IO, det_file_read(world, file, 0, &byte, 1));
    assert_int_equal(DET_ERR_IO, det_file_write(world, file, 0, "x", 1));
    assert_int_equal(DET_ERR_IO, det_file_sync(world, file));
    assert_int_equal(DET_ERR_IO, det_file_truncate(world, file, 0));
    assert_int_equal(DET_ERR_IO, det_file_size(world, file));
    det_file_close(world, file);
    det_sim_close(sim);
}

static void bytes_of_a_failed_sync_are_readable_but_lost(void **state)
{
    const struct det_sim_disk_faults fail = { .sync_error = 1000000 }, none = { 0 };

    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct det_sim *sim = open_sim(seed);
        struct det_world *world = det_sim_world(sim);
        struct det_file *file;

        make_durable(world, "a", 'o', BLOCK);
        file = open_file(world, "a");
        assert_int_equal(0, det_file_write(world, file, 0, "n", 1));
        det_sim_set_disk_faults(sim, &fail);
        assert_int_equal(DET_ERR_IO, det_file_sync(world, file));
        det_sim_set_disk_faults(sim, &none);
        assert_int_equal(CONTENT_TORN, content_of(world, "a", BLOCK));
        assert_int_equal(0, det_file_sync(world, file));
        det_file_close(world, file);
        det_sim_power_cut(sim);
        assert_int_equal(CONTENT_OLD, content_of(world, "a", BLOCK));
        /* The same for names. */
        assert_int_equal(0, det_file_remove(world, "a"));
        det_sim_set_disk_faults(sim, &fail);
        assert_int_equal(DET_ERR_IO, det_folder_sync(world, "."));
        det_sim_set_disk_faults(sim, &none);
        assert_int_equal(CONTENT_MISSING, content_of(world, "a", BLOCK));
        assert_int_equal(0, det_folder_sync(world, "."));
        det_sim_power_cut(sim);
        assert_int_equal(CONTENT_OLD, content_of(world, "a", BLOCK));
        det_sim_close(sim);
    }
}

static void a_failed_write_leaves_a_first_part(void **state)
{
    const struct det_sim_disk_faults fail = { .write_error = 1000000 };
    char data[100], found[100];
    int64_t least = INT64_MAX, most = 0;

    (void)state;
    memset(data, 'n', sizeof data);
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct det_sim *sim = open_sim(seed);
        struct det_world *world = det_sim_world(sim);
        struct det_file *file = open_file(world, "a");
        int64_t size;

        det_sim_set_disk_faults(sim, &fail);
        assert_int_equal(DET_ERR_IO, det_file_write(world, file, 0, data, sizeof data));
        size = det_file_read(world, file, 0, found, sizeof found);
        assert_in_range(size, 0, sizeof data);
        assert_memory_equal(data, found, (size_t)size);
        least = size < least ? size : least;
        most = size > most ? size : most;
        det_file_close(world, file);
        det_sim_close(sim);
    }
    assert_true(least < 10 && most > 90);
}

static void a_failed_read_and_a_full_disk_change_nothing(void **state)
{
    const struct det_sim_disk_faults full = { .no_space = 1000000 };
    const struct det_sim_disk_faults unreadable = { .read_error = 1000000 }, none = { 0 };
    struct det_sim *sim = open_sim(1);
    struct det_world *world = det_sim_world(sim);
    struct det_file *file;
    size_t size;
    char *data;

    (void)state;
    make_durable(world, "a", 'o', 10);
    det_sim_set_disk_faults(sim, &full);
    file = open_file(world, "a");
    assert_int_equal(DET_ERR_NO_SPACE, det_file_write(world, file, 0, "n", 1));
    assert_int_equal(DET_ERR_NO_SPACE, det_file_replace(world, "a", "n", 1));
    det_sim_set_disk_faults(sim, &unreadable);
    assert_int_equal(DET_ERR_IO, det_file_load(world, NULL, "a", 100, &data, &size));
    det_sim_set_disk_faults(sim, &none);
    assert_int_equal(CONTENT_OLD, content_of(world, "a", 10));
    assert_int_equal(CONTENT_MISSING, content_of(world, "a.tmp", 10));
    assert_int_equal(DET_ERR_NO_SPACE, det_file_write(world, file, DET_DISK_FILE_MAX, "n", 1));
    assert_int_equal(DET_ERR_NO_SPACE, det_file_truncate(world, file, DET_DISK_FILE_MAX + 1));
    det_file_close(world, file);
    det_sim_close(sim);
}

static void a_file_keeps_its_bytes_while_it_grows(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_world *world = det_sim_world(sim);
    struct det_file *file = open_file(world, "a");
    char data[BLOCK];

    (void)state;
    memset(data, 'n', sizeof data);
    for (uint64_t i = 0; i < BLOCK; i += 100) {
        assert_int_equal(0, det_file_write(world, file, i, data, i + 100 < BLOCK ? 100 : 48));
        if (i % 300 == 0)
            assert_int_equal(0, det_file_sync(world, file));
    }
    assert_int_equal(0, det_file_sync(world, file));
    assert_int_equal(0, det_folder_sync(world, "."));
    assert_int_equal(CONTENT_NEW, content_of(world, "a", BLOCK));
    det_file_close(world, file);
    det_sim_power_cut(sim);
    assert_int_equal(CONTENT_NEW, content_of(world, "a", BLOCK));
    det_sim_close(sim);
}

static int use_disk(struct det_test_memory *memory, void *argument)
{
    struct det_sim *sim = NULL;
    struct det_world *world;
    int r;

    (void)argument;
    r = det_sim_open(&(struct det_sim_options){ .allocator = &memory->allocator }, &sim, NULL);
    if (r < 0)
        return r;
    world = det_sim_world(sim);
    r = world->ops->folder_make(world, "folder");
    if (r == 0)
        r = det_file_replace(world, "folder/a", "oooo", 4);
    if (r == 0) {
        char data[BLOCK];

        memset(data, 'n', sizeof data);
        r = det_file_replace(world, "folder/a", data, sizeof data);
        /* A cut needs no memory, and finds one of the two. */
        det_sim_power_cut(sim);
        memory->fail_at = 0;
        memory->fail_sticky = false;
        assert_int_equal(
            r == 0 ? CONTENT_NEW : CONTENT_OLD, content_of(world, "folder/a", r == 0 ? BLOCK : 4));
    }
    det_sim_close(sim);
    return r;
}

static void simulated_disk_survives_every_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(use_disk, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_files_are_invalid_after_a_power_cut),
        cmocka_unit_test(bytes_of_a_failed_sync_are_readable_but_lost),
        cmocka_unit_test(a_failed_write_leaves_a_first_part),
        cmocka_unit_test(a_failed_read_and_a_full_disk_change_nothing),
        cmocka_unit_test(a_file_keeps_its_bytes_while_it_grows),
        cmocka_unit_test(simulated_disk_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
