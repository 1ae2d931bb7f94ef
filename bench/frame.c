/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* frame.c - measures the cases of one bench, round by round, and compares them with their goals. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "frame.h"
#include "statistics.h"

#define ROUNDS_DEFAULT 21
#define ROUNDS_QUICK   1
#define QUICK_SHARE    50 /* of the work, to test that it runs */

static uint64_t operations_of(const struct bench_case *what, bool is_quick)
{
    uint64_t operations = is_quick ? what->operations / QUICK_SHARE : what->operations;

    return operations ? operations : 1;
}

/* Runs one lap; a case that failed once is not run again. */
static void run_lap(struct bench_result *result, bool is_quick, int round)
{
    struct bench_lap lap = {
        .operations = operations_of(result->what, is_quick),
        .argument = result->what->argument,
        .clock = result->what->clock,
    };

    if (result->code < 0)
        return;
    result->code = result->what->run(&lap);
    if (result->code < 0)
        memcpy(result->note, lap.note, sizeof result->note);
    if (result->code < 0 || round < 0)
        return;
    result->samples[round] = lap.nanoseconds / (double)lap.operations;
    result->processor_samples[round] = lap.processor_ns / (double)lap.operations;
    result->allocations = (double)lap.allocations / (double)lap.operations;
    result->kept_bytes = lap.kept_bytes / (double)lap.operations;
}

static const struct bench_result *find(const struct bench_results *results, const char *name)
{
    for (size_t i = 0; i < results->count; i++) {
        if (strcmp(results->items[i].what->name, name) == 0)
            return &results->items[i];
    }
    return NULL;
}

const struct bench_result *bench_baseline(
    const struct bench_results *results, const struct bench_result *result)
{
    const char *against = result->what->against;
    const struct bench_result *other =
        find(results, against ? against : results->bench->cases[0].name);

    return other && other != result && other->code == 0 && result->code == 0 ? other : NULL;
}

/* The ratio of each round, and their median. */
static double ratio_of(const double *samples, const double *others, unsigned rounds)
{
    double ratios[BENCH_ROUNDS_MAX];

    for (unsigned i = 0; i < rounds; i++)
        ratios[i] = others[i] > 0 ? samples[i] / others[i] : 0;
    return bench_quantile(ratios, rounds, 0.5);
}

static double ratio_to(
    const struct bench_result *result, const struct bench_result *other, unsigned rounds)
{
    return ratio_of(result->samples, other->samples, rounds);
}

static enum bench_verdict verdict_of(bool is_met)
{
    return is_met ? BENCH_MET : BENCH_MISSED;
}

static enum bench_verdict validate(
    const struct bench_results *results, const struct bench_result *result,
    const struct bench_goal *goal)
{
    const struct bench_result *other;

    if (result->code < 0)
        return BENCH_UNKNOWN;
    switch (goal->kind) {
    case BENCH_NO_GOAL:
        break;
    case BENCH_RATIO_MAX:
        return result->ratio > 0 ? verdict_of(result->ratio <= goal->value) : BENCH_UNKNOWN;
    case BENCH_NS_MAX:
        return verdict_of(result->median <= goal->value);
    case BENCH_AHEAD_OF:
        other = find(results, goal->against);
        if (!other || other->code < 0)
            return BENCH_UNKNOWN;
        return verdict_of(
            ratio_to(result, other, results->rounds) * (goal->value > 0 ? goal->value : 1) < 1);
    case BENCH_ALLOCATIONS_MAX:
        return verdict_of(result->allocations <= goal->value);
    case BENCH_BYTES_MAX:
        return verdict_of(result->kept_bytes <= goal->value);
    }
    return BENCH_UNKNOWN;
}

