/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* arch_pure.c - rules of deciding functions: no I/O, clock, allocation, threads or casts of const;
 * and for all sources: no variable that outlives a call. */
#include <stdio.h>
#include <string.h>

#include "worker/arch_parts.h"

#define EXACT  false
#define PREFIX true

static const struct banned {
    enum det_arch_rule rule;
    bool is_prefix;
    const char *name;
} banned_calls[] = {
#define DET_ARCH_CALL(rule, match, name) { DET_ARCH_##rule, match, name },
#include "worker/arch_rules.def"
};

static bool matches(const struct banned *banned, const struct det_code_token *token)
{
    size_t length = strlen(banned->name);

    return (banned->is_prefix ? token->length >= length : token->length == length) &&
           memcmp(banned->name, token->text, length) == 0;
}

/* The first rule that the call breaks on this side, or NULL. */
static const struct banned *banned_by(const struct det_code_token *token, bool is_pure)
{
    for (size_t i = 0; i < sizeof banned_calls / sizeof *banned_calls; i++) {
        if ((banned_calls[i].rule == DET_ARCH_NO_THREAD) != is_pure &&
            matches(&banned_calls[i], token))
            return &banned_calls[i];
    }
    return NULL;
}

/* Writes ", called from link_in_up" for a helper, "" for the function itself. */
static void describe(
    const struct det_arch_function *function, enum det_arch_side side, char *target,
    size_t capacity)
{
    const struct det_arch_function *root = function->root[side];
    const struct det_code_token *name = &root->source->tokens[root->name];

    target[0] = '\0';
    if (root != function)
        (void)snprintf(target, capacity, ", called from %.*s", (int)name->length, name->text);
}

static void check_call(
    struct det_arch *arch, const struct det_arch_function *function, enum det_arch_side side,
    uint32_t index)
{
    const struct det_code_token *token = &function->source->tokens[index];
    const struct det_code_token *name = &function->source->tokens[function->name];
    const struct banned *banned;
    char part[160];

    if (!det_code_is_call(function->source, index) || det_arch_function_named(arch, token) != NULL)
        return;
    banned = banned_by(token, side == DET_ARCH_PURE);
    if (banned == NULL)
        return;
    describe(function, side, part, sizeof part);
    det_arch_report_at(
        arch, banned->rule, function->source, token, "%.*s calls %.*s()%s", (int)name->length,
        name->text, (int)token->length, token->text, part);
}

static bool is_declaring(const struct det_code_token *before)
{
    return (before->kind == DET_CODE_NAME && !det_code_is(before, "return")) ||
           det_code_is(before, ")") || det_code_is(before, "]");
}

/* ( names * ) followed by a value. */
static bool is_cast_without_const(const struct det_arch_source *source, uint32_t open)
{
    uint32_t close = source->tokens[open].match;
    const struct det_code_token *behind = det_code_at(source, close + 1);
    unsigned stars = 0;

    if (!det_code_is(&source->tokens[open], "(") || open == 0 || close <= open + 1 ||
        close >= source->count || is_declaring(&source->tokens[open - 1]))
        return false;
    for (uint32_t i = open + 1; i < close; i++) {
        const struct det_code_token *token = &source->tokens[i];

        stars += det_code_is(token, "*");
        if (det_code_is(token, "const") ||
            (token->kind != DET_CODE_NAME && !det_code_is(token, "*")))
            return false;
    }
    return stars > 0 && det_code_is(&source->tokens[close - 1], "*") &&
           (behind->kind == DET_CODE_NAME || det_code_is(behind, "(") || det_code_is(behind, "&"));
}

static void check_function(struct det_arch *arch, const struct det_arch_function *function)
{
    const struct det_code_token *name = &function->source->tokens[function->name];

    for (uint32_t i = function->body; i < det_arch_body_end(function); i++) {
        if (function->is_on[DET_ARCH_PURE]) {
            check_call(arch, function, DET_ARCH_PURE, i);
            if (is_cast_without_const(function->source, i))
                det_arch_report_at(
                    arch, DET_ARCH_PURE_CAST, function->source, &function->source->tokens[i],
                    "%.*s casts to a pointer that is not const", (int)name->length, name->text);
        }
        if (function->is_on[DET_ARCH_ACTS])
            check_call(arch, function, DET_ARCH_ACTS, i);
        else if (function->is_on[DET_ARCH_OBSERVES])
            check_call(arch, function, DET_ARCH_OBSERVES, i);
    }
}

