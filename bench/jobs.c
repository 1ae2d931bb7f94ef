/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs.c - durable jobs: inserts by several threads, and execution by several workers, on
 * PostgreSQL and in a SQLite file, beside River (Go) and graphile-worker (npm) on the same server.
 *
 * A job is a function that returns at once. Our lap ends when the end of every job is committed and
 * the queue is empty; River's when its last worker function has returned, before that end is
 * committed.
 *
 * Growth: the same laps with other jobs in the table, either queued after the measured ones or
 * ended before them: 10 times as many, or DETENT_BENCH_QUEUED of them. With others queued, our lap
 * ends when the last measured job has begun, and some of the others have been claimed; so it is
 * compared with a lap that ends in the same way, with 1,000 others. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <detent/durable.h>

#include "bench.h"
#include "lib/postgres.h"
#include "store/jobs.h"

#define FILL_AT_ONCE 500
#define SUBMITTERS   64

enum place { ON_POSTGRES, ON_SQLITE };

struct setup {
    enum place place;
    unsigned threads;        /* inserting threads, or workers */
    uint64_t queued_after;   /* other jobs in the queue, as a multiple of the operations */
    uint64_t ended_before;   /* ended jobs in the table, as a multiple of the operations */
    const char *peer, *verb; /* the program of a peer, and its command */
    bool has_few_queued;     /* a fifth of the operations, for any DETENT_BENCH_QUEUED */
};

static struct det_test_postgres *server;
static atomic_uint_fast64_t next_store;

/* Each lap has a store of its own. */
static int open_store(enum place place, struct det_store **ret, struct det_error *reterr)
{
    char folder[BENCH_PATH_MAX], name[32], path[BENCH_PATH_MAX + 32], *url;
    int r;

    if (place == ON_POSTGRES) {
        url = det_test_postgres_url(server, NULL);
        r = det_store_open(url, ret, reterr);
        free(url);
        return r;
    }
    (void)snprintf(name, sizeof name, "jobs-%u", (unsigned)atomic_fetch_add(&next_store, 1));
    r = bench_folder_make(name, folder);
    if (r < 0)
        return r;
    (void)snprintf(path, sizeof path, "sqlite:%s/jobs.db", folder);
    return det_store_open(path, ret, reterr);
}

static int fill(struct det_store *store, uint64_t first, uint64_t count)
{
    static struct det_job_place places[FILL_AT_ONCE];
    static struct det_job_put jobs[FILL_AT_ONCE];
    static char ids[FILL_AT_ONCE][24];
    int r = 0;

    while (r == 0 && count) {
        size_t some = count < FILL_AT_ONCE ? (size_t)count : FILL_AT_ONCE;

        for (size_t i = 0; i < some; i++) {
            (void)snprintf(ids[i], sizeof ids[i], "j%llu", (unsigned long long)first++);
            jobs[i] = (struct det_job_put){ "q", ids[i], "work", "{\"number\": 1}", 13, 0 };
        }
        r = store->ops->jobs->put(store, jobs, some, places);
        count -= some;
    }
    return r;
}

struct taken {
    struct det_job_end ends[FILL_AT_ONCE];
    size_t count;
};

static int take_job(void *context, const struct det_job_row *row)
{
    struct taken *taken = context;

    taken->ends[taken->count++] =
        (struct det_job_end){ .key = row->key, .token = row->attempts, .state = DET_JOB_DONE };
    return 0;
}

/* Claims and ends all queued jobs. */
static int end_all(struct det_store *store)
{
    static struct taken taken;
    struct det_job_batch batch = { .queue = "q", .span = DET_HOUR };
    int r;

    do {
        batch = (struct det_job_batch){ .queue = "q",
                                        .span = DET_HOUR,
                                        .capacity = FILL_AT_ONCE,
                                        .wanted = FILL_AT_ONCE,
                                        .visit = take_job,
                                        .context = &taken };
        taken.count = 0;
        r = store->ops->jobs->apply(store, &batch);
        batch =
            (struct det_job_batch){ .queue = "q", .ends = taken.ends, .end_count = taken.count };
        if (r == 0 && taken.count)
            r = store->ops->jobs->apply(store, &batch);
    } while (r == 0 && taken.count);
    return r;
}

/* Inserts. */

struct submitter {
    pthread_t thread;
    struct det_durable *durable;
    atomic_uint_fast64_t *next;
    uint64_t count;
    int r;
};

