/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance_summary.c - describes an instance and its pending work in words. */
#include "inspect/instance_summary.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "inspect/print_tasks.h"

#define WORD_WIDTH 11

static void collect_fact(struct cli *cli, const char *word, const char *text)
{
    det_json_open(cli->facts, NULL, '{');
    det_json_text(cli->facts, "about", word ? word : "");
    det_json_text(cli->facts, "text", text);
    det_json_close(cli->facts, '}');
}

/* Not wrapped, so that it can be pasted whole. */
static void print_retry(struct cli *cli, const char *id, const char *key)
{
    char text[sizeof "detent retry  " + DET_ID_MAX + INSTANCE_KEY_TEXT];
    int length = snprintf(text, sizeof text, "detent retry %s %s", id, key);

    det_assert(length > 0 && length < (int)sizeof text);
    if (cli->facts)
        collect_fact(cli, NULL, text);
    else
        cli_print(cli, "%*s%s\n", WORD_WIDTH, "", text);
}

void facts_print(struct cli *cli, const char *word, const char *format, ...)
{
    va_list arguments;
    char *text;

    det_assert(!word || strlen(word) < WORD_WIDTH);
    va_start(arguments, format);
    text = cli_format(cli, format, arguments);
    va_end(arguments);
    if (!text)
        return;
    if (cli->facts) {
        collect_fact(cli, word, text);
    } else {
        cli_print_in(cli, CLI_FAINT, "%-*s", WORD_WIDTH, word ? word : "");
        cli_print_wrapped(cli, WORD_WIDTH, WORD_WIDTH, text);
    }
    free(text);
}

static enum cli_style style_of(const struct instance *instance)
{
    if (instance->loaded.head.is_stopped)
        return CLI_FAINT;
    if (instance_effect_count(instance, true))
        return CLI_RED;
    return instance_is_final(instance) ? CLI_GREEN : CLI_BLUE;
}

/* Prints the id and the state. */
static void print_state(struct cli *cli, const struct instance *instance)
{
    const struct det_store_head *head = &instance->loaded.head;
    const char *verb = head->is_stopped ? "has stopped in" : "is";
    char span[SHOW_SPAN_TEXT], time[INSTANCE_TIME_TEXT];

    show_span(instance->now - head->last_transition_at, span);
    instance_time(head->last_transition_at, time);
    if (cli->facts) {
        facts_print(cli, "state", "%s %s, for %s", verb, instance_state(instance), span);
        return;
    }
    cli_print(cli, "%s ", instance->machine->name);
    cli_print_in(cli, CLI_BOLD, "%s", instance->id);
    cli_print(cli, " %s ", verb);
    cli_print_in(cli, style_of(instance), "%s", instance_state(instance));
    cli_print(cli, ", for %s (since %s)\n", span, time);
}

void facts_head(struct cli *cli, const struct instance *instance)
{
    const struct det_store_head *head = &instance->loaded.head;

    print_state(cli, instance);
    if (head->is_stopped)
        facts_print(
            cli, "reason", "%s",
            instance->loaded.reason[0] ? instance->loaded.reason : "none was given");
    else if (instance_is_final(instance))
        facts_print(cli, "end", "this state is final");
}

static void print_dead_timer(
    struct cli *cli, const char *word, const struct instance *instance,
    const struct det_store_timer *row)
{
    const char *name = instance_timer_name(instance->machine, row->timer);
    char key[INSTANCE_KEY_TEXT], why[INSTANCE_WHY_TEXT];

    det_assert(row->is_dead && row->event < instance->machine->event_count);
    facts_print(
        cli, word, "%s%s%s is a dead letter after %u attempt%s: %s",
        instance->machine->events[row->event].name, *name ? " by " : " by the timeout", name,
        row->attempts, det_plural(row->attempts), instance_why(row->last_error, row->reason, why));
    print_retry(cli, instance->id, instance_timer_key(instance->machine, instance->id, row, key));
}

