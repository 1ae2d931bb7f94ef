/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* args.c - parses the words after a command; see args.h for the grammar. */
#include "terminal/args.h"

#include <string.h>

#include <detent/machine.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"

/* State of the parser. */
struct reader {
    const struct cli_command *command;
    const char *const *words; /* the next one */
    struct cli_args *args;
    struct det_error *error;
};

bool cli_choice_has(const char *choices, const char *word)
{
    size_t size = strlen(word);

    for (const char *at = choices; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");

        if (length == size && memcmp(at, word, size) == 0)
            return true;
        at += length;
    }
    return false;
}

/* Limits of the words and letters examined for a hint. */
#define CHOICES_MAX 16
#define CHOICE_MAX  32

const char *cli_choice_hint(const char *choices, const char *word, char *target)
{
    char words[CHOICES_MAX][CHOICE_MAX];
    const char *names[CHOICES_MAX];
    size_t count = 0;
    int nearest;

    for (const char *at = choices; *at && count < CHOICES_MAX; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");

        snprintf(words[count], CHOICE_MAX, "%.*s", (int)length, at);
        names[count] = words[count];
        count++;
        at += length;
    }
    nearest = det_text_nearest(word, names, count);
    *target = '\0';
    if (nearest >= 0)
        snprintf(target, CLI_CHOICE_TEXT, "; did you mean '%s'?", names[nearest]);
    return target;
}

static bool has_project(const struct cli_command *command)
{
    const struct cli_option *own = command ? command->options : NULL;

    while (own && own->name && strcmp(own->name, "project") != 0)
        own++;
    return own && own->name;
}

#define COMMON_COUNT 4

const struct cli_option *cli_common_options(const struct cli_command *command)
{
    static const struct cli_option option_table[COMMON_COUNT + 1] = {
        { "project", 'C', "FOLDER", NULL, "go to this folder first" },
        { "json", 0, NULL, NULL, "print data as JSON, one object a line" },
        { "color", 0, "WHEN", "auto always never", "use color: auto, always or never" },
        { "help", 'h', NULL, NULL, "explain the command" },
        { NULL, 0, NULL, NULL, NULL },
    };

    return has_project(command) ? option_table + 1 : option_table;
}

static const struct cli_option *find_in(
    const struct cli_option *options, const char *name, size_t size, char letter)
{
    for (; options && options->name; options++) {
        if (letter ? options->letter == letter
                   : strlen(options->name) == size && memcmp(options->name, name, size) == 0)
            return options;
    }
    return NULL;
}

static const struct cli_option *find_option(
    const struct reader *reader, const char *name, size_t size, char letter)
{
    const struct cli_option *own = find_in(reader->command->options, name, size, letter);

    return own ? own : find_in(cli_common_options(NULL), name, size, letter);
}

static bool is_common(const struct cli_option *option)
{
    const struct cli_option *common = cli_common_options(NULL);

    return option >= common && option < common + COMMON_COUNT;
}

static int unknown_option(struct reader *reader, const char *name, size_t size)
{
    const char *names[CLI_OPTIONS_MAX + COMMON_COUNT];
    char word[DET_NAME_MAX];
    size_t count = 0;
    int nearest;

    for (const struct cli_option *o = reader->command->options; o && o->name; o++)
        names[count++] = o->name;
    for (const struct cli_option *o = cli_common_options(reader->command); o->name; o++)
        names[count++] = o->name;
    det_assert(count <= CLI_OPTIONS_MAX + COMMON_COUNT);
    size = size < sizeof word ? size : sizeof word - 1;
    memcpy(word, name, size);
    word[size] = '\0';
    nearest = det_text_nearest(word, names, count);
    if (nearest < 0)
        return det_error_set(reader->error, DET_ERR_INVALID, "there is no option --%s", word);
    return det_error_set(
        reader->error, DET_ERR_INVALID, "there is no option --%s; did you mean --%s?", word,
        names[nearest]);
}

static void set_common(struct reader *reader, const struct cli_option *option, const char *value)
{
    if (strcmp(option->name, "json") == 0)
        reader->args->wants_json = true;
    else if (strcmp(option->name, "help") == 0)
        reader->args->wants_help = true;
    else if (strcmp(option->name, "project") == 0)
        reader->args->folder = value;
    else
        reader->args->color = value;
}

static int set_option(struct reader *reader, const struct cli_option *option, const char *value)
{
    char hint[CLI_CHOICE_TEXT];
    const char **slot;

    if (option->choices && value && !cli_choice_has(option->choices, value))
        return det_error_set(
            reader->error, DET_ERR_INVALID, "--%s must be one of: %s; got '%s'%s", option->name,
            option->choices, value, cli_choice_hint(option->choices, value, hint));
    if (is_common(option)) {
        set_common(reader, option, value);
        return 0;
    }
    det_assert(option >= reader->command->options);
    det_assert(option < reader->command->options + CLI_OPTIONS_MAX);
    slot = &reader->args->values[option - reader->command->options];
    if (*slot && option->argument)
        return det_error_set(reader->error, DET_ERR_INVALID, "duplicate option --%s", option->name);
    *slot = value ? value : "";
    return 0;
}

