/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* crc32c_test.c - the instruction and the table against known values and each other. */
#include "base/hash.h"
#include "lib/test.h"

typedef uint32_t crc_function(uint32_t crc, const void *data, size_t size);

static crc_function *const functions[] = { det_crc32c, det_crc32c_portable };

static void known_values_hold(void **state)
{
    unsigned char bytes[32];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(functions[i](0, "123456789", 9), 0xE3069283);
        assert_int_equal(functions[i](0, "", 0), 0);
        /* From RFC 3720, B.4: 32 bytes of zeroes, of ones, counting up, counting down. */
        memset(bytes, 0, sizeof bytes);
        assert_int_equal(functions[i](0, bytes, sizeof bytes), 0x8A9136AA);
        memset(bytes, 0xFF, sizeof bytes);
        assert_int_equal(functions[i](0, bytes, sizeof bytes), 0x62A8AB43);
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (unsigned char)k;
        assert_int_equal(functions[i](0, bytes, sizeof bytes), 0x46DD794E);
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (unsigned char)(31 - k);
        assert_int_equal(functions[i](0, bytes, sizeof bytes), 0x113FDB5C);
    }
}

static void crc_implementations_agree_at_every_length_and_offset(void **state)
{
    unsigned char bytes[300];
    uint64_t seed = 3;

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)det_test_random(&seed);
    for (size_t start = 0; start < 9; start++) {
        for (size_t size = 0; size + start <= sizeof bytes; size++) {
            uint32_t before = (uint32_t)det_test_random(&seed);

            assert_int_equal(
                det_crc32c(before, bytes + start, size),
                det_crc32c_portable(before, bytes + start, size));
        }
    }
}

/* Around the sizes that are computed in parts. */
static void crc_implementations_agree_for_large_inputs(void **state)
{
    static unsigned char bytes[20000];
    uint64_t seed = 4;

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)det_test_random(&seed);
    for (size_t size = 0; size < sizeof bytes; size += 1 + (size_t)(det_test_random(&seed) % 60)) {
        uint32_t before = (uint32_t)det_test_random(&seed);

        assert_int_equal(det_crc32c(before, bytes, size), det_crc32c_portable(before, bytes, size));
    }
}

static void crc_can_be_computed_in_pieces(void **state)
{
    const char *text = "a checksum may be made of pieces";
    size_t size = strlen(text);
    uint32_t whole = det_crc32c(0, text, size);

    (void)state;
    for (size_t cut = 0; cut <= size; cut++) {
        uint32_t crc = det_crc32c(0, text, cut);

        assert_int_equal(det_crc32c(crc, text + cut, size - cut), whole);
    }
}

static void any_flipped_bit_changes_it(void **state)
{
    unsigned char bytes[40] = "every single bit of these counts";
    uint32_t whole = det_crc32c(0, bytes, sizeof bytes);

    (void)state;
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        assert_int_not_equal(det_crc32c(0, bytes, sizeof bytes), whole);
        bytes[bit / 8] ^= (unsigned char)(1u << (bit % 8));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values_hold),
        cmocka_unit_test(crc_implementations_agree_at_every_length_and_offset),
        cmocka_unit_test(crc_implementations_agree_for_large_inputs),
        cmocka_unit_test(crc_can_be_computed_in_pieces),
        cmocka_unit_test(any_flipped_bit_changes_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
