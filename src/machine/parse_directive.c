/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_directive.c - reads #define and #include. */
#include <string.h>

#include "base/text.h"
#include "machine/parse_reader.h"

static const char *const word_names[DET_WORD_COUNT] = {
    [DET_WORD_NAME] = "FSM_NAME",           [DET_WORD_PREFIX] = "FSM_PREFIX",
    [DET_WORD_VERSION] = "FSM_VERSION",     [DET_WORD_DATA] = "FSM_DATA",
    [DET_WORD_UNHANDLED] = "FSM_UNHANDLED", [DET_WORD_CONTEXT] = "FSM_CONTEXT",
    [DET_WORD_HANDLER] = "FSM_HANDLER",
};

static const char *const worker_word_names[DET_WORKER_WORD_COUNT] = {
    [DET_WORKER_WORD_NAME] = "WORKER_NAME",       [DET_WORKER_WORD_PREFIX] = "WORKER_PREFIX",
    [DET_WORKER_WORD_DESIRED] = "WORKER_DESIRED", [DET_WORKER_WORD_OBSERVED] = "WORKER_OBSERVED",
    [DET_WORKER_WORD_CONFIG] = "WORKER_CONFIG",   [DET_WORKER_WORD_DEPS] = "WORKER_DEPS",
    [DET_WORKER_WORD_DERIVE] = "WORKER_DERIVE",   [DET_WORKER_WORD_CHILDREN] = "WORKER_CHILDREN",
    [DET_WORKER_WORD_EVERY] = "WORKER_EVERY",     [DET_WORKER_WORD_TIMEOUT] = "WORKER_TIMEOUT",
    [DET_WORKER_WORD_ERRORS] = "WORKER_ERRORS",   [DET_WORKER_WORD_BLIND] = "WORKER_BLIND",
};

static const char *const flow_word_names[DET_FLOW_WORD_COUNT] = {
    [DET_FLOW_WORD_NAME] = "FLOW_NAME",
};

/* The words of a language, and its parts of messages. */
struct language {
    const char *const *words;
    unsigned word_count;
    const char *prefix; /* of its words */
    const char *not_a_word;
    const char *not_here;
};

static const struct language languages[] = {
    [DET_LANGUAGE_MACHINE] = { word_names, DET_WORD_COUNT, "FSM_",
                               " is not a word of a spec: the words are FSM_NAME, FSM_PREFIX, "
                               "FSM_VERSION, FSM_DATA, "
                               "FSM_UNHANDLED, FSM_CONTEXT and FSM_HANDLER",
                               " belongs in the machine's own file, not in a fragment" },
    [DET_LANGUAGE_WORKER] = { worker_word_names, DET_WORKER_WORD_COUNT, "WORKER_",
                              " is not a word of a worker: the words are WORKER_NAME, "
                              "WORKER_PREFIX, WORKER_DESIRED, "
                              "WORKER_OBSERVED, WORKER_CONFIG, WORKER_DEPS, WORKER_DERIVE, "
                              "WORKER_CHILDREN, "
                              "WORKER_EVERY, WORKER_TIMEOUT, WORKER_ERRORS and WORKER_BLIND",
                              " belongs in the worker's own file, not in a fragment" },
    [DET_LANGUAGE_FLOW] = { flow_word_names, DET_FLOW_WORD_COUNT, "FLOW_",
                            " is not a word of a flow: the only word is FLOW_NAME",
                            " belongs in the flow's own file, not in a fragment" },
};

const char *const *det_parse_words_of(enum det_language language, unsigned *ret_count)
{
    *ret_count = languages[language].word_count;
    return languages[language].words;
}

/* Value of each word of a worker; most are names. */
static bool is_flag(int word)
{
    return word == DET_WORKER_WORD_DERIVE || word == DET_WORKER_WORD_CHILDREN ||
           word == DET_WORKER_WORD_ERRORS || word == DET_WORKER_WORD_BLIND;
}

