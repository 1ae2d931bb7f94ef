/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_run.c - `detent flow run`: runs a flow in this process.
 *
 *     open --facts--> running --the end--> summary
 *              Ctrl-C: drains; again: cancels; a third time: ends the process, which the journal
 *              survives */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <detent/driver/loop.h>

#include "base/memory.h"
#include "base/text.h"
#include "commands/flow_verbs.h"
#include "config/flow_file.h"
#include "connectors/connectors.h"
#include "inspect/flow_log.h"
#include "inspect/print_tasks.h"
#include "os/os.h"
#include "terminal/input.h"
#include "json/writer.h"

#define SHOW_EVERY  (200 * DET_MILLISECOND) /* on a terminal */
#define PRINT_EVERY (10 * DET_SECOND)       /* elsewhere */
#define JSON_EVERY  DET_SECOND

struct flow_play {
    struct cli *cli;
    struct flow_definition *definition;
    struct det_arena arena; /* of settings */
    char state[DET_PATH_MAX];
    char url[DET_PATH_MAX + 8];
    struct det_loop *loop;
    struct det_pipeline *pipeline;
    struct det_watch signals;
    struct det_timer timer;
    unsigned interrupts;
    bool has_console; /* a sink prints to the terminal that would show the progress */
    bool has_ended;
    det_time began_at;    /* monotonic */
    bool had_failed;      /* the run that is resumed */
    uint64_t rows_before; /* of sources, when the run was resumed */
    uint64_t run;
    struct det_pipeline_end end;
    struct det_stage_status *stages;
    struct det_edge_status *edges;
    /* For the rate. */
    uint64_t last_rows;
    det_time last_at;
    double rate;
    size_t shown; /* columns of the line on the terminal */
};

struct figures {
    uint64_t in, out, errors, lag;
};

/* Figures. */

static void sum_stages(const struct flow_play *play, size_t count, struct figures *ret)
{
    for (size_t i = 0; i < count; i++) {
        const struct det_stage_status *stage = &play->stages[i];

        ret->in += stage->kind == DET_STAGE_SOURCE ? stage->rows_out : 0;
        ret->out += stage->kind == DET_STAGE_SINK ? stage->rows_in : 0;
        ret->errors += stage->errors;
    }
}

static struct figures read_figures(struct flow_play *play)
{
    size_t stages = play->definition->flow->stage_count;
    size_t edges = play->definition->flow->edge_count;
    struct figures figures = { 0 };

    if (det_pipeline_status(play->pipeline, play->stages, &stages, play->edges, &edges) < 0)
        return figures;
    sum_stages(play, stages, &figures);
    for (size_t i = 0; i < edges; i++)
        figures.lag += play->edges[i].lag;
    return figures;
}

static void update_rate(struct flow_play *play, uint64_t rows)
{
    det_time now = det_loop_now(play->loop), span = now - play->last_at;
    double more = (double)(rows - play->last_rows);

    if (span < 100 * DET_MILLISECOND)
        return;
    /* Smoothed, so that it can be read. */
    more = more * (double)DET_SECOND / (double)span;
    play->rate = play->last_at == play->began_at ? more : 0.7 * play->rate + 0.3 * more;
    play->last_rows = rows;
    play->last_at = now;
}

/* The line on a terminal, and lines elsewhere. */

static void wipe_line(struct flow_play *play)
{
    if (play->shown)
        fputs("\r\033[K", play->cli->err);
    play->shown = 0;
}

static void format_line(
    const struct flow_play *play, const struct figures *figures, char *target, size_t size)
{
    char in[FLOW_COUNT_TEXT], out[FLOW_COUNT_TEXT], lag[FLOW_COUNT_TEXT], rate[FLOW_COUNT_TEXT];
    char errors[FLOW_COUNT_TEXT], span[SHOW_SPAN_TEXT];

    snprintf(
        target, size, "%s  %s  %s in  %s out  %s  lag %s%s%s  %s", play->definition->flow->name,
        det_pipeline_state_name(det_pipeline_state(play->pipeline)),
        flow_count_text(figures->in, in), flow_count_text(figures->out, out),
        flow_rate_text(play->rate, rate), flow_count_text(figures->lag, lag),
        figures->errors ? "  rejected " : "",
        figures->errors ? flow_count_text(figures->errors, errors) : "",
        show_span(det_loop_now(play->loop) - play->began_at, span));
}