static void *run_submitter(void *argument)
{
    struct submitter *submitter = argument;
    uint64_t number;
    char id[24];

    while (submitter->r == 0 &&
           (number = atomic_fetch_add(submitter->next, 1)) < submitter->count) {
        (void)snprintf(id, sizeof id, "j%llu", (unsigned long long)number);
        submitter->r = det_durable_submit(
            submitter->durable,
            &(struct det_durable_submission){
                .id = id, .work = "work", .body = "{\"number\": 1}", .size = 13 },
            NULL, NULL);
    }
    return NULL;
}

static int submit_all(struct det_durable *durable, unsigned threads, uint64_t count)
{
    struct submitter submitters[SUBMITTERS] = { 0 };
    atomic_uint_fast64_t next = 0;
    int r = 0;

    for (unsigned i = 0; i < threads; i++) {
        submitters[i] = (struct submitter){ .durable = durable, .next = &next, .count = count };
        if (pthread_create(&submitters[i].thread, NULL, run_submitter, &submitters[i]) != 0)
            abort();
    }
    for (unsigned i = 0; i < threads; i++) {
        (void)pthread_join(submitters[i].thread, NULL);
        r = submitters[i].r < 0 ? submitters[i].r : r;
    }
    return r;
}

/* Execution. */

static atomic_uint_fast64_t left; /* measured jobs that have not begun */

static int work(struct det_task_context *context, void *argument)
{
    (void)context;
    (void)argument;
    atomic_fetch_sub(&left, 1);
    return 0;
}

static const struct det_task_spec spec = { .function = work };
static const struct det_durable_work works[] = { { .name = "work", .spec = &spec } };

struct box {
    struct det_store *store;
    struct det_tasks *tasks;
    struct det_durable *durable;
};

static void close_box(struct box *box)
{
    det_durable_close(box->durable);
    det_tasks_close(box->tasks);
    det_store_close(box->store);
}

static int open_queue(struct box *box, unsigned width, struct det_error *reterr)
{
    int r;

    r = det_tasks_open(&(struct det_tasks_options){ 0 }, &box->tasks, reterr);
    if (r < 0)
        return r;
    return det_durable_open(
        &(struct det_durable_options){ .tasks = box->tasks,
                                       .store = box->store,
                                       .queue = "q",
                                       .width = width,
                                       .works = works,
                                       .work_count = width ? 1 : 0 },
        &box->durable, reterr);
}

static int run_insert(struct bench_lap *lap)
{
    const struct setup *setup = lap->argument;
    struct det_error error = { .code = 0 };
    struct box box = { 0 };
    int r;

    r = open_store(setup->place, &box.store, &error);
    if (r == 0)
        r = open_queue(&box, 0, &error);
    if (r == 0) {
        bench_lap_begin(lap);
        r = submit_all(box.durable, setup->threads, lap->operations);
        bench_lap_end(lap);
    }
    close_box(&box);
    return r < 0 ? bench_lap_fail(lap, r, "%.150s", error.code ? error.text : det_error_text(r))
                 : 0;
}

/* Number of other jobs. */
static uint64_t others_of(uint64_t multiple, uint64_t operations)
{
    const char *given = getenv("DETENT_BENCH_QUEUED");

    return multiple && given ? strtoull(given, NULL, 10) : multiple * operations;
}

static int wait_until_finished(struct box *box, bool is_all, struct det_error *reterr)
{
    struct timespec pause = { 0, 100000 };

    if (is_all)
        return det_tasks_run(box->tasks, reterr);
    while (atomic_load(&left) > 0 && atomic_load(&left) < UINT64_MAX / 2)
        (void)nanosleep(&pause, NULL);
    return 0;
}

