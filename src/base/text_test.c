/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* text_test.c - views, copies that fit, names, numbers and the nearest word. */
#include "base/text.h"
#include "lib/test.h"

static void views_compare_by_their_bytes(void **state)
{
    struct det_view abc = det_view_of("abcdef", 3);

    (void)state;
    assert_true(det_view_equal(abc, det_view_text("abc")));
    assert_false(det_view_equal(abc, det_view_text("abd")));
    assert_false(det_view_equal(abc, det_view_text("ab")));
    assert_true(det_view_equal(det_view_of(NULL, 0), det_view_text("")));
    assert_true(det_view_is(abc, "abc"));
    assert_false(det_view_is(abc, "abcdef"));
}

static void a_copy_that_fits_is_whole(void **state)
{
    char target[6];

    (void)state;
    assert_true(det_text_copy(target, sizeof target, "12345"));
    assert_string_equal(target, "12345");
    assert_true(det_text_copy(target, sizeof target, ""));
    assert_string_equal(target, "");
    assert_false(det_text_copy(target, sizeof target, "123456"));
    assert_string_equal(target, "12345");
    assert_false(det_text_copy(target, 1, "1"));
    assert_string_equal(target, "");
}

static void a_copy_is_cut_between_characters(void **state)
{
    static const struct {
        size_t capacity;
        const char *kept;
    } cases[] = {
        { 8, "a\xE2\x82\xAC"
             "bc" },
        { 7, "a\xE2\x82\xAC"
             "bc" },
        { 6, "a\xE2\x82\xAC"
             "b" },
        { 5, "a\xE2\x82\xAC" },
        { 4, "a" },
        { 3, "a" },
        { 2, "a" },
        { 1, "" },
    };
    char target[8];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool all = det_text_copy(
            target, cases[i].capacity,
            "a\xE2\x82\xAC"
            "bc");

        assert_string_equal(target, cases[i].kept);
        assert_int_equal(all, cases[i].capacity >= 7);
    }
}

static void a_copy_of_no_utf8_is_cut_where_it_is(void **state)
{
    char target[6];

    (void)state;
    assert_false(det_text_copy(target, sizeof target, "\x80\x80\x80\x80\x80\x80\x80"));
    assert_string_equal(target, "\x80\x80\x80\x80\x80");
    assert_false(det_text_copy(target, 2, "\x80\x80\x80"));
    assert_string_equal(target, "\x80");
}

static void names_are_letters_digits_dots_dashes(void **state)
{
    char name[DET_NAME_MAX + 2];

    (void)state;
    assert_true(det_name_is_valid("order-42_A.z"));
    assert_true(det_name_is_valid("0"));
    assert_false(det_name_is_valid(""));
    assert_false(det_name_is_valid("a b"));
    assert_false(det_name_is_valid("a/b"));
    assert_false(det_name_is_valid("\xC3\xA9"));
    for (const char *c = "@[`{:/,^"; *c != '\0'; c++) {
        assert_false(det_name_is_valid((char[]){ *c, '\0' }));
    }
    memset(name, 'n', sizeof name);
    name[DET_NAME_MAX] = '\0';
    assert_true(det_name_is_valid(name));
    name[DET_NAME_MAX] = 'n';
    name[DET_NAME_MAX + 1] = '\0';
    assert_false(det_name_is_valid(name));
}

static void unsigned_numbers_are_read_exactly(void **state)
{
    uint64_t value = 99;

    (void)state;
    assert_int_equal(det_parse_u64(det_view_text("0"), &value), 0);
    assert_int_equal(value, 0);
    assert_int_equal(det_parse_u64(det_view_text("18446744073709551615"), &value), 0);
    assert_true(value == UINT64_MAX);
    assert_int_equal(det_parse_u64(det_view_of("1234", 2), &value), 0);
    assert_int_equal(value, 12);
    assert_int_equal(
        det_parse_u64(det_view_text("18446744073709551616"), &value), DET_ERR_OVERFLOW);
    assert_int_equal(
        det_parse_u64(det_view_text("20000000000000000000"), &value), DET_ERR_OVERFLOW);
    assert_int_equal(
        det_parse_u64(det_view_text("99999999999999999999999999x"), &value), DET_ERR_MALFORMED);
    for (size_t i = 0; i < 8; i++) {
        static const char *const malformed[] = { "", "-1", "+1", " 1", "1 ", "0x1", "1.0", "one" };

        assert_int_equal(det_parse_u64(det_view_text(malformed[i]), &value), DET_ERR_MALFORMED);
    }
    assert_int_equal(value, 12);
}

