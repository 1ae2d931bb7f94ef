/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* definition.c - checks the definition of a flow, and computes its fingerprint. */
#include <detent/flow.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "flow/key.h"
#include "flow/topology.h"

/* Increased when the fingerprint is computed in another way. */
#define FINGERPRINT_VERSION 1

/* The first finding becomes the error. */
struct verdict {
    const struct det_flow *flow;
    struct det_error *error;
    int result;
};

static void take_finding(void *context, const struct det_topology_finding *finding)
{
    struct verdict *verdict = context;

    if (verdict->result < 0 || det_rule_severity(finding->rule) < DET_SEVERITY_BROKEN)
        return;
    verdict->result = det_error_set(
        verdict->error, DET_ERR_DEFINITION, "flow %.64s: %s%s%s", verdict->flow->name,
        finding->text, finding->hint != NULL ? "; " : "",
        finding->hint != NULL ? finding->hint : "");
}

#define FAIL(error, ...) det_error_set(error, DET_ERR_DEFINITION, __VA_ARGS__)

static int check_record(
    const struct det_stage *stage, struct det_record_ref ref, bool is_needed, const char *what,
    struct det_error *reterr)
{
    const struct det_record *record = det_record_of(ref);
    struct det_error error;

    if (record == NULL && is_needed)
        return FAIL(reterr, "stage %s has no record '%s'", stage->name, what);
    if (record != NULL && det_record_check(record, &error) < 0)
        return FAIL(reterr, "stage %s: %s: %.200s", stage->name, what, error.text);
    return 0;
}

static int check_records(const struct det_stage *stage, struct det_error *reterr)
{
    bool is_source = stage->kind == DET_STAGE_SOURCE, is_sink = stage->kind == DET_STAGE_SINK;
    bool needs_state = stage->kind == DET_STAGE_STATEFUL && stage->use == NULL;
    int r;

    r = check_record(stage, stage->in, !is_source, "in", reterr);
    if (r == 0)
        r = check_record(stage, stage->out, !is_sink, "out", reterr);
    if (r == 0)
        r = check_record(
            stage, stage->reference, stage->kind == DET_STAGE_JOIN, "reference", reterr);
    if (r == 0)
        r = check_record(stage, stage->cursor, false, "cursor", reterr);
    if (r == 0)
        r = check_record(stage, stage->state, needs_state, "state", reterr);
    return r;
}

static int check_numbers(const struct det_stage *stage, struct det_error *reterr)
{
    if (stage->window > DET_PIPELINE_WINDOW_MAX)
        return FAIL(
            reterr, "stage %s: the window is larger than %d rows", stage->name,
            DET_PIPELINE_WINDOW_MAX);
    if (stage->concurrency > DET_PIPELINE_THREADS_MAX)
        return FAIL(
            reterr, "stage %s: the concurrency is more than %d", stage->name,
            DET_PIPELINE_THREADS_MAX);
    if (stage->emission.kind == DET_EMIT_EVERY && stage->emission.rows == 0)
        return FAIL(reterr, "stage %s: the rows of EMIT_EVERY are 0", stage->name);
    if (stage->emission.kind == DET_EMIT_WITHIN &&
        (stage->emission.time <= 0 || stage->emission.time > DET_DELAY_MAX))
        return FAIL(
            reterr, "stage %s: the time of EMIT_WITHIN must be more than 0 and at most ten years",
            stage->name);
    return 0;
}

/* Opens a key to check it; NULL without one. */
static int open_key(
    const struct det_stage *stage, const char *text, struct det_record_ref ref,
    struct det_expression **ret, struct det_error *reterr)
{
    struct det_error error;
    int r;

    *ret = NULL;
    if (text == NULL)
        return 0;
    r = det_flow_key_open(text, det_record_of(ref), NULL, ret, &error);
    if (r == DET_ERR_NO_MEMORY)
        return det_error_set(reterr, r, "out of memory");
    return r < 0
               ? FAIL(reterr, "stage %s: the key \"%.64s\": %.160s", stage->name, text, error.text)
               : 0;
}

static int check_keys(const struct det_stage *stage, struct det_error *reterr)
{
    struct det_expression *key = NULL, *reference = NULL;
    int r;

    if ((stage->key || stage->reference_key) && stage->kind != DET_STAGE_JOIN &&
        stage->kind != DET_STAGE_STATEFUL)
        return FAIL(
            reterr, "stage %s is a %s and has no key", stage->name,
            det_topology_kind_word(stage->kind));
    if (stage->kind == DET_STAGE_JOIN && !stage->key != !stage->reference_key)
        return FAIL(reterr, "stage %s has a key on one side only", stage->name);
    r = open_key(stage, stage->key, stage->in, &key, reterr);
    if (r == 0 && stage->kind == DET_STAGE_JOIN)
        r = open_key(stage, stage->reference_key, stage->reference, &reference, reterr);
    if (r == 0 && key != NULL && reference != NULL && !det_flow_key_matches(key, reference))
        r = FAIL(
            reterr, "stage %s: the key is %s, but the key of the reference is %s", stage->name,
            det_expression_type_name(det_expression_type(key)),
            det_expression_type_name(det_expression_type(reference)));
    det_expression_close(key);
    det_expression_close(reference);
    return r;
}

