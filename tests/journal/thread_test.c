/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test: threads */

/* thread_test.c - appenders, readers, a watching loop and releases at the same time; several
 * journals on shared threads. Rows are read once each, in order, as they were appended. */
#include <stdatomic.h>

#include <detent/driver/loop.h>

#include "journal/journal_test.h"

#define APPENDERS 4
#define GROUPS    400

struct crowd {
    struct det_journal *journal;
    struct det_world *world;
    uint64_t expected; /* rows */
    atomic_uint number;
    bool is_tail;
};

struct text {
    uint32_t appender, number;
};

/* Rows of (appender, number); some wait for each, some never. */
static void append_many(void *argument)
{
    struct crowd *crowd = argument;
    unsigned me = atomic_fetch_add(&crowd->number, 1);
    struct det_journal_row rows[3];
    struct text texts[3];
    uint64_t at = 0;
    uint16_t stream;
    char name[16];

    (void)snprintf(name, sizeof name, "appender.%u", me);
    assert_int_equal(0, det_journal_stream(crowd->journal, name, &stream, NULL));
    for (uint32_t i = 0; i < GROUPS; i++) {
        for (uint32_t j = 0; j < 3; j++) {
            texts[j] = (struct text){ me, 3 * i + j };
            rows[j] = (struct det_journal_row){ .data = &texts[j],
                                                .size = sizeof texts[j],
                                                .stream = stream };
        }
        if (me == 0)
            while (det_journal_offer(crowd->journal, rows, 3, &at, NULL) == DET_ERR_BUSY)
                assert_int_equal(0, det_journal_wait(crowd->journal, at, DET_NEVER));
        else
            assert_int_equal(0, det_journal_append(crowd->journal, rows, 3, &at, NULL));
        if (me == 1 || (me == 2 && i % 10 == 0)) {
            assert_int_equal(0, det_journal_wait(crowd->journal, at, DET_NEVER));
            assert_true(det_journal_acknowledged(crowd->journal) >= at);
        }
    }
    assert_int_equal(0, det_journal_wait(crowd->journal, at, DET_NEVER));
}

static void read_all(void *argument)
{
    struct crowd *crowd = argument;
    struct det_journal_reader_options options = { .unacknowledged = crowd->is_tail };
    struct det_journal_reader *reader;
    struct det_journal_row row;
    uint32_t next[APPENDERS] = { 0 };
    struct text text;
    int r;

    assert_int_equal(0, det_journal_reader_open(crowd->journal, &options, &reader, NULL));
    for (uint64_t position = 1; position <= crowd->expected;) {
        r = det_journal_reader_next(reader, &row, NULL);
        assert_true(r >= 0);
        if (r == 0) {
            assert_int_equal(0, det_journal_reader_wait(reader, DET_NEVER));
            continue;
        }
        assert_int_equal(position++, row.position);
        memcpy(&text, row.data, sizeof text);
        assert_int_equal(next[text.appender]++, text.number);
        assert_int_equal(text.number + 1, row.sequence);
        assert_int_equal(text.number % 3 == 2, row.is_group_end);
    }
    det_journal_reader_close(reader);
}

static void run_crowd(struct bed *bed)
{
    struct det_thread *threads[APPENDERS + 2];
    struct crowd crowds[2];

    if (bed->sim)
        return; /* on real threads */
    bed->options.segment_size = 65536;
    bed->options.buffer_size = 8192;
    crowds[0] = (struct crowd){
        .journal = bed_journal(bed),
        .world = det_world_real(),
        .expected = 3 * APPENDERS * GROUPS,
    };
    crowds[1] = crowds[0];
    crowds[1].is_tail = true;
    for (int i = 0; i < APPENDERS; i++)
        assert_int_equal(
            0, det_thread_start(crowds[0].world, "append", append_many, &crowds[0], &threads[i]));
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            0, det_thread_start(
                   crowds[0].world, "read", read_all, &crowds[i], &threads[APPENDERS + i]));
    for (int i = 0; i < APPENDERS + 2; i++)
        det_thread_join(crowds[0].world, threads[i]);
    assert_int_equal(crowds[0].expected, det_journal_acknowledged(crowds[0].journal));
    det_journal_close(crowds[0].journal);
}

