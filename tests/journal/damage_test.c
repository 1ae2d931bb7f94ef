/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* damage_test.c - torn tails at every byte, flipped bits at every byte, files that are missing or
 * of another journal: rows that were acknowledged are there, or their loss is reported. */
#include "base/hash.h"
#include "journal/disk_test.h"
#include "journal/frame.h"

/* A journal of several segments with `groups` acknowledged groups more; closed. */
static uint64_t make_journal(struct det_world *world, unsigned segments, unsigned groups)
{
    struct det_journal_options options = { .segment_size = 65536, .buffer_size = 8192 };
    struct det_journal *journal = must_open(world, &options);
    uint64_t end = 0;

    while (det_journal_counts(journal).segments < segments) {
        assert_int_equal(0, append_numbers(journal, 60, &end));
        assert_int_equal(0, det_journal_wait(journal, end, DET_NEVER));
    }
    append_groups(journal, groups, 4);
    end = det_journal_end(journal);
    det_journal_close(journal);
    return end;
}

enum tear { TEAR_TRUNCATE, TEAR_ZEROS, TEAR_NOISE, TEARS };

static void tear_segment(
    struct det_world *world, const char *name, const struct image *image, size_t size,
    enum tear tear)
{
    struct image torn = *image;
    uint64_t seed = size + 1;

    torn.data = det_alloc(NULL, image->size + 1);
    assert_non_null(torn.data);
    memcpy(torn.data, image->data, image->size);
    if (tear == TEAR_TRUNCATE)
        torn.size = size;
    else if (tear == TEAR_ZEROS)
        memset(torn.data + size, 0, image->size - size);
    for (size_t i = size; tear == TEAR_NOISE && i < image->size; i++)
        torn.data[i] = (char)det_test_random(&seed);
    store_image(world, name, &torn);
    det_free(NULL, torn.data, image->size + 1);
}

static void open_torn(struct det_world *world, uint64_t end, uint64_t later, bool is_whole)
{
    struct det_journal *journal = must_open(world, NULL);
    uint64_t found = det_journal_end(journal);

    assert_int_equal(is_whole ? later : end, found);
    assert_true(is_whole ? det_journal_counts(journal).torn == 0 : true);
    append_groups(journal, 1, 1);
    assert_int_equal(found + 2, read_numbers(journal, 0));
    det_journal_close(journal);
    journal = must_open(world, NULL);
    assert_int_equal(found + 1, det_journal_end(journal));
    assert_int_equal(0, det_journal_counts(journal).torn);
    det_journal_close(journal);
}

/* Statement 41: a torn tail is invisible at every byte, and a group is all or nothing. */
static void torn_tail_is_invisible_at_every_byte_and_a_group_is_all_or_nothing(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_world *world = det_sim_world(sim);
    uint64_t end = make_journal(world, 1, 9), later;
    struct images before, after;
    struct det_journal *journal;
    size_t first_end;

    (void)state;
    before = load_images(world);
    journal = must_open(world, NULL);
    assert_int_equal(0, append_numbers(journal, 3, &later));
    assert_int_equal(0, append_numbers(journal, 2, &later));
    det_journal_close(journal); /* one write for both */
    after = load_images(world);
    first_end = before.files[2].size + det_get32(after.files[2].data + before.files[2].size + 4);
    for (int tear = 0; tear < TEARS; tear++) {
        for (size_t size = before.files[2].size; size <= after.files[2].size; size++) {
            uint64_t found = size == after.files[2].size ? later
                             : size >= first_end         ? end + 3
                                                         : end;

            store_images(world, &before);
            tear_segment(world, file_names[2], &after.files[2], size, (enum tear)tear);
            /* The rest of a row is zeros: such a tear changes nothing. */
            if (tear == TEAR_ZEROS &&
                memcmp(
                    after.files[2].data + size, (char[64]){ 0 },
                    after.files[2].size - size < 8 ? after.files[2].size - size : 8) == 0)
                continue;
            open_torn(world, found, later, size == after.files[2].size);
        }
    }
    free_images(&before);
    free_images(&after);
    det_sim_close(sim);
}

static uint64_t append_word(struct det_journal *journal, const char *word)
{
    uint64_t at = append_text_to(journal, 0, word);

    assert_int_equal(0, det_journal_wait(journal, at, DET_NEVER));
    return at;
}

/* A disk writes in any order: a frame after the torn one may be whole. It must not follow a new
 * frame of the same size and position as the torn one. */
