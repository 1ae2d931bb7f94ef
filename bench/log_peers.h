/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_peers.h - rows of 256 bytes appended to streams of Redis and NATS JetStream. */
#ifndef BENCH_LOG_PEERS_H
#define BENCH_LOG_PEERS_H

#include "bench.h"

struct log_redis {
    const char *sync; /* appendfsync: always, everysec */
    const char *clients, *pipeline;
};

struct log_nats {
    const char *in_flight;
    bool is_synced; /* before the server answers */
};

/* `lap->argument` is one of the above. A server is started for the lap, which is not measured. */
int log_peer_redis(struct bench_lap *lap);
int log_peer_nats(struct bench_lap *lap);

#endif
