/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* arch_record.c - rules for the .worker file itself: its records and its name. */
#include <string.h>

#include "worker/arch_parts.h"
#include "worker/spec_read.h"

/* The row of a field, in any file; NULL: no row, because the record is defined elsewhere. */
static const struct det_node *field_row(
    const struct det_rows *rows, const char *record, const char *field)
{
    bool is_inside = false;

    for (const struct det_node *row = rows->first; row != NULL; row = row->next) {
        if (row->row == DET_ROW_RECORD)
            is_inside = row->arguments != NULL && strcmp(row->arguments->text, record) == 0;
        else if (
            is_inside && row->row != DET_ROW_END && row->arguments != NULL &&
            strcmp(row->arguments->text, field) == 0)
            return row;
    }
    return NULL;
}

static void report_field(
    struct det_arch *arch, enum det_arch_rule rule, const struct det_record *record,
    const char *field, const char *problem)
{
    const struct det_spec *text = arch->spec->text;
    const struct det_node *row = field_row(&text->rows, record->name, field);
    struct det_place place = { .file = text->sources->path, .line = 1, .column = 1 };

    if (row == NULL)
        row = field_row(&text->shared_rows, record->name, field);
    if (row != NULL)
        place = det_parse_place(row);
    det_arch_report_place(arch, rule, &place, "%s.%s %s", record->name, field, problem);
}

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static void check_desired(struct det_arch *arch)
{
    static const char *const names[] = { "should_run", "enabled", "is_enabled", "is_disabled",
                                         "disabled",   "state",   "running",    "is_running" };
    const struct det_record *record = arch->facts->desired;

    for (uint16_t i = 0; record != NULL && i < record->field_count; i++) {
        const char *name = record->fields[i].name;

        if (is_among(name, names, sizeof names / sizeof *names) ||
            strncmp(name, "shutdown", strlen("shutdown")) == 0)
            report_field(
                arch, DET_ARCH_DESIRED_LIFECYCLE, record, name, "says whether the worker must run");
    }
}

static void check_observed(struct det_arch *arch)
{
    static const char *const names[] = { "collected_at", "observed_at", "last_observed",
                                         "timestamp" };
    const struct det_record *record = arch->facts->observed;

    for (uint16_t i = 0; record != NULL && i < record->field_count; i++) {
        const char *name = record->fields[i].name;

        if (is_among(name, names, sizeof names / sizeof *names))
            report_field(arch, DET_ARCH_OBSERVED_TIME, record, name, "says when it was observed");
    }
}

static void check_file_name(struct det_arch *arch)
{
    const char *path = arch->spec->text->sources->path, *slash = strrchr(path, '/');
    const char *stem = slash != NULL ? slash + 1 : path;
    size_t length = strcspn(stem, ".");
    struct det_place place = det_parse_place(arch->spec->text->words[DET_WORKER_WORD_NAME]);

    /* A source such as <stdin> has no file name. */
    if (*stem == '<' ||
        (length == strlen(arch->facts->name) && memcmp(stem, arch->facts->name, length) == 0))
        return;
    det_arch_report_place(
        arch, DET_ARCH_FILE_NAME, &place, "the worker is named %s, its file %s", arch->facts->name,
        stem);
}

void det_arch_check_records(struct det_arch *arch)
{
    check_desired(arch);
    check_observed(arch);
    check_file_name(arch);
}
