/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test: threads */
/* effect_http_test.c - effects that are HTTP calls, against a small server: requests, and results
 * of statuses and bodies. */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon/effect_test.h"

#include "observe/event_spans.h"

/* As an answer: none, and detent stops when the request is complete. */
static const char until_stop[] = "";

/* Answers one request with `answer`, and keeps the request. */
struct server {
    int descriptor;
    int port;
    const char *answer; /* NULL: none; it waits until the client disconnects */
    /* Stopped when the request is complete; may be NULL. */
    struct effects *_Atomic effects;
    char got[8192];
    pthread_t thread;
};

/* True if the request is complete: head and body. */
static bool is_complete(const char *text)
{
    const char *body = strstr(text, "\r\n\r\n"), *length = strstr(text, "Content-Length: ");

    return body && length && strlen(body + 4) >= strtoul(length + 16, NULL, 10);
}

static void *serve(void *argument)
{
    struct server *server = argument;
    int peer = accept(server->descriptor, NULL, NULL);
    size_t used = 0;

    if (peer < 0)
        return NULL;
    while (used < sizeof server->got - 1 && !(server->answer && is_complete(server->got))) {
        ssize_t count = recv(peer, server->got + used, sizeof server->got - 1 - used, 0);

        if (count <= 0)
            break;
        used += (size_t)count;
        if (server->effects && is_complete(server->got))
            effects_stop(server->effects, 0);
    }
    if (server->answer)
        for (size_t sent = 0, size = strlen(server->answer); sent < size;) {
            ssize_t count = send(peer, server->answer + sent, size - sent, MSG_NOSIGNAL);

            if (count <= 0)
                break;
            sent += (size_t)count;
        }
    close(peer);
    return NULL;
}

static void server_open(struct server *server, const char *answer)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof address;

    *server = (struct server){ .answer = answer == until_stop ? NULL : answer };
    server->descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(server->descriptor, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(server->descriptor, 4), 0);
    assert_int_equal(getsockname(server->descriptor, (struct sockaddr *)&address, &size), 0);
    server->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void server_close(struct server *server)
{
    /* Ends the wait of a server that was not called. */
    (void)shutdown(server->descriptor, SHUT_RD);
    pthread_join(server->thread, NULL);
    close(server->descriptor);
}

/* Calls a server with this answer; the caller closes the bench. */
static void call_in(
    struct bench *bench, struct server *server, const char *answer, const char *more,
    const struct det_trace_context *trace)
{
    char effect[512], path[512];

    server_open(server, answer);
    snprintf(
        effect, sizeof effect, "{http: \"http://127.0.0.1:%d/charge?a=b\"%s}", server->port, more);
    assert_int_equal(bench_open(bench, NULL, effect), 0);
    snprintf(path, sizeof path, "%s/token", bench->folder);
    det_test_write_file(path, "Bearer t-1\n", 11);
    bench->trace = trace;
    if (answer == until_stop)
        server->effects = &bench->effects;
    (void)bench_call(bench);
    server_close(server);
}

static void call(struct bench *bench, struct server *server, const char *answer, const char *more)
{
    call_in(bench, server, answer, more, NULL);
}

#define ANSWER(status, body) "HTTP/1.1 " status " Word\r\nConnection: close\r\n\r\n" body

static void http_effect_sends_the_event_and_its_key(void **state)
{
    struct server server;
    struct bench bench;

    (void)state;
    call(
        &bench, &server, ANSWER("204", ""),
        ", statuses: {204: nothing}, headers: {X-Shop: one}, "
        "secret: {Authorization: \"file:token\"}");
    assert_int_equal(bench.result, DET_EFFECT_DONE);
    assert_non_null(strstr(server.got, "POST /charge?a=b HTTP/1.1\r\n"));
    assert_non_null(strstr(server.got, "Idempotency-Key: order/o-1/3/0\r\n"));
    assert_non_null(strstr(server.got, "Content-Type: application/json\r\n"));
    assert_non_null(strstr(server.got, "X-Shop: one\r\n"));
    assert_non_null(strstr(server.got, "Authorization: Bearer t-1\r\n"));
    assert_non_null(strstr(server.got, "\"payload\":{\"card\":\"4242\"}"));
    bench_close(&bench);
}

