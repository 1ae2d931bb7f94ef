/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* text.h - strings: views, UTF-8, names, numbers, durations, nearest words. */
#ifndef DET_BASE_TEXT_H
#define DET_BASE_TEXT_H

#include <detent/base.h>

/* Borrowed bytes; not NUL-terminated. */
struct det_view {
    const char *data;
    size_t size;
};

static inline struct det_view det_view_of(const char *data, size_t size)
{
    return (struct det_view){ data, size };
}

struct det_view det_view_text(const char *text);
bool det_view_equal(struct det_view a, struct det_view b);
bool det_view_is(struct det_view view, const char *text);

/* Returns the offset of the first byte that is not valid UTF-8 (surrogates and over-long forms are
 * invalid), or `size` if all of it is valid. */
size_t det_utf8_check(const char *data, size_t size);

/* Copies what fits into `target` (always NUL-terminated, cut between characters) and returns
 * whether all of it fitted. */
bool det_text_copy(char *target, size_t capacity, const char *source);

/* An id of an instance or a name on disk: [A-Za-z0-9._-]{1,128}. */
#define DET_NAME_MAX 128
bool det_name_is_valid(const char *name);

/* Parses a whole decimal number without surrounding text. DET_ERR_MALFORMED or DET_ERR_OVERFLOW. */
int det_parse_u64(struct det_view text, uint64_t *ret);
int det_parse_i64(struct det_view text, int64_t *ret);
/* "250ms", "1.5s", "30m", "1h30m", "7d"; units ns us ms s m h d, largest first.
 * DET_ERR_MALFORMED or DET_ERR_OVERFLOW. */
int det_parse_duration(struct det_view text, det_time *ret);
/* The shortest exact form that det_parse_duration() reads back ("1h30m", "1.5s", "0s"). `target`
 * should have DET_DURATION_TEXT bytes. Returns target. */
#define DET_DURATION_TEXT 48
char *det_format_duration(det_time span, char *target, size_t capacity);
/* RFC 3339 in UTC with as many fraction digits as needed ("2026-01-31T10:00:00.25Z"). */
#define DET_TIME_TEXT 40
char *det_format_time(det_time wall, char *target, size_t capacity);
/* Basic format of ISO 8601 ("20260131T100000.25Z"), for names and ids; distinct times have distinct
 * texts. */
char *det_format_time_basic(det_time wall, char *target, size_t capacity);
/* Parses RFC 3339 with `Z` or an offset. DET_ERR_MALFORMED or DET_ERR_RANGE. */
int det_parse_time(struct det_view text, det_time *ret);

/* "Did you mean": the index of the word nearest to `word` by edit distance (case ignored), or -1
 * when none is near enough (more than a third of the letters differ). */
int det_text_nearest(const char *word, const char *const *words, size_t count);

/* Plural ending of a noun and verb form for a count: "1 worker", "2 workers", "1 is", "2 are". */
const char *det_plural(uint64_t count);
const char *det_is_or_are(uint64_t count);
const char *det_was_or_were(uint64_t count);
/* "a" or "an", by the first letter of the noun. */
const char *det_article(const char *noun);

#endif
