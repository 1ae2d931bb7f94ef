/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract_test.c - the contract of journal.h, in each driver, with each durability. */
#include "journal/journal_test.h"

static void assert_row(const struct det_journal_row *row, uint64_t position, const char *text)
{
    assert_int_equal(position, row->position);
    assert_int_equal(strlen(text), row->size);
    assert_memory_equal(text, row->data, row->size);
}

static void check_rows_are_read_as_they_were_appended(struct bed *bed)
{
    struct det_journal *journal = bed_journal(bed);
    struct det_journal_reader *reader;
    struct det_journal_row rows[3] = {
        { .data = "one", .size = 3, .kind = 7 },
        { .data = NULL, .size = 0, .parent = 1, .correlation = 1, .event_time = 42 },
        { .data = "threethree", .size = 10, .is_cause_unknown = true },
    };
    struct det_journal_row row;
    uint64_t at;

    assert_int_equal(0, det_journal_end(journal));
    assert_int_equal(1, det_journal_begin(journal));
    assert_int_equal(0, det_journal_append(journal, rows, 3, &at, NULL));
    assert_int_equal(3, at);
    assert_int_equal(3, det_journal_end(journal));
    assert_int_equal(0, det_journal_wait(journal, at, DET_NEVER));
    assert_int_equal(3, det_journal_acknowledged(journal));
    assert_int_equal(0, det_journal_wait(journal, at, 0));
    assert_int_equal(0, det_journal_reader_open(journal, NULL, &reader, NULL));
    assert_int_equal(1, det_journal_reader_next(reader, &row, NULL));
    assert_row(&row, 1, "one");
    assert_int_equal(7, row.kind);
    assert_int_equal(1, row.sequence);
    assert_int_equal(1, row.correlation);
    assert_true(row.at > 0 && row.event_time == row.at && !row.is_group_end);
    assert_int_equal(1, det_journal_reader_next(reader, &row, NULL));
    assert_row(&row, 2, "");
    assert_true(row.parent == 1 && row.correlation == 1 && row.event_time == 42);
    assert_int_equal(1, det_journal_reader_next(reader, &row, NULL));
    assert_row(&row, 3, "threethree");
    assert_true(row.is_cause_unknown && row.is_group_end && row.correlation == 3);
    assert_int_equal(0, det_journal_reader_next(reader, &row, NULL));
    append_text_to(journal, 0, "four");
    assert_int_equal(0, det_journal_reader_wait(reader, DET_NEVER));
    assert_int_equal(1, det_journal_reader_next(reader, &row, NULL));
    assert_row(&row, 4, "four");
    det_journal_reader_close(reader);
    det_journal_close(journal);
}

static void check_streams_have_numbers_names_and_sequences(struct bed *bed)
{
    struct det_journal *journal = bed_journal(bed);
    uint64_t sequence, position;
    uint16_t a, b, again;

    assert_int_equal(0, det_journal_stream(journal, "main", &a, NULL));
    assert_int_equal(0, a);
    assert_int_equal(0, det_journal_stream(journal, "parse.errors", &a, NULL));
    assert_int_equal(0, det_journal_stream(journal, "b", &b, NULL));
    assert_int_equal(0, det_journal_stream(journal, "parse.errors", &again, NULL));
    assert_true(a == 1 && b == 2 && again == 1);
    assert_string_equal("parse.errors", det_journal_stream_name(journal, a));
    assert_null(det_journal_stream_name(journal, 3));
    append_text_to(journal, a, "x");
    append_text_to(journal, b, "y");
    append_text_to(journal, a, "z");
    assert_int_equal(0, det_journal_last(journal, a, &sequence, &position));
    assert_true(sequence == 2 && position == 3);
    assert_int_equal(0, det_journal_last(journal, 0, &sequence, &position));
    assert_true(sequence == 0 && position == 0);
    assert_int_equal(DET_ERR_NOT_FOUND, det_journal_last(journal, 9, NULL, NULL));
    assert_int_equal(DET_ERR_INVALID, det_journal_stream(journal, "", &a, NULL));
    assert_int_equal(DET_ERR_INVALID, det_journal_stream(journal, "No", &a, NULL));
    det_journal_close(journal);
}

