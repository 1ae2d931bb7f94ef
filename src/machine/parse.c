/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse.c - reads a spec from text: the public functions of spec.h except the formatter. */
#include "machine/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "machine/builder_findings.h"
#include "machine/reserved_names.h"

/* Number of names tried for "did you mean". */
#define NEAR_MAX 256

void *det_parse_alloc(struct det_spec *spec, size_t size)
{
    void *block = spec->error == 0 ? det_arena_alloc(&spec->arena, size) : NULL;

    if (block == NULL)
        spec->error = DET_ERR_NO_MEMORY;
    return block;
}

struct det_place det_parse_place(const struct det_node *node)
{
    return (struct det_place){
        .file = node->source->path,
        .line = node->line,
        .column = node->column,
        .width = node->width,
        .source = node->at - (node->column - 1),
    };
}

void det_parse_report(
    struct det_spec *spec, enum det_rule rule, const struct det_place *place, const char *format,
    ...)
{
    struct det_finding *complaint;
    char text[DET_ERROR_TEXT_MAX];
    va_list arguments;

    spec->complaint = NULL;
    det_parse_suspect_after(spec, rule);
    /* One more than the builder keeps, so that it can report that some were cut. */
    if (spec->finding_count > DET_DIAGNOSTICS_MAX && det_rule_severity(rule) == DET_SEVERITY_BROKEN)
        return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    complaint = det_parse_alloc(spec, sizeof *complaint + strlen(text) + 1);
    if (complaint == NULL)
        return;
    complaint->rule = rule;
    complaint->place = *place;
    complaint->text = memcpy(complaint + 1, text, strlen(text) + 1);
    *spec->findings_tail = complaint;
    spec->findings_tail = &complaint->next;
    spec->complaint = complaint;
    if (det_rule_severity(rule) == DET_SEVERITY_BROKEN) {
        spec->finding_count++;
        spec->is_text_broken = true;
    }
}

void det_parse_hint(struct det_spec *spec, const char *format, ...)
{
    char text[DET_ERROR_TEXT_MAX];
    va_list arguments;

    if (spec->complaint == NULL)
        return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    spec->complaint->hint = det_arena_copy(&spec->arena, text);
    if (spec->complaint->hint == NULL)
        spec->error = DET_ERR_NO_MEMORY;
}

void det_parse_other(struct det_spec *spec, const struct det_node *node)
{
    if (spec->complaint != NULL)
        spec->complaint->other = det_parse_place(node);
}

void det_parse_hint_nearest(
    struct det_spec *spec, const char *word, const char *const *words, size_t count)
{
    int nearest = spec->complaint != NULL ? det_text_nearest(word, words, count) : -1;

    if (nearest >= 0)
        det_parse_hint(spec, "did you mean %s?", words[nearest]);
}

void det_parse_hint_declared(struct det_spec *spec, const char *word, enum det_row row)
{
    const struct det_node *lists[] = { spec->shared_rows.first, spec->rows.first };
    const char *names[NEAR_MAX];
    size_t count = 0;

    for (size_t i = 0; i < 2 && spec->complaint != NULL; i++) {
        for (const struct det_node *node = lists[i]; node != NULL; node = node->next) {
            if (node->row == row && det_parse_is_name(spec, node->arguments) && count < NEAR_MAX)
                names[count++] = node->arguments->text;
        }
    }
    det_parse_hint_nearest(spec, word, names, count);
}

/* Every string that the builder has seen is the text of a node. */
static void locate_name(void *context, const char *name, struct det_place *ret)
{
    const void *node = name - offsetof(struct det_node, text);

    (void)context;
    *ret = det_parse_place(node);
}

static struct det_build_origin *origin_of(const char *name)
{
    const void *at = name - offsetof(struct det_node, text);
    const struct det_node *node = at;

    return node->origin;
}

/* Makes a name for a machine from the name of its file or its prefix, in one case. */
static void make_word(const char *from, size_t length, bool is_upper, char *target, size_t capacity)
{
    size_t used = 0;

    for (; used < length && used + 1 < capacity; used++) {
        char c = from[used];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

        /* The letters of both cases differ in one bit. */
        if (is_letter)
            c = (char)(is_upper ? c & ~0x20 : c | 0x20);
        else if (c < '0' || c > '9' || used == 0)
            c = '_';
        target[used] = c;
    }
    target[used] = '\0';
}

static void report_prefix(struct det_spec *spec)
{
    const struct det_node *name = spec->words[DET_WORD_NAME];
    struct det_place place = det_parse_place(name);
    char word[DET_NAME_MAX + 1];

    make_word(name->text, strlen(name->text), true, word, sizeof word);
    det_parse_report(
        spec, DET_RULE_NO_NAME, &place,
        "#define FSM_PREFIX is missing; C needs it for the machine's enumerators");
    det_parse_hint(spec, "add the line: #define FSM_PREFIX %s", word);
}

