/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* url.h - the parts of a request's target: path segments and query members, decoded strictly.
 * Ambiguous targets are refused: an encoded slash or NUL, "." and "..", an empty segment, a
 * duplicate key. */
#ifndef DET_HTTP_URL_H
#define DET_HTTP_URL_H

#include "base/arena.h"

#define URL_SEGMENTS_MAX 16
#define URL_QUERY_MAX    16

struct url_query {
    const char *key, *value;
};

struct url {
    const char *segments[URL_SEGMENTS_MAX];
    size_t segment_count; /* "/" has none; a slash at the end counts as an empty one */
    struct url_query query[URL_QUERY_MAX];
    size_t query_count;
};

/* 0, DET_ERR_MALFORMED, DET_ERR_LIMIT or DET_ERR_NO_MEMORY. Texts are UTF-8, in the arena. */
DET_MUST_CHECK int url_read(
    struct url *url, struct det_arena *arena, const char *path, const char *query);
/* Decodes one segment of a path, up to the next slash. The same errors. */
DET_MUST_CHECK int url_read_segment(struct det_arena *arena, const char *segment, const char **ret);
/* Returns the value of a key; NULL if absent. */
const char *url_value(const struct url *url, const char *key);

#endif
