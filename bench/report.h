/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* report.h - results as a table for people and as lines of JSON for programs. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdio.h>

#include "frame.h"

struct bench_tally {
    unsigned met, missed, unknown, failed;
};

/* The table of one bench. Marks are coloured when `has_color`. */
void bench_report_table(FILE *file, const struct bench_results *results, bool has_color);
/* One object a line and case; the fields are listed in bench/README.md. */
void bench_report_json(FILE *file, const struct bench_results *results);
/* Adds the verdicts of one bench. */
void bench_report_count(const struct bench_results *results, struct bench_tally *tally);

#endif
