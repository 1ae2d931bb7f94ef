/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* writer_test.c - the output is JSON, exact, and has no control sequences of terminals. */
#include "json/writer.h"

#include <math.h>

#include "lib/test.h"
#include "json/reader.h"

struct pay {
    uint64_t cents;
    char card[9];
};

static const struct det_field pay_fields[] = {
    { .name = "cents",
      .kind = DET_KIND_UNSIGNED,
      .offset = offsetof(struct pay, cents),
      .size = sizeof(uint64_t) },
    { .name = "card",
      .kind = DET_KIND_TEXT,
      .flags = DET_FIELD_SENSITIVE,
      .offset = offsetof(struct pay, card),
      .size = 9,
      .capacity = 8 },
};
static const struct det_record pay_record = {
    .name = "pay", .size = sizeof(struct pay), .fields = pay_fields, .field_count = 2
};
static const struct det_record empty_record = { .name = "empty", .size = 1 };

static void write_all(struct det_json_writer *json, const struct det_json_value *value)
{
    const struct pay pay = { UINT64_MAX, "4242" };

    det_json_open(json, NULL, '{');
    det_json_text(json, "a\"key", "a\"b\\c\n\x01\x7f");
    det_json_text(json, "none", NULL);
    det_json_null(json, "null");
    det_json_bytes(json, "bytes", "a\xff\"", 3);
    det_json_format(json, "format", "%s-%d", "\xc3\xa4", 7);
    det_json_open(json, "list", '[');
    det_json_number(json, NULL, UINT64_MAX);
    det_json_signed(json, NULL, INT64_MIN);
    det_json_double(json, NULL, 0.1);
    det_json_double(json, NULL, INFINITY);
    det_json_bool(json, NULL, true);
    det_json_close(json, ']');
    det_json_time(json, "at", 0);
    det_json_copy(json, "copy", value);
    det_json_copy_members(json, det_json_get(value, "y"));
    det_json_copy_members(json, NULL);
    det_json_raw(json, "raw", "[1]", 3);
    det_json_record(json, "pay", &pay_record, &pay, 0);
    det_json_record_members(json, &empty_record, &pay, 0);
    det_json_record_members(json, &pay_record, &pay, DET_TEXT_REVEAL);
    det_json_close(json, '}');
}

static const char given[] =
    " { \"x\" : [ 1.10, {}, [ ] , \"a\\u0062\\u202e\" ], \"y\" : { \"z\": null } } ";

static void members_are_written_in_order(void **state)
{
    const struct det_json_value *value = NULL;
    struct det_json_writer json;
    struct det_arena arena;

    (void)state;
    det_arena_init(&arena, NULL);
    assert_int_equal(det_json_read(&arena, det_view_text(given), &value, NULL), 0);
    det_json_writer_init(&json, NULL);
    write_all(&json, value);
    assert_string_equal(
        det_buffer_text(&json.text),
        "{\"a\\\"key\":\"a\\\"b\\\\c\\n\\u0001\\u007f\",\"none\":null,\"null\":null,"
        "\"bytes\":\"a\\\\xff\\\"\",\"format\":\"\xc3\xa4-7\","
        "\"list\":[18446744073709551615,-9223372036854775808,0.1,null,true],"
        "\"at\":\"1970-01-01T00:00:00Z\","
        "\"copy\":{\"x\":[1.10,{},[],\"ab\\u202e\"],\"y\":{\"z\":null}},\"z\":null,\"raw\":[1],"
        "\"pay\":{\"cents\":18446744073709551615,\"card\":\"{redacted}\"},"
        "\"cents\":18446744073709551615,\"card\":\"4242\"}");
    det_json_writer_clear(&json);
    json.indent = 2;
    det_json_copy(&json, NULL, value);
    assert_string_equal(
        det_buffer_text(&json.text),
        "{\n  \"x\": [\n    1.10,\n    {},\n    [],\n    \"ab\\u202e\"\n  ],\n  \"y\": {\n"
        "    \"z\": null\n  }\n}");
    det_json_writer_clear(&json);
    det_json_copy(&json, NULL, det_json_get(det_json_get(value, "y"), "z"));
    assert_string_equal(det_buffer_text(&json.text), "null");
    det_json_writer_deinit(&json);
    det_arena_deinit(&arena);
}

static void a_quoted_string_reads_back(void **state)
{
    static const char text[] =
        "\x1b[31m \xc2\x9b \xe2\x80\xae \xef\xbb\xbf \"\\/\b\f\r\t \xf0\x9f\x98\x80";
    const struct det_json_value *value = NULL;
    struct det_buffer buffer;
    struct det_arena arena;

    (void)state;
    det_arena_init(&arena, NULL);
    det_buffer_init(&buffer, NULL);
    det_json_quote(&buffer, det_view_text(text));
    assert_null(strstr(det_buffer_text(&buffer), "\x1b"));
    assert_null(strstr(det_buffer_text(&buffer), "\xe2\x80\xae"));
    assert_int_equal(
        det_json_read(&arena, det_view_text(det_buffer_text(&buffer)), &value, NULL), 0);
    assert_string_equal(det_json_value_text(value), text);
    det_buffer_clear(&buffer);
    det_json_quote(&buffer, det_view_text("\xff"));
    assert_string_equal(det_buffer_text(&buffer), "\"\\ufffd\"");
    det_buffer_deinit(&buffer);
    det_arena_deinit(&arena);
}

static int write_in(struct det_test_memory *memory, void *argument)
{
    struct det_json_writer json;
    int r;

    det_json_writer_init(&json, &memory->allocator);
    write_all(&json, argument);
    r = det_buffer_status(&json.text);
    det_json_writer_deinit(&json);
    return r;
}

static void a_failure_sticks_to_the_buffer(void **state)
{
    (void)state;
    det_test_each_failure(write_in, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_written_in_order),
        cmocka_unit_test(a_quoted_string_reads_back),
        cmocka_unit_test(a_failure_sticks_to_the_buffer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
