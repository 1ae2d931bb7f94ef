/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* million_child.c - bench-million: one part of the bench of many instances, in a separate process,
 * whose memory can be measured and which can be killed.
 *
 *     bench-million VERB FILE INSTANCES OPERATIONS      prints {"nanoseconds": 123, ...}
 *
 * The verbs are listed at the end. */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <detent/driver/store.h>

#include "book.h"

#define BATCH          1000
#define SENDERS        64
#define INSTANCES_KEPT 10000 /* in memory, for verbs that use it */
#define TIMER_SPAN     (20 * DET_MILLISECOND)

struct job {
    const char *path;
    uint32_t instances;
    uint64_t operations;
    char url[BENCH_PATH_MAX + 16];
    struct det_error error;
};

/* The printed figures; 0: omitted. */
struct answer {
    double nanoseconds; /* of all operations */
    double p50, p99;    /* of one */
    uint64_t memory;
};

/* The book of this process counts no allocations, but the laps require the function. */
uint64_t bench_allocations(void)
{
    return 0;
}

static uint64_t memory_used(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    uint64_t kilobytes = 0;

    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "VmHWM:", 6) == 0)
            kilobytes = strtoull(line + 6, NULL, 10);
    }
    if (file)
        (void)fclose(file);
    return kilobytes * 1024;
}

static int compare(const void *one, const void *other)
{
    double a, b;

    memcpy(&a, one, sizeof a);
    memcpy(&b, other, sizeof b);
    return (a > b) - (a < b);
}

static void set_quantiles(double *samples, size_t count, struct answer *answer)
{
    qsort(samples, count, sizeof *samples, compare);
    answer->p50 = samples[count / 2];
    answer->p99 = samples[count * 99 / 100];
}

static int open_book(struct job *job, const struct det_runtime_options *options, struct book *book)
{
    return book_open(
        book, job->url, &(struct det_store_options){ 0 }, options, job->instances, &job->error);
}

/* fill: the instances, in batches, straight into the store. */

struct filler {
    struct det_store_commit commits[BATCH], *pointers[BATCH];
    char ids[BATCH][BOOK_ID_MAX];
};

static int fill_batch(
    struct det_store *store, struct filler *filler, const struct det_store_head *head,
    uint32_t first, uint32_t count)
{
    static const struct book_data data = { .owner = "the owner of this account" };
    int r;

    for (uint32_t i = 0; i < count; i++) {
        book_id(first + i, filler->ids[i]);
        filler->pointers[i] = &filler->commits[i];
        filler->commits[i] = (struct det_store_commit){ .machine = &book_machine,
                                                        .id = filler->ids[i],
                                                        .is_new = true,
                                                        .head = head,
                                                        .data = &data };
    }
    r = store->ops->commit(store, filler->pointers, count);
    for (uint32_t i = 0; i < count && r == 0; i++) {
        r = filler->commits[i].result;
        store->ops->release(store, filler->commits[i].instance);
    }
    return r;
}

static int fill(struct job *job, struct answer *answer)
{
    struct det_store_head head = { .visit = 1, .state = BOOK_OPEN };
    struct filler *filler = calloc(1, sizeof *filler);
    struct book book;
    int64_t began = bench_now_ns();
    int r = filler ? open_book(job, &(struct det_runtime_options){ 0 }, &book) : DET_ERR_NO_MEMORY;

    if (r == 0) {
        head.started_at = det_world_now(book.store->world, DET_CLOCK_WALL);
        head.last_transition_at = head.started_at;
        for (uint32_t i = 0; i < job->instances && r == 0; i += BATCH)
            r = fill_batch(
                book.store, filler, &head, i,
                job->instances - i < BATCH ? job->instances - i : BATCH);
        book_close(&book);
    }
    free(filler);
    answer->nanoseconds = (double)(bench_now_ns() - began);
    return r;
}

/* deepen: as many events as operations for the first instance, straight into the store. */

struct deep {
    struct det_store_event events[BATCH];
    struct book_event values[BATCH];
};

static int deepen_batch(
    struct det_store *store, struct deep *deep, struct det_store_loaded *loaded, size_t count)
{
    struct det_store_head head = loaded->head;
    struct det_store_commit commit = { .machine = &book_machine,
                                       .id = "book-0",
                                       .instance = loaded->instance,
                                       .expected = head.sequence,
                                       .head = &head,
                                       .data = loaded->data,
                                       .events = deep->events,
                                       .event_count = count };
    struct det_store_commit *one = &commit;
    int r;

