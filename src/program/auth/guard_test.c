/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* guard_test.c - the matrix of permitted requests: hosts, origins, types, tokens, scopes, rates.
 */
#include "auth/guard.h"

#include <string.h>

#include "lib/test.h"

struct fixture {
    char *folder;
    struct tokens *tokens;
    struct guard guard;
    char reader[TOKENS_TEXT_SIZE + 1], sender[TOKENS_TEXT_SIZE + 1], brief[TOKENS_TEXT_SIZE + 1];
};

static void add_token(
    struct fixture *fixture, unsigned scopes, det_time span, char text[TOKENS_TEXT_SIZE + 1])
{
    struct token token;

    assert_int_equal(
        tokens_add(
            fixture->tokens, &(struct tokens_grant){ "test", scopes, span }, text, &token, NULL),
        0);
}

static int set_up(void **state)
{
    static struct fixture fixture;
    struct det_error error = { 0 };

    memset(&fixture, 0, sizeof fixture);
    fixture.folder = det_test_folder();
    if (tokens_open(
            &(struct tokens_options){ .world = det_world_real(), .folder = fixture.folder },
            &fixture.tokens, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(guard_init(&fixture.guard, NULL, det_world_real(), GUARD_BUCKETS), 0);
    fixture.guard.tokens = fixture.tokens;
    add_token(&fixture, TOKENS_READ, 0, fixture.reader);
    add_token(&fixture, TOKENS_SEND, 0, fixture.sender);
    add_token(&fixture, TOKENS_READ, 1, fixture.brief);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    guard_deinit(&fixture->guard);
    tokens_close(fixture->tokens);
    det_test_folder_remove(fixture->folder);
    return 0;
}

/* A request with these headers, "name: value" each, NULL at the end. */
struct ask {
    enum http_method method;
    const char *host;
    struct http_header headers[5];
    unsigned needed;
    bool is_trusted, is_encrypted;
};

static struct guard_verdict verdict_of(struct fixture *fixture, const struct ask *ask, det_time now)
{
    struct http_request request = {
        .method = ask->method,
        .host = ask->host ? ask->host : "127.0.0.1:7788",
        .headers = ask->headers,
        .peer = "127.0.0.1:40000",
        .is_trusted = ask->is_trusted,
        .is_encrypted = ask->is_encrypted,
    };
    struct guard_verdict verdict;

    while (request.header_count < 5 && ask->headers[request.header_count].name)
        request.header_count++;
    guard_check(&fixture->guard, &request, ask->needed, now, &verdict);
    return verdict;
}

static unsigned status_of(struct fixture *fixture, struct ask ask)
{
    return verdict_of(fixture, &ask, 0).status;
}

static void only_allowed_hosts_are_answered(void **state)
{
    static const char *const good[] = { "127.0.0.1",        "127.0.0.1:7788", "[::1]",
                                        "[::1]:7788",       "localhost:7788", "LocalHost",
                                        "plant.example:443" };
    static const char *const bad[] = {
        "",
        "evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1:7788.evil.example",
        "127.0.0.1:",
        "127.0.0.1:7788:1",
        "localhost.",
        "localhost:x",
        "[::1",
        "[::1]evil.example",
        "::1",
        "127.0.0.2",
        "xplant.example",
    };
    static const char *const hosts[] = { "plant.example", NULL };
    struct fixture *fixture = *state;

    fixture->guard.hosts = hosts;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (status_of(fixture, (struct ask){ .host = good[i] }))
            fail_msg("refused: %s", good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (status_of(fixture, (struct ask){ .host = bad[i] }) != 421)
            fail_msg("answered: %s", bad[i]);
    }
}

static void host_is_checked_before_the_token(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(
        status_of(fixture, (struct ask){ .host = "evil.example", .needed = TOKENS_READ }), 421);
}

static void any_host_is_allowed_by_a_star(void **state)
{
    static const char *const hosts[] = { "*", NULL };
    struct fixture *fixture = *state;

    fixture->guard.hosts = hosts;
    assert_int_equal(status_of(fixture, (struct ask){ .host = "evil.example" }), 0);
}

#define JSON                               \
    {                                      \
        "content-type", "application/json" \
    }

struct origin {
    struct http_header headers[3];
    unsigned status;
};

static void cross_site_requests_are_refused(void **state)
{
    static const struct origin rows[] = {
        { { JSON }, 0 }, /* a program */
        { { JSON, { "origin", "http://127.0.0.1:7788" } }, 0 },
        { { JSON, { "sec-fetch-site", "same-origin" } }, 0 },
        { { JSON, { "sec-fetch-site", "none" } }, 0 },
        { { JSON, { "origin", "http://127.0.0.1:7788" }, { "sec-fetch-site", "same-origin" } }, 0 },
        { { JSON, { "origin", "null" } }, 403 },
        { { JSON, { "origin", "" } }, 403 },
        { { JSON, { "origin", "http://evil.example" } }, 403 },
        { { JSON, { "origin", "http://127.0.0.1:7788.evil.example" } }, 403 },
        { { JSON, { "origin", "http://127.0.0.1" } }, 403 },
        { { JSON, { "origin", "https://127.0.0.1:7788" } }, 403 },
        { { JSON, { "origin", "http://localhost:7788" } }, 403 },
        { { JSON, { "sec-fetch-site", "cross-site" } }, 403 },
        { { JSON, { "sec-fetch-site", "same-site" } }, 403 },
        { { JSON, { "sec-fetch-site", "" } }, 403 },
        { { JSON, { "origin", "http://127.0.0.1:7788" }, { "sec-fetch-site", "cross-site" } },
          403 },
        { { JSON, { "origin", "http://evil.example" }, { "sec-fetch-site", "same-origin" } }, 403 },
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ask ask = { .method = HTTP_POST };

        memcpy(ask.headers, rows[i].headers, sizeof rows[i].headers);
        assert_int_equal(status_of(fixture, ask), rows[i].status);
        ask.method = HTTP_DELETE;
        assert_int_equal(status_of(fixture, ask), rows[i].status);
        /* Reading is harmless: a client without a token sees nothing. */
        ask.method = HTTP_GET;
        assert_int_equal(status_of(fixture, ask), 0);
    }
}

static void an_origin_has_the_scheme_of_the_connection(void **state)
{
    struct fixture *fixture = *state;
    struct ask ask = { .method = HTTP_POST,
                       .is_encrypted = true,
                       .headers = { JSON, { "origin", "https://127.0.0.1:7788" } } };

    assert_int_equal(status_of(fixture, ask), 0);
    ask.headers[1].value = "http://127.0.0.1:7788";
    assert_int_equal(status_of(fixture, ask), 403);
}

static void a_body_must_be_json(void **state)
{
    static const struct origin rows[] = {
        { { { "content-type", "application/json" } }, 0 },
        { { { "content-type", "application/json; charset=utf-8" } }, 0 },
        { { { "content-type", "APPLICATION/JSON" } }, 0 },
        { { { NULL, NULL } }, 415 },
        { { { "content-type", "" } }, 415 },
        { { { "content-type", "application/jsonp" } }, 415 },
        { { { "content-type", "text/plain" } }, 415 },
        { { { "content-type", "application/x-www-form-urlencoded" } }, 415 },
        { { { "content-type", "multipart/form-data" } }, 415 },
        { { { "content-type", "text/plain; application/json" } }, 415 },
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ask ask = { .method = HTTP_POST };

        memcpy(ask.headers, rows[i].headers, sizeof rows[i].headers);
        assert_int_equal(status_of(fixture, ask), rows[i].status);
    }
}

static void delete_needs_no_body(void **state)
{
    static const struct origin rows[] = {
        { { { NULL, NULL } }, 0 },
        { { { "content-length", "0" } }, 0 },
        { { { "content-length", "1" } }, 415 },
        { { { "transfer-encoding", "chunked" } }, 415 },
        { { { "content-length", "1" }, { "content-type", "application/json" } }, 0 },
        { { { "origin", "http://evil.example" } }, 403 },
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ask ask = { .method = HTTP_DELETE };

        memcpy(ask.headers, rows[i].headers, sizeof rows[i].headers);
        assert_int_equal(status_of(fixture, ask), rows[i].status);
    }
}

static unsigned status_with(struct fixture *fixture, const char *value, unsigned needed)
{
    return status_of(
        fixture, (struct ask){ .headers = { { "authorization", value } }, .needed = needed });
}

static const char *bearer(const char *token)
{
    static char text[2 * TOKENS_TEXT_SIZE];

    snprintf(text, sizeof text, "Bearer %s", token);
    return text;
}

/* A missing method is reported before the type of a body. */
static void body_type_is_not_checked_for_an_absent_method(void **state)
{
    struct ask ask = { .method = HTTP_PUT, .needed = TOKENS_ALL | GUARD_ABSENT };
    struct fixture *fixture = *state;

    assert_int_equal(status_of(fixture, ask), 401);
    ask.headers[0] = (struct http_header){ "authorization", bearer(fixture->reader) };
    assert_int_equal(status_of(fixture, ask), 0);
    ask.needed = TOKENS_READ;
    assert_int_equal(status_of(fixture, ask), 415);
}

static void a_token_is_good_for_its_scopes(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(status_with(fixture, bearer(fixture->reader), TOKENS_READ), 0);
    assert_int_equal(status_with(fixture, bearer(fixture->reader), TOKENS_SEND), 403);
    assert_int_equal(status_with(fixture, bearer(fixture->reader), TOKENS_ADMIN), 403);
    assert_int_equal(status_with(fixture, bearer(fixture->sender), TOKENS_SEND), 0);
    assert_int_equal(status_with(fixture, bearer(fixture->sender), TOKENS_READ), 403);
    assert_int_equal(
        status_with(fixture, bearer(fixture->reader), TOKENS_METRICS | TOKENS_READ), 0);
}

static void invalid_tokens_are_rejected(void **state)
{
    static const char *const values[] = { "",           "Bearer",       "Bearer ",
                                          "Basic YTpi", "Bearer det_x", "Bearer  x" };
    struct fixture *fixture = *state;
    char changed[TOKENS_TEXT_SIZE + 1];

    assert_int_equal(status_of(fixture, (struct ask){ .needed = TOKENS_READ }), 401);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        assert_int_equal(status_with(fixture, values[i], TOKENS_READ), 401);
    memcpy(changed, fixture->reader, sizeof changed);
    changed[TOKENS_TEXT_SIZE - 1] = changed[TOKENS_TEXT_SIZE - 1] == 'A' ? 'Q' : 'A';
    assert_int_equal(status_with(fixture, bearer(changed), TOKENS_READ), 401);
    assert_int_equal(status_with(fixture, bearer(fixture->brief), TOKENS_READ), 401);
    assert_int_equal(status_with(fixture, fixture->reader, TOKENS_READ), 401);
}

static void no_token_is_valid_while_the_file_is_damaged(void **state)
{
    struct fixture *fixture = *state;
    struct ask ask = { .needed = TOKENS_READ };
    struct guard_verdict verdict;
    char path[300], unknown[TOKENS_TEXT_SIZE + 1];

    snprintf(path, sizeof path, "%s/" TOKENS_FILE_NAME, fixture->folder);
    det_test_write_file(path, "nonsense", 8);
    /* For an unknown token the file is read at once. */
    memcpy(unknown, fixture->reader, sizeof unknown);
    unknown[TOKENS_TEXT_SIZE - 1] = unknown[TOKENS_TEXT_SIZE - 1] == 'A' ? 'Q' : 'A';
    assert_int_equal(status_with(fixture, bearer(unknown), TOKENS_READ), 503);
    ask.headers[0] = (struct http_header){ "authorization", bearer(fixture->reader) };
    verdict = verdict_of(fixture, &ask, 0);
    assert_int_equal(verdict.status, 503);
    assert_string_equal(verdict.code, "CLOSED");
    assert_int_equal(verdict.wait, 0);
    ask.is_trusted = true;
    assert_int_equal(status_of(fixture, ask), 0);
}

static void unix_socket_needs_no_token(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(
        status_of(
            fixture, (struct ask){ .host = "anything",
                                   .method = HTTP_POST,
                                   .headers = { JSON },
                                   .needed = TOKENS_ADMIN,
                                   .is_trusted = true }),
        0);
}

static void too_many_requests_wait(void **state)
{
    struct fixture *fixture = *state;
    struct ask ask = { .headers = { { "authorization", bearer(fixture->reader) } },
                       .needed = TOKENS_READ };
    struct guard_verdict verdict;

    fixture->guard.rate = 10;
    for (int i = 0; i < 20; i++)
        assert_int_equal(verdict_of(fixture, &ask, DET_SECOND).status, 0);
    verdict = verdict_of(fixture, &ask, DET_SECOND);
    assert_int_equal(verdict.status, 429);
    assert_in_range(verdict.wait, 90 * DET_MILLISECOND, 100 * DET_MILLISECOND);
    /* A tenth of a second is one more; and another token has a separate bucket. */
    assert_int_equal(verdict_of(fixture, &ask, DET_SECOND + 101 * DET_MILLISECOND).status, 0);
    assert_int_equal(verdict_of(fixture, &ask, DET_SECOND + 101 * DET_MILLISECOND).status, 429);
    ask.headers[0].value = bearer(fixture->sender);
    ask.needed = TOKENS_SEND;
    assert_int_equal(verdict_of(fixture, &ask, DET_SECOND + 101 * DET_MILLISECOND).status, 0);
}

/* Sixty tokens in 256 buckets by a hash would share some, and give each other new ones. */
static void tokens_have_separate_rate_limits(void **state)
{
    static char texts[60][TOKENS_TEXT_SIZE + 1];
    struct fixture *fixture = *state;

    fixture->guard.rate = 1;
    for (size_t i = 0; i < 60; i++)
        add_token(fixture, TOKENS_READ, 0, texts[i]);
    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < 60; i++) {
            struct ask ask = { .headers = { { "authorization", bearer(texts[i]) } },
                               .needed = TOKENS_READ };

            assert_int_equal(verdict_of(fixture, &ask, DET_SECOND).status, round < 2 ? 0 : 429);
        }
    }
}

