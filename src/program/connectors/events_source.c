/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* events_source.c - the log of a store of machines as rows: starts and events of instances.
 *
 * Fields of the output get the members of a row with their names: position, machine, id, sequence,
 * version, visit, at, from, to, event, outcome, event_id, cause, is_start, is_timeout, and payload,
 * a nested record. The store is opened for reading; a program that writes it is not disturbed.
 *
 * The store is asked in pages of at most the rows that have room. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <detent/store.h>
#include <detent/tool/store.h>

#include "base/assert.h"
#include "base/memory.h"
#include "connectors/connectors.h"
#include "connectors/file_watch.h"
#include "connectors/row_text.h"
#include "connectors/settings.h"
#include "os/os.h"
#include "record/field_value.h"

#define REC_SPEC "connectors/events_source.rec"
#include <detent/rec/declare.h>

#define ROWS_MAX 1000 /* of one page */
#define EVERY    DET_SECOND
#define TIMEOUT  (5 * DET_SECOND)

/* The members of a row, by the kind of their fields. */
static const struct {
    const char *name;
    enum det_kind kind;
    size_t offset; /* in struct det_store_logged */
    size_t size;   /* of a number */
} members[] = {
#define NUMBER(name, kind, member)                                  \
    {                                                               \
        name, kind, offsetof(struct det_store_logged, member),      \
            sizeof(((const struct det_store_logged *)NULL)->member) \
    }
#define TEXT(name)                                                       \
    {                                                                    \
#name, DET_KIND_TEXT, offsetof(struct det_store_logged, name), 0 \
    }
    NUMBER("position", DET_KIND_UNSIGNED, position),
    NUMBER("sequence", DET_KIND_UNSIGNED, sequence),
    NUMBER("version", DET_KIND_UNSIGNED, version),
    NUMBER("visit", DET_KIND_UNSIGNED, visit),
    NUMBER("at", DET_KIND_TIME, at),
    NUMBER("is_start", DET_KIND_BOOL, is_start),
    NUMBER("is_timeout", DET_KIND_BOOL, is_timeout),
    TEXT(machine),
    TEXT(id),
    TEXT(from),
    TEXT(to),
    TEXT(event),
    TEXT(outcome),
    TEXT(event_id),
    TEXT(cause),
    { "payload", DET_KIND_RECORD, 0, 0 },
#undef NUMBER
#undef TEXT
};
#define MEMBERS (sizeof members / sizeof *members)

struct events {
    struct events_settings settings;
    const struct det_allocator *allocator;
    const struct det_record *record;
    char url[DET_PATH_MAX + 16];
    const struct det_field *fields[MEMBERS]; /* NULL: the record has none */
    det_time every, timeout;
    struct det_store *store;
    struct file_watch *watch; /* of a file */
    void *row;
};

/* What a visit of a page needs. */
struct page {
    struct det_stage_call *call;
    struct events *events;
    struct events_cursor *cursor;
    uint64_t rows;
};

static int bind_fields(
    struct events *events, const struct settings *settings, struct det_error *reterr)
{
    const struct det_record *record = events->record;
    int r;

    for (size_t i = 0; i < MEMBERS; i++) {
        const struct det_field *field = det_record_field(record, members[i].name);

        if (field && (field->kind != members[i].kind || field->flags & DET_FIELD_ARRAY))
            return settings_fail(
                settings, NULL, reterr,
                "the field '%s' of %s has another type than that of the log", field->name,
                record->name);
        events->fields[i] = field;
    }
    for (size_t i = 0; i < record->field_count; i++) {
        size_t member = 0;

        while (member < MEMBERS && events->fields[member] != &record->fields[i])
            member++;
        if (member < MEMBERS || record->fields[i].flags & (DET_FIELD_OPTIONAL | DET_FIELD_ARRAY))
            continue;
        r = settings_fail(
            settings, NULL, reterr,
            "the log has no member for the field '%s' of %s: use position, machine, id, sequence, "
            "at, from, to, event, outcome, payload, ..., or make it OPTIONAL",
            record->fields[i].name, record->name);
        return r;
    }
    return 0;
}

/* The path of a file in a URL is relative to the folder, too. */
static int read_url(
    struct events *events, const struct settings *settings, const char *folder,
    struct det_error *reterr)
{
    static const char file[] = "sqlite:";
    const char *url = events->settings.url;
    char path[DET_PATH_MAX];
    int r;

