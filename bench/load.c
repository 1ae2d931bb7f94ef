/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* load.c - a runtime full of instances, for benches and gates that send to them. */
#include "load.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FSM_SPEC "load.fsm"
#include <detent/fsm/define.h>
#include <detent/strict.h>

static bool is_fine(
    const struct det_move *move, const struct load_data *data, const struct load_event *event)
{
    (void)move;
    return data->count + 1 != 0 && event->next.amount != UINT64_MAX;
}

static int arrives(
    const struct det_move *move, const struct load_data *data, const struct load_event *event)
{
    (void)data;
    (void)event;
    return move->to < load_state_count ? 0 : DET_ERR_INVALID;
}

static int leaves(
    const struct det_move *move, const struct load_data *data, const struct load_event *event)
{
    (void)data;
    (void)event;
    return move->from < load_state_count ? 0 : DET_ERR_INVALID;
}

static void count_it(struct load_data *data, const struct load_event *event)
{
    (void)event;
    data->count++;
}

static int start_all(struct load *load, struct det_error *reterr)
{
    for (uint32_t i = 0; i < load->count; i++) {
        int r;

        (void)snprintf(load->ids[i], LOAD_ID_MAX, "load-%" PRIu32, i);
        r = det_runtime_start(load->runtime, &load_machine, load->ids[i], NULL, NULL, NULL, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

int load_open(
    struct load *load, uint32_t count, const struct det_runtime_options *options,
    struct det_error *reterr)
{
    struct det_store_options store_options = { .world = options->world };
    int r;

    memset(load, 0, sizeof *load);
    load->count = count;
    load->ids = calloc(count, LOAD_ID_MAX);
    r = load->ids ? det_store_open_with("memory:", &store_options, &load->store, reterr)
                  : det_error_set(reterr, DET_ERR_NO_MEMORY, "no memory for the ids");
    if (r == 0)
        r = det_runtime_open(load->store, options, &load->runtime, reterr);
    if (r == 0)
        r = start_all(load, reterr);
    if (r < 0)
        load_close(load);
    return r;
}

void load_close(struct load *load)
{
    det_runtime_close(load->runtime);
    det_store_close(load->store);
    free(load->ids);
    memset(load, 0, sizeof *load);
}
