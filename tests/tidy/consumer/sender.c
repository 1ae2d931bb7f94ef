/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sender.c - what a module that sends messages takes of an install: headers, and no library. */
#include <detent/channel.h>
#include <detent/module.h>

int send_hello(struct det_worker_context *context);

int send_hello(struct det_worker_context *context)
{
    struct det_channel *channel = det_worker_inherited(context, DET_CHANNEL_NAME);

    return det_channel_send(channel, &(struct det_message){ .content = "hello" }, 0);
}
