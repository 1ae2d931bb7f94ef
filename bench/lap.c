/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lap.c - one lap: its clock, its allocations, its excuses; and the random numbers of the run. */
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "bench.h"

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t bench_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

static int64_t span_of(const struct timeval *span)
{
    return ((int64_t)span->tv_sec * 1000000 + span->tv_usec) * 1000;
}

static int64_t children_ns(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_CHILDREN, &usage);
    return span_of(&usage.ru_utime) + span_of(&usage.ru_stime);
}

static int64_t lap_now(const struct bench_lap *lap)
{
    switch (lap->clock) {
    case BENCH_WALL:
        break;
    case BENCH_OWN:
        return read_clock(CLOCK_THREAD_CPUTIME_ID);
    case BENCH_CHILDREN:
        return children_ns();
    }
    return bench_now_ns();
}

void bench_lap_begin(struct bench_lap *lap)
{
    lap->allocations = bench_allocations();
    lap->processor_started_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    lap->started_ns = lap_now(lap);
}

void bench_lap_end(struct bench_lap *lap)
{
    lap->nanoseconds = (double)(lap_now(lap) - lap->started_ns);
    lap->processor_ns = (double)(read_clock(CLOCK_PROCESS_CPUTIME_ID) - lap->processor_started_ns);
    lap->allocations = bench_allocations() - lap->allocations;
}

int bench_lap_fail(struct bench_lap *lap, int code, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    (void)vsnprintf(lap->note, sizeof lap->note, format, list);
    va_end(list);
    return code;
}

void bench_use(uint64_t value)
{
    static volatile uint64_t used;

    used = value;
    (void)used;
}

uint64_t bench_random(uint64_t *seed)
{
    uint64_t z = (*seed += UINT64_C(0x9E3779B97F4A7C15));

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}