static void report_name(struct det_spec *spec)
{
    const char *path = spec->sources->path, *slash = strrchr(path, '/');
    const char *stem = slash != NULL ? slash + 1 : path;
    const char *prefix = det_parse_text(spec->words[DET_WORD_PREFIX]);
    struct det_place place = { .file = path, .line = 1, .column = 1 };
    char name[DET_NAME_MAX + 1], upper[DET_NAME_MAX + 1];

    /* A path such as <stdin> gives no name to suggest. */
    if (prefix == NULL && *stem == '<')
        stem = "machine";
    stem = prefix != NULL ? prefix : stem;
    make_word(stem, strcspn(stem, "."), false, name, sizeof name);
    make_word(stem, strcspn(stem, "."), true, upper, sizeof upper);
    det_parse_report(
        spec, DET_RULE_NO_NAME, &place,
        "no #define FSM_NAME: this is a fragment, which cannot run");
    if (prefix != NULL)
        det_parse_hint(spec, "add the line: #define FSM_NAME %s", name);
    else
        det_parse_hint(
            spec,
            "to make it a machine add the lines #define FSM_NAME %s and #define FSM_PREFIX %s",
            name, upper);
}

/* Enumerators are PREFIX_NAME: a macro would be expanded before it is pasted. */
static void check_prefix(struct det_spec *spec, const struct det_node *prefix)
{
    struct det_place place = det_parse_place(prefix);
    const char *use = det_name_use(prefix->text);

    if (prefix->kind != DET_NODE_NAME) {
        det_parse_report(spec, DET_RULE_BAD_NAME, &place, "%s is not a name", prefix->text);
    } else if (use != NULL) {
        det_parse_report(
            spec, DET_RULE_BAD_NAME, &place, "%s is %s and cannot be the prefix of a machine",
            prefix->text, use);
        det_parse_hint(spec, "choose another one, such as #define FSM_PREFIX MY_%s", prefix->text);
    }
}

static void check_words(struct det_spec *spec)
{
    const struct det_node *prefix;

    for (int i = 0; i < DET_WORD_COUNT; i++) {
        if (spec->words[i] == NULL)
            spec->words[i] = spec->guessed_words[i];
    }
    prefix = spec->words[DET_WORD_PREFIX];
    if (spec->words[DET_WORD_NAME] == NULL)
        report_name(spec);
    else if (prefix == NULL)
        report_prefix(spec);
    if (prefix != NULL)
        check_prefix(spec, prefix);
}

/* For a text that could not be read nothing else is reported, and the builder needs a name. */
static void assume_name(struct det_spec *spec, const char *path)
{
    static const char assumed[] = "machine";
    struct det_node *node = det_parse_alloc(spec, sizeof *node + sizeof assumed);
    struct det_source *source = det_parse_alloc(spec, sizeof *source);

    if (node == NULL || source == NULL)
        return;
    source->path = path;
    node->source = source;
    node->at = assumed;
    node->line = node->column = 1;
    memcpy(node->text, assumed, sizeof assumed);
    spec->words[DET_WORD_NAME] = node;
}

static int open_builder(struct det_spec *spec)
{
    const struct det_node *name = spec->words[DET_WORD_NAME];
    int r;

    r = det_machine_builder_open(det_parse_text(name), spec->allocator, &spec->builder);
    if (r < 0)
        return r;
    det_machine_builder_locate(spec->builder, locate_name, spec);
    spec->builder->origin = origin_of;
    return 0;
}

static void pass_findings(struct det_spec *spec)
{
    for (const struct det_finding *complaint = spec->complaints; complaint != NULL;
         complaint = complaint->next)
        det_machine_builder_report(
            spec->builder, complaint->rule, &complaint->place, "%s", complaint->text);
}

int det_parse_findings(struct det_spec *spec)
{
    struct det_build_findings findings;
    int r;

    if (spec->error < 0)
        return spec->error;
    r = det_machine_builder_open("worker", spec->allocator, &spec->builder);
    if (r < 0)
        return r;
    pass_findings(spec);
    det_build_findings_init(&findings, spec->builder);
    r = det_build_findings_finish(&findings, &spec->diagnostics);
    det_build_findings_deinit(&findings);
    if (r < 0)
        return r;
    det_parse_drop_suspects(spec);
    return spec->error;
}

static int build_machine(struct det_spec *spec, const struct det_spec_options *options)
{
    int r;

    r = open_builder(spec);
    if (r < 0)
        return r;
    det_parse_rows(spec);
    if (spec->error < 0)
        return spec->error;
    pass_findings(spec);
    if (options->report_unhandled)
        det_machine_builder_report_unhandled(spec->builder);
    r = det_machine_builder_build(spec->builder, &spec->machine, &spec->diagnostics);
    if (r < 0 && r != DET_ERR_DEFINITION)
        return r;
    det_parse_drop_suspects(spec);
    return spec->error;
}

