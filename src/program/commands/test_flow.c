/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test_flow.c - `detent test` for flows: the cases of a .flow.test.yaml. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "commands/test_run.h"
#include "config/flow_file.h"
#include "connectors/connectors.h"
#include "os/os.h"
#include "testing/flow_case.h"
#include "testing/flow_play.h"
#include "json/writer.h"

struct flow_sheet {
    struct run *run;
    struct sheet *sheet;
    const struct det_datum *root;
    struct flow_case_file file;
    struct flow_definition *definition;
    bool *reached; /* by stage */
};

/* Functions that reach out of the simulated world would make a case depend on this machine. */
static bool check_stages(const struct flow_sheet *flow)
{
    const struct det_flow *spec = flow->definition->flow;
    const struct det_connector *connector;
    struct det_error error;

    for (size_t i = 0; i < spec->stage_count; i++) {
        const struct det_stage *stage = &spec->stages[i];

        if (stage->kind == DET_STAGE_SOURCE || stage->kind == DET_STAGE_SINK || !stage->use ||
            det_connectors_find(stage->use, stage->kind, &connector, &error) < 0 ||
            !(connector->flags & DET_STAGE_ASYNC))
            continue;
        cli_report_error(
            flow->run->cli,
            "%s: the stage '%s' uses the connector %s, which reaches out of the simulated world",
            flow->sheet->path, stage->name, stage->use);
        return false;
    }
    return true;
}

static bool load_flow(struct flow_sheet *flow)
{
    char path[DET_PATH_MAX], module[DET_PATH_MAX];
    struct config_flow config = {
        .name = flow->file.flow,
        .file = path,
        .stages = flow->file.stages,
        .stage_count = flow->file.stage_count,
    };
    int code;

    if (!test_join_path(flow->sheet->path, flow->file.flow, path) ||
        (flow->file.module && !test_join_path(flow->sheet->path, flow->file.module, module))) {
        cli_report_error(flow->run->cli, "%s: the path of the flow is too long", flow->sheet->path);
        test_raise_exit(flow->run, CLI_USAGE);
        return false;
    }
    config.module = flow->file.module ? module : NULL;
    if (!cli_is_there(path)) {
        test_report_missing(flow->run, flow->sheet, flow->file.flow_node, path, CONFIG_FLOW_SUFFIX);
        return false;
    }
    code = flow_definition_open_for(flow->run->cli, &config, FLOW_TO_TEST, &flow->definition);
    if (code == CLI_OK && !check_stages(flow))
        code = CLI_USAGE;
    if (code == CLI_OK)
        return true;
    flow->run->broken++;
    test_raise_exit(flow->run, code);
    return false;
}

static bool load_cases(struct flow_sheet *flow)
{
    struct cli_problems problems;
    int r = flow_case_read_head(&flow->sheet->arena, flow->root, &flow->file, &problems);

    if (r == 0 && !load_flow(flow))
        return false;
    if (r == 0)
        r = flow_case_read(
            &flow->sheet->arena, flow->root, flow->definition->flow, &flow->file, &problems);
    if (r < 0)
        test_refuse_file(flow->run, flow->sheet, &problems, CLI_USAGE);
    return r == 0;
}

static void run_case(struct flow_sheet *flow, const struct flow_case *one)
{
    const struct flow_play_options options = {
        .allocator = flow->run->cli->allocator,
        .folder = flow->definition->folder,
        .window = flow->file.window,
        .steps_max = flow->run->steps_max,
        .reached = flow->reached,
    };
    struct play_result result;

    if (flow_play_case(one, flow->definition->flow, &options, &result) < 0)
        test_raise_exit(flow->run, cli_no_memory(flow->run->cli));
    else
        test_take_result(flow->run, flow->sheet, one->name, one->step_count, &result);
}

static size_t count_missed(const struct flow_sheet *flow)
{
    size_t missed = 0;

    for (size_t i = 0; i < flow->definition->flow->stage_count; i++)
        missed += !flow->reached[i];
    return missed;
}

static void write_missed(struct det_json_writer *json, const struct flow_sheet *flow)
{
    det_json_open(json, "missed", '[');
    for (size_t i = 0; i < flow->definition->flow->stage_count; i++) {
        if (!flow->reached[i])
            det_json_text(json, NULL, flow->definition->flow->stages[i].name);
    }
    det_json_close(json, ']');
}

/* Stages that no row of any case has reached. */
static void print_missed(struct flow_sheet *flow)
{
    const struct det_flow *spec = flow->definition->flow;
    size_t missed = count_missed(flow);
    struct cli *cli = flow->run->cli;
    struct det_json_writer json;

    if (cli->is_json) {
        cli_json_begin(cli, &json, "stages");
        det_json_text(&json, "file", flow->sheet->path);
        det_json_number(&json, "stages", spec->stage_count);
        write_missed(&json, flow);
        cli_json_end(cli, &json);
        return;
    }
    cli_print_error(
        cli, "%s: rows have reached %zu of %u stage%s%s", spec->name, spec->stage_count - missed,
        spec->stage_count, det_plural(spec->stage_count), missed ? "; not:" : "");
    for (size_t i = 0; i < spec->stage_count; i++) {
        if (!flow->reached[i])
            cli_print_error(cli, " %s", spec->stages[i].name);
    }
    cli_print_error(cli, "\n");
}

static void run_cases(struct flow_sheet *flow)
{
    const char *filter = test_filter(flow->run);
    size_t done = 0;

    flow->reached = det_arena_array(
        &flow->sheet->arena, flow->definition->flow->stage_count, sizeof *flow->reached);
    if (!flow->reached) {
        test_raise_exit(flow->run, cli_no_memory(flow->run->cli));
        return;
    }
    for (const struct flow_case *one = flow->file.cases; one && !cli_is_stopped(flow->run->cli);
         one = one->next) {
        if (!filter || strstr(one->name, filter)) {
            run_case(flow, one);
            done++;
        }
    }
    if (done && test_wants_coverage(flow->run) && !cli_is_stopped(flow->run->cli))
        print_missed(flow);
}

void test_flow(struct run *run, struct sheet *sheet, const struct det_datum *root)
{
    struct flow_sheet flow = { .run = run, .sheet = sheet, .root = root };

    if (load_cases(&flow))
        run_cases(&flow);
    flow_definition_close(flow.definition);
}
