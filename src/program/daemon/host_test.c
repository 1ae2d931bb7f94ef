/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* host_test.c - sockets, inherited or bound; holders of ports; safety checks. tests/e2e/daemon.py
 * tests what needs a second process. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/host.h"
#include "http/address.h"
#include "terminal/folder_test.h"

#define ADDRESSES_MAX 20

/* NOLINTBEGIN(concurrency-mt-unsafe): one thread */

static void bind_all(struct serve_sockets *sockets, const char *const *listen)
{
    struct config_http http = { .listen = listen };
    struct det_error error = { 0 };

    *sockets = (struct serve_sockets){ .count = 0 };
    if (serve_sockets_bind(sockets, &http, &error) < 0)
        fail_msg("%s", error.text);
}

static uint16_t port_of(const char *text)
{
    union http_address address;

    assert_int_equal(http_address_read(text, &address, NULL), 0);
    return http_address_port(&address);
}

static int connect_to(const char *text)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port_of(text)),
                                   .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int r = connect(descriptor, (struct sockaddr *)&address, sizeof address);

    close(descriptor);
    return r;
}

static void addresses_are_bound_and_can_be_connected_to(void **state)
{
    static const char *const listen[] = { "127.0.0.1:0", "localhost:0", NULL };
    struct serve_sockets sockets;
    int descriptor;

    (void)state;
    bind_all(&sockets, listen);
    assert_int_equal(sockets.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_memory_equal(sockets.items[i].text, "127.0.0.1:", 10);
        assert_true(sockets.items[i].is_loopback);
        assert_true(fcntl(sockets.items[i].descriptor, F_GETFL) & O_NONBLOCK);
        assert_int_equal(fcntl(sockets.items[i].descriptor, F_GETFD), FD_CLOEXEC);
        assert_int_equal(connect_to(sockets.items[i].text), 0);
    }
    /* A taken socket is not closed. */
    descriptor = serve_socket_take(&sockets.items[0]);
    serve_sockets_close(&sockets);
    assert_true(fcntl(descriptor, F_GETFD) >= 0);
    close(descriptor);
}

static void a_taken_port_is_reported_with_its_holder(void **state)
{
    static const char *const any[] = { "127.0.0.1:0", NULL };
    struct serve_sockets sockets, more = { .count = 0 };
    struct config_http http = { 0 };
    const char *listen[2] = { NULL };
    struct det_error error;
    char process[40];

    (void)state;
    bind_all(&sockets, any);
    listen[0] = sockets.items[0].text;
    http.listen = listen;
    assert_int_equal(serve_sockets_bind(&more, &http, &error), DET_ERR_EXISTS);
    snprintf(process, sizeof process, "(process %d, in /", (int)getpid());
    if (!strstr(error.text, process) || !strstr(error.text, "--listen 127.0.0.1:0"))
        fail_msg("%s", error.text);
    serve_sockets_close(&sockets);
}

static void an_address_that_cannot_be_bound_is_reported(void **state)
{
    static const char *const foreign[] = { "203.0.113.7:0", NULL };
    static const char *const wrong[] = { "x", NULL };
    const char *many[ADDRESSES_MAX + 1] = { NULL };
    struct serve_sockets sockets = { .count = 0 };
    struct config_http http = { .listen = foreign };
    struct det_error error;

    (void)state;
    assert_int_equal(serve_sockets_bind(&sockets, &http, &error), DET_ERR_INVALID);
    assert_non_null(strstr(error.text, "does not have that address"));
    http.listen = wrong;
    assert_int_equal(serve_sockets_bind(&sockets, &http, &error), DET_ERR_MALFORMED);
    for (size_t i = 0; i < ADDRESSES_MAX; i++)
        many[i] = "127.0.0.1:0";
    http.listen = many;
    assert_int_equal(serve_sockets_bind(&sockets, &http, &error), DET_ERR_LIMIT);
    serve_sockets_close(&sockets);
}

/* Calls the function while the descriptors from 3 on are these. */
static int ask_given(const int *descriptors, size_t count, struct serve_sockets *ret)
{
    struct det_error error;
    char number[24];
    int saved[4], r;

    for (size_t i = 0; i < count; i++) {
        saved[i] = fcntl(3 + (int)i, F_DUPFD_CLOEXEC, 20);
        assert_int_equal(dup2(descriptors[i], 3 + (int)i), 3 + (int)i);
    }
    snprintf(number, sizeof number, "%zu", count);
    setenv("LISTEN_FDS", number, 1);
    snprintf(number, sizeof number, "%d", (int)getpid());
    setenv("LISTEN_PID", number, 1);
    setenv("LISTEN_FDNAMES", "first:second", 1);
    r = serve_sockets_given(ret, &error);
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDNAMES");
    for (size_t i = 0; i < count; i++) {
        close(3 + (int)i);
        if (saved[i] >= 0) {
            assert_int_equal(dup2(saved[i], 3 + (int)i), 3 + (int)i);
            close(saved[i]);
        }
    }
    return r;
}

