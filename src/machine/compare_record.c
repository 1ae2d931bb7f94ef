/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* compare_record.c - compares records, and decides whether bytes of an old one can be read as a new
 * one: the rules of "changing a record" in docs/formats/record.md. */
#include <detent/tool/machine.h>
#include <string.h>

#include "base/assert.h"
#include "machine/compare.h"

struct pair {
    const struct det_record *old, *new;
    size_t old_field, new_field;
};

static uint32_t version_of(uint32_t version)
{
    return version > 0 ? version : 1;
}

static const char *enum_problem(
    const struct det_enum *old, const struct det_enum *new, struct det_buffer *text)
{
    for (size_t i = 0; i < old->value_count; i++) {
        size_t j = 0;

        while (j < new->value_count && strcmp(old->values[i].name, new->values[j].name) != 0)
            j++;
        if (j == new->value_count) {
            det_buffer_format(
                text, "the value %s of the enum %s was removed", old->values[i].name, old->name);
            return det_buffer_text(text);
        }
    }
    return NULL;
}

static bool is_same_type(const struct det_field *old, const struct det_field *new)
{
    const unsigned shape = DET_FIELD_OPTIONAL | DET_FIELD_ARRAY;
    bool is_number = old->kind == DET_KIND_UNSIGNED || old->kind == DET_KIND_SIGNED;

    return old->kind == new->kind && (old->flags & shape) == (new->flags &shape) &&
           (!is_number || old->size == new->size);
}

static const char *field_problem(
    const struct pair *pair, const struct det_field *old, const struct det_field *new,
    struct det_buffer *text)
{
    const struct det_enum *old_enum = det_enum_of(old->enumeration);
    const struct det_enum *new_enum = det_enum_of(new->enumeration);

    if (strcmp(old->name, new->name) != 0)
        det_buffer_format(
            text, "%s has the field %s where %s was", pair->new->name, new->name, old->name);
    else if (!is_same_type(old, new))
        det_buffer_format(text, "the field %s of %s has another type", old->name, pair->new->name);
    else if (version_of(old->since) != version_of(new->since))
        det_buffer_format(text, "the field %s of %s has another SINCE", old->name, pair->new->name);
    else if (new->capacity < old->capacity || new->count_max < old->count_max)
        det_buffer_format(text, "the field %s of %s became smaller", old->name, pair->new->name);
    else if (old->kind == DET_KIND_ENUM && old_enum != NULL && new_enum != NULL)
        return enum_problem(old_enum, new_enum, text);
    return text->size > 0 ? det_buffer_text(text) : NULL;
}

static const char *version_problem(const struct pair *pair, struct det_buffer *text)
{
    if (version_of(pair->new->version) >= version_of(pair->old->version))
        return NULL;
    det_buffer_format(
        text, "the version of %s decreases from %u to %u", pair->new->name,
        version_of(pair->old->version), version_of(pair->new->version));
    return det_buffer_text(text);
}

/* Returns the next field that bytes of the old version have. */
static const struct det_field *next_field(struct pair *pair)
{
    while (pair->new_field < pair->new->field_count) {
        const struct det_field *field = &pair->new->fields[pair->new_field++];

        if (version_of(field->since) <= version_of(pair->old->version))
            return field;
    }
    return NULL;
}

/* Returns the next field of both; NULL without a problem at the end. */
static const char *next_pair(
    struct pair *pair, struct det_buffer *text, const struct det_field **ret_old,
    const struct det_field **ret_new)
{
    const struct det_field *new = next_field(pair);
    const struct det_field *old =
        pair->old_field < pair->old->field_count ? &pair->old->fields[pair->old_field++] : NULL;

    *ret_old = old;
    *ret_new = new;
    if (old != NULL && new != NULL)
        return field_problem(pair, old, new, text);
    if (old != NULL)
        det_buffer_format(text, "the field %s of %s was removed", old->name, pair->old->name);
    if (new != NULL)
        det_buffer_format(
            text, "the field %s of %s is new and has no SINCE(%u)", new->name, pair->new->name,
            version_of(pair->old->version) + 1);
    return old != NULL || new != NULL ? det_buffer_text(text) : NULL;
}

/* Returns why bytes of the old record cannot be read as the new one, as a clause; NULL if they can.
 * The text is in `text`. */
