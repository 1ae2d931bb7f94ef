/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_recovery.c - makes one mistake one finding.
 *
 * A row with a mistake still declares its name, if the name can be read. Where it cannot, or where
 * a whole part of the text is lost, the rules that may now seem broken are suspects: their findings
 * are dropped, unless they look like separate mistakes. Invariants:
 *
 *   1. a broken definition has at least one error among its findings;
 *   2. no finding about a text without mistakes is dropped. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "machine/builder_findings.h"
#include "machine/parse.h"

/* Maximum number of lists tried for "did you mean". */
#define LISTS_MAX 256

bool det_parse_is_name(const struct det_spec *spec, const struct det_node *node)
{
    return node != NULL && node->kind == DET_NODE_NAME && node->width <= DET_NAME_MAX &&
           strcmp(node->text, "END") != 0 && det_map_get(&spec->macro_map, node->text) == NULL;
}

void det_parse_suspect(struct det_spec *spec, enum det_rule rule)
{
    det_assert(det_rule_severity(rule) == DET_SEVERITY_BROKEN);
    spec->suspects[rule] = true;
    /* A mistake in the fields of a record may be in the record of the data. */
    if (rule == DET_RULE_BAD_KEEP)
        spec->suspects[DET_RULE_NO_DATA] = true;
}

void det_parse_suspect_all(struct det_spec *spec)
{
    static const enum det_rule rules[] = {
        DET_RULE_UNKNOWN_STATE, DET_RULE_UNKNOWN_EVENT,    DET_RULE_UNKNOWN_EFFECT,
        DET_RULE_UNKNOWN_TIMER, DET_RULE_UNKNOWN_FUNCTION, DET_RULE_UNKNOWN_RECORD,
        DET_RULE_BAD_KEEP,      DET_RULE_OVERRIDE_NOTHING, DET_RULE_ELSE_NOTHING,
    };

    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        det_parse_suspect(spec, rules[i]);
}

void det_parse_suspect_after(struct det_spec *spec, enum det_rule rule)
{
    if (rule == DET_RULE_BAD_INCLUDE || rule == DET_RULE_NOT_UTF8 || rule == DET_RULE_TOO_LARGE)
        det_parse_suspect_all(spec);
    else if (rule == DET_RULE_UNKNOWN_RECORD || rule == DET_RULE_BAD_RECORD)
        det_parse_suspect(spec, DET_RULE_BAD_KEEP);
}

/* Returns the name in an argument, or NULL. */
static const char *name_in(const struct det_spec *spec, const struct det_node *node)
{
    return det_parse_is_name(spec, node) ? node->text : NULL;
}

/* Returns the name on disk in the second argument; if it is missing, the name in C. */
static const char *wire_in(const struct det_spec *spec, const struct det_node *row)
{
    return name_in(spec, row->arguments->next);
}

/* INITIAL is not read: NO_INITIAL is a suspect while a row has a mistake. */
static void declare_state(struct det_spec *spec, const struct det_node *row)
{
    struct det_state_row state = { .name = row->arguments->text, .wire = wire_in(spec, row) };

    det_machine_builder_state(spec->builder, &state);
}

static void declare_event(struct det_spec *spec, const struct det_node *row)
{
    struct det_event_row event = {
        .name = row->arguments->text,
        .wire = wire_in(spec, row),
        .is_internal = row->row == DET_ROW_INTERNAL,
    };

    det_machine_builder_event(spec->builder, &event);
    det_parse_suspect(spec, DET_RULE_BAD_KEEP);
}

static void declare_effect(struct det_spec *spec, const struct det_node *row)
{
    struct det_effect_row effect = { .name = row->arguments->text };

    det_machine_builder_effect(spec->builder, &effect);
}

static void declare_guard(struct det_spec *spec, const struct det_node *row)
{
    det_machine_builder_guard(spec->builder, row->arguments->text, NULL);
}

static void declare_hook(struct det_spec *spec, const struct det_node *row)
{
    det_machine_builder_hook(spec->builder, row->arguments->text, NULL);
}

