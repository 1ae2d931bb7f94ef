/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* import_store.c - `detent store import`: reads an export twice: to check it, and to import it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "terminal/input.h"
#include "transfer/export.h"
#include "transfer/hash_chain.h"
#include "transfer/import.h"

#define LINE_MAX_BYTES 67108864

enum kind {
    KIND_STORE,
    KIND_DEFINITION,
    KIND_INSTANCE,
    KIND_EVENT,
    KIND_JOB,
    KIND_SCHEDULE,
    KIND_DOCUMENT,
    KIND_END,
    KIND_COUNT,
};

struct importing {
    struct cli_store *store;
    const char *path;
    FILE *file;
    char *line; /* getline()'s */
    size_t capacity;
    struct det_view text; /* of the line, without its newline */
    uint64_t number;      /* of the line */
    uint64_t total;       /* lines */
    struct seal seal;
    struct det_arena arena; /* of the line, as far as it is not an instance's */
    struct import import;
    uint64_t counts[KIND_COUNT]; /* of the lines that were seen */
    uint64_t damaged;            /* instances that the export left out */
};

/* Returns KIND_COUNT for an unknown kind. */
static enum kind kind_of(struct det_json_object *members)
{
    static const char *const names[KIND_COUNT] = { "store", "definition", "instance", "event",
                                                   "job",   "schedule",   "document", "end" };
    const char *name = det_json_object_text(members, "kind");
    unsigned kind = 0;

    while (kind < KIND_COUNT && strcmp(names[kind], name) != 0)
        kind++;
    return (enum kind)kind;
}

static int report_line(struct importing *importing, const char *text)
{
    cli_report_error(
        importing->store->cli, "%s:%llu: %s", importing->path,
        (unsigned long long)importing->number, text);
    return CLI_USAGE;
}

/* 1: a line; 0: the end; -1: an error, which was reported. */
static int next_line(struct importing *importing)
{
    ssize_t size;

    errno = 0;
    size = getline(&importing->line, &importing->capacity, importing->file);
    if (size < 0 && ferror(importing->file)) {
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
        cli_report_error(importing->store->cli, "%s: %s", importing->path, strerror(errno));
        return -1;
    }
    if (size < 0)
        return 0;
    importing->number++;
    if (importing->line[size - 1] == '\n')
        size--;
    if (size > LINE_MAX_BYTES) {
        (void)report_line(importing, "the line is too long");
        return -1;
    }
    importing->text = det_view_of(importing->line, (size_t)size);
    det_assert(importing->text.size < importing->capacity);
    return 1;
}

static void rewind_file(struct importing *importing)
{
    rewind(importing->file);
    importing->number = 0;
}

/* The first reading. */

/* Exports of programs without jobs do not have all. */
static uint64_t number_or_0(struct det_json_object *members, const char *key)
{
    return det_json_object_find(members, key) ? det_json_object_number(members, key) : 0;
}

static int validate_head(struct importing *importing, struct det_json_object *members)
{
    uint64_t format = det_json_object_number(members, "format");
    const char *program = det_json_object_text(members, "program");
    char text[256];

    if (format == 0)
        return report_line(importing, "this is not an export of a store");
    if (format <= EXPORT_FORMAT)
        return CLI_OK;
    snprintf(
        text, sizeof text,
        "the export is of format %llu, and this program reads those up to %d; import it with the "
        "program that wrote it%s%.32s, or a newer one",
        (unsigned long long)format, EXPORT_FORMAT, *program ? ", detent " : "", program);
    return report_line(importing, text);
}

static int validate_end(struct importing *importing, struct det_json_object *members)
{
    const uint64_t *counts = importing->counts;

    importing->damaged = number_or_0(members, "damaged");
    if (det_json_object_number(members, "instances") != counts[KIND_INSTANCE] ||
        det_json_object_number(members, "events") != counts[KIND_EVENT] ||
        number_or_0(members, "jobs") != counts[KIND_JOB] ||
        number_or_0(members, "schedules") != counts[KIND_SCHEDULE] ||
        number_or_0(members, "documents") != counts[KIND_DOCUMENT])
        return report_line(importing, "the number of lines differs from the count at the end");
    return CLI_OK;
}