static void print_progress_json(struct flow_play *play, const struct figures *figures)
{
    struct det_json_writer json;
    char rate[48];
    int size = snprintf(rate, sizeof rate, "%.1f", play->rate);

    cli_json_begin(play->cli, &json, "progress");
    det_json_text(&json, "state", det_pipeline_state_name(det_pipeline_state(play->pipeline)));
    det_json_number(&json, "rows_in", figures->in);
    det_json_number(&json, "rows_out", figures->out);
    det_json_number(&json, "rejected", figures->errors);
    det_json_number(&json, "lag", figures->lag);
    det_json_raw(&json, "rate", rate, (size_t)size);
    cli_json_end(play->cli, &json);
    cli_flush(play->cli);
}

static void show_progress(struct flow_play *play)
{
    struct figures figures = read_figures(play);
    struct cli *cli = play->cli;
    char line[256];

    update_rate(play, figures.out);
    if (cli->is_json) {
        print_progress_json(play, &figures);
        return;
    }
    format_line(play, &figures, line, sizeof line);
    if (!cli->err_is_terminal || play->has_console) {
        cli_print_error(cli, "%s\n", line);
        return;
    }
    if (cli->err_columns && strlen(line) >= cli->err_columns)
        line[cli->err_columns - 1] = '\0';
    fprintf(cli->err, "\r\033[K%s", line);
    fflush(cli->err);
    play->shown = strlen(line);
}

static det_time show_every(const struct flow_play *play)
{
    if (play->cli->is_json)
        return JSON_EVERY;
    return play->cli->err_is_terminal && !play->has_console ? SHOW_EVERY : PRINT_EVERY;
}

/* Without memory for the timer, only the progress is missing. */
static void arm_timer(struct flow_play *play)
{
    (void)!det_loop_timer_set(
        play->loop, &play->timer, det_loop_now(play->loop) + show_every(play));
}

static void on_timer(void *argument)
{
    struct flow_play *play = argument;

    show_progress(play);
    if (!play->has_ended)
        arm_timer(play);
    /* The reader of the output is gone. */
    if (cli_is_stopped(play->cli) && play->interrupts == 0) {
        play->interrupts++;
        (void)det_pipeline_cancel(play->pipeline);
    }
}

/* Callbacks of the pipeline. */

static void print_fact_json(struct flow_play *play, const struct det_flow_fact *fact)
{
    struct det_json_writer json;

    cli_json_begin(play->cli, &json, "fact");
    det_json_text(&json, "fact", det_flow_fact_name(fact->kind));
    det_json_time(&json, "at", fact->at);
    det_json_text(&json, "stage", fact->stage);
    det_json_text(&json, "reason", *fact->reason ? fact->reason : NULL);
    det_json_number(&json, "rows_in", fact->rows_in);
    det_json_number(&json, "rows_out", fact->rows_out);
    det_json_number(&json, "rejected", fact->errors);
    cli_json_end(play->cli, &json);
    cli_flush(play->cli);
}

static void print_fact(struct flow_play *play, const struct det_flow_fact *fact)
{
    char rows[FLOW_COUNT_TEXT];

    if (fact->kind == DET_FLOW_FACT_STAGE_FAILED) {
        wipe_line(play);
        cli_report_error(play->cli, "stage %s has failed: %s", fact->stage, fact->reason);
    }
    if (fact->kind == DET_FLOW_FACT_OPENED && strcmp(fact->reason, "resumed") == 0) {
        wipe_line(play);
        cli_print_error(
            play->cli, "%s: resumes the %s run, which has %s row%s of sources\n",
            play->definition->flow->name, play->had_failed ? "failed" : "interrupted",
            flow_count_text(fact->rows_in, rows), det_plural(fact->rows_in));
    }
}

