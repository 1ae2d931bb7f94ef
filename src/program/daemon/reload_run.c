/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reload_run.c - runs a reload, from its request to its answer.
 *
 * A reload turns the loop, so it runs between two turns, and its request is answered from there. */
#include <detent/driver/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "daemon/reload_plan.h"
#include "daemon/reload_states.h"
#include "daemon/run.h"
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
        up_note(up, UP_NAME, "reload: no changes");
    for (const struct reload_item *item = reload->first; item; item = item->next)
        up_note(
            up, UP_NAME, "reload: %s%s%s %s%s", item->subject, item->name ? " " : "",
            item->name ? item->name : "", reload_change_word(item->change),
            item->needs_restart ? ", which needs a restart" : "");
}

static void write_item(struct det_json_writer *json, const struct reload_item *item)
{
    det_json_open(json, NULL, '{');
    det_json_text(json, "change", reload_change_word(item->change));
    det_json_text(json, "what", item->subject);
    det_json_text(json, "name", item->name);
    det_json_bool(json, "needs_restart", item->needs_restart);
    det_json_close(json, '}');
}

static void write_items(struct det_json_writer *json, const struct reload *reload)
{
    det_json_open(json, NULL, '[');
    for (const struct reload_item *item = reload->first; item; item = item->next)
        write_item(json, item);
    det_json_close(json, ']');
}

/* Writes the answer, if a client waits for it. */
static void write_answer(
    const struct up_reload_client *client, const char *text, struct det_view items)
{
    struct det_json_writer *json;

    if (!client->request)
        return;
    det_assert(client->order->outcome != RELOAD_DONE || !*text);
    json = client->request->json;
    det_json_open(json, NULL, '{');
    det_json_text(json, "kind", "reload");
    det_json_bool(json, "is_right", client->order->outcome == RELOAD_DONE);
    det_json_bool(json, "is_applied", client->order->is_applied);
    det_json_text(json, "outcome", reload_outcome_name(client->order->outcome));
    det_json_bytes(json, "text", text, strlen(text));
    det_json_raw(json, "items", items.data, items.size);
    det_json_close(json, '}');
}

/* The outcome of a plan by the exit code of reload_open(). */
static enum reload_outcome plan_outcome(const struct reload *reload, int code)
{
    if (reload->is_stranding)
        return RELOAD_STRANDING;
    if (code == CLI_OK)
        return RELOAD_DONE;
    return code == CLI_FAILURE || reload->is_store_failed ? RELOAD_FAILED : RELOAD_INVALID;
}

/* Applies the plan; the reason of a failure is in `text`. */
static enum reload_outcome carry_out(struct reload *reload)
{
    struct det_error error = { 0 };
    char *text = NULL;

    note_plan(reload);
    if (reload_apply(reload, &error) == 0)
        return RELOAD_DONE;
    if (asprintf(
            &text, "%s: %s%s\n", reload->up->options->path, error.text,
            reload->is_applied || reload->is_lost ? "" : "; the old file stays in effect") >= 0) {
        free(reload->text);
        reload->text = text;
    }
    det_assert(!reload->is_applied || !reload->is_lost);
    if (reload->is_lost)
        return RELOAD_LOST;
    return reload->is_applied ? RELOAD_PARTIAL : RELOAD_RESTORED;
}

static void note_failure(const struct reload *reload, enum reload_outcome outcome)
{
    struct up *up = reload->up;

    up_note_failure(up, UP_NAME, "reload: %s", reload_outcome_sentence(outcome));
    if (reload->text)
        note_lines(up, reload->text);
}

/* Makes the plan, reports it and applies it unless only the plan is requested; writes the answer.
 * `client` is read only after that: it may disconnect meanwhile. False: the store must be asked
 * first. */
static bool run_reload(struct up *up, bool is_plan, const struct up_reload_client *client)
{
    struct det_json_writer items;
    struct reload reload;
    enum reload_outcome outcome = plan_outcome(&reload, reload_open(up, &reload));

    if (outcome == RELOAD_DONE && !reload.may_ask_store &&
        (reload.asks_store || (reload.reopens_machines && !is_plan))) {
        reload_close(&reload);
        return false;
    }
    /* After applying, only items that need a restart are left in the list. */
    det_json_writer_init(&items, up_allocator(up));
    write_items(&items, &reload);
    if (!is_plan && outcome == RELOAD_DONE) {
        reload_on_apply(up->reload);
        outcome = carry_out(&reload);
    }
    if (client->request) {
        client->order->outcome = outcome;
        client->order->is_applied = reload.is_applied;
    }
    write_answer(
        client, outcome == RELOAD_DONE || !reload.text ? "" : reload.text,
        det_buffer_status(&items.text) < 0
            ? det_view_of(NULL, 0)
            : det_view_of(det_buffer_text(&items.text), items.text.size));
    det_json_writer_deinit(&items);
    if (!is_plan && outcome != RELOAD_DONE)
        note_failure(&reload, outcome);
    reload_close(&reload);
    return true;
}