static int validate_members(struct importing *importing, struct det_json_object *members)
{
    enum kind kind = kind_of(members);

    if (members->has_failed)
        return cli_no_memory(importing->store->cli);
    if (!importing->counts[KIND_STORE] && kind != KIND_STORE)
        return report_line(importing, "this is not an export of a store");
    if (importing->counts[KIND_END])
        return report_line(importing, "data after the end");
    /* Skipping unknown lines would lose them silently. */
    if (kind == KIND_COUNT || (kind == KIND_STORE && importing->counts[KIND_STORE]))
        return report_line(importing, "unknown kind of line in an export; nothing was imported");
    det_assert(kind < KIND_COUNT && importing->number > 0);
    importing->counts[kind]++;
    if (kind == KIND_STORE)
        return validate_head(importing, members);
    return kind == KIND_END ? validate_end(importing, members) : CLI_OK;
}

static void forget_line(struct importing *importing)
{
    det_arena_deinit(&importing->arena);
    det_arena_init(&importing->arena, importing->store->cli->allocator);
}

static int validate_line(struct importing *importing)
{
    struct det_error error = { 0 };
    struct det_json_object members;
    bool is_sealed = seal_check(&importing->seal, importing->text.data, importing->text.size);
    int code, r;

    r = det_json_object_read(&members, &importing->arena, importing->text, &error);
    if (r == DET_ERR_NO_MEMORY)
        return cli_no_memory(importing->store->cli);
    if (r < 0 && !importing->counts[KIND_STORE])
        return report_line(importing, "this is not an export of a store");
    if (r < 0)
        return report_line(importing, error.text);
    code = validate_members(importing, &members);
    if (code == CLI_OK && !is_sealed)
        code = report_line(
            importing,
            "the hash chain is broken: this line, or one before it, was changed, or lines are "
            "missing; nothing was imported");
    if (code == CLI_OK && members.has_failed)
        code = cli_no_memory(importing->store->cli);
    forget_line(importing);
    return code;
}

static int validate_export(struct importing *importing)
{
    int code = CLI_OK, r = 1;

    while (code == CLI_OK && (r = next_line(importing)) > 0)
        code = cli_is_stopped(importing->store->cli) ? CLI_INTERRUPTED : validate_line(importing);
    importing->total = importing->number;
    if (code != CLI_OK || r < 0)
        return r < 0 ? CLI_FAILURE : code;
    if (importing->counts[KIND_END])
        return CLI_OK;
    importing->number++;
    return report_line(
        importing, importing->counts[KIND_STORE]
                       ? "the end is missing: the file was cut off; nothing was imported"
                       : "this is not an export of a store");
}

/* The second reading. */

static int take_definition(struct importing *importing, struct det_json_object *members)
{
    const char *name = det_json_object_text(members, "machine"),
               *text = det_json_object_text(members, "spec");

    if (members->has_failed)
        return cli_no_memory(importing->store->cli);
    return cli_store_define(importing->store, name, text, &importing->import.machine);
}

/* Instances before the conflicting one are imported. */
static int report_conflict(struct importing *importing)
{
    struct cli_store *store = importing->store;
    struct import *import = &importing->import;
    int r;

    det_assert(import->current == import->group[import->group_count - 1]);
    cli_report_error(
        store->cli, "%s:%llu: %s '%s' %s; it stays unchanged, and the rest was not imported",
        importing->path, (unsigned long long)importing->number, import->machine->name,
        import->current->id, import->wrong);
    import->current->is_passed = true;
    import->current = NULL;
    r = import_flush(import);
    return r < 0 ? cli_report_store_error(store, r, NULL) : CLI_CONFLICT;
}

static int report_instance(struct importing *importing, int r)
{
    const struct import *import = &importing->import;

    if (r == DET_ERR_MALFORMED)
        return report_line(importing, import->wrong);
    if (r == DET_ERR_EXISTS && import->current)
        return report_conflict(importing);
    return cli_report_store_error(importing->store, r, NULL);
}

/* The objects that they refer to are written first. */
static int take_alone(
    struct importing *importing, struct det_json_object *members,
    int (*take)(struct import *import, struct det_json_object *members), bool is_kept)
{
    struct import *import = &importing->import;
    int r = 0;

    if (!is_kept) {
        cli_report_error(
            importing->store->cli, "%s: this kind of store keeps no %s", importing->store->url,
            take == import_document ? "documents" : "jobs");
        return CLI_USAGE;
    }
    if (import->group_count)
        r = import_flush(import);
    if (r == 0)
        r = take(import, members);
    return r < 0 ? report_instance(importing, r) : CLI_OK;
}

