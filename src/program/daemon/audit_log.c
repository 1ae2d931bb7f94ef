/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* audit_log.c - what is told of those who act on a running detent: a line of the log each, with the
 * component "audit" (docs/observability.md). Who watches tasks at a terminal sees what comes of
 * it, and is told nothing. */
#include <detent/driver/loop.h>
#include <string.h>

#include "daemon/telemetry.h"
#include "daemon/verbs.h"
#include "task/bus.h"

static void run_tell(void *argument)
{
    struct up *up = argument;

    audit_tell(up->audit);
}

static void wake(void *user)
{
    struct up *up = user;

    up->audit_post = (struct det_post){ .run = run_tell, .argument = up };
    det_loop_post(up->loop, &up->audit_post);
}

static const char *or_none(const char *text)
{
    return *text ? text : NULL;
}

static void write_line(struct up *up, const struct audit_deed *deed)
{
    enum det_log_level level = deed->outcome == AUDIT_DONE ? DET_LOG_INFO : DET_LOG_WARNING;
    struct det_log_line line;

    det_log_line_begin(up->log, &line, level, "audit", "%s", deed->what);
    det_log_line_text(&line, "outcome", audit_outcome_name(deed->outcome));
    if (deed->status)
        det_log_line_number(&line, "status", deed->status);
    det_log_line_text(&line, "code", deed->code);
    det_log_line_text(&line, "token", or_none(deed->token));
    det_log_line_text(&line, "subject", or_none(deed->subject));
    if (deed->user != AUDIT_NOBODY)
        det_log_line_number(&line, "uid", deed->user);
    det_log_line_text(&line, "peer", or_none(deed->peer));
    if (deed->not_told)
        det_log_line_number(&line, "not_told", (int64_t)deed->not_told);
    det_log_line_end(&line);
}

/* "stop ticker: done, by token k3v9x2ap from 127.0.0.1:41000" */
static void put_words(const struct audit_deed *deed, char target[DET_TASK_REASON_MAX + 1])
{
    char who[AUDIT_SUBJECT + 16] = "nobody we know";

    if (*deed->token)
        snprintf(who, sizeof who, "token %s", deed->token);
    else if (deed->user != AUDIT_NOBODY)
        snprintf(who, sizeof who, "user %lld", (long long)deed->user);
    else if (*deed->subject)
        snprintf(who, sizeof who, "%s", deed->subject);
    if (*deed->peer)
        snprintf(
            target, DET_TASK_REASON_MAX + 1, "%.80s: %.8s, by %.40s from %.47s", deed->what,
            audit_outcome_name(deed->outcome), who, deed->peer);
    else
        snprintf(target, DET_TASK_REASON_MAX + 1, "%.190s", deed->what);
}

/* The journal of tasks has it, and whoever follows what happens to them. Who is refused has done
 * nothing. */
static void publish(struct up *up, const struct audit_deed *deed)
{
    struct det_task_event event = {
        .kind = DET_TASK_EVENT_ORDERED,
        .at = det_world_now(up->cli->world, DET_CLOCK_WALL),
    };

    if (!up->tasks || deed->outcome == AUDIT_REFUSED)
        return;
    put_words(deed, event.reason);
    det_bus_publish(det_tasks_bus(up->tasks), &event);
}

static void say_plainly(struct up *up, const struct audit_deed *deed)
{
    char text[DET_TASK_REASON_MAX + 1];

    put_words(deed, text);
    up_note(up, UP_NAME, "%s", text);
}

static void say(void *user, const struct audit_deed *deed)
{
    struct up *up = user;

    if (deed->outcome != AUDIT_TROUBLE)
        publish(up, deed);
    if (deed->outcome == AUDIT_TROUBLE)
        up_note_failure(up, UP_NAME, "%s", deed->what);
    else if (up->log)
        write_line(up, deed);
    else if (up->options->is_serving && !up->cli->is_json)
        say_plainly(up, deed);
}

int up_audit_open(struct up *up)
{
    const struct audit_options options = {
        .allocator = up->cli->allocator,
        .world = up->cli->world,
        .wake = wake,
        .say = say,
        .user = up,
    };

    return audit_open(&options, &up->audit);
}

void up_audit_close(struct up *up)
{
    audit_close(up->audit);
    up->audit = NULL;
}

void up_audit_signal(struct up *up, const char *what, int64_t uid)
{
    struct audit_deed deed = { .peer = "signal", .user = uid };

    snprintf(deed.what, sizeof deed.what, "%s", what);
    audit_add(up->audit, &deed);
}

/* Tokens, from whichever thread has looked at their file. */

void up_tokens_changed(void *user, const struct token *token, bool is_new)
{
    struct up *up = user;
    struct audit_deed deed = { .user = AUDIT_NOBODY };

    snprintf(
        deed.what, sizeof deed.what, "token %s (%s) is %s", token->id, token->name,
        is_new ? "new" : "gone");
    audit_add(up->audit, &deed);
}

void up_tokens_trouble(void *user, const char *text, bool is_closed)
{
    struct up *up = user;
    struct audit_deed deed = { .outcome = AUDIT_TROUBLE, .user = AUDIT_NOBODY };

    snprintf(
        deed.what, sizeof deed.what, "%s%s",
        is_closed ? "no token counts until this is right: " : "new tokens do not count yet: ",
        text);
    audit_add(up->audit, &deed);
}
