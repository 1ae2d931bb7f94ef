/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* history.c - the history of one instance in a SQLite file: the cost of reading one of 10,000 to
 * 1,000,000 events, and the time of a send to the instance while another thread reads them
 * repeatedly. */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "book_file.h"

#define SENDS      200
#define EVENTS_MIN 200

struct file {
    uint64_t events;
    char path[BENCH_PATH_MAX]; /* "": not created yet */
};

/* Shared by readers and senders. */
static struct file files[] = { { .events = 10000 }, { .events = 100000 }, { .events = 1000000 } };

/* Fewer events for fewer operations than usual. */
static int open_file(
    struct bench_lap *lap, struct file *file, uint64_t usual, struct book *ret,
    uint64_t *ret_events)
{
    uint64_t events = file->events * lap->operations / usual;
    char name[48];
    int r = 0;

    *ret_events = events < EVENTS_MIN ? EVENTS_MIN : events;
    if (!file->path[0]) {
        (void)snprintf(name, sizeof name, "history-%" PRIu64 ".db", file->events);
        r = book_file_make(lap, name, 1, *ret_events, file->path);
    }
    return r < 0 ? r : book_file_open(lap, file->path, 1, ret);
}

static int count_event(void *context, const struct det_event_record *row)
{
    *(uint64_t *)context += row->sequence > 0;
    return 0;
}

static int read_all(struct book *book, uint64_t *count)
{
    return det_runtime_events(book->runtime, &book_machine, "book-0", 0, count_event, count, NULL);
}

/* The senders have made the history a little longer. */
static int run_read(struct bench_lap *lap)
{
    const struct file *given = lap->argument;
    uint64_t events, count = 0;
    struct book book;
    int r;

    r = open_file(lap, &files[given - files], given->events, &book, &events);
    if (r < 0)
        return r;
    bench_lap_begin(lap);
    r = read_all(&book, &count);
    bench_lap_end(lap);
    lap->operations = count;
    book_close(&book);
    if (r == 0 && count < events)
        return bench_lap_fail(lap, DET_ERR_CORRUPT, "%" PRIu64 " events", count);
    return r < 0 ? bench_lap_fail(lap, r, "%s", det_error_text(r)) : 0;
}

struct reader {
    pthread_t thread;
    struct book *book;
    atomic_bool stop_wanted, has_begun;
    int r;
};

static int note_begin(void *context, const struct det_event_record *row)
{
    struct reader *reader = context;

    (void)row;
    atomic_store(&reader->has_begun, true);
    return atomic_load(&reader->stop_wanted);
}

static void *run_reader(void *argument)
{
    struct reader *reader = argument;

    while (reader->r == 0)
        reader->r = det_runtime_events(
            reader->book->runtime, &book_machine, "book-0", 0, note_begin, reader, NULL);
    atomic_store(&reader->has_begun, true);
    return NULL;
}

static int send_some(struct book *book, uint64_t count)
{
    int r = 0;

    for (uint64_t i = 0; i < count && r == 0; i++)
        r = book_send(book->runtime, "book-0", book_entry(i), NULL);
    return r;
}

static int run_send(struct bench_lap *lap)
{
    const struct file *given = lap->argument;
    struct reader reader = { .r = 0 };
    struct book book;
    uint64_t events;
    int r;

    r = open_file(lap, &files[given - files], SENDS, &book, &events);
    if (r < 0)
        return r;
    reader.book = &book;
    if (pthread_create(&reader.thread, NULL, run_reader, &reader) != 0) {
        book_close(&book);
        return bench_lap_fail(lap, DET_ERR_NO_MEMORY, "no thread");
    }
    while (!atomic_load(&reader.has_begun))
        (void)sched_yield();
    bench_lap_begin(lap);
    r = send_some(&book, lap->operations);
    bench_lap_end(lap);
    atomic_store(&reader.stop_wanted, true);
    (void)pthread_join(reader.thread, NULL);
    book_close(&book);
    r = r < 0 ? r : reader.r;
    return r < 0 ? bench_lap_fail(lap, r, "%s", det_error_text(r)) : 0;
}

#define READ "read 10,000 events"
#define SEND "sends while 10,000 events are read"

static const struct bench_case cases[] = {
    { READ, BENCH_OURS, run_read, &files[0], 10000, .against = "" },
    { "read 100,000 events", BENCH_OURS, run_read, &files[1], 100000, .against = READ },
    { "read 1,000,000 events", BENCH_OURS, run_read, &files[2], 1000000, .against = READ,
      .goals = { { BENCH_RATIO_MAX, 1.5, NULL } } },
    { SEND, BENCH_OURS, run_send, &files[0], SENDS, .against = "" },
    { "sends while 100,000 events are read", BENCH_OURS, run_send, &files[1], SENDS,
      .against = SEND },
    { "sends while 1,000,000 events are read", BENCH_OURS, run_send, &files[2], SENDS,
      .against = SEND, .goals = { { BENCH_RATIO_MAX, 2, NULL } } },
};

extern const struct bench bench_history;
const struct bench bench_history = {
    .title = "the history of one instance in a SQLite file, read and extended",
    .operation = "event",
    .has_processor = true,
    .rounds = 5,
    .has_no_warm_up = true,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
};
