/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* communicator_test.c - what the communicator decides, view by view; what it makes of a config. */
#include "lib/test.h"

#include "kinds/communicator.h"
#include "kinds/kinds.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define NOW         (1800000000 * DET_SECOND)

DET_PRINTF(2, 3)
static const char *format_reason(struct det_reason *reason, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(reason->text, sizeof reason->text, format, list);
    va_end(list);
    return reason->text;
}

static struct det_reason scratch = { .format = format_reason };

/* Returns its decision in a state. */
static struct det_next next(
    enum communicator_state state, const struct communicator_observed *observed)
{
    static const struct communicator_desired desired = { .relay_url = "http://relay.example" };
    struct det_worker_view view = { .kind = &communicator_kind,
                                    .desired = &desired,
                                    .observed = observed,
                                    .state = (uint16_t)state,
                                    .now = DET_HOUR,
                                    .wall = NOW,
                                    .scratch = &scratch };

    return communicator_kind.states[state].next(&view);
}

static void expect(
    enum communicator_state state, const struct communicator_observed *observed,
    enum det_next_kind kind, int what)
{
    struct det_next is = next(state, observed);

    assert_int_equal(is.kind, kind);
    assert_true(is.reason && *is.reason);
    if (kind != DET_NEXT_HOLD)
        assert_int_equal(is.what, what);
}

/* Logged in for hours, with so many errors of a class, the last one a while ago. */
static struct communicator_observed after(enum relay_class class, uint32_t errors, det_time ago)
{
    return (struct communicator_observed){
        .has_token = true,
        .token_expiry = NOW + 5 * DET_HOUR,
        .uuid = "u-1",
        .consecutive_errors = errors,
        .last_error = class,
        .last_attempt = errors ? NOW - ago : 0,
        .last_auth_attempt = NOW - 6 * DET_HOUR,
    };
}

static void test_communicator_kind_is_valid(void **state)
{
    struct det_error error = { 0 };

    (void)state;
    assert_int_equal(det_worker_kind_check(&communicator_kind, &error), 0);
    assert_string_equal(communicator_kind.name, "communicator");
    assert_int_equal(communicator_kind.states[0].phase, DET_PHASE_STOPPED);
}

/* A stop comes before all else: no state that runs is even asked, each goes to STOPPED at once. */
static void test_a_stop_has_priority(void **state)
{
    (void)state;
    for (int i = COMMUNICATOR_AUTHENTICATING; i <= COMMUNICATOR_DEGRADED; i++)
        assert_int_equal(communicator_kind.states[i].on_stop, COMMUNICATOR_STOPPED);
}

static void test_communicator_starts_with_a_login(void **state)
{
    struct communicator_observed nothing = { 0 };

    (void)state;
    expect(COMMUNICATOR_STOPPED, &nothing, DET_NEXT_GOTO, COMMUNICATOR_AUTHENTICATING);
    expect(COMMUNICATOR_AUTHENTICATING, &nothing, DET_NEXT_DO, COMMUNICATOR_AUTHENTICATE);
    expect(COMMUNICATOR_SYNCING, &nothing, DET_NEXT_GOTO, COMMUNICATOR_AUTHENTICATING);
}

static void test_a_login_that_failed_is_tried_again_after_its_delay(void **state)
{
    struct communicator_observed observed = { .consecutive_errors = 3,
                                              .last_error = RELAY_SERVER_ERROR };

    (void)state;
    observed.last_auth_attempt = observed.last_attempt = NOW - 8 * DET_SECOND + 1;
    expect(COMMUNICATOR_AUTHENTICATING, &observed, DET_NEXT_HOLD, 0);
    assert_string_equal(
        scratch.text, "3 errors in a row, the last is server_error: next attempt in 1 s");
    observed.last_auth_attempt = NOW - 8 * DET_SECOND;
    expect(COMMUNICATOR_AUTHENTICATING, &observed, DET_NEXT_DO, COMMUNICATOR_AUTHENTICATE);
    observed.last_error = RELAY_INSTANCE_DELETED;
    expect(COMMUNICATOR_AUTHENTICATING, &observed, DET_NEXT_HOLD, 0);
    /* Never tried, or without errors: at once. */
    observed.last_auth_attempt = 0;
    expect(COMMUNICATOR_AUTHENTICATING, &observed, DET_NEXT_DO, COMMUNICATOR_AUTHENTICATE);
    observed.last_auth_attempt = NOW;
    observed.consecutive_errors = 0;
    expect(COMMUNICATOR_AUTHENTICATING, &observed, DET_NEXT_DO, COMMUNICATOR_AUTHENTICATE);
}

