/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* zone_test.c - offsets of time zones, and cron expressions by local time where the clock jumps. */
#include <detent/driver/schedule.h>

#include "lib/test.h"

#include <time.h>

#include "base/calendar.h"
#include "task/zone.h"

#define FOLDER "/usr/share/zoneinfo/"

/* Zones are those of this machine. */
static struct det_zone read_zone(const char *name)
{
    char path[256];
    struct det_zone zone;
    char *data;
    size_t size;
    FILE *file;

    (void)snprintf(path, sizeof path, FOLDER "%s", name);
    file = fopen(path, "re");
    if (!file)
        skip();
    fclose(file);
    data = det_test_read_file(path, &size);
    assert_int_equal(0, det_zone_parse(data, size, 0, &zone));
    free(data);
    return zone;
}

static det_time utc(int year, int month, int day, int hour, int minute)
{
    int64_t days = det_days_from_date((struct det_date){ year, month, day });

    return (days * DET_DAY_SECONDS + hour * 3600 + minute * 60) * DET_SECOND;
}

static struct det_cron parse(const char *text)
{
    struct det_cron cron;

    assert_int_equal(0, det_cron_parse(text, &cron, NULL));
    return cron;
}

static void is_next(const struct det_zone *zone, const char *text, det_time after, det_time wanted)
{
    struct det_cron cron = parse(text);

    assert_int_equal(wanted / DET_SECOND, det_zone_nth(zone, &cron, after, 1) / DET_SECOND);
}

/* Against the C library, hour by hour over 90 years, beyond what the file lists. */
static void offsets_are_those_of_the_c_library(void **state)
{
    static const char *const names[] = { "Europe/Berlin",       "America/New_York",
                                         "Australia/Lord_Howe", "Asia/Kolkata",
                                         "America/Sao_Paulo",   "UTC" };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct det_zone zone = read_zone(names[i]);

        assert_int_equal(0, setenv("TZ", names[i], 1));
        tzset();
        for (int64_t second = 0; second < INT64_C(86400) * 366 * 90; second += 6 * 3600) {
            time_t time = (time_t)second;
            struct tm local;

            (void)localtime_r(&time, &local);
            if (local.tm_gmtoff != det_zone_offset(&zone, second))
                fail_msg(
                    "%s at %lld: %ld, not %d", names[i], (long long)second, local.tm_gmtoff,
                    det_zone_offset(&zone, second));
        }
    }
    unsetenv("TZ");
}

static void cron_expressions_use_local_time(void **state)
{
    struct det_zone zone = read_zone("Europe/Berlin");

    (void)state;
    is_next(&zone, "0 9 * * *", utc(2026, 1, 10, 12, 0), utc(2026, 1, 11, 8, 0));
    is_next(&zone, "0 9 * * *", utc(2026, 7, 10, 12, 0), utc(2026, 7, 11, 7, 0));
    is_next(&zone, "0 0 1 * *", utc(2026, 6, 30, 12, 0), utc(2026, 6, 30, 22, 0));
    /* Behind the last change of the file. */
    is_next(&zone, "0 9 * * *", utc(2090, 7, 10, 12, 0), utc(2090, 7, 11, 7, 0));
    is_next(NULL, "0 9 * * *", utc(2026, 7, 10, 12, 0), utc(2026, 7, 11, 9, 0));
}

/* 2026-03-29, 02:00 becomes 03:00, at 01:00 UTC. */
static void times_in_the_skipped_hour_run_once_at_the_jump(void **state)
{
    struct det_zone zone = read_zone("Europe/Berlin");
    struct det_cron cron = parse("10,30 2 * * *");
    det_time day = utc(2026, 3, 28, 12, 0);

    (void)state;
    is_next(&zone, "30 2 * * *", day, utc(2026, 3, 29, 1, 0));
    is_next(&zone, "30 2 * * *", utc(2026, 3, 29, 1, 0), utc(2026, 3, 30, 0, 30));
    /* Two of them are one; and one that has its own time then is enough. */
    assert_int_equal(1, det_zone_count(&zone, &cron, day, utc(2026, 3, 29, 12, 0)));
    cron = parse("30 2,3 * * *");
    assert_int_equal(2, det_zone_count(&zone, &cron, day, utc(2026, 3, 29, 12, 0)));
    cron = parse("0,30 2-3 * * *");
    assert_int_equal(2, det_zone_count(&zone, &cron, day, utc(2026, 3, 29, 12, 0)));
    /* Every hour is every hour. */
    cron = parse("30 * * * *");
    assert_int_equal(24, det_zone_count(&zone, &cron, day, day + INT64_C(86400) * DET_SECOND));
}