static void init_spec(struct det_spec *spec, const struct det_spec_options *options)
{
    /* The author of a spec does not know this address, so cannot make names collide. */
    uint64_t seed = (uint64_t)(uintptr_t)spec;

    spec->allocator = options->allocator;
    spec->files = options->files;
    det_arena_init(&spec->arena, options->allocator);
    spec->sources_tail = &spec->sources;
    spec->rows.tail = &spec->rows.first;
    spec->shared_rows.tail = &spec->shared_rows.first;
    spec->macros_tail = &spec->macros;
    spec->records_tail = &spec->records;
    spec->findings_tail = &spec->complaints;
    det_map_init(&spec->macro_map, options->allocator, seed, offsetof(struct det_macro, name));
    det_map_init(
        &spec->record_map, options->allocator, seed,
        offsetof(struct det_parsed_record, definition.name));
    det_map_init(
        &spec->enum_map, options->allocator, seed,
        offsetof(struct det_parsed_enum, definition.name));
    det_map_init(
        &spec->value_map, options->allocator, seed, offsetof(struct det_parsed_value, name));
}

struct det_spec *det_parse_open(const struct det_spec_options *options, enum det_language language)
{
    struct det_spec *spec = DET_NEW(options->allocator, struct det_spec);

    if (spec != NULL) {
        init_spec(spec, options);
        spec->language = language;
    }
    return spec;
}

bool det_parse_read(struct det_spec *spec, const char *path, const char *text, size_t size)
{
    const char *name = det_arena_copy(&spec->arena, path);
    bool is_read;

    if (name == NULL) {
        spec->error = DET_ERR_NO_MEMORY;
        return false;
    }
    is_read = det_parse_files(spec, name, text, size);
    det_parse_macros(spec);
    det_parse_records(spec);
    return is_read;
}

static int read_spec(struct det_spec *spec, const char *path, const char *text, size_t size)
{
    const char *name = det_arena_copy(&spec->arena, path);

    if (name == NULL)
        return DET_ERR_NO_MEMORY;
    if (det_parse_read(spec, name, text, size))
        check_words(spec);
    else
        assume_name(spec, name);
    return spec->error;
}

int det_spec_read(
    const char *path, const char *text, size_t size, const struct det_spec_options *options,
    struct det_spec **ret)
{
    static const struct det_spec_options defaults = { .allocator = NULL };
    struct det_spec *spec;
    int r;

    options = options != NULL ? options : &defaults;
    spec = det_parse_open(options, DET_LANGUAGE_MACHINE);
    if (spec == NULL)
        return DET_ERR_NO_MEMORY;
    r = read_spec(spec, path, text, size);
    if (r == 0)
        r = build_machine(spec, options);
    if (r < 0) {
        det_spec_close(spec);
        return r;
    }
    *ret = spec;
    return 0;
}

void det_spec_close(struct det_spec *spec)
{
    if (spec == NULL)
        return;
    det_machine_close(spec->machine);
    det_machine_builder_close(spec->builder);
    det_map_deinit(&spec->macro_map);
    det_map_deinit(&spec->record_map);
    det_map_deinit(&spec->enum_map);
    det_map_deinit(&spec->value_map);
    det_arena_deinit(&spec->arena);
    DET_DELETE(spec->allocator, spec);
}

struct det_machine *det_spec_machine(struct det_spec *spec)
{
    return spec->machine;
}

const struct det_diagnostics *det_spec_diagnostics(const struct det_spec *spec)
{
    return &spec->diagnostics;
}

const char *det_spec_state_c_name(const struct det_spec *spec, unsigned state)
{
    return state < spec->state_count ? spec->state_names[state] : NULL;
}

const char *det_spec_event_c_name(const struct det_spec *spec, unsigned event)
{
    return event < spec->event_count ? spec->event_names[event] : NULL;
}

const char *det_spec_prefix(const struct det_spec *spec)
{
    return det_parse_text(spec->words[DET_WORD_PREFIX]);
}

struct det_place det_spec_row_place(const struct det_spec *spec, uint32_t row)
{
    return row > 0 && row <= spec->numbered_count ? det_parse_place(spec->numbered[row - 1])
                                                  : (struct det_place){ 0 };
}

const struct det_record *det_spec_record(const struct det_spec *spec, size_t index)
{
    const struct det_parsed_record *record = spec->records;

    for (; record != NULL && index > 0; index--)
        record = record->next;
    return record != NULL ? &record->definition : NULL;
}

/* Returns true if the same path was read before this source. */
static bool is_repeated(const struct det_spec *spec, const struct det_source *source)
{
    for (const struct det_source *other = spec->sources; other != source; other = other->next) {
        if (strcmp(other->path, source->path) == 0)
            return true;
    }
    return false;
}

const char *det_spec_file(const struct det_spec *spec, size_t index)
{
    for (const struct det_source *source = spec->sources; source != NULL; source = source->next) {
        if (is_repeated(spec, source))
            continue;
        if (index-- == 0)
            return source->path;
    }
    return NULL;
}
