/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* word64_test.c - copying plain text, with every byte at every place of every size. */
#include "record/word64.h"

#include "lib/test.h"

#define SIZE_MAX_TRIED 40

/* From and into memory that ends where the text does, so that going on is found. */
static bool copy_is_plain(const uint8_t *text, size_t size)
{
    uint8_t *source = malloc(size + 1), *target = malloc(size + 1);
    bool is_plain;

    memcpy(source + 1, text, size);
    memset(target, 0x5a, size + 1);
    is_plain = det_copy_plain(target + 1, source + 1, size);
    assert_memory_equal(target + 1, text, size);
    assert_int_equal(target[0], 0x5a);
    free(source);
    free(target);
    return is_plain;
}

static void plain_texts_are_copied_and_known(void **state)
{
    uint8_t text[SIZE_MAX_TRIED];

    (void)state;
    for (size_t size = 0; size <= sizeof text; size++) {
        for (size_t i = 0; i < size; i++)
            text[i] = (uint8_t)(1 + (i * 5 + size) % 127);
        assert_true(copy_is_plain(text, size));
    }
}

static void single_non_ascii_byte_is_found(void **state)
{
    uint8_t text[SIZE_MAX_TRIED];

    (void)state;
    memset(text, 'x', sizeof text);
    for (size_t size = 1; size <= sizeof text; size++) {
        for (size_t at = 0; at < size; at++) {
            for (unsigned byte = 0; byte < 256; byte++) {
                text[at] = (uint8_t)byte;
                assert_int_equal(copy_is_plain(text, size), byte >= 1 && byte <= 0x7f);
            }
            text[at] = 'x';
        }
    }
}

static void words_are_little_endian(void **state)
{
    const uint8_t bytes[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    uint8_t again[8];

    (void)state;
    assert_true(det_word_load(bytes) == UINT64_C(0x0807060504030201));
    det_word_store(again, UINT64_C(0x0807060504030201));
    assert_memory_equal(again, bytes, sizeof bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_texts_are_copied_and_known),
        cmocka_unit_test(single_non_ascii_byte_is_found),
        cmocka_unit_test(words_are_little_endian),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
