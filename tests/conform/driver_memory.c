/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver_memory.c - the suite over the store in memory, and over the stand-in for a shared store
 * that simulations use. */
#include "conform/conform.h"
#include "lib/shared_store.h"

static void memory_begin(struct box *box)
{
    snprintf(box->url, URL_MAX, "memory:");
}

static void memory_end(struct box *box)
{
    (void)box;
}

const struct driver driver_memory = {
    .scheme = "memory",
    .is_simulated = true,
    .model_steps = 20000,
    .begin = memory_begin,
    .end = memory_end,
};

static void shared_begin(struct box *box)
{
    snprintf(box->url, URL_MAX, "shared:");
    box->place = det_shared_open(box->sim, box->world);
}

static void shared_end(struct box *box)
{
    det_shared_close(box->place);
}

static struct det_store *shared_open(struct box *box)
{
    return det_shared_node(box->place);
}

const struct driver driver_shared = {
    .scheme = "shared",
    .is_kept = true,
    .is_shared = true,
    .is_simulated = true,
    .is_stand_in = true,
    .model_steps = 5000,
    .begin = shared_begin,
    .end = shared_end,
    .open = shared_open,
};