static void whole_frame_after_a_torn_one_never_comes_back(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_world *world = det_sim_world(sim);
    struct det_journal *journal = must_open(world, NULL);
    struct image mark;
    struct images images;
    uint64_t at;

    (void)state;
    (void)append_word(journal, "first");
    mark = load_image(world, "mark");
    assert_int_equal(2, append_text_to(journal, 0, "torn."));
    assert_int_equal(3, append_text_to(journal, 0, "ghost"));
    det_journal_close(journal);
    images = load_images(world);
    images.files[2].data[images.files[2].size - 2 * 72 + 60] ^= 1;
    store_images(world, &images);
    store_image(world, "mark", &mark);
    journal = must_open(world, NULL);
    assert_int_equal(1, det_journal_end(journal));
    assert_int_equal(2, det_journal_counts(journal).torn);
    at = append_word(journal, "again");
    assert_int_equal(2, at);
    det_sim_power_cut(sim); /* all that is synced stays */
    det_journal_close(journal);
    journal = must_open(world, NULL);
    assert_int_equal(2, det_journal_end(journal));
    det_journal_close(journal);
    free_image(&mark);
    free_images(&images);
    det_sim_close(sim);
}

/* All rows are released while the newest segment is only begun: it alone has positions and
 * streams. */
static void segment_that_is_only_begun_is_not_all_that_is_kept(void **state)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct det_sim *sim = open_sim(seed);
        struct det_world *world = det_sim_world(sim);
        uint64_t end = make_journal(world, 2, 0), sequence;
        struct det_journal_options options = { .segment_size = 65536, .buffer_size = 8192 };
        struct det_journal *journal = must_open(world, &options);

        while (det_journal_counts(journal).segments < 4) {
            assert_int_equal(0, append_numbers(journal, 60, &end));
            assert_int_equal(0, det_journal_wait(journal, end, DET_NEVER));
        }
        assert_int_equal(0, det_journal_release(journal, end + 1));
        assert_int_equal(0, det_sim_advance(sim, DET_SECOND));
        assert_int_equal(2, det_journal_counts(journal).segments);
        det_sim_power_cut(sim);
        det_journal_close(journal);
        journal = must_open(world, &options);
        assert_int_equal(end, det_journal_end(journal));
        assert_int_equal(0, det_journal_last(journal, 0, &sequence, NULL));
        assert_int_equal(end, sequence);
        det_journal_close(journal);
        det_sim_close(sim);
    }
    (void)state;
}

/* Opens and reads a journal with a flipped bit: all rows, or an error. */
static bool is_detected(struct det_world *world, uint64_t end)
{
    struct det_error error;
    struct det_journal *journal = try_open(world, NULL, &error);
    uint64_t next;
    int r;

    if (!journal) {
        assert_true(
            error.code == DET_ERR_CORRUPT || error.code == DET_ERR_FOREIGN ||
            error.code == DET_ERR_VERSION);
        assert_true(strlen(error.text) > 10);
        return true;
    }
    next = read_as_far_as_possible(journal, &r);
    det_journal_close(journal);
    if (r < 0) {
        assert_int_equal(DET_ERR_CORRUPT, r);
        return true;
    }
    assert_int_equal(end + 1, next);
    return false;
}

static void flip_each_byte(struct det_world *world, uint64_t end, size_t stride)
{
    struct images images = load_images(world);
    uint64_t seed = 7, detected = 0, harmless = 0;

    for (size_t file = 0; file < FILES; file++) {
        for (size_t at = 0; at < images.files[file].size; at += stride) {
            char bit = (char)(1 << det_test_random(&seed) % 8);

            images.files[file].data[at] ^= bit;
            store_images(world, &images);
            if (is_detected(world, end))
                detected++;
            else
                harmless++;
            images.files[file].data[at] ^= bit;
        }
    }
    print_message(
        "             %llu detected, %llu harmless\n", (unsigned long long)detected,
        (unsigned long long)harmless);
    store_images(world, &images);
    assert_false(is_detected(world, end));
    assert_true(detected > 100 / stride);
    free_images(&images);
}

static void flipped_bit_at_every_byte_is_detected_or_harmless(void **state)
{
    struct det_sim *sim = open_sim(2);
    struct det_world *world = det_sim_world(sim);

    (void)state;
    flip_each_byte(world, make_journal(world, 1, 12), 1);
    det_sim_close(sim);
}

static void flipped_bits_in_several_segments_are_detected_or_harmless(void **state)
{
    struct det_sim *sim = open_sim(3);
    struct det_world *world = det_sim_world(sim);
    const char *all = getenv("JOURNAL_FLIPS");

    (void)state;
    flip_each_byte(world, make_journal(world, 3, 5), all ? 1 : 311);
    det_sim_close(sim);
}

