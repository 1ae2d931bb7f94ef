/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reserved_names.c - names that a definition must not use. */
#include "machine/reserved_names.h"

#include <stddef.h>
#include <string.h>

#include "machine/rows.h"

struct reserved {
    const char *name, *use;
};

/* Sorted. */
static const struct reserved reserved_names[] = {
#define DET_RESERVED(name, use) { name, use },
#include "machine/reserved.def"
#undef DET_RESERVED
};

/* Macros of the templates that are not rows. */
static const char *const units[] = { "ANY", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS" };

static const char *const taken[] = { "machine", "state_name", "state_count", "event_count" };
static const char *const taken_by_instances[] = {
    "send",         "send_with",           "instance_start",      "instance_cancel",
    "instance_get", "instance_start_with", "instance_cancel_with"
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

#define IS_AMONG(name, words) is_among(name, words, sizeof(words) / sizeof(words)[0])

/* C reserves names with these prefixes, and the library reserves DET_. */
static bool has_reserved_prefix(const char *name)
{
    return (name[0] == '_' && (name[1] == '_' || (name[1] >= 'A' && name[1] <= 'Z'))) ||
           strncmp(name, "DET_", 4) == 0;
}

const char *det_name_use(const char *name)
{
    size_t low = 0, high = sizeof reserved_names / sizeof reserved_names[0];

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, reserved_names[middle].name);

        if (order == 0)
            return reserved_names[middle].use;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return has_reserved_prefix(name) ? "reserved for C and the library" : NULL;
}

const char *det_function_name_use(const char *name)
{
    if (det_row_find(name, strlen(name)) >= 0 || IS_AMONG(name, units))
        return "a row or a word of specs";
    return det_name_use(name);
}

bool det_is_taken_by_template(const char *name, bool is_component)
{
    return IS_AMONG(name, taken) || (is_component ? IS_AMONG(name, taken_by_components)
                                                  : IS_AMONG(name, taken_by_instances));
}
