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

static void stars_match_everything_at_second_zero(void **state)
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

static void star_in_a_day_field_means_any_day(void **state)
{
    struct det_cron cron = parse("0 0 */2 * mon");

    (void)state;
    assert_true(cron.is_any_day && !cron.is_any_weekday);
    cron = parse("0 0 1 * 1,*/3");
    assert_true(!cron.is_any_day && cron.is_any_weekday);
}

static void cron_names_equal_their_numbers(void **state)
{
    (void)state;
    expect_equal("0 0 * jan,Feb,DEC *", "0 0 * 1,2,12 *");
    expect_equal("0 0 * mar-Sep/3 *", "0 0 * 3-9/3 *");
    expect_equal("0 0 * * SUN,mon,Sat", "0 0 * * 0,1,6");
    expect_equal("0 0 * * mon-fri", "0 0 * * 1-5");
    expect_equal("0 0 * apr,may,jun,jul,aug,oct,nov tue-thu", "0 0 * 4-8,10-11 2-4");
}

static void sunday_is_day_zero_and_day_seven(void **state)
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

static void cron_shorthands_equal_their_expressions(void **state)
{
    (void)state;
    expect_equal("@yearly", "0 0 1 1 *");
    expect_equal("@monthly", "0 0 1 * *");
    expect_equal("@weekly", "0 0 * * 0");
    expect_equal("@daily", "0 0 * * *");
    expect_equal(" @hourly\t", "0 * * * *");
}

static void cron_fields_are_separated_and_surrounded_by_blanks(void **state)
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
    { "60 * * * *", 0, "the minute is a number from 0 to 59, not 60" },
    { "* 24 * * *", 2, "the hour is a number from 0 to 23, not 24" },
    { "* * 0 * *", 4, "the day of the month is a number from 1 to 31, not 0" },
    { "* * * 13 *", 6, "the month is a number from 1 to 12, not 13" },
    { "* * * * 8", 8, "the day of the week is a number from 0 to 7, not 8" },
    { "60 * * * * *", 0, "the second is a number from 0 to 59, not 60" },
    { "99999999999999999999999999 * * * *", 0, "from 0 to 59, not 99999999999999999999" },
    { "1-60 * * * *", 2, "from 0 to 59, not 60" },
    { "- * * * *", 0, "the number of a minute is expected here" },
    { "1- * * * *", 2, "expected here: 0 to 59" },
    { "1, * * * *", 2, "expected here" },
    { ",1 * * * *", 0, "expected here" },
    { "-1 * * * *", 0, "expected here" },
    { "1--2 * * * *", 2, "expected here" },
    { "*/0 * * * *", 2, "the step is a number from 1 to 59, not 0" },
    { "*/90 * * * *", 2, "the step is a number from 1 to 59, not 90" },
    { "*/ * * * *", 2, "the number of a step" },
    { "*/x * * * *", 2, "the number of a step" },
    { "5/15 * * * *", 1, "a step needs a range before it; write 5-59/n or */n" },
    { "** * * * *", 1, "expected a list of *, a, a-b" },
    { "1-2-3 * * * *", 3, "expected a list of *, a, a-b" },
    { "*/2/3 * * * *", 3, "expected a list of *, a, a-b" },
    { "*-5 * * * *", 1, "expected a list of *, a, a-b" },
    { "1x * * * *", 1, "expected a list of *, a, a-b" },
    { "? * * * *", 0, "expected here" },
    { "1\n* * * * *", 1, "expected a list of *, a, a-b" },
    { "* 22-2 * * *", 2, "the range goes backwards; write 22-23,0-2" },
    { "* * * nov-feb *", 6, "write 11-12,1-2" },
    { "* * * * 5-0", 8, "backwards" },
    { "mon * * * *", 0, "the minute is a number from 0 to 59, not a word" },
    { "* * L * *", 4, "not a word" },
    { "* * * * monday", 8, "write 'mon', the first three letters" },
    { "* * * * mo", 8, "'mo' is not a day of the week; use sun mon" },
    { "* * * * xyz", 8, "'xyz' is not a day of the week" },
    { "* * * january *", 6, "write 'jan'" },
    { "* * * sun *", 6, "'sun' is not a month; use jan feb" },
    { "* * * monmonmonmonmonmonmonmon *", 6, "'monmonmonmonmonmonmo' is not a month" },
    { "0 0 30 2 *", 4, "the expression never matches" },
    { "0 0 31 4,6,9,11 *", 4, "none of these months has such a day" },
    { "0 0 30,31 feb */2", 4, "the expression never matches" },
    { "0 0 0 30 2 *", 6, "the expression never matches" },
    { "@reboot", 0, "@yearly @monthly @weekly @daily @hourly" },
    { "  @", 2, "@yearly" },
    { "@dailyy", 0, "@daily" },
    { "@daily *", 7, "remove the text after @daily" },
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

static void rare_cron_days_are_accepted(void **state)
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
        cmocka_unit_test(stars_match_everything_at_second_zero),
        cmocka_unit_test(numbers_ranges_lists_and_steps_are_bits),
        cmocka_unit_test(star_in_a_day_field_means_any_day),
        cmocka_unit_test(cron_names_equal_their_numbers),
        cmocka_unit_test(sunday_is_day_zero_and_day_seven),
        cmocka_unit_test(cron_shorthands_equal_their_expressions),
        cmocka_unit_test(cron_fields_are_separated_and_surrounded_by_blanks),
        cmocka_unit_test(mistakes_have_a_place_and_a_remedy),
        cmocka_unit_test(rare_cron_days_are_accepted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
