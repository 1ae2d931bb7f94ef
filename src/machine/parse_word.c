/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_word.c - the words of the machine itself, FSM_VERSION and so on, for the builder. */
#include <string.h>

#include "base/text.h"
#include "machine/parse.h"

const char *const det_parse_policies[DET_PARSE_POLICY_COUNT] = { "ERROR", "IGNORE", "DEFER",
                                                                 "DEAD_LETTER" };

/* Words of the machine are reported like rows. */
static void fail_word(struct det_spec *spec, const struct det_node *node, const char *problem)
{
    struct det_place place = det_parse_place(node);

    det_parse_report(spec, DET_RULE_ROW_ARGUMENTS, &place, "%s", problem);
}

static void read_version(struct det_spec *spec)
{
    const struct det_node *node = spec->words[DET_WORD_VERSION];
    uint64_t version = 0;

    if (node == NULL)
        return;
    if (node->kind != DET_NODE_NUMBER || det_parse_u64(det_view_text(node->text), &version) < 0 ||
        version == 0 || version > UINT32_MAX)
        fail_word(spec, node, "FSM_VERSION must be a whole number from 1 to 4294967295");
    else
        det_machine_builder_version(spec->builder, (uint32_t)version);
}

/* The builder learns before the first row that this is a component, also from a misspelt word. */
static void read_context(struct det_spec *spec)
{
    const struct det_node *node = spec->words[DET_WORD_CONTEXT];
    const struct det_node *handler = spec->words[DET_WORD_HANDLER];
    struct det_place place;

    if (node == NULL)
        node = spec->guessed_words[DET_WORD_CONTEXT];
    if (node != NULL && node->kind != DET_NODE_NAME)
        fail_word(spec, node, "FSM_CONTEXT is the name of a struct");
    if (handler != NULL && handler->kind != DET_NODE_NAME)
        fail_word(spec, handler, "FSM_HANDLER is the name of a struct");
    if (node != NULL) {
        det_machine_builder_component(spec->builder, node->text);
    } else if (handler != NULL) {
        place = det_parse_place(handler);
        det_parse_report(
            spec, DET_RULE_COMPONENT_ROW, &place,
            "FSM_HANDLER is permitted only in a component: add #define FSM_CONTEXT");
    }
}

static void read_data(struct det_spec *spec)
{
    const struct det_node *node = spec->words[DET_WORD_DATA];
    const struct det_record *record;
    struct det_place place;

    if (node == NULL)
        return;
    if (node->kind != DET_NODE_NAME) {
        fail_word(spec, node, "FSM_DATA is the name of a record");
        return;
    }
    if (spec->words[DET_WORD_CONTEXT] != NULL) {
        place = det_parse_place(node);
        det_parse_report(
            spec, DET_RULE_INSTANCE_ROW, &place,
            "FSM_DATA is not permitted in a component: it keeps what it needs in its context");
        return;
    }
    record = det_parse_record_of(spec, node);
    if (record != NULL)
        det_machine_builder_data(spec->builder, record);
}

static void read_policy(struct det_spec *spec)
{
    const struct det_node *node = spec->words[DET_WORD_UNHANDLED];

    if (node == NULL)
        return;
    for (size_t i = 0; i < DET_PARSE_POLICY_COUNT; i++) {
        if (strcmp(node->text, det_parse_policies[i]) == 0) {
            det_machine_builder_unhandled(spec->builder, (enum det_unhandled)i);
            return;
        }
    }
    fail_word(spec, node, "FSM_UNHANDLED is ERROR, IGNORE, DEFER or DEAD_LETTER");
    det_parse_hint_nearest(spec, node->text, det_parse_policies, DET_PARSE_POLICY_COUNT);
}

const char *det_spec_context(const struct det_spec *spec)
{
    return det_parse_text(spec->words[DET_WORD_CONTEXT]);
}

const char *det_spec_handler(const struct det_spec *spec)
{
    return det_parse_text(spec->words[DET_WORD_HANDLER]);
}

/* Returns the function that the row names in this role, or NULL. */
static const char *function_of(const struct det_node *row, enum det_spec_role role)
{
    const struct det_node *node = row->arguments;

    if (role == DET_SPEC_DISPATCH)
        node = row->row == DET_ROW_DISPATCH && row->argument_count == 3 ? node->next->next : NULL;
    else if (row->row != (role == DET_SPEC_COMPLETION ? DET_ROW_COMPLETION : DET_ROW_INVARIANT))
        node = NULL;
    return det_parse_text(node);
}

static bool is_named_before(
    const struct det_spec *spec, const struct det_node *row, enum det_spec_role role)
{
    const char *name = function_of(row, role);

    for (const struct det_node *other = spec->rows.first; other != row; other = other->next) {
        const char *text = function_of(other, role);

        if (text != NULL && strcmp(text, name) == 0)
            return true;
    }
    return false;
}

const char *det_spec_function(const struct det_spec *spec, enum det_spec_role role, size_t index)
{
    for (const struct det_node *row = spec->rows.first; row != NULL; row = row->next) {
        if (row->is_broken || function_of(row, role) == NULL || is_named_before(spec, row, role))
            continue;
        if (index-- == 0)
            return function_of(row, role);
    }
    return NULL;
}

void det_parse_words(struct det_spec *spec)
{
    read_version(spec);
    read_context(spec);
    read_data(spec);
    read_policy(spec);
}