    if (*events->settings.url_environment) {
        if (*url)
            return settings_fail_key(
                settings, "url", reterr, "set url or url_environment, not both");
        url = getenv(events->settings.url_environment);
        if (!url)
            return settings_fail_key(
                settings, "url_environment", reterr, "the environment variable %s is not set",
                events->settings.url_environment);
    }
    r = settings_need(settings, "url", url, "{url: \"sqlite:orders.db\"}", reterr);
    if (r < 0)
        return r;
    if (strncmp(url, file, sizeof file - 1) == 0) {
        r = settings_path(settings, "url", url + sizeof file - 1, folder, path, reterr);
        if (r == 0)
            (void)snprintf(events->url, sizeof events->url, "%s%s", file, path);
        return r;
    }
    if (strncmp(url, "postgres", 8) != 0 || !det_text_copy(events->url, sizeof events->url, url))
        return settings_fail_key(
            settings, "url", reterr, "url must be sqlite:FILE or postgres://HOST/DATABASE");
    return 0;
}

static int read_settings(
    struct events *events, const struct det_stage *stage, const struct det_allocator *allocator,
    const char *folder, struct det_error *reterr)
{
    struct settings settings;
    int r;

    events->allocator = allocator;
    events->record = stage_out(stage);
    r = settings_open(
        &settings, stage, allocator, events_settings_record(), &events->settings, NULL, reterr);
    if (r < 0)
        return r;
    r = read_url(events, &settings, folder, reterr);
    if (r == 0)
        r = settings_duration(
            &settings, "every", events->settings.every, EVERY, &events->every, reterr);
    if (r == 0)
        r = settings_duration(
            &settings, "timeout", events->settings.timeout, TIMEOUT, &events->timeout, reterr);
    if (r == 0)
        r = bind_fields(events, &settings, reterr);
    settings_close(&settings);
    return r;
}

static void free_events(struct events *events)
{
    det_store_close(events->store);
    file_watch_close(events->watch);
    if (events->row)
        det_free(events->allocator, events->row, events->record->size);
    explicit_bzero(events->url, sizeof events->url);
    DET_DELETE(events->allocator, events);
}

static int events_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    struct events *events = DET_NEW(NULL, struct events);
    int r;

    if (!events)
        return DET_ERR_NO_MEMORY;
    r = read_settings(events, stage, NULL, folder, reterr);
    free_events(events);
    return r;
}

static int open_store(struct events *events, struct det_stage_call *call, struct det_error *reterr)
{
    struct det_store_options options = { .world = call->world,
                                         .allocator = call->allocator,
                                         .is_read_only = true,
                                         .must_exist = true,
                                         .timeout = events->timeout };
    char folder[DET_PATH_MAX];
    int r;

    events->row = det_alloc_zero(call->allocator, events->record->size);
    if (!events->row)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "no memory for a row");
    r = det_store_open_with(events->url, &options, &events->store, reterr);
    if (r < 0 || events->settings.once || strncmp(events->url, "sqlite:", 7) != 0)
        return r;
    r = file_watch_open(call, &events->watch);
    if (r == 0)
        r = det_file_folder(events->url + 7, folder);
    if (r < 0)
        return det_error_set(reterr, r, "the store cannot be watched: %s", det_error_text(r));
    file_watch_folder(events->watch, folder);
    return 0;
}

static int events_open(struct det_stage_call *call)
{
    struct events *events = DET_NEW(call->allocator, struct events);
    struct det_error error = { 0 };
    int r;

    if (!events)
        return DET_ERR_NO_MEMORY;
    r = read_settings(events, call->stage, call->allocator, call->folder, &error);
    if (r == 0)
        r = open_store(events, call, &error);
    if (r < 0) {
        free_events(events);
        error.code = r;
        return settings_refuse(call, &error);
    }
    call->self = events;
    return 0;
}

static void events_close(struct det_stage_call *call)
{
    free_events(call->self);
}

/* ---- rows */

static const char *text_of(size_t member, const struct det_store_logged *row)
{
    const char *text;

    memcpy(&text, (const char *)row + members[member].offset, sizeof text);
    return text ? text : "";
}

static uint64_t number_of(size_t member, const struct det_store_logged *row)
{
    const char *place = (const char *)row + members[member].offset;
    uint64_t number = 0;
    uint32_t four;

    if (members[member].size == sizeof number)
        memcpy(&number, place, sizeof number);
    else if (members[member].size == sizeof four) {
        memcpy(&four, place, sizeof four);
        number = four;
    } else
        number = *(const uint8_t *)place;
    return number;
}

