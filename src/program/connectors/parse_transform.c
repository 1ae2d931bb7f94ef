/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_transform.c - the fields of a row from the text in one field: JSON, CSV or key=value. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "connectors/connectors.h"
#include "connectors/csv_reader.h"
#include "connectors/row_stage.h"
#include "connectors/row_text.h"

#define REC_SPEC "connectors/parse_transform.rec"
#include <detent/rec/declare.h>

#define COLUMNS 64
#define TEXT    16384 /* of a field that is parsed as CSV or pairs */

struct parse {
    struct row_stage stage;
    struct parse_settings settings;
    const struct det_record *out;
    const struct det_field *field; /* of the input */
    const struct det_field *columns[COLUMNS];
    char delimiter;
    unsigned flags;
    struct csv_row cells;
    char text[TEXT];
};

static int add_columns(
    struct parse *parse, const struct settings *settings, struct det_error *reterr)
{
    int r;

    if ((parse->settings.as == PARSE_CSV) != (parse->settings.columns_count > 0))
        return settings_fail_key(
            settings, "columns", reterr,
            "columns: with as: csv, and only then, name the field of each column");
    for (uint32_t i = 0; i < parse->settings.columns_count; i++) {
        const char *name = parse->settings.columns[i];

        if (!*name)
            continue;
        r = settings_field(
            settings, det_datum_get(settings->root, "columns"), name, parse->out,
            &parse->columns[i], reterr);
        if (r < 0)
            return r;
        if (!row_takes_text(parse->columns[i]))
            return settings_fail_key(
                settings, "columns", reterr, "columns: %s is a list or a record", name);
    }
    return 0;
}

static int add_kept(
    struct parse *parse, const struct settings *settings, const struct row_fields_options *options,
    struct det_error *reterr)
{
    const struct det_record *in = stage_in(settings->stage);
    const struct det_datum *place = det_datum_get(settings->root, "keep");
    int r;