static void on_fact(void *user, const struct det_flow_fact *fact)
{
    struct flow_play *play = user;

    if (fact->kind == DET_FLOW_FACT_OPENED)
        play->rows_before = fact->rows_out;
    if (play->cli->is_json)
        print_fact_json(play, fact);
    else
        print_fact(play, fact);
}

static void on_end(void *user, const struct det_pipeline_end *end)
{
    struct flow_play *play = user;

    play->end = *end;
    play->has_ended = true;
    det_loop_break(play->loop);
}

/* Signals. */

static void interrupt(struct flow_play *play)
{
    switch (++play->interrupts) {
    case 1:
        wipe_line(play);
        cli_print_error(
            play->cli, "%s: stopping: rows in flight are processed; Ctrl-C again stops at once\n",
            play->definition->flow->name);
        (void)det_pipeline_drain(play->pipeline, 0);
        return;
    case 2:
        wipe_line(play);
        cli_print_error(play->cli, "%s: stopping at once\n", play->definition->flow->name);
        (void)det_pipeline_cancel(play->pipeline);
        return;
    default:
        _exit(CLI_INTERRUPTED);
    }
}

static void on_signal(void *argument, unsigned events)
{
    struct flow_play *play = argument;
    struct signalfd_siginfo info;

    (void)events;
    while (read(play->signals.descriptor, &info, sizeof info) == (ssize_t)sizeof info)
        interrupt(play);
}

/* Signals are blocked before threads start, since threads inherit the mask. */
static int open_signals(struct flow_play *play, sigset_t *before)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, before);
    play->signals.run = on_signal;
    play->signals.argument = play;
    play->signals.descriptor = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (play->signals.descriptor < 0)
        return DET_ERR_IO;
    return det_loop_watch(play->loop, &play->signals, DET_POLL_READ);
}

