/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* scenario.c - `detent scenario`: runs example trees of workers, in real or virtual time. */
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <detent/driver/loop.h>
#include <detent/driver/world.h>
#include <detent/sim.h>

#include "base/text.h"
#include "inspect/document_print.h"
#include "kinds/scenario.h"
#include "terminal/args.h"
#include "terminal/table.h"
#include "testing/scenario_log.h"
#include "json/writer.h"

enum {
    OPTION_DURATION,
    OPTION_TICK,
    OPTION_LEVEL,
    OPTION_TRACE,
    OPTION_DUMP,
    OPTION_VIRTUAL,
    OPTION_SEED,
};

static const struct cli_option option_table[] = {
    [OPTION_DURATION] = { "duration", 0, "TIME", NULL,
                          "duration (default 0: until Ctrl+C; with --virtual to the end of the "
                          "scenario)" },
    [OPTION_TICK] = { "tick", 0, "TIME", NULL, "time between two ticks (default 100ms)" },
    [OPTION_LEVEL] = { "log-level", 0, "LEVEL", "debug info warn error",
                       "lowest level to show (default info)" },
    [OPTION_TRACE] = { "trace", 0, NULL, NULL, "show everything, more than debug" },
    [OPTION_DUMP] = { "dump-store", 0, NULL, NULL,
                      "at the end, show all changes and documents of the store" },
    [OPTION_VIRTUAL] = { "virtual", 0, NULL, NULL,
                         "run in virtual time: without waiting, repeatable by its seed" },
    [OPTION_SEED] = { "seed", 0, "N", NULL, "seed for --virtual (default 1)" },
    { NULL, 0, NULL, NULL, NULL },
};

struct play {
    struct cli *cli;
    struct scenario_log log;
    struct det_scenario_options options;
    struct det_scenario_run *run;
    struct det_watch signals;
    bool is_virtual, wants_dump;
    uint64_t seed;
    int dump_error;
};

/* Callbacks of a run. */

static void stop_unless_wanted(struct play *play)
{
    /* The reader is gone, or Ctrl+C came while no loop watches signals. */
    if (cli_is_stopped(play->cli) && !play->run->stop_wanted)
        det_scenario_stop(play->run);
}

static void on_event(void *user, const struct det_worker_event *event)
{
    struct play *play = user;

    scenario_log_event(&play->log, event);
    if (play->run)
        stop_unless_wanted(play);
}

static void on_note(void *user, const struct det_scenario_note *note)
{
    struct play *play = user;

    scenario_log_note(&play->log, note);
}

static void on_signal(void *argument, unsigned events)
{
    struct play *play = argument;
    struct signalfd_siginfo info;

    (void)events;
    while (read(play->signals.descriptor, &info, sizeof info) == (ssize_t)sizeof info) {
        scenario_log_signal(&play->log, play->run->stop_wanted);
        det_scenario_stop(play->run);
    }
}

static int on_begin(void *user, struct det_scenario_run *run, struct det_error *reterr)
{
    struct play *play = user;
    int r;

    play->run = run;
    if (play->is_virtual)
        return 0;
    r = det_loop_watch(run->loop, &play->signals, DET_POLL_READ);
    return r < 0 ? det_error_set(reterr, r, "signals cannot be watched") : 0;
}

static void on_end(void *user, struct det_scenario_run *run)
{
    struct play *play = user;

    if (!play->is_virtual)
        det_loop_unwatch(run->loop, &play->signals);
    scenario_log_end(&play->log, run);
    if (play->wants_dump)
        play->dump_error = cli_dump_print(play->cli, run->store, NULL, false);
    play->run = NULL;
}

/* Real and virtual time. */

static int play_virtual(
    struct play *play, const struct det_scenario *scenario, struct det_error *reterr)
{
    struct det_sim_options options = { .seed = play->seed, .allocator = play->cli->allocator };
    struct det_sim *sim;
    int r;

    r = det_sim_open(&options, &sim, reterr);
    if (r < 0)
        return r;
    play->options.world = det_sim_world(sim);
    if (play->options.duration == 0)
        play->options.duration = scenario->duration;
    r = det_scenario_run(scenario, &play->options, reterr);
    det_sim_close(sim);
    return r;
}

/* Signals are blocked before threads start, since threads inherit the mask. */
static int play_real(
    struct play *play, const struct det_scenario *scenario, struct det_error *reterr)
{
    sigset_t set, before;
    int r;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    play->signals.run = on_signal;
    play->signals.argument = play;
    play->signals.descriptor = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (play->signals.descriptor < 0) {
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return det_error_set(reterr, DET_ERR_IO, "signals cannot be watched");
    }
    r = det_scenario_run(scenario, &play->options, reterr);
    close(play->signals.descriptor);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

static int play_scenario(struct play *play, const struct det_scenario *scenario)
{
    struct det_error error = { 0 };
    int r;

    if (play->is_virtual)
        r = play_virtual(play, scenario, &error);
    else
        r = play_real(play, scenario, &error);
    if (r < 0)
        cli_report_error(play->cli, "%s", *error.text ? error.text : det_error_text(r));
    if (play->dump_error < 0 && play->dump_error != DET_ERR_CANCELLED)
        cli_report_error(
            play->cli, "the store cannot be shown: %s", det_error_text(play->dump_error));
    /* The options contradict each other, such as a tick against another limit. */
    if (r == DET_ERR_INVALID)
        return CLI_USAGE;
    return r < 0 || play->dump_error < 0 ? CLI_FAILURE : CLI_OK;
}

/* Options. */

static enum det_scenario_level read_level(const struct cli_args *args)
{
    static const char *const names[] = { "trace", "debug", "info", "warn", "error" };
    const char *wanted = args->values[OPTION_LEVEL] ? args->values[OPTION_LEVEL] : "info";
    int level = DET_SCENARIO_ERROR;