    for (uint32_t i = 0; i < parse->settings.keep_count; i++) {
        const struct det_field *from = NULL, *to = NULL;

        r = settings_field(settings, place, parse->settings.keep[i], in, &from, reterr);
        if (r == 0)
            r = settings_field(settings, place, parse->settings.keep[i], parse->out, &to, reterr);
        if (r == 0)
            r = row_fields_add_copy(&parse->stage.fields, options, from, to, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_delimiter(
    struct parse *parse, const struct settings *settings, struct det_error *reterr)
{
    const char *text = parse->settings.delimiter;

    parse->delimiter = *text ? *text : parse->settings.as == PARSE_CSV ? ',' : ' ';
    if (strcmp(text, "tab") == 0)
        parse->delimiter = '\t';
    else if (strlen(text) > 1 || strchr("\"=\n\r", *text ? *text : ' '))
        return settings_fail_key(
            settings, "delimiter", reterr,
            "delimiter is one character that does not quote, or tab");
    return 0;
}

static int read_parse(
    struct row_stage *stage, const struct settings *settings,
    const struct row_fields_options *options, struct det_error *reterr)
{
    struct parse *parse = (struct parse *)stage;
    int r;

    parse->out = options->target;
    r = settings_need(settings, "field", parse->settings.field, "{field: text, as: json}", reterr);
    if (r == 0)
        r = settings_text_field(
            settings, "field", parse->settings.field, stage_in(stage->definition), &parse->field,
            reterr);
    if (r == 0)
        r = read_delimiter(parse, settings, reterr);
    if (r == 0)
        r = add_columns(parse, settings, reterr);
    if (r == 0)
        r = add_kept(parse, settings, options, reterr);
    parse->flags =
        (parse->settings.strict ? 0u : (unsigned)DET_TEXT_EXTRA) |
        (parse->settings.partial || parse->settings.keep_count ? (unsigned)DET_TEXT_PARTIAL : 0u);
    return r;
}

static const struct row_stage_kind kind = { parse_settings_record, NULL, sizeof(struct parse),
                                            offsetof(struct parse, settings), read_parse };

static int parse_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    (void)folder;
    return row_stage_check(&kind, stage, reterr);
}

static int parse_open(struct det_stage_call *call)
{
    return row_stage_open(&kind, call);
}

static int reject_text(
    struct det_stage_call *call, const struct parse *parse, const char *what, const char *reason)
{
    return det_stage_reject(
        call, DET_REJECT_DESERIALIZATION, "%s%s%.64s: %s", parse->settings.field, *what ? ", " : "",
        what, reason);
}

static int parse_csv(struct det_stage_call *call, struct parse *parse, size_t size)
{
    enum csv_result result = csv_split(parse->text, size, parse->delimiter, true, &parse->cells);
    char text[96];

    if (size == 0)
        parse->cells.count = 0;
    else if (result != CSV_ROW)
        return reject_text(call, parse, "", csv_result_text(result));
    if (parse->cells.count != parse->settings.columns_count) {
        (void)snprintf(
            text, sizeof text, "it has %u column%s, expected %u", parse->cells.count,
            det_plural(parse->cells.count), parse->settings.columns_count);
        return reject_text(call, parse, "", text);
    }
    for (uint32_t i = 0; i < parse->cells.count; i++) {
        const struct det_field *field = parse->columns[i];
        const char *reason =
            field ? row_set_text(field, parse->stage.row, parse->cells.cells[i]) : NULL;

        if (reason)
            return reject_text(call, parse, field->name, reason);
    }
    return 0;
}

/* Takes "value" or value from the text, and removes backslashes in the former. Returns NULL if a
 * quote is not closed. */
static char *take_value(char *at, char delimiter, struct det_view *ret)
{
    char *to = at + 1, *from = at + 1, *end;

    if (*at != '"') {
        end = strchr(at, delimiter);
        end = end ? end : at + strlen(at);
        *ret = det_view_of(at, (size_t)(end - at));
        return end;
    }
    while (*from && *from != '"') {
        if (*from == '\\' && from[1])
            from++;
        *to++ = *from++;
    }
    *ret = det_view_of(at + 1, (size_t)(to - at) - 1);
    return *from ? from + 1 : NULL;
}

static int set_pair(
    struct det_stage_call *call, struct parse *parse, const char *key, struct det_view value,
    uint64_t seen[DET_RECORD_FIELD_MAX / 64])
{
    const struct det_field *field = det_record_field(parse->out, key);
    const char *reason;
    size_t number;

    if (!field)
        return parse->settings.strict ? reject_text(call, parse, key, "there is no such field") : 0;
    if (!row_takes_text(field))
        return reject_text(call, parse, key, "the field is a list or a record");
    reason = row_set_text(field, parse->stage.row, value);
    number = (size_t)(field - parse->out->fields);
    seen[number / 64] |= (uint64_t)1 << number % 64;
    return reason ? reject_text(call, parse, key, reason) : 0;
}

static int check_missing(
    struct det_stage_call *call, const struct parse *parse,
    const uint64_t seen[DET_RECORD_FIELD_MAX / 64])
{
    for (size_t i = 0; i < parse->out->field_count; i++) {
        const struct det_field *field = &parse->out->fields[i];

        if (seen[i / 64] >> i % 64 & 1 || field->flags & (DET_FIELD_OPTIONAL | DET_FIELD_ARRAY) ||
            row_fields_have(&parse->stage.fields, field))
            continue;
        return reject_text(call, parse, field->name, "the key is missing");
    }
    return 0;
}

static int parse_pairs(struct det_stage_call *call, struct parse *parse)
{
    uint64_t seen[DET_RECORD_FIELD_MAX / 64] = { 0 };
    char *at = parse->text;
    int r;

    for (;;) {
        struct det_view value;
        char *key, *end;

        while (*at == parse->delimiter || *at == ' ')
            at++;
        if (!*at)
            break;
        key = at;
        end = strchr(at, '=');
        if (!end)
            return reject_text(call, parse, "", "expected key=value");
        *end = 0;
        at = take_value(end + 1, parse->delimiter, &value);
        if (!at)
            return reject_text(call, parse, key, "a quote is not closed");
        r = set_pair(call, parse, key, value, seen);
        if (r < 0)
            return r;
    }
    return parse->settings.partial ? 0 : check_missing(call, parse, seen);
}

static int parse_text(struct det_stage_call *call, struct parse *parse, const char *text)
{
    size_t size = strlen(text);
    struct det_error error;

    if (parse->settings.as == PARSE_JSON) {
        if (det_record_from_json(parse->out, text, size, parse->flags, parse->stage.row, &error) <
            0)
            return reject_text(call, parse, "", error.text);
        return 0;
    }
    if (size >= sizeof parse->text)
        return reject_text(call, parse, "", "the text has more than 16383 bytes");
    memset(parse->stage.row, 0, parse->stage.row_size);
    memcpy(parse->text, text, size + 1);
    return parse->settings.as == PARSE_CSV ? parse_csv(call, parse, size)
                                           : parse_pairs(call, parse);
}

static int parse_process(struct det_stage_call *call, const void *in)
{
    struct parse *parse = call->self;
    int r;

    r = parse_text(call, parse, (const char *)in + parse->field->offset);
    if (r == 0)
        r = row_stage_fill(call, in);
    return r < 0 ? r : det_stage_emit(call, parse->stage.row);
}

const struct det_connector parse_transform = {
    CONNECTOR_HEAD(parse, transform),
    .functions = { .open = parse_open, .close = row_stage_close, .process = parse_process },
    .check = parse_check,
};