void det_arch_check_pure(struct det_arch *arch)
{
    for (size_t i = 0; i < arch->function_count; i++)
        check_function(arch, &arch->functions[i]);
}

/* The kind of a declaration up to its ;. */
struct declaration {
    const struct det_code_token *name; /* the last name that may be the declared one */
    bool is_const, is_type, is_function, has_value, has_body;
    unsigned names;
};

static struct declaration read_declaration(
    const struct det_arch_source *source, uint32_t start, uint32_t *ret_end)
{
    struct declaration found = { .name = NULL };
    uint32_t i = start;

    for (; i < source->count && !det_code_is(&source->tokens[i], ";"); i++) {
        const struct det_code_token *token = &source->tokens[i];

        found.is_const |= det_code_is(token, "const");
        found.is_type |=
            i == start && (det_code_is(token, "typedef") || det_code_is(token, "extern") ||
                           det_code_is(token, "_Static_assert"));
        found.has_value |= det_code_is(token, "=");
        if (token->kind == DET_CODE_NAME && !found.has_value) {
            found.names++;
            found.name = token;
        }
        if (det_code_is(token, "(") && !found.has_value) {
            const struct det_code_token *inner = det_code_at(source, i + 1);

            found.is_function |= !det_code_is(inner, "*");
            if (det_code_is(inner, "*") && !found.is_function)
                found.name = det_code_at(source, i + 2);
        }
        if (det_code_is(token, "{") && !found.has_value) {
            found.has_body = true;
            found.name = NULL;
        }
        if (token->match > i)
            i = token->match;
    }
    *ret_end = i;
    return found;
}

static void report_variable(
    struct det_arch *arch, const struct det_arch_source *source, const struct det_code_token *name)
{
    det_arch_report_at(
        arch, DET_ARCH_NO_VARIABLE, source, name, "%.*s is a variable that outlives the call",
        (int)name->length, name->text);
}

/* struct link_deps; declares no variable, struct link_deps deps; does. */
static bool is_tag_only(const struct det_arch_source *source, uint32_t start, unsigned names)
{
    const struct det_code_token *first = &source->tokens[start];

    return names <= 2 && (det_code_is(first, "struct") || det_code_is(first, "union") ||
                          det_code_is(first, "enum"));
}

static uint32_t check_declaration(
    struct det_arch *arch, const struct det_arch_source *source, uint32_t start)
{
    uint32_t end;
    struct declaration found = read_declaration(source, start, &end);

    if (found.name != NULL && !found.is_const && !found.is_type && !found.is_function &&
        found.names > 1 &&
        (found.has_value || found.has_body || !is_tag_only(source, start, found.names)))
        report_variable(arch, source, found.name);
    return end;
}

/* The function that begins at this token of file scope or after it, before the next ;. */
static const struct det_arch_function *function_from(
    const struct det_arch *arch, const struct det_arch_source *source, uint32_t start)
{
    for (size_t i = 0; i < arch->function_count; i++) {
        const struct det_arch_function *function = &arch->functions[i];
        bool is_first = function->source == source && function->name >= start;

        for (uint32_t k = start; is_first && k < function->name; k++)
            is_first = !det_code_is(&source->tokens[k], ";");
        if (is_first)
            return function;
    }
    return NULL;
}

static void check_statics(struct det_arch *arch, const struct det_arch_function *function)
{
    for (uint32_t i = function->body; i < det_arch_body_end(function); i++) {
        struct declaration found;
        uint32_t end;

        if (!det_code_is(&function->source->tokens[i], "static"))
            continue;
        found = read_declaration(function->source, i, &end);
        if (!found.is_const && found.name != NULL)
            report_variable(arch, function->source, found.name);
        i = end;
    }
}

static void check_source(struct det_arch *arch, const struct det_arch_source *source)
{
    uint32_t i = 0;

    while (i < source->count) {
        const struct det_arch_function *function = function_from(arch, source, i);

        if (function != NULL) {
            check_statics(arch, function);
            i = det_arch_body_end(function) + 1;
        } else {
            i = check_declaration(arch, source, i) + 1;
        }
    }
}

void det_arch_check_variables(struct det_arch *arch)
{
    for (size_t i = 0; i < arch->source_count; i++)
        check_source(arch, &arch->sources[i]);
}