    if (args->values[OPTION_TRACE])
        return DET_SCENARIO_TRACE;
    while (level > DET_SCENARIO_DEBUG && strcmp(names[level], wanted) != 0)
        level--;
    return (enum det_scenario_level)level;
}

static bool read_options(struct play *play, const struct cli_args *args)
{
    const char *const *values = args->values;
    struct cli *cli = play->cli;

    play->is_virtual = values[OPTION_VIRTUAL] != NULL;
    play->wants_dump = values[OPTION_DUMP] != NULL;
    play->seed = 1;
    if (values[OPTION_DURATION] && strcmp(values[OPTION_DURATION], "0") != 0 &&
        !cli_args_span(cli, "duration", values[OPTION_DURATION], 0, &play->options.duration))
        return false;
    if (values[OPTION_TICK] &&
        !cli_args_span(cli, "tick", values[OPTION_TICK], 1, &play->options.tick))
        return false;
    if (values[OPTION_SEED] && !play->is_virtual) {
        cli_report_error(cli, "--seed needs --virtual: real time is not repeatable");
        return false;
    }
    return !values[OPTION_SEED] ||
           cli_args_number(cli, "seed", values[OPTION_SEED], 0, INT64_MAX, &play->seed);
}

static void report_unknown(struct cli *cli, const char *name)
{
    const char *nearest = det_scenario_nearest(name);

    cli_report_error(
        cli, "there is no scenario '%s'%s%s%s", name, nearest ? "; did you mean '" : "",
        nearest ? nearest : "", nearest ? "'?" : "");
    cli_print_error(cli, "Scenarios:");
    for (const struct det_scenario *const *list = det_scenarios(); *list; list++)
        cli_print_error(cli, "%s %s", list == det_scenarios() ? "" : ",", (*list)->name);
    cli_print_error(cli, "\n");
}

static int run_one(struct cli *cli, const struct cli_args *args)
{
    struct play play = { .cli = cli };
    const struct det_scenario *scenario;

    if (args->operand_count < 2) {
        cli_report_error(cli, "scenario run needs a name; 'detent scenario list' lists all");
        return CLI_USAGE;
    }
    scenario = det_scenario_find(args->operands[1]);
    if (!scenario) {
        report_unknown(cli, args->operands[1]);
        return CLI_USAGE;
    }
    if (!read_options(&play, args))
        return CLI_USAGE;
    if (play.is_virtual && scenario->is_real_only) {
        cli_report_error(
            cli, "scenario %s uses another program and cannot run in virtual time", scenario->name);
        return CLI_USAGE;
    }
    play.options.allocator = cli->allocator;
    play.options.on_event = on_event;
    play.options.on_note = on_note;
    play.options.on_begin = on_begin;
    play.options.on_end = on_end;
    play.options.user = &play;
    scenario_log_init(&play.log, cli, read_level(args), !play.is_virtual);
    return play_scenario(&play, scenario);
}

static int list_all(struct cli *cli)
{
    static const struct table_column columns[] = { { "name", 0, false },
                                                   { "takes", 1, true },
                                                   { "description", 0, false } };
    char span[DET_DURATION_TEXT];
    struct det_json_writer json;
    struct table table;

    table_init(&table, cli, columns, sizeof columns / sizeof *columns);
    for (const struct det_scenario *const *list = det_scenarios(); *list; list++) {
        const struct det_scenario *scenario = *list;

        if (cli->is_json) {
            cli_json_begin(cli, &json, "scenario");
            det_json_text(&json, "name", scenario->name);
            det_json_text(&json, "summary", scenario->summary);
            det_json_signed(&json, "duration_ms", scenario->duration / DET_MILLISECOND);
            det_json_bool(&json, "has_virtual_time", !scenario->is_real_only);
            cli_json_end(cli, &json);
            continue;
        }
        det_format_duration(scenario->duration, span, sizeof span);
        table_add(&table, CLI_BOLD, "%s", scenario->name);
        table_add(&table, CLI_FAINT, "%s", span);
        table_add(&table, CLI_PLAIN, "%s", scenario->summary);
    }
    table_show(&table, NULL);
    table_deinit(&table);
    return CLI_OK;
}

#define WORDS "list run"

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const char *verb = args->operands[0];
    char hint[CLI_CHOICE_TEXT];

    if (strcmp(verb, "run") == 0)
        return run_one(cli, args);
    if (strcmp(verb, "list") != 0) {
        cli_report_error(
            cli, "unknown verb '%s': use list or run%s", verb, cli_choice_hint(WORDS, verb, hint));
        return CLI_USAGE;
    }
    if (args->operand_count > 1) {
        cli_report_error(cli, "scenario list takes no '%s'", args->operands[1]);
        return CLI_USAGE;
    }
    return list_all(cli);
}

extern const struct cli_command cli_command_scenario;
const struct cli_command cli_command_scenario = {
    .name = "scenario",
    .summary = "watch example workers succeed, fail, restart and stop",
    .about = "'scenario list' lists all scenarios. 'scenario run NAME' runs one and prints a\n"
             "line for each event of its workers, with times in UTC. Ctrl+C stops the workers\n"
             "gracefully; a second one kills them. Exits with 1 if a worker had to be killed.\n"
             "\n"
             "With --virtual the scenario runs in a simulated world without waiting: ten minutes\n"
             "take milliseconds, and the same --seed gives the same output, byte by byte.",
    .operand = { .form = "VERB [NAME]", .least = 1, .most = 2, .words = WORDS },
    .options = option_table,
    .run = run_command,
};