static void http_effect_continues_the_trace_of_its_event(void **state)
{
    struct det_trace_context sent = { .trace_id = { 0xAB, [15] = 1 },
                                      .span_id = { 1 },
                                      .flags = 1 };
    struct det_trace_context context = det_episode_attempt_context(&sent, "order/o-1/3/0", 2);
    char expected[96] = "traceparent: ";
    struct server server;
    struct bench bench;

    (void)state;
    det_trace_format(&context, expected + strlen(expected));
    call(&bench, &server, ANSWER("200", ""), ", statuses: {200: nothing}");
    assert_null(strstr(server.got, "traceparent"));
    bench_close(&bench);
    call_in(&bench, &server, ANSWER("200", ""), ", statuses: {200: nothing}", &sent);
    assert_non_null(strstr(server.got, expected));
    assert_non_null(strstr(expected, "-ab000000000000000000000000000001-"));
    bench_close(&bench);
}

static void statuses_and_bodies_are_events(void **state)
{
    struct server server;
    struct bench bench;

    (void)state;
    call(
        &bench, &server,
        ANSWER("200", "{\"event\": \"charged\", \"data\": {\"receipt\": \"r\"}, \"more\": 1}"), "");
    assert_string_equal(bench_event(&bench), "charged");
    assert_non_null(strstr(bench_payload(&bench), "r"));
    bench_close(&bench);
    call(&bench, &server, ANSWER("402", "no money"), ", statuses: {4xx: nothing, 402: declined}");
    assert_string_equal(bench_event(&bench), "declined");
    bench_close(&bench);
    call(&bench, &server, ANSWER("404", "[]"), ", statuses: {402: declined, 4xx: nothing}");
    assert_int_equal(bench.result, DET_EFFECT_DONE);
    bench_close(&bench);
    call(
        &bench, &server, ANSWER("201", "{\"data\": 7, \"id\": \"x\"}"),
        ", statuses: {2xx: declined}");
    assert_string_equal(bench_event(&bench), "declined");
    bench_close(&bench);
}

static void expect_failure(const char *answer, const char *more, int code, const char *why)
{
    struct server server;
    struct bench bench;

    call(&bench, &server, answer, more);
    assert_int_equal(bench.result, code);
    assert_int_equal(bench.reported, 1);
    if (!strstr(bench.why, why))
        fail_msg("no '%s' in: %s", why, bench.why);
    assert_null(strstr(bench.why, "4242"));
    assert_null(strstr(bench.why, "t-1"));
    bench_close(&bench);
}

static void unlisted_http_statuses_are_failed_attempts(void **state)
{
    (void)state;
    expect_failure(ANSWER("500", ""), "", DET_ERR_ACTION_FAILED, "status 500");
    expect_failure(ANSWER("429", ""), "", DET_ERR_ACTION_FAILED, "status 429");
    expect_failure(ANSWER("404", ""), "", DET_ERR_ACTION_FAILED, "status 404");
    expect_failure(
        ANSWER("200", "ok"), "", DET_ERR_MALFORMED,
        "status 200, and its answer names no event that EFFECT(charge) lists");
    expect_failure(
        "HTTP/1.1 302 Word\r\nLocation: http://127.0.0.1:1/\r\nConnection: close\r\n\r\n", "",
        DET_ERR_ACTION_FAILED, "status 302");
    expect_failure("", "", DET_ERR_IO, "returned nothing");
    expect_failure(NULL, ", timeout: 300ms", DET_ERR_TIMEOUT, "timed out after 300ms");
}

static void shutdown_interrupts_and_postpones_the_effect(void **state)
{
    struct server server;
    struct bench bench;

    (void)state;
    call(&bench, &server, until_stop, ", timeout: 1h");
    assert_int_equal(bench.result, DET_EFFECT_POSTPONED);
    assert_non_null(strstr(server.got, "Idempotency-Key: "));
    assert_string_equal(bench.why, "interrupted, since detent is stopping");
    assert_int_equal(bench.reported, 1);
    bench_close(&bench);
}

