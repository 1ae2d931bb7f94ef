/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* print_tasks.c - prints the state of tasks, groups and slots, as reported by a running detent. */
#include "inspect/print_tasks.h"

#include <string.h>

#include "base/assert.h"
#include "base/text.h"

const char *show_text(const struct det_json_value *object, const char *key)
{
    const char *text = det_json_get_text(object, key);

    return text ? text : "";
}

/* Tenths below ten seconds, so that short delays differ; then whole seconds, and a second unit
 * while the first one is small. */
const char *show_span(det_time span, char target[SHOW_SPAN_TEXT])
{
    static const struct {
        det_time size;
        const char *name;
    } units[] = { { DET_DAY, "d" }, { DET_HOUR, "h" }, { DET_MINUTE, "m" }, { DET_SECOND, "s" } };
    size_t i = 0;
    int first, second;

    span = span < 0 ? 0 : span;
    while (i < 3 && span < units[i].size)
        i++;
    first = (int)(span / units[i].size);
    det_assert(i < sizeof units / sizeof *units);
    second = i < 3 ? (int)(span % units[i].size / units[i + 1].size) : 0;
    if (i == 3 && first < 10 && span % DET_SECOND >= DET_SECOND / 10)
        snprintf(
            target, SHOW_SPAN_TEXT, "%d.%ds", first, (int)(span % DET_SECOND / (DET_SECOND / 10)));
    else if (second > 0 && first < 10)
        snprintf(
            target, SHOW_SPAN_TEXT, "%d%s%d%s", first, units[i].name, second, units[i + 1].name);
    else
        snprintf(target, SHOW_SPAN_TEXT, "%d%s", first, units[i].name);
    return target;
}

/* States of the machines and their words. A state that is not listed is its own word. */
struct word {
    const char *state;
    struct show_state shown;
};

static struct show_state find_word(const struct word *words, size_t count, const char *state)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i].state, state) == 0)
            return words[i].shown;
    }
    return (struct show_state){ state, CLI_PLAIN };
}

#define FIND(words, state) find_word(words, sizeof(words) / sizeof *(words), state)

static struct show_state ended_state(const struct det_json_value *task)
{
    static const struct word words[] = {
        { "completed", { "completed", CLI_GREEN } },
        { "failed", { "failed", CLI_RED } },
        { "fatal", { "failed", CLI_RED } },
        { "cancelled", { "stopped", CLI_FAINT } },
        { "force_aborted", { "forced", CLI_YELLOW } },
    };

    return FIND(words, show_text(det_json_get(task, "last"), "outcome"));
}

struct show_state show_task_state(const struct det_json_value *task)
{
    static const struct word words[] = {
        { "queued", { "queued", CLI_FAINT } },
        { "held", { "held", CLI_FAINT } },
        { "waiting", { "waiting", CLI_YELLOW } },
        { "running", { "running", CLI_GREEN } },
        { "backoff", { "backoff", CLI_RED } },
        { "resting", { "resting", CLI_BLUE } },
        { "cancelling", { "stopping", CLI_YELLOW } },
        { "ending", { "stopping", CLI_YELLOW } },
        { "holding", { "stopping", CLI_YELLOW } },
        { "recycling", { "restarting", CLI_YELLOW } },
        { "done", { "done", CLI_FAINT } },
        { "completed", { "completed", CLI_GREEN } },
        { "failed", { "failed", CLI_RED } },
        { "stopped", { "stopped", CLI_FAINT } },
        { "rejected", { "rejected", CLI_RED } },
    };
    const char *state = show_text(task, "state");

    if (strcmp(state, "running") == 0 && det_json_is(det_json_get(task, "ready"), DET_JSON_FALSE))
        return (struct show_state){ "starting", CLI_YELLOW };
    if (strcmp(state, "running") == 0 && det_json_is(det_json_get(task, "healthy"), DET_JSON_FALSE))
        return (struct show_state){ "unhealthy", CLI_RED };
    if (strcmp(state, "done") == 0 && *ended_state(task).word)
        return ended_state(task);
    return FIND(words, state);
}

struct show_state show_group_state(const struct det_json_value *group)
{
    static const struct word words[] = {
        { "running", { "running", CLI_GREEN } },    { "restarting", { "restarting", CLI_YELLOW } },
        { "paused", { "restarting", CLI_YELLOW } }, { "stopping", { "stopping", CLI_YELLOW } },
        { "stopped", { "stopped", CLI_FAINT } },    { "failing", { "failing", CLI_RED } },
        { "backoff", { "backoff", CLI_RED } },      { "failed", { "failed", CLI_RED } },
    };

    return FIND(words, show_text(group, "state"));
}

struct show_state show_slot_state(const struct det_json_value *slot)
{
    static const struct word words[] = {
        { "idle", { "idle", CLI_FAINT } },
        { "running", { "running", CLI_GREEN } },
        { "terminating", { "stopping", CLI_YELLOW } },
        { "closing", { "closing", CLI_YELLOW } },
    };

    return FIND(words, show_text(slot, "state"));
}

struct show_state show_worker_state(const struct det_json_value *worker)
{
    static const struct word phases[] = {
        { "stopped", { "", CLI_FAINT } },   { "starting", { "", CLI_BLUE } },
        { "running", { "", CLI_GREEN } },   { "degraded", { "", CLI_RED } },
        { "stopping", { "", CLI_YELLOW } },
    };
    struct show_state shown =
        find_word(phases, sizeof phases / sizeof *phases, show_text(worker, "phase"));

    shown.word = show_text(worker, "state");
    return shown;
}

void show_state_cell(struct table *table, struct show_state state)
{
    table_add(table, state.style, "%s", state.word);
}

void show_age_cell(struct table *table, const struct det_json_value *object, det_time now)
{
    det_time since = det_json_get_time(object, "since");
    char text[SHOW_SPAN_TEXT];

    table_add(
        table, CLI_PLAIN, "%s",
        since ? show_span((now - since) / DET_SECOND * DET_SECOND, text) : "");
}

void show_next_cell(struct table *table, const struct det_json_value *task, det_time now)
{
    det_time next = det_json_get_time(task, "next_at");
    char text[SHOW_SPAN_TEXT];

    if (next == 0)
        table_add(table, CLI_PLAIN, "%s", "");
    else if (next <= now)
        table_add(table, CLI_PLAIN, "now");
    else
        table_add(table, CLI_PLAIN, "in %s", show_span(next - now, text));
}

void show_why_cell(struct table *table, const struct det_json_value *task)
{
    const char *waits_for = show_text(task, "waits_for"), *reason = show_text(task, "reason");
    bool runs = strcmp(show_text(task, "state"), "running") == 0;
    /* The streak is over, or ends on request. */
    bool is_old = runs ? det_json_get_signed(task, "failures") == 0
                       : show_task_state(task).style == CLI_YELLOW;

    if (*waits_for)
        table_add(table, CLI_PLAIN, "waits for %s", waits_for);
    else if (is_old || !runs)
        table_add(table, CLI_PLAIN, "%s", is_old ? "" : reason);
    else
        table_add(table, CLI_FAINT, "%s%s", *reason ? "before: " : "", reason);
}
