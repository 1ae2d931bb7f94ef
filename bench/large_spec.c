/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* large_spec.c - a machine of 2,000 rows, as a spec, as C that includes it, and as plain C.
 *
 * A ring of 100 states by timeouts, 17 events that jump about in it, and on the jumps every part of
 * a row: guards, hooks, updates, effects, kept fields. The spec has neither errors nor warnings. */
#include "large_spec.h"

#define EFFECTS   5
#define FUNCTIONS 10 /* guards, and as many hooks */
#define UPDATES   5

static unsigned target_of(unsigned state, unsigned event)
{
    return (state * 7 + event + 1) % LARGE_STATES;
}

/* Every third event carries a payload. */
static bool has_payload(unsigned event)
{
    return event % 3 == 0;
}

static void add_names(struct det_buffer *target)
{
    for (unsigned i = 0; i < LARGE_STATES; i++)
        det_buffer_format(target, "STATE(S%u, s%u%s)\n", i, i, i == 0 ? ", INITIAL" : "");
    for (unsigned i = 0; i < LARGE_EVENTS; i++)
        det_buffer_format(target, "EVENT(E%u, e%u%s)\n", i, i, has_payload(i) ? ", note" : "");
    det_buffer_append_text(target, "INTERNAL(TICK, tick)\n");
    for (unsigned i = 0; i < EFFECTS; i++)
        det_buffer_format(target, "INTERNAL(DONE%u, done%u)\n", i, i);
    for (unsigned i = 0; i < FUNCTIONS; i++)
        det_buffer_format(target, "GUARD(guard%u)\nHOOK(hook%u)\n", i, i);
    for (unsigned i = 0; i < UPDATES; i++)
        det_buffer_format(target, "UPDATE(update%u)\n", i);
    for (unsigned i = 0; i < EFFECTS; i++)
        det_buffer_format(target, "EFFECT(effect%u, DONE%u)\n", i, i);
}

static void add_transition(struct det_buffer *target, unsigned number)
{
    unsigned state = number % LARGE_STATES, event = number / LARGE_STATES;

    det_buffer_format(target, "ON(S%u, E%u, S%u", state, event, target_of(state, event));
    if (number % 4 == 0)
        det_buffer_format(target, ", IF(guard%u)", number / 4 % FUNCTIONS);
    if (number % 7 == 0)
        det_buffer_format(target, ", CALL(hook%u)", number / 7 % FUNCTIONS);
    if (number % 3 == 0)
        det_buffer_format(target, ", DO(effect%u)", number / 3 % EFFECTS);
    if (number % 5 == 0)
        det_buffer_format(target, ", SET(update%u)", number / 5 % UPDATES);
    if (has_payload(event))
        det_buffer_append_text(target, ", KEEP(text)");
    det_buffer_append_text(target, ")\n");
}

/* All states from `first` on, half of them: a list has at most 64 members. */
static void add_half(struct det_buffer *target, unsigned first)
{
    det_buffer_append_text(target, "STAY(ANY(");
    for (unsigned i = first; i < first + LARGE_STATES / 2; i++)
        det_buffer_format(target, "%sS%u", i == first ? "" : ", ", i);
    det_buffer_append_text(target, "), ANY(DONE0, DONE1, DONE2, DONE3, DONE4))\n");
}

void bench_large_spec(struct det_buffer *target)
{
    det_buffer_append_text(
        target, "#define FSM_NAME large\n#define FSM_PREFIX LARGE\n#define FSM_DATA large_data\n"
                "RECORD(note)\nFIELD(text, str(40))\nFIELD(number, u64)\nEND\n"
                "RECORD(large_data)\nFIELD(text, str(40))\nFIELD(count, u32)\nEND\n");
    add_names(target);
    for (unsigned i = 0; i < LARGE_STATES; i++) {
        det_buffer_format(target, "AFTER(S%u, SECONDS(%u), TICK)\n", i, i + 1);
        det_buffer_format(target, "ON(S%u, TICK, S%u)\n", i, (i + 1) % LARGE_STATES);
    }
    add_half(target, 0);
    add_half(target, LARGE_STATES / 2);
    for (unsigned i = 0; i < LARGE_TRANSITIONS; i++)
        add_transition(target, i);
}

static void add_functions(struct det_buffer *target)
{
    static const char parameters[] =
        "const struct det_move *m, const struct large_data *d, const struct large_event *e";

    for (unsigned i = 0; i < FUNCTIONS; i++) {
        det_buffer_format(
            target, "static bool guard%u(%s) { (void)m; (void)d; (void)e; return true; }\n", i,
            parameters);
        det_buffer_format(
            target, "static int hook%u(%s) { (void)m; (void)d; (void)e; return 0; }\n", i,
            parameters);
    }
    for (unsigned i = 0; i < UPDATES; i++)
        det_buffer_format(
            target,
            "static void update%u(struct large_data *d, const struct large_event *e)"
            " { (void)e; d->count++; }\n",
            i);
    for (unsigned i = 0; i < EFFECTS; i++)
        det_buffer_format(
            target,
            "static int effect%u(struct det_effect_call *c, const struct large_data *d,"
            " const struct large_event *e, struct large_event *r)"
            " { (void)c; (void)d; (void)e; *r = large_done%u(); return DET_EFFECT_PRODUCED; }\n",
            i, i);
}

void bench_large_source(struct det_buffer *target, const char *path)
{
    det_buffer_format(target, "#define FSM_SPEC \"%s\"\n", path);
    det_buffer_append_text(target, "#include <detent/fsm/declare.h>\n");
    det_buffer_format(target, "#define FSM_SPEC \"%s\"\n", path);
    det_buffer_append_text(target, "#include <detent/fsm/define.h>\n");
    add_functions(target);
}

void bench_large_plain(struct det_buffer *target)
{
    det_buffer_append_text(target, "enum state {");
    for (unsigned i = 0; i < LARGE_STATES; i++)
        det_buffer_format(target, " S%u,", i);
    det_buffer_append_text(target, " STATES };\nenum event {");
    for (unsigned i = 0; i < LARGE_EVENTS; i++)
        det_buffer_format(target, " E%u,", i);
    det_buffer_append_text(
        target, " TICK, EVENTS };\nstruct cell { unsigned short outcome, to; };\n"
                "extern const struct cell table[STATES][EVENTS];\n"
                "const struct cell table[STATES][EVENTS] = {\n");
    for (unsigned i = 0; i < LARGE_STATES; i++)
        det_buffer_format(target, "[S%u][TICK] = { 1, S%u },\n", i, (i + 1) % LARGE_STATES);
    for (unsigned i = 0; i < LARGE_TRANSITIONS; i++) {
        unsigned state = i % LARGE_STATES, event = i / LARGE_STATES;

        det_buffer_format(
            target, "[S%u][E%u] = { 1, S%u },\n", state, event, target_of(state, event));
    }
    det_buffer_append_text(target, "};\n");
}