static void failure_text_includes_the_response_body(void **state)
{
    static const char long_body[] = ANSWER(
        "500", "0123456789012345678901234567890123456789012345678901234567890123456789012345"
               "6789012345678901234567890123456789012345678901234567890123456789012345678901"
               "2345678901234567");

    (void)state;
    expect_failure(
        ANSWER("402", "{\"error\":\n  \"no\tfunds\"}\r\n"), "", DET_ERR_ACTION_FAILED,
        "status 402: {\"error\": \"no funds\"}");
    expect_failure(
        ANSWER("500", "closed \xff\xfe"), "", DET_ERR_ACTION_FAILED, "status 500: closed...");
    expect_failure(
        ANSWER("500", "a\x1b[31mred"), "", DET_ERR_ACTION_FAILED, "status 500: a [31mred");
    /* Next line, and a control sequence of one character. */
    expect_failure(
        ANSWER("500", "a\xc2\x85\xc2\x9b[31mr\xc3\xa9"), "", DET_ERR_ACTION_FAILED,
        "status 500: a [31mr\xc3\xa9");
    expect_failure(long_body, "", DET_ERR_ACTION_FAILED, "0123456789...");
    expect_failure(ANSWER("500", " \r\n "), "", DET_ERR_ACTION_FAILED, "status 500");
}

/* The delay for the runtime when the server requests one in a header. */
static det_time wait_after(const char *status, const char *value)
{
    char answer[256];
    struct server server;
    struct bench bench;

    snprintf(
        answer, sizeof answer, "HTTP/1.1 %s Word\r\nRetry-After: %s\r\nConnection: close\r\n\r\n",
        status, value);
    call(&bench, &server, answer, ", statuses: {409: declined}");
    bench_close(&bench);
    return bench.retry_after;
}

static void retry_after_of_a_busy_server_delays_the_effect(void **state)
{
    time_t now = time(NULL);
    char date[64];
    struct tm parts;
    det_time wait;

    (void)state;
    assert_int_equal(wait_after("429", "120"), 2 * DET_MINUTE);
    assert_int_equal(wait_after("503", "7"), 7 * DET_SECOND);
    assert_int_equal(wait_after("503", "86400"), DET_HOUR);
    now += 600;
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &parts));
    wait = wait_after("429", date);
    assert_true(wait > 9 * DET_MINUTE && wait <= 10 * DET_MINUTE);
    /* The past, invalid values, and statuses without a delay. */
    assert_int_equal(wait_after("429", "Sun, 06 Nov 1994 08:49:37 GMT"), 0);
    assert_int_equal(wait_after("429", "0"), 0);
    assert_int_equal(wait_after("429", "-5"), 0);
    assert_int_equal(wait_after("429", "soon"), 0);
    assert_int_equal(wait_after("500", "120"), 0);
    assert_int_equal(wait_after("409", "120"), 0);
    assert_int_equal(wait_after("201", "120"), 0);
}

static void refused_connection_is_an_error(void **state)
{
    struct bench bench;

    (void)state;
    assert_int_equal(bench_open(&bench, NULL, "{http: \"http://127.0.0.1:1/\"}"), 0);
    assert_int_equal(bench_call(&bench), DET_ERR_IO);
    assert_non_null(strstr(bench.why, "connect"));
    bench_close(&bench);
}

static void a_secret_that_cannot_be_read_is_a_failure_and_nothing_is_sent(void **state)
{
    static const char *const sources[] = { "file:nothing", "env:DETENT_NO_SUCH_VARIABLE" };
    struct bench bench;
    char effect[256];

    (void)state;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        snprintf(
            effect, sizeof effect, "{http: \"http://127.0.0.1:1/\", secret: {A: \"%s\"}}",
            sources[i]);
        assert_int_equal(bench_open(&bench, NULL, effect), 0);
        assert_int_equal(bench_call(&bench), DET_ERR_IO);
        assert_non_null(strstr(bench.why, "cannot be read"));
        bench_close(&bench);
    }
}

static void an_answer_that_is_too_long_is_a_failure(void **state)
{
    static char answer[EFFECT_BODY_MAX + 4096];
    size_t used = (size_t)snprintf(answer, sizeof answer, "%s", ANSWER("200", ""));

    (void)state;
    memset(answer + used, 'x', sizeof answer - used - 1);
    expect_failure(answer, "", DET_ERR_LIMIT, "larger than 1 MiB");
}

