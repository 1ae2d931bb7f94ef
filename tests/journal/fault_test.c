/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* fault_test.c - each file operation fails, each allocation fails: what was acknowledged stays, a
 * failure is final, and the journal opens again. */
#include "journal/disk_test.h"

struct scene {
    struct det_sim *sim;
    struct det_world *world;
    struct fault_world fault;
    uint64_t acknowledged, appended;
};

/* Appends until the journal fails; then it stays failed, and what was acknowledged is read. */
static int use_journal(struct scene *scene, struct det_journal *journal)
{
    struct det_error error = { 0 };
    uint64_t at = 0;
    uint16_t stream;
    int r;

    r = det_journal_stream(journal, "other", &stream, NULL);
    for (unsigned i = 0; r == 0 && i < 24; i++) {
        r = append_numbers(journal, i % 3 == 2 ? 60 : 2, &at);
        if (r == 0)
            scene->appended = at;
        if (r == 0)
            r = det_journal_wait(journal, at, DET_NEVER);
        if (r == 0)
            scene->acknowledged = at;
        if (r == 0 && i == 20)
            r = det_journal_release(journal, at - 100);
    }
    if (r < 0) {
        assert_int_equal(r, append_numbers(journal, 1, NULL));
        assert_int_equal(r, det_journal_wait(journal, scene->appended + 1, DET_NEVER));
        assert_int_equal(r, det_journal_failure(journal, &error));
        assert_true(error.code == r && strstr(error.text, FOLDER "/segment-"));
    }
    return r;
}

static void check_again(struct scene *scene, const struct det_journal_options *options)
{
    struct det_journal *journal = must_open(scene->world, options);
    uint64_t end = det_journal_end(journal);

    assert_true(end >= scene->acknowledged && end <= scene->appended);
    assert_int_equal(end + 1, read_numbers(journal, 0));
    append_groups(journal, 3, 3);
    assert_int_equal(end + 7, read_numbers(journal, 0));
    scene->acknowledged = scene->appended = end + 6;
    det_journal_close(journal);
}

/* Returns whether a failure was met. If no operation succeeds after it, it is like the end of the
 * process: another one continues with what the page cache has. Then the power fails, before that or
 * after. */
static bool run_scene(uint64_t fail_at, int code, bool is_sticky, bool has_cut)
{
    struct det_journal_options options = { .segment_size = 65536, .buffer_size = 4096 };
    struct scene scene = { .sim = open_sim(fail_at + 1) };
    struct det_journal *journal;
    struct det_error error;
    bool has_failed;

    scene.world = det_sim_world(scene.sim);
    fault_world_open(&scene.fault, scene.world, fail_at, code, is_sticky);
    for (int life = 0; life < 2; life++) {
        journal = try_open(scene.world, &options, &error);
        if (!journal) {
            assert_int_equal(code, error.code);
            assert_non_null(strstr(error.text, FOLDER));
            continue;
        }
        (void)use_journal(&scene, journal);
        det_journal_close(journal);
    }
    fault_world_close(&scene.fault);
    has_failed = scene.fault.has_failed;
    if (has_cut)
        det_sim_power_cut(scene.sim);
    check_again(&scene, &options);
    det_sim_power_cut(scene.sim);
    check_again(&scene, &options);
    det_sim_close(scene.sim);
    return has_failed;
}

static void fail_each_operation(int code)
{
    uint64_t operations = 0;

    for (int variant = 0; variant < 4; variant++) {
        uint64_t at = 1;

        while (run_scene(at, code, variant & 1, variant & 2))
            at++;
        operations += at - 1;
    }
    print_message("             %llu operations\n", (unsigned long long)operations);
    assert_true(operations > 400);
}

static void io_error_at_every_file_operation_loses_nothing(void **state)
{
    (void)state;
    fail_each_operation(DET_ERR_IO);
}

static void full_disk_at_every_file_operation_loses_nothing(void **state)
{
    (void)state;
    fail_each_operation(DET_ERR_NO_SPACE);
}

