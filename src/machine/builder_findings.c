/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_findings.c - keeps the most severe and earliest of any number of findings, in bounded
 * memory.
 *
 * Invariants:
 *   1. `kept` is sorted by (severity, place, order of report), so the last one is evicted first,
 *      and an error is never lost to information;
 *   2. after CONSIDERED_MAX findings of a severity further ones are only counted: a definition
 *      with a million mistakes is answered as fast as one with ten thousand;
 *   3. a file's number is the order in which the rows first name it. */
#include "machine/builder_findings.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

#define CONSIDERED_MAX 10000

struct det_build_file {
    const char *path;
    uint32_t number; /* from 1; 0: in no file */
};

struct det_build_finding {
    struct det_diagnostic diagnostic; /* first: the other members extend it */
    uint32_t file;
    uint32_t order;
};

static void set_failed(struct det_build_findings *findings)
{
    findings->status = DET_ERR_NO_MEMORY;
}

static uint32_t file_number(struct det_build_findings *findings, const char *path)
{
    struct det_build_file *file;

    if (path == NULL)
        return 0;
    file = det_map_get(&findings->files, path);
    if (file != NULL)
        return file->number;
    file = det_arena_alloc(&findings->builder->arena, sizeof *file);
    if (file == NULL) {
        set_failed(findings);
        return 0;
    }
    file->path = path;
    file->number = ++findings->file_count;
    if (det_map_put(&findings->files, file) < 0)
        set_failed(findings);
    return file->number;
}

