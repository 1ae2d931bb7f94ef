/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* arch_action.c - rules of actions and collect: actions check for cancellation and try once,
 * collect changes nothing, and shared fields are locked. */
#include <string.h>

#include "worker/arch_parts.h"

/* Finds the head and body of the loop that begins with this token; false: no loop begins here. */
static bool is_loop(
    const struct det_arch_source *source, uint32_t index, uint32_t *ret_from, uint32_t *ret_to)
{
    const struct det_code_token *token = &source->tokens[index];
    uint32_t i;

    *ret_from = index + 1;
    if (det_code_is(token, "do") && det_code_is(det_code_at(source, index + 1), "{")) {
        /* Up to the ; after its while (...). */
        i = source->tokens[index + 1].match + 2;
        *ret_to = i < source->count ? source->tokens[i].match : source->count;
        return true;
    }
    if (!det_code_is(token, "for") && !det_code_is(token, "while"))
        return false;
    i = source->tokens[index + 1].match + 1;
    /* while (...) ; is the end of a do, or a loop without a body. */
    while (i < source->count && !det_code_is(&source->tokens[i], ";")) {
        bool is_block = det_code_is(&source->tokens[i], "{");

        if (source->tokens[i].match > i)
            i = source->tokens[i].match;
        if (is_block)
            break;
        i++;
    }
    *ret_to = i;
    return true;
}

static bool is_any(const struct det_code_token *token, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (det_code_is(token, names[i]))
            return true;
    }
    return false;
}

static bool is_wait(const struct det_code_token *token)
{
    static const char *const waits[] = { "det_worker_wait", "sleep",           "usleep",
                                         "nanosleep",       "clock_nanosleep", "thrd_sleep" };

    return is_any(token, waits, sizeof waits / sizeof *waits);
}

static bool begins(const struct det_code_token *token, const char *prefix)
{
    return token->length >= strlen(prefix) && memcmp(token->text, prefix, strlen(prefix)) == 0;
}

static bool finishes(const struct det_code_token *token, const char *end)
{
    size_t length = strlen(end);

    return token->length >= length &&
           memcmp(token->text + token->length - length, end, length) == 0;
}

/* Calls that take no time and cannot fail. */
static bool is_harmless(const struct det_code_token *token)
{
    static const char *const prefixes[] = { "str", "mem", "det_", "is", "to" };
    static const char *const names[] = { "snprintf", "min",      "max", "abs",
                                         "assert",   "offsetof", "free" };
    static const char *const ends[] = {
        "_init", "_deinit", "_free", "_close", "_release", "_clear"
    };

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (finishes(token, ends[i]))
            return true;
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (begins(token, prefixes[i]))
            return true;
    }
    return is_any(token, names, sizeof names / sizeof *names);
}

/* The contents of a loop of an action. */
struct loop {
    const struct det_code_token *work; /* a call that may take long; NULL: none */
    bool waits, asks;
};

static bool sees_cancellation(const struct det_code_token *token)
{
    return det_code_is(token, "det_worker_is_cancelled") || det_code_is(token, "det_worker_wait");
}

static void find_cancellation(
    struct det_arch *arch, const struct det_arch_function *function, void *context)
{
    bool *sees = context;

    (void)arch;
    for (uint32_t i = function->body; i < det_arch_body_end(function); i++)
        *sees |= sees_cancellation(&function->source->tokens[i]);
}

/* True if the call, or a function of these sources that it calls, checks for a cancellation. */
static bool asks(struct det_arch *arch, const struct det_code_token *call)
{
    struct det_arch_function *called = det_arch_function_named(arch, call);
    bool sees = sees_cancellation(call);

    if (called != NULL)
        det_arch_walk(arch, called, find_cancellation, &sees);
    return sees;
}

static bool is_foreign_work(
    const struct det_arch *arch, const struct det_arch_source *source, uint32_t index)
{
    const struct det_code_token *token = &source->tokens[index];

    return det_code_is_call(source, index) && !is_harmless(token) &&
           det_arch_function_named(arch, token) == NULL;
}

static void find_work(
    struct det_arch *arch, const struct det_arch_function *function, void *context)
{
    bool *works = context;

    for (uint32_t i = function->body; i < det_arch_body_end(function); i++)
        *works |= is_foreign_work(arch, function->source, i);
}

/* True if the call may take long: a function of these sources does if it calls others that may. */
static bool is_work(struct det_arch *arch, const struct det_arch_source *source, uint32_t index)
{
    struct det_arch_function *called = det_arch_function_named(arch, &source->tokens[index]);
    bool works = is_foreign_work(arch, source, index);

    if (called != NULL && !is_harmless(&source->tokens[index]))
        det_arch_walk(arch, called, find_work, &works);
    return works;
}