/* The failure poisons the journal: what was read before can be read, and a later sync is no
 * proof. */
static void failed_sync_is_final_and_acknowledged_rows_are_still_read(void **state)
{
    struct det_sim_disk_faults faults = { .sync_error = 1000000 };
    struct det_sim_disk_faults none = { 0 };
    struct det_sim *sim = open_sim(1);
    struct det_world *world = det_sim_world(sim);
    struct det_journal *journal = must_open(world, NULL);
    uint64_t end, at, syncs;

    (void)state;
    append_groups(journal, 10, 4);
    end = det_journal_end(journal);
    det_sim_set_disk_faults(sim, &faults);
    assert_int_equal(0, append_numbers(journal, 3, &at));
    assert_int_equal(DET_ERR_IO, det_journal_wait(journal, at, DET_NEVER));
    det_sim_set_disk_faults(sim, &none);
    syncs = det_journal_counts(journal).syncs;
    assert_int_equal(DET_ERR_IO, append_numbers(journal, 1, NULL));
    assert_int_equal(DET_ERR_IO, det_journal_wait(journal, at, DET_NEVER));
    assert_int_equal(end, det_journal_acknowledged(journal));
    assert_int_equal(end + 3, det_journal_end(journal));
    assert_int_equal(end + 1, read_numbers(journal, 0));
    det_journal_close(journal);
    det_sim_power_cut(sim);
    journal = must_open(world, NULL);
    assert_true(det_journal_end(journal) >= end);
    assert_int_equal(det_journal_end(journal) + 1, read_numbers(journal, 0));
    assert_true(syncs > 0);
    det_journal_close(journal);
    det_sim_close(sim);
}

struct shortage {
    struct det_world *world;
    uint64_t acknowledged;
};

static int use_with_shortage(struct det_test_memory *memory, void *argument)
{
    struct shortage *shortage = argument;
    struct det_journal_options options = {
        .allocator = &memory->allocator,
        .segment_size = 65536,
        .buffer_size = 4096,
    };
    struct det_journal_reader *reader = NULL;
    struct det_journal *journal;
    struct det_journal_row row;
    struct det_error error;
    uint64_t at, end;
    uint16_t stream;
    int r = 0;

    journal = try_open(shortage->world, &options, &error);
    if (!journal)
        return error.code;
    assert_true(det_journal_end(journal) >= shortage->acknowledged);
    r = det_journal_stream(journal, "x", &stream, NULL);
    for (int i = 0; i < 20 && r == 0; i++) {
        end = det_journal_end(journal);
        r = append_numbers(journal, i % 5 == 4 ? 60 : 3, &at);
        assert_true(r == 0 || det_journal_end(journal) == end);
        if (r == 0)
            r = det_journal_wait(journal, at, DET_NEVER);
    }
    assert_int_equal(0, det_journal_failure(journal, NULL));
    shortage->acknowledged = det_journal_acknowledged(journal);
    if (r == 0)
        r = det_journal_reader_open(journal, NULL, &reader, NULL);
    while (r == 0 && (r = det_journal_reader_next(reader, &row, NULL)) == 1) {
        assert_number(&row);
        r = 0;
        if (row.position == det_journal_end(journal))
            break;
    }
    det_journal_reader_close(reader);
    det_journal_close(journal);
    return r;
}

static void failed_allocation_is_an_error_and_no_failure_of_the_journal(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct shortage shortage = { .world = det_sim_world(sim) };

    (void)state;
    det_test_each_failure(use_with_shortage, &shortage);
    det_sim_close(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(io_error_at_every_file_operation_loses_nothing),
        cmocka_unit_test(full_disk_at_every_file_operation_loses_nothing),
        cmocka_unit_test(failed_sync_is_final_and_acknowledged_rows_are_still_read),
        cmocka_unit_test(failed_allocation_is_an_error_and_no_failure_of_the_journal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
