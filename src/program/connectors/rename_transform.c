/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rename_transform.c - fields with other names; others are copied by name. */
#include "connectors/connectors.h"
#include "connectors/row_stage.h"

static int add_one(
    struct row_stage *stage, const struct settings *settings,
    const struct row_fields_options *options, const struct det_datum *item,
    struct det_error *reterr)
{
    const struct det_field *from = NULL, *to = NULL;
    int r;

    if (item->kind != DET_DATUM_TEXT)
        return settings_fail(
            settings, item, reterr, "%.64s: expected the name of a field of %s, found %s",
            item->key, stage_in(stage->definition)->name, det_datum_kind_text(item->kind));
    r = settings_field(settings, item, item->key, options->target, &to, reterr);
    if (r == 0)
        r = settings_field(settings, item, item->text, stage_in(stage->definition), &from, reterr);
    return r < 0 ? r : row_fields_add_copy(&stage->fields, options, from, to, reterr);
}

static int read_rename(
    struct row_stage *stage, const struct settings *settings,
    const struct row_fields_options *options, struct det_error *reterr)
{
    const struct det_datum *map = det_datum_get(settings->root, "fields");
    int r;

    if (!map || map->kind != DET_DATUM_MAP)
        return settings_fail(
            settings, map, reterr,
            "fields is missing: add a map from new names to old ones, such as {fields: {celsius: "
            "temp}}");
    for (const struct det_datum *item = map->first; item; item = item->next) {
        r = add_one(stage, settings, options, item, reterr);
        if (r < 0)
            return r;
    }
    return row_fields_add_copies(
        &stage->fields, options, stage_in(stage->definition), true, reterr);
}

static const char *const trees[] = { "fields", NULL };
static const struct row_stage_kind kind = { det_empty_record, trees, sizeof(struct row_stage) + 8,
                                            sizeof(struct row_stage), read_rename };

static int rename_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    (void)folder;
    return row_stage_check(&kind, stage, reterr);
}

static int rename_open(struct det_stage_call *call)
{
    return row_stage_open(&kind, call);
}

static int rename_process(struct det_stage_call *call, const void *in)
{
    const struct row_stage *stage = call->self;
    int r;

    r = row_stage_fill(call, in);
    return r < 0 ? r : det_stage_emit(call, stage->row);
}

const struct det_connector rename_transform = {
    CONNECTOR_HEAD(rename, transform),
    .functions = { .open = rename_open, .close = row_stage_close, .process = rename_process },
    .check = rename_check,
};
