/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* incident.c - texts of incidents for the observer: the operation that failed, and the reason. The
 * reason is the error's sentence, if it has one, else the general sentence of its code. */
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

static void write_failed(char *text, const struct det_incident *incident, const char *why)
{
    snprintf(
        text, TEXT_MAX, "%s of %s %s failed with %s in attempt %u, and is %s%s%s", incident->name,
        incident->machine->name, incident->instance, det_code_text(incident->code).text,
        incident->attempt, incident->kind == DET_INCIDENT_EFFECT_DEAD ? "a dead letter" : "retried",
        why ? ": " : "", why ? why : "");
}

static void write_text(char *text, const struct det_incident *incident, const char *why)
{
    const char *machine = incident->machine->name,
               *reason = why ? why : det_error_text(incident->code);

    switch (incident->kind) {
    case DET_INCIDENT_EFFECT_FAILED:
    case DET_INCIDENT_EFFECT_DEAD:
        write_failed(text, incident, why);
        break;
    case DET_INCIDENT_PRODUCT_REJECTED:
        snprintf(
            text, TEXT_MAX, "the event that %s of %s %s produced is rejected: %s", incident->name,
            machine, incident->instance, reason);
        break;
    case DET_INCIDENT_TIMEOUT_REJECTED:
        snprintf(
            text, TEXT_MAX, "%s%s of %s %s is rejected%s: %s",
            *incident->name ? "timer " : "the timeout", incident->name, machine, incident->instance,
            incident->is_dead ? ", and a dead letter" : "", reason);
        break;
    case DET_INCIDENT_EVENT_DEAD:
        snprintf(
            text, TEXT_MAX, "event %s of %s %s is a dead letter: %s", incident->name, machine,
            incident->instance, reason);
        break;
    case DET_INCIDENT_EVENT_FAILED:
        snprintf(
            text, TEXT_MAX, "deferred event %s of %s %s failed in attempt %u and is retried: %s",
            incident->name, machine, incident->instance, incident->attempt, reason);
        break;
    case DET_INCIDENT_NOT_LOADED:
        snprintf(
            text, TEXT_MAX, "%s %s has due work, but cannot be loaded: %s", machine,
            incident->instance, reason);
        break;
    case DET_INCIDENT_EFFECTS_QUEUED:
        snprintf(text, TEXT_MAX, "%s", reason);
        break;
    }
}

void det_runtime_report_incident_at(
    struct det_runtime *runtime, const struct det_incident *incident, const struct det_error *error)
{
    /* The error may belong to an earlier failure. */
    bool is_known = error && error->code == incident->code && *error->text;
    struct det_incident full = *incident;
    char text[TEXT_MAX];

    if (!runtime->options.incident)
        return;
    write_text(text, &full, is_known ? error->text : NULL);
    full.text = text;
    runtime->options.incident(runtime->options.observer, &full);
}

void det_runtime_report_incident(
    struct det_runtime *runtime, const struct det_resident *resident,
    const struct det_incident *incident, const struct det_error *error)
{
    struct det_incident full = *incident;

    full.machine = resident->served->machine;
    full.instance = resident->id;
    det_runtime_report_incident_at(runtime, &full, error);
}
