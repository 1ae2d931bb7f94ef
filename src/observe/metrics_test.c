/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* metrics_test.c - series are found, bounded and counted, and what is written is what promtool
 * takes for good. */
#include <sys/wait.h>
#include <unistd.h>

#include "observe/metrics_test.h"

static bool ends_with(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

static void check_bounds(const struct det_metric_info *info)
{
    assert_true(info->bucket_count >= 2 && info->bucket_count <= DET_BUCKETS_MAX);
    for (size_t i = 1; i < info->bucket_count - 1; i++)
        assert_true(info->bounds[i] > info->bounds[i - 1]);
}

static void names_say_kind_and_unit(void **state)
{
    (void)state;
    for (size_t i = 0; i < DET_METRIC_COUNT; i++) {
        const struct det_metric_info *info = det_metric_info((enum det_metric)i);

        assert_int_equal(strncmp(info->name, "detent_", 7), 0);
        assert_int_equal(info->kind == DET_METRIC_COUNTER, ends_with(info->name, "_total"));
        assert_int_equal(info->unit == DET_UNIT_SECONDS, ends_with(info->name, "_seconds"));
        assert_int_equal(info->unit == DET_UNIT_BYTES, ends_with(info->name, "_bytes"));
        assert_true(ends_with(info->help, "."));
        assert_null(info->labels[DET_LABELS_MAX]);
        if (info->kind == DET_METRIC_HISTOGRAM)
            check_bounds(info);
        else
            assert_int_equal(info->bucket_count, 0);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(info->name, det_metric_info((enum det_metric)k)->name);
    }
}

static const char *const kind_names[] = { "counter", "gauge", "histogram" };

/* A row of the table in the documentation. */
static void write_row(const struct det_metric_info *info, char *target, size_t size)
{
    size_t used =
        (size_t)snprintf(target, size, "| `%s` | %s | ", info->name, kind_names[info->kind]);

    for (size_t i = 0; info->labels[i]; i++)
        used +=
            (size_t)snprintf(target + used, size - used, "%s`%s`", i ? ", " : "", info->labels[i]);
    snprintf(target + used, size - used, " | %s |\n", info->help);
}

static void the_documentation_has_each_metric_as_it_is_and_no_other(void **state)
{
    char *page = det_test_read_file(DET_SOURCE_DIR "/docs/observability.md", &(size_t){ 0 });
    size_t count = 0;

    (void)state;
    for (const char *at = page; (at = strstr(at, "\n| `detent_")); at++)
        count++;
    for (size_t i = 0; i < DET_METRIC_COUNT; i++) {
        char row[512];

        write_row(det_metric_info((enum det_metric)i), row, sizeof row);
        if (!strstr(page, row))
            fail_msg("docs/observability.md lacks: %s", row);
    }
    assert_int_equal(count, DET_METRIC_COUNT);
    free(page);
}

static void only_metrics_without_labels_are_shown_from_the_start(void **state)
{
    struct det_metrics *metrics = metrics_of(NULL);
    char *text = scrape_as(metrics, DET_METRICS_TEXT);

    (void)state;
    for (size_t i = 0; i < DET_METRIC_COUNT; i++) {
        const struct det_metric_info *info = det_metric_info((enum det_metric)i);
        char line[160];

        snprintf(line, sizeof line, "# TYPE %s ", info->name);
        assert_int_equal(strstr(text, line) != NULL, info->labels[0] == NULL);
    }
    assert_null(strstr(text, "other"));
    assert_metric(metrics, "detent_log_dropped_total 0");
    assert_metric(metrics, "detent_journal_batch_events_bucket{le=\"+Inf\"} 0");
    free(text);
    det_metrics_close(metrics);
}

static void equal_label_values_share_a_series(void **state)
{
    struct det_metrics *metrics = metrics_of(NULL);
    struct det_series *one = SERIES(metrics, SLOT_REJECTED, "press", "x");

    (void)state;
    assert_ptr_equal(SERIES(metrics, SLOT_REJECTED, "press", "x"), one);
    assert_ptr_not_equal(SERIES(metrics, SLOT_REJECTED, "oven", "x"), one);
    assert_ptr_not_equal(SERIES(metrics, RESTARTS, "press"), one);
    assert_ptr_not_equal(
        SERIES(metrics, INCIDENTS, "ab", "c"), SERIES(metrics, INCIDENTS, "a", "bc"));
    assert_ptr_equal(
        det_metrics_only(metrics, DET_METRIC_STORE_BYTES),
        det_metrics_only(metrics, DET_METRIC_STORE_BYTES));
    det_metrics_close(metrics);
}

static void counters_and_gauges_are_reported_with_their_labels(void **state)
{
    struct det_metrics *metrics = metrics_of(NULL);
    struct det_series *series = SERIES(metrics, TRANSITIONS, "order", "open", "pay", "goto");
    struct det_series *gauge;

    (void)state;
    det_series_count(series, 1);
    det_series_count(series, 41);
    assert_metric(
        metrics, "detent_transitions_total{machine=\"order\",state=\"open\",event=\"pay\","
                 "outcome=\"goto\"} 42");
    assert_metric(metrics, "# TYPE detent_transitions_total counter");
    gauge = SERIES(metrics, BACKOFF, "beat");
    det_series_set(gauge, 1500 * DET_MILLISECOND);
    assert_metric(metrics, "detent_backoff_seconds{task=\"beat\"} 1.5");
    det_series_set(gauge, 1);
    assert_metric(metrics, "detent_backoff_seconds{task=\"beat\"} 0.000000001");
    det_series_set(gauge, 20 * DET_SECOND);
    assert_metric(metrics, "detent_backoff_seconds{task=\"beat\"} 20");
    det_series_set(gauge, 0);
    assert_metric(metrics, "detent_backoff_seconds{task=\"beat\"} 0");
    det_series_move(det_metrics_only(metrics, DET_METRIC_HTTP_CONNECTIONS), 2);
    det_series_move(det_metrics_only(metrics, DET_METRIC_HTTP_CONNECTIONS), -3);
    assert_metric(metrics, "detent_http_connections -1");
    det_metrics_close(metrics);
}

static void a_histogram_counts_each_value_once_and_reports_sums(void **state)
{
    struct det_metrics *metrics = metrics_of(NULL);
    struct det_series *series = det_metrics_only(metrics, DET_METRIC_COMMIT_DURATION);
    struct det_series *batch = det_metrics_only(metrics, DET_METRIC_BATCH_EVENTS);

    (void)state;
    det_series_observe(series, 100 * DET_MICROSECOND); /* a bound belongs to its bucket */
    det_series_observe(series, 100 * DET_MICROSECOND + 1);
    det_series_observe(series, -DET_SECOND);
    det_series_observe(series, 11 * DET_SECOND);
#define DURATION "detent_journal_commit_duration_seconds"
    assert_metric(metrics, DURATION "_bucket{le=\"0.0001\"} 2");
    assert_metric(metrics, DURATION "_bucket{le=\"0.00025\"} 3");
    assert_metric(metrics, DURATION "_bucket{le=\"10\"} 3");
    assert_metric(metrics, DURATION "_bucket{le=\"+Inf\"} 4");
    assert_metric(metrics, DURATION "_sum 11.000200001");
    assert_metric(metrics, DURATION "_count 4");
    det_series_observe(batch, 7);
    assert_metric(metrics, "detent_journal_batch_events_bucket{le=\"4\"} 0");
    assert_metric(metrics, "detent_journal_batch_events_bucket{le=\"8\"} 1");
    assert_metric(metrics, "detent_journal_batch_events_sum 7");
    det_series_observe(SERIES(metrics, STATE_DURATION, "order", "open"), DET_MINUTE);
    assert_metric(
        metrics, "detent_state_duration_seconds_bucket{machine=\"order\",state=\"open\","
                 "le=\"60\"} 1");
    assert_metric(
        metrics, "detent_state_duration_seconds_sum{machine=\"order\",state=\"open\"} 60");
    det_metrics_close(metrics);
}

/* A label value, and how the output shows it. */
static const struct {
    const char *value, *reported;
} hostile[] = {
    { "", "" },
    { "a\"b\\c", "a\\\"b\\\\c" },
    { "two\nlines", "two\\nlines" },
    { "\x1b[31mred\r", "\xEF\xBF\xBD[31mred\xEF\xBF\xBD" },
    { "unit\x1fseparator\x7f", "unit\xEF\xBF\xBDseparator\xEF\xBF\xBD" },
    { "gr\xC3\xBC\xC3\x9F", "gr\xC3\xBC\xC3\x9F" },
    { "\xFF\xC3(", "\xEF\xBF\xBD\xEF\xBF\xBD(" },
    { "x\xC3\xBC\xE2\x82", "x\xC3\xBC\xEF\xBF\xBD\xEF\xBF\xBD" },
    { "}\",le=\"1\"} 7", "}\\\",le=\\\"1\\\"} 7" },
};

static void hostile_values_are_escaped(void **state)
{
    struct det_metrics *metrics = metrics_of(NULL);

    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        char line[512];

        det_series_count(SERIES(metrics, RESTARTS, hostile[i].value), i + 1);
        snprintf(
            line, sizeof line, "detent_restarts_total{task=\"%s\"} %zu", hostile[i].reported,
            i + 1);
        assert_metric(metrics, line);
    }
    /* Values with the same output are the same. */
    assert_ptr_equal(SERIES(metrics, RESTARTS, "a\x01"), SERIES(metrics, RESTARTS, "a\x02"));
    det_metrics_close(metrics);
}

