/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* completion.c - `detent completion`: scripts for bash, zsh and fish, from the tables of the
 * commands. */
#include <string.h>

#include "terminal/args.h"

/* Extracts the names from the JSON of a command; names of detent.yaml contain no escapes. */
#define NAMES_BY_SED "sed -n 's/.*\"name\":\"\\([^\"]*\\)\".*/\\1/p'"

/* The words permitted after an option with choices. */
static void bash_choices(struct cli *cli, const struct cli_option *option)
{
    for (; option && option->name; option++) {
        if (!option->argument)
            continue;
        cli_print(cli, "        --%s", option->name);
        if (option->letter)
            cli_print(cli, "|-%c", option->letter);
        if (option->choices)
            cli_print(
                cli, ") mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$word\"); return ;;\n",
                option->choices);
        else
            cli_print(cli, ") mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return ;;\n");
    }
}

static void put_names(struct cli *cli, const char *separator)
{
    const struct cli_command *command;
    bool is_first = true;

    for (size_t i = 0; (command = cli_command_at(i)); i++) {
        if (command->is_hidden)
            continue;
        cli_print(cli, "%s%s", is_first ? "" : separator, command->name);
        is_first = false;
    }
}

/* The words permitted as the first operand. */
static void put_words(struct cli *cli, const struct cli_operand *operand)
{
    cli_print(cli, "%s", operand->words ? operand->words : "");
    if (operand->is_command) {
        cli_print(cli, " ");
        put_names(cli, " ");
    }
}

static void bash_command(struct cli *cli, const struct cli_command *command)
{
    cli_print(cli, "    %s)\n        options='", command->name);
    for (const struct cli_option *o = command->options; o && o->name; o++)
        cli_print(cli, "%s--%s", o == command->options ? "" : " ", o->name);
    for (const struct cli_option *o = cli_common_options(command); o->name; o++)
        cli_print(cli, " --%s", o->name);
    cli_print(cli, "'\n        words='");
    put_words(cli, &command->operand);
    cli_print(
        cli, "'\n        suffix='%s'\n        names='%s'\n",
        command->operand.suffix ? command->operand.suffix : "",
        command->operand.names ? command->operand.names : "");
    cli_print(cli, "        case $before in\n");
    bash_choices(cli, command->options);
    bash_choices(cli, cli_common_options(command));
    cli_print(cli, "        esac ;;\n");
}

static void put_bash(struct cli *cli)
{
    const struct cli_command *command;

    cli_print(
        cli, "# bash completion of detent: eval \"$(detent completion bash)\"\n_detent() {\n"
             "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
             "    local options='' words='' suffix='' names=''\n    COMPREPLY=()\n"
             "    # --format=se comes as three words.\n"
             "    if [ \"$word\" = '=' ]; then\n        word=''\n"
             "    elif [ \"$before\" = '=' ]; then\n"
             "        before=${COMP_WORDS[COMP_CWORD-2]}\n    fi\n"
             "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
             "        mapfile -t COMPREPLY < <(compgen -W '");
    put_names(cli, " ");
    cli_print(cli, "' -- \"$word\")\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; (command = cli_command_at(i)); i++) {
        if (!command->is_hidden)
            bash_command(cli, command);
    }
    cli_print(
        cli,
        "    esac\n    case $word in\n"
        "    -*) mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\"); return ;;\n"
        "    esac\n"
        "    if [ -n \"$names\" ]; then\n"
        "        names=$(\"${COMP_WORDS[0]}\" \"$names\" --json 2>/dev/null | " NAMES_BY_SED ")\n"
        "        mapfile -t COMPREPLY < <(compgen -W \"$names\" -- \"$word\")\n"
        "    elif [ -n \"$words\" ] && [ \"$COMP_CWORD\" -eq 2 ]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
        "    elif [ -n \"$suffix\" ]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -f -X \"!*$suffix\" -- \"$word\"; "
        "compgen -d -- \"$word\")\n    fi\n}\n"
        "complete -o filenames -F _detent detent\n");
}

/* One option as _arguments wants it; brackets and colons in the help would end it. */
static void zsh_option(struct cli *cli, const struct cli_option *option)
{
    cli_print(cli, " '--%s[", option->name);
    for (const char *at = option->help; *at; at++) {
        if (*at == '\'')
            cli_print(cli, "'\\''");
        else
            cli_print(cli, *at == '[' || *at == ']' || *at == ':' ? "\\%c" : "%c", *at);
    }
    cli_print(cli, "]");
    if (option->argument && option->choices)
        cli_print(cli, ":%s:(%s)", option->argument, option->choices);
    else if (option->argument)
        cli_print(cli, ":%s:_files", option->argument);
    cli_print(cli, "'");
}