static bool is_open(const struct det_reader *reader, const char *path)
{
    for (unsigned i = 0; i < reader->depth; i++) {
        if (strcmp(reader->frames[i].source->path, path) == 0)
            return true;
    }
    return false;
}

void det_reader_enter(struct det_reader *reader, const struct det_node *name, bool reads_records)
{
    struct det_spec *spec = reader->spec;
    struct det_place place = det_parse_place(name);
    const char *path = det_source_join(spec, name->source, name->text);
    struct det_source *source;

    if (path == NULL || name->text[0] == '\0' || memchr(name->at, '\\', name->width) != NULL) {
        det_parse_report(spec, DET_RULE_BAD_INCLUDE, &place, "this is not the name of a file");
    } else if (is_open(reader, path)) {
        det_parse_report(spec, DET_RULE_BAD_INCLUDE, &place, "%s includes itself", path);
    } else if (reader->depth == DET_SPEC_INCLUDE_MAX) {
        det_parse_report(
            spec, DET_RULE_BAD_INCLUDE, &place,
            "%s is nested too deep: files include files at most %d deep", path,
            DET_SPEC_INCLUDE_MAX);
    } else if (!reads_records || det_source_of_records(spec, path) == NULL) {
        source = det_source_read(spec, path, &place);
        if (source == NULL)
            return;
        source->is_of_records = reads_records;
        det_reader_push(reader, source);
    }
}

static bool is_at_line_end(struct det_reader *reader)
{
    return det_reader_token_is(reader, DET_TOKEN_END) || det_reader_token_of(reader)->starts_line;
}

/* Reports wrong or missing text after `word`. */
static void report_text_after(
    struct det_reader *reader, const struct det_node *word, const char *problem)
{
    struct det_place place = det_parse_place(word);

    if (is_at_line_end(reader))
        det_parse_report(reader->spec, DET_RULE_SYNTAX, &place, "%s", problem);
    else
        det_reader_report_syntax(reader, problem);
}

static void read_include(struct det_reader *reader, const struct det_node *word)
{
    struct det_node *name;

    if (!det_reader_is_on_line(reader, DET_TOKEN_STRING)) {
        report_text_after(reader, word, "expected a file name in double quotes after #include");
        det_reader_skip_line(reader);
        return;
    }
    name = det_reader_new_node(reader, DET_NODE_STRING);
    det_reader_advance(reader);
    if (!is_at_line_end(reader)) {
        det_reader_report_syntax(reader, "expected the end of the line after the file name");
        det_reader_skip_line(reader);
    }
    if (name != NULL)
        det_reader_enter(reader, name, det_reader_top(reader)->source->is_of_records);
}

static bool is_same_list(const struct det_node *a, const struct det_node *b)
{
    while (a != NULL && b != NULL && strcmp(a->text, b->text) == 0) {
        a = a->next;
        b = b->next;
    }
    return a == NULL && b == NULL;
}

static void define_macro(struct det_reader *reader, struct det_node *name, struct det_node *members)
{
    struct det_spec *spec = reader->spec;
    struct det_macro *known = det_map_get(&spec->macro_map, name->text);
    struct det_macro *macro;

    if (known != NULL) {
        if (!is_same_list(known->members, members))
            det_reader_report_at(reader, name, " is defined twice with different text");
        return;
    }
    macro = det_parse_alloc(spec, sizeof *macro);
    if (macro == NULL)
        return;
    macro->name = name->text;
    macro->at = name;
    macro->members = members;
    if (det_map_put(&spec->macro_map, macro) < 0) {
        spec->error = DET_ERR_NO_MEMORY;
        return;
    }
    *spec->macros_tail = macro;
    spec->macros_tail = &macro->next;
}

static int find_word(const struct det_reader *reader, const char *name)
{
    unsigned count;
    const char *const *names = det_parse_words_of(reader->spec->language, &count);

    for (unsigned i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return (int)i;
    }
    return -1;
}

