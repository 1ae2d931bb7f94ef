/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* derive.c - derives the desired state from a spec in its scope: template, YAML, record,
 * derive(). */
#include "worker/derive.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <detent/worker.h>

#include "base/memory.h"
#include "worker/template.h"
#include "yaml/datum_record.h"

/* The argument of derive(), and its refusal. */
struct refusal {
    struct det_derive derive;
    char text[DET_ERROR_TEXT_MAX];
};

/* A derivation in progress. */
struct work {
    const struct det_allocator *allocator;
    const struct det_derivation *what;
    struct det_error *error;
    struct det_arena arena;
    struct det_buffer rendered;
    const struct det_record *config_record, *desired_record;
    void *config, *desired; /* structs of the two records; the same one without derive() */
    enum det_derive_step step;
};

static int no_memory(struct work *work)
{
    return det_error_set(
        work->error, DET_ERR_NO_MEMORY, "%s: out of memory", work->what->identity->id);
}

static const struct det_datum *make_root(struct work *work)
{
    static const struct det_scope_values nothing;
    const struct det_derivation *what = work->what;
    const struct det_scope_values *scope = what->scope ? what->scope : &nothing;
    const struct det_internals internals = { what->identity->id, what->parent_id,
                                             what->created_at };
    struct det_location location = det_location_merge(&scope->location, &what->spec->location);
    const struct det_datum *variables = scope->variables;
    const char *path = det_location_path(&work->arena, &location);

    if (what->spec->variables) {
        variables = det_datum_merge(&work->arena, scope->variables, what->spec->variables);
        if (!variables)
            return NULL;
    }
    return path ? det_variables_root(&work->arena, variables, scope->globals, path, &internals)
                : NULL;
}

static int render(struct work *work)
{
    const char *config = work->what->spec->config;
    struct det_template *template;
    const struct det_datum *root;
    int r;

    if (!config)
        return 0;
    r = det_template_open(
        work->allocator, "config", config, strlen(config), &template, work->error);
    if (r < 0)
        return r;
    root = make_root(work);
    if (root)
        r = det_template_render(template, root, &work->rendered, work->error);
    else
        r = no_memory(work);
    det_template_close(template);
    return r;
}

/* Without templates, places in errors are those of the text; else those of the rendered text. */
static int read_config(struct work *work)
{
    const char *text = det_buffer_text(&work->rendered);
    const char *config = work->what->spec->config;
    const char *name = config && strcmp(config, text) != 0 ? "config as rendered" : "config";
    struct det_datum *datum;
    int r;

    r = det_datum_from_yaml(&work->arena, name, text, work->rendered.size, &datum, work->error);
    if (r < 0)
        return r;
    return det_datum_to_record(datum, name, work->config_record, work->config, work->error);
}

DET_PRINTF(2, 3)
static int refuse(struct det_derive *derive, const char *format, ...)
{
    struct refusal *refusal = (struct refusal *)(void *)derive;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(refusal->text, sizeof refusal->text, format, arguments);
    va_end(arguments);
    return DET_ERR_REFUSED;
}

static int ask_kind(struct work *work)
{
    const struct det_worker_kind *kind = work->what->kind;
    struct refusal refusal = {
        .derive = {
            .identity = work->what->identity,
            .config = det_buffer_text(&work->rendered),
            .refuse = refuse,
        },
    };
    int r;

    r = kind->derive(&refusal.derive, work->config, work->desired);
    if (r >= 0)
        return 0;
    if (*refusal.text)
        return det_error_set(work->error, r, "config: %s", refusal.text);
    return det_error_set(
        work->error, r, "config: derive() of the kind %s failed: %s", kind->name,
        det_error_text(r));
}

/* Copies through the encoded bytes, which validates the value, and drops padding, absent values and
 * bytes after the end of a text. */
static int hand_over(struct work *work, void *desired)
{
    size_t capacity = det_record_encoded_max(work->desired_record);
    void *bytes = det_alloc(work->allocator, capacity);
    int64_t size;
    int r;

    if (!bytes)
        return no_memory(work);
    size = det_record_encode(work->desired_record, work->desired, bytes, capacity, work->error);
    r = (int)(size < 0 ? size : 0);
    if (r == 0)
        r = det_record_decode(work->desired_record, bytes, (size_t)size, desired, work->error);
    if (r == 0)
        work->step = DET_DERIVE_DONE;
    det_free(work->allocator, bytes, capacity);
    return r;
}

static int derive_all(struct work *work, void *desired)
{
    int r;

    work->step = DET_DERIVE_TEMPLATE;
    r = render(work);
    if (r < 0)
        return r;
    work->step = DET_DERIVE_CONFIG;
    r = read_config(work);
    if (r < 0)
        return r;
    if (work->what->kind->derive) {
        work->step = DET_DERIVE_REFUSED;
        r = ask_kind(work);
        if (r < 0)
            return r;
    }
    work->step = DET_DERIVE_INVALID;
    return hand_over(work, desired);
}

static const struct det_record *record_or(
    struct det_record_ref ref, const struct det_record *otherwise)
{
    const struct det_record *record = det_record_of(ref);

    return record ? record : otherwise;
}

/* A separate struct, so that a derive() that fails halfway does not change the last good desired
 * state. */
static int make_room(struct work *work)
{
    work->desired = det_alloc_zero(work->allocator, work->desired_record->size);
    if (!work->desired)
        return no_memory(work);
    work->config = work->desired;
    if (!work->what->kind->derive)
        return 0;
    work->config = det_alloc_zero(work->allocator, work->config_record->size);
    return work->config ? 0 : no_memory(work);
}

static void free_room(struct work *work)
{
    if (work->config && work->config != work->desired)
        det_free(work->allocator, work->config, work->config_record->size);
    if (work->desired)
        det_free(work->allocator, work->desired, work->desired_record->size);
}

int det_derive_desired(
    const struct det_allocator *allocator, const struct det_derivation *what, void *desired,
    enum det_derive_step *ret_step, struct det_error *reterr)
{
    struct work work = { .allocator = allocator, .what = what, .error = reterr };
    int r;

    work.desired_record = record_or(what->kind->desired, det_empty_record());
    work.config_record = what->kind->derive ? record_or(what->kind->config, work.desired_record)
                                            : work.desired_record;
    det_arena_init(&work.arena, allocator);
    det_buffer_init(&work.rendered, allocator);
    r = make_room(&work);
    if (r == 0)
        r = derive_all(&work, desired);
    if (ret_step)
        *ret_step = work.step;
    free_room(&work);
    det_buffer_deinit(&work.rendered);
    det_arena_deinit(&work.arena);
    return r;
}
