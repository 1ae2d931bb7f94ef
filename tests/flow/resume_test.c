/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* resume_test.c - a run in a folder: continued after each kind of end, and begun again after it has
 * completed. */
/* test: threads */
#include "flow/flow_test.h"

static char *folder;

static struct bed *bed_in_folder(uint64_t rows)
{
    static char url[512];
    struct bed *bed = new_bed(rows);

    snprintf(url, sizeof url, "file:%s/line", folder);
    bed->options.journal = url;
    bed->options.durability = DET_JOURNAL_OS;
    return bed;
}

static int set_up(void **state)
{
    (void)state;
    folder = det_test_folder();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    det_test_folder_remove(folder);
    return 0;
}

static void a_completed_run_is_followed_by_the_next(void **state)
{
    (void)state;
    for (uint64_t run = 1; run <= 3; run++) {
        struct bed *bed = bed_in_folder(1000);

        open_bed(bed);
        assert_int_equal(det_pipeline_run_number(bed->pipeline), run);
        assert_int_equal(det_pipeline_wait(bed->pipeline, DET_NEVER, &bed->end), 0);
        assert_int_equal(bed->end.outcome, DET_PIPELINE_COMPLETED);
        assert_got(bed, 1, 1000);
        close_bed(bed);
        free(bed);
    }
}

/* The sink has got this many rows. */
static void wait_for(struct bed *bed, uint64_t rows)
{
    struct det_stage_status stages[3];
    size_t stage_count, edge_count;

    do {
        stage_count = 3;
        edge_count = 0;
        assert_int_equal(
            det_pipeline_status(bed->pipeline, stages, &stage_count, NULL, &edge_count), 0);
        assert_int_equal(det_world_sleep(det_world_real(), DET_MICROSECOND), 0);
    } while (stages[2].rows_in < rows);
}

static void a_drained_run_continues_where_it_was(void **state)
{
    uint64_t got = 0;

    (void)state;
    for (uint64_t rows = 1000; rows <= 5000; rows += 1000) {
        struct bed *bed = bed_in_folder(rows);

        bed->is_endless = rows < 5000;
        open_bed(bed);
        assert_int_equal(det_pipeline_run_number(bed->pipeline), 1);
        if (bed->is_endless) {
            wait_for(bed, rows);
            assert_int_equal(det_pipeline_drain(bed->pipeline, 0), 0);
        }
        assert_int_equal(det_pipeline_wait(bed->pipeline, DET_NEVER, &bed->end), 0);
        assert_int_equal(
            bed->end.outcome, bed->is_endless ? DET_PIPELINE_STOPPED : DET_PIPELINE_COMPLETED);
        assert_int_equal(bed->end.rows_out, rows);
        assert_got(bed, got + 1, rows);
        got = rows;
        close_bed(bed);
        free(bed);
    }
}

static void a_cancelled_run_loses_and_repeats_nothing(void **state)
{
    uint64_t got = 0;

    (void)state;
    for (int i = 0; i < 20; i++) {
        struct bed *bed = bed_in_folder(20000);

        bed->options.window = 32;
        open_bed(bed);
        wait_for(bed, got + (uint64_t)i);
        assert_int_equal(det_pipeline_cancel(bed->pipeline), 0);
        assert_int_equal(det_pipeline_wait(bed->pipeline, DET_NEVER, &bed->end), 0);
        if (bed->got_count > 0)
            assert_got(bed, got + 1, got + bed->got_count);
        got += bed->got_count;
        assert_int_equal(bed->end.rows_out, got);
        close_bed(bed);
        if (bed->end.outcome == DET_PIPELINE_COMPLETED)
            i = 20;
        free(bed);
    }
}

static void a_failed_run_is_tried_again(void **state)
{
    struct bed *bed = bed_in_folder(1000);

    (void)state;
    bed->fail_at = 500;
    run_bed(bed);
    assert_int_equal(bed->end.outcome, DET_PIPELINE_HAS_FAILED);
    assert_true(bed->got_count < 500);
    bed->fail_at = 0;
    run_bed(bed);
    assert_int_equal(bed->end.outcome, DET_PIPELINE_COMPLETED);
    assert_got(bed, 1, 1000);
    free(bed);
}

static void a_run_of_another_definition_is_refused_with_a_remedy(void **state)
{
    struct bed *bed = bed_in_folder(1000);

    (void)state;
    bed->fail_at = 500;
    run_bed(bed);
    bed->stages[1].name = "other";
    bed->fail_at = 0;
    assert_int_equal(
        det_pipeline_open(&bed->flow, &bed->options, &bed->pipeline, &bed->error),
        DET_ERR_CONFLICT);
    assert_non_null(strstr(bed->error.text, "begin a new run"));
    bed->options.begin_new_run = true;
    bed->got_count = 0;
    run_bed(bed);
    assert_int_equal(bed->end.outcome, DET_PIPELINE_COMPLETED);
    assert_got(bed, 1, 1000);
    free(bed);
}

