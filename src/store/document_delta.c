/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document_delta.c - the difference of two documents. Both have sorted fields, so each kind of
 * difference takes one walk through both. */
#include "store/document.h"

/* The kinds of difference. */

enum difference {
    ADDED,
    MODIFIED,
    REMOVED,
};

struct writing {
    struct det_buffer *text;
    enum difference wanted;
    size_t count;
};

static const char *canonical_of(
    const struct det_document_fields *fields, const struct det_document_field *field)
{
    return fields->canonical.data + field->place;
}

static void write_key(struct writing *writing, struct det_view key)
{
    static const char *const names[] = { "added", "modified", "removed" };

    if (writing->count++)
        det_buffer_append_char(writing->text, ',');
    else
        det_buffer_format(
            writing->text, "%s\"%s\":{", writing->text->size > 1 ? "," : "",
            names[writing->wanted]);
    det_buffer_append_char(writing->text, '"');
    det_buffer_append(writing->text, key.data, key.size);
    det_buffer_append_text(writing->text, "\":");
}

static void write_value(struct writing *writing, struct det_view value)
{
    det_buffer_append(writing->text, value.data, value.size);
}

/* `old` is the previous value of a modified field; else NULL. */
static void write_field(
    struct writing *writing, enum difference difference, const struct det_document_field *field,
    const struct det_document_field *old)
{
    if (difference != writing->wanted)
        return;
    write_key(writing, field->key);
    if (!old) {
        write_value(writing, field->value);
        return;
    }
    det_buffer_append_text(writing->text, "{\"old\":");
    write_value(writing, old->value);
    det_buffer_append_text(writing->text, ",\"new\":");
    write_value(writing, field->value);
    det_buffer_append_char(writing->text, '}');
}

/* Order of two fields: < 0: the old one first, > 0: the new one first, 0: equal names. */
static int compare_names(
    const struct det_document_fields *old, size_t i, const struct det_document_fields *new,
    size_t k)
{
    if (i == old->count)
        return 1;
    if (k == new->count)
        return -1;
    return det_document_compare_bytes(
        canonical_of(old, &old->items[i]), old->items[i].key_size,
        canonical_of(new, &new->items[k]), new->items[k].key_size);
}

static bool is_modified(
    const struct det_document_fields *old, size_t i, const struct det_document_fields *new,
    size_t k)
{
    return det_document_compare_bytes(
               canonical_of(old, &old->items[i]), old->items[i].size,
               canonical_of(new, &new->items[k]), new->items[k].size) != 0;
}

static void write_kind(
    const struct det_document_fields *old, const struct det_document_fields *new,
    struct writing *writing)
{
    size_t i = 0, k = 0;

    while (i < old->count || k < new->count) {
        int order = compare_names(old, i, new, k);

        if (order < 0)
            write_field(writing, REMOVED, &old->items[i], NULL);
        else if (order > 0)
            write_field(writing, ADDED, &new->items[k], NULL);
        else if (is_modified(old, i, new, k))
            write_field(writing, MODIFIED, &new->items[k], &old->items[i]);
        i += order <= 0;
        k += order >= 0;
    }
    if (writing->count)
        det_buffer_append_char(writing->text, '}');
}

void det_document_write_delta(
    const struct det_document_fields *old, const struct det_document_fields *new,
    struct det_buffer *text)
{
    static const struct det_document_fields none = { 0 };

    det_buffer_clear(text);
    det_buffer_append_char(text, '{');
    for (enum difference wanted = ADDED; wanted <= REMOVED; wanted++) {
        struct writing writing = { .text = text, .wanted = wanted };

        write_kind(old ? old : &none, new ? new : &none, &writing);
    }
    det_buffer_append_char(text, '}');
}