/* Stores the value for the word that was probably meant, so that it is not reported as missing. */
static void guess_word(struct det_reader *reader, struct det_node *name, struct det_node *value)
{
    unsigned count;
    const char *const *names = det_parse_words_of(reader->spec->language, &count);
    int nearest = det_text_nearest(name->text, names, count);

    det_reader_report_at(reader, name, languages[reader->spec->language].not_a_word);
    det_parse_hint_nearest(reader->spec, name->text, names, count);
    if (nearest >= 0 && reader->depth == 1)
        reader->spec->guessed_words[nearest] = value;
}

static void define_word(struct det_reader *reader, struct det_node *name, struct det_node *value)
{
    int word = find_word(reader, name->text);

    if (word < 0)
        guess_word(reader, name, value);
    else if (reader->depth > 1)
        det_reader_report_at(reader, name, languages[reader->spec->language].not_here);
    else if (value->next != NULL)
        det_reader_report_at(reader, value->next, " is one too many: the word has one value");
    else if (reader->spec->words[word] == NULL)
        reader->spec->words[word] = value;
    else if (!is_same_list(reader->spec->words[word], value))
        det_reader_report_at(reader, name, " is defined twice with different text");
}

/* A name whose end could not be read is not reported as missing, too. */
static void keep_begun_value(
    struct det_reader *reader, const struct det_node *word, const struct det_node *value)
{
    int index = find_word(reader, word->text);

    _Static_assert(
        (int)DET_WORD_NAME == (int)DET_WORKER_WORD_NAME &&
            (int)DET_WORD_PREFIX == (int)DET_WORKER_WORD_PREFIX &&
            (int)DET_WORD_NAME == (int)DET_FLOW_WORD_NAME,
        "name and prefix must be the first words of all languages");
    if (reader->depth == 1 && (index == DET_WORD_NAME || index == DET_WORD_PREFIX))
        reader->spec->guessed_words[index] = value;
}

/* Reads a list of names or numbers with commas; NULL after a report. */
static struct det_node *read_members(struct det_reader *reader, const struct det_node *name)
{
    struct det_node *first = NULL, **tail = &first;

    for (;;) {
        bool is_name = det_reader_is_on_line(reader, DET_TOKEN_NAME);

        if (!is_name && !det_reader_is_on_line(reader, DET_TOKEN_NUMBER)) {
            report_text_after(reader, name, "expected names separated by commas after #define");
            return NULL;
        }
        *tail = det_reader_new_node(reader, is_name ? DET_NODE_NAME : DET_NODE_NUMBER);
        if (*tail == NULL)
            return NULL;
        tail = &(*tail)->next;
        det_reader_advance(reader);
        if (is_at_line_end(reader))
            return first;
        if (!det_reader_token_is(reader, DET_TOKEN_COMMA)) {
            det_reader_report_syntax(reader, "a comma is missing in the list");
            keep_begun_value(reader, name, first);
            return NULL;
        }
        det_reader_advance(reader);
    }
}

/* Reads the value of WORKER_EVERY and WORKER_TIMEOUT; NULL after a report. */
static struct det_node *read_duration(struct det_reader *reader, const struct det_node *word)
{
    static const char problem[] = "expected a duration such as SECONDS(5)";
    struct det_node *call;

    if (!det_reader_is_on_line(reader, DET_TOKEN_NAME)) {
        report_text_after(reader, word, problem);
        return NULL;
    }
    call = det_reader_new_node(reader, DET_NODE_CALL);
    det_reader_advance(reader);
    if (call == NULL || !det_reader_is_on_line(reader, DET_TOKEN_OPEN)) {
        report_text_after(reader, word, problem);
        return NULL;
    }
    det_reader_advance(reader);
    if (det_reader_is_on_line(reader, DET_TOKEN_NUMBER)) {
        call->arguments = det_reader_new_node(reader, DET_NODE_NUMBER);
        call->argument_count = 1;
        det_reader_advance(reader);
    }
    if (call->arguments == NULL || !det_reader_is_on_line(reader, DET_TOKEN_CLOSE)) {
        report_text_after(reader, word, problem);
        return NULL;
    }
    det_reader_advance(reader);
    return call;
}

