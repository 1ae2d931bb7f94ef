/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_bind.c - binds functions to a built machine, and frees it. */
#include <string.h>

#include "base/memory.h"
#include "machine/builder_machine.h"

static struct det_built *built_of(struct det_machine *machine)
{
    return (struct det_built *)machine;
}

static const struct det_built *built_of_const(const struct det_machine *machine)
{
    return (const struct det_built *)machine;
}

void det_machine_close(struct det_machine *machine)
{
    struct det_built *built = built_of(machine);

    if (machine == NULL)
        return;
    det_arena_deinit(&built->arena);
    DET_DELETE(built->allocator, built);
}

/* The five kinds of functions differ only in their types. */
#define DEFINE_BIND(kind)                                                    \
    int det_machine_bind_##kind(                                             \
        struct det_machine *machine, const char *name, det_##kind##_fn *run) \
    {                                                                        \
        struct det_built *built = built_of(machine);                         \
                                                                             \
        for (size_t i = 0; i < built->kind##_count; i++) {                   \
            if (strcmp(built->kind##s[i].name, name) == 0) {                 \
                built->kind##s[i].run = run;                                 \
                return 0;                                                    \
            }                                                                \
        }                                                                    \
        return DET_ERR_NOT_FOUND;                                            \
    }

DEFINE_BIND(guard)
DEFINE_BIND(hook)
DEFINE_BIND(update)
DEFINE_BIND(effect)
DEFINE_BIND(fill)

#define DEFINE_AT(kind)                                                     \
    const struct det_##kind##_def *det_machine_##kind##_at(                 \
        const struct det_machine *machine, size_t index)                    \
    {                                                                       \
        const struct det_built *built = built_of_const(machine);            \
                                                                            \
        return index < built->kind##_count ? &built->kind##s[index] : NULL; \
    }

DEFINE_AT(guard)
DEFINE_AT(hook)
DEFINE_AT(update)
DEFINE_AT(fill)
