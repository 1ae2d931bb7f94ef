/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document_print.c - prints the documents of a store: header, deltas, what there is, summary. */
#include "inspect/document_print.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"
#include "inspect/document_read.h"
#include "json/writer.h"

/* Of a value for people; JSON lines have all of it. */
#define VALUE_MAX 80

struct dump {
    struct cli *cli;
    bool is_revealed;
    uint64_t deltas, documents, workers;
    struct det_buffer last_id; /* of the worker that is printed */
};

/* Values as people read them. */

static void print_value(struct dump *dump, enum cli_style style, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
    size_t size;

    if (!text) {
        dump->cli->has_failed = true;
        return;
    }
    size = strlen(text);
    if (size <= VALUE_MAX) {
        cli_print_in(dump->cli, style, "%s", text);
    } else {
        /* Not in the middle of a character. */
        size = VALUE_MAX;
        while (size > 0 && ((unsigned char)text[size] & 0xC0) == 0x80)
            size--;
        cli_print_in(dump->cli, style, "%.*s...", (int)size, text);
    }
    free(text);
}

/* A member of each object of the text, its names in order. */
typedef void print_member_fn(struct dump *dump, const char *name, const json_t *value);

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void print_members(struct dump *dump, json_t *object, print_member_fn *print)
{
    size_t count = json_object_size(object), i = 0;
    const char **names, *name;
    json_t *value;

    if (count == 0)
        return;
    names = det_alloc(dump->cli->allocator, count * sizeof *names);
    if (!names) {
        dump->cli->has_failed = true;
        return;
    }
    json_object_foreach(object, name, value) names[i++] = name;
    qsort(names, count, sizeof *names, compare_names);
    for (i = 0; i < count; i++)
        print(dump, names[i], json_object_get(object, names[i]));
    det_free(dump->cli->allocator, names, count * sizeof *names);
}

static void print_added(struct dump *dump, const char *name, const json_t *value)
{
    cli_print_in(dump->cli, CLI_GREEN, "  + %s: ", name);
    print_value(dump, CLI_GREEN, value);
    cli_print(dump->cli, "\n");
}

static void print_modified(struct dump *dump, const char *name, const json_t *value)
{
    cli_print_in(dump->cli, CLI_YELLOW, "  ~ %s: ", name);
    print_value(dump, CLI_YELLOW, json_object_get(value, "old"));
    cli_print_in(dump->cli, CLI_YELLOW, " -> ");
    print_value(dump, CLI_YELLOW, json_object_get(value, "new"));
    cli_print(dump->cli, "\n");
}

static void print_removed(struct dump *dump, const char *name, const json_t *value)
{
    cli_print_in(dump->cli, CLI_RED, "  - %s: ", name);
    print_value(dump, CLI_RED, value);
    cli_print(dump->cli, "\n");
}

static void print_field(struct dump *dump, const char *name, const json_t *value)
{
    /* What begins so is the store's own. */
    if (*name == '_')
        return;
    cli_print(dump->cli, "      %s: ", name);
    print_value(dump, CLI_PLAIN, value);
    cli_print(dump->cli, "\n");
}

/* What is no JSON that can be shown by members is shown as it is, if it may be. */
struct shown {
    json_t *object; /* NULL: the text */
    const char *text;
    size_t size;
};

static struct shown shown_text(json_t *object, bool may_show, const char *text, size_t size)
{
    if (may_show)
        return (struct shown){ object, text, size };
    return (struct shown){ object, DOCUMENT_REDACTED, strlen(DOCUMENT_REDACTED) };
}

/* One delta. */

const char *cli_time_of_day(det_time at, char target[CLI_TIME_OF_DAY])
{
    char text[DET_TIME_TEXT];
    det_time rest = at % DET_SECOND;

    rest += rest < 0 ? DET_SECOND : 0;
    det_format_time(at - rest, text, sizeof text);
    (void)snprintf(target, CLI_TIME_OF_DAY, "%.8s.%03d", text + 11, (int)(rest / DET_MILLISECOND));
    return target;
}

static void print_delta_object(
    struct dump *dump, const struct det_delta *delta, const struct shown *shown)
{
    char at[DET_TIME_TEXT];

    det_format_time(delta->at, at, sizeof at);
    cli_json(
        dump->cli,
        json_pack(
            "{s:s, s:I, s:s, s:s, s:o, s:s, s:s, s:I, s:o}", "type", "delta", "sync",
            (json_int_t)delta->sync, "at", at, "kind", delta->kind, "id", cli_json_text(delta->id),
            "role", det_document_role_name(delta->role), "change",
            det_document_change_name(delta->change), "version", (json_int_t)delta->version, "delta",
            shown->object ? json_incref(shown->object)
                          : cli_json_text_n(shown->text, shown->size)));
}

static int print_delta(void *context, const struct det_delta *delta)
{
    struct dump *dump = context;
    bool may_show;
    json_t *change = cli_delta_read(delta, dump->is_revealed, &may_show);
    struct shown shown = shown_text(change, may_show, delta->text, delta->size);
    char at[CLI_TIME_OF_DAY];

    dump->deltas++;
    if (dump->cli->is_json) {
        print_delta_object(dump, delta, &shown);
    } else {
        cli_print_in(
            dump->cli, CLI_BOLD, "[%llu] %s | %s/%s | %s", (unsigned long long)delta->sync,
            cli_time_of_day(delta->at, at), delta->kind, delta->id,
            det_document_role_name(delta->role));
        cli_print_in(
            dump->cli, CLI_FAINT, " %s, version %llu\n", det_document_change_name(delta->change),
            (unsigned long long)delta->version);
        if (change) {
            print_members(dump, json_object_get(change, "added"), print_added);
            print_members(dump, json_object_get(change, "modified"), print_modified);
            print_members(dump, json_object_get(change, "removed"), print_removed);
        } else {
            cli_print(dump->cli, "  %.*s\n", (int)shown.size, shown.text);
        }
    }
    json_decref(change);
    return cli_is_stopped(dump->cli) ? DET_ERR_CANCELLED : 0;
}

