/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* calendar_test.c - dates against a calendar that only knows how to go to the next day. */
#include "base/calendar.h"
#include "lib/test.h"

static void leap_years_are_every_fourth_but_for_centuries(void **state)
{
    (void)state;
    assert_true(det_is_leap_year(2024));
    assert_true(det_is_leap_year(2000));
    assert_false(det_is_leap_year(1900));
    assert_false(det_is_leap_year(2026));
    assert_int_equal(det_days_in_month(2024, 2), 29);
    assert_int_equal(det_days_in_month(2100, 2), 28);
    assert_int_equal(det_days_in_month(2026, 12), 31);
}

static struct det_date next_day(struct det_date date)
{
    if (++date.day > det_days_in_month(date.year, date.month)) {
        date.day = 1;
        date.month = date.month % 12 + 1;
        date.year += date.month == 1 ? 1 : 0;
    }
    return date;
}

static void each_day_of_2500_years_has_its_date_and_weekday(void **state)
{
    struct det_date date = { 0, 3, 1 };
    int64_t days = det_days_from_date(date);
    int weekday = det_weekday_of(days);

    (void)state;
    assert_true(days == -719468);
    assert_true(det_days_from_date((struct det_date){ 0, 1, 1 }) == days - 60);
    for (; date.year < 2500; days++, date = next_day(date), weekday = (weekday + 1) % 7) {
        struct det_date found = det_date_from_days(days);

        assert_true(det_days_from_date(date) == days);
        assert_int_equal(det_weekday_of(days), weekday);
        assert_true(found.year == date.year && found.month == date.month && found.day == date.day);
    }
}

static void known_days_have_their_weekday(void **state)
{
    (void)state;
    assert_int_equal(det_weekday_of(0), 4);
    assert_int_equal(det_weekday_of(-1), 3);
    assert_int_equal(det_weekday_of(det_days_from_date((struct det_date){ 2000, 2, 29 })), 2);
    assert_int_equal(det_weekday_of(det_days_from_date((struct det_date){ 2026, 11, 15 })), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leap_years_are_every_fourth_but_for_centuries),
        cmocka_unit_test(each_day_of_2500_years_has_its_date_and_weekday),
        cmocka_unit_test(known_days_have_their_weekday),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
