/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* json_writer_test.c - objects written member by member are valid JSON. */
#include "json/writer.h"

#include "terminal/output_test.h"

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

static void write_all(struct det_json_writer *json)
{
    const struct pay pay = { UINT64_MAX, "4242" };

    det_json_open(json, NULL, '{');
    det_json_text(json, "id", "a\"b\\c\n\t\r\x01\x7f");
    det_json_text(json, "none", NULL);
    det_json_text(json, "bytes", "\xff");
    det_json_open(json, "list", '[');
    det_json_number(json, NULL, UINT64_MAX);
    det_json_signed(json, NULL, INT64_MIN);
    det_json_close(json, ']');
    det_json_bool(json, "yes", true);
    det_json_bool(json, "no", false);
    det_json_time(json, "at", 0);
    det_json_record(json, "pay", &pay_record, &pay, 0);
    det_json_close(json, '}');
}

static void members_are_written_in_order(void **state)
{
    struct caught caught;
    struct det_json_writer json;

    (void)state;
    catch_output(&caught);
    det_json_writer_init(&json, NULL);
    write_all(&json);
    cli_print_line(&caught.cli, &json);
    det_json_open(&json, NULL, '{');
    det_json_close(&json, '}');
    cli_print_line(&caught.cli, &json);
    det_json_writer_deinit(&json);
    expect_output(
        &caught,
        "{\"id\":\"a\\\"b\\\\c\\n\\t\\r\\u0001\\u007f\",\"none\":null,\"bytes\":\"\\\\xff\","
        "\"list\":[18446744073709551615,-9223372036854775808],\"yes\":true,\"no\":false,"
        "\"at\":\"1970-01-01T00:00:00Z\","
        "\"pay\":{\"cents\":18446744073709551615,\"card\":\"{redacted}\"}}\n{}\n");
}

static int write_in(struct det_test_memory *memory, void *argument)
{
    struct caught caught;
    struct det_json_writer json;
    bool has_failed;

    (void)argument;
    catch_output(&caught);
    det_json_writer_init(&json, &memory->allocator);
    write_all(&json);
    cli_print_line(&caught.cli, &json);
    det_json_writer_deinit(&json);
    has_failed = caught.cli.has_failed;
    fclose(caught.cli.out);
    assert_int_equal(caught.size == 0, has_failed);
    free(caught.text);
    return has_failed ? DET_ERR_NO_MEMORY : 0;
}

static void line_lost_to_allocation_failure_is_reported(void **state)
{
    (void)state;
    det_test_each_failure(write_in, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_written_in_order),
        cmocka_unit_test(line_lost_to_allocation_failure_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