/* Reads the value of a worker's word: nothing, a duration or a name. A word without a value gets
 * its own name. */
static struct det_node *read_value(struct det_reader *reader, struct det_node *name)
{
    int word = find_word(reader, name->text);
    struct det_node *value;

    if (is_flag(word) || (word < 0 && is_at_line_end(reader))) {
        value = name;
    } else if (word == DET_WORKER_WORD_EVERY || word == DET_WORKER_WORD_TIMEOUT) {
        value = read_duration(reader, name);
    } else if (det_reader_is_on_line(reader, DET_TOKEN_NAME)) {
        value = det_reader_new_node(reader, DET_NODE_NAME);
        det_reader_advance(reader);
    } else {
        report_text_after(reader, name, "expected one name after the word");
        return NULL;
    }
    if (value == NULL || is_at_line_end(reader))
        return value;
    det_reader_report_syntax(
        reader,
        is_flag(word) ? "unexpected text after this word" : "unexpected text after the value");
    keep_begun_value(reader, name, value);
    return NULL;
}

static bool is_list_of_names(struct det_reader *reader, const struct det_node *members)
{
    for (; members != NULL; members = members->next) {
        if (members->kind != DET_NODE_NAME) {
            det_reader_report_at(reader, members, " is not a name: a macro is a list of names");
            return false;
        }
    }
    return true;
}

static bool is_word(const struct det_reader *reader, const struct det_node *name)
{
    const char *prefix = languages[reader->spec->language].prefix;

    return strncmp(name->text, prefix, strlen(prefix)) == 0;
}

/* Applies a well-formed #define. */
static void define_name(struct det_reader *reader, struct det_node *name, struct det_node *members)
{
    enum det_language language = reader->spec->language;

    if (is_word(reader, name))
        define_word(reader, name, members);
    else if (
        det_row_find_in(language, name->text, name->width) >= 0 ||
        det_row_is_extra(language, name->text))
        det_reader_report_at(reader, name, " is a word of the language, not a list");
    else if (is_list_of_names(reader, members))
        define_macro(reader, name, members);
}

static void read_define(struct det_reader *reader, const struct det_node *word)
{
    struct det_node *name, *members = NULL;
    bool is_function;

    if (!det_reader_is_on_line(reader, DET_TOKEN_NAME)) {
        report_text_after(reader, word, "expected a name after #define");
        det_reader_skip_line(reader);
        return;
    }
    name = det_reader_new_node(reader, DET_NODE_NAME);
    is_function = det_reader_token_text(reader)[det_reader_token_of(reader)->length] == '(';
    det_reader_advance(reader);
    if (name != NULL && is_function)
        det_reader_report_at(reader, name, " has arguments: a macro is a list of names");
    else if (name != NULL && reader->spec->language == DET_LANGUAGE_WORKER && is_word(reader, name))
        members = read_value(reader, name);
    else if (name != NULL)
        members = read_members(reader, name);
    det_reader_skip_line(reader);
    if (members != NULL)
        define_name(reader, name, members);
}

static void hint_directive(struct det_reader *reader)
{
    static const char *const words[] = { "define", "include" };
    const struct det_node *node = det_reader_new_node(reader, DET_NODE_NAME);

    if (node != NULL && !is_at_line_end(reader))
        det_parse_hint_nearest(reader->spec, node->text, words, 2);
}

void det_reader_read_directive(struct det_reader *reader)
{
    const struct det_node *word = det_reader_new_node(reader, DET_NODE_NAME);

    det_reader_advance(reader);
    if (word == NULL)
        return;
    if (!is_at_line_end(reader) && det_reader_token_is_text(reader, "define")) {
        det_reader_advance(reader);
        read_define(reader, word);
    } else if (!is_at_line_end(reader) && det_reader_token_is_text(reader, "include")) {
        det_reader_advance(reader);
        read_include(reader, word);
    } else {
        report_text_after(reader, word, "only #define and #include may follow a # in a spec");
        hint_directive(reader);
        det_reader_skip_line(reader);
    }
}
