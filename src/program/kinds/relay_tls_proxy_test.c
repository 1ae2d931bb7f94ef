/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test: threads */
/* relay_tls_proxy_test.c - the way to a relay: certificates are checked, and a proxy of the
 * environment is used, but not for this machine. */
#include "lib/patience.h"
#include "lib/test.h"

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kinds/relay.h"
#include "kinds/relay_mock.h"

#define SECRET "user-secret"

static int log_in(const char *url, struct relay_failure *failure)
{
    struct relay_call call = { .timeout = DET_TEST_HANG };
    struct relay_instance instance;
    struct relay *relay = NULL;
    int r;

    assert_int_equal(
        relay_open(&(struct relay_options){ .world = det_world_real(), .url = url }, &relay), 0);
    r = relay_login(relay, &call, SECRET, &instance, failure);
    relay_close(relay);
    return r;
}

/* A server with a self-signed certificate. */
struct stranger {
    SSL_CTX *context;
    int listener;
    unsigned port;
    bool is_read; /* what was said to it */
    pthread_t thread;
};

static void *meet(void *argument)
{
    struct stranger *stranger = argument;
    int descriptor = accept(stranger->listener, NULL, NULL);
    SSL *ssl = SSL_new(stranger->context);
    char bytes[16];

    SSL_set_fd(ssl, descriptor);
    stranger->is_read = SSL_accept(ssl) == 1 && SSL_read(ssl, bytes, sizeof bytes) > 0;
    SSL_free(ssl);
    close(descriptor);
    return NULL;
}

static void stranger_open(struct stranger *stranger)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof address;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    X509_NAME *name = X509_get_subject_name(certificate);

    *stranger = (struct stranger){ .context = SSL_CTX_new(TLS_server_method()) };
    X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_NAME_add_entry_by_txt(
        name, "CN", MBSTRING_ASC, (const unsigned char *)"127.0.0.1", -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    X509_set_pubkey(certificate, key);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    assert_int_equal(SSL_CTX_use_certificate(stranger->context, certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(stranger->context, key), 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
    stranger->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(stranger->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(stranger->listener, 4), 0);
    assert_int_equal(getsockname(stranger->listener, (struct sockaddr *)&address, &size), 0);
    stranger->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&stranger->thread, NULL, meet, stranger), 0);
}

static void stranger_close(struct stranger *stranger)
{
    pthread_join(stranger->thread, NULL);
    close(stranger->listener);
    SSL_CTX_free(stranger->context);
}

static void test_relay_without_a_valid_certificate_gets_no_data(void **state)
{
    struct relay_failure failure;
    struct stranger stranger;
    char url[64];

    (void)state;
    stranger_open(&stranger);
    snprintf(url, sizeof url, "https://127.0.0.1:%u", stranger.port);
    assert_int_equal(log_in(url, &failure), DET_ERR_IO);
    assert_int_equal(failure.class, RELAY_NETWORK);
    assert_non_null(strstr(failure.text, "certificate"));
    stranger_close(&stranger);
    assert_false(stranger.is_read);
}

static void set_proxy(const char *url)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread runs */
    assert_int_equal(setenv("http_proxy", url, 1), 0);
}

static void test_proxy_is_not_used_for_loopback(void **state)
{
    struct relay_failure failure;
    struct relay_mock *mock = NULL;

    (void)state;
    assert_int_equal(relay_mock_open(SECRET, &mock), 0);
    set_proxy(relay_mock_url(mock));
    /* The mock is no proxy, and says so. */
    assert_int_equal(log_in("http://relay.example", &failure), DET_ERR_REFUSED);
    assert_int_equal(failure.status, 404);
    assert_int_equal(relay_mock_count(mock, RELAY_MOCK_CONNECTIONS), 1);
    set_proxy("http://127.0.0.1:1");
    assert_int_equal(log_in(relay_mock_url(mock), &failure), 0);
    set_proxy("");
    relay_mock_close(mock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relay_without_a_valid_certificate_gets_no_data),
        cmocka_unit_test(test_proxy_is_not_used_for_loopback),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
