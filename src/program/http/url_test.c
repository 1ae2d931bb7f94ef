/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* url_test.c - targets of requests, read strictly. */
#include "http/url.h"

#include <string.h>

#include "lib/test.h"

static struct det_arena arena;
static struct url url;

static int set_up(void **state)
{
    (void)state;
    det_arena_init(&arena, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    det_arena_deinit(&arena);
    return 0;
}

static void a_path_is_its_segments(void **state)
{
    (void)state;
    assert_int_equal(url_read(&url, &arena, "/v1/machines/a%20b", ""), 0);
    assert_int_equal(url.segment_count, 3);
    assert_string_equal(url.segments[1], "machines");
    assert_string_equal(url.segments[2], "a b");
    assert_int_equal(url_read(&url, &arena, "/", ""), 0);
    assert_int_equal(url.segment_count, 0);
}

static void a_slash_at_the_end_is_an_empty_segment(void **state)
{
    (void)state;
    assert_int_equal(url_read(&url, &arena, "/v1/", ""), 0);
    assert_int_equal(url.segment_count, 2);
    assert_string_equal(url.segments[1], "");
}

static void plus_means_space_only_in_a_query(void **state)
{
    (void)state;
    assert_int_equal(url_read(&url, &arena, "/a+b", "c+d=e%2Bf+g&empty=&bare"), 0);
    assert_string_equal(url.segments[0], "a+b");
    assert_string_equal(url_value(&url, "c d"), "e+f g");
    assert_string_equal(url_value(&url, "empty"), "");
    assert_string_equal(url_value(&url, "bare"), "");
    assert_null(url_value(&url, "none"));
}

static void ambiguous_urls_are_refused(void **state)
{
    static const char *const paths[] = {
        "",       "v1",     "/a//b", "//",   "/.",    "/..",     "/a/../b", "/%2e%2e/b",
        "/a%2fb", "/a%00b", "/a%",   "/a%4", "/a%zz", "/%c0%af", "/%ff",
    };
    static const char *const queries[] = { "a=1&a=2", "=1", "&", "a=%", "a=%00", "a=%ff" };

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (url_read(&url, &arena, paths[i], "") != DET_ERR_MALFORMED)
            fail_msg("taken: %s", paths[i]);
    }
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        if (url_read(&url, &arena, "/", queries[i]) != DET_ERR_MALFORMED)
            fail_msg("taken: %s", queries[i]);
    }
}

static void number_of_url_parts_is_limited(void **state)
{
    char path[2 * URL_SEGMENTS_MAX + 3] = "", query[4 * URL_QUERY_MAX + 5] = "";

    (void)state;
    for (int i = 0; i < URL_SEGMENTS_MAX; i++)
        memcpy(path + 2 * i, "/a", 3);
    assert_int_equal(url_read(&url, &arena, path, ""), 0);
    memcpy(path + 2 * URL_SEGMENTS_MAX, "/a", 3);
    assert_int_equal(url_read(&url, &arena, path, ""), DET_ERR_LIMIT);
    for (int i = 0; i < URL_QUERY_MAX; i++)
        snprintf(query + 3 * i, 4, "%c=&", 'a' + i);
    assert_int_equal(url_read(&url, &arena, "/", query), 0);
    memcpy(query + 3 * URL_QUERY_MAX, "z=", 3);
    assert_int_equal(url_read(&url, &arena, "/", query), DET_ERR_LIMIT);
}

static int read_once(struct det_test_memory *memory, void *argument)
{
    struct det_arena own;
    int r;

    (void)argument;
    det_arena_init(&own, &memory->allocator);
    r = url_read(&url, &own, "/v1/machines", "state=paid");
    det_arena_deinit(&own);
    return r;
}

static void allocation_failure_is_an_error(void **state)
{
    (void)state;
    det_test_each_failure(read_once, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_path_is_its_segments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_slash_at_the_end_is_an_empty_segment, set_up, tear_down),
        cmocka_unit_test_setup_teardown(plus_means_space_only_in_a_query, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ambiguous_urls_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(number_of_url_parts_is_limited, set_up, tear_down),
        cmocka_unit_test(allocation_failure_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
