/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* trouble.c - what was not done, in words for the observer: what it was, and why. The why is the
 * sentence of the error where there is one, else the general sentence of its code. */
#include <stdio.h>
#include <string.h>

#include "runtime/runtime.h"

#define TEXT_MAX ((size_t)2 * DET_ERROR_TEXT_MAX)

struct det_code_text det_code_text(int code)
{
    struct det_code_text ret;
    const char *name = det_error_name(code);

    if (strcmp(name, "UNKNOWN") != 0)
        snprintf(ret.text, sizeof ret.text, "%s", name);
    else
        snprintf(ret.text, sizeof ret.text, "%d", code);
    return ret;
}

static void say_failed(char *text, const struct det_incident *trouble, const char *why)
{
    snprintf(
        text, TEXT_MAX, "%s of %s %s failed with %s in attempt %u, and is %s%s%s", trouble->name,
        trouble->machine->name, trouble->instance, det_code_text(trouble->code).text,
        trouble->attempt, trouble->kind == DET_INCIDENT_EFFECT_DEAD ? "given up" : "tried again",
        why ? ": " : "", why ? why : "");
}

static void say(char *text, const struct det_incident *trouble, const char *why)
{
    const char *machine = trouble->machine->name,
               *reason = why ? why : det_error_text(trouble->code);

    switch (trouble->kind) {
    case DET_INCIDENT_EFFECT_FAILED:
    case DET_INCIDENT_EFFECT_DEAD:
        say_failed(text, trouble, why);
        break;
    case DET_INCIDENT_PRODUCT_REJECTED:
        snprintf(
            text, TEXT_MAX, "what %s of %s %s produced is not taken: %s", trouble->name, machine,
            trouble->instance, reason);
        break;
    case DET_INCIDENT_TIMEOUT_REJECTED:
        snprintf(
            text, TEXT_MAX, "%s%s of %s %s is not taken%s: %s",
            *trouble->name ? "timer " : "the timeout", trouble->name, machine, trouble->instance,
            trouble->is_dead ? ", and a dead letter" : "", reason);
        break;
    case DET_INCIDENT_EVENT_DEAD:
        snprintf(
            text, TEXT_MAX, "event %s of %s %s is a dead letter: %s", trouble->name, machine,
            trouble->instance, reason);
        break;
    case DET_INCIDENT_EVENT_FAILED:
        snprintf(
            text, TEXT_MAX,
            "deferred event %s of %s %s is not taken in attempt %u, and is tried "
            "again: %s",
            trouble->name, machine, trouble->instance, trouble->attempt, reason);
        break;
    case DET_INCIDENT_NOT_LOADED:
        snprintf(
            text, TEXT_MAX, "%s %s has something due, but cannot be loaded: %s", machine,
            trouble->instance, reason);
        break;
    case DET_INCIDENT_EFFECTS_QUEUED:
        snprintf(text, TEXT_MAX, "%s", reason);
        break;
    }
}

void det_runtime_trouble_at(
    struct det_runtime *runtime, const struct det_incident *trouble, const struct det_error *error)
{
    /* What the error says may be about something else that failed before. */
    bool is_known = error && error->code == trouble->code && *error->text;
    struct det_incident told = *trouble;
    char text[TEXT_MAX];

    if (!runtime->options.incident)
        return;
    say(text, &told, is_known ? error->text : NULL);
    told.text = text;
    runtime->options.incident(runtime->options.observer, &told);
}

void det_runtime_trouble(
    struct det_runtime *runtime, const struct det_resident *resident,
    const struct det_incident *trouble, const struct det_error *error)
{
    struct det_incident told = *trouble;

    told.machine = resident->served->machine;
    told.instance = resident->id;
    det_runtime_trouble_at(runtime, &told, error);
}
