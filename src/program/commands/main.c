/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* main.c - finds the command, parses its arguments, runs it, and checks that all output was
 * written. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/os.h"
#include "terminal/args.h"
#include "terminal/input.h"
#include "terminal/report.h"

/* An option before the command. */
static int early_option(struct cli *cli, const char *const *words)
{
    const char *const *word = words + 1;

    while (*word && !cli_command_find(*word))
        word++;
    if (*word)
        cli_report_error(cli, "options follow the command: detent %s %s ...", *word, words[0]);
    else
        cli_report_error(cli, "options follow a command: detent COMMAND %s ...", words[0]);
    return CLI_USAGE;
}

static int unknown_command(struct cli *cli, const char *const *words)
{
    const char *word = words[0];
    const struct cli_command *nearest = cli_command_nearest(word);
    const struct cli_command *owner = cli_command_of_verb(word);

    if (word[0] == '-' && word[1] != '\0')
        return early_option(cli, words);
    if (cli_has_suffix(word, CLI_SPEC_SUFFIX))
        cli_report_error(cli, "'%s' is a spec, not a command: detent check %s", word, word);
    else if (cli_has_suffix(word, CLI_FLOW_SUFFIX))
        cli_report_error(cli, "'%s' is a flow, not a command: detent check %s", word, word);
    else if (cli_has_suffix(word, CLI_WORKER_SUFFIX))
        cli_report_error(cli, "'%s' is a worker, not a command: detent check %s", word, word);
    else if (cli_has_suffix(word, CLI_CASES_SUFFIX))
        cli_report_error(cli, "'%s' is a test file, not a command: detent test %s", word, word);
    else if (owner)
        cli_report_error(
            cli, "there is no command '%s'; did you mean 'detent %s %s'?", word, owner->name, word);
    else if (nearest)
        cli_report_error(cli, "there is no command '%s'; did you mean '%s'?", word, nearest->name);
    else
        cli_report_error(cli, "there is no command '%s'; 'detent help' lists them", word);
    return CLI_USAGE;
}

static int run_help(struct cli *cli, const struct cli_command *command)
{
    const char *topic[] = { command->name, NULL };
    struct cli_args args = { .operands = topic, .operand_count = 1 };

    return cli_command_find("help")->run(cli, &args);
}

/* Wraps the output of a command in one object, if it is text instead of data. */
static int run_text(struct cli *cli, const struct cli_command *command, const struct cli_args *args)
{
    struct cli inner = *cli;
    char *text = NULL;
    size_t size = 0;
    int code;

    inner.out = open_memstream(&text, &size);
    if (!inner.out)
        return cli_no_memory(cli);
    inner.out_has_color = false;
    inner.is_json = false;
    code = command->run(&inner, args);
    if (fclose(inner.out) != 0 || inner.has_failed)
        cli->has_failed = true;
    else if (code == CLI_OK)
        code = cli_report_text(cli, NULL, text, size);
    free(text);
    return code;
}

static bool change_folder(struct cli *cli, const char *folder)
{
    if (!folder || chdir(folder) == 0)
        return true;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    cli_report_error(cli, "--project %s: %s", folder, strerror(errno));
    return false;
}

static int run_command(struct cli *cli, const struct cli_command *command, const char *const *words)
{
    struct cli_args args;
    struct det_error error = { 0 };
    int code, r;

    cli->command = command->name;
    r = cli_args_read(command, words, cli->allocator, &args, &error);
    if (r < 0) {
        cli_report_error(cli, "%s", error.text);
        cli_print_error(cli, "'detent help %s' explains it.\n", command->name);
        return r == DET_ERR_NO_MEMORY ? CLI_FAILURE : CLI_USAGE;
    }
    if (args.color)
        cli_set_color(cli, args.color);
    cli->is_json = args.wants_json;
    if (args.wants_help)
        code = run_help(cli, command);
    else if (!change_folder(cli, args.folder))
        code = CLI_NOT_FOUND;
    else if (cli->is_json && command->is_text)
        code = run_text(cli, command, &args);
    else
        code = command->run(cli, &args);
    cli_args_deinit(&args, cli->allocator);
    return code;
}

/* Also accepts `detent --help` and `detent --version`. */
static const struct cli_command *command_of(const char *word)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return cli_command_find("help");
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0 || strcmp(word, "-v") == 0)
        return cli_command_find("version");
    return cli_command_find(word);
}

/* Checks that all output was written. A failure is reported, unless the reader closed the pipe or
 * the user interrupted the write. */
static int finish(struct cli *cli, int code)
{
    det_assert(code >= 0 && code <= UINT8_MAX);
    cli_progress_end(cli);
    cli_flush(cli);
    if (cli->has_failed)
        return cli_no_memory(cli);
    if (cli_is_interrupted() && (!ferror(cli->out) || cli->out_error == EINTR))
        return CLI_INTERRUPTED;
    if (!ferror(cli->out))
        return code;
    if (cli->out_error != EPIPE)
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
        fprintf(cli->err, "detent: cannot write the output: %s\n", strerror(cli->out_error));
    return code == CLI_OK ? CLI_FAILURE : code;
}

/* Opens a placeholder for each closed standard stream. Otherwise a file or socket would get its
 * number, and output would be written there. Using a placeholder fails as using a closed one. */
static void hold_streams(void)
{
    for (int i = 0; i < 3; i++) {
        if (fcntl(i, F_GETFD) < 0)
            (void)!open("/dev/null", i == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
}

int main(int argc, char **argv)
{
    const struct cli_command *command;
    struct cli cli;

    hold_streams();
    det_descriptors_raise();
    /* For the width of characters only. */
    setlocale(LC_CTYPE, "C.UTF-8"); /* NOLINT(concurrency-mt-unsafe): the first thing we do */
    cli_catch_signals();
    cli_init(&cli);
    if (argc < 2) {
        command = cli_command_find("help");
        cli.out = stderr;
        cli.out_has_color = cli.err_has_color;
        run_command(&cli, command, (const char *const[]){ NULL });
        return CLI_USAGE;
    }
    command = command_of(argv[1]);
    if (!command)
        return finish(&cli, unknown_command(&cli, (const char *const *)argv + 1));
    return finish(&cli, run_command(&cli, command, (const char *const *)argv + 2));
}