static void long_values_are_cut_between_characters(void **state)
{
    struct det_metrics *metrics = metrics_of(NULL);
    char value[400], line[400];

    (void)state;
    memset(value, 'a', sizeof value);
    value[sizeof value - 1] = '\0';
    memcpy(value + 127, "\xC3\xBC", 2);
    det_series_count(SERIES(metrics, RESTARTS, value), 1);
    snprintf(line, sizeof line, "detent_restarts_total{task=\"%.127s\"} 1", value);
    assert_metric(metrics, line);
    /* A replacement that does not fit is not begun either. */
    memcpy(value + 127, "\x01", 1);
    assert_ptr_equal(
        SERIES(metrics, RESTARTS, value), (value[127] = '\0', SERIES(metrics, RESTARTS, value)));
    det_metrics_close(metrics);
}

static void series_over_the_limit_are_counted_as_other(void **state)
{
    struct det_metrics *metrics = metrics_of(&(struct det_metrics_options){ .series_max = 2 });
    struct det_series *one = SERIES(metrics, RESTARTS, "one");

    (void)state;
    det_series_count(SERIES(metrics, RESTARTS, "two"), 1);
    det_series_count(SERIES(metrics, RESTARTS, "three"), 3);
    det_series_count(SERIES(metrics, RESTARTS, "four"), 4);
    assert_ptr_equal(SERIES(metrics, RESTARTS, "one"), one);
    assert_ptr_equal(SERIES(metrics, RESTARTS, "other"), SERIES(metrics, RESTARTS, "five"));
    assert_metric(metrics, "detent_restarts_total{task=\"other\"} 7");
    assert_metric(metrics, "detent_restarts_total{task=\"two\"} 1");
    assert_metric(metrics, "detent_series_refused_total{metric=\"detent_restarts_total\"} 3");
    (void)SERIES(metrics, SLOT_REJECTED, "1", "x"), (void)SERIES(metrics, SLOT_REJECTED, "2", "x");
    (void)SERIES(metrics, SLOT_REJECTED, "3", "x");
    (void)SERIES(metrics, EVENTS_UNHANDLED, "m", "s", "1");
    (void)SERIES(metrics, EVENTS_UNHANDLED, "m", "s", "2");
    assert_ptr_equal(
        SERIES(metrics, EVENTS_UNHANDLED, "m", "s", "3"),
        SERIES(metrics, EVENTS_UNHANDLED, "other", "other", "other"));
    assert_metric(metrics, "detent_series_refused_total{metric=\"other\"} 1");
    det_metrics_close(metrics);
}

