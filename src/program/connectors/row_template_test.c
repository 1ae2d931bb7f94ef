/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row_template_test.c - texts with fields of a row in them. */
#include "connectors/row_template.h"

#include "lib/test.h"

#define REC_SPEC "connectors/sink_test.rec"
#include <detent/rec/declare.h>

static struct columns columns;

static int set_up(void **state)
{
    (void)state;
    return columns_init(&columns, NULL, parcel_record(), 0);
}

static int tear_down(void **state)
{
    (void)state;
    columns_deinit(&columns);
    return 0;
}

static void assert_rendered(const char *text, enum row_template_escape escape, const char *expected)
{
    struct parcel parcel = { .id = 7, .place = { .city = "B\xc3\xbcr en/1" } };
    struct row_template row_template;
    struct det_error error;
    struct det_buffer buffer;

    det_buffer_init(&buffer, NULL);
    if (row_template_init(&row_template, NULL, "path", text, &columns, &error) < 0)
        fail_msg("%s", error.text);
    row_template_render(&row_template, &parcel, escape, &buffer);
    assert_string_equal(det_buffer_text(&buffer), expected);
    row_template_deinit(&row_template);
    det_buffer_deinit(&buffer);
}

static void fields_are_replaced_and_escaped(void **state)
{
    (void)state;
    assert_rendered("", ROW_TEMPLATE_PLAIN, "");
    assert_rendered("a/{id}", ROW_TEMPLATE_PLAIN, "a/7");
    assert_rendered("{id}{id}-{{{id}}}", ROW_TEMPLATE_PLAIN, "77-{7}");
    assert_rendered("{place.city}!", ROW_TEMPLATE_PLAIN, "B\xc3\xbcr en/1!");
    assert_rendered("/x y/{place.city}?a", ROW_TEMPLATE_URL, "/x y/B%C3%BCr%20en%2F1?a");
}

static void assert_refused(const char *text, const char *expected)
{
    struct row_template row_template;
    struct det_error error = { 0 };

    assert_true(row_template_init(&row_template, NULL, "path", text, &columns, &error) < 0);
    if (!strstr(error.text, expected))
        fail_msg("expected '%s' in: %s", expected, error.text);
}

static void errors_have_a_place_and_a_remedy(void **state)
{
    char many[5 * ROW_TEMPLATE_PARTS + 10] = "";

    (void)state;
    assert_refused("a{id", "'{' at byte 1 has no '}'");
    assert_refused("a}b", "'}' at byte 1 has no '{'");
    assert_refused("{place.citi}", "did you mean 'place.city'?");
    assert_refused("{}", "unknown field ''");
    for (int i = 0; i <= ROW_TEMPLATE_PARTS; i++)
        memcpy(many + 4 * i, "{id}", 5);
    assert_refused(many, "more than 64 parts");
}

static int compile(struct det_test_memory *memory, void *argument)
{
    struct parcel parcel = { .place = { .city = "?" } };
    struct row_template row_template;
    struct det_buffer buffer;
    int r;

    (void)argument;
    r = row_template_init(
        &row_template, &memory->allocator, "path", "/{place.city}/{id}", &columns, NULL);
    if (r < 0)
        return r;
    det_buffer_init(&buffer, &memory->allocator);
    for (int i = 0; i < 30; i++)
        row_template_render(&row_template, &parcel, ROW_TEMPLATE_URL, &buffer);
    r = det_buffer_status(&buffer);
    row_template_deinit(&row_template);
    det_buffer_deinit(&buffer);
    return r;
}

static void a_failed_allocation_is_reported(void **state)
{
    (void)state;
    det_test_each_failure(compile, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_replaced_and_escaped),
        cmocka_unit_test(errors_have_a_place_and_a_remedy),
        cmocka_unit_test(a_failed_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
