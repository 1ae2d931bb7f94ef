/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect_answer.c - reads the result of an attempt: an exit code or status, and {"event": ...,
 * "payload": ...}. */
#include <detent/tool/machine.h>
#include <stdarg.h>
#include <string.h>

#include "base/assert.h"
#include "daemon/effect.h"
#include "inspect/stored_instance.h"
#include "json/reader.h"

#define NO_MEMORY_FOR_ANSWER "it ran, but its answer was lost: out of memory"

struct answer {
    const struct effects *effects;
    const struct effect_binding *binding;
    struct effect_outcome *outcome;
    struct det_arena arena;               /* of the parsed body */
    const struct det_json_value *root;    /* NULL: no body, or it is ignored */
    const struct det_json_value *payload; /* NULL: none */
    const char *payload_key;
    const char *event; /* named in the body; NULL: none */
};

static int fail_answer(struct answer *answer, int code, const char *format, ...) DET_PRINTF(3, 4);

static int fail_answer(struct answer *answer, int code, const char *format, ...)
{
    struct effect_outcome *outcome = answer->outcome;
    va_list arguments;

    det_assert(code < 0);
    va_start(arguments, format);
    vsnprintf(outcome->why, sizeof outcome->why, format, arguments);
    va_end(arguments);
    return code;
}

static bool is_blank(const struct det_buffer *body)
{
    const char *text = (const char *)body->data;

    for (size_t i = 0; i < body->size; i++) {
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r' && text[i] != '\n')
            return false;
    }
    return true;
}

/* A strict answer has no other members. */
static int check_members(struct answer *answer)
{
    DET_JSON_EACH (member, answer->root) {
        struct det_view key = member->key;

        if (!det_view_is(key, "event") && !det_view_is(key, answer->payload_key))
            return fail_answer(
                answer, DET_ERR_MALFORMED,
                "its output has an unknown member '%.*s'; use only 'event' and 'payload'",
                (int)(key.size < 60 ? key.size : 60), key.data);
    }
    if (det_json_get(answer->root, "event") && !answer->event)
        return fail_answer(answer, DET_ERR_MALFORMED, "the 'event' of its output is not a string");
    if (answer->payload && !det_json_is(answer->payload, DET_JSON_OBJECT))
        return fail_answer(
            answer, DET_ERR_MALFORMED, "the '%s' of its output is not an object",
            answer->payload_key);
    return 0;
}

/* "data" is the deprecated name of "payload". */
static int find_members(struct answer *answer)
{
    const struct det_json_value *payload = det_json_get(answer->root, "payload");
    const struct det_json_value *data = det_json_get(answer->root, "data");

    answer->payload_key = payload ? "payload" : "data";
    answer->payload = payload ? payload : data;
    answer->event = det_json_get_text(answer->root, "event");
    if (answer->event && payload && data)
        return fail_answer(
            answer, DET_ERR_MALFORMED,
            "its answer has both 'payload' and its deprecated name 'data'; use 'payload' alone");
    return 0;
}

static int read_body(struct answer *answer)
{
    const struct effect_outcome *outcome = answer->outcome;
    int r;

    if (is_blank(&outcome->body))
        return 0;
    r = det_json_read(
        &answer->arena, det_view_of(outcome->body.data, outcome->body.size), &answer->root, NULL);
    if (r == DET_ERR_NO_MEMORY)
        return fail_answer(answer, r, NO_MEMORY_FOR_ANSWER);
    if (r < 0 || !det_json_is(answer->root, DET_JSON_OBJECT)) {
        answer->root = NULL;
        return outcome->is_strict ? fail_answer(
                                        answer, DET_ERR_MALFORMED,
                                        "its output is not a JSON object; write text for people to "
                                        "the error stream")
                                  : 0;
    }
    r = find_members(answer);
    if (r < 0 || outcome->is_strict)
        return r < 0 ? r : check_members(answer);
    if (!det_json_is(answer->payload, DET_JSON_OBJECT))
        answer->payload = NULL;
    return 0;
}

