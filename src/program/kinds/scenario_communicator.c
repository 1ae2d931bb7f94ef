/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* scenario_communicator.c - a communicator and a mock relay, over real HTTP: three messages
 * are pulled and two are pushed, the relay is killed and comes back, and one more is pushed. */
#include <stdio.h>

#include "base/memory.h"
#include "kinds/channel.h"
#include "kinds/relay_mock.h"
#include "kinds/scenario.h"
#include "os/os.h"

#define ID     "scenario-communicator/communicator"
#define SECRET "scenario-token"
#define PULLED 3
#define PUSHED 2
#define SPAN   (10 * DET_SECOND)
#define OUTAGE (2 * DET_SECOND)

struct stage {
    struct relay_mock *relay;
    struct channel *channel;
    uint32_t received;
};

static void end_stage(struct det_scenario_run *run)
{
    struct stage *stage = run->state;

    channel_close(stage->channel);
    relay_mock_close(stage->relay);
    DET_DELETE(run->allocator, stage);
}

static int begin_stage(struct det_scenario_run *run, struct det_error *reterr)
{
    struct stage *stage = DET_NEW(run->allocator, struct stage);
    int r;

    if (!stage)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "relay: out of memory");
    run->state = stage;
    r = relay_mock_open(SECRET, &stage->relay);
    if (r == 0)
        r = channel_open(
            &(struct channel_options){ .world = run->world, .allocator = run->allocator },
            &stage->channel);
    if (r == 0)
        r = det_scenario_provide(run, DET_CHANNEL_NAME, stage->channel);
    if (r < 0) {
        end_stage(run);
        return det_error_set(
            reterr, r, "a relay cannot be opened on 127.0.0.1: %s", det_error_text(r));
    }
    return 0;
}

static int apply_config(struct det_scenario_run *run, struct det_error *reterr)
{
    struct stage *stage = run->state;
    char yaml[256];

    snprintf(
        yaml, sizeof yaml,
        "children:\n"
        "  - name: communicator\n"
        "    kind: communicator\n"
        "    config: { relay_url: \"%s\", auth_token: " SECRET " }\n",
        relay_mock_url(stage->relay));
    return det_workers_apply(run->workers, yaml, reterr);
}

static int send_text(struct stage *stage, const char *content)
{
    return channel_send(stage->channel, &(struct det_message){ .content = content }, 0);
}

/* Fills the queues of both sides. */
static int fill_queues(struct stage *stage)
{
    static const char *const words[PULLED] = { "one", "two", "three" };
    int r = 0;

    for (int i = 0; r == 0 && i < PULLED; i++)
        r = relay_mock_queue(stage->relay, &(struct det_message){ .content = words[i] });
    for (int i = 0; r == 0 && i < PUSHED; i++)
        r = send_text(stage, words[i]);
    return r;
}

static void receive_messages(struct det_scenario_run *run)
{
    struct stage *stage = run->state;
    struct channel_message *message;

    while (channel_receive(stage->channel, 0, &message) == 0) {
        stage->received++;
        det_scenario_print(run, "message_received", "content=%s", message->text.content);
        channel_message_close(message);
    }
}

/* Until so many have come on either side. */
static int await_messages(struct det_scenario_run *run, uint32_t pushed)
{
    struct stage *stage = run->state;
    det_time deadline = det_world_now(run->world, DET_CLOCK_MONOTONIC) + SPAN;

    for (;;) {
        det_time now = det_world_now(run->world, DET_CLOCK_MONOTONIC);
        int r;

        receive_messages(run);
        if (stage->received >= PULLED &&
            relay_mock_count(stage->relay, RELAY_MOCK_PUSHED) >= pushed)
            return 0;
        if (now >= deadline)
            return DET_ERR_TIMEOUT;
        r = det_scenario_wait(run, now + 100 * DET_MILLISECOND);
        if (r < 0)
            return r;
    }
}

static void print_counts(struct det_scenario_run *run)
{
    struct stage *stage = run->state;

    det_scenario_print(
        run, "relay_counts", "auth_calls=%llu pushed=%llu received=%u",
        (unsigned long long)relay_mock_count(stage->relay, RELAY_MOCK_LOGINS),
        (unsigned long long)relay_mock_count(stage->relay, RELAY_MOCK_PUSHED), stage->received);
}

/* The relay is killed; what is sent meanwhile waits, and arrives. */
static int drill_outage(struct det_scenario_run *run)
{
    struct stage *stage = run->state;
    int r;

    relay_mock_stop(stage->relay);
    det_scenario_print(run, "relay_killed", "for=2s");
    r = send_text(stage, "sent during the outage");
    if (r == 0)
        r = det_scenario_wait(run, det_world_now(run->world, DET_CLOCK_MONOTONIC) + OUTAGE);
    if (r < 0)
        return r;
    r = relay_mock_start(stage->relay);
    det_scenario_print(run, "relay_back", "pending=1");
    return r < 0 ? r : await_messages(run, PUSHED + 1);
}

static int exchange_messages(struct det_scenario_run *run, struct det_error *reterr)
{
    struct stage *stage = run->state;
    int r;

    r = fill_queues(stage);
    if (r == 0)
        r = apply_config(run, reterr);
    if (r == 0)
        r = det_scenario_wait_state(run, ID, "syncing", SPAN);
    if (r == 0)
        r = await_messages(run, PUSHED);
    if (r == 0)
        r = drill_outage(run);
    print_counts(run);
    if (r == DET_ERR_TIMEOUT)
        return det_error_set(
            reterr, r, "%s has not got all messages within 10 s; --log-level debug shows why", ID);
    return r < 0 ? r : det_scenario_wait(run, run->until);
}

extern const struct det_scenario det_scenario_communicator;
const struct det_scenario det_scenario_communicator = {
    .name = "communicator",
    .summary = "a relay over real HTTP: login, 3 messages pulled, 2 pushed, an outage, 1 more",
    .run = exchange_messages,
    .duration = 10 * DET_SECOND,
    .begin = begin_stage,
    .end = end_stage,

};
