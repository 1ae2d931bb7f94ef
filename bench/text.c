/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* text.c - sends to an instance in memory whose data has a text of 40 bytes, declared with 64 bytes
 * and with 200,000: the cost of a send must depend on the used size. */
#include <detent/runtime.h>

#include "bench.h"

#define FSM_LOCAL
#define FSM_SPEC "text_small.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "text_large.fsm"
#include <detent/fsm/declare.h>

#define FSM_LOCAL
#define FSM_SPEC "text_small.fsm"
#include <detent/fsm/define.h>
#define FSM_LOCAL
#define FSM_SPEC "text_large.fsm"
#include <detent/fsm/define.h>

#define SENDS 100000
#define TEXT  "forty bytes of text that an order may have"

static struct det_store *store;
static struct det_runtime *runtime;

static void add_small(struct text_small_data *data, const struct text_small_event *event)
{
    (void)event;
    data->count++;
}

static void add_large(struct text_large_data *data, const struct text_large_event *event)
{
    (void)event;
    data->count++;
}

static int end_lap(struct bench_lap *lap, int r)
{
    bench_lap_end(lap);
    return r < 0 ? bench_lap_fail(lap, r, "%s", det_error_text(r)) : 0;
}

static int run_small(struct bench_lap *lap)
{
    int r = 0;

    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++)
        r = text_small_send(runtime, "one", text_small_count(), NULL);
    return end_lap(lap, r);
}

static int run_large(struct bench_lap *lap)
{
    int r = 0;

    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++)
        r = text_large_send(runtime, "one", text_large_count(), NULL);
    return end_lap(lap, r);
}

static void close_text(void)
{
    det_runtime_close(runtime);
    det_store_close(store);
    runtime = NULL;
    store = NULL;
}

static int open_text(char *note)
{
    static const struct text_small_data small = { .text = TEXT };
    static const struct text_large_data large = { .text = TEXT };
    int r = det_store_open("memory:", &store, NULL);

    (void)note;
    if (r == 0)
        r = det_runtime_open(store, &(struct det_runtime_options){ 0 }, &runtime, NULL);
    if (r == 0)
        r = det_runtime_serve(runtime, &text_small_machine, NULL);
    if (r == 0)
        r = det_runtime_serve(runtime, &text_large_machine, NULL);
    if (r == 0)
        r = det_runtime_start(runtime, &text_small_machine, "one", &small, NULL, NULL, NULL);
    if (r == 0)
        r = det_runtime_start(runtime, &text_large_machine, "one", &large, NULL, NULL, NULL);
    if (r < 0)
        close_text();
    return r;
}

#define SMALL "a text of 40 bytes, declared with 64"
static const struct bench_case cases[] = {
    { SMALL, BENCH_OURS, run_small, NULL, SENDS, .clock = BENCH_OWN, .against = "" },
    { "the same, declared with 200,000", BENCH_OURS, run_large, NULL, SENDS / 10,
      .clock = BENCH_OWN, .against = SMALL, .goals = { { BENCH_RATIO_MAX, 2, NULL } } },
};

extern const struct bench bench_text;
const struct bench bench_text = {
    .title = "sends that change data with a text, in memory",
    .operation = "send",
    .rounds = 7,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .open = open_text,
    .close = close_text,
};