static int check_stage(const struct det_flow *flow, unsigned index, struct det_error *reterr)
{
    const struct det_stage *stage = &flow->stages[index];
    int r;

    if (stage->name == NULL || !det_topology_is_name(stage->name))
        return FAIL(
            reterr,
            "flow %.64s: '%.80s' cannot be the name of a stage: use lower case letters, digits and "
            "_, a letter first, at most %d",
            flow->name, stage->name != NULL ? stage->name : "(none)", DET_FLOW_NAME_MAX);
    if ((unsigned)stage->kind >= DET_STAGE_KINDS)
        return FAIL(reterr, "stage %s has the unknown kind %u", stage->name, (unsigned)stage->kind);
    for (unsigned i = 0; i < index; i++) {
        if (strcmp(flow->stages[i].name, stage->name) == 0)
            return FAIL(
                reterr, "flow %.64s has two stages of the name %s", flow->name, stage->name);
    }
    r = check_records(stage, reterr);
    if (r == 0)
        r = check_numbers(stage, reterr);
    return r < 0 ? r : check_keys(stage, reterr);
}

static int check_bounds(const struct det_flow *flow, struct det_error *reterr)
{
    if (flow->name == NULL || !det_topology_is_name(flow->name))
        return FAIL(
            reterr,
            "'%.80s' cannot be the name of a flow: use lower case letters, digits and _, a letter "
            "first, at most %d",
            flow->name != NULL ? flow->name : "(none)", DET_FLOW_NAME_MAX);
    if (flow->stage_count > DET_FLOW_STAGES_MAX || flow->edge_count > DET_FLOW_EDGES_MAX)
        return FAIL(
            reterr, "flow %s has more than %d stages or %d edges", flow->name, DET_FLOW_STAGES_MAX,
            DET_FLOW_EDGES_MAX);
    for (unsigned i = 0; i < flow->edge_count; i++) {
        if (flow->edges[i].from >= flow->stage_count || flow->edges[i].to >= flow->stage_count)
            return FAIL(
                reterr, "flow %s: edge %u is of a stage that does not exist", flow->name, i);
    }
    return 0;
}

int det_flow_check(const struct det_flow *flow, struct det_error *reterr)
{
    struct verdict verdict = { flow, reterr, 0 };
    int r;

    r = check_bounds(flow, reterr);
    for (unsigned i = 0; r == 0 && i < flow->stage_count; i++)
        r = check_stage(flow, i, reterr);
    if (r < 0)
        return r;
    det_topology_check_edges(flow, take_finding, &verdict);
    if (verdict.result == 0)
        det_topology_check_stages(flow, take_finding, &verdict);
    if (verdict.result == 0)
        det_topology_check_paths(flow, take_finding, &verdict);
    return verdict.result;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    return det_hash_mix(hash, text != NULL ? det_hash64(text, strlen(text), 1) : 0);
}

static uint64_t mix_ref(uint64_t hash, struct det_record_ref ref)
{
    return det_hash_mix(hash, det_topology_hash_record(det_record_of(ref), false));
}

static uint64_t hash_stage(const struct det_stage *stage)
{
    uint64_t hash = mix_text(2, stage->name);

    hash = det_hash_mix(hash, (uint64_t)stage->kind);
    hash = mix_ref(hash, stage->in);
    hash = mix_ref(hash, stage->reference);
    hash = mix_ref(hash, stage->out);
    hash = mix_ref(hash, stage->cursor);
    hash = mix_ref(hash, stage->state);
    hash = mix_text(hash, stage->key);
    return mix_text(hash, stage->reference_key);
}

/* Sums do not depend on the order. */
uint64_t det_flow_fingerprint(const struct det_flow *flow)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < flow->stage_count; i++)
        sum += hash_stage(&flow->stages[i]);
    for (unsigned i = 0; i < flow->edge_count; i++) {
        const struct det_edge *edge = &flow->edges[i];
        uint64_t hash = mix_text(3, flow->stages[edge->from].name);

        sum += det_hash_mix(mix_text(hash, flow->stages[edge->to].name), edge->flags);
    }
    return det_hash_mix(FINGERPRINT_VERSION, sum);
}
