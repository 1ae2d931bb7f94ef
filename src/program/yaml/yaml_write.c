/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* yaml_write.c - nodes as YAML again, for a reader that takes text: in flow style, in which lines
 * and spaces between tokens mean nothing, so that every token stands where it was read. */
#include <ctype.h>
#include <string.h>

#include "base/buffer.h"
#include "base/text.h"
#include "observe/quote.h"
#include "yaml/yaml_tree.h"

struct writer {
    struct det_buffer *text;
    uint32_t line, column;
};

static void put(struct writer *writer, const char *text)
{
    det_buffer_append_text(writer->text, text);
    for (; *text; text++)
        writer->column += ((unsigned char)*text & 0xc0) != 0x80;
}

/* Not back: what has to come before it may have taken its place. */
static void move(struct writer *writer, uint32_t line, uint32_t column)
{
    for (; writer->line < line; writer->line++) {
        det_buffer_append_char(writer->text, '\n');
        writer->column = 1;
    }
    while (writer->line == line && writer->column < column)
        put(writer, " ");
}

/* What means the same without quotes, wherever it stands: numbers, truth, null, most words. */
static bool is_word(const char *text)
{
    size_t head = strspn(text, "+-") > 0;

    head += text[head] == '.';
    if (!isalnum((unsigned char)text[head]))
        return false;
    for (text += head; *text; text++) {
        if (!isalnum((unsigned char)*text) && !strchr("._+-", *text))
            return false;
    }
    return true;
}

static void put_text(struct writer *writer, const char *text, bool is_plain)
{
    size_t before = writer->text->size;

    if (is_plain && !*text)
        put(writer, "null");
    else if (is_plain && is_word(text))
        put(writer, text);
    else {
        det_buffer_quote(writer->text, det_view_text(text));
        writer->column += (uint32_t)(writer->text->size - before);
    }
}

static void put_key(struct writer *writer, const struct cli_yaml *node)
{
    if (!node->key)
        return;
    move(writer, node->key_line, node->key_column);
    put_text(writer, *node->key ? node->key : "", *node->key != '\0');
    put(writer, ": ");
}

/* A scalar, or the beginning of what holds others. */
static void put_node(struct writer *writer, const struct cli_yaml *node)
{
    const struct cli_yaml *first = node->first;
    bool is_block =
        first && first->key && first->key_line == node->line && first->key_column == node->column;

    put_key(writer, node);
    /* Before its first key, which then is where it was. */
    move(writer, node->line, node->column - (is_block && node->column > 1));
    if (node->kind == CLI_YAML_SCALAR)
        put_text(writer, node->text, node->is_plain);
    else
        put(writer, node->kind == CLI_YAML_MAPPING ? "{" : "[");
}

static void put_tree(struct writer *writer, const struct cli_yaml *root)
{
    const struct cli_yaml *stack[CLI_YAML_DEPTH_MAX + 1];
    size_t depth = 0;

    put_node(writer, root);
    if (root->kind == CLI_YAML_SCALAR)
        return;
    stack[depth++] = root;
    for (const struct cli_yaml *next = root->first; depth;) {
        const struct cli_yaml *node = next;

        if (!node) {
            const struct cli_yaml *closed = stack[--depth];

            put(writer, closed->kind == CLI_YAML_MAPPING ? "}" : "]");
            next = depth ? closed->next : NULL;
        } else {
            put_node(writer, node);
            next = node->next;
            if (node->kind != CLI_YAML_SCALAR && depth <= CLI_YAML_DEPTH_MAX) {
                stack[depth++] = node;
                next = node->first;
                continue;
            }
        }
        if (next)
            put(writer, ",");
    }
}

void cli_yaml_write(struct det_buffer *buffer, const struct cli_yaml *node)
{
    struct writer writer = { .text = buffer, .line = 1, .column = 1 };
    struct cli_yaml root = *node;

    root.key = NULL;
    root.next = NULL;
    put_tree(&writer, &root);
}

static bool is_wanted(const struct cli_yaml *node, const char *const *keys)
{
    while (*keys && strcmp(*keys, node->key) != 0)
        keys++;
    return *keys != NULL;
}

void cli_yaml_write_keys(
    struct det_buffer *buffer, const struct cli_yaml *mapping, const char *const *keys)
{
    struct writer writer = { .text = buffer, .line = 1, .column = 1 };
    bool is_first = true;

    put(&writer, "{");
    for (const struct cli_yaml *node = mapping->first; node; node = node->next) {
        struct cli_yaml one = *node;

        if (!is_wanted(node, keys))
            continue;
        if (!is_first)
            put(&writer, ",");
        is_first = false;
        one.next = NULL;
        put_tree(&writer, &one);
    }
    put(&writer, "}");
}
