/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_pull_source_test.c - pages of a server: cursors, entity tags, failures, and a cancel. */
/* test: threads */
#include <pthread.h>

#include "connectors/harness_test.h"
#include "connectors/http_pull_page.h"
#include "http/http.h"

static const struct det_stage stage = { .out = { .get = tagged_record } };

#define ROW(id) "{\"id\":" #id ",\"text\":\"x\",\"tags\":[],\"numbers\":[]}"

/* A server that answers by path; counts are read after its thread has ended, or are atomic. */
static struct {
    struct det_loop *loop;
    struct http_server *server;
    char url[64];
    atomic_uint requests;
    atomic_uint unchanged; /* 304 */
    struct http_exchange *kept;
} site;

static void answer(struct http_exchange *exchange, unsigned status, const char *body)
{
    static const struct http_header headers[] = { { "ETag", "\"v1\"" }, { "Retry-After", "0" } };

    http_answer(
        exchange, &(struct http_answer){ .status = status,
                                         .headers = headers,
                                         .header_count = status < 400 ? 1 : 2,
                                         .body = body,
                                         .body_size = strlen(body) });
}

static void leave(void *user)
{
    (void)user;
}

static void handle(void *context, struct http_exchange *exchange)
{
    const struct http_request *request = http_request(exchange);
    unsigned number = atomic_fetch_add(&site.requests, 1);
    const char *token = http_header(request, "authorization");

    (void)context;
    if (strcmp(request->path, "/pages") == 0 && strcmp(request->query, "after=") == 0)
        answer(exchange, 200, "{\"data\":{\"rows\":[" ROW(1) "," ROW(2) "]},\"next\":\"b c\"}");
    else if (strcmp(request->path, "/pages") == 0 && strcmp(request->query, "after=b%20c") == 0)
        answer(exchange, 200, "{\"data\":{\"rows\":[" ROW(3) ",{\"id\":4}]},\"next\":null}");
    else if (strcmp(request->path, "/same") == 0 && http_header(request, "if-none-match")) {
        atomic_fetch_add(&site.unchanged, 1);
        answer(exchange, 304, "");
    } else if (strcmp(request->path, "/same") == 0)
        answer(exchange, 200, ROW(1));
    else if (strcmp(request->path, "/lines") == 0)
        answer(exchange, 200, ROW(1) "\r\n\n" ROW(2));
    else if (strcmp(request->path, "/flaky") == 0 && number < 2)
        answer(exchange, number ? 429 : 503, "");
    else if (strcmp(request->path, "/flaky") == 0)
        answer(exchange, 200, "[" ROW(7) "]");
    else if (strcmp(request->path, "/secret") == 0 && token && strcmp(token, "Bearer x y") == 0)
        answer(exchange, 200, "[" ROW(8) "]");
    else if (strcmp(request->path, "/secret") == 0)
        answer(exchange, 401, "");
    else if (strcmp(request->path, "/hangs") == 0)
        http_keep(exchange, leave, NULL, NULL);
    else if (strcmp(request->path, "/text") == 0)
        answer(exchange, 200, "not json");
    else
        answer(exchange, 500, "");
}

static int open_site(void **state)
{
    struct http_options options = { .handle = handle };

    (void)state;
    memset(&site, 0, sizeof site);
    assert_int_equal(det_loop_open(NULL, NULL, &site.loop), 0);
    options.loop = site.loop;
    assert_int_equal(http_server_open(&options, &site.server, NULL), 0);
    assert_int_equal(http_listen(site.server, "127.0.0.1:0", NULL, NULL), 0);
    (void)snprintf(site.url, sizeof site.url, "http://%s", http_listener_address(site.server, 0));
    assert_int_equal(det_loop_start(site.loop, "site"), 0);
    return 0;
}

static int close_site(void **state)
{
    (void)state;
    det_loop_stop(site.loop);
    http_server_close(site.server);
    det_loop_close(site.loop);
    return 0;
}

static void open_pull(struct harness *harness, const char *path, const char *more)
{
    static char settings[512];

    (void)snprintf(settings, sizeof settings, "{url: '%s%s'%s}", site.url, path, more);
    harness_open(harness, &http_pull_source, stage, settings);
}

static uint64_t id_of(const struct harness *harness, size_t index)
{
    return ((const struct tagged *)harness_row(harness, index))->id;
}

static void pages_are_followed_by_their_cursor(void **state)
{
    struct harness harness;

    (void)state;
    open_pull(&harness, "/pages?after={cursor}", ", rows: data.rows, cursor: next");
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 3);
    assert_int_equal(id_of(&harness, 2), 3);
    assert_int_equal(harness.error_count, 1);
    assert_non_null(strstr(harness.errors[0], "the body, row 2: tagged.text"));
    assert_int_equal(atomic_load(&site.requests), 2);
    /* The end is remembered. */
    harness_stop(&harness);
    assert_int_equal(harness_start(&harness), 0);
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(atomic_load(&site.requests), 2);
    harness_deinit(&harness);
}