static void check_reader_of_one_stream_skips_the_others(struct bed *bed)
{
    struct det_journal *journal = bed_journal(bed);
    struct det_journal_reader *reader;
    struct det_journal_row row;
    struct det_error error = { 0 };
    uint16_t streams[40];
    uint64_t seen = 0;

    for (int i = 0; i < 40; i++) {
        char name[8];

        (void)snprintf(name, sizeof name, "s%d", i);
        assert_int_equal(0, det_journal_stream(journal, name, &streams[i], NULL));
    }
    for (int i = 0; i < 4000; i++)
        append_text_to(journal, streams[i % 40], "text");
    assert_int_equal(0, det_journal_wait(journal, 4000, DET_NEVER));
    assert_int_equal(
        0, det_journal_reader_open(
               journal,
               &(struct det_journal_reader_options){
                   .from = 100, .until = 3900, .one_stream = true, .stream = streams[5] },
               &reader, NULL));
    while (det_journal_reader_next(reader, &row, &error) == 1) {
        assert_int_equal(streams[5], row.stream);
        assert_int_equal((row.position - 6) / 40 + 1, row.sequence);
        assert_true(row.position >= 100 && row.position <= 3900);
        seen++;
    }
    assert_string_equal("", error.text);
    assert_int_equal(DET_ERR_RANGE, det_journal_reader_wait(reader, DET_NEVER));
    assert_int_equal(95, seen);
    det_journal_reader_close(reader);
    det_journal_close(journal);
}

static void check_what_cannot_be_appended_is_refused_with_its_row(struct bed *bed)
{
    struct det_journal *journal = bed_journal(bed);
    static const char large[DET_JOURNAL_ROW_MAX + 1];
    struct det_journal_row rows[20];
    struct det_error error;

    memset(rows, 0, sizeof rows);
    assert_int_equal(DET_ERR_INVALID, det_journal_append(journal, rows, 0, NULL, &error));
    rows[1].stream = 3;
    assert_int_equal(DET_ERR_INVALID, det_journal_append(journal, rows, 2, NULL, &error));
    assert_string_equal("row 2 of the group: its stream is unknown", error.text);
    rows[1] = (struct det_journal_row){ .parent = 2 };
    assert_int_equal(DET_ERR_INVALID, det_journal_append(journal, rows, 2, NULL, &error));
    rows[1] = (struct det_journal_row){ .data = large, .size = sizeof large };
    assert_int_equal(DET_ERR_LIMIT, det_journal_offer(journal, rows, 2, NULL, &error));
    for (int i = 0; i < 20; i++)
        rows[i] = (struct det_journal_row){ .data = large, .size = DET_JOURNAL_ROW_MAX };
    assert_int_equal(DET_ERR_LIMIT, det_journal_append(journal, rows, 20, NULL, &error));
    assert_int_equal(0, det_journal_end(journal));
    assert_int_equal(0, det_journal_append(journal, rows, 15, NULL, &error));
    assert_int_equal(15, det_journal_end(journal));
    assert_int_equal(DET_ERR_RANGE, det_journal_wait(journal, 16, 0));
    det_journal_close(journal);
}

static void check_rows_survive_a_close(struct bed *bed)
{
    struct det_journal *journal = bed_journal(bed);
    uint64_t sequence, position;
    uint16_t stream;

    assert_int_equal(0, det_journal_stream(journal, "a", &stream, NULL));
    for (int i = 0; i < 50; i++)
        assert_int_equal(0, append_numbers(journal, (size_t)i % 7 + 1, NULL));
    if (!bed->is_lasting) {
        det_journal_close(journal);
        return;
    }
    for (int i = 0; i < 3; i++) {
        uint64_t end = det_journal_end(journal);

        det_journal_close(journal);
        journal = bed_journal(bed);
        assert_int_equal(end, det_journal_end(journal));
        assert_int_equal(end, det_journal_acknowledged(journal));
        assert_int_equal(end + 1, read_numbers(journal, 0));
        assert_int_equal(0, det_journal_counts(journal).torn);
        assert_int_equal(0, append_numbers(journal, 9, NULL));
    }
    assert_int_equal(0, det_journal_stream(journal, "b", &stream, NULL));
    assert_int_equal(2, stream);
    assert_int_equal(0, det_journal_last(journal, 0, &sequence, &position));
    assert_int_equal(det_journal_end(journal), sequence);
    assert_int_equal(sequence, position);
    det_journal_close(journal);
    journal = bed_journal(bed);
    assert_string_equal("b", det_journal_stream_name(journal, 2));
    det_journal_close(journal);
}