static void declare_update(struct det_spec *spec, const struct det_node *row)
{
    det_machine_builder_update(spec->builder, row->arguments->text, NULL);
}

static void declare_fill(struct det_spec *spec, const struct det_node *row)
{
    det_machine_builder_fill(spec->builder, row->arguments->text, NULL);
}

/* A timer needs an event; any known one is enough. */
static void declare_timer(struct det_spec *spec, const struct det_node *row)
{
    struct det_timer_row timer = { .name = row->arguments->text };

    if (spec->event_count == 0) {
        det_parse_suspect(spec, DET_RULE_UNKNOWN_TIMER);
        return;
    }
    timer.timeout = (struct det_timeout_row){ DET_SECOND, spec->event_names[0], NULL };
    det_machine_builder_timer(spec->builder, &timer);
}

struct declaration {
    enum det_row row;
    enum det_rule unknown; /* the rule that other rows break if this one is missing */
    void (*declare)(struct det_spec *spec, const struct det_node *row);
};

static const struct declaration declarations[] = {
    { DET_ROW_STATE, DET_RULE_UNKNOWN_STATE, declare_state },
    { DET_ROW_EVENT, DET_RULE_UNKNOWN_EVENT, declare_event },
    { DET_ROW_INTERNAL, DET_RULE_UNKNOWN_EVENT, declare_event },
    { DET_ROW_EFFECT, DET_RULE_UNKNOWN_EFFECT, declare_effect },
    { DET_ROW_TIMER, DET_RULE_UNKNOWN_TIMER, declare_timer },
    { DET_ROW_GUARD, DET_RULE_UNKNOWN_FUNCTION, declare_guard },
    { DET_ROW_HOOK, DET_RULE_UNKNOWN_FUNCTION, declare_hook },
    { DET_ROW_UPDATE, DET_RULE_UNKNOWN_FUNCTION, declare_update },
    { DET_ROW_FILL, DET_RULE_UNKNOWN_FUNCTION, declare_fill },
};

/* The broken row may contain something that a machine must have. */
static void suspect_what_is_missing(struct det_spec *spec)
{
    static const enum det_rule rules[] = {
        DET_RULE_NO_STATES,        DET_RULE_NO_INITIAL,      DET_RULE_NOT_ENTERED,
        DET_RULE_NOT_TAKEN,        DET_RULE_NOT_PRODUCED,    DET_RULE_TIMEOUT_UNANSWERED,
        DET_RULE_DISPATCH_MISSING, DET_RULE_FAILURE_MISSING, DET_RULE_FAILURE_UNTAKEN,
        DET_RULE_CLOSED_UNTAKEN,
    };

    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        det_parse_suspect(spec, rules[i]);
}

static void salvage_row(struct det_spec *spec, const struct det_node *row)
{
    for (size_t i = 0; i < sizeof declarations / sizeof *declarations; i++) {
        if (declarations[i].row != row->row)
            continue;
        if (name_in(spec, row->arguments) != NULL)
            declarations[i].declare(spec, row);
        else
            det_parse_suspect(spec, declarations[i].unknown);
        return;
    }
    /* A later row may override this one, or be its alternative. */
    det_parse_suspect(spec, DET_RULE_OVERRIDE_NOTHING);
    det_parse_suspect(spec, DET_RULE_ELSE_NOTHING);
    if (row->row == DET_ROW_OVERRIDE || row->row == DET_ROW_OVERRIDE_STAY ||
        row->row == DET_ROW_OVERRIDE_STOP)
        det_parse_suspect(spec, DET_RULE_ELSE_NEVER);
}

void det_parse_declare_readable(struct det_spec *spec)
{
    for (const struct det_node *row = spec->rows.first; row != NULL && spec->error == 0;
         row = row->next) {
        if (!row->is_broken)
            continue;
        suspect_what_is_missing(spec);
        salvage_row(spec, row);
    }
}