static void a_page_is_continued_after_its_last_row(void **state)
{
    struct harness harness;

    (void)state;
    open_pull(&harness, "/pages?after={cursor}", ", rows: data.rows, cursor: next");
    harness.room = 1;
    while (harness_next(&harness) == DET_SOURCE_MORE) {
        harness_stop(&harness);
        assert_int_equal(harness_start(&harness), 0);
    }
    assert_int_equal(harness.row_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(id_of(&harness, i), i + 1);
    harness_deinit(&harness);
}

static void an_unchanged_body_gives_no_rows(void **state)
{
    struct harness harness;

    (void)state;
    open_pull(&harness, "/same", ", every: 1ms");
    while (atomic_load(&site.unchanged) < 2) {
        assert_true(harness_next(&harness) >= 0);
        (void)harness_wait_until(&harness, harness.wake_at);
        harness.wake_at = DET_NEVER;
    }
    assert_int_equal(harness.row_count, 1);
    harness_deinit(&harness);
}

static void lines_and_failures_that_pass(void **state)
{
    struct harness harness;

    (void)state;
    open_pull(&harness, "/flaky", "");
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(id_of(&harness, 0), 7);
    assert_int_equal(atomic_load(&site.requests), 3);
    harness_deinit(&harness);
    open_pull(&harness, "/lines", ", as: lines");
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 2);
    harness_deinit(&harness);
}

static void a_secret_comes_from_the_environment(void **state)
{
    struct harness harness;

    (void)state;
    assert_int_equal(setenv("PULL_TEST_SECRET", "x y", 1), 0);
    open_pull(&harness, "/secret", ", bearer_environment: PULL_TEST_SECRET");
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(id_of(&harness, 0), 8);
    harness_deinit(&harness);
    open_pull(&harness, "/secret", "");
    assert_int_equal(harness_run(&harness), DET_ERR_IO);
    assert_non_null(strstr(harness.failure.text, "status 401: correct url, headers or bearer"));
    harness_deinit(&harness);
}

static void a_body_that_is_not_json_fails_or_is_reported(void **state)
{
    struct harness harness;

    (void)state;
    open_pull(&harness, "/text", "");
    assert_int_equal(harness_run(&harness), DET_ERR_MALFORMED);
    harness_deinit(&harness);
    open_pull(&harness, "/text", ", every: 1h");
    assert_int_equal(harness_next(&harness), DET_SOURCE_IDLE);
    assert_int_equal(harness.error_count, 1);
    assert_int_equal(harness.last_rejection, DET_REJECT_DESERIALIZATION);
    assert_true(harness.wake_at != DET_NEVER);
    harness_deinit(&harness);
}

static void *cancel_soon(void *argument)
{
    struct harness *harness = argument;

    while (atomic_load(&site.requests) == 0)
        (void)poll(NULL, 0, 1);
    atomic_store(&harness->is_cancelled, true);
    return NULL;
}

static void a_server_that_hangs_does_not_block_a_cancel(void **state)
{
    struct harness harness;
    pthread_t thread;

    (void)state;
    open_pull(&harness, "/hangs", ", timeout: 1h");
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &harness), 0);
    assert_int_equal(harness_next(&harness), DET_SOURCE_IDLE);
    assert_int_equal(pthread_join(thread, NULL), 0);
    harness_deinit(&harness);
}

static void wrong_settings_are_refused(void **state)
{
    (void)state;
    harness_refuses(&http_pull_source, stage, "{}", "url is missing");
    harness_refuses(&http_pull_source, stage, "{url: 'ftp://a/'}", "url must be http or https");
    harness_refuses(
        &http_pull_source, stage, "{url: 'http://a/', cursor: next}", "no place for the cursor");
    harness_refuses(
        &http_pull_source, stage, "{url: 'http://a/', as: lines, rows: x}", "rows and cursor are");
    harness_refuses(
        &http_pull_source, stage, "{url: 'http://a/', headers: [s3cret]}", "headers[0] is not");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pages_are_followed_by_their_cursor, open_site, close_site),
        cmocka_unit_test_setup_teardown(
            a_page_is_continued_after_its_last_row, open_site, close_site),
        cmocka_unit_test_setup_teardown(an_unchanged_body_gives_no_rows, open_site, close_site),
        cmocka_unit_test_setup_teardown(lines_and_failures_that_pass, open_site, close_site),
        cmocka_unit_test_setup_teardown(a_secret_comes_from_the_environment, open_site, close_site),
        cmocka_unit_test_setup_teardown(
            a_body_that_is_not_json_fails_or_is_reported, open_site, close_site),
        cmocka_unit_test_setup_teardown(
            a_server_that_hangs_does_not_block_a_cancel, open_site, close_site),
        cmocka_unit_test(wrong_settings_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
