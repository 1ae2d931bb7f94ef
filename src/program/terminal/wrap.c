/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* wrap.c - wraps text to the width of the terminal. */
#include <string.h>

#include "base/assert.h"
#include "terminal/terminal.h"

/* Longer lines are hard to read, however wide the terminal is. */
#define COLUMNS_MAX     100
#define COLUMNS_DEFAULT 80

struct wrap {
    struct cli *cli;
    size_t columns, indent;
    size_t used;   /* columns of this line */
    bool has_word; /* in this line */
};

static void end_line(struct wrap *wrap)
{
    cli_print(wrap->cli, "\n");
    wrap->used = 0;
    wrap->has_word = false;
}

/* A word wider than the line gets its own line. */
static void put_word(struct wrap *wrap, const char *word, size_t size)
{
    size_t width = cli_width(word, size);

    det_assert(size > 0 && !memchr(word, '\n', size));
    if (wrap->has_word && wrap->used + 1 + width > wrap->columns)
        end_line(wrap);
    if (wrap->has_word) {
        cli_print(wrap->cli, " ");
        wrap->used++;
    } else if (wrap->used < wrap->indent) {
        cli_print(wrap->cli, "%*s", (int)(wrap->indent - wrap->used), "");
        wrap->used = wrap->indent;
    }
    cli_print(wrap->cli, "%.*s", (int)size, word);
    wrap->used += width;
    wrap->has_word = true;
}

static void put_words(struct wrap *wrap, const char *line, size_t size)
{
    for (size_t at = 0; at < size;) {
        const char *space = memchr(line + at, ' ', size - at);
        size_t length = space ? (size_t)(space - line) - at : size - at;

        if (length)
            put_word(wrap, line + at, length);
        at += length + 1;
    }
}

void cli_print_wrapped(struct cli *cli, size_t used, size_t indent, const char *text)
{
    size_t columns = cli->out_columns ? cli->out_columns : COLUMNS_DEFAULT;
    struct wrap wrap = {
        .cli = cli,
        .columns = (columns < COLUMNS_MAX ? columns : COLUMNS_MAX) - 1,
        .indent = indent,
        .used = used,
    };

    while (*text) {
        size_t size = strcspn(text, "\n");
        bool is_fixed = *text == ' ' || size == 0;

        if (is_fixed && wrap.has_word)
            end_line(&wrap);
        if (is_fixed) {
            cli_print(cli, "%*s%.*s", size ? (int)indent : 0, "", (int)size, text);
            end_line(&wrap);
        } else {
            put_words(&wrap, text, size);
        }
        text += size + (text[size] == '\n');
    }
    if (wrap.has_word || wrap.used)
        end_line(&wrap);
    det_assert(!wrap.has_word && wrap.used == 0);
}
