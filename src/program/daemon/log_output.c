/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_output.c - what `up` says as lines of a log (docs/observability.md), where that is wanted,
 * and what of it is important enough. On the loop of `up`, as all that it prints. */
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/telemetry.h"

/* What is not read fast enough is dropped, and counted. */
static int write_line(void *user, const char *line, size_t size)
{
    struct up *up = user;

    if (!up_output_has_room(&up->output))
        return DET_ERR_LIMIT;
    cli_write(up->cli, line, size);
    return 0;
}

static enum det_log_level level_of(const struct up *up)
{
    switch (up->file.config.log.level) {
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

/* For programs where the file or --log says so, and where a daemon writes to no terminal. What
 * --json asks for is data, not a log. */
static bool is_wanted(const struct up *up)
{
    enum config_log_format format = up->file.config.log.format;

    if (up->cli->is_json)
        return false;
    if (up->options->log)
        return strcmp(up->options->log, "json") == 0;
    if (format != CONFIG_LOG_DEFAULT)
        return format == CONFIG_LOG_JSON;
    return up->options->is_serving && !up->cli->out_is_terminal;
}

int serve_log_open(struct up *up)
{
    const struct det_logger_options options = {
        .world = up->cli->world,
        .allocator = up->output.outer->allocator,
        .level = level_of(up),
        .write = write_line,
        .user = up,
        .metrics = up->observe ? up->observe->metrics : NULL,
    };

    serve_log_close(up);
    up->log_level = options.level;
    return is_wanted(up) ? det_logger_open(&options, &up->log) : 0;
}

void serve_log_close(struct up *up)
{
    det_logger_close(up->log);
    up->log = NULL;
}

bool serve_log_is_told(const struct up *up, enum det_log_level level)
{
    return level >= up->log_level;
}

static bool is_machine(const struct up *up, const char *name)
{
    const struct config *config = &up->file.config;

    for (size_t i = 0; i < config->machine_count; i++) {
        if (strcmp(config->machines[i].name, name) == 0)
            return true;
    }
    return false;
}

void serve_log_note(struct up *up, enum det_log_level level, const char *name, const char *text)
{
    bool is_own = strcmp(name, UP_NAME) == 0;
    const char *component = is_own                    ? UP_NAME
                            : is_machine(up, name)    ? "machine"
                            : up_find_group(up, name) ? "group"
                                                      : "task";
    struct det_log_line line;

    det_log_line_begin(up->log, &line, level, component, "%s", text);
    if (!is_own)
        det_log_line_text(&line, component, name);
    det_log_line_end(&line);
}

void serve_log_step(
    struct up *up, enum det_log_level level, const char *name, const char *instance,
    const struct det_trace_context *trace, const char *text)
{
    struct det_log_line line;

    det_log_line_begin(up->log, &line, level, "machine", "%s", text);
    det_log_line_text(&line, "machine", name);
    det_log_line_text(&line, "instance", instance);
    det_log_line_trace(&line, trace);
    det_log_line_end(&line);
}

void serve_log_lost(struct up *up, uint64_t count)
{
    if (up->observe && up->observe->metrics)
        det_series_count(det_metrics_only(up->observe->metrics, DET_METRIC_LOG_DROPPED), count);
}

void serve_log_line(struct up *up, const struct det_line *from)
{
    struct det_log_line line;

    det_log_line_begin(up->log, &line, DET_LOG_INFO, "output", "%.*s", (int)from->size, from->text);
    det_log_line_text(&line, "task", from->name);
    det_log_line_text(&line, "stream", from->stream == DET_STREAM_ERROR ? "error" : "output");
    if (from->is_cut)
        det_log_line_text(&line, "continues", "in the next line");
    if (from->dropped)
        det_log_line_number(&line, "dropped_bytes", (int64_t)from->dropped);
    det_log_line_end(&line);
}
