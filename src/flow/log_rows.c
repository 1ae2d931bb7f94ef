/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_rows.c - encodes and decodes the rows of a run's log (docs/formats/flow-log.md). */
#include "flow/log_rows.h"

#include <string.h>

#include "base/assert.h"
#include "record/varint.h"

/* ---- writing: the caller has room */

static uint8_t *put_byte(uint8_t *target, unsigned byte)
{
    *target = (uint8_t)byte;
    return target + 1;
}

static uint8_t *put_number(uint8_t *target, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        *target++ = (uint8_t)(number | 0x80);
    *target++ = (uint8_t)number;
    return target;
}

static uint8_t *put_bytes(uint8_t *target, const void *data, size_t size)
{
    target = put_number(target, size);
    if (size > 0)
        memcpy(target, data, size);
    return target + size;
}

static uint8_t *put_text(uint8_t *target, const char *text)
{
    return put_bytes(target, text, strlen(text));
}

size_t det_progress_row_max(uint32_t inputs, size_t cursor_size)
{
    return 2 + 8 * DET_VARINT_MAX + (size_t)inputs * (3 * DET_VARINT_MAX + 1) + cursor_size;
}

size_t det_progress_row_write(const struct det_flow_progress *progress, uint8_t *target)
{
    uint8_t *end = put_byte(target, DET_FLOW_LOG_VERSION);

    end = put_number(end, progress->rows_out);
    end = put_number(end, progress->errors);
    end = put_number(end, progress->rejected);
    end = put_byte(end, progress->end);
    end = put_number(end, progress->state_rows);
    end = put_number(end, progress->state_from);
    end = put_number(end, (uint64_t)progress->period);
    end = put_number(end, progress->input_count);
    for (uint32_t i = 0; i < progress->input_count; i++) {
        end = put_number(end, progress->inputs[i].sequence);
        end = put_number(end, progress->inputs[i].position);
        end = put_number(end, progress->inputs[i].rows);
        end = put_byte(end, progress->inputs[i].end);
    }
    end = put_bytes(end, progress->cursor, progress->cursor_size);
    return (size_t)(end - target);
}

size_t det_end_row_write(enum det_end_kind end, uint64_t rows, uint8_t *target)
{
    return (size_t)(put_number(put_byte(target, end), rows) - target);
}

size_t det_rejected_row_max(size_t text_size, size_t input_size)
{
    return 1 + 2 * DET_VARINT_MAX + text_size + input_size;
}

size_t det_rejected_row_write(
    enum det_row_rejection why, int code, struct det_view text, uint8_t *target)
{
    uint8_t *end = put_byte(target, why);

    det_assert(code < 0);
    end = put_number(end, (uint64_t) - (int64_t)code);
    return (size_t)(put_bytes(end, text.data, text.size) - target);
}

size_t det_state_row_max(size_t key_size, size_t state_size)
{
    return 4 * DET_VARINT_MAX + key_size + state_size;
}

size_t det_state_row_write(const struct det_state_row *row, uint8_t *target)
{
    uint8_t *end = put_bytes(target, row->key.data, row->key.size);

    end = put_number(end, row->rows);
    end = put_number(end, row->position);
    return (size_t)(put_number(end, row->correlation) - target);
}

size_t det_gone_row_max(size_t key_size)
{
    return DET_VARINT_MAX + key_size;
}

size_t det_gone_row_write(struct det_view key, uint8_t *target)
{
    return (size_t)(put_bytes(target, key.data, key.size) - target);
}

size_t det_fact_row_max(size_t text_size)
{
    return 1 + 5 * DET_VARINT_MAX + text_size;
}

size_t det_fact_row_write(const struct det_flow_fact *fact, uint8_t *target)
{
    uint8_t *end = put_byte(target, fact->kind);

    end = put_text(end, fact->stage ? fact->stage : "");
    end = put_text(end, fact->reason);
    end = put_number(end, fact->rows_in);
    end = put_number(end, fact->rows_out);
    return (size_t)(put_number(end, fact->errors) - target);
}

