/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* export_store.c - `detent store export`: all of a store as sealed lines. */
#include <detent/tool/machine.h>
#include <detent/tool/store.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "store/row.h"
#include "transfer/complete_history.h"
#include "transfer/export.h"

void export_begin(struct exporter *exporter, const char *kind)
{
    det_assert(exporter->json.text.size == 0 && !exporter->json.needs_comma);
    det_json_open(&exporter->json, NULL, '{');
    det_json_text(&exporter->json, "kind", kind);
}

static void clear_line(struct exporter *exporter)
{
    det_buffer_clear(&exporter->json.text);
    exporter->json.needs_comma = false;
}

/* A write error sticks to the stream, and is reported at the end. */
int export_end(struct exporter *exporter)
{
    struct det_json_writer *json = &exporter->json;
    int r;

    seal_close(&exporter->seal, json);
    r = det_buffer_status(&json->text);
    if (r == 0) {
        errno = 0;
        (void)fwrite(json->text.data, 1, json->text.size, exporter->file);
        (void)fputc('\n', exporter->file);
        /* Not by cli_write(), which would clear the progress bar each time. */
        if (exporter->file == exporter->store->cli->out)
            cli_check_output(exporter->store->cli);
    }
    exporter->lines++;
    /* The head and the definitions are lines too. */
    det_assert(
        exporter->lines >= exporter->instances + exporter->events + exporter->jobs +
                               exporter->schedules + exporter->documents);
    clear_line(exporter);
    return r < 0 ? cli_no_memory(exporter->store->cli) : CLI_OK;
}

static int write_head(struct exporter *exporter)
{
    const struct cli_store *store = exporter->store;

    export_begin(exporter, "store");
    det_json_number(&exporter->json, "format", EXPORT_FORMAT);
    det_json_text(&exporter->json, "identity", det_store_identity(store->store));
    det_json_time(&exporter->json, "exported_at", det_world_now(store->cli->world, DET_CLOCK_WALL));
    det_json_text(&exporter->json, "program", det_version());
    return export_end(exporter);
}

static int write_text(struct exporter *exporter, char *text, size_t capacity)
{
    const struct det_machine *machine = exporter->machine;
    struct det_error error = { 0 };
    int64_t size =
        det_machine_write(machine, exporter->store->cli->allocator, text, capacity, &error);

    if (size < 0)
        return cli_report_store_error(exporter->store, (int)size, &error);
    det_assert((size_t)size + 1 == capacity);
    export_begin(exporter, "definition");
    det_json_text(&exporter->json, "machine", machine->name);
    det_json_number(&exporter->json, "version", machine->version);
    det_json_text(&exporter->json, "spec", text);
    return export_end(exporter);
}

/* Writes the definition with which the data was read. */
static int write_definition(struct exporter *exporter)
{
    const struct det_allocator *allocator = exporter->store->cli->allocator;
    struct det_error error = { 0 };
    int64_t size = det_machine_write(exporter->machine, allocator, NULL, 0, &error);
    char *text;
    int code;

    if (size < 0)
        return cli_report_store_error(exporter->store, (int)size, &error);
    text = det_alloc(allocator, (size_t)size + 1);
    if (!text)
        return cli_no_memory(exporter->store->cli);
    code = write_text(exporter, text, (size_t)size + 1);
    det_free(allocator, text, (size_t)size + 1);
    return code;
}

static void write_payload(struct exporter *exporter, const void *event)
{
    const struct det_machine *machine = exporter->machine;

    det_json_record(
        &exporter->json, "payload", det_machine_payload(machine, det_event_kind(event)),
        instance_payload_of(machine, event), DET_TEXT_REVEAL);
}

static void write_attempts(struct det_json_writer *json, const struct det_store_timer *row)
{
    if (!row->attempts && !row->is_dead)
        return;
    det_json_number(json, "attempts", row->attempts);
    det_json_signed(json, "last_error", row->last_error);
    det_json_text(json, "reason", row->reason);
    det_json_time(json, "next", row->next);
    det_json_bool(json, "dead", row->is_dead);
}

