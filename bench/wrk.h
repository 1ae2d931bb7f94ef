/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* wrk.h - servers measured by wrk with 64 connections of one thread. */
#ifndef BENCH_WRK_H
#define BENCH_WRK_H

#include "bench.h"

#define WRK_REQUESTS 50000 /* about the requests of one second, which is wrk's shortest time */
#define WRK_BARE     "libmicrohttpd, a bare handler"

/* The answer of the bare handlers. */
extern const char wrk_body[36];

/* `script` is a file in Lua; NULL: requests the URL. */
DET_MUST_CHECK int wrk_load(struct bench_lap *lap, const char *url, const char *script);
/* The limit. */
DET_MUST_CHECK int wrk_bare(struct bench_lap *lap);

#endif