static int take_line(struct importing *importing, struct det_json_object *members)
{
    const struct det_store_ops *ops = importing->store->ops;
    enum kind kind = kind_of(members);
    struct import *import = &importing->import;
    int r = 0;

    if (members->has_failed)
        return cli_no_memory(importing->store->cli);
    if (kind == KIND_STORE)
        import_head(import, members);
    else if (kind == KIND_EVENT)
        r = import->machine ? import_event(import, importing->text) : DET_ERR_MALFORMED;
    else
        r = import_finish(import);
    if (r == 0 && kind == KIND_INSTANCE)
        r = import->machine ? import_instance(import, importing->text) : DET_ERR_MALFORMED;
    if (r < 0)
        return report_instance(importing, r);
    if (kind == KIND_JOB)
        return take_alone(importing, members, import_job, ops->jobs);
    if (kind == KIND_SCHEDULE)
        return take_alone(importing, members, import_schedule, ops->jobs);
    if (kind == KIND_DOCUMENT)
        return take_alone(importing, members, import_document, ops->documents);
    return kind == KIND_DEFINITION ? take_definition(importing, members) : CLI_OK;
}

static int finish_import(struct importing *importing)
{
    int r = import_flush(&importing->import);

    return r < 0 ? report_instance(importing, r) : CLI_OK;
}

static int take_export(struct importing *importing)
{
    struct cli *cli = importing->store->cli;
    int code = CLI_OK, r = 1;

    rewind_file(importing);
    while (code == CLI_OK && (r = next_line(importing)) > 0) {
        struct det_json_object members;

        cli_progress(cli, "importing", importing->number, importing->total);
        if (cli_is_stopped(cli))
            return CLI_INTERRUPTED;
        r = det_json_object_read(&members, &importing->arena, importing->text, NULL);
        code = r < 0 ? cli_no_memory(cli) : take_line(importing, &members);
        forget_line(importing);
    }
    if (code == CLI_OK && r == 0)
        code = finish_import(importing);
    cli_progress_end(cli);
    return r < 0 && code == CLI_OK ? CLI_FAILURE : code;
}

static void report_counts(const struct importing *importing)
{
    const struct import *import = &importing->import;
    struct cli *cli = importing->store->cli;

    cli_print_error(
        cli, "%llu instance%s and %llu event%s imported\n", STORE_COUNT(import->instances),
        STORE_COUNT(import->events));
    if (import->passed)
        cli_print_error(cli, "%llu instance%s already existed\n", STORE_COUNT(import->passed));
    if (import->jobs + import->schedules + import->passed_jobs)
        cli_print_error(
            cli, "%llu job%s and %llu schedule%s imported\n", STORE_COUNT(import->jobs),
            STORE_COUNT(import->schedules));
    if (import->passed_jobs)
        cli_print_error(
            cli, "%llu of the jobs and schedules already existed\n",
            (unsigned long long)import->passed_jobs);
    if (import->documents + import->passed_documents)
        cli_print_error(cli, "%llu document%s imported\n", STORE_COUNT(import->documents));
    if (import->passed_documents)
        cli_print_error(
            cli, "%llu document%s already existed\n", STORE_COUNT(import->passed_documents));
    if (importing->damaged)
        cli_print_error(
            cli, "%llu damaged instance%s not in the export\n",
            (unsigned long long)importing->damaged, importing->damaged == 1 ? " is" : "s are");
}

static int import_file(struct importing *importing, bool is_taken)
{
    int code;

    import_init(&importing->import, importing->store);
    det_arena_init(&importing->arena, importing->store->cli->allocator);
    code = validate_export(importing);
    if (code == CLI_OK && is_taken) {
        code = take_export(importing);
        if (code == CLI_OK)
            report_counts(importing);
    }
    det_arena_deinit(&importing->arena);
    import_deinit(&importing->import);
    free(importing->line);
    return code;
}

static int read_file(struct cli_store *store, const char *path, bool is_taken)
{
    struct importing *importing;
    int code;

    if (!cli_is_there(path) || cli_is_folder(path)) {
        cli_report_error(store->cli, "%s: there is no such file", path);
        return CLI_NOT_FOUND;
    }
    importing = DET_NEW(store->cli->allocator, struct importing);
    if (!importing)
        return cli_no_memory(store->cli);
    importing->store = store;
    importing->path = path;
    importing->file = fopen(path, "r");
    if (importing->file) {
        code = import_file(importing, is_taken);
        fclose(importing->file);
    } else {
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
        cli_report_error(store->cli, "%s: %s", path, strerror(errno));
        code = CLI_FAILURE;
    }
    DET_DELETE(store->cli->allocator, importing);
    return code;
}

int store_import(struct cli_store *store, const char *path)
{
    return read_file(store, path, true);
}

int store_import_validate(struct cli_store *store, const char *path)
{
    return read_file(store, path, false);
}