static void print_dead_timers(struct cli *cli, const struct instance *instance)
{
    const char *word = "dead";

    for (const struct instance_timer *t = instance->timers; t; t = t->next) {
        if (!t->row.is_dead)
            continue;
        print_dead_timer(cli, word, instance, &t->row);
        word = NULL;
    }
}

void facts_timer(
    struct cli *cli, const struct instance *instance, const struct det_store_timer *row)
{
    const char *name = instance_timer_name(instance->machine, row->timer);
    bool is_due = row->next <= instance->now;
    char when[INSTANCE_WHEN_TEXT], why[INSTANCE_WHY_TEXT];

    if (row->is_dead)
        print_dead_timer(cli, "attempt", instance, row);
    else
        facts_print(
            cli, "attempt", "%s%s%s is %s%s, after attempt %u failed: %s",
            instance->machine->events[row->event].name, *name ? " by " : " by the timeout", name,
            is_due ? "due" : "tried again ",
            is_due ? "" : instance_when(row->next, instance->now, when), row->attempts,
            instance_why(row->last_error, row->reason, why));
}

void facts_timers(struct cli *cli, const struct instance *instance)
{
    const char *word = "timers";

    for (const struct instance_timer *t = instance->timers; t; t = t->next) {
        bool is_deferred = t->row.timer == DET_DEFERRED_TIMER;
        const char *name = is_deferred ? "" : instance_timer_name(instance->machine, t->row.timer);
        char time[INSTANCE_TIME_TEXT], when[INSTANCE_WHEN_TEXT], why[INSTANCE_WHY_TEXT];
        bool is_due = t->row.next <= instance->now;

        if (t->row.is_dead)
            continue;
        facts_print(
            cli, word, "%s%s%s%s, %s (%s)", instance->machine->events[t->row.event].name,
            is_deferred ? ", which was deferred"
            : *name     ? " by "
                        : "",
            name, is_due ? " is due" : "", instance_when(t->row.next, instance->now, when),
            instance_time(t->row.next, time));
        if (t->row.attempts)
            facts_print(
                cli, NULL, "attempt %u was rejected: %s", t->row.attempts,
                instance_why(t->row.last_error, t->row.reason, why));
        word = NULL;
    }
    print_dead_timers(cli, instance);
}

/* Limit of the attempts by the project; 0: another program runs it, and knows. */
static uint32_t attempts_max(const struct instance *instance, const char *effect)
{
    const struct config *config = &instance->store->project.config;

    for (size_t i = 0; i < config->machine_count; i++) {
        const struct config_machine *machine = &config->machines[i];

        if (strcmp(machine->name, instance->machine->name) != 0)
            continue;
        for (size_t k = 0; k < machine->effect_count; k++) {
            uint32_t most = machine->effects[k].policy.attempts_max;

            if (strcmp(machine->effects[k].name, effect) == 0)
                return most ? most : CONFIG_EFFECT_ATTEMPTS;
        }
    }
    return 0;
}

/* "3", or "3 of 8". */
static const char *count_text(
    const struct instance *instance, const struct det_store_effect *row, char target[32])
{
    uint32_t most = attempts_max(instance, instance->machine->effects[row->effect].name);

    if (most)
        snprintf(target, 32, "%u of %u", row->attempts, most);
    else
        snprintf(target, 32, "%u", row->attempts);
    return target;
}

