/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* intensity_test.c - restarts in a window, against a list that is counted from end to end. */
#include <detent/driver/policy.h>
#include <detent/policy.h>

#include "lib/test.h"

static struct det_intensity_window *open_window(uint32_t count, det_time span)
{
    struct det_intensity intensity = { .count = count, .window = span };
    struct det_intensity_window *window = NULL;

    assert_int_equal(det_intensity_open(&intensity, NULL, &window, NULL), 0);
    return window;
}

static void intensity_allows_its_limit_and_refuses_one_more(void **state)
{
    struct det_intensity_window *window = open_window(0, 0);

    (void)state;
    assert_int_equal(det_intensity_count(window, 0), 0);
    for (uint32_t i = 0; i < 5; i++) {
        assert_true(det_intensity_note(window, i * DET_SECOND));
        assert_int_equal(det_intensity_count(window, i * DET_SECOND), i + 1);
    }
    assert_false(det_intensity_note(window, 9 * DET_SECOND));
    assert_int_equal(det_intensity_count(window, 9 * DET_SECOND), 5);
    det_intensity_close(window);
}

static void restart_is_counted_until_the_window_passes(void **state)
{
    struct det_intensity_window *window = open_window(1, 10 * DET_SECOND);

    (void)state;
    assert_true(det_intensity_note(window, 7));
    assert_int_equal(det_intensity_count(window, 7), 1);
    assert_int_equal(det_intensity_count(window, 10 * DET_SECOND + 6), 1);
    assert_int_equal(det_intensity_count(window, 10 * DET_SECOND + 7), 0);
    assert_true(det_intensity_note(window, 10 * DET_SECOND + 7));
    assert_false(det_intensity_note(window, 20 * DET_SECOND + 6));
    /* The refused one counts: it was a restart. */
    assert_false(det_intensity_note(window, 30 * DET_SECOND + 5));
    assert_true(det_intensity_note(window, 40 * DET_SECOND + 5));
    det_intensity_close(window);
}

static void endless_intensity_window_never_forgets(void **state)
{
    struct det_intensity_window *window = open_window(2, DET_NEVER);

    (void)state;
    assert_true(det_intensity_note(window, 0));
    assert_true(det_intensity_note(window, 1));
    assert_int_equal(det_intensity_count(window, DET_NEVER - 1), 2);
    assert_false(det_intensity_note(window, DET_NEVER - 1));
    det_intensity_close(window);
}

static void clearing_forgets_all(void **state)
{
    struct det_intensity_window *window = open_window(3, DET_SECOND);

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(det_intensity_note(window, 5), i < 3);
    det_intensity_clear(window);
    assert_int_equal(det_intensity_count(window, 5), 0);
    /* Times may begin again, too. */
    for (int i = 0; i < 4; i++)
        assert_int_equal(det_intensity_note(window, 1), i < 3);
    det_intensity_close(window);
}

/* All restarts so far, and where those begin that still count. */
struct model {
    det_time times[4000];
    size_t count, first;
};

static size_t counted(struct model *model, det_time now, det_time span)
{
    while (model->first < model->count && now - model->times[model->first] >= span)
        model->first++;
    return model->count - model->first;
}

/* Bursts, and now and then a long pause. */
static det_time random_pause(uint64_t *seed)
{
    uint64_t most = det_test_random(seed) % 16 ? 4 : 500;

    return (det_time)(det_test_random(seed) % most);
}

static void run_model(struct model *model, uint32_t limit, det_time span, uint64_t seed)
{
    struct det_intensity_window *window = open_window(limit, span);
    det_time now = 0;

    *model = (struct model){ 0 };
    for (size_t i = 0; i < 4000; i++) {
        size_t before;

        now += random_pause(&seed);
        before = counted(model, now, span);
        assert_int_equal(det_intensity_count(window, now), before < limit ? before : limit);
        assert_int_equal(det_intensity_note(window, now), before < limit);
        model->times[model->count++] = now;
    }
    det_intensity_close(window);
}

static void intensity_window_matches_a_list_of_all_restarts(void **state)
{
    static struct model model;
    uint64_t seed = 3;

    (void)state;
    for (int i = 0; i < 200; i++) {
        uint32_t limit = 1 + (uint32_t)(det_test_random(&seed) % 60);
        det_time span = 1 + (det_time)(det_test_random(&seed) % 400);

        run_model(&model, limit, span, seed);
    }
}

/* `count` in the window, one each nanosecond, around the ring and a half. */
static void fill(uint32_t count)
{
    struct det_intensity_window *window = open_window(count, (det_time)count);
    det_time now = 0;

    for (; now < (det_time)count * 3 / 2; now++)
        assert_true(det_intensity_note(window, now));
    assert_int_equal(det_intensity_count(window, now - 1), count);
    assert_int_equal(det_intensity_count(window, now), count - 1);
    assert_int_equal(det_intensity_count(window, now + count / 2 - 1), count - count / 2);
    assert_int_equal(det_intensity_count(window, now + count), 0);
    assert_true(det_intensity_note(window, now));
    assert_false(det_intensity_note(window, now));
    det_intensity_close(window);
}

static void large_restart_counts_are_exact(void **state)
{
    (void)state;
    for (uint32_t count = 100; count <= DET_INTENSITY_MAX; count *= 10)
        fill(count);
}

static void invalid_intensity_is_refused(void **state)
{
    const struct det_intensity many = { .count = DET_INTENSITY_MAX + 1 };
    const struct det_intensity negative = { .window = -1 };
    struct det_intensity_window *window = NULL;
    struct det_error error = { 0 };

    (void)state;
    assert_int_equal(det_intensity_open(&many, NULL, &window, &error), DET_ERR_INVALID);
    assert_non_null(strstr(error.text, "1000001 restarts; at most 1000000"));
    assert_int_equal(det_intensity_open(&negative, NULL, &window, &error), DET_ERR_INVALID);
    assert_non_null(strstr(error.text, "negative"));
    assert_null(window);
    det_intensity_close(NULL);
}

static int open_and_note(struct det_test_memory *memory, void *argument)
{
    struct det_intensity_window *window = NULL;
    struct det_error error = { 0 };
    int r = det_intensity_open(argument, &memory->allocator, &window, &error);

    if (r < 0) {
        assert_null(window);
        assert_int_equal(error.code, DET_ERR_NO_MEMORY);
        return r;
    }
    assert_true(det_intensity_note(window, 1));
    det_intensity_close(window);
    return 0;
}

static void intensity_window_survives_every_failed_allocation(void **state)
{
    struct det_intensity intensity = { 0 };

    (void)state;
    det_test_each_failure(open_and_note, &intensity);
}

static void go_back(void *argument)
{
    (void)det_intensity_note(argument, 4);
}

static void intensity_time_going_back_aborts(void **state)
{
    struct det_intensity_window *window = open_window(2, 10);

    (void)state;
    assert_true(det_intensity_note(window, 5));
    assert_true(det_test_aborts(go_back, window, "intensity.c"));
    det_intensity_close(window);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intensity_allows_its_limit_and_refuses_one_more),
        cmocka_unit_test(restart_is_counted_until_the_window_passes),
        cmocka_unit_test(endless_intensity_window_never_forgets),
        cmocka_unit_test(clearing_forgets_all),
        cmocka_unit_test(intensity_window_matches_a_list_of_all_restarts),
        cmocka_unit_test(large_restart_counts_are_exact),
        cmocka_unit_test(invalid_intensity_is_refused),
        cmocka_unit_test(intensity_window_survives_every_failed_allocation),
        cmocka_unit_test(intensity_time_going_back_aborts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