/* Statement 41: damage in the middle is reported on every way of reading, with its place. */
static void damage_in_the_middle_is_refused_with_file_and_offset(void **state)
{
    struct det_sim *sim = open_sim(4);
    struct det_world *world = det_sim_world(sim);
    struct det_journal_options read_only = { .is_read_only = true };
    uint64_t end = make_journal(world, 2, 20);
    struct images images = load_images(world);
    struct det_journal *journal;
    struct det_error error;
    int r;

    (void)state;
    images.files[3].data[4096 + 400] ^= 4; /* the last segment */
    store_images(world, &images);
    assert_null(try_open(world, NULL, &error));
    assert_int_equal(DET_ERR_CORRUPT, error.code);
    assert_non_null(strstr(error.text, FOLDER "/segment-00000002: offset "));
    assert_true(error.offset > 4096 && error.offset <= 4496);
    assert_null(try_open(world, &read_only, &error));
    assert_int_equal(DET_ERR_CORRUPT, error.code);
    assert_true(error.offset > 4096 && error.offset <= 4496);
    images.files[3].data[4096 + 400] ^= 4;
    images.files[2].data[4096 + 400] ^= 4; /* the first one, which opening does not read */
    store_images(world, &images);
    for (int i = 0; i < 2; i++) {
        journal = must_open(world, i == 0 ? NULL : &read_only);
        assert_int_equal(end, det_journal_end(journal));
        (void)read_as_far_as_possible(journal, &r);
        assert_int_equal(DET_ERR_CORRUPT, r);
        assert_int_equal(end + 1, read_numbers(journal, end - 3));
        det_journal_close(journal);
    }
    free_images(&images);
    det_sim_close(sim);
}

/* Accepted loss leaves the other rows, at their positions, and the journal opens again. */
static void accepted_loss_keeps_the_other_rows(void **state)
{
    struct det_sim *sim = open_sim(5);
    struct det_world *world = det_sim_world(sim);
    struct det_journal_options accepts = { .accepts_loss = true };
    uint64_t end = make_journal(world, 1, 20), lost, seen;
    struct images images = load_images(world);
    struct det_journal_reader *reader;
    struct det_journal *journal;
    struct det_journal_row row;
    size_t size = images.files[2].size;

    (void)state;
    /* In the middle, at the end, and both. */
    for (int damage = 1; damage <= 3; damage++) {
        store_images(world, &images);
        if (damage & 1)
            images.files[2].data[4096 + 400] ^= 4;
        store_bytes(world, file_names[2], images.files[2].data, damage & 2 ? size - 20 : size);
        if (damage & 1)
            images.files[2].data[4096 + 400] ^= 4;
        journal = must_open(world, &accepts);
        lost = det_journal_counts(journal).lost;
        assert_true(lost >= 1 && lost < 9);
        assert_int_equal(end, det_journal_end(journal));
        det_journal_close(journal);
        journal = must_open(world, NULL);
        assert_int_equal(0, det_journal_counts(journal).lost);
        append_groups(journal, 1, 1);
        assert_int_equal(end + 1, det_journal_end(journal));
        seen = 0;
        assert_int_equal(0, det_journal_reader_open(journal, NULL, &reader, NULL));
        while (det_journal_reader_next(reader, &row, NULL) == 1) {
            assert_number(&row);
            seen++;
        }
        assert_int_equal(end + 1, row.position);
        assert_int_equal(end + 1 - lost, seen);
        det_journal_reader_close(reader);
        det_journal_close(journal);
    }
    free_images(&images);
    det_sim_close(sim);
}

static void reader_that_accepts_loss_goes_on_after_damage_in_an_old_segment(void **state)
{
    struct det_sim *sim = open_sim(6);
    struct det_world *world = det_sim_world(sim);
    struct det_journal_options accepts = { .accepts_loss = true };
    uint64_t end = make_journal(world, 3, 5), seen = 0;
    struct images images = load_images(world);
    struct det_journal_reader *reader;
    struct det_journal *journal;
    struct det_journal_row row;
    int r;

    (void)state;
    images.files[2].data[20000] ^= 4;
    store_images(world, &images);
    journal = must_open(world, &accepts);
    assert_int_equal(0, det_journal_reader_open(journal, NULL, &reader, NULL));
    while ((r = det_journal_reader_next(reader, &row, NULL)) == 1) {
        assert_number(&row);
        seen++;
    }
    assert_int_equal(0, r);
    assert_int_equal(end, row.position);
    assert_int_equal(end - 60, seen);
    det_journal_reader_close(reader);
    det_journal_close(journal);
    free_images(&images);
    det_sim_close(sim);
}

