/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* certificate_test.h - a certificate for 127.0.0.1 that signs itself, made for a test. */
#ifndef DET_KINDS_CERTIFICATE_TEST_H
#define DET_KINDS_CERTIFICATE_TEST_H

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "lib/test.h"

struct certificate {
    char path[256], key_path[256];
};

static inline void certificate_name(X509 *certificate)
{
    X509_EXTENSION *extension =
        X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "IP:127.0.0.1");
    X509_NAME *name = X509_get_subject_name(certificate);

    assert_true(X509_NAME_add_entry_by_txt(
        name, "CN", MBSTRING_ASC, (const unsigned char *)"test", -1, -1, 0));
    assert_true(X509_set_issuer_name(certificate, name));
    assert_true(X509_add_ext(certificate, extension, -1));
    X509_EXTENSION_free(extension);
}

static inline void certificate_write(const struct certificate *to, X509 *certificate, EVP_PKEY *key)
{
    FILE *file = fopen(to->path, "w");

    assert_int_equal(PEM_write_X509(file, certificate), 1);
    (void)fclose(file);
    file = fopen(to->key_path, "w");
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    (void)fclose(file);
}

/* Good for so many days, and an hour. */
static inline void make_certificate(struct certificate *ret, const char *folder, int days)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();

    (void)snprintf(ret->path, sizeof ret->path, "%s/certificate.pem", folder);
    (void)snprintf(ret->key_path, sizeof ret->key_path, "%s/key.pem", folder);
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), (long)days * 86400 + 3600);
    X509_set_pubkey(certificate, key);
    certificate_name(certificate);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    certificate_write(ret, certificate, key);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

#endif
