/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay_error_test.c - classes, delays and resets as tables; tokens and their hash; URLs. */
#include "lib/test.h"

#include "kinds/relay_error.h"
#include "kinds/relay_token.h"
#include "kinds/relay_url.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static void test_answer_gets_the_first_matching_class(void **state)
{
    static const struct {
        long status;
        const char *body;
        enum relay_class class;
    } table[] = {
        { 429, "<title>Just a moment...</title>", RELAY_CHALLENGE },
        { 429, "challenge-platform by Zscaler", RELAY_CHALLENGE },
        { 403, "challenge-platform", RELAY_INVALID_TOKEN },
        { 429, "blocked by Zscaler", RELAY_PROXY_BLOCK },
        { 403, "<h1>Access Denied</h1>", RELAY_PROXY_BLOCK },
        { 502, "BlueCoat", RELAY_PROXY_BLOCK },
        { 200, "<html>FortiGuard</html>", RELAY_PROXY_BLOCK },
        { 403, "access denied", RELAY_INVALID_TOKEN },
        { 429, "slow down", RELAY_RATE_LIMIT },
        { 401, "", RELAY_INVALID_TOKEN },
        { 403, "", RELAY_INVALID_TOKEN },
        { 404, "", RELAY_INSTANCE_DELETED },
        { 500, "", RELAY_SERVER_ERROR },
        { 503, "busy", RELAY_SERVER_ERROR },
        { 599, "", RELAY_SERVER_ERROR },
        { 0, "", RELAY_NETWORK },
        { 200, "", RELAY_UNKNOWN },
        { 302, "", RELAY_UNKNOWN },
        { 400, "", RELAY_UNKNOWN },
        { 418, "", RELAY_UNKNOWN },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        assert_int_equal(
            relay_classify(table[i].status, table[i].body, strlen(table[i].body)), table[i].class);
    assert_int_equal(relay_classify(403, "a\0Zscaler", 9), RELAY_PROXY_BLOCK);
    assert_int_equal(relay_classify(0, NULL, 0), RELAY_NETWORK);
}

static void test_only_message_errors_poison_a_message(void **state)
{
    static const long poison[] = { 400, 413, 415, 422 };
    static const long innocent[] = { 0, 200, 401, 403, 404, 405, 407, 408, 425, 429, 500, 503 };

    (void)state;
    for (size_t i = 0; i < COUNT(poison); i++)
        assert_true(relay_status_is_poison(poison[i]));
    for (size_t i = 0; i < COUNT(innocent); i++)
        assert_false(relay_status_is_poison(innocent[i]));
}

static void test_classes_have_names_and_counters(void **state)
{
    const struct det_enum *classes = relay_class_enum();

    (void)state;
    assert_int_equal(classes->value_count, 9);
    for (size_t i = 0; i < classes->value_count; i++) {
        assert_int_equal(classes->values[i].value, i);
        assert_string_equal(classes->values[i].name, relay_class_name((enum relay_class)i));
        assert_int_equal(*relay_class_metric((enum relay_class)i) == 0, i == RELAY_NONE);
    }
    assert_string_equal(relay_class_metric(RELAY_INVALID_TOKEN), "auth_failures_total");
}

static void test_retry_after_is_seconds_or_a_date(void **state)
{
    /* Sun, 06 Nov 1994 08:49:37 GMT. */
    const det_time wall = 784111777 * DET_SECOND;
    static const struct {
        const char *text;
        det_time seconds;
    } table[] = {
        { NULL, 0 },
        { "", 0 },
        { "  ", 0 },
        { "0", 0 },
        { "1", 1 },
        { " 120 ", 120 },
        { "120\r\n", 120 },
        { "3600", 3600 },
        { "3601", 3600 },
        { "99999999999999999999999999", 3600 },
        { "-5", 0 },
        { "soon", 0 },
        { "12 monkeys", 12 },
        { "12monkeys", 0 },
        { "Sun, 06 Nov 1994 08:50:37 GMT", 60 },
        { "Sunday, 06-Nov-94 08:50:37 GMT", 60 },
        { "Sun Nov  6 08:50:37 1994", 60 },
        { "Sun, 06 Nov 1994 08:49:37 GMT", 0 },
        { "Sun, 06 Nov 1994 08:00:00 GMT", 0 },
        { "Mon, 06 Nov 2094 08:49:37 GMT", 3600 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        assert_int_equal(relay_retry_after(table[i].text, wall), table[i].seconds * DET_SECOND);
}

static void test_delays_are_exact(void **state)
{
    static const struct {
        enum relay_class class;
        det_time seconds[9]; /* after 0, 1, ... 8 failures */
    } table[] = {
        { RELAY_NONE, { 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
        { RELAY_NETWORK, { 0, 2, 4, 8, 16, 32, 60, 60, 60 } },
        { RELAY_SERVER_ERROR, { 0, 2, 4, 8, 16, 32, 60, 60, 60 } },
        { RELAY_UNKNOWN, { 0, 2, 4, 8, 16, 32, 60, 60, 60 } },
        { RELAY_CHALLENGE, { 0, 60, 60, 60, 60, 60, 60, 60, 60 } },
        { RELAY_PROXY_BLOCK, { 0, 60, 60, 60, 60, 60, 60, 60, 60 } },
        { RELAY_INVALID_TOKEN, { 0, 60, 60, 60, 60, 60, 60, 60, 60 } },
        { RELAY_RATE_LIMIT, { 0, 30, 60, 120, 300, 300, 300, 300, 300 } },
        { RELAY_INSTANCE_DELETED, { 0, 300, 300, 300, 300, 300, 300, 300, 300 } },
    };

    (void)state;
    assert_int_equal(COUNT(table), RELAY_CLASSES);
    for (size_t i = 0; i < COUNT(table); i++) {
        for (uint32_t n = 0; n < 9; n++)
            assert_int_equal(relay_delay(table[i].class, n, 0), table[i].seconds[n] * DET_SECOND);
        assert_int_equal(
            relay_delay(table[i].class, UINT32_MAX, 0), table[i].seconds[8] * DET_SECOND);
        assert_int_equal(relay_delay(table[i].class, 3, 7 * DET_SECOND), 7 * DET_SECOND);
    }
}

static void test_resets_happen_once_at_their_counts(void **state)
{
    static const struct {
        enum relay_class class;
        uint32_t every;
    } table[] = {
        { RELAY_NONE, 0 },          { RELAY_NETWORK, 5 },          { RELAY_SERVER_ERROR, 10 },
        { RELAY_CHALLENGE, 10 },    { RELAY_PROXY_BLOCK, 0 },      { RELAY_RATE_LIMIT, 0 },
        { RELAY_INVALID_TOKEN, 0 }, { RELAY_INSTANCE_DELETED, 0 }, { RELAY_UNKNOWN, 0 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        for (uint32_t n = 0, every = table[i].every; n <= 40; n++) {
            bool is_due = every && n && n % every == 0;

            assert_int_equal(relay_reset_is_due(table[i].class, n, 0), is_due);
            assert_false(n && relay_reset_is_due(table[i].class, n, n));
        }
    assert_true(relay_reset_is_due(RELAY_NETWORK, 10, 5));
}

static void test_tokens_are_replaced_ten_minutes_early(void **state)
{
    const det_time now = 1800000000 * DET_SECOND;

    (void)state;
    assert_false(relay_token_is_expiring(0, now));
    assert_false(relay_token_is_expiring(now + DET_HOUR, now));
    assert_false(relay_token_is_expiring(now + 10 * DET_MINUTE, now));
    assert_true(relay_token_is_expiring(now + 10 * DET_MINUTE - 1, now));
    assert_true(relay_token_is_expiring(now, now));
    assert_true(relay_token_is_expiring(now - DET_HOUR, now));
}

static void test_a_token_is_hashed_twice(void **state)
{
    char text[RELAY_HASH_TEXT];

    (void)state;
    assert_int_equal(relay_hash("secret", text), 0);
    assert_string_equal(text, "13f0ca4e08902e48a12124440cc6548ab102aacffcc82af15f3d69e5ba99e261");
    assert_int_equal(relay_hash("", text), 0);
    assert_string_equal(text, "42012470e20e90036b3098da71e1056ce0e561031bc41fa47faa1d1269f93a2e");
}

static void test_relay_urls_are_validated(void **state)
{
    static const struct {
        const char *url;
        bool is_valid;
    } table[] = {
        { "http://127.0.0.1:80", true },
        { "http://127.1", true },
        { "https://[::1]:8443/", true },
        { "http://LocalHost/base", true },
        { "https://relay.example/base/", true },
        { "HTTPS://relay.example:65535", true },
        { "https://[2001:db8::1]", true },
        { "http://127.example.org", true },
        { "http://localhost.example.org", true },
        { "https://relay.example/a%20b", true },
        { "", false },
        { "relay.example", false },
        { "ftp://relay.example", false },
        { "http://", false },
        { "http:///path", false },
        { "http://:80", false },
        { "http://a:0", false },
        { "http://a:", false },
        { "http://a:65536", false },
        { "http://a:99999999999999999999", false },
        { "http://a:8x", false },
        { "http://[]", false },
        { "http://[::1", false },
        { "https://me:secret@relay.example", false },
        { "https://relay.example/?token=1", false },
        { "https://relay.example#x", false },
        { "https://relay.example/a b", false },
        { "https://relay.example/a\r\nX: y", false },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        assert_int_equal(relay_url_is_valid(table[i].url), table[i].is_valid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer_gets_the_first_matching_class),
        cmocka_unit_test(test_only_message_errors_poison_a_message),
        cmocka_unit_test(test_classes_have_names_and_counters),
        cmocka_unit_test(test_retry_after_is_seconds_or_a_date),
        cmocka_unit_test(test_delays_are_exact),
        cmocka_unit_test(test_resets_happen_once_at_their_counts),
        cmocka_unit_test(test_tokens_are_replaced_ten_minutes_early),
        cmocka_unit_test(test_a_token_is_hashed_twice),
        cmocka_unit_test(test_relay_urls_are_validated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
