/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* identity_test.h - keys and certificates that are made for a test. */
#ifndef DET_HTTP_IDENTITY_TEST_H
#define DET_HTTP_IDENTITY_TEST_H

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "lib/test.h"

struct identity {
    EVP_PKEY *key;
    X509 *certificate;
    char certificate_path[256], key_path[256];
};

/* A certificate that signs itself. */
static inline void make_identity(struct identity *identity, const char *folder, const char *name)
{
    X509_NAME *subject;
    FILE *file;

    identity->key = EVP_EC_gen("P-256");
    identity->certificate = X509_new();
    assert_non_null(identity->key);
    assert_non_null(identity->certificate);
    X509_set_version(identity->certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(identity->certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(identity->certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(identity->certificate), 86400);
    X509_set_pubkey(identity->certificate, identity->key);
    subject = X509_get_subject_name(identity->certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(identity->certificate, subject);
    assert_true(X509_sign(identity->certificate, identity->key, EVP_sha256()) > 0);

    snprintf(identity->certificate_path, 256, "%.200s/%.20s.pem", folder, name);
    snprintf(identity->key_path, 256, "%.200s/%.20s.key", folder, name);
    file = fopen(identity->certificate_path, "w");
    assert_int_equal(PEM_write_X509(file, identity->certificate), 1);
    fclose(file);
    file = fopen(identity->key_path, "w");
    assert_int_equal(PEM_write_PrivateKey(file, identity->key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
}

static inline void drop_identity(struct identity *identity)
{
    EVP_PKEY_free(identity->key);
    X509_free(identity->certificate);
}

#endif
