/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_pull_page.c - the rows of a body. Pure. */
#include "connectors/http_pull_page.h"

#include <string.h>

#define KEY_MAX 128

void http_pull_page_init(struct http_pull_page *page, const struct det_allocator *allocator)
{
    *page = (struct http_pull_page){ .format = HTTP_PULL_JSON };
    det_buffer_init(&page->body, allocator);
    page->body.limit = HTTP_PULL_BODY_MAX;
    det_arena_init(&page->arena, allocator);
}

void http_pull_page_deinit(struct http_pull_page *page)
{
    det_buffer_deinit(&page->body);
    det_arena_deinit(&page->arena);
}

/* Returns the value at a path such as "data.items"; "": the value itself; NULL: there is none. */
static const struct det_json_value *find_value(const struct det_json_value *value, const char *path)
{
    char key[KEY_MAX + 1];

    while (value && *path) {
        size_t size = strcspn(path, ".");

        if (size > KEY_MAX)
            return NULL;
        memcpy(key, path, size);
        key[size] = 0;
        value = det_json_get(value, key);
        path += size + (path[size] == '.');
    }
    return value;
}

static int read_json(struct http_pull_page *page, const char *rows, struct det_error *reterr)
{
    const struct det_json_value *found;
    int r;

    r = det_json_read(
        &page->arena, det_view_of(det_buffer_text(&page->body), page->body.size), &page->root,
        reterr);
    if (r < 0)
        return r;
    found = find_value(page->root, rows);
    if (!found)
        return det_error_set(
            reterr, DET_ERR_MISSING_FIELD, "the body has no value at '%.64s'; correct rows", rows);
    page->is_single = !det_json_is(found, DET_JSON_ARRAY);
    if (page->is_single && !det_json_is(found, DET_JSON_OBJECT))
        return det_error_set(
            reterr, DET_ERR_TYPE, "the body%s%.64s is neither an array nor an object; correct rows",
            *rows ? " at " : "", rows);
    page->row = page->is_single ? found : found->first;
    return 0;
}

int http_pull_page_read(
    struct http_pull_page *page, enum http_pull_format format, const char *rows,
    struct det_error *reterr)
{
    page->format = format;
    page->root = page->row = NULL;
    page->at = 0;
    page->number = 0;
    page->is_single = false;
    return format == HTTP_PULL_JSON ? read_json(page, rows, reterr) : 0;
}

static bool next_line(struct http_pull_page *page, struct det_view *ret)
{
    while (page->at < page->body.size) {
        const char *from = page->body.data + page->at;
        const char *end = memchr(from, '\n', page->body.size - page->at);
        size_t size = end ? (size_t)(end - from) : page->body.size - page->at;

        page->at += size + (end != NULL);
        if (size && from[size - 1] == '\r')
            size--;
        if (size) {
            *ret = det_view_of(from, size);
            return true;
        }
    }
    return false;
}

bool http_pull_page_next(struct http_pull_page *page, struct det_view *ret)
{
    bool has_one = false;

    switch (page->format) {
    case HTTP_PULL_JSON:
        has_one = page->row != NULL;
        if (has_one) {
            *ret = page->row->raw;
            page->row = page->is_single ? NULL : page->row->next;
        }
        break;
    case HTTP_PULL_LINES:
        has_one = next_line(page, ret);
        break;
    case HTTP_PULL_TEXT:
        has_one = page->number == 0 && page->body.size > 0;
        *ret = det_view_of(det_buffer_text(&page->body), page->body.size);
        break;
    }
    page->number += has_one;
    return has_one;
}

int http_pull_page_cursor(
    const struct http_pull_page *page, const char *path, char *target, size_t capacity)
{
    const struct det_json_value *value = find_value(page->root, path);

    *target = 0;
    if (!value || det_json_is(value, DET_JSON_NULL) || det_json_is(value, DET_JSON_FALSE))
        return 0;
    if (!det_json_is(value, DET_JSON_STRING) && !det_json_is(value, DET_JSON_NUMBER))
        return DET_ERR_TYPE;
    if (value->text.size >= capacity || memchr(value->text.data, 0, value->text.size))
        return DET_ERR_LIMIT;
    memcpy(target, value->text.data, value->text.size);
    target[value->text.size] = 0;
    return 0;
}

/* Writes a byte of a query: a letter, a digit, or "%2F". Returns how many characters. */
static size_t encode_byte(unsigned char c, char target[3])
{
    static const char digits[] = "0123456789ABCDEF";
    bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    (c && strchr("-._~", c));

    if (is_plain) {
        target[0] = (char)c;
        return 1;
    }
    target[0] = '%';
    target[1] = digits[c >> 4];
    target[2] = digits[c & 15];
    return 3;
}

int http_pull_url(const char *pattern, const char *cursor, char *target, size_t capacity)
{
    static const char place[] = "{cursor}";
    size_t size = 0;

    while (*pattern) {
        if (size + 4 > capacity)
            return DET_ERR_LIMIT;
        if (strncmp(pattern, place, sizeof place - 1) != 0) {
            target[size++] = *pattern++;
            continue;
        }
        pattern += sizeof place - 1;
        for (const char *at = cursor; *at; at++) {
            if (size + 4 > capacity)
                return DET_ERR_LIMIT;
            size += encode_byte((unsigned char)*at, target + size);
        }
    }
    target[size] = 0;
    return 0;
}
