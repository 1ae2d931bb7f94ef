/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row_json.c - a row as a JSON object, with its key. */
#include "connectors/row_json.h"

#include "base/assert.h"
#include "connectors/row_key.h"
#include "json/writer.h"

void row_json(
    const struct det_stage_call *call, const struct columns *columns, const char *key_field,
    const void *in, struct det_buffer *buffer)
{
    char key[ROW_KEY_MAX];

    columns_write_json(columns, in, buffer);
    if (!*key_field || det_buffer_status(buffer) < 0)
        return;
    det_assert(buffer->data[buffer->size - 1] == '}');
    buffer_cut(buffer, buffer->size - 1);
    if (buffer->data[buffer->size - 1] != '{')
        det_buffer_append_char(buffer, ',');
    det_json_quote(buffer, det_view_text(key_field));
    det_buffer_append_char(buffer, ':');
    det_json_quote(buffer, det_view_text(row_key(call, call->row.position, key)));
    det_buffer_append_char(buffer, '}');
}