static const char *set_payload(
    const struct events *events, const struct det_field *field, const struct det_store_logged *row)
{
    uint8_t *value = (uint8_t *)events->row + field->offset;
    struct det_error error;

    det_field_set_count(field, events->row, row->payload != NULL);
    memset(value, 0, field->size);
    if (row->payload &&
        det_record_decode(
            det_record_of(field->record), row->payload, row->payload_size, value, &error) < 0)
        return "is another record; select one event";
    return NULL;
}

/* Returns NULL, or why not. */
static const char *set_member(
    const struct events *events, size_t member, const struct det_store_logged *row)
{
    const struct det_field *field = events->fields[member];
    uint8_t *value = (uint8_t *)events->row + field->offset;

    if (field->kind == DET_KIND_TEXT)
        return row_set_text(field, events->row, det_view_text(text_of(member, row)));
    if (field->kind == DET_KIND_RECORD)
        return set_payload(events, field, row);
    det_field_set_count(field, events->row, 1);
    return det_value_set_unsigned(field, value, number_of(member, row)) ? NULL : "does not fit";
}

static int take_row(void *context, const struct det_store_logged *row)
{
    struct page *page = context;
    struct events *events = page->events;

    page->rows++;
    page->cursor->position = row->position;
    for (size_t i = 0; i < MEMBERS; i++) {
        const char *reason = events->fields[i] ? set_member(events, i, row) : NULL;

        if (!reason)
            continue;
        (void)det_stage_reject(
            page->call, DET_REJECT_DESERIALIZATION, "position %llu of the log: %s %s",
            (unsigned long long)row->position, members[i].name, reason);
        return 0;
    }
    return det_stage_emit_at(page->call, events->row, row->at ? row->at : 1);
}

static int take_last(void *context, const struct det_store_logged *row)
{
    *(uint64_t *)context = row->position;
    return 0;
}

/* In the first call of a run, and of each open. */
static int begin_events(
    struct det_stage_call *call, struct events *events, struct events_cursor *cursor)
{
    struct det_store_log_query last = { .limit = 1, .is_backward = true };
    const char *identity = det_store_identity(events->store);
    uint64_t next = 0;
    int r;

    if (!*cursor->store)
        (void)det_text_copy(cursor->store, sizeof cursor->store, identity);
    if (strcmp(cursor->store, identity) != 0)
        return det_stage_fail(
            call, DET_ERR_FOREIGN,
            "the store is not the one that this run has read: correct url, or begin a new run");
    if (cursor->has_begun || !events->settings.from_end)
        return 0;
    r = det_store_log(events->store, &last, take_last, &cursor->position, &next);
    return r < 0 ? r : 0;
}

static int wait_for_events(struct det_stage_call *call, const struct events *events)
{
    if (events->settings.once)
        return DET_SOURCE_DONE;
    if (!events->watch)
        det_stage_wake_at(call, det_world_now(call->world, DET_CLOCK_MONOTONIC) + events->every);
    return DET_SOURCE_IDLE;
}

static const char *text_or_null(const char *text)
{
    return *text ? text : NULL;
}

static int events_next(struct det_stage_call *call, void *cursor_memory)
{
    struct events *events = call->self;
    struct page page = { .call = call, .events = events, .cursor = cursor_memory };
    uint32_t room = det_stage_room(call);
    struct det_store_log_query query = { .machine = text_or_null(events->settings.machine),
                                         .id = text_or_null(events->settings.id),
                                         .event = text_or_null(events->settings.event),
                                         .state = text_or_null(events->settings.state) };
    uint64_t next = 0;
    int r;

    if (events->watch)
        file_watch_arm(events->watch, call);
    r = begin_events(call, events, page.cursor);
    if (r < 0)
        return r;
    page.cursor->has_begun = true;
    query.after = page.cursor->position;
    query.limit = room == 0 ? 1 : room < ROWS_MAX ? room : ROWS_MAX;
    r = det_store_log(events->store, &query, take_row, &page, &next);
    if (r < 0)
        return r;
    page.cursor->position = next;
    return page.rows ? DET_SOURCE_MORE : wait_for_events(call, events);
}

const struct det_connector events_source = {
    CONNECTOR_HEAD(events, source),
    .flags = DET_STAGE_ASYNC,
    .cursor = { .get = events_cursor_record },
    .functions = { .open = events_open, .close = events_close, .next = events_next },
    .check = events_check,
};
