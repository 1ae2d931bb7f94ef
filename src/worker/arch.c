/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* arch.c - runs the architecture test from its texts to its report. */
#include "worker/arch.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "worker/arch_parts.h"

const struct det_arch_rule_text *det_arch_rule_text(enum det_arch_rule rule)
{
    static const struct det_arch_rule_text texts[] = {
#define DET_ARCH_RULE(name, id, severity, what, why, example) { id, what, why, example, severity },
#include "worker/arch_rules.def"
    };

    det_assert((unsigned)rule < DET_ARCH_RULE_COUNT);
    return &texts[rule];
}

void *det_arch_alloc(struct det_arch *arch, size_t size)
{
    void *block = arch->error == 0 ? det_arena_alloc(&arch->arena, size) : NULL;

    if (block == NULL)
        arch->error = DET_ERR_NO_MEMORY;
    return block;
}

static bool make_room(struct det_arch *arch)
{
    size_t capacity = arch->finding_capacity > 0 ? 2 * arch->finding_capacity : 16;
    struct det_arch_finding *findings;

    if (arch->finding_count < arch->finding_capacity)
        return true;
    findings = det_arch_alloc(arch, capacity * sizeof *findings);
    if (findings == NULL)
        return false;
    if (arch->finding_count > 0)
        memcpy(findings, arch->findings, arch->finding_count * sizeof *findings);
    arch->findings = findings;
    arch->finding_capacity = capacity;
    return true;
}

static void DET_PRINTF(4, 0)
    add(struct det_arch *arch, enum det_arch_rule rule, const struct det_place *place,
        const char *format, va_list arguments)
{
    char text[DET_ERROR_TEXT_MAX];
    char *copy;

    (void)vsnprintf(text, sizeof text, format, arguments);
    copy = det_arch_alloc(arch, strlen(text) + 1);
    if (copy == NULL || !make_room(arch))
        return;
    memcpy(copy, text, strlen(text));
    arch->findings[arch->finding_count++] =
        (struct det_arch_finding){ .rule = rule, .place = *place, .text = copy };
}

void det_arch_report_place(
    struct det_arch *arch, enum det_arch_rule rule, const struct det_place *place,
    const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    add(arch, rule, place, format, arguments);
    va_end(arguments);
}

/* A copy of the line that contains the token. */
static const char *line_of(
    struct det_arch *arch, const struct det_arch_source *source, const struct det_code_token *token)
{
    const char *start = token->text - (token->column - 1);
    const char *end = source->text->text + source->text->size;
    const char *newline = memchr(start, '\n', (size_t)(end - start));
    size_t length = (size_t)((newline != NULL ? newline : end) - start);
    char *copy = det_arch_alloc(arch, length + 1);

    if (copy == NULL)
        return NULL;
    /* The line must be a string, whatever bytes the source has. */
    for (size_t i = 0; i < length; i++)
        copy[i] = (char)(start[i] != '\0' ? start[i] : ' ');
    if (length > 0 && copy[length - 1] == '\r')
        copy[length - 1] = '\0';
    return copy;
}

void det_arch_report_at(
    struct det_arch *arch, enum det_arch_rule rule, const struct det_arch_source *source,
    const struct det_code_token *token, const char *format, ...)
{
    struct det_place place = {
        .file = source->text->path,
        .line = token->line,
        .column = token->column,
        .width = token->end_line == token->line ? token->length : 1,
        .source = line_of(arch, source, token),
    };
    va_list arguments;

    va_start(arguments, format);
    add(arch, rule, &place, format, arguments);
    va_end(arguments);
}

/* Sources are in the order in which they were given, the spec last. */
static size_t rank_of(const struct det_arch *arch, const char *path)
{
    size_t i = 0;

    while (i < arch->source_count && strcmp(arch->sources[i].text->path, path) != 0)
        i++;
    return i;
}

static bool comes_before(
    const struct det_arch *arch, const struct det_arch_finding *a, const struct det_arch_finding *b)
{
    size_t here = rank_of(arch, a->place.file), there = rank_of(arch, b->place.file);

    if (here != there)
        return here < there;
    if (a->place.line != b->place.line)
        return a->place.line < b->place.line;
    return a->place.column < b->place.column;
}

static void sort(struct det_arch *arch)
{
    for (size_t i = 1; i < arch->finding_count; i++) {
        struct det_arch_finding finding = arch->findings[i];
        size_t k = i;

        for (; k > 0 && comes_before(arch, &finding, &arch->findings[k - 1]); k--)
            arch->findings[k] = arch->findings[k - 1];
        arch->findings[k] = finding;
    }
}

static void read_sources(
    struct det_arch *arch, const struct det_arch_text *spec_text,
    const struct det_arch_text *sources, size_t count)
{
    arch->sources = det_arch_alloc(arch, (count + 1) * sizeof *arch->sources);
    if (arch->sources == NULL)
        return;
    for (size_t i = 0; i < count && arch->error == 0; i++)
        det_arch_read_source(arch, &arch->sources[arch->source_count++], &sources[i]);
    if (arch->error == 0)
        det_arch_read_source(arch, &arch->sources[arch->source_count], spec_text);
}

static void check_all(struct det_arch *arch)
{
    det_arch_find_functions(arch);
    if (arch->error < 0)
        return;
    det_arch_check_records(arch);
    if (arch->report.state_functions > 0) {
        det_arch_check_pure(arch);
        det_arch_check_variables(arch);
        det_arch_find_transitions(arch);
        det_arch_check_states(arch);
        det_arch_check_reasons(arch);
        det_arch_check_actions(arch);
        det_arch_check_shared(arch);
    }
    if (arch->error == 0)
        det_arch_settle(arch);
    sort(arch);
}

static void summarize(struct det_arch *arch)
{
    struct det_arch_report *report = &arch->report;

    report->findings = arch->findings;
    report->count = arch->finding_count;
    report->transitions = arch->transitions;
    report->transition_count = arch->transition_count;
    for (size_t i = 0; i < arch->finding_count; i++) {
        bool is_error = det_arch_rule_text(arch->findings[i].rule)->severity == DET_SEVERITY_BROKEN;

        report->error_count += is_error;
        report->warning_count += !is_error;
    }
}

int det_arch_check(
    const struct det_worker_spec *spec, const struct det_arch_text *spec_text,
    const struct det_arch_text *sources, size_t source_count, const struct det_allocator *allocator,
    struct det_arch **ret)
{
    struct det_arch *arch;
    int r;

    if (!det_worker_spec_is_valid(spec))
        return DET_ERR_INVALID;
    arch = DET_NEW(allocator, struct det_arch);
    if (arch == NULL)
        return DET_ERR_NO_MEMORY;
    arch->allocator = allocator;
    det_arena_init(&arch->arena, allocator);
    arch->spec = spec;
    arch->facts = det_worker_spec_summary(spec);
    read_sources(arch, spec_text, sources, source_count);
    if (arch->error == 0)
        check_all(arch);
    r = arch->error;
    if (r < 0) {
        det_arch_close(arch);
        return r;
    }
    summarize(arch);
    *ret = arch;
    return 0;
}

const struct det_arch_report *det_arch_report(const struct det_arch *arch)
{
    return &arch->report;
}

void det_arch_close(struct det_arch *arch)
{
    if (arch == NULL)
        return;
    det_arena_deinit(&arch->arena);
    DET_DELETE(arch->allocator, arch);
}
