/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_reading.c - opens the journal of a flow for a job of a lane. */
#include "api/flow_reading.h"

#include "inspect/flow_log.h"

/* Opens the files of a run. A flow in memory, or one that has not run, has none. */
static int open_files(struct flow_reading *reading, uint64_t *run, struct det_error *reterr)
{
    const char *folder = reading->hold.folder;
    int r = 0;

    if (!folder)
        return 0;
    if (!*run)
        r = flow_log_last(folder, run, reterr);
    if (r == 0)
        r = flow_log_open(folder, *run, reading->api->allocator, &reading->own, reterr);
    return r == DET_ERR_NOT_FOUND ? 0 : r;
}

int flow_reading_open(
    struct api *api, const char *name, uint64_t run, struct flow_reading *ret,
    struct det_error *reterr)
{
    struct det_journal *journal;
    int r;

    *ret = (struct flow_reading){ .api = api };
    if (up_flow_hold(api->up, name, &ret->hold) < 0)
        return det_error_set(reterr, DET_ERR_NOT_FOUND, "there is no flow '%s'", name);
    journal = ret->hold.journal && (!run || run == ret->hold.run) ? ret->hold.journal : NULL;
    r = journal ? 0 : open_files(ret, &run, reterr);
    if (r == 0)
        r = flow_view_init(
            &ret->view, api->allocator, ret->hold.definition->flow, journal ? journal : ret->own,
            journal ? ret->hold.run : run);
    if (r == DET_ERR_NO_MEMORY)
        det_error_set(reterr, r, "out of memory");
    if (r < 0)
        flow_reading_close(ret);
    return r;
}

void flow_reading_close(struct flow_reading *reading)
{
    flow_view_deinit(&reading->view);
    det_journal_close(reading->own);
    if (reading->hold.internal)
        up_flow_release(reading->api->up, &reading->hold);
}
