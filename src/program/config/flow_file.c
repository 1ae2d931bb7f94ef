/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_file.c - loads a flow: its spec, settings, connectors and functions. */
#include "config/flow_file.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include <detent/driver/policy.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "config/file_reader.h"
#include "config/flow_spec_file.h"
#include "config/module.h"
#include "connectors/connectors.h"
#include "os/os.h"
#include "terminal/report.h"

/* What a definition consists of. */
struct loaded {
    struct flow_definition definition; /* first */
    const struct det_allocator *allocator;
    atomic_uint users;
    struct det_arena arena;
    struct det_flow_spec *spec;
    struct det_flow flow; /* that of the spec, with other stages */
    struct det_stage *stages;
    struct modules modules;
};

static struct loaded *loaded_of(struct flow_definition *definition)
{
    return (struct loaded *)(void *)definition;
}

const char *flow_kind_name(enum det_stage_kind kind)
{
    switch (kind) {
    case DET_STAGE_SOURCE:
        return "source";
    case DET_STAGE_TRANSFORM:
        return "transform";
    case DET_STAGE_STATEFUL:
        return "stateful";
    case DET_STAGE_JOIN:
        return "join";
    case DET_STAGE_SINK:
        return "sink";
    }
    return "stage";
}

const struct det_stage *flow_find_stage(const struct det_flow *flow, const char *name)
{
    for (size_t i = 0; i < flow->stage_count; i++) {
        if (strcmp(flow->stages[i].name, name) == 0)
            return &flow->stages[i];
    }
    return NULL;
}

/* Reading. */

static int read_spec(struct cli *cli, const char *path, struct det_flow_spec **ret)
{
    int code = cli_flow_spec_load(cli, path, ret);

    if (code != CLI_OK || det_flow_spec_flow(*ret))
        return code;
    cli_report_broken(cli, path, det_flow_spec_diagnostics(*ret));
    cli_report_error(cli, "%s is not a valid flow; run 'detent check' for details", path);
    return CLI_USAGE;
}

static int copy_stages(struct cli *cli, struct loaded *loaded)
{
    const struct det_flow *flow = det_flow_spec_flow(loaded->spec);

    loaded->stages = det_arena_array(&loaded->arena, flow->stage_count, sizeof *loaded->stages);
    if (!loaded->stages)
        return cli_no_memory(cli);
    memcpy(loaded->stages, flow->stages, flow->stage_count * sizeof *loaded->stages);
    loaded->flow = *flow;
    loaded->flow.stages = loaded->stages;
    loaded->definition.flow = &loaded->flow;
    return CLI_OK;
}

/* Settings. */

static int report_unknown_stage(
    struct cli *cli, const struct loaded *loaded, const struct config_flow_stage *setting)
{
    const char *names[DET_FLOW_STAGES_MAX];
    int nearest;

    for (size_t i = 0; i < loaded->flow.stage_count; i++)
        names[i] = loaded->stages[i].name;
    nearest = det_text_nearest(setting->name, names, loaded->flow.stage_count);
    cli_report_error(
        cli, "the flow %s has no stage '%s'%s%s%s", loaded->flow.name, setting->name,
        nearest >= 0 ? "; did you mean '" : "", nearest >= 0 ? names[nearest] : "",
        nearest >= 0 ? "'?" : "");
    return CLI_USAGE;
}

/* The settings of a stage as text: those of the file, with the given ones instead of or beside
 * them. JSON is YAML, too. */
static int merge_settings(
    struct cli *cli, struct loaded *loaded, struct det_stage *stage, const struct det_datum *given)
{
    const char *text = stage->settings ? stage->settings : "{}";
    struct det_error error = { 0 };
    struct det_datum *own, *all;
    struct det_buffer buffer;
    int r;

    r = det_datum_from_yaml(&loaded->arena, stage->name, text, strlen(text), &own, &error);
    if (r < 0) {
        cli_report_error(cli, "settings of '%s': %s", stage->name, error.text);
        return r == DET_ERR_NO_MEMORY ? CLI_FAILURE : CLI_USAGE;
    }
    all = det_datum_merge(&loaded->arena, own->kind == DET_DATUM_MAP ? own : NULL, given);
    det_buffer_init(&buffer, cli->allocator);
    if (all)
        det_datum_to_json(all, &buffer);
    stage->settings = all && det_buffer_status(&buffer) == 0
                          ? det_arena_copy(&loaded->arena, det_buffer_text(&buffer))
                          : NULL;
    det_buffer_deinit(&buffer);
    return stage->settings ? CLI_OK : cli_no_memory(cli);
}

static int apply_settings(struct cli *cli, struct loaded *loaded, const struct config_flow *config)
{
    int code = CLI_OK;

    for (size_t i = 0; code == CLI_OK && i < config->stage_count; i++) {
        const struct config_flow_stage *setting = &config->stages[i];
        const struct det_stage *stage = flow_find_stage(&loaded->flow, setting->name);

        if (!stage)
            code = report_unknown_stage(cli, loaded, setting);
        else if (!stage->use) {
            cli_report_error(
                cli, "the stage '%s' of the flow %s has no connector, so it has no settings",
                stage->name, loaded->flow.name);
            code = CLI_USAGE;
        } else
            code = merge_settings(
                cli, loaded, &loaded->stages[stage - loaded->stages], setting->settings);
    }
    return code;
}

