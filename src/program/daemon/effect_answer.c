/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect_answer.c - what an exit code, a status and {"event": ..., "payload": ...} mean. */
#include <detent/tool/machine.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/effect.h"
#include "inspect/stored_instance.h"

#define NO_MEMORY_FOR_ANSWER "it ran, and there is no memory for its answer"

struct answer {
    const struct effects *effects;
    const struct effect_binding *binding;
    struct effect_outcome *outcome;
    json_t *root;      /* NULL: there is no body that counts */
    const char *event; /* that the body names; NULL: none */
    json_t *data;
    const char *payload_key;
};

static int fail(struct answer *answer, int code, const char *format, ...) DET_PRINTF(3, 4);

static int fail(struct answer *answer, int code, const char *format, ...)
{
    struct effect_outcome *outcome = answer->outcome;
    va_list arguments;

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

/* The members of an answer, and no others; in what may be anything they are looked for. */
static int check_members(struct answer *answer)
{
    json_t *event = json_object_get(answer->root, "event"), *value;
    const char *name;

    json_object_foreach(answer->root, name, value)
    {
        if (strcmp(name, "event") != 0 && strcmp(name, answer->payload_key) != 0)
            return fail(
                answer, DET_ERR_MALFORMED,
                "its output has a member '%.60s'; an answer has 'event' and 'payload'", name);
    }
    if (event && !json_is_string(event))
        return fail(answer, DET_ERR_MALFORMED, "the 'event' of its output is no text");
    if (answer->data && !json_is_object(answer->data))
        return fail(
            answer, DET_ERR_MALFORMED, "the '%s' of its output is no object", answer->payload_key);
    return 0;
}

static int read_body(struct answer *answer)
{
    const struct effect_outcome *outcome = answer->outcome;
    json_error_t error;
    int r = 0;

    if (is_blank(&outcome->body))
        return 0;
    answer->root = json_loadb(
        (const char *)outcome->body.data, outcome->body.size, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(answer->root))
        return outcome->is_strict ? fail(
                                        answer, DET_ERR_MALFORMED,
                                        "its output is no JSON object; what is for people goes to "
                                        "the error stream")
                                  : 0;
    /* "data" is its deprecated name. */
    answer->payload_key = json_object_get(answer->root, "payload") ? "payload" : "data";
    answer->data = json_object_get(answer->root, answer->payload_key);
    answer->event = json_string_value(json_object_get(answer->root, "event"));
    if (answer->event && json_object_get(answer->root, "payload") &&
        json_object_get(answer->root, "data"))
        return fail(
            answer, DET_ERR_MALFORMED,
            "its answer has both 'payload' and its deprecated name 'data'; use 'payload' alone");
    if (outcome->is_strict)
        r = check_members(answer);
    else if (!json_is_object(answer->data))
        answer->data = NULL;
    return r;
}

/* What the file says of the code; a single one goes before its class. NULL: nothing. */
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

/* The id of an event that the effect lists, or -1. */
static int find_product(const struct effect_binding *binding, const char *name)
{
    const struct det_effect_def *effect = &binding->machine->effects[binding->effect];

    for (size_t i = 0; i < effect->produces_count; i++) {
        if (strcmp(binding->machine->events[effect->produces[i]].name, name) == 0)
            return effect->produces[i];
    }
    return -1;
}

/* The struct has its kind already. */
static int write_payload(struct answer *answer, unsigned kind, void *ret)
{
    const struct det_machine *machine = answer->binding->machine;
    char *text = answer->data ? json_dumps(answer->data, JSON_COMPACT) : NULL;
    const char *data = text ? text : "{}";
    const struct det_record *record = det_machine_payload(machine, kind);
    struct det_empty none = { 0 };
    void *payload =
        record == det_empty_record() ? (void *)&none : instance_payload_in(machine, ret);
    struct det_error error = { 0 };
    int r;

    if (answer->data && !text)
        return fail(answer, DET_ERR_NO_MEMORY, NO_MEMORY_FOR_ANSWER);
    r = det_record_from_json(record, data, strlen(data), 0, payload, &error);
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
    if (r < 0)
        return fail(
            answer, r, "the '%s' of its answer does not fit %s: %s", answer->payload_key,
            machine->events[kind].name, det_error_text(r));
    return DET_EFFECT_PRODUCED;
}

/* Who has an answer to give and gives none has forgotten it: the instance would wait for ever. */
static int miss_answer(struct answer *answer)
{
    bool is_command = answer->outcome->is_strict;

    return fail(
        answer, DET_ERR_MALFORMED,
        "%s %d, and its answer names no event that EFFECT(%s) lists; if that is all right, say "
        "%s: {%d: " CONFIG_NOTHING "}",
        is_command ? "exit code" : "status", answer->outcome->code, answer->binding->config->name,
        is_command ? "exits" : "statuses", answer->outcome->code);
}

static int choose(struct answer *answer, void *ret)
{
    const struct effect_outcome *outcome = answer->outcome;
    const struct effect_binding *binding = answer->binding;
    const char *mapped = mapped_event(binding->config, outcome->code);
    const char *event = outcome->is_success && answer->event ? answer->event : mapped;
    int kind;

    if (answer->event && event != answer->event && outcome->is_strict &&
        strcmp(answer->event, mapped) != 0)
        return fail(
            answer, DET_ERR_MALFORMED, "its output names '%.60s', and exit code %d is %s",
            answer->event, outcome->code, mapped);
    kind = event ? find_product(binding, event) : -1;
    if (kind >= 0) {
        memset(ret, 0, binding->machine->event_size);
        memcpy(ret, &kind, sizeof kind);
        return write_payload(answer, (unsigned)kind, ret);
    }
    if (event && strcmp(event, CONFIG_NOTHING) != 0)
        return fail(
            answer, DET_ERR_INVALID, "it answers '%.60s', which EFFECT(%s) does not list", event,
            binding->config->name);
    return event || binding->machine->effects[binding->effect].produces_count == 0
               ? DET_EFFECT_DONE
               : miss_answer(answer);
}

int effect_answer(
    const struct effects *effects, const struct effect_binding *binding,
    struct effect_outcome *outcome, void *ret)
{
    struct answer answer = { .effects = effects, .binding = binding, .outcome = outcome };
    int r;

    if (det_buffer_status(&outcome->body) < 0)
        return fail(&answer, DET_ERR_NO_MEMORY, NO_MEMORY_FOR_ANSWER);
    if (outcome->code < 0 ||
        (!outcome->is_success && !mapped_event(binding->config, outcome->code)))
        return outcome->error;
    r = read_body(&answer);
    if (r == 0)
        r = choose(&answer, ret);
    json_decref(answer.root);
    return r;
}
