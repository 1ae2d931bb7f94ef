/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tls_test.c - the server over TLS, with a client of OpenSSL on the same thread. Certificates are
 * made for the test. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/http_internal.h"
#include "http/identity_test.h"
#include "http/tls_stream.h"
#include "lib/test.h"

#define PATIENCE  (10 * DET_MINUTE)
#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

struct house {
    char *folder;
    struct identity server, client;
    struct det_loop *loop;
    struct http_server *http;
    int port;
    size_t body_size;
    bool is_encrypted;
    char subject[256];
};

/* /large has a megabyte; other paths return the size of the body. */
static void handle(void *context, struct http_exchange *exchange)
{
    static char large[1 << 20];
    const struct http_request *request = http_request(exchange);
    struct house *house = context;
    struct http_answer answer = { .status = 200, .body = "hello", .body_size = 5 };

    house->body_size = request->body_size;
    house->is_encrypted = request->is_encrypted;
    snprintf(house->subject, sizeof house->subject, "%s", request->subject ? request->subject : "");
    if (strcmp(request->path, "/large") == 0) {
        memset(large, 'l', sizeof large);
        answer.body = large;
        answer.body_size = sizeof large;
        answer.is_static = true;
    }
    http_answer(exchange, &answer);
}

static void house_open_for(struct house *house, bool asks_clients)
{
    struct http_tls tls;
    struct http_options options = { .handle = handle, .context = house, .tls = &tls };
    struct det_error error = { 0 };

    *house = (struct house){ .folder = det_test_folder() };
    make_identity(&house->server, house->folder, "first");
    make_identity(&house->client, house->folder, "alice");
    tls = (struct http_tls){ house->server.certificate_path, house->server.key_path,
                             asks_clients ? house->client.certificate_path : NULL };
    assert_int_equal(det_loop_open(NULL, NULL, &house->loop), 0);
    options.loop = house->loop;
    if (http_server_open(&options, &house->http, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(http_listen(house->http, "127.0.0.1:0", NULL, NULL), 0);
    house->port = (int)strtol(strchr(http_listener_address(house->http, 0), ':') + 1, NULL, 10);
}

static void house_open(struct house *house)
{
    house_open_for(house, false);
}

static void house_close(struct house *house)
{
    http_server_close(house->http);
    det_loop_close(house->loop);
    drop_identity(&house->server);
    drop_identity(&house->client);
    det_test_folder_remove(house->folder);
}

struct client {
    SSL_CTX *context;
    SSL *ssl;
    int descriptor;
    char text[(1 << 20) + 4096];
    size_t size;
};

static void turn(struct house *house)
{
    assert_true(det_loop_turn(house->loop, det_loop_now(house->loop) + 5 * DET_MILLISECOND) >= 0);
}

static int connect_to(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(descriptor, (struct sockaddr *)&address, sizeof address), 0);
    return descriptor;
}

/* Returns true if the call must be repeated after a turn of the server. */
static bool try_again(struct house *house, const struct client *client, int result)
{
    int error = SSL_get_error(client->ssl, result);

    ERR_clear_error();
    turn(house);
    return result <= 0 && (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE);
}

static struct client *client_open_with(
    struct house *house, const struct identity *identity, int version_max, const char *ciphers)
{
    struct client *client = calloc(1, sizeof *client);
    int result;

    assert_non_null(client);
    client->context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_security_level(client->context, 0);
    SSL_CTX_set_min_proto_version(client->context, 0);
    SSL_CTX_set_max_proto_version(client->context, version_max);
    if (ciphers)
        assert_int_equal(SSL_CTX_set_cipher_list(client->context, ciphers), 1);
    if (identity) {
        SSL_CTX_use_certificate(client->context, identity->certificate);
        SSL_CTX_use_PrivateKey(client->context, identity->key);
    }
    client->ssl = SSL_new(client->context);
    client->descriptor = connect_to(house->port);
    /* Both ends have one thread. */
    assert_int_equal(BIO_socket_nbio(client->descriptor, 1), 1);
    SSL_set_fd(client->ssl, client->descriptor);
    do
        result = SSL_connect(client->ssl);
    while (try_again(house, client, result));
    return client;
}

static struct client *client_open(
    struct house *house, const struct identity *identity, int version_max)
{
    return client_open_with(house, identity, version_max, NULL);
}

static void client_close(struct client *client)
{
    close(client->descriptor);
    SSL_free(client->ssl);
    SSL_CTX_free(client->context);
    free(client);
}

static void send_text(struct house *house, struct client *client, const char *bytes, size_t size)
{
    size_t sent = 0;

    while (sent < size) {
        int result = SSL_write(client->ssl, bytes + sent, (int)(size - sent));

        if (result > 0)
            sent += (size_t)result;
        else if (!try_again(house, client, result))
            fail_msg("it cannot be written to");
    }
}

/* Reads until the text ends with `part`; NULL: until the end. */
static const char *receive(struct house *house, struct client *client, const char *part)
{
    size_t length = part ? strlen(part) : 0;
    det_time end = det_loop_now(house->loop) + PATIENCE;
    int result;

    client->size = 0;
    do {
        assert_true(det_loop_now(house->loop) < end);
        result = SSL_read(
            client->ssl, client->text + client->size,
            (int)(sizeof client->text - 1 - client->size));
        if (result > 0)
            client->size += (size_t)result;
        else if (!try_again(house, client, result))
            break;
        client->text[client->size] = '\0';
    } while (!part || client->size < length ||
             memcmp(client->text + client->size - length, part, length) != 0);
    client->text[client->size] = '\0';
    return client->text;
}

static const char *ask(struct house *house, struct client *client)
{
    send_text(house, client, GET("/"), strlen(GET("/")));
    return receive(house, client, "hello");
}

static void test_requests_are_answered_over_tls(void **state)
{
    static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
    struct house house;

    (void)state;
    house_open(&house);
    for (size_t i = 0; i < 2; i++) {
        struct client *client = client_open(&house, NULL, versions[i]);

        assert_int_equal(SSL_version(client->ssl), versions[i]);
        assert_non_null(strstr(ask(&house, client), "HTTP/1.1 200 OK\r\n"));
        assert_non_null(strstr(ask(&house, client), "hello"));
        assert_true(house.is_encrypted);
        assert_string_equal(house.subject, "");
        client_close(client);
    }
    while (http_server_connections(house.http) > 0)
        turn(&house);
    house_close(&house);
}

static void test_older_versions_are_refused(void **state)
{
    struct client *client;
    struct house house;

    (void)state;
    house_open(&house);
    client = client_open(&house, NULL, TLS1_1_VERSION);
    assert_false(SSL_is_init_finished(client->ssl));
    client_close(client);
    house_close(&house);
}

/* TLS 1.2 with CBC, or without forward secrecy. */
static void test_ciphers_without_aead_or_forward_secrecy_are_refused(void **state)
{
    static const char *const weak[] = { "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384",
                                        "AES128-GCM-SHA256", "AES256-SHA" };
    static const char *const strong[] = { "ECDHE-ECDSA-AES128-GCM-SHA256",
                                          "ECDHE-ECDSA-CHACHA20-POLY1305" };
    struct client *client;
    struct house house;

    (void)state;
    house_open(&house);
    for (size_t i = 0; i < sizeof weak / sizeof *weak; i++) {
        client = client_open_with(&house, NULL, TLS1_2_VERSION, weak[i]);
        assert_false(SSL_is_init_finished(client->ssl));
        client_close(client);
    }
    for (size_t i = 0; i < sizeof strong / sizeof *strong; i++) {
        client = client_open_with(&house, NULL, TLS1_2_VERSION, strong[i]);
        assert_string_equal(SSL_get_cipher_name(client->ssl), strong[i]);
        client_close(client);
    }
    house_close(&house);
}

/* Larger than a record and than the buffers of OpenSSL: no bytes stay in between. */
static void test_large_bodies_and_answers_come_whole(void **state)
{
    static char body[1 << 20];
    struct det_buffer bytes;
    struct client *client;
    struct house house;

    (void)state;
    house_open(&house);
    client = client_open(&house, NULL, 0);
    det_buffer_init(&bytes, NULL);
    det_buffer_format(
        &bytes, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", sizeof body);
    det_buffer_append(&bytes, body, sizeof body);
    send_text(&house, client, bytes.data, bytes.size);
    (void)receive(&house, client, "hello");
    assert_int_equal(house.body_size, sizeof body);
    send_text(&house, client, "GET /large HTTP/1.0\r\n\r\n", strlen("GET /large HTTP/1.0\r\n\r\n"));
    assert_int_equal(strspn(strstr(receive(&house, client, NULL), "\r\n\r\n") + 4, "l"), 1 << 20);
    /* The end was announced by close_notify. */
    assert_int_equal(SSL_get_shutdown(client->ssl) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN);
    det_buffer_deinit(&bytes);
    client_close(client);
    house_close(&house);
}

/* In TLS 1.3 a client learns that it is refused when it reads. */
static void expect_refused(struct house *house, const struct identity *identity, int version)
{
    struct client *client = client_open(house, identity, version);

    if (version == TLS1_2_VERSION)
        assert_false(SSL_is_init_finished(client->ssl));
    else
        assert_string_equal(receive(house, client, NULL), "");
    client_close(client);
    while (http_server_connections(house->http) > 0)
        turn(house);
}

static void test_client_certificate_is_required_when_requested(void **state)
{
    static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
    struct identity stranger = { 0 };
    struct house house;

    (void)state;
    house_open_for(&house, true);
    make_identity(&stranger, house.folder, "mallory");
    for (size_t i = 0; i < 2; i++) {
        struct client *client = client_open(&house, &house.client, versions[i]);

        (void)ask(&house, client);
        assert_string_equal(house.subject, "CN=alice");
        client_close(client);
        expect_refused(&house, &stranger, versions[i]);
        expect_refused(&house, NULL, versions[i]);
    }
    drop_identity(&stranger);
    house_close(&house);
}

static void assert_served_by(struct client *client, const char *name)
{
    X509 *certificate = SSL_get1_peer_certificate(client->ssl);
    char text[64] = "";

    assert_non_null(certificate);
    X509_NAME_get_text_by_NID(
        X509_get_subject_name(certificate), NID_commonName, text, sizeof text);
    assert_string_equal(text, name);
    X509_free(certificate);
}

static void test_renewed_certificate_is_used_for_new_connections(void **state)
{
    char password[] = "password";
    struct identity next = { 0 };
    struct det_error error = { 0 };
    FILE *file;
    struct client *before, *behind;
    struct http_tls tls;
    struct house house;

    (void)state;
    house_open(&house);
    before = client_open(&house, NULL, 0);
    assert_served_by(before, "first");
    make_identity(&next, house.folder, "second");
    tls = (struct http_tls){ .certificate = next.certificate_path, .key = next.key_path };
    assert_int_equal(http_server_renew(house.http, &tls, &error), 0);
    behind = client_open(&house, NULL, 0);
    assert_served_by(behind, "second");
    (void)ask(&house, before);
    (void)ask(&house, behind);
    client_close(before);
    client_close(behind);

    tls.key = house.server.key_path;
    assert_true(http_server_renew(house.http, &tls, &error) < 0);
    assert_non_null(strstr(error.text, "the key "));
    file = fopen(next.key_path, "w");
    assert_int_equal(
        PEM_write_PrivateKey(file, next.key, EVP_aes_128_cbc(), NULL, 0, NULL, (void *)password),
        1);
    fclose(file);
    tls.key = next.key_path;
    assert_true(http_server_renew(house.http, &tls, &error) < 0);
    assert_non_null(strstr(error.text, "the key "));
    tls.certificate = house.server.key_path;
    assert_true(http_server_renew(house.http, &tls, &error) < 0);
    assert_non_null(strstr(error.text, "the certificate "));
    tls = (struct http_tls){ house.server.certificate_path, house.server.key_path, next.key_path };
    assert_true(http_server_renew(house.http, &tls, &error) < 0);
    assert_non_null(strstr(error.text, "the certificates for clients "));
    behind = client_open(&house, NULL, 0);
    assert_served_by(behind, "second");
    client_close(behind);
    drop_identity(&next);
    house_close(&house);
}

/* Plain text, silence and truncated handshakes are harmless. */
static void test_connection_without_tls_is_closed(void **state)
{
    static const char plain[] = GET("/");
    const struct linger reset = { .l_onoff = 1, .l_linger = 0 };
    struct client *client;
    struct house house;
    int descriptor;
    char byte;

    (void)state;
    house_open(&house);
    descriptor = connect_to(house.port);
    assert_int_equal(send(descriptor, plain, strlen(plain), 0), (ssize_t)strlen(plain));
    do
        turn(&house);
    while (recv(descriptor, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
    while (http_server_connections(house.http) > 0)
        turn(&house);
    close(descriptor);

    client = client_open(&house, NULL, 0);
    send_text(&house, client, GET("/large"), strlen(GET("/large")));
    turn(&house);
    assert_int_equal(
        setsockopt(client->descriptor, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    client_close(client);
    while (http_server_connections(house.http) > 0)
        turn(&house);
    house_close(&house);
}

static void test_invalid_certificate_files_are_reported(void **state)
{
    const struct http_tls tls = { "/nowhere/cert.pem", "/nowhere/key.pem", NULL };
    struct det_error error = { 0 };
    struct http_tls_context *context;
    struct http_server *server;
    DET_SCOPED(loop) loop = NULL;

    (void)state;
    assert_true(http_tls_open(NULL, &tls, &context, &error) < 0);
    assert_non_null(strstr(error.text, "/nowhere/cert.pem"));
    assert_int_equal(det_loop_open(NULL, NULL, &loop), 0);
    assert_true(
        http_server_open(
            &(struct http_options){ .loop = loop, .handle = handle, .tls = &tls }, &server,
            &error) < 0);
    assert_int_equal(
        http_server_open(&(struct http_options){ .loop = loop, .handle = handle }, &server, &error),
        0);
    assert_int_equal(http_server_renew(server, &tls, &error), DET_ERR_INVALID);
    http_server_close(server);
}

static int open_stream(struct det_test_memory *memory, void *argument)
{
    const struct house *house = argument;
    const struct http_tls tls = { house->server.certificate_path, house->server.key_path, NULL };
    struct http_tls_context *context = NULL;
    int ends[2], r;
    void *below, *stream;

    r = http_tls_open(&memory->allocator, &tls, &context, NULL);
    if (r < 0)
        return r;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    r = http_socket_open(&memory->allocator, house->loop, ends[0], &below);
    if (r < 0) {
        close(ends[0]);
    } else {
        r = http_tls_stream_open(context, &http_socket_io, below, &stream);
        if (r < 0)
            http_socket_io.close(below);
        else
            http_tls_io.close(stream);
    }
    close(ends[1]);
    http_tls_close(context);
    return r;
}

static void test_tls_stream_open_survives_failed_allocations(void **state)
{
    struct house house;

    (void)state;
    house_open(&house);
    det_test_each_failure(open_stream, &house);
    house_close(&house);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_are_answered_over_tls),
        cmocka_unit_test(test_older_versions_are_refused),
        cmocka_unit_test(test_ciphers_without_aead_or_forward_secrecy_are_refused),
        cmocka_unit_test(test_large_bodies_and_answers_come_whole),
        cmocka_unit_test(test_client_certificate_is_required_when_requested),
        cmocka_unit_test(test_renewed_certificate_is_used_for_new_connections),
        cmocka_unit_test(test_connection_without_tls_is_closed),
        cmocka_unit_test(test_invalid_certificate_files_are_reported),
        cmocka_unit_test(test_tls_stream_open_survives_failed_allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
