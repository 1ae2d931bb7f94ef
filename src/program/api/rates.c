/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rates.c - rates over time: totals are sampled every five seconds on the http thread. Their
 * differences are kept for a day in a ring of the daemon, which survives a reload.
 *
 *     ring: [ ... | newest | oldest | ... ]      `next` is the place of the next sample
 *                            ^ next              `taken` counts samples up to the ring's size */
#include <detent/driver/loop.h>
#include <stdio.h>

#include "api/api_internal.h"
#include "daemon/daemon.h"
#include "daemon/machines.h"

#define RATE_STEP   (5 * DET_SECOND)
#define SHOWN_STEPS 12  /* in the overview: a minute */
#define POINTS_MAX  360 /* in an answer: about the width of a screen */
#define SPAN_MIN    60  /* seconds */
#define SPAN_MAX    (UP_RATE_STEPS * 5)

static const char *const rate_names[UP_RATES] = { "events", "unhandled", "effects_failed",
                                                  "restarts" };

static void read_totals(const struct api *api, uint64_t totals[UP_RATES])
{
    struct det_runtime_counts counts = { 0 };

    if (api->pause.state == API_SERVING && up_machines(api->up))
        det_runtime_counts(api_runtime(api), &counts);
    totals[0] = counts.transitions;
    totals[1] = counts.unhandled;
    totals[2] = counts.effects_failed;
    totals[3] = up_tasks_restarts(api->up);
}

static void on_sample(void *argument)
{
    struct api *api = argument;
    struct up_rates *rates = &up_api_place(api->up)->rates;
    uint64_t totals[UP_RATES];

    read_totals(api, totals);
    for (size_t i = 0; i < UP_RATES; i++) {
        /* Reopened machines count from 0 again. */
        uint64_t step = totals[i] - (totals[i] < rates->last[i] ? 0 : rates->last[i]);

        rates->steps[i][rates->next] = step > UINT32_MAX ? UINT32_MAX : (uint32_t)step;
        rates->last[i] = totals[i];
    }
    rates->next = (rates->next + 1) % UP_RATE_STEPS;
    rates->taken += rates->taken < UP_RATE_STEPS;
    rates->sampled_at = det_world_now(api->world, DET_CLOCK_WALL);
    api_old_servers_close(api, false);
    (void)!det_loop_timer_set(api->loop, &api->rates_timer, det_loop_now(api->loop) + RATE_STEP);
}

int api_rates_open(struct api *api)
{
    api->rates_timer = (struct det_timer){ .run = on_sample, .argument = api };
    return det_loop_timer_set(api->loop, &api->rates_timer, det_loop_now(api->loop) + RATE_STEP);
}

/* Returns the sample `age` steps ago; 0 is the newest. */
static uint32_t step_at(const struct up_rates *rates, size_t rate, size_t age)
{
    return rates->steps[rate][(rates->next + UP_RATE_STEPS - 1 - age) % UP_RATE_STEPS];
}

/* Writes points of `group` samples each, oldest first, per second; null where nothing was
 * sampled. */
static void write_series(
    struct det_json_writer *json, const struct up_rates *rates, size_t rate, size_t points,
    size_t group)
{
    char text[32];
    int size;

    det_json_open(json, rate_names[rate], '[');
    for (size_t point = points; point-- > 0;) {
        uint64_t sum = 0;

        for (size_t i = 0; i < group; i++)
            sum += step_at(rates, rate, point * group + i);
        size = snprintf(
            text, sizeof text, "%.2f",
            (double)sum * (double)DET_SECOND / (double)(RATE_STEP * (det_time)group));
        if ((point + 1) * group > rates->taken)
            det_json_raw(json, NULL, "null", 4);
        else
            det_json_raw(json, NULL, text, (size_t)size);
    }
    det_json_close(json, ']');
}

/* Writes the last minute, for the overview. Missing samples count as 0. */
void api_write_rates(struct api_call *call)
{
    const struct up_rates *rates = &up_api_place(call->api->up)->rates;
    struct det_json_writer *json = &call->json;
    char text[32];
    int size;

    det_json_open(json, "rates", '{');
    det_json_signed(json, "step_ns", RATE_STEP);
    for (size_t i = 0; i < UP_RATES; i++) {
        det_json_open(json, rate_names[i], '[');
        for (size_t age = SHOWN_STEPS; age-- > 0;) {
            size = snprintf(
                text, sizeof text, "%.1f",
                (double)step_at(rates, i, age) * (double)DET_SECOND / (double)RATE_STEP);
            det_json_raw(json, NULL, text, (size_t)size);
        }
        det_json_close(json, ']');
    }
    det_json_close(json, '}');
}

void api_get_rates(struct api_call *call)
{
    const struct up_rates *rates = &up_api_place(call->api->up)->rates;
    struct det_json_writer *json = &call->json;
    uint64_t span = 3600;
    size_t steps, group, points;

    if (!api_query_number(call, "span_s", SPAN_MIN, SPAN_MAX, &span))
        return;
    steps = (size_t)(span * (uint64_t)DET_SECOND / (uint64_t)RATE_STEP);
    group = (steps + POINTS_MAX - 1) / POINTS_MAX;
    points = steps / group;
    det_json_open(json, NULL, '{');
    det_json_signed(json, "step_ns", RATE_STEP * (det_time)group);
    det_json_time(
        json, "until",
        rates->taken ? rates->sampled_at : det_world_now(call->api->world, DET_CLOCK_WALL));
    for (size_t i = 0; i < UP_RATES; i++)
        write_series(json, rates, i, points, group);
    det_json_close(json, '}');
}