/* Connectors and functions. */

/* The records of a module have the layout of its compiler, so all stages use these. */
static void take_stage(struct det_stage *stage, const struct det_stage *from)
{
    stage->in = from->in;
    stage->reference = from->reference;
    stage->out = from->out;
    stage->state = from->state;
    if (stage->use)
        return;
    stage->flags = from->flags;
    stage->cursor = from->cursor;
    stage->functions = from->functions;
}

static int load_module(struct cli *cli, struct loaded *loaded)
{
    const char *path = loaded->definition.config.module;
    const struct det_flow *flow = NULL;
    struct det_error error = { 0 };
    int r;

    if (!path)
        return CLI_OK;
    r = modules_load_flow(
        &loaded->modules, path, loaded->definition.folder, &loaded->flow, &flow, &error);
    if (r < 0) {
        cli_report_error(cli, "%s", error.text);
        return r == DET_ERR_NO_MEMORY ? CLI_FAILURE : CLI_USAGE;
    }
    for (size_t i = 0; i < loaded->flow.stage_count; i++) {
        const struct det_stage *from = flow_find_stage(flow, loaded->stages[i].name);

        det_assert(from);
        take_stage(&loaded->stages[i], from);
    }
    return CLI_OK;
}

static int check_stage(struct cli *cli, const struct loaded *loaded, size_t index)
{
    const struct det_stage *stage = &loaded->stages[index];
    struct det_error error = { 0 };
    struct det_diagnostic finding = { .rule = DET_RULE_BAD_CONNECTOR,
                                      .severity = DET_SEVERITY_BROKEN };
    struct cli talk;

    if (stage->functions)
        return CLI_OK;
    if (!stage->use)
        det_error_set(
            &error, DET_ERR_DEFINITION,
            "the stage '%s' is written in C: name a module with its functions, or a connector with "
            "USE(...)",
            stage->name);
    else if (det_connectors_check(stage, loaded->definition.folder, &error) == 0)
        return CLI_OK;
    finding.place = det_flow_spec_text_place(
        loaded->spec, index,
        stage->use && error.code != DET_ERR_NOT_FOUND ? DET_FLOW_TEXT_SETTINGS : DET_FLOW_TEXT_USE,
        0);
    finding.text = error.text;
    talk = cli_aside(cli);
    cli_report(cli->is_json ? cli : &talk, loaded->definition.config.file, &finding);
    cli_aside_end(cli, &talk);
    return CLI_USAGE;
}

/* A test has rows instead of sources and sinks. */
static bool is_needed(
    const struct loaded *loaded, const struct det_stage *stage, enum flow_purpose purpose)
{
    if (purpose == FLOW_TO_CHECK)
        return stage->use || !loaded->definition.config.module;
    return purpose == FLOW_TO_RUN ||
           (stage->kind != DET_STAGE_SOURCE && stage->kind != DET_STAGE_SINK);
}

static int check_stages(struct cli *cli, const struct loaded *loaded, enum flow_purpose purpose)
{
    int code = CLI_OK;

    for (size_t i = 0; i < loaded->flow.stage_count; i++) {
        int one =
            is_needed(loaded, &loaded->stages[i], purpose) ? check_stage(cli, loaded, i) : CLI_OK;

        code = code == CLI_OK ? one : code;
    }
    return code;
}

/* The configuration. */

static const char *copy_text(struct loaded *loaded, const char *text, bool *ret_failed)
{
    const char *copy = text ? det_arena_copy(&loaded->arena, text) : NULL;

    *ret_failed |= text && !copy;
    return copy;
}

static int copy_config(struct cli *cli, struct loaded *loaded, const struct config_flow *config)
{
    struct config_flow *copy = &loaded->definition.config;
    struct det_error error = { 0 };
    bool has_failed = false;
    char folder[DET_PATH_MAX];
    int r;

    *copy = *config;
    copy->stages = NULL;
    copy->stage_count = 0;
    copy->node = copy->file_node = copy->module_node = NULL;
    copy->name = copy_text(loaded, config->name, &has_failed);
    copy->file = copy_text(loaded, config->file, &has_failed);
    copy->module = copy_text(loaded, config->module, &has_failed);
    r = det_policy_resolve(&config->policy, NULL, &copy->policy, &error);
    if (r == 0)
        r = det_file_folder(config->file, folder);
    if (r < 0) {
        cli_report_error(cli, "%s: %s", config->file, *error.text ? error.text : det_error_text(r));
        return cli_exit_of(r);
    }
    loaded->definition.folder = copy_text(loaded, folder, &has_failed);
    return has_failed ? cli_no_memory(cli) : CLI_OK;
}