static int run_finish(struct bench_lap *lap)
{
    const struct setup *setup = lap->argument;
    uint64_t queued_after = setup->has_few_queued ? (lap->operations + 4) / 5
                                                  : others_of(setup->queued_after, lap->operations);
    uint64_t ended_before = others_of(setup->ended_before, lap->operations);
    struct det_error error = { .code = 0 };
    struct box box = { 0 };
    int r;

    r = open_store(setup->place, &box.store, &error);
    if (r == 0 && ended_before)
        r = fill(box.store, 0, ended_before);
    if (r == 0 && ended_before)
        r = end_all(box.store);
    if (r == 0)
        r = fill(box.store, ended_before, lap->operations + queued_after);
    atomic_store(&left, lap->operations);
    /* Pending writes of the kernel for other jobs are not part of the cost. */
    if (queued_after || ended_before)
        sync();
    bench_lap_begin(lap);
    if (r == 0)
        r = open_queue(&box, setup->threads, &error);
    if (r == 0)
        r = wait_until_finished(&box, queued_after == 0, &error);
    bench_lap_end(lap);
    close_box(&box);
    return r < 0 ? bench_lap_fail(lap, r, "%.150s", error.code ? error.text : det_error_text(r))
                 : 0;
}

/* A peer is a separate program on the same server. */
static int run_peer(struct bench_lap *lap)
{
    const struct setup *setup = lap->argument;
    bool is_script = strstr(setup->peer, ".cjs") != NULL;
    char url[BENCH_PATH_MAX], count[24], number[12];
    const char *words[] = { "node", "--no-deprecation", setup->peer, url,
                            count,  setup->verb,        number,      NULL };

    (void)snprintf(
        url, sizeof url, "postgresql://postgres@localhost/postgres?host=%s",
        det_test_postgres_host(server));
    (void)snprintf(count, sizeof count, "%llu", (unsigned long long)lap->operations);
    (void)snprintf(number, sizeof number, "%u", setup->threads);
    return bench_child_peer(lap, is_script ? words : words + 2);
}

static int open_jobs(char *note)
{
    if (!det_test_postgres_is_installed()) {
        (void)snprintf(note, BENCH_NOTE_MAX, "PostgreSQL is not installed");
        return DET_ERR_UNSUPPORTED;
    }
    server = det_test_postgres_open();
    return 0;
}

static void close_jobs(void)
{
    if (server)
        det_test_postgres_close(server);
    server = NULL;
}

#define RIVER    BENCH_RIVER
#define GRAPHILE BENCH_PEERS "/graphile_worker.cjs"

static const struct setup one = { ON_POSTGRES, 1, 0, 0, NULL, NULL, false };
static const struct setup some = { ON_POSTGRES, 8, 0, 0, NULL, NULL, false };
static const struct setup many = { ON_POSTGRES, 64, 0, 0, NULL, NULL, false };
static const struct setup queued_few = { ON_POSTGRES, 64, 0, 0, NULL, NULL, true };
static const struct setup queued_after = { ON_POSTGRES, 64, 10, 0, NULL, NULL, false };
static const struct setup ended_before = { ON_POSTGRES, 64, 0, 10, NULL, NULL, false };
static const struct setup file_one = { ON_SQLITE, 1, 0, 0, NULL, NULL, false };
static const struct setup file_many = { ON_SQLITE, 64, 0, 0, NULL, NULL, false };
static const struct setup file_queued_few = { ON_SQLITE, 64, 0, 0, NULL, NULL, true };
static const struct setup file_queued_after = { ON_SQLITE, 64, 10, 0, NULL, NULL, false };
static const struct setup file_ended_before = { ON_SQLITE, 64, 0, 10, NULL, NULL, false };
static const struct setup river_insert_1 = { ON_POSTGRES, 1, 0, 0, RIVER, "insert", false };
static const struct setup river_insert_8 = { ON_POSTGRES, 8, 0, 0, RIVER, "insert", false };
static const struct setup river_insert_64 = { ON_POSTGRES, 64, 0, 0, RIVER, "insert", false };
static const struct setup river_1 = { ON_POSTGRES, 1, 0, 0, RIVER, "finish", false };
static const struct setup river_8 = { ON_POSTGRES, 8, 0, 0, RIVER, "finish", false };
static const struct setup river_64 = { ON_POSTGRES, 64, 0, 0, RIVER, "finish", false };
static const struct setup graphile_64 = { ON_POSTGRES, 64, 0, 0, GRAPHILE, "finish", false };

#define COMMON         .has_no_allocations = true
#define AHEAD_OF(peer) .goals = { { BENCH_AHEAD_OF, 0, peer } }
#define RI_1           "River, insert, 1 thread"
#define RI_8           "River, insert, 8 threads"
#define RI_64          "River, insert, 64 threads"
#define RF_1           "River, finish, 1 worker"
#define RF_8           "River, finish, 8 workers"
#define RF_64          "River, finish, 64 workers"
#define O_64           "PostgreSQL, finish, 64 workers"
#define S_64           "SQLite, finish, 64 workers"
#define O_FEW          "PostgreSQL, 64 workers, 1,000 more queued"
#define S_FEW          "SQLite, 64 workers, 1,000 more queued"

