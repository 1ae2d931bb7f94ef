/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tls_stream.c - TLS over a stream, by OpenSSL.
 *
 * OpenSSL gets a BIO over the stream below and never sees a descriptor: so a write to a closed
 * connection raises no signal, and tests can put a simulated peer below. The first reads do the
 * handshake. */
#include "http/tls_stream.h"

#include <limits.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

#define SUBJECT_MAX 256
/* For TLS 1.2: only forward secrecy and authenticated encryption, which all ciphers of 1.3 have. */
#define CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL:!PSK"

struct http_tls_context {
    const struct det_allocator *allocator;
    SSL_CTX *ssl;
    BIO_METHOD *method;
    unsigned users; /* streams, and the server */
};

struct tls_stream {
    struct http_tls_context *context;
    const struct http_io *below;
    void *stream;
    SSL *ssl;
    bool wants_write; /* required to continue reading, for instance during the handshake */
    bool is_broken;
    bool has_subject;
    char subject[SUBJECT_MAX];
};

static int bio_result(BIO *bio, int64_t size, int retry)
{
    BIO_clear_retry_flags(bio);
    if (size == DET_ERR_BUSY)
        BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
    return size < 0 ? -1 : (int)size;
}

static int bio_read(BIO *bio, char *target, int size)
{
    const struct tls_stream *self = BIO_get_data(bio);

    return bio_result(bio, self->below->read(self->stream, target, (size_t)size), BIO_FLAGS_READ);
}

static int bio_write(BIO *bio, const char *data, int size)
{
    const struct tls_stream *self = BIO_get_data(bio);
    struct http_part part = { data, (size_t)size };

    return bio_result(bio, self->below->write(self->stream, &part, 1), BIO_FLAGS_WRITE);
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

/* The first reason in OpenSSL's queue, which is emptied. */
static int fail_openssl(const char *what, const char *path, struct det_error *reterr)
{
    unsigned long number = ERR_peek_error();
    const char *reason = number ? ERR_reason_error_string(number) : NULL;
    int code = DET_ERR_INVALID;

    det_error_set(reterr, code, "%s %.200s: %s", what, path, reason ? reason : "it cannot be used");
    ERR_clear_error();
    return code;
}

/* Refuses keys with a password: OpenSSL would ask for it at the terminal. */
/* NOLINTNEXTLINE(readability-non-const-parameter): as OpenSSL declares it */
static int no_password(char *target, int size, int is_write, void *user)
{
    (void)target;
    (void)size;
    (void)is_write;
    (void)user;
    return 0;
}

static int load_identity(SSL_CTX *ssl, const struct http_tls *tls, struct det_error *reterr)
{
    if (SSL_CTX_use_certificate_chain_file(ssl, tls->certificate) != 1)
        return fail_openssl("the certificate", tls->certificate, reterr);
    if (SSL_CTX_use_PrivateKey_file(ssl, tls->key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(ssl) != 1)
        return fail_openssl("the key", tls->key, reterr);
    if (!tls->clients)
        return 0;
    if (SSL_CTX_load_verify_file(ssl, tls->clients) != 1)
        return fail_openssl("the certificates for clients", tls->clients, reterr);
    SSL_CTX_set_client_CA_list(ssl, SSL_load_client_CA_file(tls->clients));
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return 0;
}

static det_time time_of(const ASN1_TIME *time)
{
    struct tm broken = { 0 };

    return ASN1_TIME_to_tm(time, &broken) == 1 ? (det_time)timegm(&broken) * DET_SECOND : 0;
}

int http_tls_dates(
    const char *path, det_time *ret_from, det_time *ret_until, struct det_error *reterr)
{
    BIO *file = BIO_new_file(path, "r");
    X509 *certificate = file ? PEM_read_bio_X509(file, NULL, no_password, NULL) : NULL;

    BIO_free(file);
    if (!certificate)
        return fail_openssl("the certificate", path, reterr);
    *ret_from = time_of(X509_get0_notBefore(certificate));
    *ret_until = time_of(X509_get0_notAfter(certificate));
    X509_free(certificate);
    return 0;
}

static int configure_context(struct http_tls_context *context)
{
    SSL_CTX *ssl = SSL_CTX_new(TLS_server_method());
    static const unsigned char name[] = "detent";

    context->ssl = ssl;
    context->method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "detent");
    if (!ssl || !context->method || !BIO_meth_set_read(context->method, bio_read) ||
        !BIO_meth_set_write(context->method, bio_write) ||
        !BIO_meth_set_ctrl(context->method, bio_control) ||
        !SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) ||
        !SSL_CTX_set_cipher_list(ssl, CIPHERS) ||
        !SSL_CTX_set_session_id_context(ssl, name, sizeof name - 1))
        return DET_ERR_NO_MEMORY;
    SSL_CTX_set_default_passwd_cb(ssl, no_password);
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(
        ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                 SSL_MODE_RELEASE_BUFFERS);
    return 0;
}

int http_tls_open(
    const struct det_allocator *allocator, const struct http_tls *tls,
    struct http_tls_context **ret, struct det_error *reterr)
{
    struct http_tls_context *context = DET_NEW(allocator, struct http_tls_context);
    int r;

    if (!context)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    context->allocator = allocator;
    context->users = 1;
    r = configure_context(context);
    if (r < 0)
        det_error_set(reterr, r, "out of memory for TLS");
    else
        r = load_identity(context->ssl, tls, reterr);
    if (r < 0) {
        http_tls_close(context);
        return r;
    }
    *ret = context;
    return 0;
}