static void print_waiting(
    struct cli *cli, const char *word, const struct instance *instance,
    const struct det_store_effect *row)
{
    const char *name = instance->machine->effects[row->effect].name;
    char when[INSTANCE_WHEN_TEXT], why[INSTANCE_WHY_TEXT], count[32];

    /* It may be running: the store records an attempt at its end. */
    if (row->attempts == 0)
        facts_print(
            cli, word, "%s was requested %s, and no attempt has ended", name,
            instance_when(row->at, instance->now, when));
    else if (row->last_error == DET_ERR_UNFINISHED) /* It may be running. */
        facts_print(
            cli, word,
            "%s: attempt %u has begun, and no end of it is recorded; without one it is %s%s", name,
            row->attempts, row->next <= instance->now ? "due again" : "tried again ",
            row->next <= instance->now ? "" : instance_when(row->next, instance->now, when));
    else if (row->next <= instance->now)
        facts_print(
            cli, word, "%s is due, after attempt %s failed: %s", name,
            count_text(instance, row, count), instance_why(row->last_error, row->reason, why));
    else
        facts_print(
            cli, word, "%s is tried again %s, after attempt %s failed: %s", name,
            instance_when(row->next, instance->now, when), count_text(instance, row, count),
            instance_why(row->last_error, row->reason, why));
}

/* As reported by the program that serves it. */
static void print_active(
    struct cli *cli, const char *word, const struct instance *instance,
    const struct instance_effect *effect)
{
    const char *name = instance->machine->effects[effect->row.effect].name;
    char when[INSTANCE_WHEN_TEXT], why[INSTANCE_WHY_TEXT];

    det_assert(effect->activity != INSTANCE_UNKNOWN && !effect->row.is_dead);
    if (effect->activity == INSTANCE_QUEUED)
        facts_print(
            cli, word, "%s waits for a free thread (%u of %u in use: limits.effects), requested %s",
            name, instance->threads_used, instance->threads_max,
            instance_when(effect->row.at, instance->now, when));
    else
        facts_print(
            cli, word, "%s is running: attempt %u began %s", name, effect->attempt,
            instance_when(effect->began, instance->now, when));
    if (effect->row.last_error && effect->row.last_error != DET_ERR_UNFINISHED)
        facts_print(
            cli, NULL, "attempt %u failed: %s", effect->row.attempts,
            instance_why(effect->row.last_error, effect->row.reason, why));
}

static void print_dead(
    struct cli *cli, const char *word, const struct instance *instance,
    const struct det_store_effect *row)
{
    char key[INSTANCE_KEY_TEXT], why[INSTANCE_WHY_TEXT];

    det_assert(row->is_dead && row->effect < instance->machine->effect_count);
    facts_print(
        cli, word, "%s is a dead letter after %u attempt%s: %s",
        instance->machine->effects[row->effect].name, row->attempts, det_plural(row->attempts),
        instance_why(row->last_error, row->reason, why));
    print_retry(
        cli, instance->id,
        instance_key(instance->store->store, instance->machine, instance->id, row, key));
}

void facts_effect(
    struct cli *cli, const struct instance *instance, const struct det_store_effect *row)
{
    if (row->is_dead)
        print_dead(cli, "attempt", instance, row);
    else
        print_waiting(cli, "attempt", instance, row);
}

void facts_effects(struct cli *cli, const struct instance *instance)
{
    const char *word = "effects";

    for (const struct instance_effect *e = instance->effects; e; e = e->next) {
        if (e->row.is_dead)
            continue;
        if (e->activity)
            print_active(cli, word, instance, e);
        else
            print_waiting(cli, word, instance, &e->row);
        word = NULL;
    }
    word = "dead";
    for (const struct instance_effect *e = instance->effects; e; e = e->next) {
        if (!e->row.is_dead)
            continue;
        print_dead(cli, word, instance, &e->row);
        word = NULL;
    }
}

void facts_deferred(struct cli *cli, const struct instance *instance)
{
    for (const struct instance_deferred *d = instance->deferred; d; d = d->next)
        facts_print(
            cli, d == instance->deferred ? "deferred" : NULL, "%s, kept since event %llu",
            instance->machine->events[det_event_kind(d->row.event)].name,
            (unsigned long long)d->row.sequence);
}

void facts_json(struct cli *cli, const struct instance *instance, facts_line_fn *more)
{
    struct det_json_writer json;

    cli_json_begin(cli, &json, "instance");
    instance_line(&json, instance);
    if (more)
        more(&json, instance);
    cli_json_end(cli, &json);
}
