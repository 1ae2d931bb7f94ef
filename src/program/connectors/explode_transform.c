/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* explode_transform.c - a row for each element of a list, or for each part of a text. */
#include <string.h>

#include "connectors/connectors.h"
#include "connectors/row_stage.h"
#include "connectors/row_text.h"
#include "record/field_value.h"

#define REC_SPEC "connectors/explode_transform.rec"
#include <detent/rec/declare.h>

struct explode {
    struct row_stage stage;
    struct explode_settings settings;
    const struct det_field *from, *into, *index;
};

static bool is_element_of(const struct det_field *list, const struct det_field *into)
{
    return list->kind == into->kind && list->size == into->size &&
           list->capacity == into->capacity && !(into->flags & DET_FIELD_ARRAY) &&
           det_record_of(list->record) == det_record_of(into->record) &&
           det_enum_of(list->enumeration) == det_enum_of(into->enumeration);
}

static int check_fields(
    struct explode *explode, const struct settings *settings, struct det_error *reterr)
{
    if (explode->from->flags & DET_FIELD_ARRAY) {
        if (!is_element_of(explode->from, explode->into))
            return settings_fail_key(
                settings, "into", reterr,
                "the elements of %s are not of the type of %s: give both one type",
                explode->from->name, explode->into->name);
    } else if (explode->from->kind != DET_KIND_TEXT || !row_takes_text(explode->into)) {
        return settings_fail_key(
            settings, "field", reterr, "%s is neither a list nor a text, or %s cannot get a part",
            explode->from->name, explode->into->name);
    }
    if (explode->index && (explode->index->kind != DET_KIND_UNSIGNED || explode->index->size < 2 ||
                           explode->index->flags))
        return settings_fail_key(
            settings, "index", reterr, "%s must be a field of type u16, u32 or u64",
            explode->index->name);
    return 0;
}

static int find_fields(
    struct explode *explode, const struct settings *settings, const struct det_record *out,
    struct det_error *reterr)
{
    const struct explode_settings *value = &explode->settings;
    int r;

    r = settings_need(settings, "field", value->field, "{field: tags, into: tag}", reterr);
    if (r == 0)
        r = settings_need(settings, "into", value->into, "{field: tags, into: tag}", reterr);
    if (r == 0)
        r = settings_field(
            settings, det_datum_get(settings->root, "field"), value->field,
            stage_in(settings->stage), &explode->from, reterr);
    if (r == 0)
        r = settings_field(
            settings, det_datum_get(settings->root, "into"), value->into, out, &explode->into,
            reterr);
    if (r == 0 && *value->index)
        r = settings_field(
            settings, det_datum_get(settings->root, "index"), value->index, out, &explode->index,
            reterr);
    return r < 0 ? r : check_fields(explode, settings, reterr);
}

static int read_explode(
    struct row_stage *stage, const struct settings *settings,
    const struct row_fields_options *options, struct det_error *reterr)
{
    struct explode *explode = (struct explode *)stage;
    int r;

    if (!*explode->settings.separator)
        (void)det_text_copy(explode->settings.separator, sizeof explode->settings.separator, ",");
    r = find_fields(explode, settings, options->target, reterr);
    if (r < 0)
        return r;
    row_fields_reserve(&stage->fields, explode->into);
    if (explode->index)
        row_fields_reserve(&stage->fields, explode->index);
    return row_fields_add_copies(
        &stage->fields, options, stage_in(stage->definition), true, reterr);
}

static const struct row_stage_kind kind = { explode_settings_record, NULL, sizeof(struct explode),
                                            offsetof(struct explode, settings), read_explode };

static int explode_check(
    const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    (void)folder;
    return row_stage_check(&kind, stage, reterr);
}

static int explode_open(struct det_stage_call *call)
{
    return row_stage_open(&kind, call);
}

static int emit_element(struct det_stage_call *call, const struct explode *explode, uint32_t index)
{
    if (explode->index &&
        !det_value_set_unsigned(
            explode->index, (uint8_t *)explode->stage.row + explode->index->offset, index))
        return det_stage_reject(
            call, DET_REJECT_DOMAIN, "%s: element %u does not fit", explode->index->name, index);
    return det_stage_emit(call, explode->stage.row);
}

static int explode_list(struct det_stage_call *call, const struct explode *explode, const void *in)
{
    const struct det_field *from = explode->from, *into = explode->into;
    uint32_t count = det_field_count(from, in);
    int r = 0;

    for (uint32_t i = 0; i < count && r == 0; i++) {
        det_field_set_count(into, explode->stage.row, 1);
        memcpy(
            (uint8_t *)explode->stage.row + into->offset,
            (const uint8_t *)in + from->offset + (size_t)i * from->size, from->size);
        r = emit_element(call, explode, i);
    }
    return r;
}

static struct det_view trim(const char *text, size_t size)
{
    while (size && (*text == ' ' || *text == '\t')) {
        text++;
        size--;
    }
    while (size && (text[size - 1] == ' ' || text[size - 1] == '\t'))
        size--;
    return det_view_of(text, size);
}

static int explode_text(struct det_stage_call *call, const struct explode *explode, const void *in)
{
    const char *at = (const char *)in + explode->from->offset, *separator;
    size_t separator_size = strlen(explode->settings.separator);
    uint32_t index = 0;
    int r = 0;

    if (!*at || det_field_count(explode->from, in) == 0)
        return 0;
    do {
        struct det_view part;
        const char *reason;

        separator = strstr(at, explode->settings.separator);
        part = trim(at, separator ? (size_t)(separator - at) : strlen(at));
        at = separator ? separator + separator_size : at;
        if (part.size == 0 && explode->settings.skip_empty)
            continue;
        reason = row_set_text(explode->into, explode->stage.row, part);
        if (reason)
            return det_stage_reject(
                call, DET_REJECT_DESERIALIZATION, "%s, part %u: %s", explode->from->name, index,
                reason);
        r = emit_element(call, explode, index++);
    } while (separator && r == 0);
    return r;
}

static int explode_process(struct det_stage_call *call, const void *in)
{
    const struct explode *explode = call->self;
    int r;

    r = row_stage_fill(call, in);
    if (r < 0)
        return r;
    return explode->from->flags & DET_FIELD_ARRAY ? explode_list(call, explode, in)
                                                  : explode_text(call, explode, in);
}

const struct det_connector explode_transform = {
    CONNECTOR_HEAD(explode, transform),
    .functions = { .open = explode_open, .close = row_stage_close, .process = explode_process },
    .check = explode_check,
};
