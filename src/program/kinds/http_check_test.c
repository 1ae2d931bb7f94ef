/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_check_test.c - a URL that is looked at: what the states answer, and a real server on
 * loopback, with and without TLS. */
/* test: threads */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kinds/bench_test.h"
#include "kinds/certificate_test.h"
#include "kinds/kinds.h"

#define WORKER_SPEC "kinds/http_check.worker"
#include <detent/worker/declare.h>

/* Answers /NNN with the status NNN and a body, /silent never. One after the other. */
struct server {
    int listener;
    uint16_t port;
    pthread_t thread;
    SSL_CTX *tls; /* NULL: none */
    atomic_uint asked;
    char head[2048]; /* of the last question */
};

static int get_line_end(struct server *server, SSL *ssl, int peer)
{
    size_t size = 0;

    while (size < sizeof server->head - 1) {
        char *at = server->head + size;
        int room = (int)(sizeof server->head - 1 - size);
        int count = ssl ? SSL_read(ssl, at, room) : (int)recv(peer, at, (size_t)room, 0);

        if (count <= 0)
            return -1;
        size += (size_t)count;
        server->head[size] = '\0';
        if (strstr(server->head, "\r\n\r\n"))
            return 0;
    }
    return -1;
}

static void answer(struct server *server, int peer)
{
    SSL *ssl = server->tls ? SSL_new(server->tls) : NULL;
    char text[256];

    if (ssl) {
        SSL_set_fd(ssl, peer);
        if (SSL_accept(ssl) <= 0) {
            SSL_free(ssl);
            return;
        }
    }
    if (get_line_end(server, ssl, peer) == 0) {
        int size = snprintf(
            text, sizeof text, "HTTP/1.1 %.3s Some\r\nContent-Length: 11\r\n\r\nall is well",
            server->head + 5);

        atomic_fetch_add(&server->asked, 1);
        if (strncmp(server->head, "GET /silent", 11) == 0)
            (void)recv(peer, text, sizeof text, 0);
        else if (ssl)
            (void)SSL_write(ssl, text, size);
        else
            (void)send(peer, text, (size_t)size, MSG_NOSIGNAL);
    }
    if (ssl)
        (void)SSL_shutdown(ssl);
    SSL_free(ssl);
}

static void *serve(void *argument)
{
    struct server *server = argument;

    for (;;) {
        int peer = accept(server->listener, NULL, NULL);

        if (peer < 0)
            return NULL;
        answer(server, peer);
        close(peer);
    }
}

static void server_listen(struct server *server)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(server->port),
                                   .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t size = sizeof address;
    int on = 1;

    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(server->listener, 8), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
    server->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void server_stop(struct server *server)
{
    (void)shutdown(server->listener, SHUT_RDWR);
    (void)pthread_join(server->thread, NULL);
    close(server->listener);
}

static struct server server;

static int start(void **state)
{
    (void)state;
    server = (struct server){ 0 };
    server_listen(&server);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    server_stop(&server);
    SSL_CTX_free(server.tls);
    return 0;
}

static void ask_for(struct http_check_desired *config, const char *path)
{
    *config = (struct http_check_desired){ 0 };
    (void)snprintf(
        config->url, sizeof config->url, "%s://127.0.0.1:%u%s", server.tls ? "https" : "http",
        server.port, path);
    config->every_ms = 60000;
    /* The server of the test is as slow as the machine is busy. */
    config->timeout_ms = 60000;
    assert_derived(&http_check_kind, config);
}

static const struct http_check_observed *seen_of(const struct bench *bench)
{
    return bench->observed;
}

/* derive() and next() */

