/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rows_test.c - the list of rows and extras. */
#include "lib/test.h"

#include "machine/rows.h"

static void check_kind(const struct det_row_kind *kind)
{
    size_t length = strlen(kind->name);

    assert_true(kind->least <= kind->most);
    assert_true(kind->columns <= 3);
    assert_true(strlen(kind->help) > 0 && strchr(kind->help, '\n') == NULL);
    /* The form shows how the row is written, so it begins with its name. */
    assert_int_equal(strncmp(kind->form, kind->name, length), 0);
}

static void every_row_and_extra_is_found_by_its_name(void **state)
{
    (void)state;
    for (int i = 0; i < DET_ROW_COUNT; i++) {
        const struct det_row_kind *kind = det_row_kind((enum det_row)i);

        check_kind(kind);
        assert_int_equal(det_row_find(kind->name, strlen(kind->name)), i);
        assert_int_equal(det_extra_find(kind->name, strlen(kind->name)), -1);
    }
    for (int i = 0; i < DET_EXTRA_COUNT; i++) {
        const struct det_row_kind *kind = det_extra_kind((enum det_extra)i);

        check_kind(kind);
        assert_int_equal(det_extra_find(kind->name, strlen(kind->name)), i);
        assert_int_equal(det_row_find(kind->name, strlen(kind->name)), -1);
    }
}

static void unknown_row_names_are_not_found(void **state)
{
    (void)state;
    assert_int_equal(det_row_find("STAT", 4), -1);
    assert_int_equal(det_row_find("STATES", 6), -1);
    assert_int_equal(det_row_find("", 0), -1);
    assert_int_equal(det_row_find("STATES", 5), DET_ROW_STATE);
}

static void nearest_row_name_is_found(void **state)
{
    (void)state;
    assert_int_equal(det_row_nearest_in(DET_LANGUAGE_MACHINE, "STAET"), DET_ROW_STATE);
    assert_int_equal(det_row_nearest_in(DET_LANGUAGE_MACHINE, "override"), DET_ROW_OVERRIDE);
    assert_int_equal(det_row_nearest_in(DET_LANGUAGE_MACHINE, "TRANSITION"), -1);
}

static void record_rows_are_marked(void **state)
{
    (void)state;
    assert_true(det_row_kind(DET_ROW_FIELD)->is_of_records);
    assert_true(det_row_kind(DET_ROW_END)->is_of_records);
    assert_false(det_row_kind(DET_ROW_STATE)->is_of_records);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_and_extra_is_found_by_its_name),
        cmocka_unit_test(unknown_row_names_are_not_found),
        cmocka_unit_test(nearest_row_name_is_found),
        cmocka_unit_test(record_rows_are_marked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
