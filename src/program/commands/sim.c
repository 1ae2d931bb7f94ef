/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sim.c - `detent sim`: random walks of a machine, seed by seed, each twice. */
#include <string.h>

#include "base/text.h"
#include "terminal/args.h"
#include "terminal/command.h"
#include "terminal/input.h"
#include "testing/random_walk.h"
#include "testing/stubs.h"
#include "json/writer.h"

#define SEEDS_DEFAULT 10
#define STEPS_DEFAULT 500
#define SEEDS_MAX     1000000000
#define STEPS_MAX     10000000

enum { OPTION_SEED, OPTION_SEEDS, OPTION_STEPS, OPTION_TRACE };

static const struct cli_option option_table[] = {
    [OPTION_SEED] = { "seed", 0, "N", NULL, "first seed (default 1)" },
    [OPTION_SEEDS] = { "seeds", 0, "N", NULL, "number of seeds (default 10, or 1 with --seed)" },
    [OPTION_STEPS] = { "steps", 0, "N", NULL, "steps of each walk (default 500)" },
    [OPTION_TRACE] = { "trace", 0, "FILE", NULL,
                       "write the run as JSON Lines, for 'diagram'; with '-' the results go to the "
                       "error stream" },
    { NULL, 0, NULL, NULL, NULL },
};

struct run {
    struct cli *cli;       /* where the results go */
    struct cli *trace_cli; /* where a trace to "-" goes */
    const char *path;
    struct det_spec *spec;
    uint64_t seed, seeds, steps;
    struct cli_coverage coverage;
    struct cli_trace_writer trace;
    uint64_t walked, steps_made, events, refused;
    det_time virtual_time;
    bool is_violated;
};

static bool is_stopped(void *context)
{
    const struct run *run = context;

    return cli_is_stopped(run->cli);
}

static void report_violation(
    struct run *run, uint64_t seed, const struct walk_result *result, const char *text)
{
    struct cli *cli = run->cli;
    unsigned long long step = result->steps;
    struct det_json_writer json;

    run->is_violated = true;
    if (cli->is_json) {
        cli_json_begin(cli, &json, "violation");
        det_json_number(&json, "seed", seed);
        det_json_number(&json, "step", step);
        det_json_text(&json, "text", text);
        cli_json_end(cli, &json);
        return;
    }
    cli_print_in(cli, CLI_RED, "violation: ");
    cli_print(cli, "seed %llu, step %llu: %s\n", (unsigned long long)seed, step, text);
    cli_print(
        cli, "repeat it: detent sim %s --seed %llu --steps %llu\n", run->path,
        (unsigned long long)seed, (unsigned long long)run->steps);
}

static void print_seed(struct run *run, uint64_t seed, const struct walk_result *result)
{
    struct det_json_writer json;

    cli_json_begin(run->cli, &json, "seed");
    det_json_number(&json, "seed", seed);
    det_json_number(&json, "steps", result->steps);
    det_json_number(&json, "events", result->events);
    det_json_number(&json, "refused", result->refused);
    det_json_number(&json, "instances", result->instances);
    cli_json_end(run->cli, &json);
}

/* Walks twice: the same seed must give the same walk. */
static int walk_seed(struct run *run, uint64_t seed)
{
    const struct det_machine *machine = det_spec_machine(run->spec);
    struct walk_options options = {
        .seed = seed,
        .steps = run->steps,
        .allocator = run->cli->allocator,
        .coverage = &run->coverage,
        .trace = &run->trace,
        .is_stopped = is_stopped,
        .context = run,
    };
    struct walk_result result, again;
    char name[32];
    int r;

    snprintf(name, sizeof name, "seed-%llu", (unsigned long long)seed);
    cli_trace_run(&run->trace, machine, name);
    r = walk_machine(machine, &options, &result);
    if (r < 0)
        return r;
    run->walked++;
    run->steps_made += result.steps;
    run->events += result.events;
    run->refused += result.refused;
    run->virtual_time += result.virtual_time;
    if (*result.violation) {
        report_violation(run, seed, &result, result.violation);
        return 0;
    }
    options.coverage = NULL;
    options.trace = NULL;
    r = walk_machine(machine, &options, &again);
    if (r == 0 && !is_stopped(run) && (result.hash != again.hash || result.events != again.events))
        report_violation(run, seed, &again, "the same seed gave a different walk");
    if (r == 0 && run->cli->is_json)
        print_seed(run, seed, &result);
    return r;
}

static void summarize(struct run *run, det_time real)
{
    double seconds = real > 0 ? (double)real / (double)DET_SECOND : 1e-9;
    double rate = 2 * (double)run->steps_made / seconds;
    det_time virtual_time = run->virtual_time / DET_SECOND * DET_SECOND;
    char text[DET_DURATION_TEXT];
    struct cli *cli = run->cli;
    struct det_json_writer json;

    if (cli->is_json) {
        cli_json_begin(cli, &json, "summary");
        det_json_bool(&json, "ok", !run->is_violated);
        det_json_number(&json, "seeds", run->walked);
        det_json_number(&json, "steps", run->steps_made);
        det_json_number(&json, "events", run->events);
        det_json_number(&json, "refused", run->refused);
        det_json_signed(&json, "virtual_ms", run->virtual_time / DET_MILLISECOND);
        det_json_signed(&json, "steps_per_second", (int64_t)rate);
        cli_json_end(cli, &json);
        return;
    }
    cli_print_error_in(
        cli, run->is_violated ? CLI_RED : CLI_GREEN, "%llu seed%s, each twice: %s",
        (unsigned long long)run->walked, det_plural(run->walked),
        run->is_violated ? "violated" : "ok");
    cli_print_error(
        cli,
        "; %llu step%s, %llu event%s, %llu refused, %s of virtual time; %.0f steps per second\n",
        (unsigned long long)run->steps_made, det_plural(run->steps_made),
        (unsigned long long)run->events, det_plural(run->events), (unsigned long long)run->refused,
        det_format_duration(virtual_time, text, sizeof text), rate);
}

