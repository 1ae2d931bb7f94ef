/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* man.c - `detent man`: the manual page in roff, from the same tables as the help. */
#include <string.h>

#include "terminal/command.h"

/* Prints text, quoting requests and escapes of roff. */
static void put_text(struct cli *cli, const char *text)
{
    bool at_line_start = true;

    for (; *text; text++) {
        if (at_line_start && (*text == '.' || *text == '\''))
            cli_print(cli, "\\&");
        if (*text == '\\')
            cli_print(cli, "\\e");
        else if (*text == '-')
            cli_print(cli, "\\-");
        else
            cli_print(cli, "%c", *text);
        at_line_start = *text == '\n';
    }
}

static void put_option(struct cli *cli, const struct cli_option *option)
{
    cli_print(cli, ".TP\n");
    if (option->letter)
        cli_print(cli, "\\fB\\-%c\\fR, ", option->letter);
    cli_print(cli, "\\fB\\-\\-%s\\fR", option->name);
    if (option->argument)
        cli_print(cli, " \\fI%s\\fR", option->argument);
    cli_print(cli, "\n");
    put_text(cli, option->help);
    cli_print(cli, "\n");
}

static void put_command(struct cli *cli, const struct cli_command *command)
{
    cli_print(cli, ".SS \"detent %s %s\"\n", command->name, command->operand.form);
    put_text(cli, command->about);
    cli_print(cli, "\n");
    for (const struct cli_option *o = command->options; o && o->name; o++)
        put_option(cli, o);
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const struct cli_command *command;

    (void)args;
    cli_print(
        cli,
        ".TH DETENT 1 \"\" \"detent %s\"\n.SH NAME\ndetent \\- durable, supervised state machines "
        "for C\n.SH SYNOPSIS\n\\fBdetent\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] "
        "[\\fIOPERANDS\\fR]\n.SH COMMANDS\n",
        det_version());
    for (size_t i = 0; (command = cli_command_at(i)); i++) {
        if (!command->is_hidden)
            put_command(cli, command);
    }
    cli_print(cli, ".SH OPTIONS OF ALL COMMANDS\n");
    for (const struct cli_option *o = cli_common_options(NULL); o->name; o++)
        put_option(cli, o);
    cli_print(
        cli,
        ".SH EXIT STATUS\n0 ok, 1 failure, 2 usage or invalid definition, 3 not found, "
        "4 conflict, 5 timeout, 6 refused, 130 interrupted.\n"
        ".SH ENVIRONMENT\n.TP\n\\fBNO_COLOR\\fR\nif set and not empty, no color is used unless "
        "\\-\\-color requests it.\n");
    return CLI_OK;
}

extern const struct cli_command cli_command_man;
const struct cli_command cli_command_man = {
    .name = "man",
    .summary = "print the manual page",
    .about = "Prints the manual page in roff: detent man | man -l -",
    .operand = { .form = "" },
    .is_hidden = true,
    .is_text = true,
    .run = run_command,
};