static void write_timers(struct exporter *exporter)
{
    struct det_json_writer *json = &exporter->json;

    det_json_open(json, "timers", '[');
    for (const struct instance_timer *t = exporter->instance->timers; t; t = t->next) {
        det_json_open(json, NULL, '{');
        instance_timer_line(json, exporter->machine, &t->row);
        if (t->row.value)
            write_payload(exporter, t->row.value);
        write_attempts(json, &t->row);
        det_json_close(json, '}');
    }
    det_json_close(json, ']');
}

static void write_trace(struct det_json_writer *json, const struct det_trace_context *trace)
{
    char text[DET_TRACEPARENT_TEXT];

    if (trace)
        det_json_text(json, "trace", det_trace_format(trace, text));
}

static void write_effect(struct exporter *exporter, const struct det_store_effect *row)
{
    const struct det_machine *machine = exporter->machine;
    struct det_json_writer *json = &exporter->json;

    det_assert(row->effect < machine->effect_count);
    det_json_open(json, NULL, '{');
    det_json_text(json, "effect", machine->effects[row->effect].name);
    det_json_number(json, "sequence", row->sequence);
    det_json_number(json, "index", row->index);
    det_json_text(json, "from", machine->states[row->from].name);
    det_json_text(json, "to", machine->states[row->to].name);
    det_json_number(json, "visit", row->visit);
    det_json_number(json, "asked", row->asked);
    det_json_time(json, "at", row->at);
    det_json_number(json, "attempts", row->attempts);
    det_json_signed(json, "last_error", row->last_error);
    det_json_text(json, "reason", row->reason);
    det_json_time(json, "next", row->next);
    det_json_bool(json, "dead", row->is_dead);
    det_json_record(json, "data", det_machine_data(machine), row->data, DET_TEXT_REVEAL);
    det_json_text(json, "event", machine->events[det_event_kind(row->event)].name);
    write_payload(exporter, row->event);
    write_trace(json, row->trace);
    if (row->origin[0])
        det_json_text(json, "origin", row->origin);
    det_json_close(json, '}');
}

static void write_pending(struct exporter *exporter)
{
    struct det_json_writer *json = &exporter->json;

    write_timers(exporter);
    det_json_open(json, "effects", '[');
    for (const struct instance_effect *e = exporter->instance->effects; e; e = e->next)
        write_effect(exporter, &e->row);
    det_json_close(json, ']');
    det_json_open(json, "deferred", '[');
    for (const struct instance_deferred *d = exporter->instance->deferred; d; d = d->next) {
        det_json_open(json, NULL, '{');
        det_json_number(json, "sequence", d->row.sequence);
        det_json_text(json, "event", exporter->machine->events[det_event_kind(d->row.event)].name);
        write_payload(exporter, d->row.event);
        det_json_close(json, '}');
    }
    det_json_close(json, ']');
}

/* Writes its start, if that and the first event are stored. */
static int write_start(struct exporter *exporter)
{
    const struct cli_store *store = exporter->store;
    const struct det_record *record = det_machine_data(exporter->machine);
    struct det_store_start start = { .data = det_alloc_zero(store->cli->allocator, record->size) };
    struct det_json_writer *json = &exporter->json;
    int r;

    if (!start.data)
        return DET_ERR_NO_MEMORY;
    r = store->ops->start(store->store, exporter->instance->loaded.instance, &start);
    if (r == 0) {
        det_json_open(json, "start", '{');
        det_json_number(json, "version", start.version);
        det_json_text(json, "state", exporter->machine->states[start.state].name);
        det_json_time(json, "at", start.at);
        det_json_record(json, "data", record, start.data, DET_TEXT_REVEAL);
        det_json_close(json, '}');
    }
    det_free(store->cli->allocator, start.data, record->size);
    return r == DET_ERR_NOT_FOUND ? 0 : r;
}

