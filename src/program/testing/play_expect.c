/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* play_expect.c - compares what is with what a case expects. */
#include <detent/tool/machine.h>
#include <stdarg.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "store/row.h"
#include "testing/play_internal.h"

/* State of the instance, read once for all expectations of a step. */
struct facts {
    const struct det_machine *machine;
    det_time now;
    struct det_instance instance;
    struct case_ids timers, effects, dead;
    det_time timeout; /* -1: none */
};

/* Returns the next failure; NULL: no room. */
static struct play_failure *new_failure(struct play *play, const struct det_datum *node)
{
    size_t index = play->result->failure_count++;

    if (index >= PLAY_FAILURES_MAX)
        return NULL;
    play->result->failures[index].line = node->line;
    play->result->failures[index].column = node->column;
    return &play->result->failures[index];
}

bool play_fail(struct play *play, const struct det_datum *node, const char *format, ...)
{
    struct play_failure *failure = new_failure(play, node);
    va_list arguments;

    va_start(arguments, format);
    if (failure)
        vsnprintf(failure->text, sizeof failure->text, format, arguments);
    va_end(arguments);
    return false;
}

DET_PRINTF(4, 5)
static bool field_differs(
    struct play *play, const struct det_datum *node, enum case_expectation key, const char *format,
    ...)
{
    struct play_failure *failure = new_failure(play, node);
    va_list arguments;

    if (!failure)
        return false;
    va_start(arguments, format);
    vsnprintf(failure->actual, sizeof failure->actual, format, arguments);
    va_end(arguments);
    det_text_copy(failure->expected, sizeof failure->expected, play->expected);
    snprintf(
        failure->text, sizeof failure->text, "%s is not as expected", case_expectation_key(key));
    return false;
}

static void add_id(struct case_ids *ids, int id, det_time span)
{
    if (id < 0 || ids->count == CASE_LIST_MAX)
        return;
    ids->items[ids->count] = (uint16_t)id;
    ids->spans[ids->count++] = span;
}

static int see_timer(void *context, const struct det_timer_record *row)
{
    struct facts *facts = context;

    if (!*row->name)
        facts->timeout = row->due - facts->now;
    else
        add_id(
            &facts->timers, det_machine_find_timer(facts->machine, row->name),
            row->due - facts->now);
    return 0;
}

static int see_effect(void *context, const struct det_pending_effect *row)
{
    struct facts *facts = context;
    struct case_ids *ids = row->state == DET_EFFECT_STATE_DEAD ? &facts->dead : &facts->effects;

    add_id(ids, det_machine_find_effect(facts->machine, row->name), -1);
    return 0;
}

static int gather_facts(struct play *play, struct facts *facts)
{
    int r;

    facts->machine = play->machine;
    facts->now = det_world_now(play->stage.world, DET_CLOCK_WALL);
    facts->timeout = -1;
    r = det_runtime_get(
        play->stage.runtime, play->machine, PLAY_INSTANCE, &facts->instance, NULL, NULL);
    if (r == 0)
        r = det_runtime_timers(
            play->stage.runtime, play->machine, PLAY_INSTANCE, see_timer, facts, NULL);
    if (r == 0)
        r = det_runtime_effects(
            play->stage.runtime, play->machine, PLAY_INSTANCE, see_effect, facts, NULL);
    return r;
}

static const char *span_text(det_time span, char *target)
{
    return span < 0 ? "none" : det_format_duration(span, target, DET_DURATION_TEXT);
}

static const char *name_of(
    const struct det_machine *machine, enum case_expectation key, unsigned id)
{
    det_assert(
        id < (key == CASE_EXPECT_HISTORY  ? machine->state_count
              : key == CASE_EXPECT_TIMERS ? machine->timer_count
                                          : machine->effect_count));
    if (key == CASE_EXPECT_HISTORY)
        return machine->states[id].name;
    return key == CASE_EXPECT_TIMERS ? machine->timers[id].name : machine->effects[id].name;
}

