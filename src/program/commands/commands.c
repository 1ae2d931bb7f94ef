/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* commands.c - the list of commands, made of commands.def. */
#include <string.h>

#include "base/text.h"
#include "terminal/args.h"
#include "terminal/command.h"

#define CLI_COMMAND(name) extern const struct cli_command cli_command_##name;
#include "commands/commands.def"
#undef CLI_COMMAND

enum {
#define CLI_COMMAND(name) COMMAND_##name,
#include "commands/commands.def"
#undef CLI_COMMAND
    COMMAND_COUNT
};

static const struct cli_command *const commands[COMMAND_COUNT] = {
#define CLI_COMMAND(name) &cli_command_##name,
#include "commands/commands.def"
#undef CLI_COMMAND
};

const struct cli_command *cli_command_at(size_t index)
{
    return index < COMMAND_COUNT ? commands[index] : NULL;
}

const struct cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

/* Returns the index of the command that has this name in other programs, or COMMAND_COUNT. */
static unsigned find_synonym(const char *name)
{
    static const struct {
        const char *word;
        unsigned command;
    } synonyms[] = {
        { "format", COMMAND_fmt },   { "lint", COMMAND_check },    { "validate", COMMAND_check },
        { "draw", COMMAND_diagram }, { "graph", COMMAND_diagram }, { "generate", COMMAND_gen },
        { "simulate", COMMAND_sim }, { "init", COMMAND_new },      { "create", COMMAND_new },
    };

    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++) {
        if (strcmp(synonyms[i].word, name) == 0)
            return synonyms[i].command;
    }
    return COMMAND_COUNT;
}

const struct cli_command *cli_command_nearest(const char *name)
{
    unsigned synonym = find_synonym(name);
    const char *names[COMMAND_COUNT];
    int nearest;

    if (synonym < COMMAND_COUNT)
        return commands[synonym];

    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i]->name;
    nearest = det_text_nearest(name, names, COMMAND_COUNT);
    return nearest < 0 || commands[nearest]->is_hidden ? NULL : commands[nearest];
}

const struct cli_command *cli_command_of_verb(const char *verb)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const struct cli_command *command = commands[i];

        if (!command->is_hidden && command->operand.words &&
            cli_choice_has(command->operand.words, verb))
            return command;
    }
    return NULL;
}