static int write_head_of(struct exporter *exporter)
{
    const struct instance *instance = exporter->instance;
    struct det_json_writer *json = &exporter->json;
    int r;

    export_begin(exporter, "instance");
    det_json_text(json, "id", instance->id);
    det_json_text(json, "state", instance_state(instance));
    instance_head_line(json, instance);
    det_json_record(
        json, "data", det_machine_data(exporter->machine), instance->loaded.data, DET_TEXT_REVEAL);
    write_pending(exporter);
    det_json_number(json, "first", exporter->first);
    det_json_number(json, "moves", exporter->moves);
    r = write_start(exporter);
    if (r == 0 && export_end(exporter) != CLI_OK)
        r = DET_ERR_NO_MEMORY;
    return r;
}

/* Writes the request of its id, while the store remembers it. */
static int write_request(struct exporter *exporter, const struct det_store_event *row)
{
    const struct det_machine *machine = exporter->machine;
    const struct cli_store *store = exporter->store;
    struct det_store_answer answer;
    int r;

    if (!row->event_id)
        return 0;
    r = store->ops->answer(
        store->store, exporter->instance->loaded.instance, row->event_id, &answer);
    if (r < 0)
        return r == DET_ERR_NOT_FOUND || r == DET_ERR_VERSION ? 0 : r;
    if (!answer.request)
        return 0;
    det_json_number(&exporter->json, "request", answer.request);
    det_json_text(
        &exporter->json, "request_event",
        answer.event < machine->event_count ? machine->events[answer.event].name : NULL);
    return 0;
}

static int write_event(void *context, const struct det_store_event *row)
{
    struct exporter *exporter = context;
    const struct det_machine *machine = exporter->machine;
    struct det_json_writer *json = &exporter->json;
    int r;

    export_begin(exporter, "event");
    det_json_number(json, "sequence", row->sequence);
    det_json_number(json, "visit", row->visit);
    det_json_text(json, "from", machine->states[row->from].name);
    det_json_text(json, "to", machine->states[row->to].name);
    det_json_text(
        json, "event", row->event == UINT16_MAX ? NULL : machine->events[row->event].name);
    det_json_text(json, "outcome", det_outcome_name(row->outcome));
    det_json_number(json, "choice", row->choice);
    det_json_bool(json, "timeout", row->is_timeout);
    det_json_time(json, "at", row->at);
    det_json_text(json, "event_id", row->event_id);
    det_json_text(json, "cause", row->cause);
    if (row->value)
        write_payload(exporter, row->value);
    write_trace(json, row->trace);
    r = write_request(exporter, row);
    if (r < 0)
        return r;
    exporter->events++;
    return export_end(exporter) == CLI_OK ? 0 : DET_ERR_NO_MEMORY;
}

static int see_first(void *context, const struct det_store_event *row)
{
    struct exporter *exporter = context;

    if (!exporter->first)
        exporter->first = row->sequence;
    exporter->moves += row->outcome == DET_OUTCOME_GOTO;
    /* If all events are stored, all changes of the state are among them. */
    return row->sequence == 1 ? 1 : 0;
}

/* 0 or an error; DET_ERR_BUSY: events are missing. */
static int write_all_of(struct exporter *exporter)
{
    const struct det_store_loaded *loaded = &exporter->instance->loaded;
    struct history_visit history_visit = { .loaded = loaded,
                                           .visit = see_first,
                                           .context = exporter };
    int r;

    exporter->first = exporter->moves = 0;
    r = complete_events(exporter->store, &history_visit);
    if (exporter->first == 1)
        exporter->moves = loaded->head.transition_count;
    if (r >= 0)
        r = write_head_of(exporter);
    if (r < 0 || !exporter->first)
        return r;
    history_visit.first = exporter->first;
    history_visit.visit = write_event;
    return complete_events(exporter->store, &history_visit);
}

/* The position before an instance, to write it again or to skip it. */
struct mark {
    off_t offset; /* -1: output cannot be withdrawn */
    struct seal seal;
    uint64_t lines, events;
};

/* Appended output is not at the position of the stream, but after the output of others. */
static off_t offset_of(FILE *file)
{
    int flags = fcntl(fileno(file), F_GETFL);

    return flags >= 0 && !(flags & O_APPEND) ? ftello(file) : -1;
}

