/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* communicator_fixture_test.h - a communicator under a supervisor, a channel and a relay, in
 * virtual or in real time. */
#ifndef DET_KINDS_COMMUNICATOR_FIXTURE_TEST_H
#define DET_KINDS_COMMUNICATOR_FIXTURE_TEST_H

#include "lib/test.h"

#include <detent/sim.h>

#include "kinds/communicator.h"
#include "kinds/kinds.h"
#include "kinds/relay_mock_test.h"
#include "os/os.h"

#define SECRET "user-secret"
#define ID     "plant/relay"

struct plant {
    struct det_sim *sim; /* NULL: in real time */
    struct det_world *world;
    struct relay_mock *mock;
    struct channel *channel;
    struct det_workers *workers;
    struct det_worker_status status;
    struct communicator_observed observed;
    unsigned sent;
};

static inline int apply(struct plant *plant, const char *token)
{
    char yaml[512];
    struct det_error error = { 0 };
    int r;

    snprintf(
        yaml, sizeof yaml,
        "children:\n"
        "  - name: relay\n"
        "    kind: communicator\n"
        "    config: { relay_url: \"%s\", auth_token: %s }\n",
        relay_mock_url(plant->mock), token);
    r = det_workers_apply(plant->workers, yaml, &error);
    if (r < 0)
        print_message("%s\n", error.text);
    return r;
}

static inline void plant_open(struct plant *plant, bool is_real)
{
    static const struct det_worker_kind *const kinds[] = { &communicator_kind, NULL };
    struct det_worker_limits limits = { 0 };
    struct det_error error = { 0 };

    *plant = (struct plant){ .world = det_world_real() };
    if (!is_real) {
        assert_int_equal(det_sim_open(NULL, &plant->sim, NULL), 0);
        plant->world = det_sim_world(plant->sim);
    } else {
        limits.tick = 5 * DET_MILLISECOND;
        limits.observe_every = 10 * DET_MILLISECOND;
    }
    assert_int_equal(relay_mock_open(SECRET, &plant->mock), 0);
    assert_int_equal(
        channel_open(&(struct channel_options){ .world = plant->world }, &plant->channel), 0);
    assert_int_equal(
        det_workers_open(
            &(struct det_workers_options){
                .world = plant->world,
                .name = "plant",
                .kinds = kinds,
                .provided =
                    (struct det_provided[]){ { DET_CHANNEL_NAME, plant->channel }, { NULL, NULL } },
                .limits = limits,
            },
            &plant->workers, &error),
        0);
    assert_int_equal(apply(plant, SECRET), 0);
}

static inline void plant_close(struct plant *plant)
{
    struct det_error error = { 0 };

    assert_int_equal(det_workers_stop(plant->workers, &error), 0);
    det_workers_close(plant->workers);
    channel_close(plant->channel);
    relay_mock_close(plant->mock);
    if (plant->sim)
        det_sim_close(plant->sim);
}

static inline void advance(struct plant *plant, det_time span)
{
    assert_int_equal(det_sim_advance(plant->sim, span), 0);
}

static inline const char *inspect(struct plant *plant)
{
    assert_int_equal(communicator_get(plant->workers, ID, &plant->status, &plant->observed), 0);
    return plant->status.state;
}

static inline void send_next(struct plant *plant)
{
    char content[32];

    snprintf(content, sizeof content, "%u", plant->sent++);
    assert_int_equal(
        channel_send(plant->channel, &(struct det_message){ .content = content }, 0), 0);
}

#endif