static void readers_of_many_appenders_get_each_row_once_and_in_order(void **state)
{
    (void)state;
    in_each_bed(run_crowd);
}

/* A loop that offers rows and waits for nothing but its watcher. */
struct pump {
    struct det_loop *loop;
    struct det_journal *journal;
    struct det_journal_watcher watcher;
    uint64_t offered, wanted;
};

static void pump_rows(void *argument)
{
    struct pump *pump = argument;
    struct det_journal_row row = { .data = "some text of a row", .size = 18 };

    while (pump->offered < pump->wanted) {
        int r = det_journal_offer(pump->journal, &row, 1, &pump->offered, NULL);

        if (r == DET_ERR_BUSY)
            return;
        assert_int_equal(0, r);
    }
    if (det_journal_acknowledged(pump->journal) == pump->wanted)
        det_loop_break(pump->loop);
}

static void run_pump(struct bed *bed)
{
    struct pump pump = { .wanted = 5000 };

    bed->options.buffer_size = 4096;
    pump.journal = bed_journal(bed);
    assert_int_equal(0, det_loop_open(bed->options.world, NULL, &pump.loop));
    pump.watcher =
        (struct det_journal_watcher){ .loop = pump.loop, .run = pump_rows, .argument = &pump };
    assert_int_equal(0, det_journal_watch(pump.journal, &pump.watcher));
    pump_rows(&pump);
    if (det_journal_acknowledged(pump.journal) < pump.wanted)
        assert_int_equal(0, det_loop_run(pump.loop));
    assert_int_equal(5000, det_journal_acknowledged(pump.journal));
    det_journal_unwatch(pump.journal, &pump.watcher);
    det_journal_close(pump.journal);
    det_loop_close(pump.loop);
}

static void loop_that_offers_needs_nothing_but_its_watcher(void **state)
{
    (void)state;
    for (int kind = 0; kind < BED_SIM; kind++) {
        struct bed bed;

        bed_open(&bed, (enum bed_kind)kind);
        run_pump(&bed);
        bed_close(&bed);
    }
}

#define SHARED 20

static void journals_share_two_threads(void **state)
{
    struct det_journal *journals[SHARED];
    struct det_journal_threads *threads;
    uint64_t at[SHARED];
    struct bed bed;
    char url[600];

    (void)state;
    bed_open(&bed, BED_DISK);
    assert_int_equal(0, det_journal_threads_open(NULL, NULL, 0, &threads, NULL));
    bed.options.threads = threads;
    for (int i = 0; i < SHARED; i++) {
        (void)snprintf(url, sizeof url, "file:%s/%d", bed.folder, i);
        assert_int_equal(0, det_journal_open(url, &bed.options, &journals[i], NULL));
    }
    for (int turn = 0; turn < 20; turn++)
        for (int i = 0; i < SHARED; i++)
            assert_int_equal(0, append_numbers(journals[i], 3, &at[i]));
    /* Nobody waits: the threads write all the same. */
    for (int i = 0; i < SHARED; i++) {
        while (det_journal_acknowledged(journals[i]) < at[i])
            assert_int_equal(0, det_world_sleep(det_world_real(), DET_MILLISECOND));
        assert_int_equal(61, read_numbers(journals[i], 0));
        det_journal_close(journals[i]);
    }
    det_journal_threads_close(threads);
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_of_many_appenders_get_each_row_once_and_in_order),
        cmocka_unit_test(loop_that_offers_needs_nothing_but_its_watcher),
        cmocka_unit_test(journals_share_two_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