/* 2026-10-25, 03:00 becomes 02:00, at 01:00 UTC. */
static void times_in_the_repeated_hour_run_in_the_first_of_the_two(void **state)
{
    struct det_zone zone = read_zone("Europe/Berlin");
    struct det_cron cron = parse("30 2 * * *");
    det_time day = utc(2026, 10, 24, 12, 0);

    (void)state;
    is_next(&zone, "30 2 * * *", day, utc(2026, 10, 25, 0, 30));
    is_next(&zone, "30 2 * * *", utc(2026, 10, 25, 0, 30), utc(2026, 10, 26, 1, 30));
    /* Asked in the middle of the second one. */
    is_next(&zone, "30 2 * * *", utc(2026, 10, 25, 1, 10), utc(2026, 10, 26, 1, 30));
    assert_int_equal(1, det_zone_count(&zone, &cron, day, utc(2026, 10, 25, 12, 0)));
    is_next(&zone, "0 3 * * *", utc(2026, 10, 25, 1, 10), utc(2026, 10, 25, 2, 0));
    cron = parse("30 * * * *");
    assert_int_equal(24, det_zone_count(&zone, &cron, day, day + INT64_C(86400) * DET_SECOND));
}

/* The count equals the number of times found one after the other. */
static void cron_counts_match_the_listed_times_over_years(void **state)
{
    static const char *const texts[] = { "30 2 * * *", "0 */6 * * *", "15 1-3 * * 0", "5 * * * *" };
    struct det_zone zone = read_zone("America/New_York");
    det_time begin = utc(2025, 1, 1, 0, 0), end = utc(2028, 1, 1, 0, 0);

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct det_cron cron = parse(texts[i]);
        det_time at = begin, next;
        uint64_t count = 0;

        while ((next = det_zone_nth(&zone, &cron, at, 1)) <= end) {
            assert_true(next > at);
            assert_int_equal(1, det_zone_count(&zone, &cron, at, next));
            at = next;
            count++;
        }
        assert_int_equal(count, det_zone_count(&zone, &cron, begin, end));
        assert_int_equal(at / DET_SECOND, det_zone_nth(&zone, &cron, begin, count) / DET_SECOND);
    }
}

static void a_timetable_takes_a_zone_with_a_cron_expression_only(void **state)
{
    struct det_zone zone = read_zone("Europe/Berlin");
    struct det_timetable table;
    struct det_error error;

    (void)state;
    assert_int_equal(
        0, det_timetable_init(
               &table, &(struct det_schedule){ .cron = "0 9 * * *", .zone = &zone },
               utc(2026, 7, 10, 12, 0), 0, &error));
    assert_int_equal(
        utc(2026, 7, 11, 7, 0), det_timetable_next(&table, 0, utc(2026, 7, 10, 12, 0), NULL));
    assert_int_equal(
        DET_ERR_INVALID,
        det_timetable_init(
            &table, &(struct det_schedule){ .every = DET_HOUR, .zone = &zone }, 0, 0, &error));
}

/* Nothing beyond the bytes is read, whatever they say. */
static void malformed_zone_data_is_refused(void **state)
{
    char path[] = FOLDER "Europe/Berlin";
    struct det_zone zone;
    uint64_t seed = 1;
    char *data;
    size_t size;

    (void)state;
    (void)read_zone("Europe/Berlin");
    data = det_test_read_file(path, &size);
    assert_int_equal(DET_ERR_MALFORMED, det_zone_parse("TZif", 4, 0, &zone));
    for (size_t part = 0; part < size; part++) {
        char *copy = malloc(part + 1);

        memcpy(copy, data, part);
        assert_int_equal(DET_ERR_MALFORMED, det_zone_parse(copy, part, 0, &zone));
        free(copy);
    }
    for (int i = 0; i < 20000; i++) {
        size_t at = det_test_random(&seed) % size;
        char before = data[at];

        data[at] = (char)det_test_random(&seed);
        if (det_zone_parse(data, size, 0, &zone) == 0)
            (void)det_zone_offset(&zone, INT64_C(4000000000));
        data[at] = before;
    }
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offsets_are_those_of_the_c_library),
        cmocka_unit_test(cron_expressions_use_local_time),
        cmocka_unit_test(times_in_the_skipped_hour_run_once_at_the_jump),
        cmocka_unit_test(times_in_the_repeated_hour_run_in_the_first_of_the_two),
        cmocka_unit_test(cron_counts_match_the_listed_times_over_years),
        cmocka_unit_test(a_timetable_takes_a_zone_with_a_cron_expression_only),
        cmocka_unit_test(malformed_zone_data_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