static bool is_about_a_name(enum det_rule rule)
{
    return rule == DET_RULE_UNKNOWN_STATE || rule == DET_RULE_UNKNOWN_EVENT ||
           rule == DET_RULE_UNKNOWN_EFFECT || rule == DET_RULE_UNKNOWN_TIMER ||
           rule == DET_RULE_UNKNOWN_FUNCTION || rule == DET_RULE_UNKNOWN_RECORD;
}

/* Returns true if the finding has a suggestion. */
static bool is_nearly_right(const struct det_diagnostic *finding)
{
    return finding->hint != NULL &&
           strncmp(finding->hint, DET_BUILD_DECLARE, strlen(DET_BUILD_DECLARE)) != 0;
}

/* A name that is nearly right is a separate mistake. */
static bool is_suspect(const struct det_spec *spec, const struct det_diagnostic *finding)
{
    return spec->is_text_broken && spec->suspects[finding->rule] &&
           (!is_nearly_right(finding) || !is_about_a_name(finding->rule));
}

/* Adds the hint and the other place of the complaint. */
static void complete_finding(const struct det_spec *spec, struct det_diagnostic *finding)
{
    const struct det_finding *complaint = spec->complaints;

    for (; complaint != NULL; complaint = complaint->next) {
        if (complaint->rule == finding->rule && complaint->place.file == finding->place.file &&
            complaint->place.line == finding->place.line &&
            complaint->place.column == finding->place.column &&
            strcmp(complaint->text, finding->text) == 0) {
            finding->hint = complaint->hint;
            if (complaint->other.line > 0)
                finding->other = complaint->other;
            return;
        }
    }
}

/* Returns the list with a name similar to the word at the place; NULL: none. */
static const char *list_near(const struct det_spec *spec, const struct det_place *place)
{
    const char *names[LISTS_MAX];
    char word[DET_NAME_MAX + 1];
    size_t count = 0;
    int nearest;

    (void)snprintf(
        word, sizeof word, "%.*s", (int)place->width, place->source + (place->column - 1));
    for (const struct det_macro *macro = spec->macros; macro != NULL && count < LISTS_MAX;
         macro = macro->next)
        names[count++] = macro->name;
    nearest = det_text_nearest(word, names, count);
    return nearest >= 0 ? names[nearest] : NULL;
}

/* Hints at a list: the builder knows names of states and events, not of lists. */
static void hint_list(struct det_spec *spec, struct det_diagnostic *finding)
{
    char text[DET_NAME_MAX + 32];
    const char *list;

    if (!is_about_a_name(finding->rule) || finding->rule == DET_RULE_UNKNOWN_RECORD ||
        is_nearly_right(finding) || finding->place.source == NULL)
        return;
    list = list_near(spec, &finding->place);
    if (list == NULL)
        return;
    (void)snprintf(text, sizeof text, "did you mean %.*s?", DET_NAME_MAX, list);
    finding->hint = det_arena_copy(&spec->arena, text);
    if (finding->hint == NULL)
        spec->error = DET_ERR_NO_MEMORY;
}

void det_parse_drop_suspects(struct det_spec *spec)
{
    struct det_diagnostics *found = &spec->diagnostics;
    struct det_diagnostic *items;
    size_t kept = 0, errors = 0;

    if (!spec->is_text_broken && (spec->macros == NULL || found->error_count == 0))
        return;
    items = det_parse_alloc(spec, (found->count + 1) * sizeof *items);
    for (size_t i = 0; i < found->count && items != NULL; i++) {
        items[kept] = found->items[i];
        complete_finding(spec, &items[kept]);
        hint_list(spec, &items[kept]);
        if (is_suspect(spec, &items[kept]))
            continue;
        errors += items[kept].severity == DET_SEVERITY_BROKEN;
        kept++;
    }
    /* The builder keeps a limited number of findings, perhaps without the first mistake. */
    if (errors == 0)
        return;
    det_assert(spec->machine == NULL);
    /* All suspects are errors. */
    det_assert(kept <= found->count && found->count - kept <= found->error_count);
    found->error_count -= found->count - kept;
    found->items = items;
    found->count = kept;
}
