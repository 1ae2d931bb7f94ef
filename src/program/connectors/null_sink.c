/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* null_sink.c - the sink `null`: drops rows. The status of the flow counts them. */
#include "connectors/connectors.h"
#include "connectors/settings.h"

static int null_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    struct det_empty value;
    struct settings settings;
    int r;

    (void)folder;
    r = settings_open(&settings, stage, NULL, det_empty_record(), &value, NULL, reterr);
    if (r == 0)
        settings_close(&settings);
    return r;
}

static int null_open(struct det_stage_call *call)
{
    struct det_error error = { 0 };

    return null_check(call->stage, call->folder, &error) < 0 ? settings_refuse(call, &error) : 0;
}

static int null_deliver(struct det_stage_call *call, void *cursor, const void *in)
{
    (void)call;
    (void)cursor;
    (void)in;
    return 0;
}

const struct det_connector null_sink = {
    .name = "null",
    .about = "drops rows; for measurements",
    .kinds = 1 << DET_STAGE_SINK,
    .functions = { .open = null_open, .deliver = null_deliver },
    .check = null_check,
};
