/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* power_test.c - when the power goes: what is synced survives, what is not may not, and code that
 * trusts the disk too much is found out. */
#include <detent/driver/sim.h>

#include "os/sim/disk_cases.h"

#include <signal.h>

#include "os/sim/disk.h"
#include "os/sim/seeds_cases.h"

typedef void way_of_writing(
    struct det_world *world, const char *path, const char *data, size_t size);

/* How often each outcome came about, for a file that was old and durable (or not there, when
 * `size_before` is 0) and was then written in some way. */
static void count_outcomes(way_of_writing *write, size_t size_before, size_t size, int outcomes[4])
{
    uint64_t count = seeds_count(300);
    char data[BLOCK];

    memset(data, 'n', sizeof data);
    memset(outcomes, 0, 4 * sizeof *outcomes);
    for (uint64_t seed = 0; seed < count; seed++) {
        struct det_sim *sim = open_sim(seed);
        struct det_world *world = det_sim_world(sim);

        if (size_before)
            make_durable(world, "folder/a", 'o', size_before);
        write(world, "folder/a", data, size);
        assert_int_equal(CONTENT_NEW, content_of(world, "folder/a", size));
        det_sim_power_cut(sim);
        outcomes[content_of(world, "folder/a", size)]++;
        det_sim_close(sim);
    }
}

static void overwrite(struct det_world *world, const char *path, const char *data, size_t size)
{
    struct det_file *file = open_file(world, path);

    assert_int_equal(0, det_file_write(world, file, 0, data, size));
    det_file_close(world, file);
}

static void overwrite_and_sync(
    struct det_world *world, const char *path, const char *data, size_t size)
{
    struct det_file *file = open_file(world, path);

    assert_int_equal(0, det_file_write(world, file, 0, data, size));
    assert_int_equal(0, det_file_sync(world, file));
    det_file_close(world, file);
}

static void rename_unsynced(
    struct det_world *world, const char *path, const char *data, size_t size)
{
    overwrite(world, "folder/b", data, size);
    assert_int_equal(0, world->ops->file_rename(world, "folder/b", path));
    assert_int_equal(0, det_folder_sync(world, "folder/"));
}

static void replace(struct det_world *world, const char *path, const char *data, size_t size)
{
    assert_int_equal(0, det_file_replace(world, path, data, size));
}

static void an_overwrite_without_sync_is_kept_lost_or_torn(void **state)
{
    int outcomes[4];

    (void)state;
    count_outcomes(overwrite, BLOCK, BLOCK, outcomes);
    assert_int_equal(0, outcomes[CONTENT_MISSING]);
    assert_true(outcomes[CONTENT_OLD] && outcomes[CONTENT_NEW] && outcomes[CONTENT_TORN]);
    print_message(
        "             old %d, new %d, torn %d\n", outcomes[CONTENT_OLD], outcomes[CONTENT_NEW],
        outcomes[CONTENT_TORN]);
}

static void a_sector_is_not_torn(void **state)
{
    int outcomes[4];

    (void)state;
    count_outcomes(overwrite, DET_DISK_SECTOR, DET_DISK_SECTOR, outcomes);
    assert_true(outcomes[CONTENT_OLD] && outcomes[CONTENT_NEW]);
    assert_int_equal(0, outcomes[CONTENT_TORN]);
}

static void synced_file_in_an_unsynced_folder_is_missing_or_whole(void **state)
{
    int outcomes[4];

    (void)state;
    count_outcomes(overwrite_and_sync, 0, BLOCK, outcomes);
    assert_true(outcomes[CONTENT_MISSING] && outcomes[CONTENT_NEW]);
    assert_int_equal(0, outcomes[CONTENT_OLD] + outcomes[CONTENT_TORN]);
}

static void a_rename_of_unsynced_bytes_may_show_a_torn_file(void **state)
{
    int outcomes[4];

    (void)state;
    count_outcomes(rename_unsynced, BLOCK, BLOCK, outcomes);
    assert_true(outcomes[CONTENT_TORN] && outcomes[CONTENT_NEW]);
    assert_int_equal(0, outcomes[CONTENT_OLD] + outcomes[CONTENT_MISSING]);
}

static void file_synced_with_its_folder_survives(void **state)
{
    int outcomes[4];

    (void)state;
    count_outcomes(overwrite_and_sync, BLOCK, BLOCK, outcomes);
    assert_int_equal(0, outcomes[CONTENT_OLD] + outcomes[CONTENT_TORN] + outcomes[CONTENT_MISSING]);
    count_outcomes(replace, 0, BLOCK, outcomes);
    assert_int_equal(0, outcomes[CONTENT_OLD] + outcomes[CONTENT_TORN] + outcomes[CONTENT_MISSING]);
}

