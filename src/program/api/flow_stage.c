/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_stage.c - what does not change about a stage of a flow: the settings of its connector
 * without secrets, and the machine of its supervisor. */
#include <string.h>

#include <detent/tool/spec.h>

#include "api/api_internal.h"
#include "codegen/codegen.h"
#include "config/flow_file.h"
#include "daemon/flows.h"
#include "flow/stage_machine.h"
#include "yaml/datum.h"

#define REDACTED "{redacted}"

/* Settings. */

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);

    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

/* A connector takes its secrets from files and from the environment, whose names are shown. Headers
 * may be secrets; so may be what somebody has called one. */
static bool is_secret(const char *key)
{
    static const char *const words[] = { "password", "secret", "token", "bearer", "api_key" };

    if (strcmp(key, "headers") == 0)
        return true;
    if (ends_with(key, "_file") || ends_with(key, "_env") || ends_with(key, "_environment"))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(key, words[i]))
            return true;
    return false;
}

static void write_setting(struct api_call *call, const struct det_datum *item)
{
    struct det_json_writer *json = &call->json;
    struct det_buffer text;

    if (is_secret(item->key)) {
        det_json_text(json, item->key, REDACTED);
        return;
    }
    det_buffer_init(&text, call->api->allocator);
    det_datum_to_json(item, &text);
    if (det_buffer_status(&text) < 0)
        det_json_raw(json, item->key, NULL, 0);
    else
        det_json_raw(json, item->key, text.data, text.size);
    det_buffer_deinit(&text);
}

static int write_settings(
    struct api_call *call, const struct det_stage *stage, struct det_error *reterr)
{
    const char *text = stage->settings ? stage->settings : "{}";
    struct det_datum *root = NULL;
    int r;

    r = det_datum_from_yaml(&call->arena, "settings", text, strlen(text), &root, reterr);
    if (r < 0)
        return r;
    det_json_open(&call->json, "settings", '{');
    for (const struct det_datum *item = root->first; item; item = item->next)
        write_setting(call, item);
    det_json_close(&call->json, '}');
    return 0;
}

/* The machine. */

static int write_spec(
    struct api_call *call, const char *text, size_t size, struct det_error *reterr)
{
    struct det_spec_options options = { .allocator = call->api->allocator };
    struct det_spec *spec = NULL;
    int r;

    r = det_spec_read("stage.fsm", text, size, &options, &spec);
    if (r < 0)
        return det_error_set(reterr, r, "%s", det_error_text(r));
    det_json_open(&call->json, "machine", '{');
    gen_json(&call->json, spec);
    det_json_bool(&call->json, "served", false);
    det_json_open(&call->json, "findings", '[');
    det_json_close(&call->json, ']');
    det_json_close(&call->json, '}');
    det_spec_close(spec);
    return 0;
}

static int write_machine(
    struct api_call *call, const struct det_stage *stage, struct det_error *reterr)
{
    const struct det_machine *machine = det_stage_machine(stage->kind);
    int64_t size = det_machine_write(machine, call->api->allocator, NULL, 0, reterr);
    char *text = size < 0 ? NULL : det_arena_alloc(&call->arena, (size_t)size + 1);

    if (size >= 0 && !text)
        size = det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    if (size >= 0)
        size = det_machine_write(machine, call->api->allocator, text, (size_t)size + 1, reterr);
    return size < 0 ? (int)size : write_spec(call, text, (size_t)size, reterr);
}

static void write_with(struct det_json_writer *json, const struct det_stage *stage)
{
    det_json_open(json, "with", '[');
    for (size_t i = 0; stage->with && stage->with[i]; i++)
        det_json_text(json, NULL, stage->with[i]);
    det_json_close(json, ']');
}

static void write_record(
    struct det_json_writer *json, const char *key, const struct det_record_ref *reference)
{
    const struct det_record *record = det_record_of(*reference);

    det_json_text(json, key, record ? record->name : NULL);
}

static int write_stage(
    struct api_call *call, const struct det_stage *stage, struct det_error *reterr)
{
    struct det_json_writer *json = &call->json;
    int r;

    det_json_open(json, NULL, '{');
    det_json_text(json, "name", stage->name);
    det_json_text(json, "kind", flow_kind_name(stage->kind));
    det_json_text(json, "connector", stage->use);
    write_record(json, "in", &stage->in);
    write_record(json, "reference", &stage->reference);
    write_record(json, "out", &stage->out);
    det_json_text(json, "key", stage->key);
    det_json_text(json, "reference_key", stage->reference_key);
    write_with(json, stage);
    r = write_settings(call, stage, reterr);
    if (r == 0)
        r = write_machine(call, stage, reterr);
    det_json_close(json, '}');
    return r;
}

void api_get_flow_stage(struct api_call *call)
{
    const char *name = call->parameters[0];
    const struct det_stage *stage;
    struct det_error error = { 0 };
    struct up_flow_hold hold;
    int r = 0;

    if (up_flow_hold(call->api->up, name, &hold) < 0) {
        api_fail(call, DET_ERR_NOT_FOUND, "there is no flow '%s'", name);
        return;
    }
    stage = flow_find_stage(hold.definition->flow, call->parameters[1]);
    if (!stage)
        r = det_error_set(
            &error, DET_ERR_NOT_FOUND, "the flow '%s' has no stage '%.96s'", name,
            call->parameters[1]);
    if (r == 0)
        r = write_stage(call, stage, &error);
    up_flow_release(call->api->up, &hold);
    if (r < 0)
        api_fail_with(call, r, &error);
}
