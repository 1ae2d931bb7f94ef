/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* utf8_test.c - every character is accepted, every malformed sequence is found where it starts. */
#include "base/text.h"
#include "lib/test.h"

/* The bytes of a number by the general rule, surrogates and all. */
static size_t encode(uint32_t character, char *target)
{
    static const unsigned char leads[] = { 0x00, 0xC0, 0xE0, 0xF0 };
    size_t length = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;

    for (size_t i = length; i-- > 1; character >>= 6)
        target[i] = (char)(0x80 | (character & 0x3F));
    target[0] = (char)(leads[length - 1] | character);
    return length;
}

static void every_character_but_surrogates_is_valid(void **state)
{
    char bytes[4];

    (void)state;
    for (uint32_t character = 0; character < 0x120000; character++) {
        bool is_surrogate = character >= 0xD800 && character <= 0xDFFF;
        size_t length = encode(character, bytes);
        bool is_valid = character <= 0x10FFFF && !is_surrogate;

        assert_int_equal(det_utf8_check(bytes, length), is_valid ? length : 0);
        /* An incomplete character is not valid. */
        assert_int_equal(det_utf8_check(bytes, length - 1), 0);
    }
}

static void malformed_sequences_are_found_where_they_start(void **state)
{
    static const char *const malformed[] = {
        "\x80",             /* a continuation alone */
        "\xC0\x80",         /* over-long */
        "\xC1\xBF",         /* over-long */
        "\xE0\x9F\xBF",     /* over-long */
        "\xF0\x8F\xBF\xBF", /* over-long */
        "\xC3(",            /* invalid second byte */
        "\xE2\x82(",        /* invalid third byte */
        "\xF0\x9F\x98(",    /* invalid fourth byte */
        "\xF5\x80\x80\x80", /* past U+10FFFF */
        "\xFF",
    };
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        /* After as many plain bytes as the fast path may or may not handle at once. */
        for (size_t before = 0; before < 20; before++) {
            int length = snprintf(
                text, sizeof text, "%.*s%s and more text", (int)before, "abcdefghijklmnopqrst",
                malformed[i]);

            assert_int_equal(det_utf8_check(text, (size_t)length), before);
        }
    }
}

static void text_of_mixed_lengths_is_valid(void **state)
{
    const char *text = "plain, \xC3\xA9, \xE2\x82\xAC, \xF0\x9F\x98\x80 and plain again";

    (void)state;
    assert_int_equal(det_utf8_check(text, strlen(text)), strlen(text));
    assert_int_equal(det_utf8_check("a\0b", 3), 3);
    assert_int_equal(det_utf8_check(NULL, 0), 0);
}

/* Blocks of just the size, so that a sanitizer sees a read past the end. */
static void utf8_check_reads_nothing_past_the_end(void **state)
{
    (void)state;
    for (size_t size = 1; size < 40; size++) {
        char *block = malloc(size);

        assert_non_null(block);
        memset(block, 'a', size);
        assert_int_equal(det_utf8_check(block, size), size);
        block[size - 1] = '\xF0';
        assert_int_equal(det_utf8_check(block, size), size - 1);
        free(block);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character_but_surrogates_is_valid),
        cmocka_unit_test(malformed_sequences_are_found_where_they_start),
        cmocka_unit_test(text_of_mixed_lengths_is_valid),
        cmocka_unit_test(utf8_check_reads_nothing_past_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
