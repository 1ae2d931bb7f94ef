/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sim.c - speed of a simulated world: steps of its scheduler, days of its clock, sends. */
#include <detent/sim.h>

#include "bench.h"
#include "load.h"
#include "os/os.h"

#define STEPS     200000
#define DAYS      10
#define SENDS     20000
#define INSTANCES 100

/* Two threads that hand a number to each other, one step at a time. */
struct game {
    struct det_world *world;
    struct det_mutex *mutex;
    struct det_condition *turned;
    uint64_t turns, turns_max;
};

struct player {
    struct game *game;
    unsigned side;
};

static int fail(struct bench_lap *lap, int code)
{
    return bench_lap_fail(lap, code, "%s", det_error_text(code));
}

static void play(void *argument)
{
    struct player *player = argument;
    struct game *game = player->game;
    int r = 0;

    det_mutex_lock(game->world, game->mutex);
    while (game->turns < game->turns_max && r == 0) {
        if (game->turns % 2 == player->side) {
            game->turns++;
            det_condition_broadcast(game->world, game->turned);
        } else {
            r = det_condition_wait(game->world, game->turned, game->mutex, DET_NEVER);
        }
    }
    det_condition_broadcast(game->world, game->turned);
    det_mutex_unlock(game->world, game->mutex);
}

static int play_all(struct game *game)
{
    struct player players[2] = { { game, 0 }, { game, 1 } };
    struct det_thread *threads[2] = { NULL, NULL };
    int r = 0;

    for (unsigned i = 0; i < 2 && r == 0; i++)
        r = det_thread_start(game->world, "player", play, &players[i], &threads[i]);
    for (unsigned i = 0; i < 2; i++) {
        if (threads[i])
            det_thread_join(game->world, threads[i]);
    }
    return r;
}

static int run_steps(struct bench_lap *lap)
{
    DET_SCOPED(sim) sim = NULL;
    struct game game = { .turns_max = lap->operations };
    int r = det_sim_open(&(struct det_sim_options){ .seed = 5 }, &sim, NULL);

    if (r < 0)
        return fail(lap, r);
    game.world = det_sim_world(sim);
    r = det_mutex_open(game.world, &game.mutex);
    if (r == 0)
        r = det_condition_open(game.world, &game.turned);
    bench_lap_begin(lap);
    if (r == 0)
        r = play_all(&game);
    bench_lap_end(lap);
    lap->operations = det_sim_steps(sim);
    det_condition_close(game.world, game.turned);
    det_mutex_close(game.world, game.mutex);
    return r < 0 ? fail(lap, r) : 0;
}

static int open_world(struct bench_lap *lap, struct det_sim **ret, struct load *ret_load)
{
    struct det_runtime_options options = { 0 };
    struct det_error error;
    int r = det_sim_open(&(struct det_sim_options){ .seed = 5 }, ret, NULL);

    if (r < 0)
        return fail(lap, r);
    options.world = det_sim_world(*ret);
    r = load_open(ret_load, INSTANCES, &options, &error);
    return r < 0 ? bench_lap_fail(lap, r, "%.150s", error.text) : 0;
}

/* An hour after each send the instance gets its timeout: days pass, and all are sent by timers. */
static int run_days(struct bench_lap *lap)
{
    DET_SCOPED(sim) sim = NULL;
    struct load load = { 0 };
    int r = open_world(lap, &sim, &load);

    if (r < 0)
        return r;
    bench_lap_begin(lap);
    r = det_sim_advance(sim, (det_time)lap->operations * DET_DAY);
    bench_lap_end(lap);
    load_close(&load);
    return r < 0 ? fail(lap, r) : 0;
}

static int run_sends(struct bench_lap *lap)
{
    DET_SCOPED(sim) sim = NULL;
    struct load load = { 0 };
    int r = open_world(lap, &sim, &load);

    if (r < 0)
        return r;
    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++) {
        struct load_event event = load_next((struct amount){ .amount = i });

        r = load_send(load.runtime, load.ids[i % INSTANCES], event, NULL);
    }
    bench_lap_end(lap);
    load_close(&load);
    return r < 0 ? fail(lap, r) : 0;
}

static const struct bench_case cases[] = {
    { "a step of the scheduler", BENCH_OURS, run_steps, NULL, STEPS, .clock = BENCH_OWN },
    { "a send, 100 instances", BENCH_OURS, run_sends, NULL, SENDS, .clock = BENCH_OWN,
      .against = "" },
    { "a day of 2,400 timeouts", BENCH_OURS, run_days, NULL, DAYS, .clock = BENCH_OWN,
      .against = "" },
};

extern const struct bench bench_sim;
const struct bench bench_sim = {
    .title = "the simulated world",
    .operation = "item",
    .rounds = 11,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
};
