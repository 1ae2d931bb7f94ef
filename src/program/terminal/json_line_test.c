/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* json_line_test.c - objects that are written member by member are JSON. */
#include "json/json_writer.h"

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

static void write_all(struct line *line)
{
    const struct pay pay = { UINT64_MAX, "4242" };

    line_open(line, NULL, '{');
    line_text(line, "id", "a\"b\\c\n\t\r\x01\x7f");
    line_text(line, "none", NULL);
    line_text(line, "bytes", "\xff");
    line_open(line, "list", '[');
    line_number(line, NULL, UINT64_MAX);
    line_signed(line, NULL, INT64_MIN);
    line_close(line, ']');
    line_bool(line, "yes", true);
    line_bool(line, "no", false);
    line_time(line, "at", 0);
    line_record(line, "pay", &pay_record, &pay, 0);
    line_close(line, '}');
}

static void every_member_stands_in_its_place(void **state)
{
    struct caught caught;
    struct line line;

    (void)state;
    catch_output(&caught);
    line_init(&line, NULL);
    write_all(&line);
    cli_print_line(&caught.cli, &line);
    line_open(&line, NULL, '{');
    line_close(&line, '}');
    cli_print_line(&caught.cli, &line);
    line_deinit(&line);
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
    struct line line;
    bool has_failed;

    (void)argument;
    catch_output(&caught);
    line_init(&line, &memory->allocator);
    write_all(&line);
    cli_print_line(&caught.cli, &line);
    line_deinit(&line);
    has_failed = caught.cli.has_failed;
    fclose(caught.cli.out);
    assert_int_equal(caught.size == 0, has_failed);
    free(caught.text);
    return has_failed ? DET_ERR_NO_MEMORY : 0;
}

static void a_line_without_memory_is_not_printed_and_told(void **state)
{
    (void)state;
    det_test_each_failure(write_in, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_stands_in_its_place),
        cmocka_unit_test(a_line_without_memory_is_not_printed_and_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