static const struct bench_case cases[] = {
    { RI_1, BENCH_PEER, run_peer, &river_insert_1, 500, COMMON, .against = "" },
    { "PostgreSQL, insert, 1 thread", BENCH_OURS, run_insert, &one, 500, COMMON, .against = RI_1,
      AHEAD_OF(RI_1) },
    { RI_8, BENCH_PEER, run_peer, &river_insert_8, 2000, COMMON, .against = "" },
    { "PostgreSQL, insert, 8 threads", BENCH_OURS, run_insert, &some, 2000, COMMON, .against = RI_8,
      AHEAD_OF(RI_8) },
    { RI_64, BENCH_PEER, run_peer, &river_insert_64, 4000, COMMON, .against = "" },
    { "PostgreSQL, insert, 64 threads", BENCH_OURS, run_insert, &many, 4000, COMMON,
      .against = RI_64, AHEAD_OF(RI_64) },
    { RF_1, BENCH_PEER, run_peer, &river_1, 500, COMMON, .against = "" },
    { "PostgreSQL, finish, 1 worker", BENCH_OURS, run_finish, &one, 500, COMMON, .against = RF_1,
      AHEAD_OF(RF_1) },
    { RF_8, BENCH_PEER, run_peer, &river_8, 2000, COMMON, .against = "" },
    { "PostgreSQL, finish, 8 workers", BENCH_OURS, run_finish, &some, 2000, COMMON, .against = RF_8,
      AHEAD_OF(RF_8) },
    { RF_64, BENCH_PEER, run_peer, &river_64, 5000, COMMON, .against = "" },
    { O_64, BENCH_OURS, run_finish, &many, 5000, COMMON, .against = RF_64,
      .goals = { { BENCH_AHEAD_OF, 0, RF_64 }, { BENCH_NS_MAX, 66666, NULL } } },
    { "graphile-worker, finish, 64 at once", BENCH_PEER, run_peer, &graphile_64, 1000, COMMON,
      .against = RF_64 },
    { O_FEW, BENCH_OURS, run_finish, &queued_few, 5000, COMMON, .against = O_64 },
    { "PostgreSQL, 64 workers, 10 times as many queued", BENCH_OURS, run_finish, &queued_after,
      5000, COMMON, .against = O_FEW, .goals = { { BENCH_RATIO_MAX, 1.3, NULL } } },
    { "PostgreSQL, 64 workers, 10 times as many ended", BENCH_OURS, run_finish, &ended_before, 5000,
      COMMON, .against = O_64, .goals = { { BENCH_RATIO_MAX, 1.3, NULL } } },
    { "SQLite, insert, 1 thread", BENCH_OURS, run_insert, &file_one, 500, COMMON, .against = "" },
    { "SQLite, insert, 64 threads", BENCH_OURS, run_insert, &file_many, 5000, COMMON,
      .against = "" },
    { "SQLite, finish, 1 worker", BENCH_OURS, run_finish, &file_one, 500, COMMON, .against = "" },
    { S_64, BENCH_OURS, run_finish, &file_many, 5000, COMMON, .against = "",
      .goals = { { BENCH_NS_MAX, 33333, NULL } } },
    { S_FEW, BENCH_OURS, run_finish, &file_queued_few, 5000, COMMON, .against = S_64 },
    { "SQLite, 64 workers, 10 times as many queued", BENCH_OURS, run_finish, &file_queued_after,
      5000, COMMON, .against = S_FEW, .goals = { { BENCH_RATIO_MAX, 1.3, NULL } } },
    { "SQLite, 64 workers, 10 times as many ended", BENCH_OURS, run_finish, &file_ended_before,
      5000, COMMON, .against = S_64, .goals = { { BENCH_RATIO_MAX, 1.3, NULL } } },
};

extern const struct bench bench_jobs;
const struct bench bench_jobs = {
    .title = "durable jobs: inserted, and executed by workers; each commit is synced to the disk",
    .operation = "job",
    .has_processor = true,
    .rounds = 3,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .open = open_jobs,
    .close = close_jobs,
};
