/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* settings.c - reads the settings of a stage. */
#include "connectors/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/text.h"
#include "os/os.h"

static bool is_tree(const char *key, const char *const *trees)
{
    for (; trees && *trees; trees++)
        if (strcmp(*trees, key) == 0)
            return true;
    return false;
}

/* Copies the members that are of the record into a map. */
static int select_members(
    struct settings *settings, const char *const *trees, struct det_datum **ret)
{
    struct det_datum *map = det_datum_new(&settings->arena, DET_DATUM_MAP);

    if (!map)
        return DET_ERR_NO_MEMORY;
    for (const struct det_datum *item = settings->root->first; item; item = item->next) {
        struct det_datum *copy;

        if (is_tree(item->key, trees))
            continue;
        copy = det_datum_append(
            &settings->arena, map, item->key, det_datum_copy(&settings->arena, item));
        if (!copy)
            return DET_ERR_NO_MEMORY;
        copy->key_line = item->key_line;
        copy->key_column = item->key_column;
    }
    *ret = map;
    return 0;
}

/* "; the settings are path, header", as many as fit. Returns `target`. */
#define NAMES_TEXT 160

static const char *list_names(const char *const *names, size_t count, char target[NAMES_TEXT])
{
    size_t used = 0;

    (void)snprintf(target, NAMES_TEXT, "; there are no settings");
    for (size_t i = 0; i < count; i++) {
        const char *before = i == 0 ? "; the settings are " : ", ";

        if (used + strlen(before) + strlen(names[i]) + sizeof ", ..." > NAMES_TEXT) {
            (void)snprintf(target + used, NAMES_TEXT - used, ", ...");
            break;
        }
        used += (size_t)snprintf(target + used, NAMES_TEXT - used, "%s%s", before, names[i]);
    }
    return target;
}

/* The names of all settings. Returns their number. */
#define SETTINGS_MAX (DET_RECORD_FIELD_MAX + 8)

static size_t collect_names(
    const struct det_record *record, const char *const *trees, const char *names[SETTINGS_MAX])
{
    size_t count = 0;

    for (; count < record->field_count; count++)
        names[count] = record->fields[count].name;
    for (; trees && *trees && count < SETTINGS_MAX; trees++)
        names[count++] = *trees;
    return count;
}

/* A text in the wrong place may be the value of a SENSITIVE setting, or a URL with a password. */
static bool is_quotable(const struct det_record *record, const char *text)
{
    for (size_t i = 0; i < record->field_count; i++)
        if (record->fields[i].flags & DET_FIELD_SENSITIVE)
            return false;
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            return false;
    return !strstr(text, "://");
}

static int fail_unknown(
    const struct settings *settings, const struct det_datum *member,
    const struct det_record *record, const char *const *trees, struct det_error *reterr)
{
    const char *names[SETTINGS_MAX], *what = settings->what;
    size_t count = collect_names(record, trees, names);
    bool is_quoted = det_name_is_valid(member->key) || is_quotable(record, member->key);
    char list[NAMES_TEXT];
    int nearest = -1;

    if (is_quoted)
        nearest = det_text_nearest(member->key, names, count);
    if (nearest >= 0)
        return det_datum_fail(
            reterr, DET_ERR_UNKNOWN_FIELD, what, member->key_line, member->key_column,
            "unknown setting '%s'; did you mean '%s'?", member->key, names[nearest]);
    return det_datum_fail(
        reterr, DET_ERR_UNKNOWN_FIELD, what, member->key_line, member->key_column,
        "unknown setting%s%.64s%s%s", is_quoted ? " '" : "", is_quoted ? member->key : "",
        is_quoted ? "'" : "", list_names(names, count, list));
}

static int fail_root(
    const struct settings *settings, const struct det_record *record, const char *const *trees,
    struct det_error *reterr)
{
    const struct det_datum *root = settings->root;
    bool is_quoted = root->text && is_quotable(record, root->text);
    const char *names[SETTINGS_MAX];
    char list[NAMES_TEXT];

    return settings_fail(
        settings, root, reterr,
        "the settings must be a map such as {path: in.csv}, not %s%s%.64s%s%s",
        det_datum_kind_text(root->kind), is_quoted ? " '" : "", is_quoted ? root->text : "",
        is_quoted ? "'" : "", list_names(names, collect_names(record, trees, names), list));
}

static int read_root(
    struct settings *settings, const struct det_record *record, const char *const *trees,
    struct det_error *reterr)
{
    const char *text = settings->stage->settings ? settings->stage->settings : "{}";
    size_t size = strlen(text);
    int r;

