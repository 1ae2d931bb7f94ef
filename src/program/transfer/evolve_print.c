/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* evolve_print.c - changes and hazards, as people and programs read them. */
#include <string.h>

#include "base/assert.h"
#include "transfer/evolve.h"
#include "json/writer.h"

static const char *const change_words[] = {
    [DET_CHANGE_ADDED] = "added",
    [DET_CHANGE_REMOVED] = "removed",
    [DET_CHANGE_CHANGED] = "changed",
    [DET_CHANGE_RENAMED] = "renamed",
};

static const char *const hazard_words[] = {
    [DET_HAZARD_STATE] = "state", [DET_HAZARD_EVENT] = "event", [DET_HAZARD_EFFECT] = "effect",
    [DET_HAZARD_TIMER] = "timer", [DET_HAZARD_DATA] = "data",
};

static void print_change(struct evolve *evolve, const struct det_change *change)
{
    static const struct {
        char mark;
        enum cli_style style;
    } looks[] = {
        [DET_CHANGE_ADDED] = { '+', CLI_GREEN },
        [DET_CHANGE_REMOVED] = { '-', CLI_RED },
        [DET_CHANGE_CHANGED] = { '~', CLI_YELLOW },
        [DET_CHANGE_RENAMED] = { '>', CLI_BLUE },
    };

    det_assert(change->kind < sizeof looks / sizeof *looks);
    cli_print_in(evolve->cli, looks[change->kind].style, "%c ", looks[change->kind].mark);
    cli_print(evolve->cli, "%s\n", change->text);
}

static void print_change_object(struct evolve *evolve, const struct det_change *change)
{
    struct det_json_writer json;

    cli_json_begin(evolve->cli, &json, "change");
    det_json_text(&json, "change", change_words[change->kind]);
    det_json_text(&json, "subject", change->subject);
    det_json_text(&json, "name", change->name);
    if (change->event)
        det_json_text(&json, "event", change->event);
    det_json_text(&json, "text", change->text);
    cli_json_end(evolve->cli, &json);
}

void evolve_print_changes(struct evolve *evolve)
{
    for (const struct evolve_change *change = evolve->changes; change; change = change->next) {
        if (evolve->hides_renames && change->it.kind == DET_CHANGE_RENAMED)
            continue;
        if (evolve->cli->is_json)
            print_change_object(evolve, &change->it);
        else
            print_change(evolve, &change->it);
    }
}

/* "3 instances are in it". */
static void print_count(struct evolve *evolve, const struct evolve_hazard *hazard)
{
    static const char *const ones[] = {
        [DET_HAZARD_STATE] = "instance is in it",
        [DET_HAZARD_EVENT] = "timer, deferred event or effect needs it",
        [DET_HAZARD_EFFECT] = "has not ended",
        [DET_HAZARD_TIMER] = "is armed",
        [DET_HAZARD_DATA] = "instance has such data",
    };
    static const char *const many[] = {
        [DET_HAZARD_STATE] = "instances are in it",
        [DET_HAZARD_EVENT] = "timers, deferred events or effects need it",
        [DET_HAZARD_EFFECT] = "have not ended",
        [DET_HAZARD_TIMER] = "are armed",
        [DET_HAZARD_DATA] = "instances have such data",
    };
    struct cli *cli = evolve->cli;

    det_assert(hazard->it.kind < sizeof many / sizeof *many);
    det_assert(hazard->stopped == 0 || hazard->it.kind == DET_HAZARD_STATE);
    if (hazard->count == 0)
        cli_print_in(cli, CLI_FAINT, "; 0 %s", many[hazard->it.kind]);
    else
        cli_print_in(
            cli, CLI_BOLD, "; %llu %s", (unsigned long long)hazard->count,
            hazard->count == 1 ? ones[hazard->it.kind] : many[hazard->it.kind]);
    if (hazard->stopped > 0)
        cli_print(cli, ", and %llu stopped there", (unsigned long long)hazard->stopped);
}

static bool is_shown(const struct evolve *evolve, const struct evolve_hazard *hazard)
{
    return !evolve->has_store || hazard->count > 0 || hazard->stopped > 0;
}

static void print_hazard(struct evolve *evolve, const struct evolve_hazard *hazard)
{
    bool is_met = !evolve->has_store || hazard->count > 0;

    if (!is_shown(evolve, hazard))
        return;
    cli_print_in(evolve->cli, is_met ? CLI_RED : CLI_FAINT, "%c ", is_met ? '!' : ' ');
    cli_print(
        evolve->cli, "%s %s %s", hazard_words[hazard->it.kind], hazard->it.name, hazard->it.text);
    if (evolve->has_store)
        print_count(evolve, hazard);
    cli_print(evolve->cli, "\n");
}

static void print_hazard_object(struct evolve *evolve, const struct evolve_hazard *hazard)
{
    struct det_json_writer json;

    cli_json_begin(evolve->cli, &json, "hazard");
    det_json_text(&json, "subject", hazard_words[hazard->it.kind]);
    det_json_text(&json, "name", hazard->it.name);
    det_json_text(&json, "text", hazard->it.text);
    if (evolve->has_store) {
        det_json_number(&json, "stored", hazard->count);
        det_json_number(&json, "stopped", hazard->stopped);
    }
    cli_json_end(evolve->cli, &json);
}

/* Returns the only change of a kind to this subject; NULL: none, or several. */
static const struct det_change *only_change(
    const struct evolve *evolve, enum det_change_kind kind, const char *subject)
{
    const struct det_change *found = NULL;

    for (const struct evolve_change *change = evolve->changes; change; change = change->next) {
        if (change->it.kind != kind || strcmp(change->it.subject, subject) != 0)
            continue;
        if (found)
            return NULL;
        found = &change->it;
    }
    return found;
}

/* One removed and one added thing were probably renamed. */
static void print_hints(struct evolve *evolve)
{
    static const char *const subjects[] = { "state", "event", "effect", "timer" };

    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        const struct det_change *gone = only_change(evolve, DET_CHANGE_REMOVED, subjects[i]);
        const struct det_change *come = only_change(evolve, DET_CHANGE_ADDED, subjects[i]);

        if (gone && come)
            cli_print_error(
                evolve->cli, "hint: if %s is now called %s, add --rename-%s %s=%s\n", gone->name,
                come->name, subjects[i], gone->name, come->name);
    }
}

/* Returns true if one is shown: hazards without stored data are for programs only. */
static bool has_shown(const struct evolve *evolve)
{
    for (const struct evolve_hazard *hazard = evolve->hazards; hazard; hazard = hazard->next) {
        if (is_shown(evolve, hazard))
            return true;
    }
    return false;
}

void evolve_print_hazards(struct evolve *evolve)
{
    if (!evolve->cli->is_json && has_shown(evolve))
        cli_print_in(
            evolve->cli, CLI_BOLD, "%s\n",
            evolve->has_store ? "Missing from the new definition:"
                              : "Possible problems of instances of the old definition:");
    for (const struct evolve_hazard *hazard = evolve->hazards; hazard; hazard = hazard->next) {
        if (evolve->cli->is_json)
            print_hazard_object(evolve, hazard);
        else
            print_hazard(evolve, hazard);
    }
    if (!evolve->cli->is_json)
        print_hints(evolve);
}
