/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_names.c - assigns ids to declarations and resolves names. */
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "machine/builder_build.h"
#include "machine/reserved_names.h"

/* Letters that "did you mean" may compare in one build: milliseconds, whatever the definition. */
#define NEAREST_BUDGET ((size_t)4000000)

struct kind {
    const char *text; /* with its article */
    enum det_build_space space;
    enum det_rule unknown; /* rule for an unknown name of this kind */
    size_t count_max;
};

static const struct kind kinds[DET_BUILD_THINGS] = {
    [DET_BUILD_STATE] = { "a state", DET_BUILD_SPACE_ENUMERATORS, DET_RULE_UNKNOWN_STATE,
                          DET_STATES_MAX },
    [DET_BUILD_EVENT] = { "an event", DET_BUILD_SPACE_ENUMERATORS, DET_RULE_UNKNOWN_EVENT,
                          DET_EVENTS_MAX },
    [DET_BUILD_EFFECT] = { "an effect", DET_BUILD_SPACE_FUNCTIONS, DET_RULE_UNKNOWN_EFFECT,
                           DET_EFFECTS_MAX },
    [DET_BUILD_GUARD] = { "a guard", DET_BUILD_SPACE_FUNCTIONS, DET_RULE_UNKNOWN_FUNCTION,
                          SIZE_MAX },
    [DET_BUILD_HOOK] = { "a hook", DET_BUILD_SPACE_FUNCTIONS, DET_RULE_UNKNOWN_FUNCTION, SIZE_MAX },
    [DET_BUILD_UPDATE] = { "an update", DET_BUILD_SPACE_FUNCTIONS, DET_RULE_UNKNOWN_FUNCTION,
                           SIZE_MAX },
    [DET_BUILD_FILL] = { "a fill", DET_BUILD_SPACE_FUNCTIONS, DET_RULE_UNKNOWN_FUNCTION, SIZE_MAX },
    [DET_BUILD_TIMER] = { "a timer", DET_BUILD_SPACE_TIMERS, DET_RULE_UNKNOWN_TIMER,
                          DET_TIMERS_MAX },
    [DET_BUILD_GROUP] = { "a group", DET_BUILD_SPACE_GROUPS, DET_RULE_UNKNOWN_STATE,
                          DET_GROUPS_MAX },
    [DET_BUILD_EVENT_GROUP] = { "an event group", DET_BUILD_SPACE_EVENT_GROUPS,
                                DET_RULE_UNKNOWN_EVENT, DET_GROUPS_MAX },
};

const char *det_build_kind_text(enum det_build_kind kind)
{
    return kinds[kind].text;
}

const char *det_build_kind_noun(enum det_build_kind kind)
{
    return strchr(kinds[kind].text, ' ') + 1;
}

void det_build_init(struct det_build *build, struct det_machine_builder *builder)
{
    /* The author of a spec does not know this address, so cannot make names collide. */
    uint64_t seed = (uint64_t)(uintptr_t)build;

    memset(build, 0, sizeof *build);
    build->builder = builder;
    build->name = builder->name.text != NULL && builder->name.text[0] != '\0' ? builder->name.text
                                                                              : "the machine";
    build->initial = -1;
    build->nearest_budget = NEAREST_BUDGET;
    det_arena_init(&build->scratch, builder->allocator);
    for (size_t i = 0; i < DET_BUILD_SPACES; i++)
        det_map_init(
            &build->names[i], builder->allocator, seed, offsetof(struct det_build_row, name.text));
    for (size_t i = 0; i < 2; i++)
        det_map_init(
            &build->wires[i], builder->allocator, seed, offsetof(struct det_build_row, wire.text));
    det_build_findings_init(&build->findings, builder);
}

void det_build_deinit(struct det_build *build)
{
    for (size_t i = 0; i < DET_BUILD_SPACES; i++)
        det_map_deinit(&build->names[i]);
    for (size_t i = 0; i < 2; i++)
        det_map_deinit(&build->wires[i]);
    det_build_findings_deinit(&build->findings);
    det_arena_deinit(&build->scratch);
}