static void list_text(
    const struct det_machine *machine, enum case_expectation key, const struct case_ids *ids,
    char *target)
{
    char span[DET_DURATION_TEXT];
    size_t used = 0;

    target[0] = '\0';
    for (size_t i = 0; i < ids->count && used < PLAY_TEXT_MAX; i++) {
        used += (size_t)snprintf(
            target + used, PLAY_TEXT_MAX - used, "%s%s", i ? ", " : "",
            name_of(machine, key, ids->items[i]));
        if (ids->spans[i] >= 0 && used < PLAY_TEXT_MAX)
            used += (size_t)snprintf(
                target + used, PLAY_TEXT_MAX - used, ": %s", span_text(ids->spans[i], span));
    }
    if (ids->count == 0)
        det_text_copy(target, PLAY_TEXT_MAX, "none");
}

static bool has_id(const struct case_ids *ids, uint16_t id, det_time span)
{
    for (size_t i = 0; i < ids->count; i++) {
        if (ids->items[i] == id && (span < 0 || ids->spans[i] == span))
            return true;
    }
    return false;
}

/* Timers are a set; other lists are ordered. */
static bool is_same_list(
    enum case_expectation key, const struct case_ids *wanted, const struct case_ids *found)
{
    if (wanted->count != found->count)
        return false;
    for (size_t i = 0; i < wanted->count; i++) {
        if (key == CASE_EXPECT_TIMERS ? !has_id(found, wanted->items[i], wanted->spans[i])
                                      : wanted->items[i] != found->items[i])
            return false;
    }
    return true;
}

static bool check_list(
    struct play *play, const struct det_datum *node, enum case_expectation key,
    const struct case_ids *wanted, const struct case_ids *found)
{
    char actual[PLAY_TEXT_MAX];

    if (is_same_list(key, wanted, found))
        return true;
    list_text(play->machine, key, wanted, play->expected);
    list_text(play->machine, key, found, actual);
    return field_differs(play, node, key, "%s", actual);
}

static bool check_history(
    struct play *play, const struct det_datum *node, const struct case_expect *expect,
    const struct facts *facts)
{
    struct case_ids found = { .count = 0 };

    for (size_t i = 0; i < facts->instance.history_count; i++)
        add_id(&found, (int)facts->instance.history[i], -1);
    return check_list(play, node, CASE_EXPECT_HISTORY, &expect->history, &found);
}

/* An expected effect of an update in C is reported: it does nothing here. */
static void note_idle_update(struct play *play)
{
    if (play->idle_update && !*play->result->note)
        snprintf(
            play->result->note, sizeof play->result->note,
            "update %s ran and changed nothing: define what updates do in the case (updates: {%s: "
            "{FIELD: VALUE}})",
            play->idle_update, play->idle_update);
}

/* One field at a time: a record of this field alone compares and prints it. */
static bool check_data(struct play *play, const struct case_fields *fields, const void *data)
{
    struct det_record one = *fields->record;
    char actual[PLAY_TEXT_MAX];
    bool is_ok = true;

    for (size_t i = 0; i < fields->count; i++) {
        one.fields = fields->given[i];
        one.field_count = 1;
        if (det_record_equal(&one, fields->value, data))
            continue;
        det_record_to_json(&one, fields->value, 0, play->expected, PLAY_TEXT_MAX);
        det_record_to_json(&one, data, 0, actual, sizeof actual);
        note_idle_update(play);
        is_ok = field_differs(play, fields->nodes[i], CASE_EXPECT_DATA, "%s", actual);
    }
    return is_ok;
}

static bool load_and_check_data(
    struct play *play, const struct det_datum *node, const struct case_fields *fields)
{
    struct det_instance instance;
    size_t size = det_machine_data(play->machine)->size;
    void *data = det_alloc_zero(play->options->allocator, size);
    bool is_ok;

    if (!data || det_runtime_get(
                     play->stage.runtime, play->machine, PLAY_INSTANCE, &instance, data, NULL) < 0)
        is_ok = play_fail(play, node, "the data cannot be read");
    else
        is_ok = check_data(play, fields, data);
    det_free(play->options->allocator, data, size);
    return is_ok;
}

static bool check_number(
    struct play *play, const struct det_datum *node, enum case_expectation key, uint64_t found)
{
    return field_differs(play, node, key, "%llu", (unsigned long long)found);
}

