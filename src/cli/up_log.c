/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* up_log.c - notes and lines of tasks as lines of a log, see docs/observability.md.
 *
 * They take the way of all output of `up`, which never waits for its reader: what has no room there
 * is dropped. */
#include "cli/up_log.h"

#include <string.h>

#include "cli/up_machines.h"
#include "cli/up_observe.h"

static int write_line(void *user, const char *line, size_t size)
{
    struct up *up = user;

    if (up_output_has_room(&up->output) && !up->cli->out_error) {
        cli_write(up->cli, line, size);
        return 0;
    }
    /* The log lives longer than the metrics, so it cannot count itself. */
    if (up->observe)
        det_series_count(det_metrics_only(up->observe->metrics, DET_METRIC_LOG_DROPPED), 1);
    return DET_ERR_BUSY;
}

static enum det_log_level level_of(enum config_level level)
{
    switch (level) {
    case CONFIG_LEVEL_DEBUG:
        return DET_LOG_DEBUG;
    case CONFIG_LEVEL_DEFAULT:
    case CONFIG_LEVEL_INFO:
        return DET_LOG_INFO;
    case CONFIG_LEVEL_WARNING:
        return DET_LOG_WARNING;
    case CONFIG_LEVEL_ERROR:
        return DET_LOG_ERROR;
    }
    return DET_LOG_INFO;
}

int up_log_open(struct up *up, struct det_error *reterr)
{
    const struct det_logger_options options = {
        .world = up->cli->world,
        .allocator = up->cli->allocator,
        .level = level_of(up->file.config.log.level),
        .write = write_line,
        .user = up,
    };
    int r;

    r = det_logger_open(&options, &up->log);
    return r < 0 ? det_error_set(reterr, r, "the log: %s", det_error_text(r)) : 0;
}

void up_log_close(struct up *up)
{
    det_logger_close(up->log);
    up->log = NULL;
}

void up_log_set_level(struct up *up)
{
    det_logger_set_level(up->log, level_of(up->file.config.log.level));
}

bool up_log_is_told(const struct up *up, enum det_log_level level)
{
    return !up->log || det_logger_is_wanted(up->log, level);
}

bool up_is_logging(const struct up *up)
{
    return up->log && up->cli->is_json && !up->has_objects;
}

/* Who the name before a note is. */
static const char *kind_of(struct up *up, const char *name)
{
    if (strcmp(name, UP_NAME) == 0)
        return "detent";
    return up->machines && up_machines_find(up->machines, name) ? "machine" : "task";
}

void up_log_note(struct up *up, enum det_log_level level, const char *name, const char *text)
{
    const char *kind = kind_of(up, name);
    struct det_log_line line;

    det_log_line_begin(up->log, &line, level, kind, "%s", text);
    if (strcmp(name, UP_NAME) != 0)
        det_log_line_text(&line, kind, name);
    det_log_line_end(&line);
}

void up_log_line(struct up *up, const struct det_line *said)
{
    struct det_log_line line;

    det_log_line_begin(up->log, &line, DET_LOG_INFO, "output", "%.*s", (int)said->size, said->text);
    det_log_line_text(&line, "task", said->name);
    det_log_line_text(&line, "stream", said->stream == DET_STREAM_ERROR ? "error" : "output");
    if (said->is_cut)
        det_log_line_text(&line, "continues", "in the next line");
    if (said->dropped)
        det_log_line_number(&line, "dropped_bytes", (int64_t)said->dropped);
    det_log_line_end(&line);
}