/* Each file is missing, empty, or of another journal. */
static void missing_and_foreign_files_are_detected(void **state)
{
    struct det_sim *sim = open_sim(7), *other_sim = open_sim(8);
    struct det_world *world = det_sim_world(sim);
    uint64_t end = make_journal(world, 3, 5);
    struct images images = load_images(world), other;

    (void)state;
    (void)make_journal(det_sim_world(other_sim), 3, 5);
    other = load_images(det_sim_world(other_sim));
    for (size_t file = 0; file < 5; file++) {
        bool is_mark = file == 1;

        store_images(world, &images);
        store_bytes(world, file_names[file], NULL, 0);
        assert_int_equal(!is_mark, is_detected(world, end));
        store_images(world, &images);
        store_bytes(world, file_names[file], "", 0);
        assert_int_equal(!is_mark, is_detected(world, end));
        store_images(world, &images);
        store_image(world, file_names[file], &other.files[file]);
        assert_int_equal(!is_mark, is_detected(world, end));
    }
    store_images(world, &images);
    assert_false(is_detected(world, end));
    free_images(&images);
    free_images(&other);
    det_sim_close(sim);
    det_sim_close(other_sim);
}

/* A crash came while a segment was created: it is ignored, and removed by the next writer. */
static void segment_that_is_being_made_is_ignored(void **state)
{
    static const char begun[4096] = "detseg01";
    struct det_journal_options read_only = { .is_read_only = true };
    struct det_sim *sim = open_sim(11);
    struct det_world *world = det_sim_world(sim);
    uint64_t end = make_journal(world, 2, 5);

    (void)state;
    for (size_t size = 0; size <= sizeof begun; size += 1024) {
        for (int is_writer = 0; is_writer < 2; is_writer++) {
            struct det_journal *journal;

            store_bytes(world, file_names[4], begun, size);
            journal = must_open(world, is_writer ? NULL : &read_only);
            assert_int_equal(end, det_journal_end(journal));
            assert_int_equal(end + 1, read_numbers(journal, 0));
            det_journal_close(journal);
        }
    }
    det_sim_close(sim);
}

/* An older copy of the last segment, with the newer mark: acknowledged rows are gone. */
static void older_copy_of_a_segment_is_refused(void **state)
{
    struct det_sim *sim = open_sim(9);
    struct det_world *world = det_sim_world(sim);
    struct det_journal *journal;
    struct det_error error;
    struct images images;

    (void)state;
    (void)make_journal(world, 1, 5);
    images = load_images(world);
    journal = must_open(world, NULL);
    append_groups(journal, 1, 1);
    det_journal_close(journal);
    store_image(world, file_names[2], &images.files[2]);
    assert_null(try_open(world, NULL, &error));
    assert_int_equal(DET_ERR_CORRUPT, error.code);
    free_images(&images);
    det_sim_close(sim);
}

static void newer_format_is_refused(void **state)
{
    struct det_sim *sim = open_sim(10);
    struct det_world *world = det_sim_world(sim);
    struct det_error error;
    struct image head;
    uint32_t crc;

    (void)state;
    (void)make_journal(world, 1, 5);
    head = load_image(world, "head");
    head.data[8] = 2;
    crc = det_crc32c(0, head.data, 76);
    memcpy(head.data + 76, &crc, sizeof crc);
    store_image(world, "head", &head);
    assert_null(try_open(world, NULL, &error));
    assert_int_equal(DET_ERR_VERSION, error.code);
    assert_true(error.expected == 1 && error.actual == 2);
    free_image(&head);
    det_sim_close(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torn_tail_is_invisible_at_every_byte_and_a_group_is_all_or_nothing),
        cmocka_unit_test(whole_frame_after_a_torn_one_never_comes_back),
        cmocka_unit_test(segment_that_is_only_begun_is_not_all_that_is_kept),
        cmocka_unit_test(flipped_bit_at_every_byte_is_detected_or_harmless),
        cmocka_unit_test(flipped_bits_in_several_segments_are_detected_or_harmless),
        cmocka_unit_test(damage_in_the_middle_is_refused_with_file_and_offset),
        cmocka_unit_test(accepted_loss_keeps_the_other_rows),
        cmocka_unit_test(reader_that_accepts_loss_goes_on_after_damage_in_an_old_segment),
        cmocka_unit_test(missing_and_foreign_files_are_detected),
        cmocka_unit_test(segment_that_is_being_made_is_ignored),
        cmocka_unit_test(older_copy_of_a_segment_is_refused),
        cmocka_unit_test(newer_format_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