static void a_folder_that_a_crash_left_is_not_a_run(void **state)
{
    struct det_journal *journal;
    struct bed *bed = bed_in_folder(10);
    char path[512];
    uint64_t at;

    (void)state;
    snprintf(path, sizeof path, "%s/line", folder);
    assert_int_equal(det_world_real()->ops->folder_make(det_world_real(), path), 0);
    snprintf(path, sizeof path, "file:%s/line/000001", folder);
    assert_int_equal(det_journal_open(path, NULL, &journal, NULL), 0);
    assert_int_equal(
        det_journal_append(
            journal, &(struct det_journal_row){ .data = "x", .size = 1 }, 1, &at, NULL),
        0);
    det_journal_close(journal);
    open_bed(bed);
    assert_int_equal(det_pipeline_run_number(bed->pipeline), 2);
    close_bed(bed);
    free(bed);
}

static void a_second_process_is_refused(void **state)
{
    struct bed *bed = bed_in_folder(10), *other = bed_in_folder(10);

    (void)state;
    bed->options.waits_for_run = true;
    open_bed(bed);
    assert_int_equal(
        det_pipeline_open(&other->flow, &other->options, &other->pipeline, &other->error),
        DET_ERR_BUSY);
    other->options.begin_new_run = true;
    assert_int_equal(
        det_pipeline_open(&other->flow, &other->options, &other->pipeline, &other->error),
        DET_ERR_BUSY);
    close_bed(bed);
    free(other);
    free(bed);
}

static void the_log_of_a_long_run_is_released(void **state)
{
    struct bed *bed = new_bed(200000);

    (void)state;
    bed->stages[2].functions = &(const struct det_stage_functions){ .deliver = drop_number };
    bed->options.retain_size = 1;
    open_bed(bed);
    assert_int_equal(det_pipeline_wait(bed->pipeline, DET_NEVER, &bed->end), 0);
    assert_int_equal(bed->end.outcome, DET_PIPELINE_COMPLETED);
    assert_true(det_journal_begin(det_pipeline_journal(bed->pipeline)) > 100000);
    close_bed(bed);
    free(bed);
}

/* With SIM_SEEDS, as in `make nightly`, whole segments are dropped meanwhile. */
static void a_run_whose_log_was_released_is_continued(void **state)
{
    uint64_t rows = getenv("SIM_SEEDS") ? 4000000 : 20000;
    struct bed *bed = bed_in_folder(rows);

    (void)state;
    bed->stages[1] = (struct det_stage){
        .name = "sum",
        .kind = DET_STAGE_STATEFUL,
        .in = { .get = number_record },
        .out = { .get = total_record },
        .state = { .get = total_record },
        .key = "value % 1000",
        .functions = &sum_functions,
    };
    bed->stages[2].in.get = total_record;
    bed->stages[2].functions = &keep_total_functions;
    bed->options.retain_size = 1;
    for (uint64_t part = 1; part <= 4; part++) {
        bed->fail_at = part < 4 ? part * rows / 4 : 0;
        run_bed(bed);
        assert_int_equal(
            bed->end.outcome, part < 4 ? DET_PIPELINE_HAS_FAILED : DET_PIPELINE_COMPLETED);
    }
    if (rows > 1000000) {
        struct det_journal *journal;
        char url[512];

        snprintf(url, sizeof url, "file:%s/line/000001", folder);
        assert_int_equal(det_journal_open(url, NULL, &journal, NULL), 0);
        assert_true(det_journal_begin(journal) > 1);
        det_journal_close(journal);
    }
    assert_int_equal(bed->got_count, 1000);
    for (size_t i = 0; i < bed->got_count; i++)
        assert_int_equal(bed->positions[i], rows / 1000);
    free(bed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_completed_run_is_followed_by_the_next),
        TEST(a_drained_run_continues_where_it_was),
        TEST(a_cancelled_run_loses_and_repeats_nothing),
        TEST(a_failed_run_is_tried_again),
        TEST(a_run_of_another_definition_is_refused_with_a_remedy),
        TEST(a_folder_that_a_crash_left_is_not_a_run),
        TEST(a_second_process_is_refused),
        TEST(the_log_of_a_long_run_is_released),
        TEST(a_run_whose_log_was_released_is_continued),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
