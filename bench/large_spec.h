/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* large_spec.h - a machine of 2,000 rows, as a spec, as C that includes it, and as plain C. */
#ifndef BENCH_LARGE_SPEC_H
#define BENCH_LARGE_SPEC_H

#include "base/buffer.h"

#define LARGE_ROWS        2000
#define LARGE_STATES      100
#define LARGE_EVENTS      17
#define LARGE_TRANSITIONS 1637

/* Each appends to `target`, whose status is an error if out of memory. */
void bench_large_spec(struct det_buffer *target);
/* A source file that makes a machine of the spec in `path`. */
void bench_large_source(struct det_buffer *target, const char *path);
/* The same transitions in hand-written C: enums and one table. */
void bench_large_plain(struct det_buffer *target);

#endif
