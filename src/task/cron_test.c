/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* cron_test.c - expressions as they are read: what they mean, and what is said of mistakes. */
#include <detent/driver/schedule.h>

#include "task/cron.h"

#include "lib/test.h"

#define ALL(least, most) (((UINT64_C(2) << ((most) - (least))) - 1) << (least))
#define BIT(n)           (UINT64_C(1) << (n))

static struct det_cron parse(const char *text)
{
    struct det_error error = { 0 };
    struct det_cron cron;

    if (det_cron_parse(text, &cron, &error) < 0)
        fail_msg("'%s': %s", text, error.text);
    return cron;
}

static void expect_equal(const char *a, const char *b)
{
    struct det_cron x = parse(a), y = parse(b);

    assert_true(x.seconds == y.seconds && x.minutes == y.minutes && x.hours == y.hours);
    assert_true(x.days == y.days && x.months == y.months && x.weekdays == y.weekdays);
    assert_true(x.is_any_day == y.is_any_day && x.is_any_weekday == y.is_any_weekday);
}

static void stars_are_everything_at_second_zero(void **state)
{
    struct det_cron cron = parse("* * * * *");

    (void)state;
    assert_true(cron.seconds == 1);
    assert_true(cron.minutes == ALL(0, 59));
    assert_true(cron.hours == ALL(0, 23));
    assert_true(cron.days == ALL(1, 31));
    assert_true(cron.months == ALL(1, 12));
    assert_true(cron.weekdays == ALL(0, 6));
    assert_true(cron.is_any_day && cron.is_any_weekday);
    assert_true(parse("* * * * * *").seconds == ALL(0, 59));
}

static void numbers_ranges_lists_and_steps_are_bits(void **state)
{
    struct det_cron cron = parse("5 1-3 1,15,31 */5 2-6/2");

    (void)state;
    assert_true(cron.minutes == BIT(5));
    assert_true(cron.hours == (BIT(1) | BIT(2) | BIT(3)));
    assert_true(cron.days == (BIT(1) | BIT(15) | BIT(31)));
    assert_true(cron.months == (BIT(1) | BIT(6) | BIT(11)));
    assert_true(cron.weekdays == (BIT(2) | BIT(4) | BIT(6)));
    assert_false(cron.is_any_day || cron.is_any_weekday);
    cron = parse("0-59/59 7-8,*/6,9 * * *");
    assert_true(cron.minutes == (BIT(0) | BIT(59)));
    assert_true(cron.hours == (BIT(0) | BIT(6) | BIT(7) | BIT(8) | BIT(9) | BIT(12) | BIT(18)));
    cron = parse("1-1 * * * *");
    assert_true(cron.minutes == BIT(1));
}

static void a_star_in_a_day_field_makes_it_any_day(void **state)
{
    struct det_cron cron = parse("0 0 */2 * mon");

    (void)state;
    assert_true(cron.is_any_day && !cron.is_any_weekday);
    cron = parse("0 0 1 * 1,*/3");
    assert_true(!cron.is_any_day && cron.is_any_weekday);
}

static void names_are_numbers(void **state)
{
    (void)state;
    expect_equal("0 0 * jan,Feb,DEC *", "0 0 * 1,2,12 *");
    expect_equal("0 0 * mar-Sep/3 *", "0 0 * 3-9/3 *");
    expect_equal("0 0 * * SUN,mon,Sat", "0 0 * * 0,1,6");
    expect_equal("0 0 * * mon-fri", "0 0 * * 1-5");
    expect_equal("0 0 * apr,may,jun,jul,aug,oct,nov tue-thu", "0 0 * 4-8,10-11 2-4");
}

static void sunday_is_the_first_and_the_last_day(void **state)
{
    (void)state;
    expect_equal("0 0 * * 7", "0 0 * * 0");
    expect_equal("0 0 * * 5-7", "0 0 * * 0,5,6");
    expect_equal("0 0 * * fri-sun", "0 0 * * 0,5,6");
    expect_equal("0 0 * * sun-sun", "0 0 * * 0");
    expect_equal("0 0 * * sun-tue", "0 0 * * 0-2");
    expect_equal("0 0 * * 0-7", "0 0 * * 0-6");
    assert_true(parse("0 0 * * */2").weekdays == (BIT(0) | BIT(2) | BIT(4) | BIT(6)));
}

static void shorthands_are_expressions(void **state)
{
    (void)state;
    expect_equal("@yearly", "0 0 1 1 *");
    expect_equal("@monthly", "0 0 1 * *");
    expect_equal("@weekly", "0 0 * * 0");
    expect_equal("@daily", "0 0 * * *");
    expect_equal(" @hourly\t", "0 * * * *");
}

static void blanks_separate_and_surround(void **state)
{
    (void)state;
    expect_equal("  \t1 2\t\t3  4 5 ", "1 2 3 4 5");
}

struct mistake {
    const char *text;
    uint64_t offset;
    const char *words;
};

