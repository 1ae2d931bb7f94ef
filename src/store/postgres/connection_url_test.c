/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* connection_url_test.c - the parameters for libpq from a URL, refused URLs, messages without the
 * password, and the meaning of the server's codes. */
#include "lib/test.h"
#include "store/postgres/postgres.h"

static const struct det_store_options plain_options = { .timeout = 10 * DET_SECOND };

static const char *value_of(const struct postgres_url *url, const char *keyword)
{
    const char *found = NULL;

    for (size_t i = 0; url->keywords[i]; i++) {
        if (strcmp(url->keywords[i], keyword) == 0) {
            assert_null(found);
            found = url->values[i];
        }
    }
    return found;
}

static void detent_url_parameters_are_removed_for_libpq(void **state)
{
    struct postgres_url url;

    (void)state;
    assert_int_equal(
        det_postgres_url_init(
            &url, "//ann@db.example/shop?schema=orders_2&application_name=till&pooler=yes",
            &plain_options, NULL),
        0);
    assert_string_equal(url.schema, "orders_2");
    assert_true(url.is_pooled);
    assert_string_equal(value_of(&url, "user"), "ann");
    assert_string_equal(value_of(&url, "host"), "db.example");
    assert_string_equal(value_of(&url, "dbname"), "shop");
    assert_string_equal(value_of(&url, "application_name"), "till");
    /* A pooler has no sessions. */
    assert_null(value_of(&url, "options"));
    det_postgres_url_deinit(&url);
}

static void connection_defaults_are_safe(void **state)
{
    struct postgres_url url;

    (void)state;
    assert_int_equal(det_postgres_url_init(&url, "//db.example/shop", &plain_options, NULL), 0);
    assert_string_equal(url.schema, "detent");
    assert_false(url.is_pooled);
    assert_string_equal(value_of(&url, "sslmode"), "verify-full");
    assert_string_equal(value_of(&url, "target_session_attrs"), "read-write");
    assert_string_equal(value_of(&url, "tcp_user_timeout"), "10000");
    assert_string_equal(value_of(&url, "client_encoding"), "UTF8");
    assert_non_null(strstr(value_of(&url, "options"), "-c statement_timeout=10000 "));
    assert_non_null(strstr(value_of(&url, "options"), "-c lock_timeout=5001 "));
    assert_non_null(
        strstr(value_of(&url, "options"), "-c idle_in_transaction_session_timeout=10000 "));
    assert_null(strstr(value_of(&url, "options"), "read_only"));
    det_postgres_url_deinit(&url);
}

static void url_parameters_override_the_defaults(void **state)
{
    struct postgres_url url;

    (void)state;
    assert_int_equal(
        det_postgres_url_init(
            &url,
            "//h/d?sslmode=disable&target_session_attrs=any&options=-c%20work_mem%3D1MB&pooler=no",
            &plain_options, NULL),
        0);
    assert_string_equal(value_of(&url, "sslmode"), "disable");
    assert_string_equal(value_of(&url, "target_session_attrs"), "any");
    assert_non_null(strstr(value_of(&url, "options"), " -c work_mem=1MB"));
    assert_non_null(strstr(value_of(&url, "options"), "statement_timeout"));
    det_postgres_url_deinit(&url);
}

static void reading_needs_no_server_that_writes(void **state)
{
    const struct det_store_options options = { .timeout = DET_SECOND, .is_read_only = true };
    struct postgres_url url;

    (void)state;
    assert_int_equal(det_postgres_url_init(&url, "//h/d", &options, NULL), 0);
    assert_null(value_of(&url, "target_session_attrs"));
    assert_non_null(strstr(value_of(&url, "options"), "-c default_transaction_read_only=on"));
    det_postgres_url_deinit(&url);
}