enum det_unhandled det_build_policy(
    const struct det_build *build, const struct det_build_row *event)
{
    if (event->event.policy != NULL)
        return event->event.policy->policy;
    if (event->event.unhandled != DET_UNHANDLED_ERROR)
        return event->event.unhandled;
    return build->builder->unhandled;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_identifier(const char *text)
{
    if (!is_letter(text[0]))
        return false;
    for (size_t i = 1; text[i] != '\0'; i++) {
        if (!is_letter(text[i]) && !(text[i] >= '0' && text[i] <= '9'))
            return false;
    }
    return true;
}

/* Things of these kinds are functions in C. */
static bool is_function(const struct det_build_row *row)
{
    return row != NULL && row->kind >= DET_BUILD_EFFECT && row->kind <= DET_BUILD_FILL;
}

/* `what` is the use of the name: "a state". */
static void check_name(
    struct det_build *build, const struct det_build_row *row, const struct det_build_name *name,
    const char *what)
{
    struct det_build_findings *findings = &build->findings;
    const char *use =
        is_function(row) ? det_function_name_use(name->text) : det_name_use(name->text);

    if (name->text[0] == '\0')
        (void)det_build_report(
            findings, DET_RULE_BAD_NAME, row, name, "%s of %s has no name", what, build->name);
    else if (strlen(name->text) > DET_NAME_MAX)
        (void)det_build_report(
            findings, DET_RULE_BAD_NAME, row, name, "%.20s... is too long for the name of %s",
            name->text, what);
    else if (use != NULL)
        (void)det_build_report(
            findings, DET_RULE_BAD_NAME, row, name, "%s is %s and cannot be the name of %s",
            name->text, use, what);
    else if (!is_identifier(name->text))
        (void)det_build_report(
            findings, DET_RULE_BAD_NAME, row, name,
            "%s is not an identifier of C and cannot be the name of %s", name->text, what);
}

static void check_machine_name(struct det_build *build)
{
    const struct det_build_name *name = &build->builder->name;

    if (name->text != NULL && name->text[0] != '\0') {
        check_name(build, NULL, name, "a machine");
        return;
    }
    /* A front end that knows the place of the missing name has already reported it. */
    for (const struct det_build_row *row = build->builder->rows; row != NULL; row = row->next) {
        if (row->kind == DET_BUILD_FINDING && row->complaint.rule == DET_RULE_NO_NAME)
            return;
    }
    (void)det_build_report(
        &build->findings, DET_RULE_NO_NAME, NULL, name, "the machine has no name");
}

static void put_name(struct det_build *build, struct det_map *map, struct det_build_row *row)
{
    if (det_map_put(map, row) < 0)
        build->findings.status = DET_ERR_NO_MEMORY;
}

/* Returns true if the name is new; otherwise reports it. */
static bool declare_name(struct det_build *build, struct det_build_row *row)
{
    struct det_map *map = &build->names[kinds[row->kind].space];
    const struct det_build_row *first = det_map_get(map, row->name.text);
    struct det_diagnostic *finding;

    if (first == NULL) {
        put_name(build, map, row);
        return true;
    }
    finding = det_build_report(
        &build->findings, DET_RULE_DUPLICATE_NAME, row, &row->name, "%s is already %s of %s",
        row->name.text, det_build_kind_text(first->kind), build->name);
    det_build_other(&build->findings, finding, first, &first->name);
    return false;
}

static void declare_wire(struct det_build *build, struct det_build_row *row)
{
    struct det_map *map = &build->wires[row->kind == DET_BUILD_EVENT];
    const struct det_build_row *first = det_map_get(map, row->wire.text);
    struct det_diagnostic *finding;

    if (row->wire.given != row->name.given)
        check_name(build, row, &row->wire, det_build_kind_text(row->kind));
    if (row->kind == DET_BUILD_EVENT &&
        det_is_taken_by_template(row->wire.text, det_build_is_component(build)))
        (void)det_build_report(
            &build->findings, DET_RULE_BAD_NAME, row, &row->wire,
            "%s cannot be the name on disk of an event, because the template uses %s_%s "
            "for something else in C",
            row->wire.text, build->name, row->wire.text);
    if (first == NULL) {
        put_name(build, map, row);
        return;
    }
    finding = det_build_report(
        &build->findings, DET_RULE_DUPLICATE_NAME, row, &row->wire,
        "%s is already the name on disk of the %s %s of %s", row->wire.text,
        det_build_kind_noun(first->kind), first->name.text, build->name);
    det_build_other(&build->findings, finding, first, &first->wire);
}

static void declare_row(struct det_build *build, struct det_build_row *row)
{
    struct det_build_list *list = &build->things[row->kind];
    size_t count_max = kinds[row->kind].count_max;

    check_name(build, row, &row->name, det_build_kind_text(row->kind));
    if (row->name.text[0] == '\0' || !declare_name(build, row))
        return;
    if (list->count == count_max) {
        if (!build->is_too_large)
            (void)det_build_report(
                &build->findings, DET_RULE_TOO_LARGE, row, &row->name, "%s has more than %zu %ss",
                build->name, count_max, det_build_kind_noun(row->kind));
        build->is_too_large = true;
        return;
    }
    det_assert(row->kind < DET_BUILD_THINGS && list->count < count_max);
    row->id = (uint32_t)list->count;
    list->items[list->count++] = row;
    if (row->kind == DET_BUILD_STATE || row->kind == DET_BUILD_EVENT)
        declare_wire(build, row);
}

/* Room for the things of every kind and for the ON rows. */
static void make_lists(struct det_build *build)
{
    size_t counts[DET_BUILD_FINDING + 1] = { 0 };

    for (const struct det_build_row *row = build->builder->rows; row != NULL; row = row->next)
        counts[row->kind]++;
    for (size_t kind = 0; kind < DET_BUILD_THINGS; kind++)
        build->things[kind].items =
            det_build_scratch(build, counts[kind], sizeof(struct det_build_row *));
    build->ons.items =
        det_build_scratch(build, counts[DET_BUILD_ON], sizeof(struct det_build_row *));
}

static void check_cell_count(struct det_build *build)
{
    size_t states = det_build_count(build, DET_BUILD_STATE);
    size_t events = det_build_count(build, DET_BUILD_EVENT);

    if (states * events <= DET_CELLS_MAX)
        return;
    (void)det_build_report(
        &build->findings, DET_RULE_TOO_LARGE, NULL, &build->builder->name,
        "%s has %zu states times %zu events, which is more than %d pairs", build->name, states,
        events, DET_CELLS_MAX);
    build->is_too_large = true;
}

/* Returns true if the missing row may be in text that the front end could not read. */
static bool hides_rows(enum det_rule rule)
{
    return rule == DET_RULE_SYNTAX || rule == DET_RULE_UNKNOWN_ROW ||
           rule == DET_RULE_ROW_ARGUMENTS || rule == DET_RULE_BAD_INCLUDE ||
           rule == DET_RULE_TOO_LARGE || rule == DET_RULE_NOT_UTF8 || rule == DET_RULE_NO_NAME;
}

void det_build_declare(struct det_build *build)
{
    check_machine_name(build);
    make_lists(build);
    if (det_build_has_failed(build))
        return;
    for (struct det_build_row *row = build->builder->rows; row != NULL; row = row->next) {
        if (row->kind < DET_BUILD_THINGS)
            declare_row(build, row);
        else if (row->kind == DET_BUILD_ON)
            build->ons.items[build->ons.count++] = row;
        else if (row->kind == DET_BUILD_FINDING && hides_rows(row->complaint.rule))
            build->is_row_missing = true;
    }
    check_cell_count(build);
}

size_t det_build_kind_named(const struct det_build *build, const char *text)
{
    for (size_t i = 0; i < DET_BUILD_SPACES; i++) {
        const struct det_build_row *row = det_map_get(&build->names[i], text);

        if (row != NULL)
            return row->kind;
    }
    return DET_BUILD_THINGS;
}

static bool make_words(struct det_build *build, struct det_build_list *list)
{
    if (list->words != NULL)
        return true;
    list->words = det_build_scratch(build, list->count, sizeof *list->words);
    for (size_t i = 0; i < list->count && list->words != NULL; i++) {
        list->words[i] = list->items[i]->name.text;
        list->letters += strlen(list->words[i]);
    }
    return list->words != NULL;
}

/* Returns the id of the thing with the most similar name, or -1. */
static int32_t nearest_name(struct det_build *build, enum det_build_kind kind, const char *text)
{
    struct det_build_list *list = &build->things[kind];
    size_t cost;

    if (!make_words(build, list))
        return -1;
    cost = list->letters * strlen(text);
    if (cost > build->nearest_budget)
        return -1;
    build->nearest_budget -= cost;
    return det_text_nearest(text, list->words, list->count);
}

/* Returns the extra of a row that lists things of this kind; NULL: none. */
static const char *extra_of(size_t kind)
{
    static const char *const extras[DET_BUILD_THINGS] = {
        [DET_BUILD_EFFECT] = "DO",  [DET_BUILD_GUARD] = "IF",  [DET_BUILD_HOOK] = "CALL",
        [DET_BUILD_UPDATE] = "SET", [DET_BUILD_TIMER] = "ARM",
    };

    return kind < DET_BUILD_THINGS ? extras[kind] : NULL;
}

/* States and events also have names on disk, which only the author knows. */
static void hint_declare(
    struct det_build *build, enum det_build_kind kind, const char *name,
    struct det_diagnostic *finding)
{
    static const char *const forms[DET_BUILD_THINGS][2] = {
        [DET_BUILD_EFFECT] = { "EFFECT", "" },
        [DET_BUILD_GUARD] = { "GUARD", "" },
        [DET_BUILD_HOOK] = { "HOOK", "" },
        [DET_BUILD_UPDATE] = { "UPDATE", "" },
        [DET_BUILD_FILL] = { "FILL", "" },
        [DET_BUILD_TIMER] = { "TIMER", ", SECONDS(...), EVENT" },
    };

    if (forms[kind][0] != NULL)
        det_build_hint(
            &build->findings, finding, DET_BUILD_DECLARE "%s(%s%s)", forms[kind][0], name,
            forms[kind][1]);
}

/* Hints at the remedy for a name of another kind than expected. */
static void hint_unknown(
    struct det_build *build, const struct det_build_row *row, enum det_build_kind expected,
    const struct det_build_name *name, struct det_diagnostic *finding)
{
    const struct det_build_row *meant = det_build_named(build, expected, name);
    size_t kind = det_build_kind_named(build, name->text);
    const char *extra = extra_of(kind);

    if (row->kind == DET_BUILD_ON && extra != NULL && extra_of(expected) != NULL)
        det_build_hint(&build->findings, finding, "did you mean %s(%s)?", extra, name->text);
    else if (meant != NULL)
        det_build_hint(&build->findings, finding, "did you mean %s?", meant->name.text);
    else if (kind == DET_BUILD_THINGS)
        hint_declare(build, expected, name->text, finding);
}

/* Returns the place of a mistake in a list: in its definition, once; the name itself if it is not
 * in a list; NULL if already reported. */
static const struct det_build_name *name_to_blame(
    const struct det_build *build, enum det_build_kind expected, const struct det_build_name *name,
    struct det_build_name *origin)
{
    const struct det_machine_builder *builder = build->builder;
    struct det_build_origin *found =
        builder->origin != NULL && name->given != NULL ? builder->origin(name->given) : NULL;
    uint32_t bit = UINT32_C(1) << expected;

    if (found == NULL)
        return name;
    if ((found->reported & bit) != 0)
        return NULL;
    found->reported |= bit;
    *origin = *name;
    origin->given = found->given;
    return origin;
}

static void report_unknown(
    struct det_build *build, const struct det_build_row *row, enum det_build_kind expected,
    const struct det_build_name *use)
{
    struct det_build_name origin;
    const struct det_build_name *name = name_to_blame(build, expected, use, &origin);
    size_t kind = det_build_kind_named(build, use->text);
    enum det_rule rule = kinds[expected].unknown;
    struct det_diagnostic *finding;

    if (name == NULL)
        return;
    if (kind < DET_BUILD_THINGS)
        finding = det_build_report(
            &build->findings, rule, row, name, "%s is %s of %s, not %s", name->text,
            kinds[kind].text, build->name, kinds[expected].text);
    else
        finding = det_build_report(
            &build->findings, rule, row, name, "%s is not %s of %s", name->text,
            kinds[expected].text, build->name);
    if (name != use)
        det_build_other(&build->findings, finding, row, use);
    hint_unknown(build, row, expected, use, finding);
}

void det_build_resolve_name(
    struct det_build *build, const struct det_build_row *row, enum det_build_kind expected,
    struct det_build_name *name)
{
    const struct det_build_row *thing;

    if (name->text == NULL)
        return;
    if (name->text[0] == '\0') {
        (void)det_build_report(
            &build->findings, DET_RULE_ROW_ARGUMENTS, row, name,
            "a row of %s has an empty name where %s belongs", build->name, kinds[expected].text);
        return;
    }
    thing = det_map_get(&build->names[kinds[expected].space], name->text);
    if (thing != NULL && thing->kind == expected) {
        name->id = (int32_t)thing->id;
        return;
    }
    det_assert(name->id == -1);
    name->id = nearest_name(build, expected, name->text);
    det_assert(name->id < (int32_t)det_build_count(build, expected));
    name->is_guess = name->id >= 0;
    report_unknown(build, row, expected, name);
}