static void config_errors_name_the_field_and_a_remedy(void **state)
{
    static struct http_check_desired config, good;

    (void)state;
    assert_refused(&http_check_kind, &config, "url is missing: add the URL to check, such as");
    PUT(config.url, "ftp://host/x");
    assert_refused(&http_check_kind, &config, "url must be http or https");
    PUT(config.url, "http://me:hunter2@host/x");
    assert_refused(&http_check_kind, &config, "put secrets into headers");
    PUT(good.url, "https://host/x");
    config = good;
    config.status_count = 2;
    config.status[0] = 200;
    config.status[1] = 42;
    assert_refused(&http_check_kind, &config, "status[1] is 42: a status is from 100 to 599");
    config = good;
    config.headers_count = 1;
    PUT(config.headers[0], "Authorization hunter2");
    assert_refused(
        &http_check_kind, &config, "headers[0] is not a header: write one line, such as");
    config = good;
    config.every_ms = 500;
    config.timeout_ms = 700;
    assert_refused(&http_check_kind, &config, "timeout_ms 700 is more than every_ms 500");
    config = good;
    config.every_ms = 3600001;
    assert_refused(&http_check_kind, &config, "every_ms 3600001 is more than an hour");
    config = good;
    PUT(config.tls_ca_file, "ca.pem");
    assert_refused(&http_check_kind, &config, "tls_ca_file 'ca.pem' is relative");
    config = good;
    assert_derived(&http_check_kind, &config);
    assert_int_equal(config.every_ms, 10000);
    assert_int_equal(config.timeout_ms, 2000);
    assert_int_equal(config.failures_max, 1);
}

static void every_fault_has_its_reason(void **state)
{
    static struct http_check_desired desired;
    struct http_check_observed seen = { .checks = 1, .status = 204, .latency_ms = 12 };
    struct view view;

    (void)state;
    PUT(desired.url, "http://host/");
    desired.failures_max = 2;
    view_init(&view, &http_check_kind, &desired, &seen);
    assert_goto(&view, HTTP_CHECK_STOPPED, HTTP_CHECK_RUNNING);
    assert_hold(&view, HTTP_CHECK_RUNNING);
    assert_string_equal(view_ask(&view, HTTP_CHECK_RUNNING).reason, "status 204 in 12 ms");
    assert_goto(&view, HTTP_CHECK_DEGRADED, HTTP_CHECK_RUNNING);
    seen.status = 500;
    seen.failures = 1;
    assert_hold(&view, HTTP_CHECK_RUNNING);
    assert_hold(&view, HTTP_CHECK_DEGRADED);
    seen.failures = 2;
    assert_goto(&view, HTTP_CHECK_RUNNING, HTTP_CHECK_DEGRADED);
    assert_goto(&view, HTTP_CHECK_STOPPED, HTTP_CHECK_DEGRADED);
    assert_string_equal(
        view_ask(&view, HTTP_CHECK_DEGRADED).reason, "status 500 in 12 ms is not expected");
    seen.status = 200;
    PUT(desired.text, "ready");
    assert_string_equal(
        view_ask(&view, HTTP_CHECK_DEGRADED).reason,
        "status 200 in 12 ms, but \"ready\" is not in its body of 0 bytes");
    seen.has_text = true;
    desired.latency_max_ms = 11;
    assert_string_equal(
        view_ask(&view, HTTP_CHECK_DEGRADED).reason, "status 200 took 12 ms, more than 11");
    desired.latency_max_ms = 0;
    desired.tls_days_min = 14;
    assert_string_equal(view_ask(&view, HTTP_CHECK_DEGRADED).reason, "status 200 in 12 ms");
    seen.has_tls_days = true;
    seen.tls_days = 13;
    assert_string_equal(
        view_ask(&view, HTTP_CHECK_DEGRADED).reason,
        "its certificate ends in 13 days, less than 14");
    seen.status = 0;
    PUT(seen.error, "refused");
    assert_string_equal(view_ask(&view, HTTP_CHECK_DEGRADED).reason, "no answer in 12 ms: refused");
}

/* With a server. */

static void valid_http_answer_means_running(void **state)
{
    static struct http_check_desired desired;
    struct bench bench;

    (void)state;
    ask_for(&desired, "/200");
    PUT(desired.text, "is well");
    desired.headers_count = 1;
    PUT(desired.headers[0], "X-Key: hunter2");
    bench_open(&bench, &http_check_kind, NULL, &desired);
    bench_settle(&bench);
    assert_state(&bench, "running");
    assert_reason(&bench, "status 200 in ");
    assert_int_equal(seen_of(&bench)->body_size, 11);
    assert_false(seen_of(&bench)->has_tls_days);
    assert_non_null(strstr(server.head, "X-Key: hunter2\r\n"));
    bench_close(&bench);
}

