/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_document.c - fuzz target: two documents, with a zero byte between them.
 *
 * What is taken is JSON; a delta is a document itself, and empty when and only when the two are
 * equal; none is different from itself. */
#include <stdlib.h>
#include <string.h>

#include "store/document.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static bool read_one(struct det_document_fields *fields, const char *text, size_t size)
{
    struct det_error error = { 0 };
    int r = det_document_fields_read(fields, text, size, &error);

    require(r == 0 || (r == DET_ERR_INVALID && error.code == r && error.text[0]));
    return r == 0;
}

static void compare(
    const struct det_document_fields *old, const struct det_document_fields *new,
    struct det_buffer *delta)
{
    struct det_document_fields fields;

    det_document_write_delta(old, new, delta);
    require(det_buffer_status(delta) == 0);
    det_document_fields_init(&fields, NULL);
    if (old->depth <= DET_DOCUMENT_DEPTH && new->depth <= DET_DOCUMENT_DEPTH)
        require(read_one(&fields, delta->data, delta->size) && fields.count <= 3);
    require((strcmp(delta->data, "{}") == 0) == det_document_fields_equal(old, new));
    det_document_fields_deinit(&fields);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *middle = size ? memchr(text, 0, size) : NULL;
    size_t first = middle ? (size_t)(middle - text) : size;
    struct det_document_fields old, new;
    struct det_buffer delta;

    det_document_fields_init(&old, NULL);
    det_document_fields_init(&new, NULL);
    det_buffer_init(&delta, NULL);
    if (read_one(&old, text, first)) {
        compare(&old, &old, &delta);
        if (middle && read_one(&new, middle + 1, size - first - 1)) {
            compare(&old, &new, &delta);
            compare(&new, &old, &delta);
        }
    }
    det_buffer_deinit(&delta);
    det_document_fields_deinit(&old);
    det_document_fields_deinit(&new);
    return 0;
}
