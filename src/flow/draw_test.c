/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* draw_test.c - drawings of flows. tests/draw gives them to the parsers. */
#include "lib/test.h"

#include <detent/tool/flow_draw.h>

#define RECORD_OF(text)                      \
    {                                        \
        .record = &(const struct det_record) \
        {                                    \
            .name = text                     \
        }                                    \
    }

static const struct det_stage stages[] = {
    { .name = "rooms", .kind = DET_STAGE_SOURCE, .out = RECORD_OF("room"), .use = "csv" },
    { .name = "end", .kind = DET_STAGE_TRANSFORM, .out = RECORD_OF("reading") },
    { .name = "stage_0", .kind = DET_STAGE_STATEFUL, .out = RECORD_OF("reading") },
    { .name = "locate", .kind = DET_STAGE_JOIN, .out = RECORD_OF("alarm") },
    { .name = "ship", .kind = DET_STAGE_SINK },
};
static const struct det_edge edges[] = {
    { 0, 3, DET_EDGE_REFERENCE },
    { 1, 2, 0 },
    { 2, 1, DET_EDGE_BACK },
    { 3, 4, 0 },
};
static const struct det_flow flow = { "readings", stages, edges, 5, 4 };

static void is_drawn_as(const struct det_draw_options *options, const char *expected)
{
    char text[2048], cut[16];
    int64_t length = det_flow_draw(&flow, options, text, sizeof text, NULL);

    assert_int_equal(length, strlen(text));
    assert_string_equal(text, expected);
    assert_int_equal(det_flow_draw(&flow, options, NULL, 0, NULL), length);
    assert_int_equal(det_flow_draw(&flow, options, cut, sizeof cut, NULL), length);
    assert_int_equal(strlen(cut), sizeof cut - 1);
}

static void flow_is_drawn_as_a_flowchart(void **state)
{
    (void)state;
    is_drawn_as(
        &(struct det_draw_options){ .drawing = DET_DRAW_MERMAID_FLOWCHART },
        "flowchart LR\n"
        "    rooms([\"rooms<br/>csv\"])\n"
        "    stage_1[\"end\"]\n"
        "    stage_2[(\"stage_0\")]\n"
        "    locate{{\"locate\"}}\n"
        "    ship[[\"ship\"]]\n"
        "\n"
        "    rooms -.->|\"room\"| locate\n"
        "    stage_1 -->|\"reading\"| stage_2\n"
        "    stage_2 -.->|\"reading\"| stage_1\n"
        "    locate -->|\"alarm\"| ship\n");
}

static void flow_is_drawn_for_graphviz(void **state)
{
    (void)state;
    is_drawn_as(
        &(struct det_draw_options){ .drawing = DET_DRAW_DOT, .top_down = true },
        "digraph \"readings\" {\n"
        "    rankdir=TB;\n"
        "    graph [newrank=true, labeljust=l, style=rounded, color=\"#999999\", "
        "fontname=\"Helvetica\", fontsize=11];\n"
        "    node [shape=box, style=\"rounded,filled\", fillcolor=white, "
        "fontname=\"Helvetica\", fontsize=12];\n"
        "    edge [fontname=\"Helvetica\", fontsize=10, arrowsize=0.7];\n"
        "\n"
        "    \"rooms\" [label=\"rooms\\ncsv\", shape=ellipse, style=filled];\n"
        "    \"end\" [label=\"end\"];\n"
        "    \"stage_0\" [label=\"stage_0\", shape=cylinder, style=filled];\n"
        "    \"locate\" [label=\"locate\", shape=hexagon, style=filled];\n"
        "    \"ship\" [label=\"ship\", peripheries=2];\n"
        "\n"
        "    \"rooms\" -> \"locate\" [label=\"room\", style=dashed];\n"
        "    \"end\" -> \"stage_0\" [label=\"reading\"];\n"
        "    \"stage_0\" -> \"end\" [label=\"reading\", style=dashed];\n"
        "    \"locate\" -> \"ship\" [label=\"alarm\"];\n"
        "}\n");
}

static void drawings_of_machines_are_refused(void **state)
{
    struct det_draw_options options = { .drawing = DET_DRAW_MERMAID_SEQUENCE };
    struct det_error error;

    (void)state;
    assert_int_equal(det_flow_draw(&flow, &options, NULL, 0, &error), DET_ERR_INVALID);
    assert_non_null(strstr(error.text, "flowchart"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flow_is_drawn_as_a_flowchart),
        cmocka_unit_test(flow_is_drawn_for_graphviz),
        cmocka_unit_test(drawings_of_machines_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
