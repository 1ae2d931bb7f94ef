/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row_template.c - compiles and renders a text with fields of a row in it. */
#include "connectors/row_template.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"

struct compiler {
    struct row_template *row_template;
    const char *what;
    const struct columns *columns;
    struct det_error *reterr;
};

static int add_part(struct compiler *compiler, struct row_template_part part)
{
    struct row_template *row_template = compiler->row_template;

    if (!part.column && part.size == 0)
        return 0;
    if (row_template->part_count == ROW_TEMPLATE_PARTS)
        return det_error_set(
            compiler->reterr, DET_ERR_LIMIT, "%s: more than %d parts; use fewer fields",
            compiler->what, ROW_TEMPLATE_PARTS);
    row_template->parts[row_template->part_count++] = part;
    return 0;
}

static int fail_unknown(struct compiler *compiler, const char *name)
{
    const struct columns *columns = compiler->columns;
    const char *names[256];
    size_t count = columns->count < 256 ? columns->count : 256;
    int nearest;

    for (size_t i = 0; i < count; i++)
        names[i] = columns->list[i].name;
    nearest = det_text_nearest(name, names, count);
    if (nearest >= 0)
        return det_error_set(
            compiler->reterr, DET_ERR_INVALID, "%s: unknown field '%s'; did you mean '%s'?",
            compiler->what, name, names[nearest]);
    return det_error_set(
        compiler->reterr, DET_ERR_INVALID,
        "%s: unknown field '%s'; write {{ for a brace that is part of the text", compiler->what,
        name);
}

/* Compiles "{name}" at `at`; returns its size. */
static int64_t add_field(struct compiler *compiler, const char *at)
{
    const char *end = strchr(at, '}');
    char name[256];
    struct row_template_part part = { 0 };
    size_t size;
    int r;

    if (!end)
        return det_error_set(
            compiler->reterr, DET_ERR_INVALID,
            "%s: '{' at byte %zu has no '}'; write {{ for a brace that is part of the text",
            compiler->what, (size_t)(at - compiler->row_template->text));
    size = (size_t)(end - at) - 1;
    if (size >= sizeof name)
        size = sizeof name - 1;
    memcpy(name, at + 1, size);
    name[size] = 0;
    part.column = columns_find(compiler->columns, name);
    if (!part.column)
        return fail_unknown(compiler, name);
    r = add_part(compiler, part);
    return r < 0 ? r : end - at + 1;
}

static int compile(struct compiler *compiler)
{
    const char *text = compiler->row_template->text;
    size_t begin = 0, at = 0;
    int64_t size = 0;
    int r;

    while (text[at] && size >= 0) {
        bool is_brace = text[at] == '{' || text[at] == '}';
        bool is_double = is_brace && text[at + 1] == text[at];

        if (!is_brace) {
            at++;
            continue;
        }
        if (text[at] == '}' && !is_double)
            return det_error_set(
                compiler->reterr, DET_ERR_INVALID,
                "%s: '}' at byte %zu has no '{'; write }} for a brace that is part of the text",
                compiler->what, at);
        r = add_part(
            compiler, (struct row_template_part){ .offset = begin,
                                                  .size = at - begin + (is_double ? 1 : 0) });
        size = r < 0 ? r : is_double ? 2 : add_field(compiler, text + at);
        at += size < 0 ? 0 : (size_t)size;
        begin = at;
    }
    if (size < 0)
        return (int)size;
    return add_part(compiler, (struct row_template_part){ .offset = begin, .size = at - begin });
}

int row_template_init(
    struct row_template *row_template, const struct det_allocator *allocator, const char *what,
    const char *text, const struct columns *columns, struct det_error *reterr)
{
    struct compiler compiler = { row_template, what, columns, reterr };
    int r;

    *row_template = (struct row_template){ .allocator = allocator };
    row_template->text = det_string_copy(allocator, text);
    if (!row_template->text)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "%s: out of memory", what);
    r = compile(&compiler);
    if (r < 0)
        row_template_deinit(row_template);
    return r;
}

void row_template_deinit(struct row_template *row_template)
{
    det_free_string(row_template->allocator, row_template->text);
    *row_template = (struct row_template){ 0 };
}

bool row_template_has_fields(const struct row_template *row_template)
{
    for (size_t i = 0; i < row_template->part_count; i++)
        if (row_template->parts[i].column)
            return true;
    return false;
}

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._~", c));
}

/* Escapes what was appended from `begin` on, in place: from its end. */
static void escape_url(struct det_buffer *buffer, size_t begin)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t from = buffer->size, extra = 0, to;

    for (size_t i = begin; i < from; i++)
        extra += is_unreserved(buffer->data[i]) ? 0 : 2;
    if (extra == 0 || !det_buffer_extend(buffer, extra))
        return;
    to = buffer->size;
    while (from > begin) {
        char c = buffer->data[--from];

        if (is_unreserved(c)) {
            buffer->data[--to] = c;
            continue;
        }
        buffer->data[--to] = digits[(unsigned char)c & 15];
        buffer->data[--to] = digits[(unsigned char)c >> 4];
        buffer->data[--to] = '%';
    }
    det_assert(to == begin);
}

void row_template_render(
    const struct row_template *row_template, const void *value, enum row_template_escape escape,
    struct det_buffer *buffer)
{
    for (size_t i = 0; i < row_template->part_count; i++) {
        const struct row_template_part *part = &row_template->parts[i];
        size_t begin = buffer->size;

        if (!part->column) {
            det_buffer_append(buffer, row_template->text + part->offset, part->size);
            continue;
        }
        column_write(part->column, value, buffer);
        if (escape == ROW_TEMPLATE_URL && det_buffer_status(buffer) == 0)
            escape_url(buffer, begin);
    }
}