/* The event that the file maps the code to, a code before its class; NULL: none. */
static const char *mapped_event(const struct config_effect *config, int code)
{
    const struct config_answer *found = NULL;

    for (size_t i = 0; i < config->answer_count; i++) {
        const struct config_answer *answer = &config->answers[i];
        bool fits = code >= (int)answer->least && code <= (int)answer->most;

        if (fits && (!found || answer->least == answer->most))
            found = answer;
    }
    return found ? found->event : NULL;
}

/* The id of an event that the effect may send, or -1. */
static int find_product(const struct effect_binding *binding, const char *name)
{
    const struct det_effect_def *effect = &binding->machine->effects[binding->effect];

    for (size_t i = 0; i < effect->produces_count; i++) {
        if (strcmp(binding->machine->events[effect->produces[i]].name, name) == 0)
            return effect->produces[i];
    }
    return -1;
}

/* The kind of the event is already set. */
static int write_payload(struct answer *answer, unsigned kind, void *ret)
{
    const struct det_machine *machine = answer->binding->machine;
    struct det_view text = answer->payload ? answer->payload->raw : det_view_text("{}");
    const struct det_record *record = det_machine_payload(machine, kind);
    struct det_empty none = { 0 };
    void *payload =
        record == det_empty_record() ? (void *)&none : instance_payload_in(machine, ret);
    struct det_error error = { 0 };
    int r;

    r = det_record_from_json(record, text.data, text.size, 0, payload, &error);
    if (r < 0)
        return fail_answer(
            answer, r, "the '%s' of its answer does not fit %s: %s", answer->payload_key,
            machine->events[kind].name, det_error_text(r));
    return DET_EFFECT_PRODUCED;
}

/* An effect with events must answer: without an answer the instance would wait forever. */
static int fail_missing_event(struct answer *answer)
{
    bool is_command = answer->outcome->is_strict;

    return fail_answer(
        answer, DET_ERR_MALFORMED,
        "%s %d, and its answer names no event that EFFECT(%s) lists; if no event is needed, write "
        "%s: {%d: " CONFIG_NOTHING "}",
        is_command ? "exit code" : "status", answer->outcome->code, answer->binding->config->name,
        is_command ? "exits" : "statuses", answer->outcome->code);
}

static int choose_event(struct answer *answer, void *ret)
{
    const struct effect_outcome *outcome = answer->outcome;
    const struct effect_binding *binding = answer->binding;
    const char *mapped = mapped_event(binding->config, outcome->code);
    const char *event = outcome->is_success && answer->event ? answer->event : mapped;
    int kind;

    if (answer->event && event != answer->event && outcome->is_strict &&
        strcmp(answer->event, mapped) != 0)
        return fail_answer(
            answer, DET_ERR_MALFORMED, "its output names '%.60s', and exit code %d is %s",
            answer->event, outcome->code, mapped);
    kind = event ? find_product(binding, event) : -1;
    det_assert(kind < 0 || (unsigned)kind < binding->machine->event_count);
    if (kind >= 0) {
        memset(ret, 0, binding->machine->event_size);
        memcpy(ret, &kind, sizeof kind);
        return write_payload(answer, (unsigned)kind, ret);
    }
    if (event && strcmp(event, CONFIG_NOTHING) != 0)
        return fail_answer(
            answer, DET_ERR_INVALID, "its answer '%.60s' is not an event of EFFECT(%s)", event,
            binding->config->name);
    return event || binding->machine->effects[binding->effect].produces_count == 0
               ? DET_EFFECT_DONE
               : fail_missing_event(answer);
}

int effect_answer(
    const struct effects *effects, const struct effect_binding *binding,
    struct effect_outcome *outcome, void *ret)
{
    struct answer answer = { .effects = effects, .binding = binding, .outcome = outcome };
    int r;

    det_assert(!outcome->is_shortage && !outcome->is_cut_off);
    if (det_buffer_status(&outcome->body) < 0)
        return fail_answer(&answer, DET_ERR_NO_MEMORY, NO_MEMORY_FOR_ANSWER);
    if (outcome->code < 0 ||
        (!outcome->is_success && !mapped_event(binding->config, outcome->code)))
        return outcome->error;
    det_arena_init(&answer.arena, effects->allocator);
    r = read_body(&answer);
    if (r == 0)
        r = choose_event(&answer, ret);
    det_arena_deinit(&answer.arena);
    return r;
}