static void close_signals(struct flow_play *play, const sigset_t *before)
{
    if (play->signals.descriptor >= 0) {
        det_loop_unwatch(play->loop, &play->signals);
        close(play->signals.descriptor);
    }
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* The summary. */

static const char *outcome_name(const struct flow_play *play)
{
    switch (play->end.outcome) {
    case DET_PIPELINE_RUNS:
        break;
    case DET_PIPELINE_COMPLETED:
        return "completed";
    case DET_PIPELINE_STOPPED:
        return "stopped";
    case DET_PIPELINE_HAS_FAILED:
        return "failed";
    }
    return "running";
}

static void write_summary_json(struct flow_play *play, double seconds, double rate)
{
    struct det_json_writer json;
    char text[48];
    int size;

    cli_json_begin(play->cli, &json, "summary");
    det_json_text(&json, "flow", play->definition->flow->name);
    det_json_text(&json, "outcome", outcome_name(play));
    det_json_text(&json, "reason", *play->end.reason ? play->end.reason : NULL);
    det_json_number(&json, "run", play->run);
    det_json_number(&json, "rows_in", play->end.rows_in);
    det_json_number(&json, "rows_out", play->end.rows_out);
    det_json_number(&json, "rejected", play->end.errors);
    size = snprintf(text, sizeof text, "%.3f", seconds);
    det_json_raw(&json, "seconds", text, (size_t)size);
    size = snprintf(text, sizeof text, "%.1f", rate);
    det_json_raw(&json, "rate", text, (size_t)size);
    det_json_text(&json, "journal", *play->url ? play->url : NULL);
    cli_json_end(play->cli, &json);
}

static void print_place(
    struct flow_play *play, const char *stage, const char *suffix, uint64_t rows)
{
    char count[FLOW_COUNT_TEXT];

    if (rows == 0)
        return;
    cli_print_error(play->cli, "rejected by %s: %s", stage, flow_count_text(rows, count));
    if (*play->url)
        cli_print_error(
            play->cli, ": detent flow tap %s%s --file %s --state %s", stage, suffix,
            play->definition->config.file, play->state);
    cli_print_error(play->cli, "\n");
}

/* Rejected rows are in the stream of errors, or in that of the stage, marked. */
static void print_rejected(struct flow_play *play)
{
    const struct det_stage_status *stage = play->stages;

    (void)read_figures(play); /* reads the stages */
    for (size_t i = 0; i < play->definition->flow->stage_count; i++, stage++) {
        print_place(play, stage->name, ".errors", stage->errors - stage->rejected);
        print_place(play, stage->name, "", stage->rejected);
    }
}

static void print_summary_text(struct flow_play *play, double seconds, double rate)
{
    char in[FLOW_COUNT_TEXT], out[FLOW_COUNT_TEXT], errors[FLOW_COUNT_TEXT];
    char per_second[FLOW_COUNT_TEXT];
    struct cli *cli = play->cli;
    bool is_good = play->end.outcome == DET_PIPELINE_COMPLETED;

    cli_print_error_in(
        cli, is_good ? CLI_GREEN : CLI_RED, "%s %s", play->definition->flow->name,
        outcome_name(play));
    if (*play->end.reason)
        cli_print_error(cli, ": %s\n", play->end.reason);
    cli_print_error(
        cli, "%s%s row%s in, %s out, %s rejected; %.2f s, %s\n", *play->end.reason ? "" : ": ",
        flow_count_text(play->end.rows_in, in), det_plural(play->end.rows_in),
        flow_count_text(play->end.rows_out, out), flow_count_text(play->end.errors, errors),
        seconds, flow_rate_text(rate, per_second));
    if (play->end.errors)
        print_rejected(play);
    if (*play->url)
        cli_print_error(
            cli, "journal: %s/%06llu%s\n", play->state, (unsigned long long)play->run,
            is_good ? "" : "; the next 'detent flow run' continues");
}

/* The rate is that of this process: an earlier one may have emitted rows, too. */
static void print_summary(struct flow_play *play)
{
    double seconds =
        (double)(det_world_now(play->cli->world, DET_CLOCK_MONOTONIC) - play->began_at) /
        (double)DET_SECOND;
    uint64_t rows =
        play->end.rows_out - (play->end.rows_out < play->rows_before ? 0 : play->rows_before);
    double rate = seconds > 0 ? (double)rows / seconds : 0;

    wipe_line(play);
    if (play->cli->is_json)
        write_summary_json(play, seconds, rate);
    else
        print_summary_text(play, seconds, rate);
}

static int exit_of_end(const struct flow_play *play)
{
    if (play->interrupts)
        return CLI_INTERRUPTED;
    return play->end.outcome == DET_PIPELINE_COMPLETED ? CLI_OK : CLI_FAILURE;
}

/* Settings of the command line. */

/* Returns the mapping of a stage; adds the stage if it has none yet. NULL: no memory. */
static struct det_datum *settings_of(
    struct flow_play *play, struct config_flow *config, const char *name)
{
    struct config_flow_stage *stage = config->stages;
    struct det_datum *map;

    for (size_t i = 0; i < config->stage_count; i++, stage++) {
        if (strcmp(stage->name, name) == 0) {
            memcpy(&map, &stage->settings, sizeof map);
            return map;
        }
    }
    map = det_datum_new(&play->arena, DET_DATUM_MAP);
    if (!map)
        return NULL;
    *stage = (struct config_flow_stage){ .name = name, .settings = map };
    config->stage_count++;
    return map;
}

/* The value is YAML: 10 is a number, [a, b] a list. */
static int add_setting(struct flow_play *play, struct config_flow *config, const char *word)
{
    const char *dot = strchr(word, '.'), *equals = strchr(word, '=');
    struct det_error error = { 0 };
    struct det_datum *value, *map;
    char *stage, *key;
    int r;

    if (!dot || !equals || dot > equals || dot == word || equals == dot + 1) {
        cli_report_error(
            play->cli, "'%s' must be STAGE.KEY=VALUE, such as read.path=other.csv", word);
        return CLI_USAGE;
    }
    stage = det_arena_copy_n(&play->arena, word, (size_t)(dot - word));
    key = det_arena_copy_n(&play->arena, dot + 1, (size_t)(equals - dot - 1));
    r = det_datum_from_yaml(&play->arena, word, equals + 1, strlen(equals + 1), &value, &error);
    if (r < 0) {
        cli_report_error(play->cli, "%s", error.text);
        return r == DET_ERR_NO_MEMORY ? CLI_FAILURE : CLI_USAGE;
    }
    map = stage && key ? settings_of(play, config, stage) : NULL;
    if (map && det_datum_get(map, key)) {
        cli_report_error(play->cli, "%s.%s is given twice", stage, key);
        return CLI_USAGE;
    }
    return map && det_datum_append(&play->arena, map, key, value) ? CLI_OK
                                                                  : cli_no_memory(play->cli);
}

static int read_settings(
    struct flow_play *play, const struct cli_args *args, struct config_flow *config)
{
    size_t count = args->operand_count - 2;
    int code = CLI_OK;

    config->stages = det_arena_array(&play->arena, count + 1, sizeof *config->stages);
    if (!config->stages)
        return cli_no_memory(play->cli);
    for (size_t i = 0; code == CLI_OK && i < count; i++)
        code = add_setting(play, config, args->operands[i + 2]);
    return code;
}

static enum config_durability read_durability(const struct cli_args *args)
{
    const char *word = args->values[FLOW_OPTION_DURABILITY];

    if (!word || strcmp(word, "disk") == 0)
        return CONFIG_DURABILITY_DISK;
    return strcmp(word, "os") == 0 ? CONFIG_DURABILITY_OS : CONFIG_DURABILITY_MEMORY;
}

/* A sink that prints, to a terminal that would also show the progress. */
static bool prints_to_terminal(const struct cli *cli, const struct det_flow *flow)
{
    for (size_t i = 0; cli->out_is_terminal && i < flow->stage_count; i++) {
        const struct det_stage *stage = &flow->stages[i];

        if (stage->kind == DET_STAGE_SINK && stage->use &&
            (strcmp(stage->use, "table") == 0 ||
             (stage->settings && strstr(stage->settings, "\"-\""))))
            return true;
    }
    return false;
}

static int load_definition(struct flow_play *play, const struct cli_args *args)
{
    struct config_flow config = {
        .name = args->operands[1],
        .file = args->operands[1],
        .module = args->values[FLOW_OPTION_MODULE],
        .durability = read_durability(args),
    };
    int code = read_settings(play, args, &config);

    if (code == CLI_OK)
        code = flow_definition_open(play->cli, &config, &play->definition);
    if (code != CLI_OK)
        return code;
    play->stages =
        det_arena_array(&play->arena, play->definition->flow->stage_count, sizeof *play->stages);
    play->edges =
        det_arena_array(&play->arena, play->definition->flow->edge_count + 1, sizeof *play->edges);
    play->has_console = prints_to_terminal(play->cli, play->definition->flow);
    return play->stages && play->edges ? CLI_OK : cli_no_memory(play->cli);
}

/* The folder of the state. */

static int make_folder(struct cli *cli, const char *path)
{
    struct stat status;

    if (mkdir(path, S_IRWXU) < 0 && errno != EEXIST) {
        cli_report_error(
            cli, "%s: cannot be created: %s", path,
            strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
        return CLI_FAILURE;
    }
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode) &&
        (status.st_uid == geteuid() || status.st_uid == 0))
        return CLI_OK;
    cli_report_error(cli, "%s: is not a folder of this user", path);
    return CLI_REFUSED;
}