size_t det_checkpoint_row_max(size_t name_size, uint32_t inputs, size_t cursor_size)
{
    return DET_VARINT_MAX + name_size + det_progress_row_max(inputs, cursor_size);
}

size_t det_checkpoint_row_write(
    const char *stage, const struct det_flow_progress *progress, uint8_t *target)
{
    uint8_t *end = put_text(target, stage);

    return (size_t)(end - target) + det_progress_row_write(progress, end);
}

size_t det_checkpoint_end_row_write(const struct det_checkpoint_end *end, uint8_t *target)
{
    uint8_t *next = put_byte(target, DET_FLOW_LOG_VERSION);

    det_word_store(next, end->fingerprint);
    det_word_store(next + 8, end->run);
    return (size_t)(put_number(next + 16, end->rows) - target);
}

/* ---- reading */

struct row_source {
    struct det_byte_source bytes;
    size_t at; /* DET_NOWHERE after an error */
};

static struct row_source source_of(const void *data, size_t size)
{
    return (struct row_source){ .bytes = { .data = data, .size = size } };
}

static uint64_t get_number(struct row_source *source)
{
    struct det_varint number;

    if (source->at == DET_NOWHERE)
        return 0;
    number = det_get_varint(&source->bytes, source->at);
    source->at = number.end;
    return number.end == DET_NOWHERE ? 0 : number.number;
}

static uint8_t get_byte(struct row_source *source)
{
    if (source->at == DET_NOWHERE)
        return 0;
    if (!det_source_has(&source->bytes, source->at, 1)) {
        source->at = det_source_end(&source->bytes);
        return 0;
    }
    return source->bytes.data[source->at++];
}

static struct det_view get_bytes(struct row_source *source)
{
    uint64_t size = get_number(source);
    struct det_view view;

    if (source->at == DET_NOWHERE)
        return det_view_of("", 0);
    if (size > source->bytes.size - source->at) {
        source->at = det_source_end(&source->bytes);
        return det_view_of("", 0);
    }
    view = det_view_of((const char *)source->bytes.data + source->at, (size_t)size);
    source->at += (size_t)size;
    return view;
}

static void expect_version(struct row_source *source)
{
    if (get_byte(source) != DET_FLOW_LOG_VERSION && source->at != DET_NOWHERE)
        source->at = det_source_fail(&source->bytes, DET_ERR_VERSION, 0);
}

static uint8_t get_end_kind(struct row_source *source)
{
    uint8_t end = get_byte(source);

    if (end > DET_END_POISON && source->at != DET_NOWHERE)
        source->at = det_source_fail(&source->bytes, DET_ERR_MALFORMED, source->at - 1);
    return end;
}

/* The result of reading a row that has been read to its end. */
static int finish_row(const struct row_source *source)
{
    if (source->at == DET_NOWHERE)
        return source->bytes.error;
    return source->at == source->bytes.size ? 0 : DET_ERR_MALFORMED;
}

static int read_progress(struct row_source *source, struct det_flow_progress *ret)
{
    struct det_input_mark *inputs = ret->inputs;
    uint32_t capacity = ret->input_capacity;
    struct det_view cursor;
    uint64_t count;

    expect_version(source);
    *ret = (struct det_flow_progress){ .inputs = inputs, .input_capacity = capacity };
    ret->rows_out = get_number(source);
    ret->errors = get_number(source);
    ret->rejected = get_number(source);
    ret->end = get_end_kind(source);
    ret->state_rows = get_number(source);
    ret->state_from = get_number(source);
    ret->period = (det_time)get_number(source);
    count = get_number(source);
    if (count > capacity)
        return DET_ERR_MALFORMED;
    ret->input_count = (uint32_t)count;
    for (uint32_t i = 0; i < ret->input_count; i++) {
        inputs[i].sequence = get_number(source);
        inputs[i].position = get_number(source);
        inputs[i].rows = get_number(source);
        inputs[i].end = get_end_kind(source);
    }
    cursor = get_bytes(source);
    ret->cursor = cursor.data;
    ret->cursor_size = cursor.size;
    return finish_row(source);
}

