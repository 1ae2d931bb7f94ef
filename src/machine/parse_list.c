/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_list.c - list macros, and the lists of names that rows have.
 *
 * A macro is flattened once, after the macros in it, by a walk that stores its way back in the
 * macros:
 *
 *     NEW --met--> OPEN --all members are flat--> DONE
 *
 * Meeting an OPEN macro means that it contains itself. */
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "machine/parse.h"

static void report_macro(
    struct det_spec *spec, enum det_rule rule, const struct det_node *node, const char *problem)
{
    struct det_place place = det_parse_place(node);

    det_parse_report(spec, rule, &place, "%.*s %s", DET_NAME_MAX, node->text, problem);
}

static uint64_t count_members(const struct det_spec *spec, const struct det_macro *macro)
{
    uint64_t count = 0;

    for (const struct det_node *node = macro->members; node != NULL; node = node->next) {
        const struct det_macro *inner = det_map_get(&spec->macro_map, node->text);

        count += inner != NULL ? inner->flat_count : 1;
    }
    return count;
}

/* All uses of the member share one origin, at any depth. */
static struct det_build_origin *new_origin(struct det_spec *spec, const struct det_node *member)
{
    struct det_build_origin *origin = det_parse_alloc(spec, sizeof *origin);

    if (origin != NULL)
        origin->given = member->text;
    return origin;
}

/* All macros in it are flat. */
static void flatten_macro(struct det_spec *spec, struct det_macro *macro)
{
    uint64_t count = count_members(spec, macro);

    det_assert(macro->state == DET_MACRO_OPEN && macro->cursor == NULL && macro->flat_count == 0);
    macro->state = DET_MACRO_DONE;
    if (count > DET_LIST_MAX) {
        report_macro(spec, DET_RULE_TOO_LARGE, macro->at, "has more than 64 names");
        return;
    }
    macro->flat = det_parse_alloc(spec, (size_t)(count + 1) * sizeof(struct det_build_origin *));
    if (macro->flat == NULL)
        return;
    for (const struct det_node *node = macro->members; node != NULL; node = node->next) {
        const struct det_macro *inner = det_map_get(&spec->macro_map, node->text);

        for (uint32_t i = 0; inner != NULL && i < inner->flat_count; i++)
            macro->flat[macro->flat_count++] = inner->flat[i];
        if (inner == NULL)
            macro->flat[macro->flat_count++] = new_origin(spec, node);
    }
    det_assert(macro->flat_count == count);
}

static void open_macro(struct det_macro *macro, struct det_macro *parent)
{
    macro->state = DET_MACRO_OPEN;
    macro->cursor = macro->members;
    macro->parent = parent;
}

/* Processes one member of `macro`; returns the macro to continue with. */
static struct det_macro *take_member(struct det_spec *spec, struct det_macro *macro)
{
    const struct det_node *node = macro->cursor;
    struct det_macro *inner;

    if (node == NULL) {
        flatten_macro(spec, macro);
        return macro->parent;
    }
    macro->cursor = node->next;
    inner = det_map_get(&spec->macro_map, node->text);
    if (inner == NULL || inner->state == DET_MACRO_DONE)
        return macro;
    if (inner->state == DET_MACRO_OPEN) {
        report_macro(spec, DET_RULE_SYNTAX, node, "is a list that contains itself");
        return macro;
    }
    open_macro(inner, macro);
    return inner;
}

static void check_prefix(struct det_spec *spec, const struct det_macro *macro)
{
    const struct det_node *prefix = spec->words[DET_WORD_PREFIX];
    size_t length = prefix != NULL ? strlen(prefix->text) : 0;
    struct det_place place = det_parse_place(macro->at);

    if (prefix == NULL ||
        (strncmp(macro->name, prefix->text, length) == 0 && macro->name[length] == '_'))
        return;
    det_parse_report(
        spec, DET_RULE_GROUP_NAME, &place,
        "the list %.*s does not begin with %.*s_, and stays defined in C", DET_NAME_MAX,
        macro->name, DET_NAME_MAX, prefix->text);
}

void det_parse_macros(struct det_spec *spec)
{
    for (struct det_macro *macro = spec->macros; macro != NULL; macro = macro->next) {
        struct det_macro *current = macro;

        check_prefix(spec, macro);
        if (macro->state != DET_MACRO_NEW)
            continue;
        open_macro(macro, NULL);
        while (current != NULL && spec->error == 0)
            current = take_member(spec, current);
        det_assert(macro->state == DET_MACRO_DONE || spec->error < 0);
    }
}

/* Makes a node for a member of a macro, at the place where the macro is used. */
static const char *member_at(
    struct det_spec *spec, const struct det_node *use, struct det_build_origin *origin)
{
    size_t length = strlen(origin->given);
    struct det_node *node = det_parse_alloc(spec, sizeof *node + length + 1);

    if (node == NULL)
        return NULL;
    *node = *use;
    node->kind = DET_NODE_NAME;
    node->origin = origin;
    /* The node was copied with the first bytes of another text. */
    memcpy(node->text, origin->given, length + 1);
    return node->text;
}

static void report_list(
    struct det_spec *spec, enum det_rule rule, const struct det_node *node, const char *call,
    const char *problem)
{
    struct det_place place = det_parse_place(node);

    det_parse_report(spec, rule, &place, "the list in %s %s", call, problem);
}

/* Returns the number of names in the expanded list; DET_LIST_MAX + 1 if there are too many. */
static uint32_t count_names(struct det_spec *spec, const struct det_node *first)
{
    uint32_t count = 0;

    for (; first != NULL && count <= DET_LIST_MAX; first = first->next) {
        const struct det_macro *macro = det_map_get(&spec->macro_map, first->text);

        count += macro != NULL ? macro->flat_count : 1;
    }
    return count > DET_LIST_MAX ? DET_LIST_MAX + 1 : count;
}

static bool are_names(
    struct det_spec *spec, const struct det_node *call, const struct det_node *first,
    const char *what)
{
    for (; first != NULL; first = first->next) {
        struct det_place place = det_parse_place(first);

        if (first->kind == DET_NODE_NAME)
            continue;
        det_parse_report(
            spec, DET_RULE_ROW_ARGUMENTS, &place, "%s has names only: %s", call->text, what);
        return false;
    }
    return true;
}

const char *const *det_parse_list(
    struct det_spec *spec, const struct det_node *call, const struct det_node *first,
    const char *what)
{
    uint32_t count = count_names(spec, first), used = 0;
    const char **names;

    if (!are_names(spec, call, first, what))
        return NULL;
    if (count > DET_LIST_MAX) {
        report_list(spec, DET_RULE_TOO_LARGE, first, call->text, "has more than 64 names");
        return NULL;
    }
    spec->member_count += count;
    if (spec->member_count > DET_PARSE_MEMBERS_MAX) {
        report_list(
            spec, DET_RULE_TOO_LARGE, first, call->text,
            "is too long: all lists together have more than 262144 names");
        return NULL;
    }
    names = det_parse_alloc(spec, (count + 1) * sizeof *names);
    for (; names != NULL && first != NULL; first = first->next) {
        const struct det_macro *macro = det_map_get(&spec->macro_map, first->text);

        for (uint32_t i = 0; macro != NULL && i < macro->flat_count; i++)
            names[used++] = member_at(spec, first, macro->flat[i]);
        if (macro == NULL)
            names[used++] = first->text;
    }
    det_assert(names == NULL || used == count);
    return spec->error == 0 ? names : NULL;
}
