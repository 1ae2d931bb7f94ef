/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* arch_code.c - finds the functions of a worker's sources, their roles, and their calls. */
#include <string.h>

#include "worker/arch_parts.h"

bool det_code_is_prefix_and_rest(
    const struct det_code_token *token, const char *prefix, const char *rest)
{
    size_t first = strlen(prefix), second = strlen(rest);

    return token->kind == DET_CODE_NAME && token->length == first + second &&
           memcmp(token->text, prefix, first) == 0 &&
           memcmp(token->text + first, rest, second) == 0;
}

static bool is_word_of_c(const struct det_code_token *token)
{
    static const char *const words[] = { "if",     "while",          "for",      "switch", "return",
                                         "sizeof", "_Alignof",       "_Generic", "do",     "else",
                                         "case",   "_Static_assert", "defined",  "typeof" };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (det_code_is(token, words[i]))
            return true;
    }
    return false;
}

bool det_code_is_call(const struct det_arch_source *source, uint32_t index)
{
    const struct det_code_token *token = det_code_at(source, index);
    const struct det_code_token *before = index > 0 ? det_code_at(source, index - 1) : NULL;

    if (token->kind != DET_CODE_NAME || !det_code_is(det_code_at(source, index + 1), "(") ||
        is_word_of_c(token))
        return false;
    return before == NULL || (!det_code_is(before, "->") && !det_code_is(before, "."));
}

uint32_t det_code_argument(
    const struct det_arch_source *source, uint32_t open, unsigned number, uint32_t *ret_end)
{
    uint32_t close = source->tokens[open].match, start = open + 1;

    for (uint32_t i = start; i < close && i < source->count; i++) {
        const struct det_code_token *token = &source->tokens[i];

        if (token->match > i)
            i = token->match;
        else if (det_code_is(token, ",")) {
            if (number-- == 0) {
                *ret_end = i;
                return start;
            }
            start = i + 1;
        }
    }
    *ret_end = close;
    return number == 0 ? start : close;
}

/* The token of the { of a function, NAME ( ... ) { at file scope; 0: none. */
static uint32_t body_of(const struct det_arch_source *source, uint32_t name)
{
    uint32_t close;

    if (!det_code_is_call(source, name))
        return 0;
    close = source->tokens[name + 1].match;
    return close > name + 1 && det_code_is(det_code_at(source, close + 1), "{") ? close + 1 : 0;
}

/* Calls `found` for every function of the source. */
static void each_function(
    struct det_arch *arch, struct det_arch_source *source,
    void (*found)(struct det_arch *, struct det_arch_source *, uint32_t name, uint32_t body))
{
    for (uint32_t i = 0; i < source->count; i++) {
        uint32_t body = body_of(source, i);

        if (body > 0) {
            found(arch, source, i, body);
            i = source->tokens[body].match;
        } else if (source->tokens[i].match > i) {
            i = source->tokens[i].match;
        }
    }
}

static void count_function(
    struct det_arch *arch, struct det_arch_source *source, uint32_t name, uint32_t body)
{
    (void)source;
    (void)name;
    (void)body;
    arch->function_count++;
}

/* The state or action whose function has this name: `middle` is "_in_" or "_do_". */
static bool is_named(
    const struct det_arch *arch, const struct det_code_token *token, const char *middle,
    const char *wire)
{
    size_t name = strlen(arch->facts->name), length = strlen(middle);

    return token->length == name + length + strlen(wire) &&
           memcmp(token->text, arch->facts->name, name) == 0 &&
           memcmp(token->text + name, middle, length) == 0 &&
           memcmp(token->text + name + length, wire, strlen(wire)) == 0;
}

static void find_role(const struct det_arch *arch, struct det_arch_function *function)
{
    static const struct {
        const char *rest;
        enum det_arch_role role;
    } others[] = {
        { "_collect", DET_ARCH_COLLECT },   { "_derive", DET_ARCH_DERIVE },
        { "_children", DET_ARCH_CHILDREN }, { "_open", DET_ARCH_OPEN },
        { "_close", DET_ARCH_CLOSE },
    };
    const struct det_code_token *name = &function->source->tokens[function->name];
    const struct det_worker_spec_summary *facts = arch->facts;

    for (uint16_t i = 0; i < facts->state_count; i++) {
        if (is_named(arch, name, "_in_", facts->states[i].wire)) {
            function->role = DET_ARCH_STATE;
            function->index = i;
        }
    }
    for (uint16_t i = 0; i < facts->action_count; i++) {
        if (is_named(arch, name, "_do_", facts->actions[i].wire)) {
            function->role = DET_ARCH_ACTION;
            function->index = i;
        }
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (det_code_is_prefix_and_rest(name, facts->name, others[i].rest))
            function->role = others[i].role;
    }
}