int det_progress_row_read(const void *data, size_t size, struct det_flow_progress *ret)
{
    struct row_source source = source_of(data, size);

    return read_progress(&source, ret);
}

int det_end_row_read(const void *data, size_t size, enum det_end_kind *ret_end, uint64_t *ret_rows)
{
    struct row_source source = source_of(data, size);

    *ret_end = get_end_kind(&source);
    *ret_rows = get_number(&source);
    if (*ret_end == DET_END_NONE && source.at != DET_NOWHERE)
        return DET_ERR_MALFORMED;
    return finish_row(&source);
}

int det_state_row_read(const void *data, size_t size, struct det_state_row *ret)
{
    struct row_source source = source_of(data, size);

    ret->key = get_bytes(&source);
    ret->rows = get_number(&source);
    ret->position = get_number(&source);
    ret->correlation = get_number(&source);
    if (source.at == DET_NOWHERE)
        return source.bytes.error;
    ret->state = source.bytes.data + source.at;
    ret->state_size = source.bytes.size - source.at;
    return 0;
}

int det_gone_row_read(const void *data, size_t size, struct det_view *ret)
{
    struct row_source source = source_of(data, size);

    *ret = get_bytes(&source);
    return finish_row(&source);
}

int det_checkpoint_row_read(
    const void *data, size_t size, struct det_view *ret_stage, struct det_flow_progress *ret)
{
    struct row_source source = source_of(data, size);

    *ret_stage = get_bytes(&source);
    return read_progress(&source, ret);
}

int det_checkpoint_end_row_read(const void *data, size_t size, struct det_checkpoint_end *ret)
{
    struct row_source source = source_of(data, size);
    uint64_t rows;

    expect_version(&source);
    if (source.at != DET_NOWHERE)
        source.at = det_get_u64(&source.bytes, source.at, &ret->fingerprint);
    if (source.at != DET_NOWHERE)
        source.at = det_get_u64(&source.bytes, source.at, &ret->run);
    rows = get_number(&source);
    if (rows > DET_FLOW_STAGES_MAX && source.at != DET_NOWHERE)
        return DET_ERR_MALFORMED;
    ret->rows = (uint32_t)rows;
    return finish_row(&source);
}

static int copy_text(struct det_view text, char *target, size_t capacity)
{
    if (text.size >= capacity)
        return DET_ERR_MALFORMED;
    memcpy(target, text.data, text.size);
    target[text.size] = '\0';
    return 0;
}

static int read_fact(
    const struct det_journal_row *row, char *stage, char *reason, struct det_flow_fact *ret)
{
    struct row_source source = source_of(row->data, row->size);
    unsigned kind = get_byte(&source);
    struct det_view stage_text = get_bytes(&source), reason_text = get_bytes(&source);
    struct det_flow_fact fact = { .kind = (enum det_flow_fact_kind)kind };
    int r;

    fact.rows_in = get_number(&source);
    fact.rows_out = get_number(&source);
    fact.errors = get_number(&source);
    r = finish_row(&source);
    if (r == 0 && !det_flow_fact_name(fact.kind))
        r = DET_ERR_VERSION;
    if (r == 0)
        r = copy_text(stage_text, stage, DET_JOURNAL_NAME_MAX + 1);
    if (r == 0)
        r = copy_text(reason_text, reason, DET_ERROR_TEXT_MAX);
    if (r < 0)
        return r;
    fact.position = row->position;
    fact.at = row->at;
    fact.stage = stage[0] ? stage : NULL;
    fact.reason = reason;
    *ret = fact;
    return 0;
}

int det_flow_fact_read(
    const struct det_journal_row *row, char *stage, char *reason, struct det_flow_fact *ret,
    struct det_error *reterr)
{
    int r;

    r = row->kind == DET_ROW_FACT ? read_fact(row, stage, reason, ret) : DET_ERR_MALFORMED;
    if (r == 0)
        return 0;
    return det_error_set(
        reterr, r, "row %llu is not a fact of a flow: %s", (unsigned long long)row->position,
        det_error_text(r));
}
