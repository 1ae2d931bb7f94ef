/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* command.h - the description of a command: one file with one struct cli_command, and one line in
 * commands.def. The parser, the help, the man page and the completion read these tables. */
#ifndef DET_TERMINAL_COMMAND_H
#define DET_TERMINAL_COMMAND_H

#include "terminal/terminal.h"

/* Maximum number of options of a command, without the common ones. */
#define CLI_OPTIONS_MAX  16
#define CLI_OPERANDS_ANY UINT32_MAX

struct cli_option {
    const char *name;     /* "strict" for --strict */
    char letter;          /* 'w' for -w; 0: none */
    const char *argument; /* "FILE"; NULL: no argument */
    const char *choices;  /* "auto always never"; NULL: anything */
    const char *help;     /* one line, no full stop */
};

/* Kind of an operand or argument, for completion: the words of `words`, files that end in `suffix`,
 * or folders. */
struct cli_operand {
    const char *form; /* "FILE..." in the help; "" for none */
    uint32_t least, most;
    const char *suffix; /* ".fsm"; NULL: any file, if there are no words */
    const char *words;  /* "c json": the first operand is one of these; NULL: any */
    bool is_command;    /* or the name of a command */
    const char *names;  /* "tree": the names that `detent tree --json` lists; NULL: none */
};

struct cli_args {
    const char *values[CLI_OPTIONS_MAX]; /* by index in the table; "" for an option without
                                          * argument */
    const char **operands;               /* NULL at the end */
    size_t operand_count;
    size_t operand_capacity;
    size_t dashes_at; /* number of operands before `--`; all of them if it is absent */
    bool has_dashes;
    const char *color;  /* NULL: not given */
    const char *folder; /* folder to change to first; NULL: not given */
    bool wants_help, wants_json;
};

struct cli_command {
    const char *name;
    const char *summary; /* one line, no full stop */
    const char *about;   /* paragraphs for the help and the man page */
    struct cli_operand operand;
    const struct cli_option *options; /* ends with a NULL name; NULL: none */
    bool is_text; /* its output is one text; main() wraps it in an object for --json */
    bool is_hidden;
    int (*run)(struct cli *cli, const struct cli_args *args); /* returns an enum cli_exit */
};

/* In the order of commands.def; NULL at the end. */
const struct cli_command *cli_command_at(size_t index);
/* Returns the command with this name; NULL: none. */
const struct cli_command *cli_command_find(const char *name);
/* Returns the command with the most similar name, or NULL. */
const struct cli_command *cli_command_nearest(const char *name);
/* Returns the command whose first operand may be this word, or NULL: `store` for backup. */
const struct cli_command *cli_command_of_verb(const char *verb);
/* --project, --json, --color, --help: the options of every command; without the first for commands
 * that define their own. NULL: all. Ends with a NULL name. */
const struct cli_option *cli_common_options(const struct cli_command *command);

#endif
