/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* channel_cases.h - shared by the tests of the channel: a relay that echoes messages. */
#ifndef DET_KINDS_CHANNEL_CASES_H
#define DET_KINDS_CHANNEL_CASES_H

#include "lib/test.h"

#include "base/text.h"
#include "kinds/channel.h"
#include "os/os.h"

static int send_number(struct channel *channel, unsigned number, det_time deadline)
{
    char content[32];

    snprintf(content, sizeof content, "%u", number);
    return channel_send(channel, &(struct det_message){ .content = content }, deadline);
}

#define MANY 200

static void carry(void *argument)
{
    struct channel *channel = argument;
    struct channel_message *list[CHANNEL_BATCH_MAX];

    for (unsigned done = 0; done < MANY;) {
        uint32_t count = 0;

        (void)channel_drain(channel);
        count = channel_peek(channel, list);
        for (uint32_t i = 0; i < count && channel_wants_more(channel); i++, done++) {
            char content[32];
            struct det_list one;
            struct channel_message *copy;

            snprintf(content, sizeof content, "%s", list[i]->text.content);
            assert_int_equal(
                channel_message_open(NULL, &(struct det_message){ .content = content }, &copy), 0);
            det_list_init(&one);
            det_list_append(&one, &copy->node);
            channel_acknowledge(channel, &list[i], 1);
            channel_deliver(channel, &one);
        }
        channel_unpeek(list, count);
    }
}

static void fill(void *argument)
{
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(send_number(argument, i, DET_NEVER), 0);
}

/* A relay that echoes messages: all arrive, once, in order. */
static void go_round(struct det_world *world)
{
    struct det_thread *carrier, *sender;
    struct channel *channel = NULL;

    assert_int_equal(
        channel_open(
            &(struct channel_options){
                .world = world, .inbound_max = 4, .outbound_max = 3, .pending_max = 5 },
            &channel),
        0);
    assert_int_equal(det_thread_start(world, "carrier", carry, channel, &carrier), 0);
    assert_int_equal(det_thread_start(world, "sender", fill, channel, &sender), 0);
    for (unsigned i = 0; i < MANY; i++) {
        struct channel_message *message;

        assert_int_equal(channel_receive(channel, DET_NEVER, &message), 0);
        assert_int_equal(strtoul(message->text.content, NULL, 10), i);
        channel_message_close(message);
    }
    det_thread_join(world, sender);
    det_thread_join(world, carrier);
    channel_close(channel);
}

#endif
