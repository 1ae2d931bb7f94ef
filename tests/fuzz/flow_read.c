/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_read.c - fuzz target: text into flows. Whatever is read, every finding has a sentence and a
 * place inside of its line; a flow without errors passes det_flow_check(), has a place for each
 * row, and can be drawn. */
#include <stdlib.h>
#include <string.h>

#include <detent/tool/flow_draw.h>
#include <detent/tool/flow_spec.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void check_place(const struct det_place *place)
{
    require(place->file != NULL && place->line > 0 && place->column > 0);
    if (place->source != NULL)
        require(place->column <= strlen(place->source) + 1);
}

static void check_flow(const struct det_flow_spec *spec, const struct det_flow *flow)
{
    struct det_draw_options options = { .drawing = DET_DRAW_MERMAID_FLOWCHART };
    struct det_place place;

    require(det_flow_check(flow, NULL) == 0);
    (void)det_flow_fingerprint(flow);
    for (size_t i = 0; i < flow->stage_count; i++) {
        for (unsigned text = 0; text <= DET_FLOW_TEXT_SETTINGS; text++) {
            place = det_flow_spec_text_place(spec, i, (enum det_flow_text)text, i);
            check_place(&place);
        }
    }
    for (size_t i = 0; i < flow->edge_count; i++) {
        place = det_flow_spec_edge_place(spec, i);
        check_place(&place);
    }
    require(det_flow_draw(flow, &options, NULL, 0, NULL) > 0);
    options.drawing = DET_DRAW_DOT;
    require(det_flow_draw(flow, &options, NULL, 0, NULL) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = size > 0 ? (const char *)data : "";
    const struct det_diagnostics *found;
    struct det_flow_spec *spec;

    require(det_flow_spec_read("x.flow", text, size, NULL, &spec) == 0);
    found = det_flow_spec_diagnostics(spec);
    for (size_t i = 0; i < found->count; i++) {
        require(found->items[i].text != NULL && found->items[i].text[0] != '\0');
        check_place(&found->items[i].place);
    }
    require((det_flow_spec_flow(spec) == NULL) == (found->error_count > 0));
    if (det_flow_spec_flow(spec) != NULL)
        check_flow(spec, det_flow_spec_flow(spec));
    det_flow_spec_close(spec);
    return 0;
}
