/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* metrics_test.h - a registry, and what it says, for suites that count. */
#ifndef DET_OBSERVE_METRICS_TEST_H
#define DET_OBSERVE_METRICS_TEST_H

#include "lib/test.h"

#include "observe/metrics.h"

static inline struct det_metrics *metrics_of(const struct det_metrics_options *options)
{
    struct det_metrics *metrics = NULL;

    assert_int_equal(
        det_metrics_open(options ? options : &(struct det_metrics_options){ 0 }, &metrics), 0);
    return metrics;
}

/* The whole output; free() the result. */
static inline char *scrape_as(struct det_metrics *metrics, enum det_metrics_format format)
{
    struct det_buffer buffer;
    char *text;

    det_buffer_init(&buffer, NULL);
    det_metrics_write(metrics, format, &buffer);
    assert_int_equal(det_buffer_status(&buffer), 0);
    text = strdup(det_buffer_text(&buffer));
    det_buffer_deinit(&buffer);
    return text;
}

/* True if one whole line of the scrape equals `line`. */
static inline bool has_metric(struct det_metrics *metrics, const char *line)
{
    char *text = scrape_as(metrics, DET_METRICS_TEXT), *at = text;
    size_t length = strlen(line);
    bool is_there = false;

    for (; at && *at && !is_there; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        is_there = strncmp(at, line, length) == 0 && at[length] == '\n';
    free(text);
    return is_there;
}

static inline void assert_metric(struct det_metrics *metrics, const char *line)
{
    char *text;

    if (has_metric(metrics, line))
        return;
    text = scrape_as(metrics, DET_METRICS_TEXT);
    print_error("%s", text);
    free(text);
    fail_msg("not in the output: %s", line);
}

#define SERIES(metrics, id, ...) \
    det_metrics_series((metrics), DET_METRIC_##id, (const char *const[]){ __VA_ARGS__ })

#endif
