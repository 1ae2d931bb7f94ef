/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_output.c - writes the output of a run as log lines of the configured level
 * (docs/observability.md). On the loop's thread, like all output. */
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/task_output_internal.h"
#include "daemon/telemetry.h"

/* Drops and counts lines that are not read fast enough. */
static int write_line(void *user, const char *line, size_t size)
{
    struct up *up = user;

    if (!up_has_output_room(up))
        return DET_ERR_LIMIT;
    cli_write(up_cli(up), line, size);
    return 0;
}

static enum det_log_level level_of(const struct up *up)
{
    switch (up_config(up)->log.level) {
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

/* True if the file or --log asks for a log, or a daemon writes to something else than a terminal.
 * The output of --json is data, not a log. */
static bool is_wanted(const struct up *up)
{
    enum config_log_format format = up_config(up)->log.format;

    if (up_cli(up)->is_json)
        return false;
    if (up_options(up)->log)
        return strcmp(up_options(up)->log, "json") == 0;
    if (format != CONFIG_LOG_DEFAULT)
        return format == CONFIG_LOG_JSON;
    return up_options(up)->is_serving && !up_cli(up)->out_is_terminal;
}

int serve_log_open(struct up *up)
{
    const struct det_logger_options options = {
        .world = up_cli(up)->world,
        .allocator = up_allocator(up),
        .level = level_of(up),
        .write = write_line,
        .user = up,
        .metrics = up_metrics(up),
    };

    serve_log_close(up);
    up_log(up)->level = options.level;
    return is_wanted(up) ? det_logger_open(&options, &up_log(up)->logger) : 0;
}

void serve_log_close(struct up *up)
{
    det_logger_close(up_log(up)->logger);
    up_log(up)->logger = NULL;
}

bool serve_log_has_level(const struct up *up, enum det_log_level level)
{
    return level >= up_log(up)->level;
}

static bool is_machine(const struct up *up, const char *name)
{
    const struct config *config = up_config(up);

    for (size_t i = 0; i < config->machine_count; i++) {
        if (strcmp(config->machines[i].name, name) == 0)
            return true;
    }
    return false;
}

void serve_log_note(struct up *up, enum det_log_level level, const char *name, const char *text)
{
    bool is_own = strcmp(name, UP_NAME) == 0;
    const char *component = is_own                                ? UP_NAME
                            : is_machine(up, name)                ? "machine"
                            : up_find_group(up_project(up), name) ? "group"
                                                                  : "task";
    struct det_log_line line;

    det_log_line_begin(up_log(up)->logger, &line, level, component, "%s", text);
    if (!is_own)
        det_log_line_text(&line, component, name);
    det_log_line_end(&line);
}

void serve_log_step(
    struct up *up, enum det_log_level level, const char *name, const char *instance,
    const struct det_trace_context *trace, const char *text)
{
    struct det_log_line line;

    det_log_line_begin(up_log(up)->logger, &line, level, "machine", "%s", text);
    det_log_line_text(&line, "machine", name);
    det_log_line_text(&line, "instance", instance);
    det_log_line_trace(&line, trace);
    det_log_line_end(&line);
}

void serve_log_lost(struct up *up, uint64_t count)
{
    if (up_metrics(up))
        det_series_count(det_metrics_only(up_metrics(up), DET_METRIC_LOG_DROPPED), count);
}

void serve_log_line(struct up *up, const struct det_line *from)
{
    struct det_log_line line;

    det_log_line_begin(
        up_log(up)->logger, &line, DET_LOG_INFO, "output", "%.*s", (int)from->size, from->text);
    det_log_line_text(&line, "task", from->name);
    det_log_line_text(&line, "stream", from->stream == DET_STREAM_ERROR ? "error" : "output");
    if (from->is_cut)
        det_log_line_text(&line, "continues", "in the next line");
    if (from->dropped)
        det_log_line_number(&line, "dropped_bytes", (int64_t)from->dropped);
    det_log_line_end(&line);
}