    if (size > SETTINGS_SIZE_MAX)
        return det_error_set(
            reterr, DET_ERR_LIMIT, "%s: more than %d bytes", settings->what, SETTINGS_SIZE_MAX);
    r = det_datum_from_yaml(&settings->arena, settings->what, text, size, &settings->root, reterr);
    if (r < 0)
        return r;
    if (settings->root->kind == DET_DATUM_NULL)
        settings->root->kind = DET_DATUM_MAP;
    return settings->root->kind == DET_DATUM_MAP ? 0 : fail_root(settings, record, trees, reterr);
}

static int fill_settings(
    struct settings *settings, const struct det_record *record, void *value,
    const char *const *trees, struct det_error *reterr)
{
    struct det_datum *map = NULL;
    int r;

    r = read_root(settings, record, trees, reterr);
    if (r < 0)
        return r;
    r = select_members(settings, trees, &map);
    if (r < 0)
        return det_error_set(reterr, r, "%s: %s", settings->what, det_error_text(r));
    for (const struct det_datum *member = map->first; member; member = member->next)
        if (!det_record_field(record, member->key))
            return fail_unknown(settings, member, record, trees, reterr);
    return det_datum_to_record(map, settings->what, record, value, reterr);
}

int settings_open(
    struct settings *settings, const struct det_stage *stage, const struct det_allocator *allocator,
    const struct det_record *record, void *value, const char *const *trees,
    struct det_error *reterr)
{
    int r;

    *settings = (struct settings){ .stage = stage };
    (void)snprintf(settings->what, sizeof settings->what, "settings of '%s'", stage->name);
    det_arena_init(&settings->arena, allocator);
    r = fill_settings(settings, record, value, trees, reterr);
    if (r < 0)
        settings_close(settings);
    return r;
}

void settings_close(struct settings *settings)
{
    det_arena_deinit(&settings->arena);
}

DET_PRINTF(5, 0)
static int fail_at(
    const struct settings *settings, uint32_t line, uint32_t column, struct det_error *reterr,
    const char *format, va_list arguments)
{
    char text[DET_ERROR_TEXT_MAX];

    (void)vsnprintf(text, sizeof text, format, arguments);
    return det_datum_fail(reterr, DET_ERR_INVALID, settings->what, line, column, "%s", text);
}

int settings_fail(
    const struct settings *settings, const struct det_datum *datum, struct det_error *reterr,
    const char *format, ...)
{
    va_list arguments;
    int r;

    va_start(arguments, format);
    r = fail_at(
        settings, datum ? datum->line : 0, datum ? datum->column : 0, reterr, format, arguments);
    va_end(arguments);
    return r;
}

int settings_fail_key(
    const struct settings *settings, const char *key, struct det_error *reterr, const char *format,
    ...)
{
    const struct det_datum *datum = det_datum_get(settings->root, key);
    va_list arguments;
    int r;

    va_start(arguments, format);
    r = fail_at(
        settings, datum ? datum->key_line : 0, datum ? datum->key_column : 0, reterr, format,
        arguments);
    va_end(arguments);
    return r;
}

int settings_need(
    const struct settings *settings, const char *key, const char *value, const char *such_as,
    struct det_error *reterr)
{
    if (*value)
        return 0;
    return settings_fail_key(
        settings, key, reterr, "%s is missing: add it, such as %s", key, such_as);
}

int settings_field(
    const struct settings *settings, const struct det_datum *datum, const char *name,
    const struct det_record *record, const struct det_field **ret, struct det_error *reterr)
{
    const char *names[DET_RECORD_FIELD_MAX];
    int nearest;

    *ret = det_record_field(record, name);
    if (*ret)
        return 0;
    for (size_t i = 0; i < record->field_count; i++)
        names[i] = record->fields[i].name;
    nearest = det_text_nearest(name, names, record->field_count);
    if (nearest >= 0)
        return settings_fail(
            settings, datum, reterr, "%s has no field '%.64s'; did you mean '%s'?", record->name,
            name, names[nearest]);
    return settings_fail(
        settings, datum, reterr, "%s has no field '%.64s'; use one of its %zu: %s%s", record->name,
        name, record->field_count, record->field_count ? names[0] : "",
        record->field_count > 1 ? ", ..." : "");
}

