/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* connectors_body.c - fuzz target: bodies of HTTP as rows. The first byte is the format. Each row
 * is a record that can be encoded, or an error. */
#include <stdlib.h>
#include <string.h>

#include "connectors/http_ingest.h"
#include "connectors/http_pull_page.h"

#define REC_SPEC "fuzz/record_fuzz.rec"
#include <detent/rec/declare.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void pull(enum http_pull_format format, const char *body, size_t size)
{
    char cursor[64], url[256];
    struct http_pull_page page;
    struct det_error error;
    struct det_view view;

    http_pull_page_init(&page, NULL);
    det_buffer_append(&page.body, body, size);
    if (http_pull_page_read(&page, format, "a", &error) == 0)
        while (http_pull_page_next(&page, &view))
            if (view.size > size)
                abort();
    if (http_pull_page_cursor(&page, "a.b", cursor, sizeof cursor) == 0)
        (void)!http_pull_url("http://h/?c={cursor}", cursor, url, sizeof url);
    http_pull_page_deinit(&page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct det_record *record = fuzz_order_record();
    struct ingest_rows rows;
    struct det_error error;
    char *body;

    if (size == 0)
        return 0;
    body = malloc(size);
    if (!body)
        abort();
    memcpy(body, data + 1, size - 1);
    pull((enum http_pull_format)(data[0] % 3), body, size - 1);
    if (ingest_rows_read(
            &rows, NULL, record, DET_TEXT_EXTRA, det_view_of(body, size - 1), 100, &error) == 0) {
        for (uint32_t i = 0; i < rows.count; i++)
            if (det_record_validate(record, rows.rows + (size_t)i * rows.row_size, &error) < 0)
                abort();
        ingest_rows_free(&rows, NULL);
    }
    free(body);
    return 0;
}