static void inherited_sockets_are_used_with_their_names(void **state)
{
    static const char *const any[] = { "127.0.0.1:0", NULL };
    struct fixture *fixture = *state;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int descriptors[2] = { -1, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    struct serve_sockets bound, given;
    struct config_http http = { .listen = any };
    struct det_error error;

    bind_all(&bound, any);
    descriptors[0] = fcntl(bound.items[0].descriptor, F_DUPFD_CLOEXEC, 10);
    snprintf(address.sun_path, sizeof address.sun_path, "%.80s/s", fixture->folder);
    assert_int_equal(bind(descriptors[1], (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(descriptors[1], 1), 0);
    assert_int_equal(ask_given(descriptors, 2, &given), 0);
    assert_int_equal(given.count, 2);
    assert_string_equal(given.items[0].text, bound.items[0].text);
    assert_string_equal(given.items[0].name, "first");
    assert_int_equal(given.items[0].descriptor, 3);
    assert_true(given.items[1].is_unix);
    assert_string_equal(given.items[1].text, address.sun_path);
    assert_string_equal(given.items[1].name, "second");
    /* They override the file. */
    assert_int_equal(serve_sockets_bind(&given, &http, &error), 0);
    assert_int_equal(given.count, 2);
    close(descriptors[0]);
    close(descriptors[1]);
    serve_sockets_close(&bound);
}

static void inherited_socket_must_listen(void **state)
{
    struct serve_sockets given;
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    assert_int_equal(ask_given(&descriptor, 1, &given), DET_ERR_INVALID);
    close(descriptor);
    setenv("LISTEN_FDS", "1", 1);
    setenv("LISTEN_PID", "1", 1);
    assert_int_equal(serve_sockets_given(&given, NULL), 0);
    assert_int_equal(given.count, 0);
    unsetenv("LISTEN_PID");
    assert_int_equal(serve_sockets_given(&given, NULL), 0);
    unsetenv("LISTEN_FDS");
}

static void listen_option_overrides_environment_and_file(void **state)
{
    static const char *const file[] = { "127.0.0.1:1", NULL };
    struct config_http http = { .listen = file };
    struct det_error error;
    struct det_arena arena;

    (void)state;
    assert_int_equal(unsetenv("DETENT_LISTEN"), 0); /* the tests run with one */
    det_arena_init(&arena, NULL);
    assert_int_equal(serve_listen(NULL, &arena, &http, &error), 0);
    assert_ptr_equal(http.listen, file);
    setenv("DETENT_LISTEN", "none", 1);
    assert_int_equal(serve_listen(NULL, &arena, &http, &error), 0);
    assert_null(http.listen[0]);
    assert_int_equal(serve_listen("127.0.0.1:2,[::1]:3", &arena, &http, &error), 0);
    assert_string_equal(http.listen[0], "127.0.0.1:2");
    assert_string_equal(http.listen[1], "[::1]:3");
    assert_null(http.listen[2]);
    assert_int_equal(serve_listen("127.0.0.1:2,", &arena, &http, &error), DET_ERR_INVALID);
    assert_string_equal(http.listen[1], "[::1]:3");
    unsetenv("DETENT_LISTEN");
    det_arena_deinit(&arena);
}

static void inherited_public_socket_needs_tls_and_a_token(void **state)
{
    static const char *const none[] = { NULL };
    struct fixture *fixture = *state;
    struct serve_request request = { .project = fixture->folder };
    struct config_http http = { .listen = none };
    struct serve_sockets sockets = { .count = 1,
                                     .is_given = true,
                                     .items = { { .descriptor = -1, .text = "0.0.0.0:443" } } };
    char key[400];

    assert_int_equal(serve_check(&fixture->cli, &request, &http, &sockets), CLI_REFUSED);
    fflush(fixture->cli.err);
    assert_non_null(strstr(fixture->printed, "0.0.0.0:443 can be reached"));
    snprintf(key, sizeof key, "%s/key", fixture->folder);
    put_text(fixture, "key", "k");
    assert_int_equal(chmod(key, 0600), 0);
    http.tls = (struct http_tls){ .certificate = key, .key = key };
    assert_int_equal(serve_check(&fixture->cli, &request, &http, &sockets), CLI_REFUSED);
    fflush(fixture->cli.err);
    assert_non_null(strstr(fixture->printed, "no token yet"));
    sockets.items[0].is_loopback = true;
    assert_int_equal(serve_check(&fixture->cli, &request, &http, &sockets), CLI_OK);
}

static int listen_scarce(struct det_test_memory *memory, void *argument)
{
    struct config_http http = { 0 };
    struct det_error error;
    struct det_arena arena;
    int r;

    (void)argument;
    det_arena_init(&arena, &memory->allocator);
    r = serve_listen("127.0.0.1:2,[::1]:3", &arena, &http, &error);
    det_arena_deinit(&arena);
    return r;
}

static void every_failed_allocation_is_survived(void **state)
{
    (void)state;
    det_test_each_failure(listen_scarce, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_bound_and_can_be_connected_to),
        cmocka_unit_test(a_taken_port_is_reported_with_its_holder),
        cmocka_unit_test(an_address_that_cannot_be_bound_is_reported),
        TEST(inherited_sockets_are_used_with_their_names),
        cmocka_unit_test(inherited_socket_must_listen),
        cmocka_unit_test(listen_option_overrides_environment_and_file),
        TEST(inherited_public_socket_needs_tls_and_a_token),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
/* NOLINTEND(concurrency-mt-unsafe) */