    head.last_transition_at = det_world_now(store->world, DET_CLOCK_WALL);
    for (size_t i = 0; i < count; i++) {
        uint16_t to = head.state == BOOK_OPEN ? BOOK_CHANGED : BOOK_OPEN;

        deep->values[i] = book_entry(head.sequence);
        deep->events[i] = (struct det_store_event){ .sequence = ++head.sequence,
                                                    .visit = ++head.visit,
                                                    .from = head.state,
                                                    .to = to,
                                                    .event = BOOK_ENTER,
                                                    .outcome = DET_OUTCOME_GOTO,
                                                    .at = head.last_transition_at,
                                                    .value = &deep->values[i] };
        head.transition_count++;
        head.state = to;
    }
    r = store->ops->commit(store, &one, 1);
    loaded->head = head;
    return r < 0 ? r : commit.result;
}

static int deepen(struct job *job, struct answer *answer)
{
    static const struct det_store_rows none = { 0 };
    struct deep *deep = calloc(1, sizeof *deep);
    struct book_data data;
    struct det_store_loaded loaded = { .data = &data };
    struct book book;
    int64_t began = bench_now_ns();
    int r = deep ? open_book(job, &(struct det_runtime_options){ 0 }, &book) : DET_ERR_NO_MEMORY;

    if (r == 0) {
        r = book.store->ops->load(book.store, &book_machine, "book-0", &none, &loaded);
        for (uint64_t i = 0; i < job->operations && r == 0; i += BATCH)
            r = deepen_batch(
                book.store, deep, &loaded,
                job->operations - i < BATCH ? (size_t)(job->operations - i) : BATCH);
        if (loaded.instance)
            book.store->ops->release(book.store, loaded.instance);
        book_close(&book);
    }
    free(deep);
    answer->nanoseconds = (double)(bench_now_ns() - began);
    return r;
}

/* send: to any of them, 64 at once. */
static int send(struct job *job, struct answer *answer)
{
    struct book book;
    int64_t began;
    int r = open_book(job, &(struct det_runtime_options){ 0 }, &book);

    if (r < 0)
        return r;
    began = bench_now_ns();
    r = book_submit(&book, SENDERS, job->operations);
    answer->nanoseconds = (double)(bench_now_ns() - began);
    book_close(&book);
    return r;
}

/* cold: first enough sends to replace all instances in memory, then one at a time. */
static int cold(struct job *job, struct answer *answer)
{
    const struct det_runtime_options options = { .instances_max = INSTANCES_KEPT };
    double *samples = calloc(job->operations, sizeof *samples);
    uint64_t seed = (uint64_t)bench_now_ns();
    struct book book;
    int r = samples ? open_book(job, &options, &book) : DET_ERR_NO_MEMORY;

    if (r < 0) {
        free(samples);
        return r;
    }
    r = book_submit(&book, SENDERS, 40 * job->operations);
    for (uint64_t i = 0; i < job->operations && r == 0; i++) {
        int64_t began = bench_now_ns();

        r = book_single(&book, 1, &seed);
        samples[i] = (double)(bench_now_ns() - began);
        answer->nanoseconds += samples[i];
    }
    set_quantiles(samples, job->operations, answer);
    answer->memory = memory_used();
    book_close(&book);
    free(samples);
    return r;
}

/* arm: as many timers as operations, in a runtime that does not fire them. */
static int arm(struct job *job, struct answer *answer)
{
    const struct det_runtime_options options = { .is_passive = true };
    struct book book;
    int64_t began;
    int r = open_book(job, &options, &book);

    if (r < 0)
        return r;
    began = bench_now_ns();
    r = book_wait_all(&book, (uint32_t)job->operations);
    answer->nanoseconds = (double)(bench_now_ns() - began);
    book_close(&book);
    return r;
}

/* due: all of them are, and each fires once. */

