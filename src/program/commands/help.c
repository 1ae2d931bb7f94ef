/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* help.c - `detent help`: the commands, one command, the rows of a spec, the rules about it. */
#include <string.h>

#include <detent/tool/diagnostic.h>

#include "base/text.h"
#include "machine/rows.h"
#include "terminal/command.h"
#include "worker/arch.h"
#include "json/writer.h"

/* The width of the first column, for names of commands and options. */
#define COLUMN 28

static void print_option(struct cli *cli, const struct cli_option *option)
{
    char left[DET_NAME_MAX];

    snprintf(
        left, sizeof left, "%s%c%s --%s%s%s", option->letter ? "-" : " ",
        option->letter ? option->letter : ' ', option->letter ? "," : " ", option->name,
        option->argument ? " " : "", option->argument ? option->argument : "");
    cli_print(cli, "  %-*s ", COLUMN, left);
    cli_print_wrapped(cli, COLUMN + 3, COLUMN + 3, option->help);
}

static void print_options(struct cli *cli, const struct cli_command *command)
{
    cli_print_in(cli, CLI_BOLD, "\noptions:\n");
    for (const struct cli_option *o = command->options; o && o->name; o++)
        print_option(cli, o);
    for (const struct cli_option *o = cli_common_options(command); o->name; o++)
        print_option(cli, o);
}

static void write_options(struct det_json_writer *json, const struct cli_option *option)
{
    for (; option && option->name; option++) {
        det_json_open(json, NULL, '{');
        det_json_text(json, "name", option->name);
        det_json_text(json, "help", option->help);
        if (option->letter)
            det_json_bytes(json, "letter", &option->letter, 1);
        if (option->argument)
            det_json_text(json, "argument", option->argument);
        if (option->choices)
            det_json_text(json, "choices", option->choices);
        det_json_close(json, '}');
    }
}

static void print_command_json(struct cli *cli, const struct cli_command *command)
{
    struct det_json_writer json;

    cli_json_begin(cli, &json, "command");
    det_json_text(&json, "name", command->name);
    det_json_text(&json, "operands", command->operand.form);
    det_json_text(&json, "summary", command->summary);
    det_json_text(&json, "about", command->about);
    det_json_open(&json, "options", '[');
    write_options(&json, command->options);
    write_options(&json, cli_common_options(command));
    det_json_close(&json, ']');
    cli_json_end(cli, &json);
}

static int help_command(struct cli *cli, const struct cli_command *command)
{
    if (cli->is_json) {
        print_command_json(cli, command);
        return CLI_OK;
    }
    cli_print_in(cli, CLI_BOLD, "detent %s", command->name);
    cli_print(cli, " - %s\n\n", command->summary);
    cli_print_in(cli, CLI_BOLD, "usage: ");
    cli_print(
        cli, "detent %s%s%s [OPTIONS]\n\n", command->name, *command->operand.form ? " " : "",
        command->operand.form);
    cli_print_wrapped(cli, 0, 0, command->about);
    print_options(cli, command);
    return CLI_OK;
}

static int help_commands(struct cli *cli)
{
    const struct cli_command *command;

    if (!cli->is_json) {
        cli_print_in(cli, CLI_BOLD, "detent");
        cli_print(cli, " - durable, supervised state machines for C\n\n");
        cli_print_in(cli, CLI_BOLD, "usage: ");
        cli_print(cli, "detent COMMAND [OPTIONS] [OPERANDS]\n\n");
        cli_print_in(cli, CLI_BOLD, "commands:\n");
    }
    for (size_t i = 0; (command = cli_command_at(i)); i++) {
        if (command->is_hidden)
            continue;
        if (cli->is_json)
            help_command(cli, command);
        else
            cli_print(cli, "  %-12s %s\n", command->name, command->summary);
    }
    if (!cli->is_json)
        cli_print_wrapped(
            cli, 0, 0,
            "\n'detent help COMMAND' explains a command, 'detent help rows' the rows of a spec, "
            "'detent help rules' what is checked about it, 'detent help exit' the exit codes.\n"
            "\nA first machine: detent new light && cd light && detent test\n");
    return CLI_OK;
}