/* Makes each folder of the path after its first `kept` bytes. */
static int make_folders(struct cli *cli, char *path, size_t kept)
{
    int code = CLI_OK;

    for (char *at = path + kept; code == CLI_OK && *at; at++) {
        if (*at != '/' || at == path)
            continue;
        *at = '\0';
        code = make_folder(cli, path);
        *at = '/';
    }
    return code == CLI_OK ? make_folder(cli, path) : code;
}

static int find_state(struct flow_play *play, const struct cli_args *args)
{
    const char *given = args->values[FLOW_OPTION_STATE], *folder = play->definition->folder;
    int size;

    if (play->definition->config.durability == CONFIG_DURABILITY_MEMORY) {
        if (!given)
            return CLI_OK;
        cli_report_error(play->cli, "--state does not go with --durability memory");
        return CLI_USAGE;
    }
    if (given)
        size = snprintf(play->state, sizeof play->state, "%s", given);
    else
        size = snprintf(
            play->state, sizeof play->state, "%s/" FLOW_STATE_FOLDER "/%s", folder,
            play->definition->flow->name);
    if (size >= (int)sizeof play->state) {
        cli_report_error(play->cli, "the path of the state is too long");
        return CLI_USAGE;
    }
    snprintf(play->url, sizeof play->url, "file:%s", play->state);
    return make_folders(play->cli, play->state, given ? strlen(given) : strlen(folder) + 1);
}