static const char *compare_records(
    const struct det_record *old, const struct det_record *new, struct det_buffer *text)
{
    struct pair levels[DET_RECORD_DEPTH_MAX] = { { old, new, 0, 0 } };
    size_t depth = 1;
    const char *problem = NULL;

    det_buffer_clear(text);
    if (old == new)
        return NULL;
    problem = version_problem(&levels[0], text);
    while (depth > 0 && problem == NULL) {
        const struct det_field *old_field, *new_field;

        problem = next_pair(&levels[depth - 1], text, &old_field, &new_field);
        if (problem != NULL)
            break;
        if (old_field == NULL) {
            depth--;
        } else if (old_field->kind == DET_KIND_RECORD) {
            det_assert(depth < DET_RECORD_DEPTH_MAX);
            levels[depth] = (struct pair){ det_record_of(old_field->record),
                                           det_record_of(new_field->record), 0, 0 };
            det_assert(levels[depth].old && levels[depth].new);
            problem = version_problem(&levels[depth++], text);
        }
    }
    return problem;
}

static const char *describe_record(
    struct det_comparison *comparison, struct det_writer *writer, const struct det_field *field)
{
    det_compare_clear(comparison, writer);
    det_write_field(writer, field);
    /* Drops the end of the line. */
    if (writer->text.size > 0)
        writer->text.data[writer->text.size - 1] = '\0';
    return det_buffer_text(&writer->text);
}

static void compare_fields(
    struct det_comparison *comparison, const struct det_record *old, const struct det_record *new)
{
    struct det_change change = { DET_CHANGE_CHANGED, "record", old->name, NULL, NULL };

    for (size_t i = 0; i < old->field_count; i++) {
        const struct det_field *same = det_record_field(new, old->fields[i].name);
        const char *before = describe_record(comparison, &comparison->of_old, &old->fields[i]);
        const char *after = same ? describe_record(comparison, &comparison->of_new, same) : "";

        if (same == NULL)
            det_compare_report(comparison, change, "record %s: %s was removed", old->name, before);
        else if (strcmp(before, after) != 0)
            det_compare_report(
                comparison, change, "record %s: %s (before: %s)", old->name, after, before);
    }
    for (size_t i = 0; i < new->field_count; i++) {
        if (det_record_field(old, new->fields[i].name) == NULL)
            det_compare_report(
                comparison, change, "record %s: %s is new", old->name,
                describe_record(comparison, &comparison->of_new, &new->fields[i]));
    }
}

/* Compares the old and the new record of the data or of one event. */
static void compare_use(
    struct det_comparison *comparison, const struct det_record *old, const struct det_record *new,
    const char *event)
{
    struct det_change change = { DET_CHANGE_CHANGED, "record", old->name, NULL, NULL };
    const char *none = det_empty_record()->name;

    if (strcmp(old->name, new->name) == 0)
        return;
    det_compare_report(
        comparison, change, "%s%s: %s (before: %s)", event != NULL ? "payload of " : "data",
        event != NULL ? event : "", strcmp(new->name, none) == 0 ? "none" : new->name,
        strcmp(old->name, none) == 0 ? "none" : old->name);
}

/* Returns true if the record was already compared as the data or the payload of an earlier
 * event. */
static bool was_met(
    const struct det_machine *machine, const struct det_record *record, unsigned end)
{
    if (det_machine_data(machine) == record)
        return true;
    for (unsigned i = 0; i < end; i++) {
        if (det_machine_payload(machine, i) == record)
            return true;
    }
    return false;
}

void det_compare_all_records(struct det_comparison *comparison)
{
    const struct det_machine *old = comparison->old, *new = comparison->new;

    compare_use(comparison, det_machine_data(old), det_machine_data(new), NULL);
    compare_fields(comparison, det_machine_data(old), det_machine_data(new));
    for (unsigned i = 0; i < old->event_count; i++) {
        int to = comparison->maps[DET_NAME_EVENT][i];
        const struct det_record *before = det_machine_payload(old, i), *after;

        if (to < 0)
            continue;
        after = det_machine_payload(new, (unsigned)to);
        compare_use(comparison, before, after, old->events[i].name);
        if (!was_met(old, before, i))
            compare_fields(comparison, before, after);
    }
}

void det_compare_record_hazards(struct det_comparison *comparison)
{
    const struct det_machine *old = comparison->old, *new = comparison->new;
    struct det_buffer *text = &comparison->of_new.text;
    const char *problem = compare_records(det_machine_data(old), det_machine_data(new), text);

    if (problem != NULL)
        det_compare_warn(
            comparison, DET_HAZARD_DATA, det_machine_data(old)->name, "can no longer be read: %s",
            problem);
    for (unsigned i = 0; i < old->event_count; i++) {
        int to = comparison->maps[DET_NAME_EVENT][i];

        if (to < 0)
            continue;
        /* A payload without fields has no bytes, which read as zero. */
        if (det_machine_payload(old, i)->field_count == 0)
            continue;
        problem = compare_records(
            det_machine_payload(old, i), det_machine_payload(new, (unsigned)to), text);
        if (problem != NULL)
            det_compare_warn(
                comparison, DET_HAZARD_EVENT, old->events[i].name,
                "has a payload that can no longer be read: %s", problem);
    }
}
