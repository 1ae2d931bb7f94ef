/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tls_sim_test.c - TLS over a stream that moves a few bytes at a time, in virtual time: the
 * handshake, requests and answers do not depend on how bytes are split, and no connection waits for
 * an event that never comes. */
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "http/identity_test.h"
#include "http/sim_test.h"
#include "http/tls_stream.h"

/* A client of OpenSSL over the simulated stream. */
struct talker {
    struct house house;
    struct client client;
    struct http_tls_context *tls;
    SSL_CTX *context;
    SSL *ssl;
    size_t rate; /* bytes per step and direction */
    struct det_buffer text;
};

static void talker_open(
    struct talker *talker, const struct identity *identity, size_t rate, int version)
{
    const struct http_tls tls = { identity->certificate_path, identity->key_path, NULL };
    struct http_connection *connection;
    void *stream;

    *talker = (struct talker){ .rate = rate };
    house_open(&talker->house);
    assert_int_equal(http_tls_open(NULL, &tls, &talker->tls, NULL), 0);
    talker->client = (struct client){ .loop = talker->house.loop, .read_max = rate };
    assert_int_equal(http_tls_stream_open(talker->tls, &client_io, &talker->client, &stream), 0);
    assert_int_equal(
        http_connection_open(
            talker->house.server, &http_tls_io, stream,
            &(struct http_origin){ .peer = "client", .is_encrypted = true }, &connection),
        0);
    talker->context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(talker->context, version);
    talker->ssl = SSL_new(talker->context);
    SSL_set_bio(talker->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(talker->ssl);
}

static void talker_close(struct talker *talker)
{
    client_deinit(&talker->client);
    SSL_free(talker->ssl);
    SSL_CTX_free(talker->context);
    http_tls_close(talker->tls);
    house_close(&talker->house);
    det_buffer_deinit(&talker->text);
}

/* Moves a few bytes in each direction. */
static void carry(struct talker *talker)
{
    char bytes[4096];
    int size = BIO_read(SSL_get_wbio(talker->ssl), bytes, sizeof bytes);

    if (size > 0)
        det_buffer_append(&talker->client.sent, bytes, (size_t)size);
    talker->client.window = talker->rate;
    client_pump(&talker->client);
    if (talker->client.got.size > 0)
        BIO_write(SSL_get_rbio(talker->ssl), talker->client.got.data, (int)talker->client.got.size);
    det_buffer_clear(&talker->client.got);
}

static void send_encrypted(struct talker *talker, const char *bytes, size_t size)
{
    int r;

    for (int i = 0; (r = SSL_write(talker->ssl, bytes, (int)size)) <= 0; i++) {
        assert_true(i < 100000);
        ERR_clear_error();
        carry(talker);
    }
    assert_int_equal(r, size);
}

/* Runs until the received text ends with `part`. */
static void receive_encrypted(struct talker *talker, const char *part)
{
    size_t length = strlen(part);
    char bytes[4096];

    for (int i = 0; talker->text.size < length ||
                    memcmp(talker->text.data + talker->text.size - length, part, length) != 0;
         i++) {
        int size = SSL_read(talker->ssl, bytes, sizeof bytes);

        assert_true(i < 100000);
        if (size > 0)
            det_buffer_append(&talker->text, bytes, (size_t)size);
        else
            carry(talker);
        ERR_clear_error();
    }
}

static void talk(const struct identity *identity, size_t rate, int version)
{
    static const char get[] = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
    struct det_buffer bytes;
    struct talker talker;

    talker_open(&talker, identity, rate, version);
    send_encrypted(&talker, get, strlen(get));
    receive_encrypted(&talker, "\r\n\r\n/a ");
    det_buffer_clear(&talker.text);

    det_buffer_init(&bytes, NULL);
    det_buffer_format(
        &bytes, "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 40000\r\n\r\n%040000d", 7);
    det_buffer_append_text(&bytes, "GET /static HTTP/1.1\r\nHost: a\r\n\r\n");
    det_buffer_append_text(&bytes, get);
    send_encrypted(&talker, bytes.data, bytes.size);
    receive_encrypted(&talker, "\r\n\r\n/a ");
    assert_has(det_buffer_text(&talker.text), "0007HTTP/1.1 200 OK");
    assert_int_equal(strspn(strstr(talker.text.data, "\r\n\r\ns") + 4, "s"), 100000);
    assert_has(
        det_buffer_text(&talker.house.seen),
        "POST /b 40000\n= 200 /b \nGET /static 0\n= 200 /static \nGET /a 0\n");
    det_buffer_deinit(&bytes);
    talker_close(&talker);
}

static void test_tls_works_with_any_split(void **state)
{
    static const size_t rates[] = { 97, 1000, 5000, 100000 };
    struct identity identity = { 0 };
    char *folder = det_test_folder();

    (void)state;
    make_identity(&identity, folder, "server");
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        talk(&identity, rates[i], TLS1_2_VERSION);
        talk(&identity, rates[i], TLS1_3_VERSION);
    }
    drop_identity(&identity);
    det_test_folder_remove(folder);
}

/* A refused client receives the answer and the end before the cut. */
static void test_tls_refusal_is_sent_before_the_close(void **state)
{
    static const char bad[] = "GET / HTTP/9.9\r\nmore and more";
    struct identity identity = { 0 };
    char *folder = det_test_folder(), byte;
    struct talker talker;

    (void)state;
    make_identity(&identity, folder, "server");
    talker_open(&talker, &identity, 1000, 0);
    send_encrypted(&talker, bad, strlen(bad));
    receive_encrypted(&talker, "}}\n");
    assert_has(det_buffer_text(&talker.text), "505 HTTP Version Not Supported");
    while (SSL_read(talker.ssl, &byte, 1) <= 0 &&
           !(SSL_get_shutdown(talker.ssl) & SSL_RECEIVED_SHUTDOWN))
        carry(&talker);
    assert_true(talker.client.is_ended);
    assert_false(talker.client.is_closed);
    /* The client's own end is a message, too. */
    (void)SSL_shutdown(talker.ssl);
    carry(&talker);
    assert_true(talker.client.is_closed);
    talker_close(&talker);
    drop_identity(&identity);
    det_test_folder_remove(folder);
}

/* Single bytes do not restart the deadline. */
static void test_stalled_tls_handshake_is_closed_after_ten_seconds(void **state)
{
    struct identity identity = { 0 };
    char *folder = det_test_folder();
    struct talker talker;

    (void)state;
    make_identity(&identity, folder, "server");
    talker_open(&talker, &identity, 7, 0);
    (void)SSL_do_handshake(talker.ssl);
    ERR_clear_error();
    carry(&talker);
    for (int i = 0; i < 12; i++) {
        assert_true(i >= 9 || !talker.client.is_closed);
        talker.client.window = 1;
        if (!talker.client.is_closed)
            pass(&talker.house, &talker.client, DET_SECOND);
    }
    assert_true(talker.client.is_closed);
    talker_close(&talker);
    drop_identity(&identity);
    det_test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls_works_with_any_split),
        cmocka_unit_test(test_tls_refusal_is_sent_before_the_close),
        cmocka_unit_test(test_stalled_tls_handshake_is_closed_after_ten_seconds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