#define VERSIONS 6

/* The last version that a program said was on the disk. */
static int acknowledged;
/* How often the power went when that stood at each version. */
static int reached[VERSIONS];

/* Replaces a file again and again by longer ones. */
static int program_replace(struct det_world *world, int argc, const char *const *argv)
{
    char data[VERSIONS * 700];

    (void)argc;
    (void)argv;
    for (int version = 1; version < VERSIONS; version++) {
        memset(data, 'a' + version, sizeof data);
        if (det_file_replace(world, "folder/a", data, (size_t)version * 700) == 0)
            acknowledged = version;
    }
    return 0;
}

/* The version that the whole file has; -1: a mixture. */
static int version_of(struct det_world *world)
{
    char *data;
    size_t size;
    int version;

    if (det_file_load(world, NULL, "folder/a", SIZE_MAX, &data, &size) < 0)
        return 0;
    version = size ? data[0] - 'a' : -1;
    if (version < 1 || size != (size_t)version * 700)
        version = -1;
    for (size_t i = 0; i < size; i++)
        if (data[i] != data[0])
            version = -1;
    det_free(NULL, data, size + 1);
    return version;
}

/* The program dies with the power: what it would have done after that does not count. */
static void cut_while_replacing(uint64_t seed, const struct det_sim_disk_faults *faults)
{
    const struct det_sim_disk_faults none = { 0 };
    const struct det_sim_options options = { .seed = seed, .preempt = 500000, .disk = *faults };
    const struct det_process_options program = { .argv = (const char *const[]){ "replace", NULL } };
    struct det_process *process;
    struct det_world *world;
    struct det_sim *sim;

    acknowledged = 0;
    assert_int_equal(0, det_sim_open(&options, &sim, NULL));
    world = det_sim_world(sim);
    assert_int_equal(0, det_sim_program(sim, "replace", program_replace));
    assert_int_equal(0, world->ops->process_start(world, &program, &process, NULL));
    for (uint64_t left = det_sim_random_below(sim, 60); left; left--)
        det_thread_preempt(world);
    assert_int_equal(0, world->ops->process_kill(world, process, SIGKILL));
    det_sim_power_cut(sim);
    world->ops->process_close(world, process);
    det_sim_set_disk_faults(sim, &none);
    reached[acknowledged]++;
    assert_true(version_of(world) >= acknowledged);
    det_sim_close(sim);
}

static void a_replaced_file_is_the_old_or_the_new_one_whenever_the_power_goes(void **state)
{
    const struct det_sim_disk_faults none = { 0 }, some = { 100000, 100000, 100000, 100000 };
    uint64_t count = seeds_count(2000);

    (void)state;
    for (uint64_t seed = 0; seed < count; seed++) {
        cut_while_replacing(seed, &none);
        cut_while_replacing(seed, &some);
    }
    /* The power went at every stage. */
    for (int i = 0; i < VERSIONS; i++)
        assert_true(reached[i] > 0);
}

static void a_later_write_may_survive_an_earlier_one(void **state)
{
    uint64_t count = seeds_count(300), first_only = 0, second_only = 0;

    (void)state;
    for (uint64_t seed = 0; seed < count; seed++) {
        struct det_sim *sim = open_sim(seed);
        struct det_world *world = det_sim_world(sim);
        struct det_file *file;
        char found[2];

        make_durable(world, "a", 'o', BLOCK);
        file = open_file(world, "a");
        assert_int_equal(0, det_file_write(world, file, 0, "1", 1));
        assert_int_equal(0, det_file_write(world, file, 1000, "2", 1));
        det_file_close(world, file);
        det_sim_power_cut(sim);
        file = open_file(world, "a");
        assert_int_equal(1, det_file_read(world, file, 0, &found[0], 1));
        assert_int_equal(1, det_file_read(world, file, 1000, &found[1], 1));
        first_only += found[0] == '1' && found[1] == 'o';
        second_only += found[0] == 'o' && found[1] == '2';
        det_file_close(world, file);
        det_sim_close(sim);
    }
    assert_true(first_only && second_only);
}

/* True if all bytes are equal. */
static bool is_uniform(const char *data, size_t size)
{
    for (size_t i = 1; i < size; i++)
        if (data[i] != data[0])
            return false;
    return true;
}

