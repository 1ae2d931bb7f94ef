/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document_print.c - prints the documents of a store: header, deltas, current documents,
 * summary. */
#include "inspect/document_print.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"
#include "inspect/document_read.h"
#include "json/writer.h"

/* Bytes of a value for people; JSON lines have all of it. */
#define VALUE_MAX 80

struct dump {
    struct cli *cli;
    bool is_revealed;
    bool is_covered; /* the printed document has secrets */
    uint64_t deltas, documents, workers;
    struct det_buffer last_id; /* of the worker that is printed */
};

/* Values as people read them. */

static void print_value(struct dump *dump, enum cli_style style, const struct det_json_value *value)
{
    struct det_json_writer json;
    const char *text;
    size_t size;

    det_json_writer_init(&json, dump->cli->allocator);
    det_json_copy(&json, NULL, value);
    dump->cli->has_failed |= det_buffer_status(&json.text) < 0;
    text = det_buffer_text(&json.text);
    size = json.text.size;
    if (size <= VALUE_MAX) {
        cli_print_in(dump->cli, style, "%s", text);
    } else {
        /* Cut between two characters. */
        size = VALUE_MAX;
        while (size > 0 && ((unsigned char)text[size] & 0xC0) == 0x80)
            size--;
        cli_print_in(dump->cli, style, "%.*s...", (int)size, text);
    }
    det_json_writer_deinit(&json);
}

static void print_or_cover(
    struct dump *dump, enum cli_style style, struct det_view name,
    const struct det_json_value *value)
{
    if (dump->is_covered && cli_document_is_secret(name))
        cli_print_in(dump->cli, style, "\"" DOCUMENT_REDACTED "\"");
    else
        print_value(dump, style, value);
}

/* A member of an object. */
typedef void print_member_fn(
    struct dump *dump, const char *name, const struct det_json_value *value);

static int compare_names(const void *a, const void *b)
{
    const struct det_json_value *const *first = a, *const *second = b;
    struct det_view one = (*first)->key, other = (*second)->key;
    int order = memcmp(one.data, other.data, one.size < other.size ? one.size : other.size);

    return order ? order : (one.size > other.size) - (one.size < other.size);
}

/* Prints the members of the object in order of their names. */
static void print_members(
    struct dump *dump, const struct det_json_value *object, print_member_fn *print)
{
    size_t count = det_json_is(object, DET_JSON_OBJECT) ? object->count : 0, i = 0;
    const struct det_json_value **members;
    char name[128];

    if (count == 0)
        return;
    members = DET_NEW_ARRAY(dump->cli->allocator, count, const struct det_json_value *);
    if (!members) {
        dump->cli->has_failed = true;
        return;
    }
    DET_JSON_EACH (member, object)
        members[i++] = member;
    det_assert(i == count);
    qsort(members, count, sizeof *members, compare_names);
    for (i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%.*s", (int)members[i]->key.size, members[i]->key.data);
        print(dump, name, members[i]);
    }
    DET_DELETE_ARRAY(dump->cli->allocator, members, count);
}

static void print_added(struct dump *dump, const char *name, const struct det_json_value *value)
{
    cli_print_in(dump->cli, CLI_GREEN, "  + %s: ", name);
    print_or_cover(dump, CLI_GREEN, value->key, value);
    cli_print(dump->cli, "\n");
}

static void print_modified(struct dump *dump, const char *name, const struct det_json_value *value)
{
    cli_print_in(dump->cli, CLI_YELLOW, "  ~ %s: ", name);
    print_or_cover(dump, CLI_YELLOW, value->key, det_json_get(value, "old"));
    cli_print_in(dump->cli, CLI_YELLOW, " -> ");
    print_or_cover(dump, CLI_YELLOW, value->key, det_json_get(value, "new"));
    cli_print(dump->cli, "\n");
}

static void print_removed(struct dump *dump, const char *name, const struct det_json_value *value)
{
    cli_print_in(dump->cli, CLI_RED, "  - %s: ", name);
    print_or_cover(dump, CLI_RED, value->key, value);
    cli_print(dump->cli, "\n");
}

static void print_field(struct dump *dump, const char *name, const struct det_json_value *value)
{
    /* These fields belong to the store. */
    if (*name == '_')
        return;
    cli_print(dump->cli, "      %s: ", name);
    print_or_cover(dump, CLI_PLAIN, value->key, value);
    cli_print(dump->cli, "\n");
}

/* A text that is not an object is shown unchanged, if permitted. */
struct shown {
    const struct det_json_value *object; /* NULL: the text */
    const char *text;
    size_t size;
};

static int read_shown(
    struct dump *dump, struct det_arena *arena, enum det_document_role role, const char *text,
    size_t size, struct shown *ret)
{
    int r;

    dump->is_covered = !cli_document_may_show(role, dump->is_revealed);
    det_assert(!dump->is_covered || !dump->is_revealed);
    *ret = (struct shown){ .text = text, .size = size };
    r = cli_document_parse(arena, text, size, &ret->object);
    if (r == 0 && dump->is_covered) {
        ret->text = DOCUMENT_REDACTED;
        ret->size = strlen(DOCUMENT_REDACTED);
    }
    return r;
}

/* One delta. */

const char *cli_time_of_day(det_time at, char target[CLI_TIME_OF_DAY])
{
    char text[DET_TIME_TEXT];
    det_time rest = at % DET_SECOND;

    rest += rest < 0 ? DET_SECOND : 0;
    det_assert(rest >= 0 && rest < DET_SECOND);
    det_format_time(at - rest, text, sizeof text);
    (void)snprintf(target, CLI_TIME_OF_DAY, "%.8s.%03d", text + 11, (int)(rest / DET_MILLISECOND));
    return target;
}