static unsigned status_at(struct fixture *fixture, const char *text, det_time now)
{
    struct ask ask = { .headers = { { "authorization", bearer(text) } }, .needed = TOKENS_READ };

    return verdict_of(fixture, &ask, now).status;
}

static void only_a_full_rate_bucket_is_evicted(void **state)
{
    char texts[3][TOKENS_TEXT_SIZE + 1];
    struct fixture *fixture = *state;

    for (size_t i = 0; i < 3; i++)
        add_token(fixture, TOKENS_READ, 0, texts[i]);
    guard_deinit(&fixture->guard);
    assert_int_equal(guard_init(&fixture->guard, NULL, det_world_real(), 2), 0);
    fixture->guard.rate = 1;
    assert_int_equal(status_at(fixture, texts[0], DET_SECOND), 0);
    assert_int_equal(status_at(fixture, texts[0], DET_SECOND), 0);
    assert_int_equal(status_at(fixture, texts[0], DET_SECOND), 429);
    assert_int_equal(status_at(fixture, texts[1], DET_SECOND), 0);
    /* Neither may go for a third one, which would be the way to a new bucket. */
    assert_int_equal(status_at(fixture, texts[2], DET_SECOND), 429);
    assert_int_equal(status_at(fixture, texts[0], DET_SECOND), 429);
    /* The second one is full again a second later, and the first is not. */
    assert_int_equal(status_at(fixture, texts[2], 2 * DET_SECOND), 0);
    assert_int_equal(status_at(fixture, texts[0], 2 * DET_SECOND), 0);
    assert_int_equal(status_at(fixture, texts[0], 2 * DET_SECOND), 429);
}

static int open_with(struct det_test_memory *memory, void *argument)
{
    struct guard guard = { .rate = 1 };
    int r = guard_init(&guard, &memory->allocator, det_world_real(), 40);

    (void)argument;
    guard_deinit(&guard);
    return r;
}

static void guard_open_survives_every_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(open_with, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_allowed_hosts_are_answered),
        TEST(host_is_checked_before_the_token),
        TEST(any_host_is_allowed_by_a_star),
        TEST(cross_site_requests_are_refused),
        TEST(an_origin_has_the_scheme_of_the_connection),
        TEST(a_body_must_be_json),
        TEST(delete_needs_no_body),
        TEST(body_type_is_not_checked_for_an_absent_method),
        TEST(a_token_is_good_for_its_scopes),
        TEST(no_token_is_valid_while_the_file_is_damaged),
        TEST(invalid_tokens_are_rejected),
        TEST(unix_socket_needs_no_token),
        TEST(too_many_requests_wait),
        TEST(tokens_have_separate_rate_limits),
        TEST(only_a_full_rate_bucket_is_evicted),
        cmocka_unit_test(guard_open_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
