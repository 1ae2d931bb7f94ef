/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* spec_format.c - fuzz target: text into text.
 *
 * What can be formatted keeps its words and its comments, is as long as measured, and does not
 * change when it is formatted again. What cannot has an offset in the text. */
#include <detent/tool/spec.h>

#include <stdlib.h>
#include <string.h>

#include "machine/lex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The same bytes, but for blanks: those at the ends of lines inside comments may go. */
static bool same_word(
    const char *a, const struct det_token *at_a, const char *b, const struct det_token *at_b)
{
    uint32_t i = 0, k = 0;

    for (;;) {
        while (i < at_a->length && is_blank(a[at_a->offset + i]))
            i++;
        while (k < at_b->length && is_blank(b[at_b->offset + k]))
            k++;
        if (i == at_a->length || k == at_b->length)
            return i == at_a->length && k == at_b->length;
        if (a[at_a->offset + i++] != b[at_b->offset + k++])
            return false;
    }
}

static void check_words(
    const char *before, uint32_t before_size, const char *after, uint32_t after_size)
{
    struct det_lexer old, new;
    struct det_token a, b;

    det_lexer_init(&old, before, before_size);
    det_lexer_init(&new, after, after_size);
    do {
        a = det_lexer_next_any(&old);
        b = det_lexer_next_any(&new);
        require(a.kind == b.kind && same_word(before, &a, after, &b));
    } while (a.kind != DET_TOKEN_END);
}

static char *format(const char *text, size_t size, size_t *ret_size)
{
    int64_t length = det_spec_format(text, size, NULL, 0, NULL);
    char *target;

    require(length >= 0);
    target = malloc((size_t)length + 1);
    require(target != NULL);
    require(det_spec_format(text, size, target, (size_t)length + 1, NULL) == length);
    require(target[length] == '\0' && strlen(target) == (size_t)length);
    *ret_size = (size_t)length;
    return target;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct det_error error = { .code = 0 };
    size_t once_size, twice_size;
    char *once, *twice;

    if (det_spec_format(text, size, NULL, 0, &error) < 0) {
        require(error.code < 0 && error.offset <= size);
        return 0;
    }
    once = format(text, size, &once_size);
    check_words(text, (uint32_t)size, once, (uint32_t)once_size);
    /* Blanks may take a text beyond the limit that was just below it. */
    if (once_size <= DET_SPEC_SIZE_MAX) {
        twice = format(once, once_size, &twice_size);
        require(twice_size == once_size && memcmp(once, twice, once_size) == 0);
        free(twice);
    }
    free(once);
    return 0;
}
