/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* prove_view.c - random records and views, valid by their definitions. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "worker/prove.h"

/* Longest age of the simulated world. */
#define AGE_MAX DET_DAY

static uint64_t below(struct det_chance *chance, uint64_t bound)
{
    return det_chance_below(chance, bound);
}

/* Thresholds in states are mostly small numbers; the others have any size. */
static uint64_t any_number(struct det_chance *chance)
{
    if (below(chance, 2) == 0)
        return below(chance, 8);
    return det_chance_next(chance) >> below(chance, 64);
}

static void fill_text(struct det_chance *chance, const struct det_field *field, char *target)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789.:/-_ ";
    uint64_t most = field->capacity < 24 ? field->capacity : 24;
    uint64_t length = below(chance, 4) == 0 ? 0 : below(chance, most + 1);

    for (uint64_t i = 0; i < length; i++)
        target[i] = letters[below(chance, sizeof letters - 1)];
    target[length] = '\0';
}

static void fill_bytes(struct det_chance *chance, const struct det_field *field, uint8_t *target)
{
    uint32_t size = (uint32_t)below(chance, (uint64_t)field->capacity + 1);

    memcpy(target, &size, sizeof size);
    for (uint32_t i = 0; i < size; i++)
        target[sizeof size + i] = (uint8_t)det_chance_next(chance);
}

static void fill_enum(struct det_chance *chance, const struct det_field *field, uint8_t *target)
{
    const struct det_enum *enumeration = det_enum_of(field->enumeration);
    const struct det_enum_value *value;

    /* The kind was checked, including its records. */
    det_assert(enumeration != NULL);
    value = &enumeration->values[below(chance, enumeration->value_count)];
    memcpy(target, &value->value, sizeof value->value);
}

/* All kinds except records. */
static void fill_value(struct det_chance *chance, const struct det_field *field, uint8_t *target)
{
    uint64_t number = any_number(chance);
    double real = (double)(int64_t)(number >> 12) / 8;

    switch (field->kind) {
    case DET_KIND_UNSIGNED:
    case DET_KIND_SIGNED:
        memcpy(target, &number, field->size);
        break;
    case DET_KIND_TIME:
        number = below(chance, (uint64_t)AGE_MAX);
        memcpy(target, &number, sizeof number);
        break;
    case DET_KIND_FLOAT:
        memcpy(target, &real, sizeof real);
        break;
    case DET_KIND_BOOL:
        *target = (uint8_t)below(chance, 2);
        break;
    case DET_KIND_TEXT:
        fill_text(chance, field, (char *)target);
        break;
    case DET_KIND_BYTES:
        fill_bytes(chance, field, target);
        break;
    case DET_KIND_ENUM:
        fill_enum(chance, field, target);
        break;
    case DET_KIND_RECORD:
        break;
    }
}

/* Chooses the number of values of the field; stores it in the struct. */
static uint32_t fill_count(struct det_chance *chance, const struct det_field *field, uint8_t *base)
{
    uint32_t count = 1;

    if (field->flags & DET_FIELD_ARRAY) {
        count = (uint32_t)below(chance, (uint64_t)field->count_max + 1);
        memcpy(base + field->presence, &count, sizeof count);
    } else if (field->flags & DET_FIELD_OPTIONAL) {
        count = (uint32_t)below(chance, 2);
        base[field->presence] = (uint8_t)count;
    }
    return count;
}

/* The current place in a record that is being filled. */
struct level {
    const struct det_record *record;
    uint8_t *base;
    size_t field;
    uint32_t element, count;
    bool is_counted;
};

/* Advances in the innermost record; `ret` is the nested record to enter, if any. */
static bool step(struct det_chance *chance, struct level *level, struct level *ret)
{
    const struct det_field *field = &level->record->fields[level->field];
    uint8_t *value;

    if (!level->is_counted) {
        level->count = fill_count(chance, field, level->base);
        level->element = 0;
        level->is_counted = true;
    }
    if (level->element == level->count) {
        level->field++;
        level->is_counted = false;
        return false;
    }
    value = level->base + field->offset + (size_t)level->element * field->size;
    level->element++;
    if (field->kind != DET_KIND_RECORD) {
        fill_value(chance, field, value);
        return false;
    }
    *ret = (struct level){ .record = det_record_of(field->record), .base = value };
    det_assert(ret->record != NULL);
    return true;
}

void det_prove_record(struct det_chance *chance, const struct det_record *record, void *target)
{
    struct level levels[DET_RECORD_DEPTH_MAX + 1] = { { .record = record, .base = target } };
    size_t depth = 1;

    memset(target, 0, record->size);
    while (depth > 0) {
        struct level *level = &levels[depth - 1];

        if (level->field == level->record->field_count)
            depth--;
        else if (step(chance, level, &levels[depth]))
            depth++;
    }
}

static const char *DET_PRINTF(2, 3) format(struct det_reason *reason, const char *text, ...)
{
    va_list arguments;

    va_start(arguments, text);
    (void)vsnprintf(reason->text, sizeof reason->text, text, arguments);
    va_end(arguments);
    return reason->text;
}

static void fill_child(struct det_prove *prove, struct det_child_view *child)
{
    enum det_phase phase = (enum det_phase)below(&prove->chance, DET_PHASE_STOPPING + 1);

    *child = (struct det_child_view){
        .name = "child",
        .kind = "child",
        .state = det_phase_name(phase),
        .reason = "by chance",
        .path = "child",
        .phase = phase,
        .is_stale = below(&prove->chance, 4) == 0,
        .is_circuit_open = below(&prove->chance, 8) == 0,
        .is_disabled = phase == DET_PHASE_STOPPED && below(&prove->chance, 2) == 0,
    };
}