static void http_check_runs_at_its_interval(void **state)
{
    static struct http_check_desired desired;
    struct bench bench;

    (void)state;
    ask_for(&desired, "/200");
    bench_open(&bench, &http_check_kind, NULL, &desired);
    for (int i = 0; i < 20; i++)
        bench_settle(&bench);
    assert_int_equal(atomic_load(&server.asked), 1);
    assert_int_equal(seen_of(&bench)->checks, 1);
    /* At once when something else is wanted. */
    ask_for(&desired, "/404");
    bench_settle(&bench);
    assert_int_equal(atomic_load(&server.asked), 2);
    assert_state(&bench, "degraded");
    assert_reason(&bench, "status 404 in ");
    desired.status_count = 1;
    desired.status[0] = 404;
    bench_settle(&bench);
    assert_state(&bench, "running");
    bench_close(&bench);
}

static void missing_http_answer_is_reported(void **state)
{
    static struct http_check_desired desired;
    struct bench bench;

    (void)state;
    ask_for(&desired, "/silent");
    desired.timeout_ms = 30;
    bench_open(&bench, &http_check_kind, NULL, &desired);
    bench_settle(&bench);
    assert_state(&bench, "degraded");
    assert_reason(&bench, "no answer in ");
    assert_reason(&bench, "no answer in ");
    /* The time of a look is shorter than what is wanted. */
    desired.timeout_ms = 60000;
    desired.every_ms = 1;
    bench.context.deadline = bench_now(&bench) + 230 * DET_MILLISECOND;
    bench_settle(&bench);
    assert_reason(&bench, "no answer in ");
    bench.context.deadline = DET_NEVER;
    bench.is_cancelled = true;
    assert_int_equal(
        http_check_kind.collect(&bench.context, bench.deps, &desired, bench.observed),
        DET_ERR_CANCELLED);
    /* Also what libcurl gives up before it asks whether to go on. */
    snprintf(desired.url, sizeof desired.url, "none://here");
    assert_int_equal(
        http_check_kind.collect(&bench.context, bench.deps, &desired, bench.observed),
        DET_ERR_CANCELLED);
    bench_close(&bench);
}

static void http_check_recovers_with_its_server(void **state)
{
    static struct http_check_desired desired;
    struct bench bench;

    (void)state;
    ask_for(&desired, "/200");
    desired.every_ms = 1;
    desired.failures_max = 2;
    bench_open(&bench, &http_check_kind, NULL, &desired);
    bench_settle(&bench);
    assert_state(&bench, "running");
    server_stop(&server);
    while (seen_of(&bench)->failures < 1)
        bench_settle(&bench);
    assert_reason(&bench, "no answer in ");
    while (seen_of(&bench)->failures < 2)
        bench_settle(&bench);
    bench_settle(&bench);
    assert_state(&bench, "degraded");
    server_listen(&server);
    while (seen_of(&bench)->failures)
        bench_settle(&bench);
    assert_state(&bench, "running");
    bench_close(&bench);
}

/* Returns the result of an observation in a separate process that may open this many more
 * descriptors. */
enum inspect { LOOK_ANSWERED, LOOK_SHORT, LOOK_DOWN, LOOK_OTHER };

static enum inspect look_with(const struct http_check_desired *desired, unsigned left)
{
    static struct bench bench;
    const struct http_check_observed *seen;
    struct rlimit limit;
    int r;

    bench_open(&bench, &http_check_kind, NULL, desired);
    limit.rlim_cur = limit.rlim_max = (rlim_t)dup(0) + left;
    (void)close((int)(limit.rlim_cur - left));
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return LOOK_OTHER;
    r = http_check_kind.collect(&bench.context, bench.deps, desired, bench.observed);
    if (r < 0)
        return r == DET_ERR_LIMIT || r == DET_ERR_NO_MEMORY ? LOOK_SHORT : LOOK_OTHER;
    seen = bench.observed;
    return seen->status ? LOOK_ANSWERED : LOOK_DOWN;
}