static void count_instances(void *user, struct det_metrics *metrics)
{
    const int *count = user;

    det_metrics_reset(metrics, DET_METRIC_TIMERS_PENDING);
    for (int i = 0; i < *count; i++) {
        char name[16];

        snprintf(name, sizeof name, "m%d", i);
        det_series_move(SERIES(metrics, TIMERS_PENDING, name), 10 + i);
    }
}

static void recomputed_gauges_hide_removed_series(void **state)
{
    struct det_metrics *metrics = metrics_of(&(struct det_metrics_options){ .series_max = 2 });
    int count = 4;
    char *text;

    (void)state;
    det_metrics_change(metrics, count_instances, &count);
    assert_metric(metrics, "detent_timers_pending{machine=\"m1\"} 11");
    assert_metric(metrics, "detent_timers_pending{machine=\"other\"} 25");
    count = 1;
    det_metrics_change(metrics, count_instances, &count);
    text = scrape_as(metrics, DET_METRICS_TEXT);
    assert_non_null(strstr(text, "detent_timers_pending{machine=\"m0\"} 10\n"));
    assert_null(strstr(text, "m1"));
    assert_null(strstr(text, "machine=\"other\""));
    free(text);
    det_metrics_close(metrics);
}

static void openmetrics_has_its_own_names_units_and_end(void **state)
{
    struct det_metrics *metrics = metrics_of(NULL);
    char *text;

    (void)state;
    det_series_count(SERIES(metrics, RESTARTS, "beat"), 5);
    det_series_observe(SERIES(metrics, STATE_DURATION, "order", "open"), DET_SECOND);
    text = scrape_as(metrics, DET_METRICS_OPEN);
    assert_non_null(strstr(text, "# TYPE detent_restarts counter\n"));
    assert_non_null(strstr(text, "\ndetent_restarts_total{task=\"beat\"} 5\n"));
    assert_non_null(strstr(text, "# UNIT detent_state_duration_seconds seconds\n"));
    assert_non_null(strstr(text, "le=\"1.0\"} 1\n"));
    assert_non_null(strstr(text, "le=\"0.001\"} 0\n"));
    assert_true(ends_with(text, "\n# EOF\n"));
    free(text);
    det_metrics_close(metrics);
    assert_int_equal(det_metrics_format_wanted(NULL), DET_METRICS_TEXT);
    assert_int_equal(det_metrics_format_wanted("text/plain;version=0.0.4"), DET_METRICS_TEXT);
    assert_int_equal(
        det_metrics_format_wanted("application/openmetrics-text;version=1.0.0,*/*;q=0.1"),
        DET_METRICS_OPEN);
    assert_non_null(strstr(det_metrics_content_type(DET_METRICS_TEXT), "version=0.0.4"));
    assert_non_null(strstr(det_metrics_content_type(DET_METRICS_OPEN), "openmetrics"));
}

