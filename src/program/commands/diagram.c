/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* diagram.c - `detent diagram`: a machine or one run of it as text for Mermaid or GraphViz,
 * or as SVG made by GraphViz. */
#include <string.h>

#include <detent/tool/flow_draw.h>

#include "base/memory.h"
#include "codegen/svg.h"
#include "config/flow_spec_file.h"
#include "config/worker_file.h"
#include "terminal/command.h"
#include "terminal/input.h"
#include "terminal/report.h"
#include "testing/trace_file.h"

enum { OPTION_FORMAT, OPTION_TRACE, OPTION_RUN, OPTION_OUTPUT, OPTION_DOWN, OPTION_PLAIN };

static const struct cli_option option_table[] = {
    [OPTION_FORMAT] = { "format", 'f', "FORMAT", "mermaid flowchart sequence dot timeline svg",
                        "mermaid, flowchart, sequence, dot, timeline or svg" },
    [OPTION_TRACE] = { "trace", 't', "FILE", NULL,
                       "draw a run: JSON Lines of test or sim --trace, or history --json" },
    [OPTION_RUN] = { "run", 0, "NAME", NULL, "name of the run in the trace (default: the first)" },
    [OPTION_OUTPUT] = { "output", 'o', "FILE", NULL,
                        "write to a file; .svg and .dot select the format" },
    [OPTION_DOWN] = { "top-down", 0, NULL, NULL,
                      "draw from top to bottom instead of left to right" },
    [OPTION_PLAIN] = { "plain", 0, NULL, NULL, "omit the notes on timeouts and hooks" },
    { NULL, 0, NULL, NULL, NULL },
};

struct format {
    const char *name;
    enum det_drawing drawing;
    bool needs_trace, is_svg;
};

static const struct format formats[] = {
    { "mermaid", DET_DRAW_MERMAID_STATE, false, false },
    { "flowchart", DET_DRAW_MERMAID_FLOWCHART, false, false },
    { "sequence", DET_DRAW_MERMAID_SEQUENCE, true, false },
    { "dot", DET_DRAW_DOT, false, false },
    { "timeline", DET_DRAW_DOT_TIMELINE, true, false },
    { "svg", DET_DRAW_DOT, false, true },
};

/* Returns the format of --format, else of the suffix of --output, else the first one. */
static const struct format *format_of(const struct cli_args *args)
{
    const char *name = args->values[OPTION_FORMAT], *output = args->values[OPTION_OUTPUT];
    const char *suffix = output ? strrchr(output, '.') : NULL;

    if (!name && suffix)
        name = suffix + 1;
    for (size_t i = 0; name && i < sizeof formats / sizeof *formats; i++) {
        if (strcmp(name, formats[i].name) == 0)
            return &formats[i];
    }
    return &formats[0];
}

/* A picture format that GraphViz has, but this command does not. */
static bool is_other_picture(const struct cli_args *args)
{
    const char *output = args->values[OPTION_OUTPUT];

    return !args->values[OPTION_FORMAT] && output &&
           (cli_has_suffix(output, ".png") || cli_has_suffix(output, ".pdf") ||
            cli_has_suffix(output, ".jpg"));
}

static int write_svg(struct cli *cli, const char *text, size_t size, const char *path)
{
    struct det_buffer svg;
    int code;

    det_buffer_init(&svg, cli->allocator);
    code = svg_of_dot(cli, text, size, NULL, &svg);
    if (code == CLI_OK)
        code = cli_report_text(cli, path, det_buffer_text(&svg), svg.size);
    det_buffer_deinit(&svg);
    return code;
}

/* What is drawn: a machine, or a flow. */
struct drawn {
    const struct det_machine *machine;
    const struct det_flow *flow;
};

static int64_t draw_into(
    const struct drawn *drawn, const struct det_draw_options *options, char *target,
    size_t capacity, struct det_error *reterr)
{
    return drawn->flow ? det_flow_draw(drawn->flow, options, target, capacity, reterr)
                       : det_draw(drawn->machine, options, target, capacity, reterr);
}

static int draw(
    struct cli *cli, const struct cli_args *args, const struct drawn *drawn,
    const struct det_draw_trace *trace)
{
    const struct format *format = format_of(args);
    struct det_draw_options options = {
        .drawing = drawn->flow && format->drawing == DET_DRAW_MERMAID_STATE
                       ? DET_DRAW_MERMAID_FLOWCHART
                       : format->drawing,
        .trace = trace,
        .hide_timeouts = args->values[OPTION_PLAIN] != NULL,
        .top_down = args->values[OPTION_DOWN] != NULL,
    };
    struct det_error error = { 0 };
    int64_t size = draw_into(drawn, &options, NULL, 0, &error);
    char *text;
    int code;

    if (size < 0) {
        cli_report_error(cli, "%s", error.text);
        return CLI_USAGE;
    }
    text = det_alloc(cli->allocator, (size_t)size + 1);
    if (!text)
        return cli_no_memory(cli);
    size = draw_into(drawn, &options, text, (size_t)size + 1, &error);
    code = size < 0         ? CLI_FAILURE
           : format->is_svg ? write_svg(cli, text, (size_t)size, args->values[OPTION_OUTPUT])
                            : cli_report_text(cli, args->values[OPTION_OUTPUT], text, (size_t)size);
    det_free(cli->allocator, text, (size_t)size + 1);
    return code;
}

