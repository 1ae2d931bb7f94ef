/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* words.c - names that a definition must not use. */
#include "machine/words.h"

#include <stddef.h>
#include <string.h>

/* Those of C17, and what <stdbool.h> and the compilers' own dialects make of some others. */
static const char *const keywords[] = { "_Alignas",      "_Alignof",  "_Atomic",
                                        "_Bool",         "_Complex",  "_Generic",
                                        "_Imaginary",    "_Noreturn", "_Static_assert",
                                        "_Thread_local", "asm",       "auto",
                                        "bool",          "break",     "case",
                                        "char",          "const",     "continue",
                                        "default",       "do",        "double",
                                        "else",          "enum",      "extern",
                                        "false",         "float",     "for",
                                        "goto",          "if",        "inline",
                                        "int",           "long",      "register",
                                        "restrict",      "return",    "short",
                                        "signed",        "sizeof",    "static",
                                        "struct",        "switch",    "true",
                                        "typedef",       "typeof",    "union",
                                        "unsigned",      "void",      "volatile",
                                        "while" };

static const char *const taken[] = { "machine", "state_name", "state_count", "event_count" };
static const char *const taken_by_instances[] = {
    "send",         "send_with",           "instance_start",    "instance_stop",
    "instance_get", "instance_start_with", "instance_stop_with"
};
static const char *const taken_by_components[] = { "component", "supervise", "offer", "handle_send",
                                                   "handle_state" };

static bool is_among(const char *name, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, words[i]) == 0)
            return true;
    }
    return false;
}

bool det_is_keyword(const char *name)
{
    return is_among(name, keywords, sizeof keywords / sizeof keywords[0]);
}

#define IS_AMONG(name, words) is_among(name, words, sizeof(words) / sizeof(words)[0])

bool det_is_taken_by_template(const char *name, bool is_component)
{
    return IS_AMONG(name, taken) || (is_component ? IS_AMONG(name, taken_by_components)
                                                  : IS_AMONG(name, taken_by_instances));
}