/* Every metric, with hostile values in all labels. */
static void fill_all(struct det_metrics *metrics)
{
    for (size_t i = 0; i < DET_METRIC_COUNT; i++) {
        enum det_metric metric = (enum det_metric)i;
        const struct det_metric_info *info = det_metric_info(metric);
        size_t rounds = info->labels[0] ? sizeof hostile / sizeof *hostile : 1;

        for (size_t k = 0; k < rounds; k++) {
            const char *values[DET_LABELS_MAX];
            struct det_series *series;

            for (size_t v = 0; v < DET_LABELS_MAX; v++)
                values[v] = hostile[(k + v) % (sizeof hostile / sizeof *hostile)].value;
            series = info->labels[0] ? det_metrics_series(metrics, metric, values)
                                     : det_metrics_only(metrics, metric);
            if (info->kind == DET_METRIC_HISTOGRAM)
                det_series_observe(series, DET_SECOND + (int64_t)k);
            else if (info->kind == DET_METRIC_COUNTER)
                det_series_count(series, k);
            else
                det_series_set(series, (int64_t)k - 1);
        }
    }
}

/* Output of promtool for a file, which must be empty. */
static int promtool(const char *input, const char *printed)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        if (!freopen(input, "r", stdin) || !freopen(printed, "w", stdout) || dup2(1, 2) < 0)
            _exit(126);
        execlp("promtool", "promtool", "check", "metrics", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void promtool_accepts_the_metrics(void **state)
{
    struct det_metrics *metrics = metrics_of(NULL);
    char *folder = det_test_folder(), *text, *words, input[512], printed[512];
    size_t size;
    int status;

    (void)state;
    fill_all(metrics);
    text = scrape_as(metrics, DET_METRICS_TEXT);
    snprintf(input, sizeof input, "%s/metrics", folder);
    snprintf(printed, sizeof printed, "%s/said", folder);
    det_test_write_file(input, text, strlen(text));
    status = promtool(input, printed);
    words = det_test_read_file(printed, &size);
    if (status != 0 || size > 0)
        fail_msg("promtool: %d\n%s", status, words);
    /* It does find things. */
    det_test_write_file(input, "detent_x{a=\"1} 2\n", 17);
    assert_int_not_equal(promtool(input, printed), 0);
    free(words);
    free(text);
    det_test_folder_remove(folder);
    det_metrics_close(metrics);
}

static int count_with_failures(struct det_test_memory *memory, void *argument)
{
    struct det_metrics *metrics = NULL;
    struct det_buffer buffer;
    int r = det_metrics_open(
        &(struct det_metrics_options){ .allocator = &memory->allocator }, &metrics);

    (void)argument;
    if (r < 0)
        return r;
    det_series_count(SERIES(metrics, RESTARTS, "beat"), 1);
    det_series_observe(SERIES(metrics, STATE_DURATION, "order", "open"), 1);
    /* Without memory no count is lost: it is counted as "other". */
    assert_true(
        has_metric(metrics, "detent_restarts_total{task=\"beat\"} 1") ||
        has_metric(metrics, "detent_restarts_total{task=\"other\"} 1"));
    det_buffer_init(&buffer, &memory->allocator);
    det_metrics_write(metrics, DET_METRICS_TEXT, &buffer);
    r = det_buffer_status(&buffer);
    det_buffer_deinit(&buffer);
    det_metrics_close(metrics);
    return r;
}

static void out_of_memory_counts_values_as_other(void **state)
{
    (void)state;
    det_test_each_failure(count_with_failures, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_say_kind_and_unit),
        cmocka_unit_test(the_documentation_has_each_metric_as_it_is_and_no_other),
        cmocka_unit_test(only_metrics_without_labels_are_shown_from_the_start),
        cmocka_unit_test(equal_label_values_share_a_series),
        cmocka_unit_test(counters_and_gauges_are_reported_with_their_labels),
        cmocka_unit_test(a_histogram_counts_each_value_once_and_reports_sums),
        cmocka_unit_test(hostile_values_are_escaped),
        cmocka_unit_test(long_values_are_cut_between_characters),
        cmocka_unit_test(series_over_the_limit_are_counted_as_other),
        cmocka_unit_test(recomputed_gauges_hide_removed_series),
        cmocka_unit_test(openmetrics_has_its_own_names_units_and_end),
        cmocka_unit_test(promtool_accepts_the_metrics),
        cmocka_unit_test(out_of_memory_counts_values_as_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
