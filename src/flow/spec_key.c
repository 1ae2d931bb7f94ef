/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* spec_key.c - the expressions in KEY and ON of a .flow file. */
#include "flow/key.h"
#include "flow/spec.h"

static struct det_place place_of(
    const struct det_flow_spec *spec, const struct det_flow_read_stage *stage,
    enum det_flow_text text, size_t offset)
{
    struct det_place place = det_flow_spec_text_place(spec, stage->index, text, offset);

    /* The end of the expression is the closing quote. */
    if (place.width == 0)
        place.width = 1;
    return place;
}

/* Returns NULL without a key, or after a report. */
static struct det_expression *open_key(
    struct det_flow_spec *spec, const struct det_flow_read_stage *stage, enum det_flow_text which,
    const char *text, struct det_record_ref ref)
{
    const struct det_record *record = det_record_of(ref);
    struct det_expression *key = NULL;
    struct det_error error = { 0 };
    struct det_place place;
    int r;

    if (text == NULL || record == NULL || spec->text->error < 0)
        return NULL;
    r = det_flow_key_open(text, record, spec->text->allocator, &key, &error);
    if (r == DET_ERR_NO_MEMORY) {
        spec->text->error = r;
    } else if (r < 0) {
        place = place_of(spec, stage, which, error.offset);
        det_parse_report(
            spec->text, DET_RULE_BAD_EXPRESSION, &place, "%s", det_flow_key_sentence(error.text));
    }
    return key;
}

static void check_keys(struct det_flow_spec *spec, const struct det_flow_read_stage *stage)
{
    const struct det_stage *of = &spec->stages[stage->index];
    struct det_expression *key = open_key(spec, stage, DET_FLOW_TEXT_KEY, of->key, of->in);
    struct det_expression *reference =
        open_key(spec, stage, DET_FLOW_TEXT_REFERENCE_KEY, of->reference_key, of->reference);
    struct det_place place;

    if (key != NULL && reference != NULL && !det_flow_key_matches(key, reference)) {
        place = place_of(spec, stage, DET_FLOW_TEXT_KEY, 0);
        det_parse_report(
            spec->text, DET_RULE_BAD_EXPRESSION, &place,
            "the keys of a JOIN are of one type, but this is %s and the key of the reference is %s",
            det_expression_type_name(det_expression_type(key)),
            det_expression_type_name(det_expression_type(reference)));
    }
    det_expression_close(key);
    det_expression_close(reference);
}

void det_flow_read_keys(struct det_flow_spec *spec)
{
    for (uint16_t i = 0; i < spec->flow.stage_count && spec->text->error == 0; i++) {
        if (!spec->read[i].is_broken)
            check_keys(spec, &spec->read[i]);
    }
}
