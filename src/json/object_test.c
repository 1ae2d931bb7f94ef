/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* object_test.c - reading the members of objects. */
#include "json/object.h"

#include "lib/test.h"

static int read_text(struct det_json_object *members, struct det_arena *arena, const char *text)
{
    return det_json_object_read(members, arena, det_view_text(text), NULL);
}

/* Returns the sizes of the elements as digits. */
static size_t sizes_of(const struct det_json_value *array)
{
    size_t sizes = 0;

    DET_JSON_EACH (element, array)
        sizes = sizes * 10 + element->raw.size;
    return sizes;
}

static void members_have_the_requested_types(void **state)
{
    struct det_arena arena;
    struct det_json_object members;

    (void)state;
    det_arena_init(&arena, NULL);
    assert_int_equal(
        read_text(
            &members, &arena,
            "{\"t\": \"a\\u0062\", \"n\":18446744073709551615, \"s\":-3, \"b\":true, \"z\":null, "
            "\"at\":\"2026-01-01T00:00:00Z\", \"o\":{\"x\":[1,{}]}, \"a\":[1, [2,3],{\"y\":1}]}"),
        0);
    assert_int_equal(members.value->count, 8);
    assert_string_equal(det_json_object_text(&members, "t"), "ab");
    assert_true(det_json_object_number(&members, "n") == UINT64_MAX);
    assert_int_equal(det_json_object_signed(&members, "s"), -3);
    assert_true(det_json_object_bool(&members, "b"));
    assert_null(det_json_object_text_or_null(&members, "z"));
    assert_null(det_json_object_text_or_null(&members, "none"));
    assert_string_equal(det_json_object_text_or_null(&members, "t"), "ab");
    assert_true(det_json_object_time(&members, "at") > 0);
    assert_true(det_view_is(det_json_object_find(&members, "o")->raw, "{\"x\":[1,{}]}"));
    assert_int_equal(sizes_of(det_json_object_array(&members, "a")), 157);
    assert_string_equal(members.wrong, "");
    det_arena_deinit(&arena);
}

static void the_first_wrong_member_is_remembered(void **state)
{
    static const char *const wrong[] = { "t", "n", "s", "b", "at", "a", "zero" };
    struct det_arena arena;
    struct det_json_object members;

    (void)state;
    det_arena_init(&arena, NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(
            read_text(
                &members, &arena,
                "{\"t\":1,\"n\":-1,\"s\":9223372036854775808,\"b\":0,\"at\":\"today\",\"a\":{},"
                "\"zero\":\"a\\u0000b\"}"),
            0);
        if (i == 0)
            assert_string_equal(det_json_object_text(&members, "t"), "");
        if (i <= 1)
            assert_int_equal(det_json_object_number(&members, "n"), 0);
        if (i <= 2)
            assert_int_equal(det_json_object_signed(&members, "s"), 0);
        if (i <= 3)
            assert_false(det_json_object_bool(&members, "b"));
        if (i <= 4)
            (void)det_json_object_time(&members, "at");
        if (i <= 5)
            assert_null(det_json_object_array(&members, "a"));
        (void)det_json_object_text(&members, "zero");
        assert_string_equal(members.wrong, wrong[i]);
    }
    det_arena_deinit(&arena);
}

static void text_that_is_not_an_object_is_refused(void **state)
{
    static const char *const texts[] = { "",        "[]",         "{",
                                         "{\"a\":", "{}{}",       "{\"a\":[1}",
                                         "{\"a\"}", "{\"a\":1,}", "{\"a\":1 \"b\":2}" };
    struct det_arena arena;
    struct det_json_object members;

    (void)state;
    det_arena_init(&arena, NULL);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_true(read_text(&members, &arena, texts[i]) < 0);
    det_arena_deinit(&arena);
}

static void a_key_that_occurs_twice_is_refused_however_it_is_escaped(void **state)
{
    static const char *const twice[] = {
        "{\"a\":1,\"a\":1}",
        "{\"a\":1,\"b\":{},\"\\u0061\":2}",
        "{\"\\u0061\":1,\"a\":2}",
        "{\"a\\/b\":1,\"a/b\":2}",
    };
    struct det_arena arena;
    struct det_json_object members;

    (void)state;
    det_arena_init(&arena, NULL);
    for (size_t i = 0; i < sizeof twice / sizeof *twice; i++)
        assert_int_equal(read_text(&members, &arena, twice[i]), DET_ERR_DUPLICATE_FIELD);
    assert_int_equal(read_text(&members, &arena, "{\"a\":1,\"A\":1,\"a\\u0000\":1}"), 0);
    det_arena_deinit(&arena);
}

static int read_in(struct det_test_memory *memory, void *argument)
{
    struct det_arena arena;
    struct det_json_object members;
    int r;

    (void)argument;
    det_arena_init(&arena, &memory->allocator);
    r = read_text(&members, &arena, "{\"t\":\"text\"}");
    assert_true(r == 0 || !members.value);
    det_arena_deinit(&arena);
    return r;
}

static void object_reader_reports_allocation_failures(void **state)
{
    (void)state;
    det_test_each_failure(read_in, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_have_the_requested_types),
        cmocka_unit_test(the_first_wrong_member_is_remembered),
        cmocka_unit_test(text_that_is_not_an_object_is_refused),
        cmocka_unit_test(a_key_that_occurs_twice_is_refused_however_it_is_escaped),
        cmocka_unit_test(object_reader_reports_allocation_failures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
