/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gate_spec.c - reading the spec of 2,000 rows. */
#include <detent/tool/spec.h>

#include "gate.h"
#include "large_spec.h"

static int work(void *argument, unsigned operations)
{
    const struct det_buffer *text = argument;
    int r = 0;

    for (unsigned i = 0; i < operations && r == 0; i++) {
        struct det_spec *spec;

        r = det_spec_read("large.fsm", text->data, text->size, NULL, &spec);
        if (r < 0)
            break;
        r = det_spec_machine(spec) ? 0 : DET_ERR_DEFINITION;
        det_spec_close(spec);
    }
    return r;
}

int gate_spec_read(unsigned operations)
{
    struct det_buffer text;
    int r;

    det_buffer_init(&text, NULL);
    bench_large_spec(&text);
    r = det_buffer_status(&text);
    if (r == 0)
        r = gate_measured(work, &text, operations);
    det_buffer_deinit(&text);
    return r;
}