static void test_token_is_renewed_in_its_last_ten_minutes(void **state)
{
    static const struct {
        det_time expiry;
        bool is_good;
    } table[] = {
        { 0, true }, /* not known */
        { NOW + 5 * DET_HOUR, true },
        { NOW + 10 * DET_MINUTE, true },
        { NOW + 10 * DET_MINUTE - 1, false },
        { NOW - 1, false },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct communicator_observed observed = after(RELAY_NONE, 0, 0);

        observed.token_expiry = table[i].expiry;
        if (table[i].is_good) {
            expect(COMMUNICATOR_AUTHENTICATING, &observed, DET_NEXT_GOTO, COMMUNICATOR_SYNCING);
            expect(COMMUNICATOR_SYNCING, &observed, DET_NEXT_DO, COMMUNICATOR_SYNC);
        } else {
            expect(COMMUNICATOR_SYNCING, &observed, DET_NEXT_GOTO, COMMUNICATOR_AUTHENTICATING);
            expect(COMMUNICATOR_AUTHENTICATING, &observed, DET_NEXT_DO, COMMUNICATOR_AUTHENTICATE);
        }
    }
}

static void test_fifth_consecutive_error_is_an_outage(void **state)
{
    (void)state;
    for (uint32_t errors = 0; errors <= 4; errors++) {
        struct communicator_observed observed = after(RELAY_NETWORK, errors, 0);

        expect(COMMUNICATOR_SYNCING, &observed, DET_NEXT_DO, COMMUNICATOR_SYNC);
    }
    for (uint32_t errors = 5; errors <= 7; errors++) {
        struct communicator_observed observed = after(RELAY_NETWORK, errors, 0);

        expect(COMMUNICATOR_SYNCING, &observed, DET_NEXT_GOTO, COMMUNICATOR_DEGRADED);
    }
}

/* The way out of an outage. */
static void test_outage_ends_when_a_call_succeeds(void **state)
{
    struct communicator_observed well = after(RELAY_NONE, 0, 0);
    struct communicator_observed refused = after(RELAY_INVALID_TOKEN, 6, 0);
    struct communicator_observed without = after(RELAY_NETWORK, 6, 0);

    (void)state;
    without.has_token = false;
    expect(COMMUNICATOR_DEGRADED, &well, DET_NEXT_GOTO, COMMUNICATOR_SYNCING);
    expect(COMMUNICATOR_DEGRADED, &refused, DET_NEXT_GOTO, COMMUNICATOR_AUTHENTICATING);
    expect(COMMUNICATOR_DEGRADED, &without, DET_NEXT_GOTO, COMMUNICATOR_AUTHENTICATING);
}

/* The table once more, as it is lived: held to the nanosecond before, done at the nanosecond. The
 * anchor is the last attempt; how long the outage lasts does not matter. */