/* Returns the value of an option: the text after `=`, or the next word. */
static int take_value(struct reader *reader, const struct cli_option *option, const char *value)
{
    if (!value)
        value = *reader->words ? *reader->words++ : NULL;
    if (!value)
        return det_error_set(
            reader->error, DET_ERR_INVALID, "--%s needs a value: --%s %s", option->name,
            option->name, option->argument);
    return set_option(reader, option, value);
}

static int read_long(struct reader *reader, const char *word)
{
    size_t size = strcspn(word, "=");
    const char *value = word[size] ? word + size + 1 : NULL;
    const struct cli_option *option = find_option(reader, word, size, 0);

    if (!option)
        return unknown_option(reader, word, size);
    if (option->argument)
        return take_value(reader, option, value);
    if (value)
        return det_error_set(reader->error, DET_ERR_INVALID, "--%s takes no value", option->name);
    return set_option(reader, option, NULL);
}

static int read_letters(struct reader *reader, const char *letters)
{
    int r = 0;

    for (; *letters && r == 0; letters++) {
        const struct cli_option *option = find_option(reader, NULL, 0, *letters);

        if (!option)
            return det_error_set(
                reader->error, DET_ERR_INVALID, "there is no option -%c", *letters);
        if (option->argument)
            return take_value(reader, option, letters[1] ? letters + 1 : NULL);
        r = set_option(reader, option, NULL);
    }
    return r;
}

static int check_operands(struct reader *reader)
{
    const struct cli_operand *operand = &reader->command->operand;
    const struct cli_args *args = reader->args;

    det_assert(operand->least <= operand->most);
    if (args->operand_count < operand->least)
        return det_error_set(
            reader->error, DET_ERR_INVALID, "an argument is missing: detent %s %s",
            reader->command->name, operand->form);
    if (args->operand_count > operand->most)
        return det_error_set(
            reader->error, DET_ERR_INVALID, "unexpected argument '%s'",
            args->operands[operand->most]);
    return 0;
}

static int read_words(struct reader *reader)
{
    struct cli_args *args = reader->args;
    int r = 0;

    while (*reader->words && r == 0 && !args->wants_help) {
        const char *word = *reader->words++;

        det_assert(args->operand_count + 1 < args->operand_capacity);
        if (args->has_dashes || word[0] != '-' || word[1] == '\0')
            args->operands[args->operand_count++] = word;
        else if (word[1] != '-')
            r = read_letters(reader, word + 1);
        else if (word[2] != '\0')
            r = read_long(reader, word + 2);
        else
            args->has_dashes = true;
        if (!args->has_dashes)
            args->dashes_at = args->operand_count;
    }
    det_assert(args->dashes_at <= args->operand_count);
    det_assert(!args->operands[args->operand_count]);
    return r == 0 && !args->wants_help ? check_operands(reader) : r;
}

int cli_args_read(
    const struct cli_command *command, const char *const *words,
    const struct det_allocator *allocator, struct cli_args *ret, struct det_error *reterr)
{
    struct cli_args args = { .operand_capacity = 1 };
    struct reader reader = { command, words, &args, reterr };
    int r;

    while (words[args.operand_capacity - 1])
        args.operand_capacity++;
    args.operands = DET_NEW_ARRAY(allocator, args.operand_capacity, const char *);
    if (!args.operands)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    r = read_words(&reader);
    if (r < 0) {
        cli_args_deinit(&args, allocator);
        return r;
    }
    *ret = args;
    return 0;
}

void cli_args_deinit(struct cli_args *args, const struct det_allocator *allocator)
{
    DET_DELETE_ARRAY(allocator, args->operands, args->operand_capacity);
    args->operands = NULL;
}

bool cli_args_number(
    struct cli *cli, const char *name, const char *text, uint64_t least, uint64_t most,
    uint64_t *ret)
{
    uint64_t number;

    det_assert(name[0] != '-' && least <= most);
    if (det_parse_u64(det_view_text(text), &number) == 0 && number >= least && number <= most) {
        *ret = number;
        return true;
    }
    cli_report_error(
        cli, "--%s must be a whole number from %llu to %llu; got '%s'", name,
        (unsigned long long)least, (unsigned long long)most, text);
    return false;
}

bool cli_args_span(
    struct cli *cli, const char *name, const char *text, det_time least, det_time *ret)
{
    det_time span;

    det_assert(name[0] != '-' && least <= DET_DELAY_MAX);
    if (det_parse_duration(det_view_text(text), &span) == 0 && span >= least &&
        span <= DET_DELAY_MAX) {
        *ret = span;
        return true;
    }
    cli_report_error(
        cli, "--%s must be a duration (250ms, 1.5s, 1h30m), %sat most ten years; got '%s'", name,
        least ? "above 0 and " : "", text);
    return false;
}
