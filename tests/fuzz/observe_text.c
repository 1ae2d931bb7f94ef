/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* observe_text.c - fuzz target: whatever comes into a line of the log, a label of a metric or a
 * traceparent. A line stays one JSON object without a control character; a label stays one value
 * that reads back; a traceparent that is taken is the one that is written. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "observe/log_line.h"
#include "record/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static int check_line(void *user, const char *line, size_t size)
{
    struct det_json_token token = { .kind = DET_JSON_NULL };
    struct det_json_scanner json;

    (void)user;
    require(size > 2 && size <= DET_LOG_LINE_MAX && line[0] == '{');
    require(memchr(line, '\n', size) == line + size - 1);
    for (size_t i = 0; i < size - 1; i++)
        require((unsigned char)line[i] >= 0x20 && line[i] != 0x7F);
    det_json_scanner_init(&json, line, size);
    while (token.kind != DET_JSON_END)
        require(det_json_scan(&json, &token, NULL) == 0);
    return 0;
}

static void try_log(const char *text)
{
    struct det_log_line line;
    struct det_logger *log;

    require(det_logger_open(&(struct det_logger_options){ .write = check_line }, &log) == 0);
    det_log_line_begin(log, &line, DET_LOG_ERROR, "fuzz", "%s", text);
    det_log_line_text(&line, "text", text);
    det_log_line_end(&line);
    det_logger_close(log);
}

/* What stands between the quotes of the one label of the one series. */
static void check_label(const char *scrape)
{
    const char *label = strstr(scrape, "detent_restarts_total{task=\""), *at;

    require(label != NULL);
    for (at = label + 28; *at != '"'; at++) {
        require(*at != '\n' && *at != '\0');
        if (*at == '\\')
            require(strchr("\\\"n", *++at) && *at);
    }
    require(strncmp(at, "\"} 1\n", 5) == 0);
    require(det_utf8_check(label, (size_t)(at - label)) == (size_t)(at - label));
}

static void try_label(const char *text)
{
    struct det_metrics *metrics;
    struct det_buffer buffer;

    require(det_metrics_open(&(struct det_metrics_options){ 0 }, &metrics) == 0);
    det_series_count(det_metrics_series(metrics, DET_METRIC_RESTARTS, &text), 1);
    det_buffer_init(&buffer, NULL);
    det_metrics_write(metrics, DET_METRICS_TEXT, &buffer);
    require(det_buffer_status(&buffer) == 0);
    check_label(det_buffer_text(&buffer));
    det_buffer_deinit(&buffer);
    det_metrics_close(metrics);
}

static void try_trace(const uint8_t *data, size_t size)
{
    struct det_trace_context context;
    char text[DET_TRACEPARENT_TEXT];

    if (det_trace_parse((const char *)data, size, &context) < 0)
        return;
    require(size >= strlen(det_trace_format(&context, text)));
    /* All but the version, and flags that nobody knows. */
    require(memcmp(text + 2, data + 2, DET_TRACEPARENT_TEXT - 1 - 4) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    try_log(text);
    try_label(text);
    try_trace(data, size);
    free(text);
    return 0;
}