static bool go_back(struct exporter *exporter, const struct mark *mark)
{
    clear_line(exporter);
    det_assert(exporter->lines >= mark->lines && exporter->events >= mark->events);
    if (exporter->lines == mark->lines)
        return true;
    exporter->seal = mark->seal;
    exporter->lines = mark->lines;
    exporter->events = mark->events;
    return mark->offset >= 0 && fflush(exporter->file) == 0 &&
           fseeko(exporter->file, mark->offset, SEEK_SET) == 0 &&
           ftruncate(fileno(exporter->file), mark->offset) == 0;
}

static int write_once(struct exporter *exporter, struct det_machine *machine, const char *id)
{
    struct instance instance;
    int r = instance_load(exporter->store, machine, id, &instance);

    if (r < 0)
        return r;
    exporter->instance = &instance;
    r = write_all_of(exporter);
    instance_close(&instance);
    return r;
}

/* Printed output cannot be withdrawn. */
static int report_partial_output(const struct exporter *exporter, const char *id, int r)
{
    cli_report_error(
        exporter->store->cli, "%s '%s': %s; export it to a file%s", exporter->machine->name, id,
        r == DET_ERR_BUSY ? "events are missing, since old ones were deleted meanwhile"
                          : "it is damaged, and a part of it was written",
        r == DET_ERR_BUSY ? ", or again" : ", which leaves it out");
    return CLI_FAILURE;
}

/* Reports and skips an unreadable instance; the others are still exported. */
static int leave_out(struct exporter *exporter, const char *id, int r)
{
    det_assert(r == DET_ERR_BUSY || r == DET_ERR_CORRUPT || r == DET_ERR_VERSION);
    exporter->damaged++;
    cli_progress_end(exporter->store->cli);
    if (r == DET_ERR_BUSY)
        cli_report_error(
            exporter->store->cli,
            "%s '%s': events are missing, whenever it is read; 'detent store verify' shows whether "
            "it is damaged",
            exporter->machine->name, id);
    else
        (void)instance_report_error(exporter->store, exporter->machine->name, id, r);
    return CLI_OK;
}

/* Deleted events may be noticed after a part was written. */
static int write_until_whole(struct exporter *exporter, struct det_machine *machine, const char *id)
{
    const struct mark mark = { offset_of(exporter->file), exporter->seal, exporter->lines,
                               exporter->events };
    int r = DET_ERR_BUSY;

    for (int i = 0; r == DET_ERR_BUSY && i < WHOLE_TRIES; i++) {
        r = write_once(exporter, machine, id);
        if (r == 0)
            exporter->instances++;
        if (r != DET_ERR_BUSY && r != DET_ERR_CORRUPT && r != DET_ERR_VERSION)
            return r < 0 ? instance_report_error(exporter->store, machine->name, id, r) : CLI_OK;
        if (!go_back(exporter, &mark))
            return report_partial_output(exporter, id, r);
    }
    return leave_out(exporter, id, r);
}

static int write_instance(void *context, struct det_machine *machine, const char *id)
{
    struct exporter *exporter = context;
    int code;

    if (exporter->total)
        cli_progress(
            exporter->store->cli, "exporting", exporter->instances + exporter->damaged + 1,
            exporter->total);
    code = write_until_whole(exporter, machine, id);
    if (code == CLI_OK && ferror(exporter->file))
        code = CLI_FAILURE;
    return code;
}

static int write_machine(void *context, struct det_machine *machine)
{
    static const struct det_store_query all = { 0 };
    struct exporter *exporter = context;
    int code;

    exporter->machine = machine;
    code = write_definition(exporter);
    if (code != CLI_OK)
        return code;
    return cli_store_instances(exporter->store, machine, &all, write_instance, exporter);
}

static int write_end(struct exporter *exporter)
{
    export_begin(exporter, "end");
    det_json_number(&exporter->json, "instances", exporter->instances);
    det_json_number(&exporter->json, "events", exporter->events);
    det_json_number(&exporter->json, "jobs", exporter->jobs);
    det_json_number(&exporter->json, "schedules", exporter->schedules);
    det_json_number(&exporter->json, "documents", exporter->documents);
    det_json_number(&exporter->json, "damaged", exporter->damaged);
    return export_end(exporter);
}

static int count_row(void *context, const struct det_store_listed *row)
{
    (void)row;
    (*(uint64_t *)context)++;
    return 0;
}

