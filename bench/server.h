/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* server.h - private servers of peers, on loopback or a socket in the folder of this run. */
#ifndef BENCH_SERVER_H
#define BENCH_SERVER_H

#include <sys/types.h>

#include "bench.h"

struct bench_server {
    pid_t process; /* 0: none */
    char folder[BENCH_PATH_MAX];
};

/* A fresh folder for the files of a server. */
DET_MUST_CHECK int bench_server_folder(struct bench_server *server, const char *name);
/* A TCP port of 127.0.0.1 that nobody uses; 0: there is none. */
unsigned bench_server_port(void);
/* Starts the program, whose output is dropped, and waits until it accepts connections at `port`, or
 * at the socket file `path` if the port is 0. DET_ERR_UNSUPPORTED if it is not installed;
 * DET_ERR_CLOSED if it ended instead. */
DET_MUST_CHECK int bench_server_start(
    struct bench_server *server, const char *const *arguments, unsigned port, const char *path);
/* Kills it and removes its folder; harmless if it does not run. */
void bench_server_stop(struct bench_server *server);

#endif
