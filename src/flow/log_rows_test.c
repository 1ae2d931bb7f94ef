/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_rows_test.c - rows of a run's log are read as they were written; anything shorter or longer
 * is an error. */
#include "flow/log_rows.h"

#include "lib/test.h"

static struct det_input_mark marks[] = { { 300, 70000, 299, DET_END_NATURAL },
                                         { 0, 0, 0, DET_END_NONE } };
static const struct det_flow_progress progress = {
    .rows_out = 1000,
    .errors = 3,
    .rejected = 200,
    .end = DET_END_POISON,
    .state_rows = UINT64_MAX,
    .state_from = 127,
    .period = INT64_MAX,
    .inputs = marks,
    .input_count = 2,
    .cursor = "cursor",
    .cursor_size = 6,
};

static void assert_progress(const struct det_flow_progress *read)
{
    assert_int_equal(read->rows_out, progress.rows_out);
    assert_int_equal(read->errors, progress.errors);
    assert_int_equal(read->rejected, progress.rejected);
    assert_int_equal(read->end, progress.end);
    assert_true(read->state_rows == progress.state_rows);
    assert_int_equal(read->state_from, progress.state_from);
    assert_true(read->period == progress.period);
    assert_int_equal(read->input_count, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read->inputs[i].sequence, marks[i].sequence);
        assert_int_equal(read->inputs[i].position, marks[i].position);
        assert_int_equal(read->inputs[i].rows, marks[i].rows);
        assert_int_equal(read->inputs[i].end, marks[i].end);
    }
    assert_int_equal(read->cursor_size, 6);
    assert_memory_equal(read->cursor, "cursor", 6);
}

static void progress_is_read_as_it_was_written(void **state)
{
    struct det_input_mark inputs[2];
    struct det_flow_progress read = { .inputs = inputs, .input_capacity = 2 };
    uint8_t data[256];
    size_t size = det_progress_row_write(&progress, data);

    (void)state;
    assert_true(size <= det_progress_row_max(2, 6));
    assert_int_equal(det_progress_row_read(data, size, &read), 0);
    assert_progress(&read);
    for (size_t cut = 0; cut < size; cut++)
        assert_true(det_progress_row_read(data, cut, &read) < 0);
    assert_int_equal(det_progress_row_read(data, size + 1, &read), DET_ERR_MALFORMED);
    read.input_capacity = 1;
    assert_int_equal(det_progress_row_read(data, size, &read), DET_ERR_MALFORMED);
    data[0] = 2;
    assert_int_equal(det_progress_row_read(data, size, &read), DET_ERR_VERSION);
}

static void checkpoints_are_read_as_they_were_written(void **state)
{
    struct det_checkpoint_end end = { UINT64_MAX - 1, 7, 512 }, read_end = { 0 };
    struct det_input_mark inputs[2];
    struct det_flow_progress read = { .inputs = inputs, .input_capacity = 2 };
    struct det_view name;
    uint8_t data[256];
    size_t size = det_checkpoint_row_write("stage", &progress, data);

    (void)state;
    assert_true(size <= det_checkpoint_row_max(5, 2, 6));
    assert_int_equal(det_checkpoint_row_read(data, size, &name, &read), 0);
    assert_true(det_view_is(name, "stage"));
    assert_progress(&read);
    size = det_checkpoint_end_row_write(&end, data);
    assert_true(size <= DET_CHECKPOINT_END_ROW_MAX);
    assert_int_equal(det_checkpoint_end_row_read(data, size, &read_end), 0);
    assert_true(read_end.fingerprint == end.fingerprint && read_end.run == end.run);
    assert_int_equal(read_end.rows, end.rows);
    for (size_t cut = 0; cut < size; cut++)
        assert_true(det_checkpoint_end_row_read(data, cut, &read_end) < 0);
}

static void ends_and_states_are_read_as_they_were_written(void **state)
{
    struct det_state_row row = { det_view_text("key"), 3, 4000, 5, NULL, 0 }, read;
    enum det_end_kind end;
    struct det_view key;
    uint64_t rows;
    uint8_t data[256];
    size_t size = det_end_row_write(DET_END_TRUNCATED, 128, data);

    (void)state;
    assert_int_equal(det_end_row_read(data, size, &end, &rows), 0);
    assert_int_equal(end, DET_END_TRUNCATED);
    assert_int_equal(rows, 128);
    data[0] = DET_END_POISON + 1;
    assert_int_equal(det_end_row_read(data, size, &end, &rows), DET_ERR_MALFORMED);
    data[0] = DET_END_NONE;
    assert_int_equal(det_end_row_read(data, size, &end, &rows), DET_ERR_MALFORMED);
    size = det_state_row_write(&row, data);
    memcpy(data + size, "value", 5);
    assert_int_equal(det_state_row_read(data, size + 5, &read), 0);
    assert_true(det_view_equal(read.key, row.key));
    assert_int_equal(read.position, 4000);
    assert_int_equal(read.state_size, 5);
    assert_memory_equal(read.state, "value", 5);
    for (size_t cut = 0; cut < size; cut++)
        assert_true(det_state_row_read(data, cut, &read) < 0);
    size = det_gone_row_write(row.key, data);
    assert_int_equal(det_gone_row_read(data, size, &key), 0);
    assert_true(det_view_equal(key, row.key));
    assert_true(det_gone_row_read(data, size - 1, &key) < 0);
}

static void facts_are_read_as_they_were_written(void **state)
{
    struct det_flow_fact fact = { .kind = DET_FLOW_FACT_STAGE_FAILED,
                                  .stage = "read",
                                  .reason = "no",
                                  .rows_in = 1,
                                  .rows_out = 2,
                                  .errors = 3 };
    char stage[DET_JOURNAL_NAME_MAX + 1], reason[DET_ERROR_TEXT_MAX];
    struct det_flow_fact read;
    struct det_error error;
    uint8_t data[256];
    struct det_journal_row row = {
        .data = data,
        .size = (uint32_t)det_fact_row_write(&fact, data),
        .kind = DET_ROW_FACT,
        .position = 9,
    };

    (void)state;
    assert_int_equal(det_flow_fact_read(&row, stage, reason, &read, &error), 0);
    assert_int_equal(read.kind, fact.kind);
    assert_string_equal(read.stage, "read");
    assert_string_equal(read.reason, "no");
    assert_int_equal(read.position, 9);
    assert_int_equal(read.errors, 3);
    for (uint32_t size = row.size; row.size-- > 0;)
        assert_true(size > 0 && det_flow_fact_read(&row, stage, reason, &read, &error) < 0);
    row.kind = DET_ROW_DATA;
    assert_int_equal(det_flow_fact_read(&row, stage, reason, &read, &error), DET_ERR_MALFORMED);
    assert_non_null(strstr(error.text, "row 9"));
}

static void names_are_those_of_the_list(void **state)
{
    (void)state;
    assert_string_equal(det_flow_fact_name(DET_FLOW_FACT_COMPLETED), "completed");
    assert_null(det_flow_fact_name((enum det_flow_fact_kind)1000));
    assert_string_equal(det_row_rejection_name(DET_REJECT_RATE_LIMITED), "rate_limited");
    assert_string_equal(det_pipeline_state_name(DET_PIPELINE_ABORT_REQUESTED), "abort_requested");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(progress_is_read_as_it_was_written),
        cmocka_unit_test(checkpoints_are_read_as_they_were_written),
        cmocka_unit_test(ends_and_states_are_read_as_they_were_written),
        cmocka_unit_test(facts_are_read_as_they_were_written),
        cmocka_unit_test(names_are_those_of_the_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