static void print_delta_object(
    struct dump *dump, const struct det_delta *delta, const struct shown *shown)
{
    struct det_json_writer json;

    cli_json_begin(dump->cli, &json, "delta");
    det_json_number(&json, "sync", delta->sync);
    det_json_time(&json, "at", delta->at);
    det_json_text(&json, "kind", delta->kind);
    det_json_text(&json, "id", delta->id);
    det_json_text(&json, "role", det_document_role_name(delta->role));
    det_json_text(&json, "change", det_document_change_name(delta->change));
    det_json_number(&json, "version", delta->version);
    if (shown->object)
        cli_delta_put(&json, "delta", shown->object, dump->is_covered);
    else
        det_json_bytes(&json, "delta", shown->text, shown->size);
    cli_json_end(dump->cli, &json);
}

static void print_delta_text(
    struct dump *dump, const struct det_delta *delta, const struct shown *shown)
{
    char at[CLI_TIME_OF_DAY];

    cli_print_in(
        dump->cli, CLI_BOLD, "[%llu] %s | %s/%s | %s", (unsigned long long)delta->sync,
        cli_time_of_day(delta->at, at), delta->kind, delta->id,
        det_document_role_name(delta->role));
    cli_print_in(
        dump->cli, CLI_FAINT, " %s, version %llu\n", det_document_change_name(delta->change),
        (unsigned long long)delta->version);
    if (shown->object) {
        print_members(dump, det_json_get(shown->object, "added"), print_added);
        print_members(dump, det_json_get(shown->object, "modified"), print_modified);
        print_members(dump, det_json_get(shown->object, "removed"), print_removed);
    } else {
        cli_print(dump->cli, "  %.*s\n", (int)shown->size, shown->text);
    }
}

static int print_delta(void *context, const struct det_delta *delta)
{
    struct dump *dump = context;
    struct det_arena arena;
    struct shown shown;
    int r;

    det_arena_init(&arena, dump->cli->allocator);
    r = read_shown(dump, &arena, delta->role, delta->text, delta->size, &shown);
    dump->deltas++;
    if (r == 0 && dump->cli->is_json)
        print_delta_object(dump, delta, &shown);
    else if (r == 0)
        print_delta_text(dump, delta, &shown);
    det_arena_deinit(&arena);
    return r == 0 && cli_is_stopped(dump->cli) ? DET_ERR_CANCELLED : r;
}

/* One document. */

static void print_document_object(
    struct dump *dump, const struct det_document *document, const struct shown *shown)
{
    struct det_json_writer json;

    cli_json_begin(dump->cli, &json, "document");
    det_json_text(&json, "kind", document->kind);
    det_json_text(&json, "id", document->id);
    det_json_text(&json, "role", det_document_role_name(document->role));
    det_json_number(&json, "sync", document->sync);
    det_json_number(&json, "version", document->version);
    det_json_time(&json, "created_at", document->created_at);
    det_json_time(&json, "updated_at", document->updated_at);
    if (shown->object)
        cli_document_put(&json, "document", shown->object, dump->is_covered);
    else
        det_json_bytes(&json, "document", shown->text, shown->size);
    cli_json_end(dump->cli, &json);
}

static bool has_fields(const struct det_json_value *object)
{
    DET_JSON_EACH (member, object) {
        if (!member->key.size || *member->key.data != '_')
            return true;
    }
    return false;
}

static void print_document_text(
    struct dump *dump, const struct det_document *document, const struct shown *shown)
{
    const struct det_json_value *object = shown->object;

    cli_print_in(dump->cli, CLI_BLUE, "    %s", det_document_role_name(document->role));
    cli_print_in(
        dump->cli, CLI_FAINT, " version %llu, sync %llu", (unsigned long long)document->version,
        (unsigned long long)document->sync);
    if (!object)
        cli_print(dump->cli, "\n      %.*s\n", (int)shown->size, shown->text);
    else if (object->count == 0)
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
    det_assert(dump->workers == 0 || dump->last_id.size > 0);
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
    struct det_arena arena;
    struct shown shown;
    int r;

    begin_worker(dump, document);
    r = det_buffer_status(&dump->last_id);
    if (r < 0)
        return r;
    det_arena_init(&arena, dump->cli->allocator);
    r = read_shown(dump, &arena, document->role, document->text, document->size, &shown);
    dump->documents++;
    if (r == 0 && dump->cli->is_json)
        print_document_object(dump, document, &shown);
    else if (r == 0)
        print_document_text(dump, document, &shown);
    det_arena_deinit(&arena);
    return r == 0 && cli_is_stopped(dump->cli) ? DET_ERR_CANCELLED : r;
}

/* The whole. */

static void print_summary(struct dump *dump, const struct det_document_position *position)
{
    struct det_json_writer json;

    det_assert(dump->workers <= dump->documents);
    if (dump->cli->is_json) {
        cli_json_begin(dump->cli, &json, "dump");
        det_json_number(&json, "sync_oldest", position->oldest);
        det_json_number(&json, "sync_latest", position->latest);
        det_json_number(&json, "deltas", dump->deltas);
        det_json_number(&json, "documents", dump->documents);
        det_json_number(&json, "workers", dump->workers);
        cli_json_end(dump->cli, &json);
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
            dump->cli, CLI_BOLD, "Deltas: none stored; the latest sync id is %llu\n",
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