static void a_url_that_is_wrong_is_refused_in_words_without_its_password(void **state)
{
    static const struct {
        const char *url, *words;
    } cases[] = {
        { "ann:geheim@h/d", "use for example" },
        { "//ann:geheim@h/d?schema=", "schema=" },
        { "//ann:geheim@h/d?schema=Up", "schema=Up" },
        { "//ann:geheim@h/d?schema=1a", "schema=1a" },
        { "//ann:geheim@h/d?schema=pg_mine", "schema=pg_mine" },
        { "//ann:geheim@h/d?schema=a\"b", "schema=" },
        { "//ann:geheim@h/"
          "d?schema=a123456789012345678901234567890123456789012345678901234567890123",
          "63" },
        { "//ann:geheim@h/d?pooler=perhaps", "use yes or no" },
        { "//ann:geheim@h/d?colour=red", "invalid URI query parameter: \"colour\"" },
        { "//ann:geheim%00@h/d", "valid for libpq: forbidden value %00 in percent-encoded value" },
        { "//ann:geheim@[h/d", "valid for libpq: end of string reached when looking for" },
        { "//ann:geheim@h/d?options="
          "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
          "8901234567890",
          "100 bytes" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct postgres_url url;
        struct det_error error = { 0 };

        assert_int_equal(
            det_postgres_url_init(&url, cases[i].url, &plain_options, &error), DET_ERR_INVALID);
        if (!strstr(error.text, cases[i].words) || strstr(error.text, "geheim"))
            fail_msg("%s: %s", cases[i].url, error.text);
    }
}

static void libpq_messages_are_stripped_of_the_password(void **state)
{
    struct postgres_url url;
    char text[32];

    (void)state;
    assert_int_equal(det_postgres_url_init(&url, "//ann:geheim@h/d", &plain_options, NULL), 0);
    det_postgres_url_scrub(&url, "no\tgeheim here,\nann:geheim\n", text, sizeof text);
    assert_string_equal(text, "no *** here, ann:***");
    det_postgres_url_scrub(&url, "0123456789012345678901234567890123456789", text, sizeof text);
    assert_true(strlen(text) < sizeof text);
    det_postgres_url_deinit(&url);
}

static void every_code_of_the_server_has_a_meaning(void **state)
{
    static const struct {
        const char *code;
        enum postgres_action action;
        int result;
    } cases[] = {
        { "40001", POSTGRES_RETRY, DET_ERR_BUSY },
        { "40P01", POSTGRES_RETRY, DET_ERR_BUSY },
        { "40003", POSTGRES_UNKNOWN, DET_ERR_IO },
        { "55P03", POSTGRES_RETRY, DET_ERR_BUSY },
        { "57014", POSTGRES_RETRY, DET_ERR_TIMEOUT },
        { "57P01", POSTGRES_RECONNECT, DET_ERR_IO },
        { "57P02", POSTGRES_RECONNECT, DET_ERR_IO },
        { "57P03", POSTGRES_RECONNECT, DET_ERR_IO },
        { "53300", POSTGRES_RECONNECT, DET_ERR_BUSY },
        { "53100", POSTGRES_FATAL, DET_ERR_NO_SPACE },
        { "53200", POSTGRES_FATAL, DET_ERR_NO_MEMORY },
        { "25006", POSTGRES_RECONNECT, DET_ERR_READ_ONLY },
        { "08006", POSTGRES_UNKNOWN, DET_ERR_IO },
        { "08007", POSTGRES_UNKNOWN, DET_ERR_IO },
        { "23505", POSTGRES_RETRY, DET_ERR_CORRUPT },
        { "23514", POSTGRES_FATAL, DET_ERR_INVALID },
        { "26000", POSTGRES_RECONNECT, DET_ERR_IO },
        { "42P05", POSTGRES_RECONNECT, DET_ERR_IO },
        { "42501", POSTGRES_FATAL, DET_ERR_READ_ONLY },
        { "22021", POSTGRES_FATAL, DET_ERR_INVALID },
        { "54000", POSTGRES_FATAL, DET_ERR_LIMIT },
        { "XX001", POSTGRES_FATAL, DET_ERR_CORRUPT },
        { "XX000", POSTGRES_FATAL, DET_ERR_INVALID },
        { "58030", POSTGRES_FATAL, DET_ERR_IO },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct postgres_failure failure;

        det_postgres_failure_of(cases[i].code, &failure);
        assert_int_equal(failure.action, cases[i].action);
        assert_int_equal(failure.result, cases[i].result);
        assert_string_equal(failure.sqlstate, cases[i].code);
        assert_true(failure.text[0] != 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(detent_url_parameters_are_removed_for_libpq),
        cmocka_unit_test(connection_defaults_are_safe),
        cmocka_unit_test(url_parameters_override_the_defaults),
        cmocka_unit_test(reading_needs_no_server_that_writes),
        cmocka_unit_test(a_url_that_is_wrong_is_refused_in_words_without_its_password),
        cmocka_unit_test(libpq_messages_are_stripped_of_the_password),
        cmocka_unit_test(every_code_of_the_server_has_a_meaning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
