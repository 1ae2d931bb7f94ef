/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* cron_time_test.c - the times of expressions: known ones, and minute by minute beside a calendar
 * that only knows how to go on. */
#include <detent/driver/schedule.h>

#include "task/cron.h"

#include "base/text.h"
#include "lib/test.h"

static struct det_cron parse(const char *text)
{
    struct det_error error = { 0 };
    struct det_cron cron;

    if (det_cron_parse(text, &cron, &error) < 0)
        fail_msg("'%s': %s", text, error.text);
    return cron;
}

static det_time wall(const char *text)
{
    det_time time;

    assert_int_equal(det_parse_time(det_view_text(text), &time), 0);
    return time;
}

struct known {
    const char *expression, *after, *next;
};

static const struct known knowns[] = {
    { "* * * * *", "2026-11-15T08:00:00Z", "2026-11-15T08:01:00Z" },
    { "* * * * *", "2026-11-15T08:00:00.000000001Z", "2026-11-15T08:01:00Z" },
    { "* * * * *", "2026-11-15T07:59:59.999999999Z", "2026-11-15T08:00:00Z" },
    { "* * * * * *", "2026-11-15T08:00:00.5Z", "2026-11-15T08:00:01Z" },
    { "30 59 23 31 12 *", "2026-12-31T23:59:30Z", "2027-12-31T23:59:30Z" },
    { "0 0 * * *", "2026-12-31T12:00:00Z", "2027-01-01T00:00:00Z" },
    { "0 0 31 * *", "2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z" },
    { "0 0 29 2 *", "2024-02-29T00:00:00Z", "2028-02-29T00:00:00Z" },
    { "0 0 29 2 *", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z" },
    { "0 0 29 2 */6", "2024-02-29T00:00:00Z", "2032-02-29T00:00:00Z" },
    { "0 12 1-7 * 1", "2026-11-09T00:00:00Z", "2026-11-09T12:00:00Z" },
    { "0 0 13 * fri", "2026-11-15T00:00:00Z", "2026-11-20T00:00:00Z" },
    { "0 0 13 * fri", "2026-12-11T00:00:00Z", "2026-12-13T00:00:00Z" },
    { "0 0 */13 * fri", "2026-11-15T00:00:00Z", "2026-11-27T00:00:00Z" },
    { "0 0 1 * *", "1999-12-31T23:59:59Z", "2000-01-01T00:00:00Z" },
    { "15,45 8-10 * * mon-fri", "2026-11-13T10:45:00Z", "2026-11-16T08:15:00Z" },
    { "59 23 * * *", "1969-12-30T23:59:00Z", "1969-12-31T23:59:00Z" },
    { "0 0 * * *", "1969-12-31T23:59:59.999999999Z", "1970-01-01T00:00:00Z" },
    { "0 0 1 1 *", "1677-09-21T00:12:43.145224192Z", "1678-01-01T00:00:00Z" },
    { "47 23 11 4 *", "2261-12-31T00:00:00Z", "2262-04-11T23:47:00Z" },
    { "@weekly", "2026-11-15T00:00:00Z", "2026-11-22T00:00:00Z" },
};

static void known_times_come_next(void **state)
{
    char text[DET_TIME_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof knowns / sizeof knowns[0]; i++) {
        struct det_cron cron = parse(knowns[i].expression);
        det_time next = det_cron_next(&cron, wall(knowns[i].after));

        if (next != wall(knowns[i].next))
            fail_msg(
                "'%s' after %s: %s", knowns[i].expression, knowns[i].after,
                det_format_time(next, text, sizeof text));
    }
}

static void cron_time_out_of_range_is_never(void **state)
{
    struct det_cron cron = parse("* * * * *"), none = { 0 };

    (void)state;
    assert_true(det_cron_next(&cron, DET_NEVER) == DET_NEVER);
    assert_true(det_cron_next(&cron, DET_NEVER - 1) == DET_NEVER);
    assert_true(det_cron_next(&cron, DET_NEVER - DET_MINUTE) < DET_NEVER);
    cron = parse("48 23 11 4 *");
    assert_true(det_cron_next(&cron, wall("2261-12-31T00:00:00Z")) == DET_NEVER);
    assert_true(det_cron_next(&none, 0) == DET_NEVER);
    assert_true(det_cron_count(&none, 0, DET_DAY) == 0);
}

static void cron_date_absent_for_100_years_is_never(void **state)
{
    struct det_cron cron = parse("0 0 1 1 *");

    (void)state;
    cron.months = 1u << 2;
    cron.days = 1u << 30;
    assert_true(det_cron_next(&cron, 0) == DET_NEVER);
    cron.months = 0;
    assert_true(det_cron_next(&cron, 0) == DET_NEVER);
}

/* A random field: its text, and which values match, counted in another way than the parser's. */
struct random_field {
    char text[64];
    bool has[64], has_star;
};

static int below(uint64_t *seed, int bound)
{
    return (int)(det_test_random(seed) % (uint64_t)bound);
}

static void add_item(struct random_field *field, int least, int most, uint64_t *seed)
{
    int low = least + below(seed, most - least + 1), high = low + below(seed, most - low + 1);
    int step = 1 + below(seed, 6), kind = below(seed, 4);
    size_t used = strlen(field->text), room;
    char *text;

    if (kind == 0)
        high = low;
    if (kind == 3) {
        low = least;
        high = most;
        field->has_star = true;
    }
    text = field->text + used;
    room = sizeof field->text - used;
    if (kind == 0)
        (void)snprintf(text, room, "%s%d", used ? "," : "", low);
    else if (kind == 1)
        (void)snprintf(text, room, "%s%d-%d", used ? "," : "", low, high);
    else if (kind == 2)
        (void)snprintf(text, room, "%s%d-%d/%d", used ? "," : "", low, high, step);
    else
        (void)snprintf(text, room, "%s*/%d", used ? "," : "", step);
    for (int value = low; value <= high; value++) {
        if (kind < 2 || (value - low) % step == 0)
            field->has[value] = true;
    }
}

static struct random_field make_field(int least, int most, uint64_t *seed)
{
    struct random_field field = { .text = "" };

    if (below(seed, 3) == 0) {
        field.text[0] = '*';
        field.has_star = true;
        for (int value = least; value <= most; value++)
            field.has[value] = true;
        return field;
    }
    for (int count = 1 + below(seed, 3); count > 0; count--)
        add_item(&field, least, most, seed);
    return field;
}

enum { SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS };

/* An expression with seconds, and the same as sets. */
struct random_cron {
    struct random_field fields[FIELDS];
    struct det_cron cron;
};

static bool is_date(const struct random_cron *random, int month, int day, int weekday)
{
    const struct random_field *fields = random->fields;
    bool by_day = fields[DAY].has[day];
    bool by_weekday = fields[WEEKDAY].has[weekday] || (weekday == 0 && fields[WEEKDAY].has[7]);

    if (!fields[MONTH].has[month])
        return false;
    return fields[DAY].has_star || fields[WEEKDAY].has_star ? by_day && by_weekday
                                                            : by_day || by_weekday;
}

/* False when it would never match: such an expression must be refused. */
static bool make_cron(struct random_cron *ret, uint64_t *seed)
{
    static const int least[] = { 0, 0, 0, 1, 1, 0 }, most[] = { 59, 59, 23, 31, 12, 7 };
    static const int lengths[] = { 0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool is_possible = false;
    char text[512] = "";

    for (int i = 0; i < FIELDS; i++) {
        size_t used = strlen(text);

        ret->fields[i] = make_field(least[i], most[i], seed);
        (void)snprintf(text + used, sizeof text - used, "%s ", ret->fields[i].text);
    }
    for (int month = 1; month <= 12; month++) {
        for (int day = 1; day <= lengths[month]; day++) {
            for (int weekday = 0; weekday < 7; weekday++)
                is_possible = is_possible || is_date(ret, month, day, weekday);
        }
    }
    if (is_possible)
        ret->cron = parse(text);
    else
        assert_int_equal(det_cron_parse(text, &ret->cron, NULL), DET_ERR_MALFORMED);
    return is_possible;
}

/* A calendar that only knows how to go to the next day. */
struct calendar {
    int year, month, day, weekday;
};

static void next_day(struct calendar *at)
{
    static const int lengths[] = { 0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool is_leap = at->year % 4 == 0 && (at->year % 100 != 0 || at->year % 400 == 0);

    at->weekday = (at->weekday + 1) % 7;
    if (++at->day <= lengths[at->month] + (at->month == 2 && is_leap))
        return;
    at->day = 1;
    at->month = at->month % 12 + 1;
    at->year += at->month == 1;
}

/* Goes through every second `step` of `days` days, and through the times of the expression beside
 * it. Returns how many there were. */
static uint64_t compare(
    const struct random_cron *random, struct calendar calendar, det_time from, int days, int step)
{
    det_time next = det_cron_next(&random->cron, from - 1);
    uint64_t count = 0;

    for (int day = 0; day < days; day++, next_day(&calendar)) {
        det_time midnight = from + day * DET_DAY;
        bool is_day = is_date(random, calendar.month, calendar.day, calendar.weekday);

        for (int second = 0; is_day && second < 86400; second += step) {
            det_time now = midnight + second * DET_SECOND;

            if (!random->fields[HOUR].has[second / 3600] ||
                !random->fields[MINUTE].has[second / 60 % 60] ||
                !random->fields[SECOND].has[second % 60])
                continue;
            assert_true(next == now);
            next = det_cron_next(&random->cron, now);
            count++;
        }
    }
    assert_true(next >= from + days * DET_DAY);
    return count;
}

static void every_minute_of_years_is_as_the_fields_say(void **state)
{
    const struct calendar leap = { 1999, 1, 1, 5 }, century = { 2099, 1, 1, 4 };
    uint64_t seed = 17, count = 0;

    (void)state;
    for (int i = 0; i < 30; i++) {
        struct random_cron random;

        if (!make_cron(&random, &seed))
            continue;
        random.fields[SECOND] = (struct random_field){ .has = { true } };
        random.cron.seconds = 1;
        count += compare(&random, leap, wall("1999-01-01T00:00:00Z"), 1200, 60);
        count += compare(&random, century, wall("2099-01-01T00:00:00Z"), 1200, 60);
    }
    assert_true(count > 100000);
}

static void every_second_of_weeks_is_as_the_fields_say(void **state)
{
    const struct calendar february = { 2024, 2, 20, 2 };
    uint64_t seed = 23, count = 0;

    (void)state;
    for (int i = 0; i < 60; i++) {
        struct random_cron random;

        if (make_cron(&random, &seed))
            count += compare(&random, february, wall("2024-02-20T00:00:00Z"), 12, 1);
    }
    assert_true(count > 100000);
}

/* Counts and numbers between two random times, against going from one to the next. */
static void check_numbers(const struct random_cron *random, uint64_t *seed)
{
    det_time after =
        wall("2024-02-27T00:00:00Z") + below(seed, 400000) * DET_SECOND + below(seed, 3);
    det_time until = after + below(seed, 400000) * DET_SECOND + below(seed, 3) - 1;
    uint64_t count = det_cron_count(&random->cron, after, until), number = 0;
    uint64_t chosen = 1 + (uint64_t)below(seed, (int)count + 2);

    for (det_time at = det_cron_next(&random->cron, after);; number++) {
        if (number + 1 == chosen)
            assert_true(det_cron_nth(&random->cron, after, chosen) == at);
        if (at > until && number + 1 > chosen)
            break;
        assert_int_equal(number < count, at <= until);
        at = det_cron_next(&random->cron, at);
    }
}

static void times_are_counted_and_found_by_number(void **state)
{
    uint64_t seed = 29;

    (void)state;
    for (int i = 0; i < 200; i++) {
        struct random_cron random;

        if (make_cron(&random, &seed))
            check_numbers(&random, &seed);
    }
}

static void cron_counts_a_hundred_years_of_seconds_quickly(void **state)
{
    struct det_cron cron = parse("* * * * * *");
    det_time from = wall("2000-01-01T00:00:00Z"), until = wall("2100-01-01T00:00:00Z");
    uint64_t count = (uint64_t)((until - from) / DET_SECOND);

    (void)state;
    assert_true(det_cron_count(&cron, from, until) == count);
    assert_true(det_cron_count(&cron, until, from) == 0);
    assert_true(det_cron_count(&cron, from, from) == 0);
    assert_true(det_cron_count(&cron, from - 1, from) == 1);
    assert_true(det_cron_nth(&cron, from, count) == until);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_times_come_next),
        cmocka_unit_test(cron_time_out_of_range_is_never),
        cmocka_unit_test(cron_date_absent_for_100_years_is_never),
        cmocka_unit_test(every_minute_of_years_is_as_the_fields_say),
        cmocka_unit_test(every_second_of_weeks_is_as_the_fields_say),
        cmocka_unit_test(times_are_counted_and_found_by_number),
        cmocka_unit_test(cron_counts_a_hundred_years_of_seconds_quickly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
