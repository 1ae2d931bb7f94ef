/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* target.c - parses the request target: path, query, host. */
#include <string.h>
#include <strings.h>

#include "base/hex.h"
#include "http/request_parser.h"

/* Letters, digits, -._~!$&'()*+,;=:@%/ and in a query also ?[] */
static const struct http_set path_set = { 0x2ffffff200000000, 0x47fffffe87ffffff };
static const struct http_set query_set = { 0xaffffff200000000, 0x47fffffeafffffff };
/* Letters, digits, -._~:[] */
static const struct http_set host_set = { 0x07ff600000000000, 0x47fffffeaffffffe };

static bool is_hex(char c)
{
    return det_hex_digit_any_case(c) >= 0;
}

/* A NUL after it, or the end, stops the search for two digits. */
static enum http_refusal check_percent(const char *text, size_t left)
{
    if (left < 3 || !is_hex(text[1]) || !is_hex(text[2]))
        return HTTP_REFUSED_TARGET_PERCENT;
    return text[1] == '0' && text[2] == '0' ? HTTP_REFUSED_TARGET_NUL : HTTP_ACCEPTED;
}

static enum http_refusal check_bytes(const char *text, size_t size, const struct http_set *set)
{
    for (size_t i = 0; i < size; i++) {
        if (!http_set_has(set, text[i]))
            return HTTP_REFUSED_TARGET_BYTE;
        if (text[i] == '%') {
            enum http_refusal refusal = check_percent(text + i, size - i);

            if (refusal != HTTP_ACCEPTED)
                return refusal;
        }
    }
    return HTTP_ACCEPTED;
}

/* Reads from the '/' or '?' up to the blank at data[at + size]. */
static enum http_refusal read_path(struct http_parse *parse, size_t at, size_t size)
{
    char *text = parse->data + at, *query = memchr(text, '?', size);
    size_t path_size = query ? (size_t)(query - text) : size;
    enum http_refusal refusal = check_bytes(text, path_size, &path_set);

    if (path_size)
        parse->path = at;
    if (query && refusal == HTTP_ACCEPTED) {
        refusal = check_bytes(query + 1, size - path_size - 1, &query_set);
        parse->query = at + path_size + 1;
        *query = '\0';
    }
    text[size] = '\0';
    return refusal;
}

/* Returns the length of a leading "http://" or "https://"; 0 if absent. */
static size_t scheme_size(const char *text, size_t size)
{
    static const char *const schemes[] = { "http://", "https://" };

    for (size_t i = 0; i < 2; i++)
        if (size > strlen(schemes[i]) && strncasecmp(text, schemes[i], strlen(schemes[i])) == 0)
            return strlen(schemes[i]);
    return 0;
}

/* The authority moves left by one byte, over a slash, to make room for its NUL. */
static enum http_refusal read_url(struct http_parse *parse, size_t at, size_t size)
{
    size_t scheme = scheme_size(parse->data + at, size), length = 0;
    char *authority = parse->data + at + scheme;

    while (scheme && scheme + length < size && authority[length] != '/' && authority[length] != '?')
        length++;
    if (length == 0)
        return HTTP_REFUSED_TARGET;
    memmove(authority - 1, authority, length);
    authority[length - 1] = '\0';
    parse->authority = at + scheme - 1;
    if (!http_host_is_valid(parse->data + parse->authority))
        return HTTP_REFUSED_TARGET;
    return read_path(parse, at + scheme + length, size - scheme - length);
}

enum http_refusal http_target_read(struct http_parse *parse, size_t at, size_t size)
{
    char *text = parse->data + at;

    if (*text == '/')
        return read_path(parse, at, size);
    if (*text == '*' && size == 1 && parse->request.method == HTTP_OPTIONS) {
        parse->path = at;
        text[1] = '\0';
        return HTTP_ACCEPTED;
    }
    return read_url(parse, at, size);
}

static bool is_port(const char *text)
{
    size_t size = strspn(text, "0123456789");

    return size >= 1 && size <= 5 && text[size] == '\0';
}

bool http_host_is_valid(const char *host)
{
    size_t size;

    for (size_t i = 0; host[i]; i++)
        if (!http_set_has(&host_set, host[i]))
            return false;
    if (*host == '[') {
        size = strspn(host + 1, "0123456789abcdefABCDEF:.") + 1;
        if (size == 1 || host[size] != ']')
            return false;
        size++;
    } else {
        size = strcspn(host, ":[]");
    }
    return size > 0 && (host[size] == '\0' || (host[size] == ':' && is_port(host + size + 1)));
}