/* A group is larger than both buffers, and than a segment. */
static void check_large_groups_are_kept_whole(struct bed *bed)
{
    static char large[DET_JOURNAL_ROW_MAX];
    struct det_journal_row rows[15], row;
    struct det_journal_reader *reader;
    struct det_journal *journal;
    uint64_t at;

    bed->options.buffer_size = 4096;
    bed->options.segment_size = 65536;
    journal = bed_journal(bed);
    memset(large, 'x', sizeof large);
    for (int i = 0; i < 15; i++)
        rows[i] = (struct det_journal_row){ .data = large, .size = sizeof large };
    for (int i = 0; i < 2; i++) {
        append_text_to(journal, 0, "small");
        assert_int_equal(0, det_journal_append(journal, rows, 15, &at, NULL));
    }
    assert_int_equal(0, det_journal_wait(journal, at, DET_NEVER));
    assert_int_equal(0, det_journal_reader_open(journal, NULL, &reader, NULL));
    for (uint64_t i = 1; i <= 32; i++) {
        assert_int_equal(1, det_journal_reader_next(reader, &row, NULL));
        assert_int_equal(i, row.position);
        assert_int_equal(i % 16 == 1 ? 5 : sizeof large, row.size);
        assert_int_equal(i % 16 <= 1, row.is_group_end);
    }
    assert_int_equal(0, det_journal_reader_next(reader, &row, NULL));
    det_journal_reader_close(reader);
    det_journal_close(journal);
}

/* Readers begin at each position of a journal of several segments. */
static void check_a_reader_begins_at_any_position(struct bed *bed)
{
    struct det_journal *journal;
    uint64_t end = 0;

    bed->options.segment_size = 65536;
    bed->options.buffer_size = 8192;
    journal = bed_journal(bed);
    while (end < 6000)
        assert_int_equal(0, append_numbers(journal, end % 11 + 1, &end));
    assert_int_equal(0, det_journal_wait(journal, end, DET_NEVER));
    if (bed->is_lasting)
        assert_true(det_journal_counts(journal).segments > 3);
    for (uint64_t from = 1; from <= end + 1; from += from < 20 || from > end - 20 ? 1 : 97)
        assert_int_equal(end + 1, read_numbers(journal, from));
    det_journal_close(journal);
}

/* Rows are read before they are written, and each one once. */
static void check_unacknowledged_rows_can_be_read(struct bed *bed)
{
    struct det_journal_reader_options options = { .unacknowledged = true };
    struct det_journal_reader *reader;
    struct det_journal *journal;
    struct det_journal_row row;
    uint64_t next = 1, end;

    bed->options.buffer_size = 4096;
    journal = bed_journal(bed);
    assert_int_equal(0, det_journal_reader_open(journal, &options, &reader, NULL));
    assert_int_equal(0, det_journal_reader_next(reader, &row, NULL));
    for (int i = 0; i < 300; i++) {
        assert_int_equal(0, append_numbers(journal, (size_t)i % 5 + 1, &end));
        if (i % 3 == 0)
            continue;
        if (i % 50 == 1)
            assert_int_equal(0, det_journal_wait(journal, end, DET_NEVER));
        assert_int_equal(0, det_journal_reader_wait(reader, 0));
        while (det_journal_reader_next(reader, &row, NULL) == 1) {
            assert_int_equal(next++, row.position);
            assert_number(&row);
        }
        assert_int_equal(end + 1, next);
    }
    det_journal_reader_close(reader);
    det_journal_close(journal);
}

static void check_released_segments_are_dropped(struct bed *bed)
{
    struct det_journal *journal;
    struct det_journal_reader *reader;
    struct det_journal_reader_options first = { .from = 1 };
    uint64_t end = 0, sequence, begin;

    bed->options.segment_size = 65536;
    bed->options.buffer_size = 8192;
    journal = bed_journal(bed);
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 400; j++)
            assert_int_equal(0, append_numbers(journal, 8, &end));
        assert_int_equal(0, det_journal_wait(journal, end, DET_NEVER));
        assert_int_equal(0, det_journal_release(journal, end - 100));
    }
    if (bed->is_lasting) { /* the thread drops them; so does the last write */
        assert_int_equal(0, append_numbers(journal, 8, &end));
        det_journal_close(journal);
        journal = bed_journal(bed);
    }
    begin = det_journal_begin(journal);
    assert_true(begin > 5000 && begin <= end - 100);
    assert_int_equal(DET_ERR_RANGE, det_journal_reader_open(journal, &first, &reader, NULL));
    assert_int_equal(end + 1, read_numbers(journal, 0));
    assert_int_equal(0, det_journal_last(journal, 0, &sequence, NULL));
    assert_int_equal(end, sequence);
    det_journal_close(journal);
}

