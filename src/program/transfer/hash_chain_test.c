/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* hash_chain_test.c - sealed lines. */
#include "transfer/hash_chain.h"

#include "lib/test.h"

/* Three sealed lines in one text. */
static void write_lines(char lines[3][256])
{
    struct seal seal = { 0 };
    struct det_json_writer json;

    det_json_writer_init(&json, NULL);
    for (unsigned i = 0; i < 3; i++) {
        det_json_open(&json, NULL, '{');
        det_json_number(&json, "n", i);
        seal_close(&seal, &json);
        snprintf(lines[i], 256, "%s", det_buffer_text(&json.text));
        det_buffer_clear(&json.text);
        json.needs_comma = false;
    }
    det_json_writer_deinit(&json);
}

static bool check_lines(char lines[3][256], const unsigned *order, size_t count)
{
    struct seal seal = { 0 };

    for (size_t i = 0; i < count; i++) {
        if (!seal_check(&seal, lines[order[i]], strlen(lines[order[i]])))
            return false;
    }
    return true;
}

static void hash_chain_detects_changed_moved_and_missing_lines(void **state)
{
    char lines[3][256];

    (void)state;
    write_lines(lines);
    assert_true(check_lines(lines, (const unsigned[]){ 0, 1, 2 }, 3));
    assert_false(check_lines(lines, (const unsigned[]){ 0, 2, 1 }, 3));
    assert_false(check_lines(lines, (const unsigned[]){ 0, 2 }, 2));
    assert_false(check_lines(lines, (const unsigned[]){ 0, 1, 1 }, 3));
    for (size_t i = 0; i < strlen(lines[1]); i++) {
        lines[1][i] ^= 1;
        assert_false(check_lines(lines, (const unsigned[]){ 0, 1 }, 2));
        lines[1][i] ^= 1;
    }
    lines[0][10] = '\0';
    assert_false(check_lines(lines, (const unsigned[]){ 0 }, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_chain_detects_changed_moved_and_missing_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