/* Finishes the request with the written answer. */
static void finish_reload(struct up *up)
{
    struct up_request *request = up->reload->client.request;

    up->reload->client.request = NULL;
    reload_on_finish(up->reload);
    det_assert(!reload_is_probing(up->reload) && !up->reload->probe);
    if (request)
        up_request_end(request);
}

/* The store does not answer: refuses a plan that must read it or close parts that use it. */
static void refuse_reload(struct up *up)
{
    char why[UP_UNREACHABLE_TEXT] = "it does not answer", text[2 * UP_UNREACHABLE_TEXT];

    (void)up_store_is_unreachable(up, why);
    (void)snprintf(
        text, sizeof text,
        "%s: this needs the store, which cannot be reached: %s; reload when it is back\n",
        up->options->path, why);
    up_note_failure(up, UP_NAME, "reload: %s", reload_outcome_sentence(RELOAD_AWAY));
    up_note_failure(up, UP_NAME, "%.*s", (int)strcspn(text, "\n"), text);
    if (up->reload->client.request)
        up->reload->client.order->outcome = RELOAD_AWAY;
    write_answer(&up->reload->client, text, det_view_text("[]"));
    finish_reload(up);
}

/* Runs on its own thread, since it may block. */
static void ask_store(void *argument)
{
    struct up *up = argument;

    up->reload->probe_result = up_store_ask(up);
    det_loop_post(up->loop, &up->reload->probe_post);
}

static void join_probe(struct up *up)
{
    if (up->reload->probe)
        det_thread_join(up->cli->world, up->reload->probe);
    up->reload->probe = NULL;
}

static void on_answer(void *argument)
{
    struct up *up = argument;

    join_probe(up);
    /* The run has stopped meanwhile. */
    if (!reload_is_probing(up->reload))
        return;
    if (up->reload->probe_result < 0)
        refuse_reload(up);
    else
        reload_on_answer(up->reload);
}

static void probe_store(struct up *up)
{
    char unused[UP_UNREACHABLE_TEXT];

    det_assert(!up->reload->probe);
    reload_on_probe(up->reload);
    det_assert(reload_is_probing(up->reload));
    up->reload->probe_post = (struct det_post){ .run = on_answer, .argument = up };
    if (up_store_is_unreachable(up, unused) ||
        det_thread_start(up->cli->world, "probe", ask_store, up, &up->reload->probe) < 0)
        refuse_reload(up);
}

void up_reload_between_turns(struct up *up)
{
    if (up_is_stopping(up))
        reload_on_stop(up->reload);
    else if (!up_is_running(up) || !reload_on_turn(up->reload))
        return;
    else if (run_reload(up, up->reload->is_plan, &up->reload->client))
        finish_reload(up);
    else
        probe_store(up);
}

void up_reload_on_signal(struct up *up)
{
    reload_on_signal(up->reload);
}

/* Requests. */

static void on_gone(void *user)
{
    struct up *up = user;

    det_assert(up->reload->client.request);
    up->reload->client.request = NULL;
}

/* The run stops. */
static void refuse_client(struct up *up)
{
    struct up_request *request = up->reload->client.request;

    up->reload->client.request = NULL;
    if (request)
        up_request_fail(request, DET_ERR_CLOSED, CLI_SHUTDOWN);
}

/* Makes a plan without asking the store; a plan that needs it fails. */
static void plan_while_stopping(struct up *up, const struct up_reload_client *client)
{
    if (run_reload(up, true, client))
        up_request_end(client->request);
    else
        up_request_fail(client->request, DET_ERR_BUSY, CLI_SHUTDOWN);
}

void up_order_reload(struct up *up, struct up_request *request, struct up_reload_order *order)
{
    const struct up_reload_client client = { .request = request, .order = order };

    order->outcome = RELOAD_FAILED;
    order->is_applied = false;
    if (order->is_plan && !up_is_running(up))
        plan_while_stopping(up, &client);
    else if (!up_is_running(up) || !up->reload)
        up_request_fail(request, DET_ERR_BUSY, CLI_SHUTDOWN);
    else if (reload_on_request(up->reload, &client, order->is_plan))
        up_request_keep(request, on_gone, up);
    else
        up_request_fail(request, DET_ERR_BUSY, "a reload is running; retry later");
}

/* Opening. */

int up_reload_open(struct up *up)
{
    const struct det_allocator *allocator = up->cli->allocator;
    struct up_reload *reload = DET_NEW(allocator, struct up_reload);
    int r;

    det_assert(!up->reload);
    if (!reload)
        return DET_ERR_NO_MEMORY;
    reload->up = up;
    reload->allocator = allocator;
    reload->refuse_client = refuse_client;
    r = reload_supervise(reload, up_executor(up));
    if (r < 0)
        DET_DELETE(allocator, reload);
    else
        up->reload = reload;
    return r;
}

void up_reload_close(struct up *up)
{
    if (!up->reload)
        return;
    join_probe(up);
    reload_on_stop(up->reload);
}

void up_reload_free(struct up_reload *reload)
{
    if (reload)
        DET_DELETE(reload->allocator, reload);
}
