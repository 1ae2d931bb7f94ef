/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* main.c - a program that talks to others through a relay, and what it notices when the relay is
 * killed for ten minutes: nothing. The HTTP is real, the time is not. */
#include <stdio.h>
#include <stdlib.h>

#include <detent/sim.h>
#include <detent/workers.h>

#include "kinds/communicator.h"
#include "kinds/relay_mock.h"

#define SECRET "example-token"
#define ID     "example/relay"

struct story {
    struct det_sim *sim;
    struct relay_mock *relay; /* stands for the real one */
    struct channel *channel;  /* where the program sends and receives */
    struct det_workers *workers;
    unsigned sent;
};

static void must(int r, const char *what)
{
    if (r >= 0)
        return;
    fprintf(stderr, "%s: %s\n", what, det_error_text(r));
    exit(1);
}

static void open_all(struct story *story)
{
    static const struct det_worker_kind *const kinds[] = { &communicator_kind, NULL };
    struct det_error error = { .code = 0 };
    char yaml[256];

    must(det_sim_open(NULL, &story->sim, NULL), "the simulation");
    must(relay_mock_open(SECRET, &story->relay), "the relay");
    must(
        channel_open(
            &(struct channel_options){ .world = det_sim_world(story->sim) }, &story->channel),
        "the channel");
    must(
        det_workers_open(
            &(struct det_workers_options){
                .world = det_sim_world(story->sim),
                .name = "example",
                .kinds = kinds,
                .provided =
                    (struct det_provided[]){ { DET_CHANNEL_NAME, story->channel }, { NULL, NULL } },
            },
            &story->workers, &error),
        error.text);
    snprintf(
        yaml, sizeof yaml,
        "children:\n"
        "  - name: relay\n"
        "    kind: communicator\n"
        "    config: { relay_url: \"%s\", auth_token: " SECRET " }\n",
        relay_mock_url(story->relay));
    must(det_workers_apply(story->workers, yaml, &error), error.text);
}

static void close_all(struct story *story)
{
    struct det_error error = { .code = 0 };

    must(det_workers_stop(story->workers, &error), error.text);
    det_workers_close(story->workers);
    channel_close(story->channel);
    relay_mock_close(story->relay);
    det_sim_close(story->sim);
}

static void send_one(struct story *story)
{
    char content[32];

    snprintf(content, sizeof content, "message %u", ++story->sent);
    must(channel_send(story->channel, &(struct det_message){ .content = content }, 0), "send");
}

static void receive_all(struct story *story)
{
    struct channel_message *message;

    while (channel_receive(story->channel, 0, &message) == 0) {
        printf("  received \"%s\"\n", message->text.content);
        channel_message_close(message);
    }
}

static void inspect_after(struct story *story, det_time span, const char *when)
{
    struct communicator_observed observed;
    struct det_worker_status status;

    must(det_sim_advance(story->sim, span), "the simulation");
    must(communicator_get(story->workers, ID, &status, &observed), ID);
    printf("%s: %s (%s)\n", when, status.state, status.reason);
    printf(
        "  %llu pushed of %u sent, %u wait\n", (unsigned long long)observed.messages_pushed,
        story->sent, observed.pending + observed.outbound);
}

int main(void)
{
    struct story story = { .sent = 0 };

    open_all(&story);
    must(relay_mock_queue(story.relay, &(struct det_message){ .content = "hello" }), "queue");
    send_one(&story);
    send_one(&story);
    inspect_after(&story, 5 * DET_SECOND, "after 5 s");
    receive_all(&story);

    relay_mock_stop(story.relay);
    for (int i = 0; i < 3; i++)
        send_one(&story);
    inspect_after(&story, 10 * DET_MINUTE, "the relay was killed 10 min ago");

    must(relay_mock_start(story.relay), "the relay");
    inspect_after(&story, DET_MINUTE, "a minute after it came back");
    printf(
        "the relay has %llu messages\n",
        (unsigned long long)relay_mock_count(story.relay, RELAY_MOCK_PUSHED));
    close_all(&story);
    return 0;
}