static bool check_text(
    struct play *play, const struct det_datum *node, enum case_expectation key, const char *wanted,
    const char *found)
{
    return strcmp(wanted, found) == 0 ||
           field_differs(play, node, key, "%s", *found ? found : "none");
}

static bool check_sent(
    struct play *play, const struct det_datum *node, enum case_expectation key,
    const struct case_expect *expect)
{
    char name[DET_NAME_MAX];

    if (key == CASE_EXPECT_ERROR)
        return play->sent_result == expect->error ||
               field_differs(
                   play, node, key, "%s",
                   play->sent_result < 0 ? case_error_name(play->sent_result, name) : "none");
    if (key == CASE_EXPECT_ACTION)
        return check_text(
            play, node, key, expect->action,
            play->sent_result < 0 && play->sent_error.action ? play->sent_error.action : "");
    if (key == CASE_EXPECT_OUTCOME)
        return (play->sent_result == 0 && (int)play->sent.outcome == expect->outcome) ||
               field_differs(
                   play, node, key, "%s",
                   play->sent_result < 0 ? "an error" : det_outcome_name(play->sent.outcome));
    return play->sent.is_duplicate == expect->is_duplicate ||
           field_differs(play, node, key, "%s", play->sent.is_duplicate ? "true" : "false");
}

static bool check_timeout(
    struct play *play, const struct det_datum *node, det_time wanted, det_time found)
{
    char text[DET_DURATION_TEXT];

    return wanted == found ||
           field_differs(play, node, CASE_EXPECT_TIMEOUT, "%s", span_text(found, text));
}

static bool check_one(
    struct play *play, const struct case_expect *expect, enum case_expectation key,
    const struct facts *facts)
{
    const struct det_datum *node = expect->nodes[key];
    const struct det_instance *instance = &facts->instance;

    switch (key) {
    case CASE_EXPECT_ERROR:
    case CASE_EXPECT_ACTION:
    case CASE_EXPECT_OUTCOME:
    case CASE_EXPECT_DUPLICATE:
        return check_sent(play, node, key, expect);
    case CASE_EXPECT_STATE:
        return instance->state == expect->state ||
               field_differs(play, node, key, "%s", play->machine->states[instance->state].name);
    case CASE_EXPECT_STOPPED:
        return instance->is_stopped == expect->is_stopped ||
               field_differs(play, node, key, "%s", instance->is_stopped ? "true" : "false");
    case CASE_EXPECT_REASON:
        return check_text(play, node, key, expect->reason, instance->reason);
    case CASE_EXPECT_SEQUENCE:
        return instance->sequence == expect->sequence ||
               check_number(play, node, key, instance->sequence);
    case CASE_EXPECT_HISTORY:
        return check_history(play, node, expect, facts);
    case CASE_EXPECT_DATA:
        return load_and_check_data(play, node, expect->data);
    case CASE_EXPECT_TIMEOUT:
        return check_timeout(play, node, expect->timeout, facts->timeout);
    case CASE_EXPECT_TIMERS:
        return check_list(play, node, key, &expect->timers, &facts->timers);
    case CASE_EXPECT_EFFECTS:
        return check_list(play, node, key, &expect->effects, &facts->effects);
    case CASE_EXPECT_DEAD:
        return check_list(play, node, key, &expect->dead, &facts->dead);
    case CASE_EXPECT_DEFERRED:
        return instance->deferred_count == expect->deferred ||
               check_number(play, node, key, instance->deferred_count);
    case CASE_EXPECT_COUNT:
        break;
    }
    return true;
}

bool play_expect(struct play *play, const struct case_expect *expect)
{
    struct facts facts = { 0 };
    bool is_ok = true;

    if (gather_facts(play, &facts) < 0)
        return play_fail(play, expect->node, "the instance cannot be read");
    for (unsigned i = 0; i < CASE_EXPECT_COUNT; i++) {
        const struct det_datum *node = expect->nodes[i];

        if (!node)
            continue;
        /* The text as written; lists and data use the form of the actual value. */
        det_text_copy(
            play->expected, sizeof play->expected, det_datum_is_scalar(node) ? node->text : "");
        is_ok = check_one(play, expect, (enum case_expectation)i, &facts) && is_ok;
    }
    det_assert(is_ok == (play->result->failure_count == 0));
    return is_ok;
}