static void print_kind(struct cli *cli, const char *type, const struct det_row_kind *kind)
{
    struct det_json_writer json;

    if (cli->is_json) {
        cli_json_begin(cli, &json, type);
        det_json_text(&json, "name", kind->name);
        det_json_text(&json, "form", kind->form);
        det_json_text(&json, "help", kind->help);
        cli_json_end(cli, &json);
        return;
    }
    cli_print_in(cli, CLI_BOLD, "  %s\n", kind->form);
    cli_print_wrapped(cli, 0, 6, kind->help);
}

static int help_rows(struct cli *cli)
{
    if (!cli->is_json)
        cli_print(cli, "Rows of a spec file, one fact each:\n\n");
    for (unsigned i = 0; i < DET_ROW_COUNT; i++)
        print_kind(cli, "row", det_row_kind((enum det_row)i));
    if (!cli->is_json)
        cli_print(
            cli, "\nExtras at the end of ON, STAY, STOP, their OVERRIDE and their ELSE, in any "
                 "order:\n\n");
    for (unsigned i = 0; i < DET_EXTRA_COUNT; i++)
        print_kind(cli, "extra", det_extra_kind((enum det_extra)i));
    if (!cli->is_json)
        cli_print(cli, "\nRows of a .worker file, beside those of records and USES:\n\n");
    for (unsigned i = DET_ROW_COUNT; i < DET_WORKER_ROW_END; i++)
        print_kind(cli, "worker-row", det_row_kind_in(DET_LANGUAGE_WORKER, i));
    for (unsigned i = 0; i < DET_WORKER_EXTRA_COUNT; i++)
        print_kind(cli, "worker-extra", det_worker_extra_kind((enum det_worker_extra)i));
    if (!cli->is_json)
        cli_print(cli, "\nRows of a .flow file, beside those of records and USES:\n\n");
    for (unsigned i = DET_ROW_COUNT; i < DET_FLOW_ROW_END; i++)
        print_kind(cli, "flow-row", det_row_kind_in(DET_LANGUAGE_FLOW, i));
    if (!cli->is_json)
        cli_print(cli, "\nOptions at the end of the row of a stage, in any order:\n\n");
    for (unsigned i = 0; i < DET_FLOW_EXTRA_COUNT; i++)
        print_kind(cli, "flow-option", det_flow_extra_kind((enum det_flow_extra)i));
    return CLI_OK;
}

static const char *severity_name(enum det_severity severity)
{
    static const char *const severities[] = { "info", "warning", "error" };

    return severities[severity];
}

static void print_rule(
    struct cli *cli, const char *id, enum det_severity severity, const char *help)
{
    static const enum cli_style styles[] = { CLI_BLUE, CLI_YELLOW, CLI_RED };

    cli_print_in(cli, CLI_BOLD, "  %s", id);
    cli_print_in(cli, styles[severity], "  %s\n", severity_name(severity));
    cli_print_wrapped(cli, 0, 6, help);
}

static void print_rule_json(
    struct cli *cli, const char *type, const char *id, enum det_severity severity, const char *help)
{
    struct det_json_writer json;

    cli_json_begin(cli, &json, type);
    det_json_text(&json, "id", id);
    det_json_text(&json, "severity", severity_name(severity));
    det_json_text(&json, "help", help);
    cli_json_end(cli, &json);
}

/* The rules about the C source of a worker. */
static void help_source_rules(struct cli *cli)
{
    if (!cli->is_json)
        cli_print(cli, "\nRules about the C source of a worker:\n\n");
    for (unsigned i = 0; i < DET_ARCH_RULE_COUNT; i++) {
        const struct det_arch_rule_text *rule = det_arch_rule_text((enum det_arch_rule)i);

        if (cli->is_json) {
            print_rule_json(cli, "source-rule", rule->id, rule->severity, rule->what);
        } else {
            print_rule(cli, rule->id, rule->severity, rule->what);
            cli_print_wrapped(cli, 0, 6, rule->why);
        }
    }
}

