/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* journal_source_test.c - rows of a plain journal, and of a stage of another flow. */
#include "connectors/harness_test.h"

static const struct det_stage stage = { .out = { .get = text_row_record } };
static char *folder;
static char settings[600];
static struct det_journal *writer;

static int open_writer(void **state)
{
    char url[512];

    (void)state;
    folder = det_test_folder();
    (void)snprintf(url, sizeof url, "file:%s/log", folder);
    (void)snprintf(settings, sizeof settings, "{path: %s/log, format: text}", folder);
    assert_int_equal(det_journal_open(url, NULL, &writer, NULL), 0);
    return 0;
}

static int close_writer(void **state)
{
    (void)state;
    det_journal_close(writer);
    det_test_folder_remove(folder);
    return 0;
}

static void append_text(const char *stream, const char *text)
{
    struct det_journal_row row = { .data = text, .size = (uint32_t)strlen(text) };
    uint64_t position;

    assert_int_equal(det_journal_stream(writer, stream, &row.stream, NULL), 0);
    assert_int_equal(det_journal_append(writer, &row, 1, &position, NULL), 0);
    assert_int_equal(det_journal_wait(writer, position, DET_NEVER), 0);
}

static const char *text_of(const struct harness *harness, size_t index)
{
    return ((const struct text_row *)harness_row(harness, index))->text;
}

static void appended_rows_are_followed(void **state)
{
    struct harness harness;

    (void)state;
    append_text("main", "one");
    append_text("other", "no");
    harness_open(&harness, &journal_source, stage, settings);
    (void)harness_run_until(&harness, 1);
    append_text("main", "two");
    (void)harness_run_until(&harness, 2);
    assert_string_equal(text_of(&harness, 1), "two");
    harness_stop(&harness);
    append_text("main", "three");
    assert_int_equal(harness_start(&harness), 0);
    (void)harness_run_until(&harness, 3);
    assert_int_equal(harness.row_count, 3);
    assert_string_equal(text_of(&harness, 2), "three");
    harness_deinit(&harness);
}

static void a_journal_is_read_once(void **state)
{
    struct harness harness;
    char once[700];

    (void)state;
    append_text("a", "{\"text\":\"x\"}");
    append_text("a", "{\"txt\":\"x\"}");
    append_text("a", "{\"text\":\"y\"}");
    (void)snprintf(
        once, sizeof once, "{path: %s/log, stream: a, format: json, once: true}", folder);
    harness_open(&harness, &journal_source, stage, once);
    harness.room = 1;
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 2);
    assert_int_equal(harness.error_count, 1);
    assert_non_null(strstr(harness.errors[0], ": text_row.text: the field is missing"));
    harness_deinit(&harness);
}

/* A stage of a flow: records, then its end. */
static void a_stage_of_another_flow_is_read(void **state)
{
    static const struct det_stage stages[] = {
        { .name = "make",
          .kind = DET_STAGE_SOURCE,
          .use = "generate",
          .settings = "{count: 5}",
          .out = { .get = text_row_record } },
        { .name = "drop", .kind = DET_STAGE_SINK, .use = "null", .in = { .get = text_row_record } },
    };
    static const struct det_edge edges[] = { { 0, 1, 0 } };
    static const struct det_flow flow = { "made", stages, edges, 2, 1 };
    char url[600];
    struct det_pipeline_options options = { .journal = url, .connectors = det_connectors_all() };
    struct det_pipeline_end end;
    struct det_pipeline *pipeline;
    struct harness harness;

    (void)state;
    (void)snprintf(url, sizeof url, "file:%s/made", folder);
    assert_int_equal(det_pipeline_open(&flow, &options, &pipeline, NULL), 0);
    assert_int_equal(det_pipeline_wait(pipeline, DET_NEVER, &end), 0);
    det_pipeline_close(pipeline);
    (void)snprintf(settings, sizeof settings, "{path: %s/made, stream: make, once: true}", folder);
    harness_open(&harness, &journal_source, stage, settings);
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 5);
    assert_int_equal(harness.error_count, 0);
    assert_string_equal(text_of(&harness, 4), "5");
    harness_deinit(&harness);
}

static void wrong_settings_are_refused(void **state)
{
    struct harness harness;

    (void)state;
    harness_refuses(&journal_source, stage, "{}", "path is missing");
    harness_refuses(&journal_source, stage, "{path: a, format: xml}", "format: unknown");
    harness_init(&harness, &journal_source, stage, "{path: /none/such}");
    assert_true(harness_start(&harness) < 0);
    assert_true(*harness.failure.text != 0);
    harness_deinit(&harness);
}

static int read_once(struct det_test_memory *memory, void *argument)
{
    struct harness harness;
    int r;

    harness_init(&harness, &journal_source, stage, argument);
    harness.call.allocator = &memory->allocator;
    r = harness_start(&harness);
    if (r == 0)
        r = harness_run_until(&harness, 1);
    harness_deinit(&harness);
    return r > 0 ? 0 : r;
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    append_text("main", "one");
    det_test_each_failure(read_once, settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(appended_rows_are_followed, open_writer, close_writer),
        cmocka_unit_test_setup_teardown(a_journal_is_read_once, open_writer, close_writer),
        cmocka_unit_test_setup_teardown(a_stage_of_another_flow_is_read, open_writer, close_writer),
        cmocka_unit_test(wrong_settings_are_refused),
        cmocka_unit_test_setup_teardown(
            every_failing_allocation_is_reported, open_writer, close_writer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
