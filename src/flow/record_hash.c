/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* record_hash.c - a hash of the definition of a record, for the edges and the fingerprint of a
 * flow. */
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "flow/topology.h"

#define SHAPE_FLAGS (DET_FIELD_OPTIONAL | DET_FIELD_ARRAY)

/* The records around the current field. */
struct level {
    const struct det_record *record;
    size_t next;
};

static uint64_t mix_text(uint64_t hash, const char *text)
{
    return det_hash_mix(hash, det_hash64(text, strlen(text), 1));
}

/* Names of an enum are on disk; a version without changes of the old ones may add some. */
static uint64_t mix_enum(uint64_t hash, const struct det_enum *enumeration, bool is_exact)
{
    det_assert(enumeration != NULL);
    hash = mix_text(hash, enumeration->name);
    for (size_t i = 0; is_exact && i < enumeration->value_count; i++) {
        hash = mix_text(hash, enumeration->values[i].name);
        hash = det_hash_mix(hash, (uint64_t)enumeration->values[i].value);
    }
    return hash;
}

static uint64_t mix_field(uint64_t hash, const struct det_field *field, bool is_exact)
{
    bool is_number = field->kind == DET_KIND_UNSIGNED || field->kind == DET_KIND_SIGNED;

    hash = mix_text(hash, field->name);
    hash = det_hash_mix(hash, (uint64_t)field->kind);
    hash = det_hash_mix(hash, field->flags & SHAPE_FLAGS);
    hash = det_hash_mix(hash, is_number ? field->size : 0);
    if (field->kind == DET_KIND_ENUM)
        hash = mix_enum(hash, det_enum_of(field->enumeration), is_exact);
    if (!is_exact)
        return hash;
    hash = det_hash_mix(hash, field->since > 0 ? field->since : 1);
    hash = det_hash_mix(hash, field->capacity);
    hash = det_hash_mix(hash, field->offset);
    return det_hash_mix(hash, field->count_max);
}

static uint64_t mix_record(uint64_t hash, const struct det_record *record, bool is_exact)
{
    det_assert(record != NULL);
    hash = mix_text(hash, record->name);
    return is_exact ? det_hash_mix(hash, record->version > 0 ? record->version : 1) : hash;
}

uint64_t det_topology_hash_record(const struct det_record *record, bool is_exact)
{
    struct level levels[DET_RECORD_DEPTH_MAX] = { { record, 0 } };
    unsigned depth = 1;
    uint64_t hash;

    if (record == NULL)
        return 0;
    hash = mix_record(1, record, is_exact);
    while (depth > 0) {
        struct level *level = &levels[depth - 1];
        const struct det_field *field;

        if (level->next == level->record->field_count) {
            hash = det_hash_mix(hash, depth--);
            continue;
        }
        field = &level->record->fields[level->next++];
        /* Fields of later versions may be added. */
        if (!is_exact && field->since > 1)
            continue;
        hash = mix_field(hash, field, is_exact);
        if (field->kind != DET_KIND_RECORD)
            continue;
        det_assert(depth < DET_RECORD_DEPTH_MAX);
        levels[depth++] = (struct level){ det_record_of(field->record), 0 };
        hash = mix_record(hash, levels[depth - 1].record, is_exact);
    }
    return hash;
}

bool det_topology_is_same_record(const struct det_record *a, const struct det_record *b)
{
    return a == b || (strcmp(a->name, b->name) == 0 && a->size == b->size &&
                      det_topology_hash_record(a, true) == det_topology_hash_record(b, true));
}