static int count_machine(void *context, struct det_machine *machine)
{
    struct exporter *exporter = context;
    const struct cli_store *store = exporter->store;
    int r;

    r = store->ops->list(
        store->store, machine, &(struct det_store_query){ .ids_only = true }, count_row,
        &exporter->total);
    return r < 0 ? cli_report_store_error(exporter->store, r, NULL) : CLI_OK;
}

static int write_store(struct exporter *exporter)
{
    int code = CLI_OK;

    if (exporter->store->cli->err_is_terminal)
        code = cli_store_each(exporter->store, count_machine, exporter);
    if (code != CLI_OK)
        return code;
    det_json_writer_init(&exporter->json, exporter->store->cli->allocator);
    code = write_head(exporter);
    if (code == CLI_OK)
        code = cli_store_each(exporter->store, write_machine, exporter);
    if (code == CLI_OK)
        code = export_jobs(exporter);
    if (code == CLI_OK)
        code = export_documents(exporter);
    if (code == CLI_OK)
        code = write_end(exporter);
    cli_progress_end(exporter->store->cli);
    det_json_writer_deinit(&exporter->json);
    return code;
}

/* Syncs the file, so that the store may be deleted. */
static int sync_file(const char *path)
{
    struct det_world *world = det_world_real();
    char folder[DET_PATH_MAX];
    struct det_file *file;
    int r;

    r = det_file_open(world, path, DET_FILE_WRITE, &file);
    if (r < 0)
        return r;
    r = det_file_sync(world, file);
    det_file_close(world, file);
    if (r == 0)
        r = det_file_folder(path, folder);
    return r < 0 ? r : det_folder_sync(world, folder);
}

/* A new file that no other user may read, whatever the umask; NULL: errno. */
static FILE *open_private(const char *path)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;

    if (descriptor >= 0 && !file)
        (void)close(descriptor);
    return file;
}

/* Overwrites nothing, and removes a partial file. */
static int write_file(struct exporter *exporter, const char *path)
{
    struct cli *cli = exporter->store->cli;
    bool is_lost;
    int code;

    exporter->file = open_private(path);
    if (!exporter->file) {
        code = errno == EEXIST ? CLI_CONFLICT : CLI_FAILURE;
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
        cli_report_error(cli, "%s: cannot be created: %s", path, strerror(errno));
        return code;
    }
    code = write_store(exporter);
    is_lost = fflush(exporter->file) != 0 || ferror(exporter->file) != 0;
    is_lost = fclose(exporter->file) != 0 || is_lost;
    if (code == CLI_OK && (is_lost || sync_file(path) < 0)) {
        cli_report_error(cli, "%s: cannot be written; is the disk full?", path);
        code = CLI_FAILURE;
    }
    if (code != CLI_OK)
        (void)remove(path);
    return code;
}

int store_export(struct cli_store *store, const char *path)
{
    struct exporter exporter = { .store = store };
    struct cli *cli = store->cli;
    int code;

    if (path && strcmp(path, "-") != 0) {
        code = write_file(&exporter, path);
    } else {
        exporter.file = cli->out;
        code = write_store(&exporter);
    }
    if (code != CLI_OK)
        return code;
    cli_print_error(
        cli, "%llu instance%s and %llu event%s exported\n", STORE_COUNT(exporter.instances),
        STORE_COUNT(exporter.events));
    if (exporter.jobs + exporter.schedules)
        cli_print_error(
            cli, "%llu job%s and %llu schedule%s exported\n", STORE_COUNT(exporter.jobs),
            STORE_COUNT(exporter.schedules));
    if (exporter.documents)
        cli_print_error(cli, "%llu document%s exported\n", STORE_COUNT(exporter.documents));
    if (!exporter.damaged)
        return CLI_OK;
    cli_report_error(
        cli, "%llu instance%s left out, since %s; all others are in the export",
        (unsigned long long)exporter.damaged, exporter.damaged == 1 ? " was" : "s were",
        exporter.damaged == 1 ? "it cannot be read" : "they cannot be read");
    return CLI_FAILURE;
}
