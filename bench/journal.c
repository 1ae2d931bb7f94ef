/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* journal.c - rows of 256 bytes appended to a journal. */
#include "log_journal.h"
#include "log_limit.h"
#include "log_peers.h"

/* Kept, so that segments are reused as in a log that has run for a while. */
#define KEPT         (UINT64_C(128) << 20)

#define OS_LIMIT     "os: 64 KiB writes in C"
#define DISK_LIMIT   "disk: two buffers in C"
#define SINGLE_LIMIT "disk: one at a time in C"
#define MEMORY_LIMIT "memory: copies in C"
#define OS_REDIS     "os: Redis everysec, 50 x 16"
#define OS_NATS      "os: NATS JetStream, 1,024"
#define OS_NATS_ONE  "os: NATS, one at a time"
#define DISK_REDIS   "disk: Redis always, 50 x 16"
#define DISK_NATS    "disk: NATS sync always, 1,024"
#define SINGLE_REDIS "disk: Redis, one at a time"

struct method {
    enum det_journal_durability durability;
    struct log_append append;
    bool is_new; /* a new journal for each lap, whose segments are not reused */
};

/* By durability; NULL: not yet opened. */
static struct det_journal *journals[DET_JOURNAL_MEMORY + 1];

static int journal_of(
    const struct method *method, char *url, struct det_journal **ret, struct det_error *error)
{
    struct det_journal_options options = { .durability = method->durability };
    int r;

    url[0] = '\0';
    if (method->is_new)
        return log_journal_open(&options, url, ret, error);
    options.retain_size = KEPT;
    if (!journals[method->durability]) {
        r = log_journal_open(&options, NULL, &journals[method->durability], error);
        if (r < 0)
            return r;
    }
    *ret = journals[method->durability];
    return 0;
}

static int run_append(struct bench_lap *lap)
{
    const struct method *method = lap->argument;
    struct det_error error = { .code = 0 };
    struct det_journal *journal = NULL;
    char url[LOG_URL_MAX];
    int r;

    r = journal_of(method, url, &journal, &error);
    if (r < 0)
        return log_journal_fail(lap, r, &error);
    lap->operations += method->append.group - 1;
    lap->operations -= lap->operations % method->append.group;
    bench_lap_begin(lap);
    r = log_journal_append(journal, &method->append, lap->operations, &error);
    bench_lap_end(lap);
    if (method->is_new) {
        det_journal_close(journal);
        log_journal_remove(url);
    }
    return r < 0 ? log_journal_fail(lap, r, &error) : 0;
}

static const struct method memory = { DET_JOURNAL_MEMORY, .append.group = 1 };
static const struct method memory_groups = { DET_JOURNAL_MEMORY, .append.group = LOG_GROUP_MAX };
static const struct method os = { DET_JOURNAL_OS, .append.group = 1 };
static const struct method os_groups = { DET_JOURNAL_OS, .append.group = LOG_GROUP_MAX };
static const struct method os_single = { DET_JOURNAL_OS, .append.group = 1, .append.in_flight = 1 };
static const struct method disk = { DET_JOURNAL_DISK, .append.group = 1 };
static const struct method disk_groups = { DET_JOURNAL_DISK, .append.group = LOG_GROUP_MAX };
static const struct method disk_new = { DET_JOURNAL_DISK, .append.group = LOG_GROUP_MAX,
                                        .is_new = true };
static const struct method disk_some = { DET_JOURNAL_DISK, .append.group = 1,
                                         .append.in_flight = 800 };
static const struct method disk_single = { DET_JOURNAL_DISK, .append.group = 1,
                                           .append.in_flight = 1 };

static const struct log_redis everysec = { "everysec", "50", "16" };
static const struct log_redis always = { "always", "50", "16" };
static const struct log_redis always_single = { "always", "1", "1" };
static const struct log_nats nats = { "1024", false }, nats_single = { "1", false };
static const struct log_nats nats_synced = { "1024", true };

#define LIMIT(run, count) BENCH_LIMIT, run, NULL, count, LOG_ROW_SIZE, .against = ""
#define PEER(run, argument, count, against_text)                                  \
    BENCH_PEER, run, &(argument), count, LOG_ROW_SIZE, .against = (against_text), \
                                                       .has_no_allocations = true

/* Of the limit at least 70 %. */
#define SHARE(limit)        .against = (limit), .goals = { { BENCH_RATIO_MAX, 1 / 0.7 } }
#define OURS(method, count) BENCH_OURS, run_append, &(method), count, LOG_ROW_SIZE

static const struct bench_case cases[] = {
    { MEMORY_LIMIT, LIMIT(log_limit_memory, 2000000) },
    { "memory: append", OURS(memory, 1000000), SHARE(MEMORY_LIMIT) },
    { "memory: append groups of 64", OURS(memory_groups, 2000000), SHARE(MEMORY_LIMIT) },
    { OS_LIMIT, LIMIT(log_limit_os, 1000000) },
    { "os: append", OURS(os, 1000000), SHARE(OS_LIMIT) },
    { "os: append groups of 64", OURS(os_groups, 1000000), SHARE(OS_LIMIT) },
    { OS_REDIS, PEER(log_peer_redis, everysec, 200000, OS_LIMIT) },
    { OS_NATS, PEER(log_peer_nats, nats, 100000, OS_LIMIT) },
    { "os: one at a time", OURS(os_single, 100000), .against = OS_NATS_ONE,
      .goals = { { BENCH_AHEAD_OF, 0, OS_NATS_ONE } } },
    { OS_NATS_ONE, PEER(log_peer_nats, nats_single, 5000, "") },
    { DISK_LIMIT, LIMIT(log_limit_disk, 2000000) },
    { "disk: append", OURS(disk, 2000000), SHARE(DISK_LIMIT) },
    { "disk: append groups of 64", OURS(disk_groups, 2000000), SHARE(DISK_LIMIT) },
    { "disk: groups to new segments", OURS(disk_new, 1000000), .against = DISK_LIMIT },
    { "disk: 800 in flight", OURS(disk_some, 500000), .against = DISK_LIMIT,
      .goals = { { BENCH_AHEAD_OF, 10, DISK_REDIS }, { BENCH_AHEAD_OF, 10, OS_NATS } } },
    { DISK_REDIS, PEER(log_peer_redis, always, 100000, DISK_LIMIT) },
    { DISK_NATS, PEER(log_peer_nats, nats_synced, 100000, DISK_LIMIT) },
    { SINGLE_LIMIT, LIMIT(log_limit_disk_single, 2000) },
    { "disk: one at a time", OURS(disk_single, 2000), SHARE(SINGLE_LIMIT) },
    { SINGLE_REDIS, PEER(log_peer_redis, always_single, 2000, SINGLE_LIMIT) },
};

static void close_files(void)
{
    for (size_t i = 0; i < sizeof journals / sizeof journals[0]; i++) {
        det_journal_close(journals[i]);
        journals[i] = NULL;
    }
    log_limit_close();
}

extern const struct bench bench_journal;
const struct bench bench_journal = {
    .title = "journal: rows of 256 bytes",
    .operation = "row",
    .rounds = 7,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .close = close_files,
};
