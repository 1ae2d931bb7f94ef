/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_ingest.c - checks of requests, and the rows of their bodies. */
#include "connectors/http_ingest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/hex.h"
#include "base/memory.h"
#include "json/reader.h"

#define DIGEST 32

/* Compares in a time that does not depend on the secret. */
static bool is_secret(const struct ingest_guard *guard, const char *given)
{
    size_t size = strlen(guard->secret);
    unsigned char wanted[DIGEST], found[DIGEST];
    unsigned length = DIGEST;

    if (!given)
        return false;
    /* Digests have one length. */
    if (!HMAC(EVP_sha256(), "a", 1, (const unsigned char *)guard->secret, size, wanted, &length) ||
        !HMAC(EVP_sha256(), "a", 1, (const unsigned char *)given, strlen(given), found, &length))
        return false;
    return CRYPTO_memcmp(wanted, found, DIGEST) == 0;
}

bool ingest_admits(const struct ingest_guard *guard, const struct http_request *request)
{
    static const char bearer[] = "Bearer ";
    const char *header;

    switch (guard->auth) {
    case HTTP_INGEST_NONE:
        return true;
    case HTTP_INGEST_BEARER:
        header = http_header(request, "authorization");
        return header && strncasecmp(header, bearer, sizeof bearer - 1) == 0 &&
               is_secret(guard, header + sizeof bearer - 1);
    case HTTP_INGEST_API_KEY:
        return is_secret(guard, http_header(request, "x-api-key"));
    case HTTP_INGEST_HMAC:
        return http_header(request, "x-signature") != NULL;
    }
    return false;
}

/* Reads "t=SECONDS,v1=HEX". */
static bool read_signature(
    const char *header, struct det_view *ret_seconds, det_time *ret_at,
    unsigned char digest[DIGEST])
{
    uint64_t seconds = 0;
    size_t size;

    if (strncmp(header, "t=", 2) != 0)
        return false;
    size = strcspn(header + 2, ",");
    *ret_seconds = det_view_of(header + 2, size);
    if (det_parse_u64(*ret_seconds, &seconds) < 0 || seconds > INT64_MAX / DET_SECOND)
        return false;
    *ret_at = (det_time)seconds * DET_SECOND;
    header += 2 + size;
    return strncmp(header, ",v1=", 4) == 0 && strlen(header + 4) == 2 * DIGEST &&
           det_hex_read(header + 4, digest, DIGEST);
}

static bool sign_body(
    const char *secret, struct det_view seconds, const struct http_request *request,
    unsigned char target[DIGEST])
{
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *state = mac ? EVP_MAC_CTX_new(mac) : NULL;
    char digest[] = "SHA256";
    OSSL_PARAM parameters[] = { OSSL_PARAM_construct_utf8_string("digest", digest, 0),
                                OSSL_PARAM_construct_end() };
    size_t size = 0;
    bool is_good;

    is_good =
        state &&
        EVP_MAC_init(state, (const unsigned char *)secret, strlen(secret), parameters) == 1 &&
        EVP_MAC_update(state, (const unsigned char *)seconds.data, seconds.size) == 1 &&
        EVP_MAC_update(state, (const unsigned char *)".", 1) == 1 &&
        EVP_MAC_update(state, (const unsigned char *)request->body, request->body_size) == 1 &&
        EVP_MAC_final(state, target, &size, DIGEST) == 1 && size == DIGEST;
    EVP_MAC_CTX_free(state);
    EVP_MAC_free(mac);
    return is_good;
}

bool ingest_is_signed(
    const struct ingest_guard *guard, const struct http_request *request, det_time now)
{
    unsigned char given[DIGEST], wanted[DIGEST];
    const char *header = http_header(request, "x-signature");
    struct det_view seconds;
    det_time at;

    if (guard->auth != HTTP_INGEST_HMAC)
        return true;
    if (!header || !read_signature(header, &seconds, &at, given))
        return false;
    if (at > now + guard->window || at < now - guard->window)
        return false;
    return sign_body(guard->secret, seconds, request, wanted) &&
           CRYPTO_memcmp(given, wanted, DIGEST) == 0;
}

static void read_row(
    struct ingest_rows *rows, const struct det_record *record, unsigned flags,
    const struct det_json_value *value, uint32_t index)
{
    struct det_error error;
    int r;

    r = det_record_from_json(
        record, value->raw.data, value->raw.size, flags,
        rows->rows + (size_t)rows->count * rows->row_size, &error);
    if (r == 0) {
        rows->count++;
        return;
    }
    if (rows->rejected++ == 0)
        (void)snprintf(
            rows->first_error, sizeof rows->first_error, "row %u: %.*s", index,
            (int)sizeof rows->first_error - 24, error.text);
}

static int read_tree(
    struct ingest_rows *rows, const struct det_allocator *allocator,
    const struct det_record *record, unsigned flags, const struct det_json_value *root,
    uint32_t max, struct det_error *reterr)
{
    bool is_array = det_json_is(root, DET_JSON_ARRAY);
    uint32_t index = 0;

    if (!is_array && !det_json_is(root, DET_JSON_OBJECT))
        return det_error_set(
            reterr, DET_ERR_MALFORMED, "the body is neither an object nor an array of objects");
    rows->capacity = is_array ? root->count : 1;
    if (rows->capacity > max)
        return det_error_set(
            reterr, DET_ERR_LIMIT, "the body has %u rows; send at most %u", rows->capacity, max);
    rows->row_size = record->size;
    rows->rows = det_alloc_array(allocator, rows->capacity, record->size);
    if (!rows->rows)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    if (!is_array)
        read_row(rows, record, flags, root, 0);
    else
        DET_JSON_EACH (item, root)
            read_row(rows, record, flags, item, index++);
    return 0;
}

int ingest_rows_read(
    struct ingest_rows *rows, const struct det_allocator *allocator,
    const struct det_record *record, unsigned flags, struct det_view body, uint32_t max,
    struct det_error *reterr)
{
    const struct det_json_value *root = NULL;
    struct det_arena arena;
    int r;

    *rows = (struct ingest_rows){ .rows = NULL };
    det_arena_init(&arena, allocator);
    r = det_json_read(&arena, body, &root, reterr);
    if (r < 0 && r != DET_ERR_NO_MEMORY)
        r = DET_ERR_MALFORMED;
    if (r == 0)
        r = read_tree(rows, allocator, record, flags, root, max, reterr);
    det_arena_deinit(&arena);
    return r;
}

void ingest_rows_free(struct ingest_rows *rows, const struct det_allocator *allocator)
{
    det_free(allocator, rows->rows, (size_t)rows->capacity * rows->row_size);
    rows->rows = NULL;
}