static void test_each_attempt_waits_exactly_its_delay(void **state)
{
    static const struct {
        enum relay_class class;
        uint32_t errors;
        det_time seconds;
    } table[] = {
        { RELAY_NETWORK, 6, 60 },      { RELAY_NETWORK, 7, 60 },
        { RELAY_NETWORK, 100001, 60 }, { RELAY_SERVER_ERROR, 5, 32 },
        { RELAY_UNKNOWN, 5, 32 },      { RELAY_UNKNOWN, 10, 60 },
        { RELAY_CHALLENGE, 5, 60 },    { RELAY_PROXY_BLOCK, 5, 60 },
        { RELAY_RATE_LIMIT, 5, 300 },  { RELAY_INSTANCE_DELETED, 5, 300 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct communicator_observed observed =
            after(table[i].class, table[i].errors, table[i].seconds * DET_SECOND - 1);

        observed.degraded_since = NOW - DET_DAY;
        expect(COMMUNICATOR_DEGRADED, &observed, DET_NEXT_HOLD, 0);
        observed.last_attempt--;
        expect(COMMUNICATOR_DEGRADED, &observed, DET_NEXT_DO, COMMUNICATOR_SYNC);
        /* A clock that was set back. */
        observed.last_attempt = NOW + DET_DAY;
        expect(COMMUNICATOR_DEGRADED, &observed, DET_NEXT_DO, COMMUNICATOR_SYNC);
    }
}

static void test_retry_after_overrides_the_backoff(void **state)
{
    struct communicator_observed observed = after(RELAY_RATE_LIMIT, 6, 7 * DET_SECOND);

    (void)state;
    observed.retry_after_ms = 7001;
    expect(COMMUNICATOR_DEGRADED, &observed, DET_NEXT_HOLD, 0);
    observed.retry_after_ms = 7000;
    expect(COMMUNICATOR_DEGRADED, &observed, DET_NEXT_DO, COMMUNICATOR_SYNC);
    /* It is heard from the first error on. */
    observed = after(RELAY_RATE_LIMIT, 1, 7 * DET_SECOND);
    observed.retry_after_ms = 7001;
    expect(COMMUNICATOR_SYNCING, &observed, DET_NEXT_HOLD, 0);
    observed.retry_after_ms = 7000;
    expect(COMMUNICATOR_SYNCING, &observed, DET_NEXT_DO, COMMUNICATOR_SYNC);
}

/* At its count, once; then the sync, so that the count moves on. */
static void test_transport_is_reset_once_at_each_count(void **state)
{
    static const struct {
        enum relay_class class;
        uint32_t every;
    } table[] = {
        { RELAY_NETWORK, 5 },     { RELAY_SERVER_ERROR, 10 }, { RELAY_CHALLENGE, 10 },
        { RELAY_PROXY_BLOCK, 0 }, { RELAY_RATE_LIMIT, 0 },    { RELAY_INSTANCE_DELETED, 0 },
        { RELAY_UNKNOWN, 0 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        for (uint32_t errors = 5; errors <= 30; errors++) {
            struct communicator_observed observed = after(table[i].class, errors, DET_HOUR);
            bool is_due = table[i].every && errors % table[i].every == 0;

            expect(
                COMMUNICATOR_DEGRADED, &observed, DET_NEXT_DO,
                is_due ? COMMUNICATOR_RESET_TRANSPORT : COMMUNICATOR_SYNC);
            observed.reset_for = errors;
            expect(COMMUNICATOR_DEGRADED, &observed, DET_NEXT_DO, COMMUNICATOR_SYNC);
            /* Not before the delay is over. */
            observed.reset_for = 0;
            observed.last_attempt = NOW;
            expect(COMMUNICATOR_DEGRADED, &observed, DET_NEXT_HOLD, 0);
        }
}

struct refusal {
    struct det_derive derive;
    char text[256];
};

DET_PRINTF(2, 3) static int refuse(struct det_derive *derive, const char *format, ...)
{
    struct refusal *refusal = DET_CONTAINER(derive, struct refusal, derive);
    va_list list;

    va_start(list, format);
    vsnprintf(refusal->text, sizeof refusal->text, format, list);
    va_end(list);
    return DET_ERR_INVALID;
}

static void test_invalid_config_is_refused(void **state)
{
    static const struct {
        struct communicator_desired config;
        const char *why; /* NULL: it is good */
    } table[] = {
        { { "http://relay.example", "u-1", "t", 0 }, NULL },
        { { "https://relay.example:8443/base", "", "t", 30000 }, NULL },
        { { "", "u-1", "", 0 }, NULL }, /* both come from the environment, or are missing there */
        { { "relay.example", "u-1", "t", 0 }, "relay_url" },
        { { "ftp://relay.example", "u-1", "t", 0 }, "relay_url" },
        { { "http://relay.example", "u-1", "", 0 }, NULL },
        { { "http://relay.example", "u-1", "t", 30001 }, "timeout_ms is 30001" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct refusal refusal = { .derive = { .config = "", .refuse = refuse } };
        struct communicator_desired desired = { 0 };
        int r = communicator_kind.derive(&refusal.derive, &table[i].config, &desired);

        assert_int_equal(r, table[i].why ? DET_ERR_INVALID : 0);
        if (table[i].why)
            assert_non_null(strstr(refusal.text, table[i].why));
        else
            assert_int_equal(
                desired.timeout_ms,
                table[i].config.timeout_ms ? table[i].config.timeout_ms : 10000);
    }
}

/* Neither the token of the user nor that of a login can be seen. */
static void test_secrets_do_not_show(void **state)
{
    struct communicator_desired desired = { "http://r.example", "u-1", "very secret", 1 };
    char text[4096];

    (void)state;
    (void)det_record_to_json(communicator_desired_record(), &desired, 0, text, sizeof text);
    assert_null(strstr(text, "very secret"));
    assert_non_null(strstr(text, "u-1"));
    assert_non_null(det_record_field(communicator_observed_record(), "has_token"));
    assert_null(det_record_field(communicator_observed_record(), "token"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_communicator_kind_is_valid),
        cmocka_unit_test(test_a_stop_has_priority),
        cmocka_unit_test(test_communicator_starts_with_a_login),
        cmocka_unit_test(test_a_login_that_failed_is_tried_again_after_its_delay),
        cmocka_unit_test(test_token_is_renewed_in_its_last_ten_minutes),
        cmocka_unit_test(test_fifth_consecutive_error_is_an_outage),
        cmocka_unit_test(test_outage_ends_when_a_call_succeeds),
        cmocka_unit_test(test_each_attempt_waits_exactly_its_delay),
        cmocka_unit_test(test_retry_after_overrides_the_backoff),
        cmocka_unit_test(test_transport_is_reset_once_at_each_count),
        cmocka_unit_test(test_invalid_config_is_refused),
        cmocka_unit_test(test_secrets_do_not_show),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