static void count_child(struct det_children_view *all, const struct det_child_view *child)
{
    bool is_stopped = child->phase == DET_PHASE_STOPPED;
    bool is_healthy = child->phase == DET_PHASE_RUNNING;

    all->healthy += is_healthy;
    all->operational += is_healthy || child->phase == DET_PHASE_DEGRADED;
    all->stopped += is_stopped;
    all->unhealthy += !is_healthy && !is_stopped;
    all->stale += child->is_stale;
    all->circuits_open += child->is_circuit_open;
}

/* Stopping children are sometimes stopped already, so that a parent makes progress. */
static void fill_children(struct det_prove *prove, bool stop_wanted)
{
    struct det_prove_view *own = &prove->view;
    bool is_calm = stop_wanted && below(&prove->chance, 2) == 0;

    own->children = (struct det_children_view){ .list = own->list };
    own->children.count = (uint32_t)below(&prove->chance, DET_PROVE_CHILDREN + 1);
    for (uint32_t i = 0; i < own->children.count; i++) {
        fill_child(prove, &own->child[i]);
        if (is_calm)
            own->child[i].phase = DET_PHASE_STOPPED;
        own->list[i] = &own->child[i];
        count_child(&own->children, &own->child[i]);
    }
}

void det_prove_stop_children(struct det_prove *prove)
{
    struct det_prove_view *own = &prove->view;
    uint32_t count = own->children.count;

    own->children = (struct det_children_view){ .list = own->list, .count = count };
    for (uint32_t i = 0; i < count; i++) {
        own->child[i].phase = DET_PHASE_STOPPED;
        own->child[i].state = det_phase_name(DET_PHASE_STOPPED);
        count_child(&own->children, &own->child[i]);
    }
}

static void fill_past(struct det_prove *prove)
{
    struct det_prove_view *own = &prove->view;
    struct det_chance *chance = &prove->chance;

    own->counts = (struct det_worker_counts){
        .transitions = any_number(chance),
        .observations = any_number(chance) + 1,
        .startups = below(chance, 5) + 1,
        .restarts = (uint32_t)below(chance, 3),
        .actions_done = any_number(chance),
        .actions_failed = any_number(chance),
        .failures = (uint32_t)below(chance, 12),
    };
    own->last_action = (struct det_action_end){ .at = own->view.now / 2 };
    if (prove->kind->action_count > 0 && below(chance, 4) > 0) {
        uint16_t action = (uint16_t)below(chance, prove->kind->action_count);

        own->last_action.action = prove->kind->actions[action].name;
        own->last_action.took = (det_time)below(chance, (uint64_t)DET_MINUTE);
        own->last_action.code = below(chance, 2) == 0 ? 0 : DET_ERR_IO;
        (void)snprintf(
            own->last_action.text, sizeof own->last_action.text, "%s",
            own->last_action.code != 0 ? "it failed by chance" : "");
    }
}

void det_prove_fill_view(struct det_prove *prove, uint16_t state, bool stop_wanted)
{
    struct det_chance *chance = &prove->chance;
    struct det_prove_view *own = &prove->view;
    det_time now = (det_time)below(chance, (uint64_t)AGE_MAX) + DET_SECOND;

    if (prove->observed_record != NULL)
        det_prove_record(chance, prove->observed_record, prove->observed);
    if (prove->options->adjust_observed != NULL)
        prove->options->adjust_observed(prove->options->context, prove->observed);
    own->identity = (struct det_worker_identity){ "proof", "proof", prove->kind->name, "proof" };
    own->scratch.format = format;
    own->view = (struct det_worker_view){
        .kind = prove->kind,
        .desired = prove->desired,
        .observed = prove->observed,
        .stop_wanted = stop_wanted,
        .shutdown_wanted = stop_wanted && below(chance, 2) == 0,
        .state = state,
        .now = now,
        .wall = now + DET_DAY,
        .observed_at = now - (det_time)below(chance, (uint64_t)DET_SECOND),
        .since = (det_time)below(chance, (uint64_t)now),
        .collect_error = below(chance, 6) == 0 ? "it failed by chance" : NULL,
        .degraded_by = below(chance, 12) == 0 ? "by chance" : NULL,
        .identity = &own->identity,
        .counts = &own->counts,
        .last_action = &own->last_action,
        .children = &own->children,
        .scratch = &own->scratch,
    };
    fill_past(prove);
    fill_children(prove, stop_wanted);
}

uint64_t det_prove_hash(const struct det_prove *prove)
{
    const struct det_prove_view *own = &prove->view;
    uint64_t hash = det_hash64(prove->desired, prove->desired_size, 1);

    hash = det_hash_mix(hash, det_hash64(prove->observed, prove->observed_size, 2));
    hash = det_hash_mix(hash, det_hash64(&own->view, sizeof own->view, 3));
    hash = det_hash_mix(hash, det_hash64(&own->counts, sizeof own->counts, 4));
    hash = det_hash_mix(hash, det_hash64(&own->last_action, sizeof own->last_action, 5));
    hash = det_hash_mix(hash, det_hash64(own->child, sizeof own->child, 6));
    return det_hash_mix(hash, det_hash64(&own->children, sizeof own->children, 7));
}
