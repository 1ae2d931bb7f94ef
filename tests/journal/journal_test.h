/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* journal_test.h - journals of every driver and durability, on the real and on a simulated disk. */
#ifndef DET_JOURNAL_TEST_H
#define DET_JOURNAL_TEST_H

#include <detent/driver/journal.h>
#include <detent/sim.h>

#include "lib/test.h"
#include "os/os.h"

#define FOLDER "var/journal"

/* A place for a journal. */
struct bed {
    const char *name;
    struct det_journal_options options; /* for det_journal_open() */
    char url[512];
    char *folder; /* NULL: nothing on the real disk */
    struct det_sim *sim;
    bool is_lasting; /* outlives a close */
};

enum bed_kind { BED_MEMORY, BED_DISK, BED_OS, BED_FILE_MEMORY, BED_SIM };
#define BEDS 5

static inline struct det_sim *open_sim(uint64_t seed)
{
    struct det_sim_options options = { .seed = seed };
    struct det_sim *sim = NULL;

    assert_int_equal(0, det_sim_open(&options, &sim, NULL));
    return sim;
}

static inline void bed_open(struct bed *bed, enum bed_kind kind)
{
    static const char *const names[] = { "memory", "disk", "os", "file, memory", "sim" };

    *bed = (struct bed){ .name = names[kind], .is_lasting = kind != BED_MEMORY };
    (void)snprintf(bed->url, sizeof bed->url, "memory:");
    if (kind == BED_SIM) {
        bed->sim = open_sim(1);
        bed->options.world = det_sim_world(bed->sim);
        (void)snprintf(bed->url, sizeof bed->url, "file:" FOLDER);
    } else if (kind != BED_MEMORY) {
        bed->folder = det_test_folder();
        (void)snprintf(bed->url, sizeof bed->url, "file:%s/journal", bed->folder);
    }
    bed->options.durability = kind == BED_OS            ? DET_JOURNAL_OS
                              : kind == BED_FILE_MEMORY ? DET_JOURNAL_MEMORY
                                                        : DET_JOURNAL_DISK;
}

static inline void bed_close(struct bed *bed)
{
    if (bed->sim)
        det_sim_close(bed->sim);
    if (bed->folder)
        det_test_folder_remove(bed->folder);
}

static inline struct det_journal *bed_journal(const struct bed *bed)
{
    struct det_journal *journal = NULL;
    struct det_error error = { 0 };
    int r;

    r = det_journal_open(bed->url, &bed->options, &journal, &error);
    if (r < 0)
        print_error("%s: %s\n", bed->name, error.text);
    assert_int_equal(0, r);
    return journal;
}

/* Runs a case in each place. */
static inline void in_each_bed(void (*run)(struct bed *bed))
{
    for (int kind = 0; kind < BEDS; kind++) {
        struct bed bed;

        bed_open(&bed, (enum bed_kind)kind);
        print_message("             %s\n", bed.name);
        run(&bed);
        bed_close(&bed);
    }
}

/* The row of a position is always the same: its size and bytes follow from the number. */
static inline size_t number_text(uint64_t number, char *target, size_t capacity)
{
    int size = snprintf(
        target, capacity, "row %llu %.*s", (unsigned long long)number, (int)(number % 23),
        "abcdefghijklmnopqrstuvwxyz");

    assert_true(size > 0 && (size_t)size < capacity);
    return (size_t)size;
}

/* Appends a group of `count` numbered rows; 0 or the error. */
static inline int append_numbers(struct det_journal *journal, size_t count, uint64_t *ret)
{
    struct det_journal_row rows[64];
    char texts[64][64];
    uint64_t next = det_journal_end(journal) + 1;

    assert_true(count <= 64);
    for (size_t i = 0; i < count; i++) {
        rows[i] = (struct det_journal_row){
            .data = texts[i],
            .size = (uint32_t)number_text(next + i, texts[i], sizeof texts[i]),
            .kind = (uint8_t)(next + i),
            .parent = next + i - 1,
        };
    }
    return det_journal_append(journal, rows, count, ret, NULL);
}

static inline void assert_number(const struct det_journal_row *row)
{
    char text[64];
    size_t size = number_text(row->position, text, sizeof text);

    assert_int_equal(size, row->size);
    assert_memory_equal(text, row->data, size);
    assert_int_equal((uint8_t)row->position, row->kind);
    assert_int_equal(row->position - 1, row->parent);
}

/* Reads numbered rows from `from` (0: the first) on; returns the position after the last one. */
static inline uint64_t read_numbers(struct det_journal *journal, uint64_t from)
{
    struct det_journal_reader_options options = { .from = from };
    struct det_journal_reader *reader = NULL;
    struct det_journal_row row;
    struct det_error error = { 0 };
    uint64_t next = from ? from : det_journal_begin(journal);
    int r;

    assert_int_equal(0, det_journal_reader_open(journal, &options, &reader, NULL));
    while ((r = det_journal_reader_next(reader, &row, &error)) == 1) {
        assert_int_equal(next, row.position);
        assert_number(&row);
        next++;
    }
    if (r < 0)
        print_error("%s\n", error.text);
    assert_int_equal(0, r);
    det_journal_reader_close(reader);
    return next;
}

static inline uint64_t append_text_to(
    struct det_journal *journal, uint16_t stream, const char *text)
{
    struct det_journal_row row = {
        .data = text,
        .size = (uint32_t)strlen(text),
        .stream = stream,
    };
    uint64_t at = 0;

    assert_int_equal(0, det_journal_append(journal, &row, 1, &at, NULL));
    return at;
}

#endif