static void a_write_is_torn_only_where_sectors_meet(void **state)
{
    uint64_t count = seeds_count(300), torn = 0;
    char data[1000], found[BLOCK];

    (void)state;
    memset(data, 'n', sizeof data);
    for (uint64_t seed = 0; seed < count; seed++) {
        struct det_sim *sim = open_sim(seed);
        struct det_world *world = det_sim_world(sim);
        struct det_file *file;

        make_durable(world, "a", 'o', BLOCK);
        file = open_file(world, "a");
        assert_int_equal(0, det_file_write(world, file, 100, data, sizeof data));
        det_file_close(world, file);
        det_sim_power_cut(sim);
        file = open_file(world, "a");
        assert_int_equal(BLOCK, det_file_read(world, file, 0, found, sizeof found));
        det_file_close(world, file);
        det_sim_close(sim);
        assert_true(
            is_uniform(found + 100, 412) && is_uniform(found + 512, 512) &&
            is_uniform(found + 1024, 76));
        assert_true(found[0] == 'o' && found[99] == 'o' && found[1100] == 'o');
        torn += !is_uniform(found + 100, 1000);
    }
    assert_in_range(torn, 1, count - 1);
}

static void a_truncation_without_sync_is_kept_or_lost(void **state)
{
    uint64_t count = seeds_count(100), kept = 0, lost = 0;

    (void)state;
    for (uint64_t seed = 0; seed < count; seed++) {
        struct det_sim *sim = open_sim(seed);
        struct det_world *world = det_sim_world(sim);
        struct det_file *file;

        make_durable(world, "a", 'o', BLOCK);
        file = open_file(world, "a");
        assert_int_equal(0, det_file_truncate(world, file, 10));
        det_file_close(world, file);
        det_sim_power_cut(sim);
        file = open_file(world, "a");
        kept += det_file_size(world, file) == 10;
        lost += det_file_size(world, file) == BLOCK;
        det_file_close(world, file);
        det_sim_close(sim);
    }
    assert_true(kept && lost && kept + lost == count);
}

static void a_removal_and_a_folder_are_durable_with_their_folder(void **state)
{
    uint64_t count = seeds_count(100), back = 0, folders = 0;

    (void)state;
    for (uint64_t seed = 0; seed < count; seed++) {
        struct det_sim *sim = open_sim(seed);
        struct det_world *world = det_sim_world(sim);

        make_durable(world, "/x/a", 'o', 1);
        make_durable(world, "b", 'o', 1);
        assert_int_equal(0, det_file_remove(world, "/x/a"));
        assert_int_equal(0, det_file_remove(world, "b"));
        assert_int_equal(0, world->ops->folder_make(world, "/y"));
        assert_int_equal(0, det_folder_sync(world, "."));
        det_sim_power_cut(sim);
        assert_int_equal(CONTENT_MISSING, content_of(world, "b", 1));
        back += content_of(world, "/x/a", 1) == CONTENT_OLD;
        folders += world->ops->folder_make(world, "/y") == DET_ERR_EXISTS;
        assert_int_equal(0, det_folder_sync(world, "/"));
        det_sim_power_cut(sim);
        assert_int_equal(DET_ERR_EXISTS, world->ops->folder_make(world, "/y"));
        det_sim_close(sim);
    }
    assert_in_range(back, 1, count - 1);
    assert_in_range(folders, 1, count - 1);
}

/* The rename belongs to the folder it goes to; what took the old place since is not its own. */
static void a_late_rename_does_not_remove_what_came_after_it(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_world *world = det_sim_world(sim);

    (void)state;
    make_durable(world, "x/a", 'o', BLOCK);
    assert_int_equal(0, world->ops->file_rename(world, "x/a", "y/a"));
    make_durable(world, "x/a", 'n', BLOCK);
    assert_int_equal(0, det_folder_sync(world, "y"));
    det_sim_power_cut(sim);
    assert_int_equal(CONTENT_NEW, content_of(world, "x/a", BLOCK));
    assert_int_equal(CONTENT_OLD, content_of(world, "y/a", BLOCK));
    det_sim_close(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_overwrite_without_sync_is_kept_lost_or_torn),
        cmocka_unit_test(a_sector_is_not_torn),
        cmocka_unit_test(synced_file_in_an_unsynced_folder_is_missing_or_whole),
        cmocka_unit_test(a_rename_of_unsynced_bytes_may_show_a_torn_file),
        cmocka_unit_test(file_synced_with_its_folder_survives),
        cmocka_unit_test(a_replaced_file_is_the_old_or_the_new_one_whenever_the_power_goes),
        cmocka_unit_test(a_late_rename_does_not_remove_what_came_after_it),
        cmocka_unit_test(a_later_write_may_survive_an_earlier_one),
        cmocka_unit_test(a_write_is_torn_only_where_sectors_meet),
        cmocka_unit_test(a_truncation_without_sync_is_kept_or_lost),
        cmocka_unit_test(a_removal_and_a_folder_are_durable_with_their_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