static int compare_numbers(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int compare_places(const struct det_build_finding *a, const struct det_build_finding *b)
{
    const struct det_place *here = &a->diagnostic.place;
    const struct det_place *there = &b->diagnostic.place;
    int result = compare_numbers(a->file, b->file);

    if (result == 0)
        result = compare_numbers(here->line, there->line);
    if (result == 0)
        result = compare_numbers(here->column, there->column);
    return result != 0 ? result : compare_numbers(a->order, b->order);
}

static int compare_gravity(const struct det_build_finding *a, const struct det_build_finding *b)
{
    if (a->diagnostic.severity != b->diagnostic.severity)
        return a->diagnostic.severity > b->diagnostic.severity ? -1 : 1;
    return compare_places(a, b);
}

static size_t position_of(
    const struct det_build_findings *findings, const struct det_build_finding *finding)
{
    size_t low = 0, high = findings->kept_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_gravity(findings->kept[middle], finding) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static char *DET_PRINTF(2, 0)
    format_text(struct det_build_findings *findings, const char *format, va_list arguments)
{
    va_list again;
    char *text = NULL;
    int length;

    va_copy(again, arguments);
    length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length >= 0)
        text = det_arena_alloc(&findings->builder->arena, (size_t)length + 1);
    if (text == NULL)
        set_failed(findings);
    else
        (void)vsnprintf(text, (size_t)length + 1, format, arguments);
    return text;
}

/* Invariant 1, at the place of a change. */
static void assert_findings(const struct det_build_findings *findings, size_t position)
{
    det_assert(findings->kept_count <= DET_DIAGNOSTICS_MAX && position < findings->kept_count);
    det_assert(
        position == 0 ||
        compare_gravity(findings->kept[position - 1], findings->kept[position]) < 0);
    det_assert(
        position + 1 == findings->kept_count ||
        compare_gravity(findings->kept[position], findings->kept[position + 1]) < 0);
}

static void insert_finding(
    struct det_build_findings *findings, size_t position, struct det_build_finding *finding)
{
    if (findings->kept_count < DET_DIAGNOSTICS_MAX)
        findings->kept_count++;
    for (size_t i = findings->kept_count - 1; i > position; i--)
        findings->kept[i] = findings->kept[i - 1];
    findings->kept[position] = finding;
    assert_findings(findings, position);
}

/* Returns true if the finding is among the first of its severity; counts it in any case. */
static bool is_considered(struct det_build_findings *findings, enum det_rule rule)
{
    return ++findings->found[det_rule_severity(rule)] <= CONSIDERED_MAX && findings->status == 0;
}

static struct det_diagnostic *DET_PRINTF(4, 0) keep(
    struct det_build_findings *findings, enum det_rule rule, const struct det_place *place,
    const char *format, va_list arguments)
{
    struct det_build_finding finding = {
        .diagnostic = { .rule = rule, .severity = det_rule_severity(rule), .place = *place },
        .file = file_number(findings, place->file),
        .order = findings->order++,
    };
    size_t position = position_of(findings, &finding);
    struct det_build_finding *copy;

    if (position == DET_DIAGNOSTICS_MAX)
        return NULL;
    finding.diagnostic.text = format_text(findings, format, arguments);
    copy = det_arena_alloc(&findings->builder->arena, sizeof *copy);
    if (copy == NULL || finding.diagnostic.text == NULL) {
        set_failed(findings);
        return NULL;
    }
    *copy = finding;
    insert_finding(findings, position, copy);
    return &copy->diagnostic;
}

static void DET_PRINTF(4, 5) keep_finding(
    struct det_build_findings *findings, enum det_rule rule, const struct det_place *place,
    const char *format, ...)
{
    va_list arguments;

    if (!is_considered(findings, rule))
        return;
    va_start(arguments, format);
    (void)keep(findings, rule, place, format, arguments);
    va_end(arguments);
}

/* Returns the first name of a row, which is its place. */
static const struct det_build_name *first_name(const struct det_build_row *row)
{
    const struct det_build_names *names = NULL;

    if (row->kind == DET_BUILD_ON)
        names = row->on.from.count > 0 ? &row->on.from : &row->on.events;
    else if (
        row->kind == DET_BUILD_AFTER || row->kind == DET_BUILD_ENTRY || row->kind == DET_BUILD_EXIT)
        names = &row->about.states;
    return names != NULL && names->count > 0 ? &names->items[0] : &row->name;
}

/* Returns the place of a name in a row. */
static struct det_place place_in(
    const struct det_machine_builder *builder, const struct det_build_row *row,
    const struct det_build_name *name)
{
    struct det_place place = { 0 };

    if (row != NULL && (name == NULL || name->given == NULL))
        name = first_name(row);
    if (builder->locate == NULL)
        place.line = row != NULL ? row->number : 0;
    else if (name != NULL && name->given != NULL)
        builder->locate(builder->locate_context, name->given, &place);
    return place;
}

void det_build_findings_init(
    struct det_build_findings *findings, struct det_machine_builder *builder)
{
    *findings = (struct det_build_findings){ .builder = builder };
    /* The author of a spec does not know this address, so cannot make names collide. */
    det_map_init(
        &findings->files, builder->allocator, (uint64_t)(uintptr_t)findings,
        offsetof(struct det_build_file, path));
    for (const struct det_build_row *row = builder->rows; row != NULL; row = row->next) {
        if (row->kind != DET_BUILD_FINDING)
            (void)file_number(findings, place_in(builder, row, NULL).file);
        else
            keep_finding(
                findings, row->complaint.rule, &row->complaint.place, "%s", row->complaint.text);
    }
}

void det_build_findings_deinit(struct det_build_findings *findings)
{
    det_map_deinit(&findings->files);
}

struct det_diagnostic *det_build_report(
    struct det_build_findings *findings, enum det_rule rule, const struct det_build_row *row,
    const struct det_build_name *name, const char *format, ...)
{
    struct det_diagnostic *finding;
    struct det_place place;
    va_list arguments;

    if (!is_considered(findings, rule))
        return NULL;
    place = place_in(findings->builder, row, name);
    va_start(arguments, format);
    finding = keep(findings, rule, &place, format, arguments);
    va_end(arguments);
    return finding;
}

void det_build_hint(
    struct det_build_findings *findings, struct det_diagnostic *finding, const char *format, ...)
{
    va_list arguments;

    if (finding == NULL)
        return;
    va_start(arguments, format);
    finding->hint = format_text(findings, format, arguments);
    va_end(arguments);
}

void det_build_other(
    struct det_build_findings *findings, struct det_diagnostic *finding,
    const struct det_build_row *row, const struct det_build_name *name)
{
    if (finding != NULL)
        finding->other = place_in(findings->builder, row, name);
}

static void sort_by_place(struct det_build_findings *findings)
{
    for (size_t i = 1; i < findings->kept_count; i++) {
        struct det_build_finding *finding = findings->kept[i];
        size_t j = i;

        for (; j > 0 && compare_places(findings->kept[j - 1], finding) > 0; j--)
            findings->kept[j] = findings->kept[j - 1];
        findings->kept[j] = finding;
    }
}

int det_build_findings_finish(struct det_build_findings *findings, struct det_diagnostics *ret)
{
    size_t total = findings->found[DET_SEVERITY_INFO] + findings->found[DET_SEVERITY_WARNING] +
                   findings->found[DET_SEVERITY_BROKEN];
    struct det_diagnostic *items;

    items = det_arena_array(&findings->builder->arena, findings->kept_count, sizeof *items);
    if (items == NULL || findings->status < 0)
        return DET_ERR_NO_MEMORY;
    det_assert(findings->kept_count <= total);
    sort_by_place(findings);
    for (size_t i = 0; i < findings->kept_count; i++)
        items[i] = findings->kept[i]->diagnostic;
    *ret = (struct det_diagnostics){
        .items = items,
        .count = findings->kept_count,
        .error_count = findings->found[DET_SEVERITY_BROKEN],
        .warning_count = findings->found[DET_SEVERITY_WARNING],
        .is_cut = total > findings->kept_count,
    };
    return 0;
}