static enum inspect look_apart(const struct http_check_desired *desired, unsigned left)
{
    pid_t child = fork();
    int status = 0;

    assert_true(child >= 0);
    if (child == 0)
        _exit((int)look_with(desired, left));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return (enum inspect)WEXITSTATUS(status);
}

static void local_shortage_is_not_reported_as_server_down(void **state)
{
    static struct http_check_desired desired;
    unsigned times[LOOK_OTHER + 1] = { 0 };

    (void)state;
    ask_for(&desired, "/200");
    for (unsigned left = 0; left < 16; left++)
        times[look_apart(&desired, left)]++;
    assert_int_equal(times[LOOK_DOWN] + times[LOOK_OTHER], 0);
    assert_in_range(times[LOOK_SHORT], 1, 8);
    /* With enough descriptors, every server is up. */
    ask_for(&desired, "/200");
    (void)snprintf(desired.url, sizeof desired.url, "http://127.0.0.1:1/");
    assert_int_equal(look_apart(&desired, 16), LOOK_DOWN);
}

static void allocation_failure_is_not_a_failed_check(void **state)
{
    static struct http_check_desired desired;
    struct det_test_memory memory;
    struct bench bench;

    (void)state;
    ask_for(&desired, "/200");
    PUT(desired.text, "is well");
    det_test_memory_init(&memory);
    bench_open(&bench, &http_check_kind, NULL, &desired);
    bench.context.allocator = &memory.allocator;
    (void)det_test_memory_fail(&memory, 1, true);
    assert_int_equal(
        http_check_kind.collect(&bench.context, bench.deps, &desired, bench.observed),
        DET_ERR_NO_MEMORY);
    (void)det_test_memory_fail(&memory, 0, false);
    bench_settle(&bench);
    assert_state(&bench, "running");
    bench_close(&bench);
    det_test_memory_deinit(&memory);
}

static void use_tls(struct server *with, const struct certificate *certificate)
{
    with->tls = SSL_CTX_new(TLS_server_method());
    assert_int_equal(
        SSL_CTX_use_certificate_file(with->tls, certificate->path, SSL_FILETYPE_PEM), 1);
    assert_int_equal(
        SSL_CTX_use_PrivateKey_file(with->tls, certificate->key_path, SSL_FILETYPE_PEM), 1);
}

static void certificate_expiry_is_checked(void **state)
{
    static struct http_check_desired desired;
    char *folder = det_test_folder();
    struct certificate certificate;
    struct bench bench;

    (void)state;
    server = (struct server){ 0 };
    make_certificate(&certificate, folder, 20);
    use_tls(&server, &certificate);
    server_listen(&server);
    ask_for(&desired, "/200");
    bench_open(&bench, &http_check_kind, NULL, &desired);
    bench_settle(&bench);
    assert_state(&bench, "degraded");
    assert_reason(&bench, "certificate");
    PUT(desired.tls_ca_file, certificate.path);
    bench_settle(&bench);
    assert_state(&bench, "running");
    assert_true(seen_of(&bench)->has_tls_days);
    assert_int_equal(seen_of(&bench)->tls_days, 20);
    desired.tls_days_min = 21;
    desired.every_ms = 1;
    while (strcmp(bench_state(&bench), "degraded") != 0)
        bench_settle(&bench);
    assert_reason(&bench, "its certificate ends in 20 days, less than 21");
    desired.tls_days_min = 0;
    desired.tls_ca_file[0] = '\0';
    desired.tls_insecure = true;
    bench_settle(&bench);
    assert_state(&bench, "running");
    bench_close(&bench);
    det_test_folder_remove(folder);
}

#define SERVED(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(config_errors_name_the_field_and_a_remedy),
        cmocka_unit_test(every_fault_has_its_reason),
        SERVED(valid_http_answer_means_running),
        SERVED(http_check_runs_at_its_interval),
        SERVED(missing_http_answer_is_reported),
        SERVED(http_check_recovers_with_its_server),
        SERVED(local_shortage_is_not_reported_as_server_down),
        SERVED(allocation_failure_is_not_a_failed_check),
        cmocka_unit_test_teardown(certificate_expiry_is_checked, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
