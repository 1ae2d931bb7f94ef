/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reload_run.c - a reload from the wish for it to its answer.
 *
 * It runs between two turns of the loop, since it turns the loop itself: who asks for it is
 * answered from there. */
#include <detent/driver/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/reload.h"
#include "daemon/verbs.h"
#include "os/os.h"

static void note_lines(struct up *up, char *text)
{
    char *rest = text, *line;

    while ((line = strsep(&rest, "\n"))) {
        if (*line)
            up_note_failure(up, UP_NAME, "%s", line);
    }
}

static void note_plan(const struct reload *reload)
{
    struct up *up = reload->up;

    if (!reload->count)
        up_note(up, UP_NAME, "reload: nothing has changed");
    for (const struct reload_item *item = reload->first; item; item = item->next)
        up_note(
            up, UP_NAME, "reload: %s%s%s %s%s", item->subject, item->name ? " " : "",
            item->name ? item->name : "", reload_change_word(item->change),
            item->needs_restart ? ", which needs a restart" : "");
}

static json_t *items_of(const struct reload *reload)
{
    json_t *items = json_array();

    for (const struct reload_item *item = reload->first; item; item = item->next)
        json_array_append_new(
            items, json_pack(
                       "{s:s, s:s, s:s?, s:b}", "change", reload_change_word(item->change), "what",
                       item->subject, "name", item->name, "needs_restart", item->needs_restart));
    return items;
}

/* Carries it out; CLI_OK or an exit code, and then `text` says why. */
static int carry_out(struct reload *reload)
{
    struct det_error error = { 0 };
    char *text = NULL;

    note_plan(reload);
    if (reload_apply(reload, &error) == 0)
        return CLI_OK;
    if (asprintf(
            &text, "%s: %s%s\n", reload->up->options->path, error.text,
            reload->is_applied ? "" : "; it goes on as it was before") >= 0) {
        free(reload->text);
        reload->text = text;
    }
    return CLI_FAILURE;
}

static void note_failure(const struct reload *reload)
{
    struct up *up = reload->up;

    up_note_failure(
        up, UP_NAME, "reload: %s",
        reload->is_applied ? "not all of it was taken over" : "refused, and nothing has changed");
    if (reload->text)
        note_lines(up, reload->text);
}

/* Makes the plan, tells it and, if that is wanted, carries it out. The answer; NULL: no memory, or
 * the store has to be asked first. */
static json_t *run(struct up *up, bool is_plan, bool *must_probe)
{
    struct reload reload;
    int code = reload_open(up, &reload);
    json_t *answer = NULL, *items = items_of(&reload);

    *must_probe = code == CLI_OK && !reload.may_ask_store &&
                  (reload.asks_store || (reload.reopens_machines && !is_plan));
    if (*must_probe) {
        json_decref(items);
        reload_close(&reload);
        return NULL;
    }
    if (!is_plan && code == CLI_OK)
        code = carry_out(&reload);
    answer = json_pack(
        "{s:s, s:b, s:b, s:s, s:o}", "kind", "reload", "is_right", code == CLI_OK, "is_applied",
        reload.is_applied, "text", code == CLI_OK || !reload.text ? "" : reload.text, "items",
        items);
    if (!is_plan)
        up->was_refused = code != CLI_OK;
    if (!is_plan && code != CLI_OK)
        note_failure(&reload);
    reload_close(&reload);
    return answer;
}

static void finish(struct up *up, json_t *answer)
{
    struct socket_call *call = up->reload_call;

    up->reload_call = NULL;
    up->is_reloading = up->store_is_probed = up->reload_is_plan = false;
    if (call)
        socket_call_answer(call, answer);
    else
        json_decref(answer);
}

/* The store does not answer: nothing is read from it, and nothing that needs it is closed. */
static void refuse(struct up *up)
{
    char why[UP_AWAY_TEXT] = "it does not answer", text[2 * UP_AWAY_TEXT];

    (void)up_store_is_away(up, why);
    (void)snprintf(
        text, sizeof text,
        "%s: this needs the store, which cannot be reached: %s; reload when it is back",
        up->options->path, why);
    up_note_failure(up, UP_NAME, "reload: refused, and nothing has changed");
    up_note_failure(up, UP_NAME, "%s", text);
    up->was_refused = up->was_refused || !up->reload_is_plan;
    finish(
        up, json_pack(
                "{s:s, s:b, s:b, s:s, s:[]}", "kind", "reload", "is_right", 0, "is_applied", 0,
                "text", text, "items"));
}

/* On a thread of its own, since it may wait: the loop goes on. */
static void ask_store(void *argument)
{
    struct up *up = argument;

    up->probe_result = up_store_ask(up);
    det_loop_post(up->loop, &up->probe_post);
}

static void on_answer(void *argument)
{
    struct up *up = argument;

    /* It was closed meanwhile. */
    if (!up->probe)
        return;
    det_thread_join(up->cli->world, up->probe);
    up->probe = NULL;
    if (up->probe_result < 0) {
        refuse(up);
        return;
    }
    up->store_is_probed = true;
    up->reload_wanted = true;
    up->is_reloading = false;
}

static void probe_store(struct up *up)
{
    char unused[UP_AWAY_TEXT];

    up->probe_post = (struct det_post){ .run = on_answer, .argument = up };
    if (up_store_is_away(up, unused) ||
        det_thread_start(up->cli->world, "probe", ask_store, up, &up->probe) < 0)
        refuse(up);
}

void up_reload(struct up *up)
{
    bool must_probe = false;
    json_t *answer;

    up->reload_wanted = false;
    up->is_reloading = true;
    answer = run(up, up->reload_is_plan, &must_probe);
    if (must_probe)
        probe_store(up);
    else
        finish(up, answer);
}

void up_reload_over(struct up *up)
{
    struct socket_call *call = up->reload_call;

    up->reload_wanted = false;
    up->reload_call = NULL;
    if (call)
        socket_call_fail(call, DET_ERR_CLOSED, CLI_SHUTDOWN);
}

void up_reload_close(struct up *up)
{
    if (up->probe)
        det_thread_join(up->cli->world, up->probe);
    up->probe = NULL;
    up_reload_over(up);
}

static void on_gone(void *user)
{
    struct up *up = user;

    up->reload_call = NULL;
}

/* Nobody waits for the store any more: a plan that needs it cannot be made. */
static void plan_while_stopping(struct up *up, struct socket_call *call)
{
    bool must_probe = false;
    json_t *answer = run(up, true, &must_probe);

    if (must_probe)
        socket_call_fail(call, DET_ERR_BUSY, CLI_SHUTDOWN);
    else
        socket_call_answer(call, answer);
}

void up_run_reload(void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument arguments[] = { { "plan", UP_BOOLEAN }, { NULL, UP_TEXT } };
    struct up *up = context;

    if (!up_arguments_check(request, call, arguments))
        return;
    if (up_argument_is_set(request, "plan") && up->state != UP_RUNNING) {
        plan_while_stopping(up, call);
        return;
    }
    if (up->state != UP_RUNNING || up->reload_call || up->is_reloading) {
        socket_call_fail(
            call, DET_ERR_BUSY,
            up->state != UP_RUNNING ? CLI_SHUTDOWN : "a reload is running; retry later");
        return;
    }
    up->reload_call = call;
    up->reload_is_plan = up_argument_is_set(request, "plan");
    up->reload_wanted = true;
    socket_call_keep(call, on_gone, up);
}