void http_tls_close(struct http_tls_context *context)
{
    if (!context || --context->users > 0)
        return;
    SSL_CTX_free(context->ssl);
    BIO_meth_free(context->method);
    DET_DELETE(context->allocator, context);
}

int http_tls_try(
    const struct det_allocator *allocator, const struct http_tls *tls, struct det_error *reterr)
{
    struct http_tls_context *context = NULL;
    int r = tls->certificate ? http_tls_open(allocator, tls, &context, reterr) : 0;

    http_tls_close(context);
    return r;
}

/* Interprets an SSL_read() or SSL_write() that returned no data. */
static int64_t interpret_result(struct tls_stream *self, int result)
{
    int error = SSL_get_error(self->ssl, result);

    ERR_clear_error();
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
        return DET_ERR_BUSY;
    if (error == SSL_ERROR_ZERO_RETURN)
        return 0;
    self->is_broken = true;
    return DET_ERR_IO;
}

static int64_t tls_read(void *stream, void *target, size_t size)
{
    struct tls_stream *self = stream;
    int result;

    result = SSL_read(self->ssl, target, size > INT_MAX ? INT_MAX : (int)size);
    self->wants_write = result <= 0 && SSL_want_write(self->ssl);
    return result > 0 ? result : interpret_result(self, result);
}

/* Writes record by record until the stream below accepts no more; returns how many bytes, or a
 * negative error if none. */
static int64_t write_part(struct tls_stream *self, const struct http_part *part)
{
    const char *data = part->data;
    size_t total = 0;

    while (total < part->size) {
        size_t left = part->size - total;
        int result = SSL_write(self->ssl, data + total, left > INT_MAX ? INT_MAX : (int)left);

        if (result <= 0) {
            int64_t r = interpret_result(self, result);

            return total ? (int64_t)total : r == 0 ? DET_ERR_IO : r;
        }
        total += (size_t)result;
    }
    return (int64_t)total;
}

static int64_t tls_write(void *stream, const struct http_part *parts, size_t count)
{
    int64_t total = 0;

    for (size_t i = 0; i < count; i++) {
        int64_t size = write_part(stream, &parts[i]);

        if (size < 0)
            return total ? total : size;
        total += size;
        if ((size_t)size < parts[i].size)
            break;
    }
    return total;
}

static int tls_watch(void *stream, struct http_connection *connection, unsigned events)
{
    struct tls_stream *self = stream;

    return self->below->watch(self->stream, connection, events);
}

static unsigned tls_wants(void *stream)
{
    return ((struct tls_stream *)stream)->wants_write ? DET_POLL_WRITE : 0;
}

static bool tls_has_more(void *stream)
{
    const struct tls_stream *self = stream;

    return !self->is_broken && SSL_pending(self->ssl) > 0;
}

static bool tls_is_opening(void *stream)
{
    return !SSL_is_init_finished(((struct tls_stream *)stream)->ssl);
}

static const char *tls_subject(void *stream)
{
    struct tls_stream *self = stream;
    X509 *certificate;
    BIO *text;

    if (self->has_subject)
        return self->subject;
    certificate =
        SSL_get_verify_result(self->ssl) == X509_V_OK ? SSL_get1_peer_certificate(self->ssl) : NULL;
    if (!certificate)
        return NULL;
    text = BIO_new(BIO_s_mem());
    if (text &&
        X509_NAME_print_ex(text, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) >= 0) {
        int size = BIO_read(text, self->subject, SUBJECT_MAX - 1);

        self->has_subject = size > 0;
    }
    BIO_free(text);
    X509_free(certificate);
    return self->has_subject ? self->subject : NULL;
}

static void tls_end(void *stream)
{
    struct tls_stream *self = stream;

    if (!self->is_broken && SSL_is_init_finished(self->ssl))
        (void)SSL_shutdown(self->ssl);
    ERR_clear_error();
    self->below->end(self->stream);
}

static void tls_close(void *stream)
{
    struct tls_stream *self = stream;
    struct http_tls_context *context = self->context;

    if (!self->is_broken && SSL_is_init_finished(self->ssl))
        (void)SSL_shutdown(self->ssl);
    ERR_clear_error();
    SSL_free(self->ssl);
    self->below->close(self->stream);
    DET_DELETE(context->allocator, self);
    http_tls_close(context);
}

const struct http_io http_tls_io = {
    .read = tls_read,
    .write = tls_write,
    .watch = tls_watch,
    .wants = tls_wants,
    .has_more = tls_has_more,
    .is_opening = tls_is_opening,
    .subject = tls_subject,
    .end = tls_end,
    .close = tls_close,
};

int http_tls_stream_open(
    struct http_tls_context *context, const struct http_io *below, void *stream_take, void **ret)
{
    struct tls_stream *self = DET_NEW(context->allocator, struct tls_stream);
    BIO *bio = self ? BIO_new(context->method) : NULL;

    if (bio)
        self->ssl = SSL_new(context->ssl);
    if (!bio || !self->ssl) {
        BIO_free(bio);
        if (self)
            DET_DELETE(context->allocator, self);
        return DET_ERR_NO_MEMORY;
    }
    self->context = context;
    self->below = below;
    self->stream = stream_take;
    BIO_set_data(bio, self);
    BIO_set_init(bio, 1);
    SSL_set_bio(self->ssl, bio, bio);
    SSL_set_accept_state(self->ssl);
    context->users++;
    *ret = self;
    return 0;
}