/* Ratios need the samples in the order of the rounds, so they come before all sorting. */
static void summarize(struct bench_results *results)
{
    for (size_t i = 0; i < results->count; i++) {
        struct bench_result *result = &results->items[i];
        const struct bench_result *other = bench_baseline(results, result);

        result->ratio = other ? ratio_to(result, other, results->rounds) : 0;
        if (other)
            result->processor_ratio =
                ratio_of(result->processor_samples, other->processor_samples, results->rounds);
    }
    for (size_t i = 0; i < results->count; i++) {
        struct bench_result *result = &results->items[i];
        double sorted[BENCH_ROUNDS_MAX];

        memcpy(sorted, result->samples, sizeof sorted);
        result->median = bench_quantile(sorted, results->rounds, 0.5);
        result->p10 = bench_quantile(sorted, results->rounds, 0.1);
        result->p90 = bench_quantile(sorted, results->rounds, 0.9);
        memcpy(sorted, result->processor_samples, sizeof sorted);
        result->processor = bench_quantile(sorted, results->rounds, 0.5);
        for (size_t k = 0; k < BENCH_GOALS_MAX; k++)
            result->verdicts[k] = validate(results, result, &result->what->goals[k]);
    }
}

static void run_rounds(struct bench_results *results, bool is_quick)
{
    for (int round = results->bench->has_no_warm_up ? 0 : -1; round < (int)results->rounds;
         round++) {
        for (size_t i = 0; i < results->count; i++)
            run_lap(&results->items[i], is_quick, round);
    }
}

static void choose_cases(struct bench_results *results, const char *filter)
{
    const struct bench *bench = results->bench;

    for (size_t i = 0; i < bench->case_count; i++) {
        if (!filter || strstr(bench->cases[i].name, filter))
            results->items[results->count++].what = &bench->cases[i];
    }
}

int bench_measure(
    const char *name, const struct bench *bench, const struct bench_measure_options *options,
    struct bench_results *ret, char *note)
{
    int r;

    det_assert(bench->case_count <= BENCH_CASES_MAX);
    det_assert(bench->rounds <= BENCH_ROUNDS_MAX);
    memset(ret, 0, sizeof *ret);
    ret->bench = bench;
    ret->name = name;
    ret->rounds = bench->rounds ? bench->rounds : ROUNDS_DEFAULT;
    if (options->is_quick)
        ret->rounds = ROUNDS_QUICK;
    choose_cases(ret, options->case_filter);
    note[0] = '\0';
    r = bench->open ? bench->open(note) : 0;
    if (r < 0)
        return r;
    run_rounds(ret, options->is_quick);
    summarize(ret);
    if (bench->close)
        bench->close();
    return 0;
}

/* A span in the unit that suits it. */
static void span_text(double ns, char *target, size_t capacity)
{
    if (ns >= 1e9)
        (void)snprintf(target, capacity, "%g s", ns / 1e9);
    else if (ns >= 1e6)
        (void)snprintf(target, capacity, "%g ms", ns / 1e6);
    else
        (void)snprintf(target, capacity, "%g ns", ns);
}

void bench_goal_text(
    const struct bench_results *results, const struct bench_result *result,
    const struct bench_goal *goal, char *target, size_t capacity)
{
    const char *against = result->what->against;
    char span[32];

    switch (goal->kind) {
    case BENCH_NO_GOAL:
        target[0] = '\0';
        break;
    case BENCH_RATIO_MAX:
        (void)snprintf(
            target, capacity, "at most %g x %s", goal->value,
            against ? against : results->bench->cases[0].name);
        break;
    case BENCH_NS_MAX:
        span_text(goal->value, span, sizeof span);
        (void)snprintf(target, capacity, "at most %s", span);
        break;
    case BENCH_AHEAD_OF:
        if (goal->value > 0)
            (void)snprintf(
                target, capacity, "at least %g x as fast as %s", goal->value, goal->against);
        else
            (void)snprintf(target, capacity, "ahead of %s", goal->against);
        break;
    case BENCH_ALLOCATIONS_MAX:
        (void)snprintf(target, capacity, "%g allocations", goal->value);
        break;
    case BENCH_BYTES_MAX:
        (void)snprintf(
            target, capacity, "keeps %.0f bytes, at most %g", result->kept_bytes, goal->value);
        break;
    }
}