static void put_zsh(struct cli *cli)
{
    const struct cli_command *command;

    cli_print(
        cli, "#compdef detent\n_detent_names() {\n"
             "    compadd -- ${(f)\"$(detent $1 --json 2>/dev/null | " NAMES_BY_SED ")\"}\n}\n"
             "_detent() {\n    if (( CURRENT == 2 )); then\n"
             "        compadd -- ");
    put_names(cli, " ");
    cli_print(
        cli, "\n        return\n    fi\n    local name=$words[2]\n    shift words\n"
             "    (( CURRENT-- ))\n    case $name in\n");
    for (size_t i = 0; (command = cli_command_at(i)); i++) {
        if (command->is_hidden)
            continue;
        cli_print(cli, "    %s) _arguments", command->name);
        for (const struct cli_option *o = command->options; o && o->name; o++)
            zsh_option(cli, o);
        for (const struct cli_option *o = cli_common_options(command); o->name; o++)
            zsh_option(cli, o);
        if (command->operand.words) {
            cli_print(cli, " '1:word:(");
            put_words(cli, &command->operand);
            cli_print(cli, ")'");
        }
        /* With the space, _arguments passes no options of compadd to the function. */
        if (command->operand.names) {
            cli_print(cli, " '*:name: _detent_names %s' ;;\n", command->operand.names);
            continue;
        }
        cli_print(
            cli, " '*:file:_files%s%s%s' ;;\n", command->operand.suffix ? " -g \"*" : "",
            command->operand.suffix ? command->operand.suffix : "",
            command->operand.suffix ? "\"" : "");
    }
    cli_print(cli, "    esac\n}\ncompdef _detent detent\n");
}

static void fish_option(struct cli *cli, const char *command, const struct cli_option *option)
{
    cli_print(
        cli, "complete -c detent -n '__fish_seen_subcommand_from %s' -l %s", command, option->name);
    if (option->letter)
        cli_print(cli, " -s %c", option->letter);
    if (option->argument && option->choices)
        cli_print(cli, " -x -a '%s'", option->choices);
    else if (option->argument)
        cli_print(cli, " -r");
    cli_print(cli, " -d \"%s\"\n", option->help);
}

static void put_fish(struct cli *cli)
{
    const struct cli_command *command;

    cli_print(
        cli, "# fish completion of detent: detent completion fish | source\n"
             "function __detent_names\n    detent $argv[1] --json 2>/dev/null | string replace -rf "
             "'.*\"name\":\"([^\"]*)\".*' '$1'\nend\n");
    for (size_t i = 0; (command = cli_command_at(i)); i++) {
        if (command->is_hidden)
            continue;
        cli_print(
            cli, "complete -c detent -f -n __fish_use_subcommand -a %s -d \"%s\"\n", command->name,
            command->summary);
        for (const struct cli_option *o = command->options; o && o->name; o++)
            fish_option(cli, command->name, o);
        for (const struct cli_option *o = cli_common_options(command); o->name; o++)
            fish_option(cli, command->name, o);
        if (command->operand.names)
            cli_print(
                cli,
                "complete -c detent -f -n '__fish_seen_subcommand_from %s' "
                "-a '(__detent_names %s)'\n",
                command->name, command->operand.names);
        if (command->operand.words) {
            cli_print(
                cli, "complete -c detent -f -n '__fish_seen_subcommand_from %s' -a '",
                command->name);
            put_words(cli, &command->operand);
            cli_print(cli, "'\n");
        }
    }
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    static const struct {
        const char *shell;
        void (*put)(struct cli *cli);
    } shells[] = { { "bash", put_bash }, { "zsh", put_zsh }, { "fish", put_fish } };

    char hint[CLI_CHOICE_TEXT];

    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(args->operands[0], shells[i].shell) == 0) {
            shells[i].put(cli);
            return CLI_OK;
        }
    }
    cli_report_error(
        cli, "unknown shell '%s': use bash, zsh or fish%s", args->operands[0],
        cli_choice_hint("bash zsh fish", args->operands[0], hint));
    return CLI_USAGE;
}

extern const struct cli_command cli_command_completion;
const struct cli_command cli_command_completion = {
    .name = "completion",
    .summary = "print the completion script of a shell",
    .about = "Prints a script that completes commands, options and files. For bash, in ~/.bashrc:\n"
             "    eval \"$(detent completion bash)\"",
    .operand = { .form = "bash|zsh|fish", .least = 1, .most = 1, .words = "bash zsh fish" },
    .is_text = true,
    .run = run_command,
};