static void add_function(
    struct det_arch *arch, struct det_arch_source *source, uint32_t name, uint32_t body)
{
    struct det_arch_function *function = &arch->functions[arch->function_count++];

    *function = (struct det_arch_function){
        .source = source,
        .name = name,
        .parameters = name + 1,
        .body = body,
    };
    find_role(arch, function);
    arch->report.state_functions += function->role == DET_ARCH_STATE;
}

struct det_arch_function *det_arch_function_named(
    const struct det_arch *arch, const struct det_code_token *name)
{
    for (size_t i = 0; i < arch->function_count; i++) {
        const struct det_arch_function *function = &arch->functions[i];
        const struct det_code_token *own = &function->source->tokens[function->name];

        if (own->length == name->length && memcmp(own->text, name->text, own->length) == 0)
            return &arch->functions[i];
    }
    return NULL;
}

/* Marks the functions called by this one; true if any is new. */
static bool mark_calls(
    struct det_arch *arch, const struct det_arch_function *function, uint32_t walk)
{
    bool is_new = false;

    for (uint32_t i = function->body; i < det_arch_body_end(function); i++) {
        struct det_arch_function *called;

        if (!det_code_is_call(function->source, i))
            continue;
        called = det_arch_function_named(arch, &function->source->tokens[i]);
        if (called != NULL && called->mark < walk) {
            called->mark = walk;
            is_new = true;
        }
    }
    return is_new;
}

/* A function is marked with `walk` before its visit, and with walk + 1 afterwards. */
void det_arch_walk(
    struct det_arch *arch, struct det_arch_function *function, det_arch_visit *visit, void *context)
{
    uint32_t walk = arch->walks += 2;
    bool is_new = true;

    function->mark = walk;
    while (is_new) {
        is_new = false;
        for (size_t i = 0; i < arch->function_count; i++) {
            struct det_arch_function *next = &arch->functions[i];

            if (next->mark != walk)
                continue;
            next->mark = walk + 1;
            visit(arch, next, context);
            is_new |= mark_calls(arch, next, walk);
        }
    }
}

static int side_of(enum det_arch_role role)
{
    switch (role) {
    case DET_ARCH_STATE:
    case DET_ARCH_DERIVE:
    case DET_ARCH_CHILDREN:
        return DET_ARCH_PURE;
    case DET_ARCH_ACTION:
        return DET_ARCH_ACTS;
    case DET_ARCH_COLLECT:
        return DET_ARCH_OBSERVES;
    case DET_ARCH_HELPER:
    case DET_ARCH_OPEN:
    case DET_ARCH_CLOSE:
        break;
    }
    return -1;
}

struct side {
    int side;
    const struct det_arch_function *root;
};

static void set_side(struct det_arch *arch, const struct det_arch_function *function, void *context)
{
    const struct side *side = context;
    struct det_arch_function *own = &arch->functions[function - arch->functions];

    if (own->is_on[side->side])
        return;
    own->is_on[side->side] = true;
    own->root[side->side] = side->root;
}

void det_arch_find_functions(struct det_arch *arch)
{
    for (size_t i = 0; i < arch->source_count; i++)
        each_function(arch, &arch->sources[i], count_function);
    arch->functions = det_arch_alloc(arch, (arch->function_count + 1) * sizeof *arch->functions);
    arch->function_count = 0;
    if (arch->functions == NULL)
        return;
    for (size_t i = 0; i < arch->source_count; i++)
        each_function(arch, &arch->sources[i], add_function);
    for (size_t i = 0; i < arch->function_count; i++) {
        struct side side = { side_of(arch->functions[i].role), &arch->functions[i] };

        if (side.side >= 0)
            det_arch_walk(arch, &arch->functions[i], set_side, &side);
    }
}