static void check_an_offer_does_not_wait(struct bed *bed)
{
    struct det_journal *journal;
    struct det_journal_row row = { .data = "0123456789012345678901234567890123456789", .size = 40 };
    uint64_t end = 0;
    int busy = 0, r;

    bed->options.buffer_size = 4096;
    journal = bed_journal(bed);
    for (int i = 0; i < 20000; i++) {
        r = det_journal_offer(journal, &row, 1, &end, NULL);
        assert_true(r == 0 || r == DET_ERR_BUSY);
        if (r == DET_ERR_BUSY) {
            busy++;
            assert_int_equal(0, det_journal_wait(journal, end, DET_NEVER));
        }
    }
    if (bed->is_lasting)
        assert_true(busy > 0);
    assert_int_equal(end, det_journal_end(journal));
    assert_int_equal(0, det_journal_wait(journal, end, DET_NEVER));
    det_journal_close(journal);
}

/* More streams than one block of a table. */
static void check_many_streams_continue_after_a_close(struct bed *bed)
{
    struct det_journal *journal;
    uint64_t sequence;
    uint16_t stream;
    char name[64];

    bed->options.segment_size = 65536;
    if (!bed->is_lasting)
        return;
    for (int life = 0; life < 3; life++) {
        journal = bed_journal(bed);
        for (uint16_t i = 1; i < 1000; i++) {
            (void)snprintf(name, sizeof name, "stream.of-number_%u", i);
            assert_int_equal(0, det_journal_stream(journal, name, &stream, NULL));
            assert_int_equal(i, stream);
            assert_int_equal(0, det_journal_last(journal, i, &sequence, NULL));
            assert_int_equal(life, sequence);
            append_text_to(journal, i, "text that is long enough to fill a segment soon");
        }
        det_journal_close(journal);
    }
}

static void names_of_streams_are_limited(void **state)
{
    struct bed bed;
    struct det_journal *journal;
    struct det_error error;
    uint16_t stream;
    char name[64];

    (void)state;
    bed_open(&bed, BED_OS);
    journal = bed_journal(&bed);
    for (int i = 1; i < DET_JOURNAL_STREAMS_MAX; i++) {
        (void)snprintf(name, sizeof name, "%d", i);
        assert_int_equal(0, det_journal_stream(journal, name, &stream, NULL));
    }
    assert_int_equal(DET_ERR_LIMIT, det_journal_stream(journal, "more", &stream, &error));
    det_journal_close(journal);
    journal = bed_journal(&bed);
    assert_string_equal("4095", det_journal_stream_name(journal, 4095));
    det_journal_close(journal);
    bed_close(&bed);
}

static void rows_are_read_as_they_were_appended(void **state)
{
    (void)state;
    in_each_bed(check_rows_are_read_as_they_were_appended);
}

static void streams_have_numbers_names_and_sequences(void **state)
{
    (void)state;
    in_each_bed(check_streams_have_numbers_names_and_sequences);
}

static void reader_of_one_stream_skips_the_others(void **state)
{
    (void)state;
    in_each_bed(check_reader_of_one_stream_skips_the_others);
}

static void what_cannot_be_appended_is_refused_with_its_row(void **state)
{
    (void)state;
    in_each_bed(check_what_cannot_be_appended_is_refused_with_its_row);
}

static void rows_survive_a_close(void **state)
{
    (void)state;
    in_each_bed(check_rows_survive_a_close);
}

static void large_groups_are_kept_whole(void **state)
{
    (void)state;
    in_each_bed(check_large_groups_are_kept_whole);
}

static void a_reader_begins_at_any_position(void **state)
{
    (void)state;
    in_each_bed(check_a_reader_begins_at_any_position);
}

static void unacknowledged_rows_can_be_read(void **state)
{
    (void)state;
    in_each_bed(check_unacknowledged_rows_can_be_read);
}

static void released_segments_are_dropped(void **state)
{
    (void)state;
    in_each_bed(check_released_segments_are_dropped);
}

static void an_offer_does_not_wait(void **state)
{
    (void)state;
    in_each_bed(check_an_offer_does_not_wait);
}

static void many_streams_continue_after_a_close(void **state)
{
    (void)state;
    in_each_bed(check_many_streams_continue_after_a_close);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_read_as_they_were_appended),
        cmocka_unit_test(streams_have_numbers_names_and_sequences),
        cmocka_unit_test(reader_of_one_stream_skips_the_others),
        cmocka_unit_test(what_cannot_be_appended_is_refused_with_its_row),
        cmocka_unit_test(rows_survive_a_close),
        cmocka_unit_test(large_groups_are_kept_whole),
        cmocka_unit_test(a_reader_begins_at_any_position),
        cmocka_unit_test(unacknowledged_rows_can_be_read),
        cmocka_unit_test(released_segments_are_dropped),
        cmocka_unit_test(an_offer_does_not_wait),
        cmocka_unit_test(many_streams_continue_after_a_close),
        cmocka_unit_test(names_of_streams_are_limited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
