/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* follow_test.c - a journal that is open for reading follows one that is written: acknowledged rows
 * only, across segments, without an error at the tail; locks, and the files' modes. */
#include <sys/stat.h>
#include <unistd.h>

#include "journal/disk_test.h"

static struct det_journal_options read_only(const struct bed *bed)
{
    struct det_journal_options options = bed->options;

    options.is_read_only = true;
    return options;
}

static void check_a_reader_in_another_opening_follows(struct bed *bed)
{
    struct det_journal_options options;
    struct det_journal *writer, *follower;
    struct det_journal_reader *reader;
    struct det_journal_row row;
    uint64_t at, next = 1, sequence;
    uint16_t stream, found;

    if (!bed->is_lasting)
        return;
    bed->options.segment_size = 65536;
    writer = bed_journal(bed);
    options = read_only(bed);
    assert_int_equal(0, det_journal_open(bed->url, &options, &follower, NULL));
    assert_int_equal(0, det_journal_end(follower));
    assert_int_equal(DET_ERR_READ_ONLY, append_numbers(follower, 1, NULL));
    assert_int_equal(DET_ERR_READ_ONLY, det_journal_release(follower, 1));
    assert_int_equal(DET_ERR_NOT_FOUND, det_journal_stream(follower, "late", &found, NULL));
    assert_int_equal(0, det_journal_reader_open(follower, NULL, &reader, NULL));
    assert_int_equal(DET_ERR_TIMEOUT, det_journal_reader_wait(reader, 0));
    assert_int_equal(0, det_journal_stream(writer, "late", &stream, NULL));
    for (int i = 0; i < 1500; i++) {
        assert_int_equal(0, append_numbers(writer, (size_t)i % 9 + 1, &at));
        assert_int_equal(0, det_journal_wait(writer, at, DET_NEVER));
        if (i % 7)
            continue;
        if (bed->options.durability != DET_JOURNAL_MEMORY)
            assert_int_equal(0, det_journal_reader_wait(reader, 0));
        while (det_journal_reader_next(reader, &row, NULL) == 1) {
            assert_int_equal(next++, row.position);
            assert_number(&row);
        }
        if (bed->options.durability != DET_JOURNAL_MEMORY)
            assert_int_equal(at + 1, next);
    }
    if (bed->options.durability != DET_JOURNAL_MEMORY)
        assert_true(det_journal_counts(writer).segments > 2);
    det_journal_close(writer);
    while (det_journal_reader_next(reader, &row, NULL) == 1)
        next++;
    assert_int_equal(at + 1, next);
    assert_int_equal(0, det_journal_stream(follower, "late", &found, NULL));
    assert_int_equal(stream, found);
    assert_int_equal(0, det_journal_last(follower, 0, &sequence, NULL));
    assert_int_equal(at, sequence);
    det_journal_reader_close(reader);
    det_journal_close(follower);
}

static void a_reader_in_another_opening_follows(void **state)
{
    (void)state;
    in_each_bed(check_a_reader_in_another_opening_follows);
}

/* With durability DISK only what the mark has. */
static void follower_does_not_see_rows_that_are_not_acknowledged(void **state)
{
    struct det_sim *sim = open_sim(3);
    struct det_world *world = det_sim_world(sim);
    struct det_sim_disk_faults faults = { .sync_error = 1000000 };
    struct det_sim_disk_faults none = { 0 };
    struct det_journal_options options = { .is_read_only = true };
    struct det_journal *writer, *follower;
    uint64_t at, end;

    (void)state;
    writer = must_open(world, NULL);
    append_groups(writer, 5, 5);
    end = det_journal_end(writer);
    det_sim_set_disk_faults(sim, &faults);
    assert_int_equal(0, append_numbers(writer, 5, &at));
    assert_int_equal(DET_ERR_IO, det_journal_wait(writer, at, DET_NEVER));
    det_sim_set_disk_faults(sim, &none);
    follower = must_open(world, &options);
    assert_int_equal(end, det_journal_end(follower));
    assert_int_equal(end + 1, read_numbers(follower, 0));
    det_journal_close(follower);
    det_journal_close(writer);
    det_sim_close(sim);
}

static void check_one_writer(struct bed *bed)
{
    struct det_journal_options must_exist = bed->options;
    struct det_journal *journal, *second;
    struct det_error error;

    if (!bed->is_lasting)
        return;
    must_exist.must_exist = true;
    assert_int_equal(DET_ERR_NOT_FOUND, det_journal_open(bed->url, &must_exist, &second, &error));
    journal = bed_journal(bed);
    assert_int_equal(DET_ERR_BUSY, det_journal_open(bed->url, &bed->options, &second, &error));
    assert_non_null(strstr(error.text, "another process, or another open journal, writes it"));
    det_journal_close(journal);
    assert_int_equal(0, det_journal_open(bed->url, &must_exist, &second, &error));
    det_journal_close(second);
}

static void a_second_writer_is_refused(void **state)
{
    (void)state;
    in_each_bed(check_one_writer);
}

static void files_are_for_their_owner_only_and_no_link_is_followed(void **state)
{
    static const char *const names[] = { "", "/head", "/mark", "/lock", "/segment-00000001" };
    struct det_journal *journal;
    struct det_error error;
    char path[600], moved[640];
    struct stat status;
    struct bed bed;

    (void)state;
    bed_open(&bed, BED_DISK);
    journal = bed_journal(&bed);
    append_groups(journal, 3, 3);
    det_journal_close(journal);
    for (int i = 0; i < 5; i++) {
        (void)snprintf(path, sizeof path, "%s/journal%s", bed.folder, names[i]);
        assert_int_equal(0, stat(path, &status));
        assert_int_equal(i == 0 ? 0 : 0600, status.st_mode & (i == 0 ? 0027 : 0777));
        if (i == 0)
            continue;
        (void)snprintf(moved, sizeof moved, "%s.moved", path);
        assert_int_equal(0, link(path, moved));
        assert_int_equal(0, unlink(path));
        assert_int_equal(0, symlink(moved, path));
        assert_int_equal(DET_ERR_IO, det_journal_open(bed.url, &bed.options, &journal, &error));
        assert_int_equal(0, unlink(path));
        assert_int_equal(0, link(moved, path));
    }
    journal = bed_journal(&bed);
    assert_int_equal(7, read_numbers(journal, 0));
    det_journal_close(journal);
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_in_another_opening_follows),
        cmocka_unit_test(follower_does_not_see_rows_that_are_not_acknowledged),
        cmocka_unit_test(a_second_writer_is_refused),
        cmocka_unit_test(files_are_for_their_owner_only_and_no_link_is_followed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
