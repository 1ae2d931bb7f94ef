/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* url.c - splits and decodes the target of a request. */
#include "http/url.h"

#include <string.h>

#include "base/hex.h"
#include "base/text.h"

/* Decodes into `target`, which has room for `size` bytes and a NUL. Only in a query is '+' a blank.
 * False: malformed. */
static bool decode_percent(const char *text, size_t size, bool is_query, char *target)
{
    size_t length = 0;

    for (size_t i = 0; i < size; i++) {
        int high, low;

        if (text[i] != '%') {
            target[length++] = text[i] == '+' && is_query ? ' ' : text[i];
            continue;
        }
        high = i + 1 < size ? det_hex_digit_any_case(text[i + 1]) : -1;
        low = i + 2 < size ? det_hex_digit_any_case(text[i + 2]) : -1;
        if (high < 0 || low < 0 || high + low == 0)
            return false;
        target[length++] = (char)(high * 16 + low);
        i += 2;
    }
    target[length] = '\0';
    return det_utf8_check(target, length) == length;
}

static int copy_decoded(
    struct det_arena *arena, const char *text, size_t size, bool is_query, const char **ret)
{
    char *target = det_arena_alloc(arena, size + 1);

    if (!target)
        return DET_ERR_NO_MEMORY;
    *ret = target;
    return decode_percent(text, size, is_query, target) ? 0 : DET_ERR_MALFORMED;
}

int url_read_segment(struct det_arena *arena, const char *segment, const char **ret)
{
    const char *text;
    int r;

    r = copy_decoded(arena, segment, strcspn(segment, "/"), false, &text);
    if (r < 0)
        return r;
    if (strchr(text, '/') || strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
        return DET_ERR_MALFORMED;
    *ret = text;
    return 0;
}

static int add_segment(struct url *url, struct det_arena *arena, const char *text)
{
    int r;

    if (url->segment_count == URL_SEGMENTS_MAX)
        return DET_ERR_LIMIT;
    r = url_read_segment(arena, text, &url->segments[url->segment_count]);
    url->segment_count += r == 0;
    return r;
}

static int read_path(struct url *url, struct det_arena *arena, const char *path)
{
    int r = 0;

    if (*path != '/')
        return DET_ERR_MALFORMED;
    if (path[1] == '\0')
        return 0;
    while (r == 0 && *path == '/') {
        size_t size = strcspn(path + 1, "/");

        /* Only the last segment may be empty. */
        if (size == 0 && path[1] != '\0')
            return DET_ERR_MALFORMED;
        r = add_segment(url, arena, path + 1);
        path += size + 1;
    }
    return r;
}

static int add_member(struct url *url, struct det_arena *arena, const char *text, size_t size)
{
    const char *equals = memchr(text, '=', size);
    size_t key_size = equals ? (size_t)(equals - text) : size;
    struct url_query *member = &url->query[url->query_count];
    int r;

    if (url->query_count == URL_QUERY_MAX)
        return DET_ERR_LIMIT;
    r = copy_decoded(arena, text, key_size, true, &member->key);
    if (r == 0)
        r = copy_decoded(
            arena, equals ? equals + 1 : "", equals ? size - key_size - 1 : 0, true,
            &member->value);
    if (r == 0 && (*member->key == '\0' || url_value(url, member->key)))
        r = DET_ERR_MALFORMED;
    if (r == 0)
        url->query_count++;
    return r;
}

int url_read(struct url *url, struct det_arena *arena, const char *path, const char *query)
{
    int r;

    url->segment_count = url->query_count = 0;
    r = read_path(url, arena, path);
    while (r == 0 && *query) {
        size_t size = strcspn(query, "&");

        r = add_member(url, arena, query, size);
        query += size + (query[size] == '&');
    }
    return r;
}

const char *url_value(const struct url *url, const char *key)
{
    for (size_t i = 0; i < url->query_count; i++) {
        if (strcmp(url->query[i].key, key) == 0)
            return url->query[i].value;
    }
    return NULL;
}
