/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_source.c - the files of a spec: finding, reading and bounding them. */
#include "machine/parse_source.h"

#include <string.h>

#include "base/assert.h"

struct det_place det_source_place(const struct det_source *source, const struct det_token *token)
{
    return (struct det_place){
        .file = source->path,
        .line = token->line,
        .column = token->column,
        .width = token->length,
        .source = source->text + token->offset - (token->column - 1),
    };
}

const char *det_source_join(struct det_spec *spec, const struct det_source *from, const char *name)
{
    const char *slash = strrchr(from->path, '/');
    size_t folder = slash != NULL && name[0] != '/' ? (size_t)(slash - from->path) + 1 : 0;
    char *path;
    size_t length;

    while (strncmp(name, "./", 2) == 0)
        name += 2;
    length = strlen(name);
    if (folder + length >= DET_PARSE_PATH_MAX)
        return NULL;
    path = det_parse_alloc(spec, folder + length + 1);
    if (path != NULL) {
        memcpy(path, from->path, folder);
        memcpy(path + folder, name, length);
    }
    return path;
}

/* Returns the place of a whole file. */
static struct det_place file_place(const char *path)
{
    return (struct det_place){ .file = path, .line = 1, .column = 1 };
}

static struct det_source *new_source(
    struct det_spec *spec, const char *path, const char *text, size_t size)
{
    struct det_source *source = det_parse_alloc(spec, sizeof *source);
    char *copy = det_parse_alloc(spec, size + 1);

    if (source == NULL || copy == NULL)
        return NULL;
    if (size > 0)
        memcpy(copy, text, size);
    *source = (struct det_source){ .path = path, .text = copy, .size = (uint32_t)size };
    det_assert(*spec->sources_tail == NULL && spec->source_count < DET_PARSE_SOURCES_MAX);
    *spec->sources_tail = source;
    spec->sources_tail = &source->next;
    spec->source_count++;
    spec->source_bytes += size;
    return source;
}

/* Returns false, after a report, if the text cannot be lexed. */
static bool is_clean(struct det_spec *spec, struct det_source *source)
{
    struct det_text_problem found = det_lexer_check(source->text, source->size);
    struct det_place place;

    if (found.problem == NULL)
        return true;
    place = det_source_place(source, &found.token);
    /* Bytes that are not text are not shown. */
    if (found.is_encoding)
        place.source = NULL;
    det_parse_report(
        spec, found.is_encoding ? DET_RULE_NOT_UTF8 : DET_RULE_SYNTAX, &place, "%s", found.problem);
    det_source_finish(source);
    return false;
}

struct det_source *det_source_add(
    struct det_spec *spec, const char *path, const char *text, size_t size,
    const struct det_place *place)
{
    struct det_source *source;
    struct det_place whole = file_place(path);

    if (size > DET_SPEC_SIZE_MAX) {
        det_parse_report(
            spec, DET_RULE_TOO_LARGE, &whole, "the file has %zu bytes, more than %d", size,
            DET_SPEC_SIZE_MAX);
        return NULL;
    }
    if (size > DET_SPEC_TOTAL_MAX - spec->source_bytes ||
        spec->source_count == DET_PARSE_SOURCES_MAX) {
        det_parse_report(
            spec, DET_RULE_TOO_LARGE, place,
            "%s exceeds the limits of a spec: %d bytes and %d files in total", path,
            DET_SPEC_TOTAL_MAX, DET_PARSE_SOURCES_MAX);
        return NULL;
    }
    source = new_source(spec, path, text, size);
    return source != NULL && is_clean(spec, source) ? source : NULL;
}

static void report_unread(
    struct det_spec *spec, int error, const char *path, const struct det_place *place)
{
    switch (error) {
    case DET_ERR_NO_MEMORY:
        spec->error = error;
        break;
    case DET_ERR_LIMIT:
        det_parse_report(
            spec, DET_RULE_TOO_LARGE, place, "%s has more than %d bytes", path, DET_SPEC_SIZE_MAX);
        break;
    case DET_ERR_NOT_FOUND:
        det_parse_report(spec, DET_RULE_BAD_INCLUDE, place, "%s does not exist", path);
        break;
    default:
        det_parse_report(
            spec, DET_RULE_BAD_INCLUDE, place, "cannot read %s: %s", path, det_error_text(error));
        break;
    }
}

struct det_source *det_source_read(
    struct det_spec *spec, const char *path, const struct det_place *place)
{
    const struct det_spec_files *files = spec->files;
    struct det_source *source;
    const char *data;
    size_t size;
    int r;

    if (files == NULL) {
        det_parse_report(
            spec, DET_RULE_BAD_INCLUDE, place, "cannot read %s: this reader has no file access",
            path);
        return NULL;
    }
    r = files->read(files->context, path, &data, &size);
    if (r < 0) {
        report_unread(spec, r, path, place);
        return NULL;
    }
    source = det_source_add(spec, path, data, size, place);
    files->release(files->context, data, size);
    return source;
}

struct det_source *det_source_of_records(const struct det_spec *spec, const char *path)
{
    for (struct det_source *source = spec->sources; source != NULL; source = source->next) {
        if (source->is_of_records && strcmp(source->path, path) == 0)
            return source;
    }
    return NULL;
}

void det_source_finish(struct det_source *source)
{
    for (uint32_t i = 0; i < source->size; i++) {
        if (source->text[i] != '\n')
            continue;
        source->text[i] = '\0';
        if (i > 0 && source->text[i - 1] == '\r')
            source->text[i - 1] = '\0';
    }
}