static void signed_numbers_are_read_exactly(void **state)
{
    int64_t value = 99;

    (void)state;
    assert_int_equal(det_parse_i64(det_view_text("-9223372036854775808"), &value), 0);
    assert_true(value == INT64_MIN);
    assert_int_equal(det_parse_i64(det_view_text("9223372036854775807"), &value), 0);
    assert_true(value == INT64_MAX);
    assert_int_equal(det_parse_i64(det_view_text("-0"), &value), 0);
    assert_int_equal(value, 0);
    assert_int_equal(det_parse_i64(det_view_text("-17"), &value), 0);
    assert_int_equal(value, -17);
    assert_int_equal(det_parse_i64(det_view_text("9223372036854775808"), &value), DET_ERR_OVERFLOW);
    assert_int_equal(
        det_parse_i64(det_view_text("-9223372036854775809"), &value), DET_ERR_OVERFLOW);
    assert_int_equal(
        det_parse_i64(det_view_text("-99999999999999999999"), &value), DET_ERR_OVERFLOW);
    assert_int_equal(det_parse_i64(det_view_text("-"), &value), DET_ERR_MALFORMED);
    assert_int_equal(det_parse_i64(det_view_text("--1"), &value), DET_ERR_MALFORMED);
    assert_int_equal(det_parse_i64(det_view_text(""), &value), DET_ERR_MALFORMED);
    assert_int_equal(value, -17);
}

static void the_nearest_word_is_found(void **state)
{
    static const char *const words[] = { "PENDING", "CHARGING", "PAID", "push",
                                         "pull",    "expired",  "add" };
    static const struct {
        const char *word;
        int index;
    } cases[] = {
        { "PENDING", 0 }, { "pending", 0 },  { "PENDIGN", 0 },
        { "PNDNG", 0 },   { "CHARGNIG", 1 }, { "PAYD", 2 },
        { "psuh", 3 },    { "pul", 4 },      { "exipred", 5 },
        { "ad", 6 },      { "a", -1 },       { "x", -1 },
        { "", -1 },       { "CHARGED", -1 }, { "PENDINGPENDING", -1 },
        { "pusl", 3 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(det_text_nearest(cases[i].word, words, 7), cases[i].index);
    assert_int_equal(det_text_nearest("push", words, 0), -1);
}

static void words_longer_than_a_name_have_no_nearest(void **state)
{
    char full[DET_NAME_MAX + 1], longer[DET_NAME_MAX + 2];
    const char *const words[] = { longer, full };

    (void)state;
    memset(full, 'w', sizeof full);
    full[DET_NAME_MAX] = '\0';
    memset(longer, 'w', sizeof longer);
    longer[DET_NAME_MAX + 1] = '\0';
    assert_int_equal(det_text_nearest(longer, words, 2), -1);
    assert_int_equal(det_text_nearest(full, words, 2), 1);
}

static void copy_into_nothing(void *argument)
{
    (void)det_text_copy(argument, 0, "x");
}

static void too_many_words(void *argument)
{
    (void)det_text_nearest("x", argument, SIZE_MAX);
}

static void impossible_arguments_are_assertions(void **state)
{
    char target[1];

    (void)state;
    assert_true(det_test_aborts(copy_into_nothing, target, "capacity > 0"));
    assert_true(det_test_aborts(too_many_words, NULL, "count <="));
}

static void counts_and_articles_agree_with_their_noun(void **state)
{
    (void)state;
    assert_string_equal(det_plural(0), "s");
    assert_string_equal(det_plural(1), "");
    assert_string_equal(det_plural(2), "s");
    assert_string_equal(det_is_or_are(1), "is");
    assert_string_equal(det_is_or_are(0), "are");
    assert_string_equal(det_was_or_were(1), "was");
    assert_string_equal(det_was_or_were(3), "were");
    assert_string_equal(det_article("order"), "an");
    assert_string_equal(det_article("Error"), "an");
    assert_string_equal(det_article("light"), "a");
    assert_string_equal(det_article(""), "a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_compare_by_their_bytes),
        cmocka_unit_test(a_copy_that_fits_is_whole),
        cmocka_unit_test(a_copy_is_cut_between_characters),
        cmocka_unit_test(a_copy_of_no_utf8_is_cut_where_it_is),
        cmocka_unit_test(names_are_letters_digits_dots_dashes),
        cmocka_unit_test(unsigned_numbers_are_read_exactly),
        cmocka_unit_test(signed_numbers_are_read_exactly),
        cmocka_unit_test(the_nearest_word_is_found),
        cmocka_unit_test(words_longer_than_a_name_have_no_nearest),
        cmocka_unit_test(counts_and_articles_agree_with_their_noun),
        cmocka_unit_test(impossible_arguments_are_assertions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
