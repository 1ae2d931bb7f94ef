/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* scenario_log.c - lines of key=value, each in one piece, and the same as JSON. */
#include "cli/scenario_log.h"

#include <string.h>

#include "base/buffer.h"
#include "base/text.h"
#include "cli/dump_print.h"
#include "observe/quote.h"

static const struct look {
    const char *name, *wire;
    enum cli_style style;
} looks[] = {
    [DET_SCENARIO_TRACE] = { "TRACE", "trace", CLI_FAINT },
    [DET_SCENARIO_DEBUG] = { "DEBUG", "debug", CLI_FAINT },
    [DET_SCENARIO_INFO] = { "INFO", "info", CLI_GREEN },
    [DET_SCENARIO_WARN] = { "WARN", "warn", CLI_YELLOW },
    [DET_SCENARIO_ERROR] = { "ERROR", "error", CLI_RED },
};

void scenario_log_init(
    struct scenario_log *log, struct cli *cli, enum det_scenario_level least, bool is_followed)
{
    *log = (struct scenario_log){ .cli = cli, .least = least, .is_followed = is_followed };
}

/* As text. */

/* A word as it is, anything else between quotes. */
static bool is_word(const char *text)
{
    return *text && !text[strcspn(text, " \t\r\n\"\\=")];
}

static void add_pair(struct det_buffer *buffer, const char *key, const char *value)
{
    if (!value || !*value)
        return;
    det_buffer_format(buffer, " %s=", key);
    if (is_word(value))
        det_buffer_append_text(buffer, value);
    else
        det_buffer_quote(buffer, det_view_text(value));
}

static void add_span(struct det_buffer *buffer, const char *key, det_time span)
{
    char text[DET_DURATION_TEXT];

    if (span <= 0)
        return;
    det_format_duration(span / DET_MILLISECOND * DET_MILLISECOND, text, sizeof text);
    add_pair(buffer, key, text);
}

static void add_event(struct det_buffer *buffer, const struct det_worker_event *event)
{
    add_pair(buffer, "worker", event->identity ? event->identity->path : NULL);
    add_pair(buffer, "from", event->from);
    add_pair(buffer, "to", event->to);
    add_pair(buffer, "action", event->action);
    add_pair(buffer, "reason", event->reason);
    if (event->code < 0)
        add_pair(buffer, "error", det_error_name(event->code));
    if (event->number > 0)
        det_buffer_format(buffer, " number=%llu", (unsigned long long)event->number);
    add_span(buffer, "took", event->took);
}

static void print_head(struct cli *cli, det_time wall, const struct look *look, const char *name)
{
    char time[CLI_TIME_OF_DAY];

    cli_print_in(cli, CLI_FAINT, "%s ", cli_time_of_day(wall, time));
    cli_print_in(cli, look->style, "%-5s ", look->name);
    cli_print_in(cli, CLI_BOLD, "%s", name);
}

static void print_event(
    struct scenario_log *log, const struct det_worker_event *event, const struct look *look)
{
    struct det_buffer buffer;

    det_buffer_init(&buffer, log->cli->allocator);
    add_event(&buffer, event);
    if (det_buffer_status(&buffer) < 0) {
        log->cli->has_failed = true;
    } else {
        print_head(log->cli, event->wall, look, det_worker_event_name(event->kind));
        cli_print(log->cli, "%s\n", det_buffer_text(&buffer));
    }
    det_buffer_deinit(&buffer);
}

/* As JSON. */

static void set_text(json_t *object, const char *key, const char *value)
{
    if (object && value && *value)
        (void)json_object_set_new(object, key, cli_json_text(value));
}

static void print_event_object(
    struct scenario_log *log, const struct det_worker_event *event, const struct look *look)
{
    const struct det_worker_identity *identity = event->identity;
    char at[DET_TIME_TEXT];
    json_t *object;

    det_format_time(event->wall, at, sizeof at);
    object = json_pack(
        "{s:s, s:s, s:s, s:s}", "type", "event", "at", at, "level", look->wire, "event",
        det_worker_event_name(event->kind));
    set_text(object, "worker", identity ? identity->path : NULL);
    set_text(object, "id", identity ? identity->id : NULL);
    set_text(object, "from", event->from);
    set_text(object, "to", event->to);
    set_text(object, "action", event->action);
    set_text(object, "reason", event->reason);
    set_text(object, "error", event->code < 0 ? det_error_name(event->code) : NULL);
    if (object && event->number > 0)
        (void)json_object_set_new(object, "number", json_integer((json_int_t)event->number));
    if (object && event->took > 0)
        (void)json_object_set_new(object, "took_ns", json_integer((json_int_t)event->took));
    cli_json(log->cli, object);
}

void scenario_log_event(struct scenario_log *log, const struct det_worker_event *event)
{
    enum det_scenario_level level = det_scenario_level_of(event->kind);

    if (log->events++ == 0)
        log->began = event->at;
    log->failures += level == DET_SCENARIO_ERROR;
    if (level < log->least)
        return;
    if (log->cli->is_json)
        print_event_object(log, event, &looks[level]);
    else
        print_event(log, event, &looks[level]);
    if (log->is_followed)
        cli_flush(log->cli);
}

void scenario_log_note(struct scenario_log *log, const struct det_scenario_note *note)
{
    char at[DET_TIME_TEXT];

    if (log->cli->is_json) {
        det_format_time(note->wall, at, sizeof at);
        cli_json(
            log->cli, json_pack(
                          "{s:s, s:s, s:s, s:o}", "type", "note", "at", at, "event", note->name,
                          "text", cli_json_text(note->text)));
    } else {
        print_head(log->cli, note->wall, &looks[DET_SCENARIO_INFO], note->name);
        cli_print(log->cli, " %s\n", note->text);
    }
    if (log->is_followed)
        cli_flush(log->cli);
}

void scenario_log_signal(struct scenario_log *log, bool is_second)
{
    if (!log->cli->is_json)
        cli_say(
            log->cli, "%s\n",
            is_second ? "Taking down what is left."
                      : "Stopping; once more takes all down at once.");
}

void scenario_log_end(struct scenario_log *log, struct det_scenario_run *run)
{
    det_time took = det_world_now(run->world, DET_CLOCK_MONOTONIC) - log->began;
    struct det_workers_summary summary;
    char text[DET_DURATION_TEXT];

    det_workers_summary(run->workers, &summary);
    if (log->cli->is_json) {
        cli_json(
            log->cli,
            json_pack(
                "{s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "type", "summary", "scenario",
                run->scenario->name, "took_ms", (json_int_t)(took / DET_MILLISECOND), "ticks",
                (json_int_t)summary.ticks, "events", (json_int_t)log->events, "errors",
                (json_int_t)log->failures, "workers_left", (json_int_t)summary.workers));
        return;
    }
    det_format_duration(took / DET_MILLISECOND * DET_MILLISECOND, text, sizeof text);
    cli_flush(log->cli);
    cli_say(
        log->cli, "scenario %s: %s, %llu ticks, %llu events, %llu of them errors\n",
        run->scenario->name, text, (unsigned long long)summary.ticks,
        (unsigned long long)log->events, (unsigned long long)log->failures);
}