/* One document. */

static void print_document_object(
    struct dump *dump, const struct det_document *document, const struct shown *shown)
{
    char created[DET_TIME_TEXT], updated[DET_TIME_TEXT];

    det_format_time(document->created_at, created, sizeof created);
    det_format_time(document->updated_at, updated, sizeof updated);
    cli_json(
        dump->cli,
        json_pack(
            "{s:s, s:s, s:o, s:s, s:I, s:I, s:s, s:s, s:o}", "type", "document", "kind",
            document->kind, "id", cli_json_text(document->id), "role",
            det_document_role_name(document->role), "sync", (json_int_t)document->sync, "version",
            (json_int_t)document->version, "created_at", created, "updated_at", updated, "document",
            shown->object ? json_incref(shown->object)
                          : cli_json_text_n(shown->text, shown->size)));
}

static bool has_fields(json_t *object)
{
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value)
    {
        if (*name != '_')
            return true;
    }
    return false;
}

static void print_document_text(
    struct dump *dump, const struct det_document *document, const struct shown *shown)
{
    json_t *object = shown->object;

    cli_print_in(dump->cli, CLI_BLUE, "    %s", det_document_role_name(document->role));
    cli_print_in(
        dump->cli, CLI_FAINT, " version %llu, sync %llu", (unsigned long long)document->version,
        (unsigned long long)document->sync);
    if (!object)
        cli_print(dump->cli, "\n      %.*s\n", (int)shown->size, shown->text);
    else if (json_object_size(object) == 0)
        cli_print(dump->cli, " (empty)\n");
    else if (!has_fields(object))
        cli_print(dump->cli, " (only fields of the store)\n");
    else
        cli_print(dump->cli, "\n");
    if (object)
        print_members(dump, object, print_field);
}

static void begin_worker(struct dump *dump, const struct det_document *document)
{
    if (dump->workers > 0 && strcmp(dump->last_id.data, document->id) == 0)
        return;
    dump->workers++;
    det_buffer_clear(&dump->last_id);
    det_buffer_append_text(&dump->last_id, document->id);
    det_buffer_append_char(&dump->last_id, '\0');
    if (!dump->cli->is_json)
        cli_print_in(dump->cli, CLI_BOLD, "  %s (%s)\n", document->id, document->kind);
}

static int print_document(void *context, const struct det_document *document)
{
    struct dump *dump = context;
    bool may_show;
    json_t *object = cli_document_read(document, dump->is_revealed, &may_show);
    struct shown shown = shown_text(object, may_show, document->text, document->size);

    begin_worker(dump, document);
    if (det_buffer_status(&dump->last_id) < 0) {
        json_decref(object);
        return DET_ERR_NO_MEMORY;
    }
    dump->documents++;
    if (dump->cli->is_json)
        print_document_object(dump, document, &shown);
    else
        print_document_text(dump, document, &shown);
    json_decref(object);
    return cli_is_stopped(dump->cli) ? DET_ERR_CANCELLED : 0;
}

/* The whole. */

static void print_summary(struct dump *dump, const struct det_document_position *position)
{
    if (dump->cli->is_json) {
        cli_json(
            dump->cli,
            json_pack(
                "{s:s, s:I, s:I, s:I, s:I, s:I}", "type", "dump", "sync_oldest",
                (json_int_t)position->oldest, "sync_latest", (json_int_t)position->latest, "deltas",
                (json_int_t)dump->deltas, "documents", (json_int_t)dump->documents, "workers",
                (json_int_t)dump->workers));
        return;
    }
    cli_print(
        dump->cli, "%llu delta%s, %llu document%s of %llu worker%s\n",
        (unsigned long long)dump->deltas, det_plural(dump->deltas),
        (unsigned long long)dump->documents, det_plural(dump->documents),
        (unsigned long long)dump->workers, det_plural(dump->workers));
}

static int print_all(
    struct dump *dump, struct det_store *store, const struct det_document_query *query)
{
    struct det_document_position position = { 0 };
    int r;

    r = det_store_documents_position(store, &position);
    if (r < 0)
        return r;
    if (!dump->cli->is_json && position.oldest > position.latest)
        cli_print_in(
            dump->cli, CLI_BOLD, "Deltas: none is kept; the latest sync id is %llu\n",
            (unsigned long long)position.latest);
    else if (!dump->cli->is_json)
        cli_print_in(
            dump->cli, CLI_BOLD, "Deltas: sync ids %llu to %llu\n",
            (unsigned long long)position.oldest, (unsigned long long)position.latest);
    r = det_store_documents_deltas(store, query, print_delta, dump, NULL);
    if (r < 0)
        return r;
    if (!dump->cli->is_json)
        cli_print_in(dump->cli, CLI_BOLD, "\nDocuments\n");
    r = det_store_documents_list(store, query, print_document, dump, NULL);
    if (r < 0)
        return r;
    if (!dump->cli->is_json)
        cli_print(dump->cli, "\n");
    print_summary(dump, &position);
    return 0;
}

int cli_dump_print(
    struct cli *cli, struct det_store *store, const struct det_document_query *query,
    bool is_revealed)
{
    struct det_document_query all = { 0 };
    struct dump dump = { .cli = cli, .is_revealed = is_revealed };
    int r;

    det_buffer_init(&dump.last_id, cli->allocator);
    r = print_all(&dump, store, query ? query : &all);
    det_buffer_deinit(&dump.last_id);
    return r;
}
