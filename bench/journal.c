/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* journal.c - rows of 256 bytes appended to a journal. */
#include "log_limit.h"
#include "log_peers.h"

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

static const struct log_redis everysec = { "everysec", "50", "16" };
static const struct log_redis always = { "always", "50", "16" };
static const struct log_redis always_single = { "always", "1", "1" };
static const struct log_nats nats = { "1024", false }, nats_single = { "1", false };
static const struct log_nats nats_synced = { "1024", true };

#define LIMIT(run, count) BENCH_LIMIT, run, NULL, count, LOG_ROW_SIZE, .against = ""
#define PEER(run, argument, count, against_text)                                  \
    BENCH_PEER, run, &(argument), count, LOG_ROW_SIZE, .against = (against_text), \
                                                       .has_no_allocations = true

static const struct bench_case cases[] = {
    { MEMORY_LIMIT, LIMIT(log_limit_memory, 4000000) },
    { OS_LIMIT, LIMIT(log_limit_os, 1000000) },
    { OS_REDIS, PEER(log_peer_redis, everysec, 200000, OS_LIMIT) },
    { OS_NATS, PEER(log_peer_nats, nats, 100000, OS_LIMIT) },
    { OS_NATS_ONE, PEER(log_peer_nats, nats_single, 5000, "") },
    { DISK_LIMIT, LIMIT(log_limit_disk, 2000000) },
    { DISK_REDIS, PEER(log_peer_redis, always, 100000, DISK_LIMIT) },
    { DISK_NATS, PEER(log_peer_nats, nats_synced, 100000, DISK_LIMIT) },
    { SINGLE_LIMIT, LIMIT(log_limit_disk_single, 2000) },
    { SINGLE_REDIS, PEER(log_peer_redis, always_single, 2000, SINGLE_LIMIT) },
};

static void close_files(void)
{
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