static int help_rules(struct cli *cli)
{
    for (unsigned i = 0; i < DET_RULE_COUNT; i++) {
        enum det_rule rule = (enum det_rule)i;

        if (cli->is_json)
            print_rule_json(
                cli, "rule", det_rule_id(rule), det_rule_severity(rule), det_rule_help(rule));
        else
            print_rule(cli, det_rule_id(rule), det_rule_severity(rule), det_rule_help(rule));
    }
    help_source_rules(cli);
    return CLI_OK;
}

static void print_code(struct cli *cli, int code, const char *meaning)
{
    struct det_json_writer json;

    if (cli->is_json) {
        cli_json_begin(cli, &json, "exit");
        det_json_signed(&json, "code", code);
        det_json_text(&json, "meaning", meaning);
        cli_json_end(cli, &json);
        return;
    }
    cli_print(cli, "  %3d  ", code);
    cli_print_wrapped(cli, 7, 7, meaning);
}

static int help_exit(struct cli *cli)
{
    static const struct {
        int code;
        const char *meaning;
    } codes[] = {
        { CLI_OK, "success" },
        { CLI_FAILURE,
          "a failure: a test failed, a file is not formatted, output could not be written" },
        { CLI_USAGE, "wrong usage, or an invalid definition" },
        { CLI_NOT_FOUND, "a file or object does not exist" },
        { CLI_CONFLICT, "conflict: it already exists, or has changed meanwhile" },
        { CLI_TIMEOUT, "timeout" },
        { CLI_REFUSED, "refused in the current state" },
        { CLI_STORE_LOST, "'up' or 'serve': the store has failed permanently" },
        { CLI_INTERRUPTED, "interrupted" },
    };

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        print_code(cli, codes[i].code, codes[i].meaning);
    return CLI_OK;
}

static const struct {
    const char *name;
    int (*run)(struct cli *cli);
} TOPICS[] = {
    { "rows", help_rows },
    { "rules", help_rules },
    { "exit", help_exit },
};

#define TOPIC_COUNT (sizeof TOPICS / sizeof *TOPICS)

static int unknown_topic(struct cli *cli, const char *topic)
{
    const struct cli_command *nearest = cli_command_nearest(topic);
    const char *names[TOPIC_COUNT];
    const char *meant;
    int found;

    for (size_t i = 0; i < TOPIC_COUNT; i++)
        names[i] = TOPICS[i].name;
    found = det_text_nearest(topic, names, TOPIC_COUNT);
    meant = found >= 0 ? names[found] : nearest ? nearest->name : NULL;
    if (meant)
        cli_report_error(cli, "there is no help for '%s'; did you mean '%s'?", topic, meant);
    else
        cli_report_error(cli, "there is no help for '%s'; 'detent help' lists the commands", topic);
    return CLI_USAGE;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const char *topic = args->operand_count ? args->operands[0] : NULL;
    const struct cli_command *command;

    if (!topic)
        return help_commands(cli);
    for (size_t i = 0; i < TOPIC_COUNT; i++) {
        if (strcmp(topic, TOPICS[i].name) == 0)
            return TOPICS[i].run(cli);
    }
    command = cli_command_find(topic);
    return command ? help_command(cli, command) : unknown_topic(cli, topic);
}

extern const struct cli_command cli_command_help;
const struct cli_command cli_command_help = {
    .name = "help",
    .summary = "explain a command, the rows of a spec or its rules",
    .about = "Without an operand, lists the commands. 'rows' lists the rows of a spec and their\n"
             "extras, 'rules' every rule with its id, 'exit' the exit codes.",
    .operand = { .form = "[COMMAND|rows|rules|exit]",
                 .most = 1,
                 .words = "rows rules exit",
                 .is_command = true },
    .run = run_command,
};