static void print_coverage(struct run *run)
{
    struct cli_coverage_counts counts = cli_coverage_count(&run->coverage);

    cli_coverage_print(run->cli, &run->coverage, run->spec);
    if (!run->cli->is_json && counts.transitions_taken < counts.transitions && run->seeds > 1)
        cli_print_error(
            run->cli, "each seed starts without coverage; more --steps reach deeper than more "
                      "--seeds\n");
}

static int walk_seeds(struct run *run)
{
    det_time from = det_world_now(run->cli->world, DET_CLOCK_MONOTONIC);
    int r = 0;

    for (uint64_t i = 0; i < run->seeds && !run->is_violated && r == 0 && !is_stopped(run); i++) {
        r = walk_seed(run, run->seed + i);
        cli_progress(run->cli, "seeds", i + 1, run->seeds);
    }
    if (r < 0) {
        cli_report_error(run->cli, "%s", det_error_text(r));
        return CLI_FAILURE;
    }
    print_coverage(run);
    summarize(run, det_world_now(run->cli->world, DET_CLOCK_MONOTONIC) - from);
    return run->is_violated ? CLI_FAILURE : CLI_OK;
}

static int run_machine(struct run *run, const struct cli_args *args)
{
    struct det_machine *machine = det_spec_machine(run->spec);
    struct det_error error = { 0 };
    int code;

    if (cli_stubs_bind(machine, &error) < 0) {
        cli_report_error(run->cli, "%s: %s", run->path, error.text);
        return CLI_USAGE;
    }
    if (cli_coverage_init(&run->coverage, machine, run->cli->allocator) < 0)
        return cli_no_memory(run->cli);
    run->trace.is_wanted = args->values[OPTION_TRACE] != NULL;
    det_buffer_init(&run->trace.lines, run->cli->allocator);
    run->trace.lines.limit = CLI_TRACE_SIZE_MAX;
    code = walk_seeds(run);
    if (args->values[OPTION_TRACE]) {
        int saved = cli_trace_save(run->trace_cli, &run->trace, args->values[OPTION_TRACE]);

        code = code == CLI_OK ? saved : code;
    }
    det_buffer_deinit(&run->trace.lines);
    cli_coverage_deinit(&run->coverage, run->cli->allocator);
    return code;
}

static bool read_numbers(struct run *run, const struct cli_args *args)
{
    const char *seed = args->values[OPTION_SEED], *seeds = args->values[OPTION_SEEDS];
    const char *steps = args->values[OPTION_STEPS];

    return (!seed || cli_args_number(run->cli, "seed", seed, 0, INT64_MAX, &run->seed)) &&
           (!seeds || cli_args_number(run->cli, "seeds", seeds, 1, SEEDS_MAX, &run->seeds)) &&
           (!steps || cli_args_number(run->cli, "steps", steps, 1, STEPS_MAX, &run->steps));
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    struct run run = {
        .cli = cli,
        .trace_cli = cli,
        .path = args->operands[0],
        .seed = 1,
        .seeds = args->values[OPTION_SEED] ? 1 : SEEDS_DEFAULT,
        .steps = STEPS_DEFAULT,
    };
    struct cli aside;
    int code;

    if (!read_numbers(&run, args))
        return CLI_USAGE;
    code = cli_machine_load(cli, run.path, &run.spec);
    if (code != CLI_OK)
        return code;
    if (cli_trace_is_output(args->values[OPTION_TRACE])) {
        aside = cli_aside(cli);
        run.cli = &aside;
    }
    code = run_machine(&run, args);
    if (run.cli != cli)
        cli_aside_end(cli, &aside);
    det_spec_close(run.spec);
    return code;
}

extern const struct cli_command cli_command_sim;
const struct cli_command cli_command_sim = {
    .name = "sim",
    .summary = "walk a machine at random in a simulated world",
    .about = "Starts instances and sends them random events, permitted or not, with random\n"
             "payloads; lets time pass; effects, guards and hooks answer at random. Random walks\n"
             "alternate with walks to the nearest transition that this seed has not taken yet.\n"
             "Each seed starts without coverage, so that it can be repeated alone; the printed\n"
             "coverage is that of all seeds together. After each step the instance is compared\n"
             "with the result of its events. Each seed is walked twice and must give the same\n"
             "run. On a violation it prints the seed and the command that repeats it, and exits\n"
             "with 1.",
    .operand = { .form = "FILE", .least = 1, .most = 1, .suffix = ".fsm" },
    .options = option_table,
    .run = run_command,
};