static const struct mistake mistakes[] = {
    { "", 0, "this one has 0" },
    { "   ", 3, "five fields" },
    { "* * * *", 7, "this one has 4" },
    { "* * * * * * *", 12, "this one has at least 7" },
    { "60 * * * *", 0, "60 is no minute; that is a number from 0 to 59" },
    { "* 24 * * *", 2, "24 is no hour" },
    { "* * 0 * *", 4, "0 is no day of the month; that is a number from 1 to 31" },
    { "* * * 13 *", 6, "13 is no month" },
    { "* * * * 8", 8, "8 is no day of the week" },
    { "60 * * * * *", 0, "60 is no second" },
    { "99999999999999999999999999 * * * *", 0, "99999999999999999999 is no minute" },
    { "1-60 * * * *", 2, "60 is no minute" },
    { "- * * * *", 0, "the number of a minute is expected here" },
    { "1- * * * *", 2, "expected here: 0 to 59" },
    { "1, * * * *", 2, "expected here" },
    { ",1 * * * *", 0, "expected here" },
    { "-1 * * * *", 0, "expected here" },
    { "1--2 * * * *", 2, "expected here" },
    { "*/0 * * * *", 2, "0 is no step; that is a number from 1 to 59" },
    { "*/90 * * * *", 2, "90 is no step" },
    { "*/ * * * *", 2, "the number of a step" },
    { "*/x * * * *", 2, "the number of a step" },
    { "5/15 * * * *", 1, "a step needs a range before it; write 5-59/n or */n" },
    { "** * * * *", 1, "a field is a list of" },
    { "1-2-3 * * * *", 3, "a field is a list of" },
    { "*/2/3 * * * *", 3, "a field is a list of" },
    { "*-5 * * * *", 1, "a field is a list of" },
    { "1x * * * *", 1, "a field is a list of" },
    { "? * * * *", 0, "expected here" },
    { "1\n* * * * *", 1, "a field is a list of" },
    { "* 22-2 * * *", 2, "the range goes backwards; write 22-23,0-2" },
    { "* * * nov-feb *", 6, "write 11-12,1-2" },
    { "* * * * 5-0", 8, "backwards" },
    { "mon * * * *", 0, "the minute is a number from 0 to 59, not a word" },
    { "* * L * *", 4, "not a word" },
    { "* * * * monday", 8, "write 'mon', the first three letters" },
    { "* * * * mo", 8, "'mo' is no day of the week; those are sun mon" },
    { "* * * * xyz", 8, "'xyz' is no day of the week" },
    { "* * * january *", 6, "write 'jan'" },
    { "* * * sun *", 6, "'sun' is no month; those are jan feb" },
    { "* * * monmonmonmonmonmonmonmon *", 6, "'monmonmonmonmonmonmo' is no month" },
    { "0 0 30 2 *", 4, "nothing would ever match" },
    { "0 0 31 4,6,9,11 *", 4, "no month of these has such a day" },
    { "0 0 30,31 feb */2", 4, "nothing would ever match" },
    { "0 0 0 30 2 *", 6, "nothing would ever match" },
    { "@reboot", 0, "@yearly @monthly @weekly @daily @hourly" },
    { "  @", 2, "@yearly" },
    { "@dailyy", 0, "@daily" },
    { "@daily *", 7, "nothing stands behind @daily" },
};

static void mistakes_have_a_place_and_a_remedy(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        const struct mistake *mistake = &mistakes[i];
        struct det_cron cron = { .seconds = 99 };
        struct det_error error = { 0 };

        assert_int_equal(det_cron_parse(mistake->text, &cron, &error), DET_ERR_MALFORMED);
        assert_int_equal(error.code, DET_ERR_MALFORMED);
        if (error.offset != mistake->offset || !strstr(error.text, mistake->words))
            fail_msg("'%s': %s", mistake->text, error.text);
        assert_true(cron.seconds == 99);
        assert_int_equal(det_cron_parse(mistake->text, &cron, NULL), DET_ERR_MALFORMED);
    }
}

static void days_that_come_now_and_then_are_taken(void **state)
{
    (void)state;
    (void)parse("0 0 29 2 *");
    (void)parse("0 0 31 4,5 *");
    /* Either matches, so the Mondays of February do. */
    (void)parse("0 0 30 2 mon");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stars_are_everything_at_second_zero),
        cmocka_unit_test(numbers_ranges_lists_and_steps_are_bits),
        cmocka_unit_test(a_star_in_a_day_field_makes_it_any_day),
        cmocka_unit_test(names_are_numbers),
        cmocka_unit_test(sunday_is_the_first_and_the_last_day),
        cmocka_unit_test(shorthands_are_expressions),
        cmocka_unit_test(blanks_separate_and_surround),
        cmocka_unit_test(mistakes_have_a_place_and_a_remedy),
        cmocka_unit_test(days_that_come_now_and_then_are_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
