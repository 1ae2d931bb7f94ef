/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* testing_trace.c - fuzz target: a trace into a drawing. Whatever is read, there is a trace that
 * can be drawn, or an error with a sentence. */
#include <detent/tool/builder.h>
#include <detent/tool/draw.h>

#include <stdlib.h>

#include "base/arena.h"
#include "base/text.h"
#include "testing/trace_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct det_machine *make_light(void)
{
    struct det_machine_builder *builder;
    struct det_diagnostics findings;
    struct det_machine *machine;

    if (det_machine_builder_open("light", NULL, &builder) < 0)
        abort();
    det_machine_builder_state(
        builder, &(struct det_state_row){ .name = "red", .flags = DET_STATE_INITIAL });
    det_machine_builder_state(builder, &(struct det_state_row){ .name = "green" });
    det_machine_builder_event(builder, &(struct det_event_row){ .name = "tick" });
    det_machine_builder_on(
        builder, &(struct det_on_row){ .from = DET_LIST("red"),
                                       .events = DET_LIST("tick"),
                                       .outcome = DET_OUTCOME_GOTO,
                                       .to = "green" });
    det_machine_builder_on(
        builder, &(struct det_on_row){ .from = DET_LIST("green"),
                                       .events = DET_LIST("tick"),
                                       .outcome = DET_OUTCOME_GOTO,
                                       .to = "red" });
    if (det_machine_builder_build(builder, &machine, &findings) < 0)
        abort();
    det_machine_builder_close(builder);
    return machine;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct det_machine *light = make_light();
    struct det_error error = { 0 };
    struct cli_trace trace;
    int r;

    r = cli_trace_read(light, det_view_of((const char *)data, size), NULL, NULL, &trace, &error);
    if (r < 0 && error.text[0] == '\0')
        abort();
    if (r == 0) {
        struct det_draw_options options = { .drawing = DET_DRAW_MERMAID_SEQUENCE,
                                            .trace = &trace.trace };

        if (det_draw(light, &options, NULL, 0, &error) < 0)
            abort();
        cli_trace_deinit(&trace);
    }
    det_machine_close(light);
    return 0;
}