/* The digest: of all that a pipeline depends on. */

static uint64_t add_text(uint64_t digest, const char *text)
{
    return det_hash64(text ? text : "", text ? strlen(text) + 1 : 0, digest);
}

static uint64_t add_number(uint64_t digest, uint64_t number)
{
    return det_hash_mix(digest, number);
}

static uint64_t add_stage(uint64_t digest, const struct det_stage *stage)
{
    digest = add_text(digest, stage->name);
    digest = add_text(digest, stage->use);
    digest = add_text(digest, stage->settings);
    digest = add_text(digest, stage->key);
    digest = add_text(digest, stage->reference_key);
    for (const char *const *with = stage->with; with && *with; with++)
        digest = add_text(digest, *with);
    digest = add_number(digest, stage->flags);
    digest = add_number(digest, (uint64_t)stage->join);
    digest = add_number(digest, (uint64_t)stage->emission.kind);
    digest = add_number(digest, stage->emission.rows);
    digest = add_number(digest, (uint64_t)stage->emission.time);
    digest = add_number(digest, stage->concurrency);
    digest = add_number(digest, stage->reference_batch);
    return add_number(digest, stage->window);
}

/* A module is built again at the same path. */
static uint64_t add_file(uint64_t digest, const char *path)
{
    struct stat status;

    if (!path || stat(path, &status) < 0)
        return digest;
    digest = add_number(digest, (uint64_t)status.st_ino);
    digest = add_number(digest, (uint64_t)status.st_size);
    return add_number(
        digest, (uint64_t)(status.st_mtim.tv_sec * DET_SECOND + status.st_mtim.tv_nsec));
}

static uint64_t digest_of(const struct loaded *loaded)
{
    const struct config_flow *config = &loaded->definition.config;
    const uint64_t numbers[] = {
        (uint64_t)config->durability,
        (uint64_t)config->is_manual,
        config->retain_size,
        (uint64_t)config->retain_age,
        config->window,
        config->threads,
        (uint64_t)config->stop_timeout,
        (uint64_t)config->policy.restart,
        config->policy.retries_max,
        (uint64_t)config->policy.backoff.first,
        (uint64_t)config->policy.backoff.max,
        det_flow_fingerprint(&loaded->flow),
    };
    uint64_t digest = add_file(add_text(0, loaded->flow.name), config->module);

    digest = add_text(add_text(digest, config->file), config->module);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        digest = add_number(digest, numbers[i]);
    for (size_t i = 0; i < loaded->flow.stage_count; i++)
        digest = add_stage(digest, &loaded->stages[i]);
    return digest;
}

/* Opening and closing. */

static int load(
    struct cli *cli, struct loaded *loaded, const struct config_flow *config,
    enum flow_purpose purpose)
{
    int code = copy_config(cli, loaded, config);

    if (code == CLI_OK)
        code = read_spec(cli, config->file, &loaded->spec);
    if (code == CLI_OK)
        code = copy_stages(cli, loaded);
    if (code == CLI_OK && purpose != FLOW_TO_VIEW)
        code = apply_settings(cli, loaded, config);
    if (code == CLI_OK && (purpose == FLOW_TO_RUN || purpose == FLOW_TO_TEST))
        code = load_module(cli, loaded);
    if (code == CLI_OK && purpose != FLOW_TO_VIEW)
        code = check_stages(cli, loaded, purpose);
    if (code == CLI_OK)
        loaded->definition.digest = digest_of(loaded);
    return code;
}

int flow_definition_open_for(
    struct cli *cli, const struct config_flow *config, enum flow_purpose purpose,
    struct flow_definition **ret)
{
    struct loaded *loaded = DET_NEW(cli->allocator, struct loaded);
    int code;

    if (!loaded)
        return cli_no_memory(cli);
    loaded->allocator = cli->allocator;
    atomic_init(&loaded->users, 1);
    det_arena_init(&loaded->arena, cli->allocator);
    modules_init(&loaded->modules, cli->allocator);
    code = load(cli, loaded, config, purpose);
    if (code == CLI_OK)
        *ret = &loaded->definition;
    else
        flow_definition_close(&loaded->definition);
    return code;
}

int flow_definition_open(
    struct cli *cli, const struct config_flow *config, struct flow_definition **ret)
{
    return flow_definition_open_for(cli, config, FLOW_TO_RUN, ret);
}

struct flow_definition *flow_definition_share(struct flow_definition *definition)
{
    atomic_fetch_add_explicit(&loaded_of(definition)->users, 1, memory_order_relaxed);
    return definition;
}

void flow_definition_close(struct flow_definition *definition)
{
    struct loaded *loaded = definition ? loaded_of(definition) : NULL;

    if (!loaded || atomic_fetch_sub(&loaded->users, 1) > 1)
        return;
    modules_close(&loaded->modules);
    det_flow_spec_close(loaded->spec);
    det_arena_deinit(&loaded->arena);
    DET_DELETE(loaded->allocator, loaded);
}