/* curl's memory: call number `fail_at` and all later ones fail. */
static atomic_uint curl_calls, fail_at;

static bool is_refused(void)
{
    unsigned number = atomic_fetch_add(&curl_calls, 1) + 1, first = atomic_load(&fail_at);

    return first && number >= first;
}

static void *curl_malloc(size_t size)
{
    return is_refused() ? NULL : malloc(size);
}

static void *curl_realloc(void *block, size_t size)
{
    return is_refused() ? NULL : realloc(block, size);
}

static char *curl_strdup(const char *text)
{
    return is_refused() ? NULL : strdup(text);
}

static void *curl_calloc(size_t count, size_t size)
{
    return is_refused() ? NULL : calloc(count, size);
}

/* How often it was postponed, and how often it failed after the request was sent. */
struct shortages {
    unsigned postponed, failed;
};

static void validate_shortage(
    struct shortages *shortages, const struct bench *bench, const struct server *server)
{
    bool was_sent = server->got[0] != '\0';

    if (bench->result == DET_EFFECT_POSTPONED && was_sent)
        fail_msg("postponed, and the server has got: %s", server->got);
    shortages->postponed += bench->result == DET_EFFECT_POSTPONED;
    shortages->failed += bench->result < 0 && was_sent;
}

static void curl_allocation_failure_postpones_only_before_sending(void **state)
{
    struct shortages shortages = { 0 };
    unsigned total = 1;

    (void)state;
    assert_int_equal(
        curl_global_init_mem(
            CURL_GLOBAL_DEFAULT, curl_malloc, free, curl_realloc, curl_strdup, curl_calloc),
        CURLE_OK);
    for (unsigned number = 0; number <= total; number++) {
        struct server server;
        struct bench bench;

        atomic_store(&curl_calls, 0);
        atomic_store(&fail_at, number);
        call(
            &bench, &server, ANSWER("200", "{\"event\": \"declined\"}"),
            ", headers: {X-Shop: one}");
        if (number == 0)
            total = atomic_load(&curl_calls);
        validate_shortage(&shortages, &bench, &server);
        bench_close(&bench);
    }
    atomic_store(&fail_at, 0);
    curl_global_cleanup();
    assert_true(shortages.postponed > 10);
    assert_true(shortages.failed > 0);
}

static int call_all(struct det_test_memory *memory, void *argument)
{
    struct server server;
    struct bench bench;
    char effect[128];
    int r;

    server_open(&server, ANSWER("200", "{\"event\": \"declined\"}"));
    snprintf(effect, sizeof effect, "{http: \"http://127.0.0.1:%d/\"}", server.port);
    r = bench_open(&bench, &memory->allocator, effect);
    if (r == 0)
        r = bench_call(&bench);
    server_close(&server);
    if (bench.result)
        validate_shortage(argument, &bench, &server);
    bench_close(&bench);
    return r == DET_EFFECT_PRODUCED ? 0 : r == DET_EFFECT_POSTPONED ? DET_ERR_NO_MEMORY : r;
}

static void allocation_failure_for_the_response_fails_the_attempt(void **state)
{
    struct shortages shortages = { 0 };

    (void)state;
    det_test_each_failure(call_all, &shortages);
    assert_true(shortages.failed > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* The first to initialize curl. */
        cmocka_unit_test(shutdown_interrupts_and_postpones_the_effect),
        cmocka_unit_test(curl_allocation_failure_postpones_only_before_sending),
        cmocka_unit_test(allocation_failure_for_the_response_fails_the_attempt),
        cmocka_unit_test(http_effect_sends_the_event_and_its_key),
        cmocka_unit_test(http_effect_continues_the_trace_of_its_event),
        cmocka_unit_test(statuses_and_bodies_are_events),
        cmocka_unit_test(unlisted_http_statuses_are_failed_attempts),
        cmocka_unit_test(failure_text_includes_the_response_body),
        cmocka_unit_test(retry_after_of_a_busy_server_delays_the_effect),
        cmocka_unit_test(refused_connection_is_an_error),
        cmocka_unit_test(a_secret_that_cannot_be_read_is_a_failure_and_nothing_is_sent),
        cmocka_unit_test(an_answer_that_is_too_long_is_a_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
