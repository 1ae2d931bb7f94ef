/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stubs.c - the tables of stand-ins: 256 functions of each kind, written by macros. */
#include "testing/stubs.h"

#include "base/assert.h"

/* The only state of the program that is not passed along: update functions get no context. */
static const struct cli_stubs *in_force;

#define STUB(n)                                                                             \
    static bool guard_##n(const struct det_move *move, const void *data, const void *event) \
    {                                                                                       \
        (void)move;                                                                         \
        return in_force->guard(in_force->context, n, data, event);                          \
    }                                                                                       \
    static int hook_##n(const struct det_move *move, const void *data, const void *event)   \
    {                                                                                       \
        (void)move;                                                                         \
        return in_force->hook(in_force->context, n, data, event);                           \
    }                                                                                       \
    static void update_##n(void *data, const void *event)                                   \
    {                                                                                       \
        in_force->update(in_force->context, n, data, event);                                \
    }                                                                                       \
    static void fill_##n(const struct det_move *move, const void *data, void *event)        \
    {                                                                                       \
        (void)data;                                                                         \
        in_force->fill(in_force->context, n, move, event);                                  \
    }                                                                                       \
    static int effect_##n(                                                                  \
        struct det_effect_call *call, const void *data, const void *event, void *ret)       \
    {                                                                                       \
        (void)data;                                                                         \
        (void)event;                                                                        \
        return in_force->effect(in_force->context, n, call, ret);                           \
    }

/* Sixteen times sixteen numbers, 0x00 to 0xff. */
/* clang-format off */
#define SIXTEEN(m, h) \
    m(h##0) m(h##1) m(h##2) m(h##3) m(h##4) m(h##5) m(h##6) m(h##7) \
    m(h##8) m(h##9) m(h##a) m(h##b) m(h##c) m(h##d) m(h##e) m(h##f)
#define ALL(m) \
    SIXTEEN(m, 0x0) SIXTEEN(m, 0x1) SIXTEEN(m, 0x2) SIXTEEN(m, 0x3) \
    SIXTEEN(m, 0x4) SIXTEEN(m, 0x5) SIXTEEN(m, 0x6) SIXTEEN(m, 0x7) \
    SIXTEEN(m, 0x8) SIXTEEN(m, 0x9) SIXTEEN(m, 0xa) SIXTEEN(m, 0xb) \
    SIXTEEN(m, 0xc) SIXTEEN(m, 0xd) SIXTEEN(m, 0xe) SIXTEEN(m, 0xf)
/* clang-format on */

ALL(STUB)

#define GUARD(n)  guard_##n,
#define HOOK(n)   hook_##n,
#define UPDATE(n) update_##n,
#define FILL(n)   fill_##n,
#define EFFECT(n) effect_##n,

static det_guard_fn *const guards[CLI_STUBS_MAX] = { ALL(GUARD) };
static det_hook_fn *const hooks[CLI_STUBS_MAX] = { ALL(HOOK) };
static det_update_fn *const updates[CLI_STUBS_MAX] = { ALL(UPDATE) };
static det_fill_fn *const fills[CLI_STUBS_MAX] = { ALL(FILL) };
static det_effect_fn *const effects_known[CLI_STUBS_MAX] = { ALL(EFFECT) };

static int fail_kind(struct det_error *error, int code, const char *kind)
{
    return det_error_set(error, code, "more than %d %s: too many to simulate", CLI_STUBS_MAX, kind);
}

/* Walks the functions of one kind: what is bound by name here is there, so that cannot fail. */
#define BIND_ALL(kind, table, plural)                                                         \
    static int bind_##kind##s(struct det_machine *machine, struct det_error *reterr)          \
    {                                                                                         \
        const struct det_##kind##_def *def;                                                   \
                                                                                              \
        for (size_t i = 0; (def = det_machine_##kind##_at(machine, i)); i++) {                \
            int r = i < CLI_STUBS_MAX ? det_machine_bind_##kind(machine, def->name, table[i]) \
                                      : fail_kind(reterr, DET_ERR_LIMIT, plural);             \
                                                                                              \
            if (r < 0)                                                                        \
                return r;                                                                     \
        }                                                                                     \
        return 0;                                                                             \
    }

BIND_ALL(guard, guards, "guards")
BIND_ALL(hook, hooks, "hooks")
BIND_ALL(update, updates, "updates")
BIND_ALL(fill, fills, "fills")

static int bind_effects(struct det_machine *machine)
{
    _Static_assert(DET_EFFECTS_MAX <= CLI_STUBS_MAX, "every effect needs a stub");
    int r = 0;

    for (size_t i = 0; i < machine->effect_count && r == 0; i++)
        r = det_machine_bind_effect(machine, machine->effects[i].name, effects_known[i]);
    return r;
}

int cli_stubs_bind(struct det_machine *machine, struct det_error *reterr)
{
    int r;

    r = bind_guards(machine, reterr);
    if (r == 0)
        r = bind_hooks(machine, reterr);
    if (r == 0)
        r = bind_updates(machine, reterr);
    if (r == 0)
        r = bind_fills(machine, reterr);
    if (r == 0)
        r = bind_effects(machine);
    return r;
}

void cli_stubs_use(const struct cli_stubs *stubs)
{
    det_assert(!stubs || !in_force);
    in_force = stubs;
}
