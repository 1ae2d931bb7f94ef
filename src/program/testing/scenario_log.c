/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* scenario_log.c - lines of key=value, each in one piece, and the same as JSON. */
#include "testing/scenario_log.h"

#include <string.h>

#include "base/assert.h"
#include "base/buffer.h"
#include "base/text.h"
#include "inspect/document_print.h"
#include "inspect/worker_event.h"
#include "json/writer.h"

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
    worker_event_text(&buffer, event);
    if (det_buffer_status(&buffer) < 0) {
        log->cli->has_failed = true;
    } else {
        print_head(log->cli, event->wall, look, det_worker_event_name(event->kind));
        cli_print(log->cli, "%s\n", det_buffer_text(&buffer));
    }
    det_buffer_deinit(&buffer);
}

/* As JSON. */

static void print_event_object(
    struct scenario_log *log, const struct det_worker_event *event, const struct look *look)
{
    struct det_json_writer json;

    cli_json_begin(log->cli, &json, "event");
    det_json_time(&json, "at", event->wall);
    det_json_text(&json, "level", look->wire);
    worker_event_members(&json, event);
    cli_json_end(log->cli, &json);
}

void scenario_log_event(struct scenario_log *log, const struct det_worker_event *event)
{
    enum det_scenario_level level = det_scenario_level_of(event->kind);

    if (log->events++ == 0)
        log->began = event->at;
    log->failures += level == DET_SCENARIO_ERROR;
    det_assert(level < sizeof looks / sizeof *looks && log->failures <= log->events);
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
    struct det_json_writer json;

    if (log->cli->is_json) {
        cli_json_begin(log->cli, &json, "note");
        det_json_time(&json, "at", note->wall);
        det_json_text(&json, "event", note->name);
        det_json_text(&json, "text", note->text);
        cli_json_end(log->cli, &json);
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
        cli_print_error(
            log->cli, "%s\n",
            is_second ? "Taking down what is left."
                      : "Stopping; press Ctrl-C again to stop at once.");
}

void scenario_log_end(struct scenario_log *log, struct det_scenario_run *run)
{
    det_time took = det_world_now(run->world, DET_CLOCK_MONOTONIC) - log->began;
    struct det_workers_summary summary;
    struct det_json_writer json;
    char text[DET_DURATION_TEXT];

    det_workers_summary(run->workers, &summary);
    if (log->cli->is_json) {
        cli_json_begin(log->cli, &json, "summary");
        det_json_text(&json, "scenario", run->scenario->name);
        det_json_signed(&json, "took_ms", took / DET_MILLISECOND);
        det_json_number(&json, "ticks", summary.ticks);
        det_json_number(&json, "events", log->events);
        det_json_number(&json, "errors", log->failures);
        det_json_number(&json, "workers_left", summary.workers);
        cli_json_end(log->cli, &json);
        return;
    }
    det_format_duration(took / DET_MILLISECOND * DET_MILLISECOND, text, sizeof text);
    cli_flush(log->cli);
    cli_print_error(
        log->cli, "scenario %s: %s, %llu tick%s, %llu event%s, %llu of them errors\n",
        run->scenario->name, text, (unsigned long long)summary.ticks, det_plural(summary.ticks),
        (unsigned long long)log->events, det_plural(log->events),
        (unsigned long long)log->failures);
}
