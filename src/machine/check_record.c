/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* check_record.c - payloads and data are valid records, and KEEP fits both. */
#include <string.h>

#include "base/text.h"
#include "machine/builder_build.h"
#include "machine/builder_keep.h"

/* A record that was found valid; most machines name a record many times. */
struct seen {
    const char *name;
    const struct det_record *record;
};

static bool was_seen(struct det_build *build, struct det_map *map, const struct det_record *record)
{
    struct seen *seen;

    if (record->name == NULL)
        return false;
    seen = det_map_get(map, record->name);
    if (seen != NULL)
        return seen->record == record;
    seen = det_build_scratch(build, 1, sizeof *seen);
    if (seen == NULL)
        return true;
    *seen = (struct seen){ record->name, record };
    if (det_map_put(map, seen) < 0)
        build->findings.status = DET_ERR_NO_MEMORY;
    return false;
}

static void check_record(
    struct det_build *build, const struct det_build_row *event, const struct det_record *record)
{
    struct det_error error;

    if (det_record_check(record, &error) == 0)
        return;
    if (event != NULL)
        (void)det_build_report(
            &build->findings, DET_RULE_BAD_RECORD, event, &event->name,
            "the payload of %s of %s is not valid: %s", event->name.text, build->name, error.text);
    else
        (void)det_build_report(
            &build->findings, DET_RULE_BAD_RECORD, NULL, &build->builder->name,
            "the data of %s is not valid: %s", build->name, error.text);
}

static void check_all_records(struct det_build *build)
{
    const struct det_record *data = build->builder->data;
    struct det_map map;

    det_map_init(
        &map, build->builder->allocator, (uint64_t)(uintptr_t)build, offsetof(struct seen, name));
    if (data != NULL && !was_seen(build, &map, data))
        check_record(build, NULL, data);
    for (size_t i = 0; i < det_build_count(build, DET_BUILD_EVENT); i++) {
        const struct det_build_row *event = det_build_thing(build, DET_BUILD_EVENT, i);
        const struct det_record *payload = event->event.payload;

        if (payload != NULL && !was_seen(build, &map, payload))
            check_record(build, event, payload);
    }
    det_map_deinit(&map);
}

/* Lists the fields that both records have. */
static void hint_field(
    struct det_build *build, struct det_diagnostic *finding, const char *name,
    const struct det_record *payload)
{
    const char *names[DET_RECORD_FIELD_MAX];
    size_t count = 0;
    int nearest;

    for (uint32_t i = 0; i < payload->field_count && count < DET_RECORD_FIELD_MAX; i++) {
        if (det_record_field(build->builder->data, payload->fields[i].name) != NULL)
            names[count++] = payload->fields[i].name;
    }
    nearest = finding != NULL ? det_text_nearest(name, names, count) : -1;
    if (nearest >= 0)
        det_build_hint(&build->findings, finding, "did you mean %s?", names[nearest]);
}

static void report_no_field(
    struct det_build *build, const struct det_build_row *row, const struct det_build_name *field,
    const struct det_build_row *event, const struct det_record *lacking)
{
    struct det_diagnostic *finding = det_build_report(
        &build->findings, DET_RULE_BAD_KEEP, row, field,
        "%s cannot be kept on %s of %s: %s has no such field", field->text, event->name.text,
        build->name, lacking->name);

    hint_field(build, finding, field->text, event->event.payload);
}

/* Returns true if the field can be kept from this event; otherwise reports it. */
static bool check_keep(
    struct det_build *build, const struct det_build_row *row, const struct det_build_name *field,
    const struct det_build_row *event)
{
    struct det_build_findings *findings = &build->findings;
    const struct det_record *payload = event->event.payload, *data = build->builder->data;
    const struct det_record *lacking;

    if (data == NULL) {
        (void)det_build_report(
            findings, DET_RULE_BAD_KEEP, row, field, "%s cannot be kept: %s has no data",
            field->text, build->name);
        return false;
    }
    if (payload == NULL) {
        (void)det_build_report(
            findings, DET_RULE_BAD_KEEP, row, field, "%s cannot be kept: %s of %s has no payload",
            field->text, event->name.text, build->name);
        return false;
    }
    lacking = det_record_field(payload, field->text) == NULL ? payload : data;
    if (det_record_field(lacking, field->text) == NULL) {
        report_no_field(build, row, field, event, lacking);
        return false;
    }
    if (det_build_same_type(
            det_record_field(payload, field->text), det_record_field(data, field->text)))
        return true;
    (void)det_build_report(
        findings, DET_RULE_BAD_KEEP, row, field,
        "%s cannot be kept on %s of %s: it has one type in %s and another in %s", field->text,
        event->name.text, build->name, payload->name, data->name);
    return false;
}

/* Reports one finding per field, for any number of events of the row. */
static void check_keep_of_row(
    struct det_build *build, const struct det_build_row *row, const struct det_build_name *field)
{
    for (uint32_t i = 0; i < row->on.events.count; i++) {
        const struct det_build_row *event =
            det_build_named(build, DET_BUILD_EVENT, &row->on.events.items[i]);

        if (event != NULL && !row->on.is_guess && !check_keep(build, row, field, event))
            return;
    }
}

/* Reports updates of a machine without data: FSM_DATA was probably forgotten. */
static void check_updates(struct det_build *build)
{
    for (size_t i = 0; i < det_build_count(build, DET_BUILD_UPDATE); i++) {
        const struct det_build_row *row = det_build_thing(build, DET_BUILD_UPDATE, i);
        struct det_diagnostic *finding = det_build_report(
            &build->findings, DET_RULE_NO_DATA, row, &row->name,
            "UPDATE(%s) of %s needs #define FSM_DATA, the record of the instance", row->name.text,
            build->name);

        det_build_hint(&build->findings, finding, "name their record: #define FSM_DATA");
    }
}

void det_check_records(struct det_build *build)
{
    size_t errors = build->findings.found[DET_SEVERITY_BROKEN];

    if (build->builder->data == NULL && !det_build_is_component(build))
        check_updates(build);

    check_all_records(build);
    if (build->findings.found[DET_SEVERITY_BROKEN] > errors)
        return;
    for (size_t i = 0; i < build->ons.count; i++) {
        const struct det_build_row *row = build->ons.items[i];

        for (uint32_t j = 0; j < row->on.keeps.count; j++)
            check_keep_of_row(build, row, &row->on.keeps.items[j]);
    }
}
