/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row_template.h - a text with fields of a row in it: "/sensors/{sensor}/values". {{ and }} are
 * braces. A template is compiled once, against the columns of a record. */
#ifndef DET_CONNECTORS_ROW_TEMPLATE_H
#define DET_CONNECTORS_ROW_TEMPLATE_H

#include "connectors/columns.h"

#define ROW_TEMPLATE_PARTS 64

enum row_template_escape {
    ROW_TEMPLATE_PLAIN,
    ROW_TEMPLATE_URL, /* values: all but letters, digits and -._~ are %XX */
};

struct row_template {
    char *text; /* owned */
    const struct det_allocator *allocator;
    struct row_template_part {
        size_t offset, size;         /* of literal text */
        const struct column *column; /* NULL: literal text */
    } parts[ROW_TEMPLATE_PARTS];
    size_t part_count;
};

/* The columns must outlive the template. `what` is for messages: "path". DET_ERR_INVALID: an
 * unknown field, a brace without its partner; DET_ERR_LIMIT; DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int row_template_init(
    struct row_template *row_template, const struct det_allocator *allocator, const char *what,
    const char *text, const struct columns *columns, struct det_error *reterr);
void row_template_deinit(struct row_template *row_template);
bool row_template_has_fields(const struct row_template *row_template);
/* Appends the text for a row; failures stick to the buffer. */
void row_template_render(
    const struct row_template *row_template, const void *value, enum row_template_escape escape,
    struct det_buffer *buffer);

#endif