static int64_t count_rows(const struct job *job, const char *text)
{
    sqlite3 *database = NULL;
    sqlite3_stmt *statement = NULL;
    int64_t count = -1;

    if (sqlite3_open_v2(job->path, &database, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(database, text, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        count = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    (void)sqlite3_close(database);
    return count;
}

static void wait_fired(struct book *book, uint64_t wanted)
{
    const struct timespec pause = { .tv_nsec = 1000000 };
    struct det_runtime_counts counts;

    for (unsigned i = 0; i < 300000; i++) {
        det_runtime_counts(book->runtime, &counts);
        if (counts.timeouts_fired >= wanted)
            return;
        (void)nanosleep(&pause, NULL);
    }
}

static int due(struct job *job, struct answer *answer)
{
    static const char fired_text[] = "SELECT count(*) FROM events WHERE timeout = 1";
    static const char left_text[] = "SELECT count(*) FROM timers";
    int64_t fired = count_rows(job, fired_text);
    struct book book;
    int64_t began = bench_now_ns();
    int r = open_book(job, &(struct det_runtime_options){ 0 }, &book);

    if (r < 0)
        return r;
    wait_fired(&book, job->operations);
    answer->nanoseconds = (double)(bench_now_ns() - began);
    r = det_runtime_settle(book.runtime, DET_MINUTE);
    answer->memory = memory_used();
    book_close(&book);
    fired = count_rows(job, fired_text) - fired;
    if (r == 0 && (fired != (int64_t)job->operations || count_rows(job, left_text) != 0))
        r = det_error_set(
            &job->error, DET_ERR_INVALID, "%" PRId64 " timers fired, of %" PRIu64, fired,
            job->operations);
    return r;
}

/* late: one timer at a time, in an idle process. */

static _Atomic int64_t armed_at, fired_at;

static void note_times(void *user, const struct det_note *note)
{
    (void)user;
    if (note->is_timeout)
        atomic_store(&fired_at, note->at);
    else
        atomic_store(&armed_at, note->at);
}

static int late(struct job *job, struct answer *answer)
{
    const struct det_runtime_options options = { .observe = note_times };
    const struct timespec pause = { .tv_nsec = 1000000 };
    double *samples = calloc(job->operations, sizeof *samples);
    struct book book = { 0 };
    int r = samples ? open_book(job, &options, &book) : DET_ERR_NO_MEMORY;

    for (uint64_t i = 0; i < job->operations && r == 0; i++) {
        atomic_store(&fired_at, 0);
        r = book_send(book.runtime, "book-0", book_wait(), NULL);
        while (r == 0 && atomic_load(&fired_at) == 0)
            (void)nanosleep(&pause, NULL);
        samples[i] = (double)(atomic_load(&fired_at) - atomic_load(&armed_at) - TIMER_SPAN);
    }
    if (r == 0) {
        set_quantiles(samples, job->operations, answer);
        answer->nanoseconds = answer->p50 * (double)job->operations;
    }
    if (book.runtime)
        book_close(&book);
    free(samples);
    return r;
}

/* run: sends until it is killed. */
static int run(struct job *job, struct answer *answer)
{
    struct book book;
    int r = open_book(job, &(struct det_runtime_options){ 0 }, &book);

    (void)answer;
    if (r < 0)
        return r;
    r = book_submit(&book, SENDERS, SENDERS);
    (void)puts("ready");
    (void)fflush(stdout);
    while (r == 0)
        r = book_submit(&book, SENDERS, 1000000);
    book_close(&book);
    return r;
}

/* first: from nothing to the first answer. */
static int first(struct job *job, struct answer *answer)
{
    uint64_t seed = (uint64_t)bench_now_ns();
    int64_t began = bench_now_ns();
    struct book book;
    int r = open_book(job, &(struct det_runtime_options){ 0 }, &book);

    if (r < 0)
        return r;
    r = book_single(&book, 1, &seed);
    answer->nanoseconds = (double)(bench_now_ns() - began);
    answer->memory = memory_used();
    book_close(&book);
    return r;
}

static const struct verb {
    const char *name;
    int (*run)(struct job *job, struct answer *answer);
} verbs[] = {
    { "fill", fill }, { "send", send }, { "cold", cold },   { "arm", arm },       { "due", due },
    { "late", late }, { "run", run },   { "first", first }, { "deepen", deepen },
};

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct verb *verb = argc == 5 ? find_verb(argv[1]) : NULL;
    struct answer answer = { 0 };
    struct job job = { 0 };
    int r;

    if (!verb) {
        (void)fputs("usage: bench-million VERB FILE INSTANCES OPERATIONS\n", stderr);
        return 2;
    }
    job.path = argv[2];
    job.instances = (uint32_t)strtoul(argv[3], NULL, 10);
    job.operations = strtoull(argv[4], NULL, 10);
    (void)snprintf(job.url, sizeof job.url, "sqlite:%s", job.path);
    r = verb->run(&job, &answer);
    if (r < 0) {
        (void)fprintf(
            stderr, "bench-million %s: %s\n", verb->name,
            job.error.code ? job.error.text : det_error_text(r));
        return 1;
    }
    (void)printf(
        "{\"nanoseconds\": %.0f, \"p50\": %.0f, \"p99\": %.0f, \"memory\": %" PRIu64 "}\n",
        answer.nanoseconds, answer.p50, answer.p99, answer.memory);
    return 0;
}