static int draw_trace(
    struct cli *cli, const struct cli_args *args, const struct det_machine *machine,
    const struct cli_text *text)
{
    struct det_error error = { 0 };
    struct cli_trace trace;
    int code, r;

    r = cli_trace_read(
        machine, det_view_of(text->data, text->size), args->values[OPTION_RUN], cli->allocator,
        &trace, &error);
    if (r < 0) {
        cli_report_error(cli, "%s: %s", args->values[OPTION_TRACE], error.text);
        return r == DET_ERR_NOT_FOUND ? CLI_NOT_FOUND : CLI_USAGE;
    }
    code = draw(cli, args, &(struct drawn){ .machine = machine }, &trace.trace);
    cli_trace_deinit(&trace);
    return code;
}

static int load_and_draw(
    struct cli *cli, const struct cli_args *args, const struct det_machine *machine)
{
    struct cli_text text;
    int code;

    if (!args->values[OPTION_TRACE])
        return draw(cli, args, &(struct drawn){ .machine = machine }, NULL);
    code = cli_text_read(cli, args->values[OPTION_TRACE], CLI_TRACE_SIZE_MAX, &text);
    if (code != CLI_OK)
        return code;
    code = draw_trace(cli, args, machine, &text);
    cli_text_free(cli, &text);
    return code;
}

/* The lifecycle of a worker, with the transitions of its source. */
static int draw_worker(struct cli *cli, const struct cli_args *args)
{
    const struct det_machine *machine;
    struct cli_worker worker;
    int code = cli_worker_open(cli, args->operands[0], args->operands + 1, &worker);

    if (code == CLI_OK && !worker.arch) {
        cli_report_broken(cli, args->operands[0], det_worker_spec_diagnostics(worker.spec));
        cli_report_error(cli, "%s is not a valid worker; run 'detent check'", args->operands[0]);
        code = CLI_USAGE;
    } else if (code == CLI_OK) {
        const struct det_arch_report *report = det_arch_report(worker.arch);
        int r = det_worker_spec_machine(
            worker.spec, report->transitions, report->transition_count, &machine);

        code = r < 0 ? cli_no_memory(cli)
                     : draw(cli, args, &(struct drawn){ .machine = machine }, NULL);
    }
    cli_worker_close(cli, &worker);
    return code;
}

/* The graph of a flow. */
static int draw_flow(struct cli *cli, const struct cli_args *args)
{
    const char *path = args->operands[0];
    struct det_flow_spec *spec = NULL;
    int code = cli_flow_spec_load(cli, path, &spec);

    if (code != CLI_OK)
        return code;
    if (det_flow_spec_flow(spec)) {
        code = draw(cli, args, &(struct drawn){ .flow = det_flow_spec_flow(spec) }, NULL);
    } else {
        cli_report_broken(cli, path, det_flow_spec_diagnostics(spec));
        cli_report_error(cli, "%s is not a valid flow; run 'detent check'", path);
        code = CLI_USAGE;
    }
    det_flow_spec_close(spec);
    return code;
}

static bool is_flow(const struct cli_args *args)
{
    return cli_has_suffix(args->operands[0], CLI_FLOW_SUFFIX);
}

static bool is_worker(const struct cli_args *args)
{
    return cli_has_suffix(args->operands[0], CLI_WORKER_SUFFIX);
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const struct format *format = format_of(args);
    struct det_spec *spec;
    int code;

    if (is_other_picture(args)) {
        cli_report_error(
            cli, "cannot draw %s; use .svg", strrchr(args->values[OPTION_OUTPUT], '.'));
        return CLI_USAGE;
    }
    if (is_flow(args) && (format->needs_trace || args->values[OPTION_TRACE])) {
        cli_report_error(cli, "--trace is for machines, and %s is a flow", args->operands[0]);
        return CLI_USAGE;
    }
    if (format->needs_trace && !args->values[OPTION_TRACE]) {
        cli_report_error(
            cli, "format %s needs a run: give --trace a file of 'detent sim --trace'",
            format->name);
        return CLI_USAGE;
    }
    if (is_worker(args)) {
        if (!args->values[OPTION_TRACE])
            return draw_worker(cli, args);
        cli_report_error(cli, "--trace is for machines, and %s is a worker", args->operands[0]);
        return CLI_USAGE;
    }
    if (args->operand_count > 1) {
        cli_report_error(
            cli, "unexpected argument '%s': only a .worker file has sources", args->operands[1]);
        return CLI_USAGE;
    }
    if (is_flow(args))
        return draw_flow(cli, args);
    code = cli_machine_load(cli, args->operands[0], &spec);
    if (code != CLI_OK)
        return code;
    code = load_and_draw(cli, args, det_spec_machine(spec));
    det_spec_close(spec);
    return code;
}

extern const struct cli_command cli_command_diagram;
const struct cli_command cli_command_diagram = {
    .name = "diagram",
    .summary = "draw a machine, or one run of it",
    .about =
        "Prints a machine as a Mermaid state diagram (the default) or in another format; svg\n"
        "needs the program 'dot' of GraphViz. With --trace, the states and transitions of a "
        "run are\n"
        "highlighted; the formats sequence and timeline show the run itself.\n"
        "\n"
        "For a .worker file it draws the lifecycle: states by phase, the states that stop,\n"
        "and the transitions of its C source, which is the file beside it with the same\n"
        "name and the files that are named. For a .flow file it draws the graph of its stages\n"
        "as a Mermaid flowchart or for GraphViz.",
    .operand = { .form = "FILE [SOURCE.c...]",
                 .least = 1,
                 .most = CLI_OPERANDS_ANY,
                 .suffix = ".fsm" },
    .options = option_table,
    .run = run_command,
};