static struct loop read_loop(
    struct det_arch *arch, const struct det_arch_source *source, uint32_t from, uint32_t to)
{
    struct loop loop = { .work = NULL };

    for (uint32_t i = from; i < to && i < source->count; i++) {
        const struct det_code_token *token = &source->tokens[i];

        if (!det_code_is_call(source, i))
            continue;
        loop.asks |= asks(arch, token);
        loop.waits |= is_wait(token);
        if (!is_wait(token) && is_work(arch, source, i))
            loop.work = token;
    }
    return loop;
}

static void check_loops(struct det_arch *arch, const struct det_arch_function *function)
{
    const struct det_arch_source *source = function->source;
    const struct det_code_token *name = &source->tokens[function->name];

    for (uint32_t i = function->body; i < det_arch_body_end(function); i++) {
        uint32_t from, to;
        struct loop loop;

        if (!is_loop(source, i, &from, &to))
            continue;
        loop = read_loop(arch, source, from, to);
        if (loop.work != NULL && loop.waits)
            det_arch_report_at(
                arch, DET_ARCH_ACTION_RETRY, source, &source->tokens[i],
                "%.*s calls %.*s() and waits in a loop", (int)name->length, name->text,
                (int)loop.work->length, loop.work->text);
        else if (loop.work != NULL && !loop.asks)
            det_arch_report_at(
                arch, DET_ARCH_ACTION_CANCEL, source, &source->tokens[i],
                "%.*s calls %.*s() in a loop that does not see a cancellation", (int)name->length,
                name->text, (int)loop.work->length, loop.work->text);
    }
}

static void check_collect(struct det_arch *arch, const struct det_arch_function *function)
{
    for (uint32_t i = function->body; i < det_arch_body_end(function); i++) {
        const struct det_code_token *token = &function->source->tokens[i];
        const struct det_arch_function *called;

        if (!det_code_is_call(function->source, i))
            continue;
        called = det_arch_function_named(arch, token);
        if (called != NULL && called->role == DET_ARCH_ACTION)
            det_arch_report_at(
                arch, DET_ARCH_COLLECT_ACTS, function->source, token,
                "collect calls the action %.*s()", (int)token->length, token->text);
    }
}

void det_arch_check_actions(struct det_arch *arch)
{
    for (size_t i = 0; i < arch->function_count; i++) {
        const struct det_arch_function *function = &arch->functions[i];

        if (function->is_on[DET_ARCH_ACTS])
            check_loops(arch, function);
        if (function->is_on[DET_ARCH_OBSERVES] && function->role != DET_ARCH_ACTION)
            check_collect(arch, function);
    }
}

/* One use of a field of the dependencies. */
struct use {
    const struct det_arch_function *function;
    const struct det_code_token *field;
    bool is_write, is_locked;
};

/* The name of the function's dependencies parameter, or NULL. */
static const struct det_code_token *deps_of(
    const struct det_arch *arch, const struct det_arch_function *function)
{
    const struct det_arch_source *source = function->source;

    for (uint32_t i = function->parameters; i + 2 < function->body; i++) {
        if (arch->facts->deps != NULL && det_code_is(&source->tokens[i], arch->facts->deps) &&
            det_code_is(&source->tokens[i + 1], "*"))
            return &source->tokens[i + 2];
    }
    return NULL;
}

static bool is_locked(const struct det_arch_function *function, uint32_t index)
{
    bool locked = function->is_called_locked;

    for (uint32_t i = function->body; i < index; i++) {
        if (det_code_is(&function->source->tokens[i], "det_worker_lock"))
            locked = true;
        else if (det_code_is(&function->source->tokens[i], "det_worker_unlock"))
            locked = false;
    }
    return locked;
}

/* True if deps -> field at `index` is written: by an operator after it or before it, or as the
 * first argument of a function that writes to its first argument. */