int settings_text_field(
    const struct settings *settings, const char *key, const char *name,
    const struct det_record *record, const struct det_field **ret, struct det_error *reterr)
{
    int r;

    r = settings_field(settings, det_datum_get(settings->root, key), name, record, ret, reterr);
    if (r < 0)
        return r;
    if ((*ret)->kind == DET_KIND_TEXT && !((*ret)->flags & DET_FIELD_ARRAY))
        return 0;
    return settings_fail_key(
        settings, key, reterr, "the field '%s' of %s is not a text: name a field of type str", name,
        record->name);
}

int settings_duration(
    const struct settings *settings, const char *key, const char *text, det_time otherwise,
    det_time *ret, struct det_error *reterr)
{
    det_time span = otherwise;

    if (*text && det_parse_duration(det_view_text(text), &span) < 0)
        return settings_fail_key(
            settings, key, reterr, "%s is not a duration: write one such as 500ms, 10s or 1m30s",
            key);
    if (span < 0 || span > DET_DELAY_MAX)
        return settings_fail_key(
            settings, key, reterr, "%s is not between 0s and ten years: use less", key);
    *ret = span;
    return 0;
}

int settings_path(
    const struct settings *settings, const char *key, const char *path, const char *folder,
    char *target, struct det_error *reterr)
{
    int size;

    if (folder && *path != '/' && strcmp(folder, ".") != 0)
        size = snprintf(target, DET_PATH_MAX, "%s/%s", folder, path);
    else
        size = snprintf(target, DET_PATH_MAX, "%s", path);
    if (size < 0 || size >= DET_PATH_MAX)
        return settings_fail_key(
            settings, key, reterr, "%s is too long: a path has at most %d bytes", key,
            DET_PATH_MAX - 1);
    return 0;
}

/* Returns the number of bytes. */
static int read_secret_file(
    const struct settings *settings, const char *path, char *target, struct det_error *reterr)
{
    struct stat status;
    ssize_t size;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (descriptor < 0)
        return settings_fail_key(
            settings, "secret_file", reterr, "%s cannot be opened: %s", path,
            strerrordesc_np(errno));
    if (fstat(descriptor, &status) < 0 || !S_ISREG(status.st_mode) || status.st_mode & 077) {
        (void)close(descriptor);
        return settings_fail_key(
            settings, "secret_file", reterr,
            "%s must be a file that only its owner may read: chmod 600 it", path);
    }
    size = read(descriptor, target, SETTINGS_SECRET_MAX + 1);
    (void)close(descriptor);
    if (size < 0)
        return settings_fail_key(
            settings, "secret_file", reterr, "%s cannot be read: %s", path, strerrordesc_np(errno));
    return (int)size;
}

static int trim_secret(
    const struct settings *settings, char *target, size_t size, struct det_error *reterr)
{
    while (size && (target[size - 1] == '\n' || target[size - 1] == '\r'))
        size--;
    if (size == 0 || size > SETTINGS_SECRET_MAX || memchr(target, 0, size))
        return settings_fail(
            settings, NULL, reterr, "the secret is empty, has a NUL or more than %d bytes",
            SETTINGS_SECRET_MAX);
    target[size] = 0;
    return 0;
}

int settings_secret(
    const struct settings *settings, const char *file, const char *variable, const char *folder,
    char target[SETTINGS_SECRET_MAX + 1], struct det_error *reterr)
{
    char path[DET_PATH_MAX];
    const char *value;
    int r;

    det_assert((*file != 0) != (*variable != 0));
    if (*variable) {
        value = getenv(variable);
        if (!value)
            return settings_fail(
                settings, NULL, reterr, "the environment variable %s is not set", variable);
        if (strlen(value) > SETTINGS_SECRET_MAX)
            return trim_secret(settings, target, 0, reterr);
        memcpy(target, value, strlen(value));
        return trim_secret(settings, target, strlen(value), reterr);
    }
    r = settings_path(settings, "secret_file", file, folder, path, reterr);
    if (r == 0)
        r = read_secret_file(settings, path, target, reterr);
    return r < 0 ? r : trim_secret(settings, target, (size_t)r, reterr);
}

const struct det_record *stage_out(const struct det_stage *stage)
{
    const struct det_record *record = det_record_of(stage->out);

    det_assert(record != NULL);
    return record;
}

const struct det_record *stage_in(const struct det_stage *stage)
{
    const struct det_record *record = det_record_of(stage->in);

    det_assert(record != NULL);
    return record;
}

int settings_refuse(struct det_stage_call *call, const struct det_error *error)
{
    return det_stage_fail(call, error->code, "%s", error->text);
}
