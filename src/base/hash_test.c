/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* hash_test.c - the hash is fixed, mixes well and depends on every bit, the length and the seed. */
#include "base/hash.h"
#include "lib/test.h"

#define KEYS    100000
#define BUCKETS 1024

static void the_hash_never_changes(void **state)
{
    (void)state;
    /* Traces hold these: a change here is a change of format. */
    assert_true(det_hash64("", 0, 0) == UINT64_C(0x038B565C5F4E708C));
    assert_true(det_hash64("abc", 3, 1) == UINT64_C(0x6CA2BF6308584B7A));
    assert_true(det_hash64("order-42", 8, 2) == UINT64_C(0x33F2E7E30AF9A346));
    assert_true(
        det_hash64("a longer key of more than 32 bytes", 34, 3) == UINT64_C(0x213F304B43BC4807));
    assert_true(det_hash_mix(det_hash_mix(0, 1), 2) == UINT64_C(0xC9A4331E2149CF9F));
}

static int count_bits(uint64_t value)
{
    return __builtin_popcountll(value);
}

/* On average a flipped bit should flip half of the hash; fewer than 8 of 64 has a chance of one in
 * a thousand million. */
static void hash_depends_on_every_bit_and_the_seed(void **state)
{
    unsigned char bytes[70] = "a key";
    uint64_t seed = 7;

    (void)state;
    for (size_t size = 1; size <= sizeof bytes; size++) {
        uint64_t whole = det_hash64(bytes, size, seed);

        for (size_t bit = 0; bit < 8 * size; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1u << (bit % 8));
            assert_true(count_bits(det_hash64(bytes, size, seed) ^ whole) >= 8);
            bytes[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        }
        for (unsigned int bit = 0; bit < 64; bit++)
            assert_true(
                count_bits(det_hash64(bytes, size, seed ^ (UINT64_C(1) << bit)) ^ whole) >= 8);
    }
}

static void hash_depends_on_the_length(void **state)
{
    const unsigned char zeroes[100] = { 0 };
    uint64_t hashes[100];

    (void)state;
    for (size_t size = 0; size < 100; size++) {
        hashes[size] = det_hash64(zeroes, size, 0);
        for (size_t other = 0; other < size; other++)
            assert_true(hashes[size] != hashes[other]);
    }
}

/* The sum of the squared deviations from an even spread has a mean of about BUCKETS and a standard
 * deviation of about 45; 400 away from the mean does not happen by chance. */
static void check_spread(const unsigned int *counts)
{
    double expected = (double)KEYS / BUCKETS, sum = 0;

    for (size_t i = 0; i < BUCKETS; i++)
        sum += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
    assert_true(sum > BUCKETS - 400 && sum < BUCKETS + 400);
}

static void numbered_keys_spread_evenly(void **state)
{
    unsigned int low[BUCKETS] = { 0 }, high[BUCKETS] = { 0 };
    char key[32];

    (void)state;
    for (int i = 0; i < KEYS; i++) {
        int length = snprintf(key, sizeof key, "order-%d", i);
        uint64_t hash = det_hash64(key, (size_t)length, 5);

        low[hash % BUCKETS]++;
        high[hash >> 54]++;
    }
    check_spread(low);
    check_spread(high);
}

static void mixed_numbers_spread_evenly(void **state)
{
    unsigned int low[BUCKETS] = { 0 }, high[BUCKETS] = { 0 };

    (void)state;
    for (uint64_t i = 0; i < KEYS; i++) {
        uint64_t hash = det_hash_mix(0, i);

        low[hash % BUCKETS]++;
        high[hash >> 54]++;
    }
    check_spread(low);
    check_spread(high);
}

static void hash_mix_depends_on_the_order(void **state)
{
    (void)state;
    assert_true(det_hash_mix(det_hash_mix(0, 1), 2) != det_hash_mix(det_hash_mix(0, 2), 1));
    assert_true(det_hash_mix(0, 0) != 0);
    assert_true(det_hash_mix(det_hash_mix(0, 0), 0) != det_hash_mix(0, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hash_never_changes),
        cmocka_unit_test(hash_depends_on_every_bit_and_the_seed),
        cmocka_unit_test(hash_depends_on_the_length),
        cmocka_unit_test(numbered_keys_spread_evenly),
        cmocka_unit_test(mixed_numbers_spread_evenly),
        cmocka_unit_test(hash_mix_depends_on_the_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