/* Running. */

static int open_pipeline(
    struct flow_play *play, const struct cli_args *args, struct det_error *reterr)
{
    const struct det_pipeline_options options = {
        .journal = *play->url ? play->url : NULL,
        .durability = (enum det_journal_durability)play->definition->config.durability,
        .loop = play->loop,
        .world = play->cli->world,
        .allocator = play->cli->allocator,
        .connectors = det_connectors_all(),
        .folder = play->definition->folder,
        .user = play,
        .begin_new_run = args->values[FLOW_OPTION_FRESH] != NULL,
        .on_fact = on_fact,
        .on_end = on_end,
    };
    int r = det_pipeline_open(play->definition->flow, &options, &play->pipeline, reterr);

    if (r == 0)
        play->run = det_pipeline_run_number(play->pipeline);
    return r;
}

static int run_pipeline(struct flow_play *play, const struct cli_args *args)
{
    struct det_error error = { 0 };
    int r;

    play->had_failed = *play->url && flow_log_has_failed(play->state, play->cli->allocator);
    r = open_pipeline(play, args, &error);
    if (r == DET_ERR_BUSY) {
        cli_report_error(
            play->cli, "another process runs this flow: %s; 'detent flow ls' shows it", error.text);
        return CLI_CONFLICT;
    }
    if (r < 0) {
        cli_report_error(
            play->cli, "%s%s", *error.text ? error.text : det_error_text(r),
            r == DET_ERR_CONFLICT ? "; --fresh begins one" : "");
        return cli_exit_of(r);
    }
    play->timer = (struct det_timer){ .run = on_timer, .argument = play };
    play->began_at = play->last_at = det_loop_now(play->loop);
    arm_timer(play);
    if (cli_is_interrupted())
        interrupt(play);
    r = play->has_ended ? 0 : det_loop_run(play->loop);
    det_loop_timer_cancel(play->loop, &play->timer);
    if (play->has_ended)
        print_summary(play);
    det_pipeline_close(play->pipeline);
    if (r < 0) {
        cli_report_error(play->cli, "%s", det_error_text(r));
        return CLI_FAILURE;
    }
    return exit_of_end(play);
}

static int play_flow(struct flow_play *play, const struct cli_args *args)
{
    sigset_t before;
    int code = load_definition(play, args), r;

    if (code == CLI_OK)
        code = find_state(play, args);
    if (code != CLI_OK)
        return code;
    r = det_loop_open(play->cli->world, play->cli->allocator, &play->loop);
    if (r < 0)
        return cli_no_memory(play->cli);
    det_loop_claim(play->loop);
    r = open_signals(play, &before);
    if (r < 0)
        cli_report_error(play->cli, "signals cannot be watched");
    code = r < 0 ? CLI_FAILURE : run_pipeline(play, args);
    close_signals(play, &before);
    det_loop_close(play->loop);
    return code;
}

int flow_run(struct cli *cli, const struct cli_args *args)
{
    struct flow_play play = { .cli = cli, .signals.descriptor = -1 };
    int code;

    if (!cli_has_suffix(args->operands[1], CONFIG_FLOW_SUFFIX)) {
        if (!strchr(args->operands[1], '.'))
            return flow_order_run(cli, args);
        cli_report_error(
            cli, "'%s' is neither a " CONFIG_FLOW_SUFFIX " file nor the name of a flow",
            args->operands[1]);
        return CLI_USAGE;
    }
    det_arena_init(&play.arena, cli->allocator);
    code = play_flow(&play, args);
    flow_definition_close(play.definition);
    det_arena_deinit(&play.arena);
    return code;
}