static bool is_written(const struct det_arch_source *source, uint32_t index)
{
    static const char *const marks[] = { "=", "+=", "-=", "|=", "&=", "^=", "++", "--" };
    static const char *const writers[] = { "snprintf", "memcpy",  "memset", "memmove",
                                           "strcpy",   "strncpy", "strcat" };
    uint32_t behind = index + 3;

    while (behind < source->count &&
           (det_code_is(&source->tokens[behind], "[") || det_code_is(&source->tokens[behind], ".")))
        behind = det_code_is(&source->tokens[behind], "[") ? source->tokens[behind].match + 1
                                                           : behind + 2;
    if (is_any(det_code_at(source, behind), marks, sizeof marks / sizeof *marks))
        return true;
    if (index < 2)
        return false;
    if (is_any(&source->tokens[index - 1], marks + 6, 2))
        return true;
    return det_code_is(&source->tokens[index - 1], "(") &&
           is_any(&source->tokens[index - 2], writers, sizeof writers / sizeof *writers);
}

/* The next use in the function from the token on; false: none. */
static bool next_use(
    const struct det_arch *arch, const struct det_arch_function *function, uint32_t *index,
    struct use *ret)
{
    const struct det_arch_source *source = function->source;
    const struct det_code_token *deps = deps_of(arch, function);

    for (uint32_t i = *index; deps != NULL && i + 2 < det_arch_body_end(function); i++) {
        const struct det_code_token *token = &source->tokens[i];

        if (token->length != deps->length || memcmp(token->text, deps->text, deps->length) != 0 ||
            !det_code_is(&source->tokens[i + 1], "->"))
            continue;
        *ret = (struct use){
            .function = function,
            .field = &source->tokens[i + 2],
            .is_write = is_written(source, i),
            .is_locked = is_locked(function, i),
        };
        *index = i + 3;
        return true;
    }
    return false;
}

/* True if the other side uses the field, too, and one of the two writes. */
static bool is_contended(const struct det_arch *arch, const struct use *use, int other_side)
{
    for (size_t i = 0; i < arch->function_count; i++) {
        const struct det_arch_function *function = &arch->functions[i];
        uint32_t index = function->body;
        struct use other;

        while (function->is_on[other_side] && next_use(arch, function, &index, &other)) {
            if (other.field->length == use->field->length &&
                memcmp(other.field->text, use->field->text, use->field->length) == 0 &&
                (use->is_write || other.is_write))
                return true;
        }
    }
    return false;
}

static void check_uses(struct det_arch *arch, const struct det_arch_function *function)
{
    uint32_t index = function->body;
    struct use use;

    while (next_use(arch, function, &index, &use)) {
        bool acts = function->is_on[DET_ARCH_ACTS] && is_contended(arch, &use, DET_ARCH_OBSERVES);
        bool looks = function->is_on[DET_ARCH_OBSERVES] && is_contended(arch, &use, DET_ARCH_ACTS);

        if (use.is_locked || (!acts && !looks))
            continue;
        det_arch_report_at(
            arch, DET_ARCH_DEPS_UNLOCKED, function->source, use.field,
            "%.*s is used by actions and by collect, but here without the lock",
            (int)use.field->length, use.field->text);
    }
}

/* True if an action or collect calls the helper without the lock, or if no function calls it. */
static bool is_called_bare(const struct det_arch *arch, const struct det_arch_function *helper)
{
    bool is_called = false;

    for (size_t i = 0; i < arch->function_count; i++) {
        const struct det_arch_function *caller = &arch->functions[i];

        if (!caller->is_on[DET_ARCH_ACTS] && !caller->is_on[DET_ARCH_OBSERVES])
            continue;
        for (uint32_t k = caller->body; k < det_arch_body_end(caller); k++) {
            if (!det_code_is_call(caller->source, k) ||
                det_arch_function_named(arch, &caller->source->tokens[k]) != helper)
                continue;
            is_called = true;
            if (!is_locked(caller, k))
                return true;
        }
    }
    return !is_called;
}

/* A helper is assumed to be called under the lock until an unlocked call is found. */
static void find_locked_helpers(struct det_arch *arch)
{
    bool is_changed = true;

    for (size_t i = 0; i < arch->function_count; i++)
        arch->functions[i].is_called_locked = arch->functions[i].role == DET_ARCH_HELPER;
    while (is_changed) {
        is_changed = false;
        for (size_t i = 0; i < arch->function_count; i++) {
            struct det_arch_function *function = &arch->functions[i];

            if (function->is_called_locked && is_called_bare(arch, function)) {
                function->is_called_locked = false;
                is_changed = true;
            }
        }
    }
}

void det_arch_check_shared(struct det_arch *arch)
{
    find_locked_helpers(arch);
    for (size_t i = 0; i < arch->function_count; i++) {
        if (arch->functions[i].is_on[DET_ARCH_ACTS] || arch->functions[i].is_on[DET_ARCH_OBSERVES])
            check_uses(arch, &arch->functions[i]);
    }
}
