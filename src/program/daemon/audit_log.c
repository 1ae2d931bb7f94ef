/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* audit_log.c - writes audit records as log lines of the component "audit" (docs/observability.md).
 * Without a log, `serve` prints them and `up` does not: its user sees the effect. */
#include <detent/driver/loop.h>
#include <string.h>

#include "base/memory.h"
#include "daemon/daemon.h"
#include "daemon/telemetry.h"
#include "task/bus.h"

struct up_audit {
    struct audit *ring; /* NULL: closed */
    struct det_post post;
};

static void run_report(void *argument)
{
    struct up *up = argument;

    audit_report(up_audit(up)->ring);
}

static void wake_loop(void *user)
{
    struct up *up = user;

    up_audit(up)->post = (struct det_post){ .run = run_report, .argument = up };
    det_loop_post(up_loop(up), &up_audit(up)->post);
}

static const char *or_none(const char *text)
{
    return *text ? text : NULL;
}

static void write_line(struct up *up, const struct audit_action *action)
{
    enum det_log_level level = action->outcome == AUDIT_DONE ? DET_LOG_INFO : DET_LOG_WARNING;
    struct det_log_line line;

    det_log_line_begin(up_logger(up), &line, level, "audit", "%s", action->what);
    det_log_line_text(&line, "outcome", audit_outcome_name(action->outcome));
    if (action->status)
        det_log_line_number(&line, "status", action->status);
    det_log_line_text(&line, "code", action->code);
    det_log_line_text(&line, "token", or_none(action->token));
    det_log_line_text(&line, "subject", or_none(action->subject));
    if (action->user != AUDIT_NOBODY)
        det_log_line_number(&line, "uid", action->user);
    det_log_line_text(&line, "peer", or_none(action->peer));
    if (action->not_reported)
        det_log_line_number(&line, "omitted", (int64_t)action->not_reported);
    det_log_line_end(&line);
}

/* "stop ticker: done, by token k3v9x2ap from 127.0.0.1:41000" */
static void put_words(const struct audit_action *action, char target[DET_TASK_REASON_MAX + 1])
{
    char who[AUDIT_SUBJECT + 16] = "unknown";

    if (*action->token)
        snprintf(who, sizeof who, "token %s", action->token);
    else if (action->user != AUDIT_NOBODY)
        snprintf(who, sizeof who, "user %lld", (long long)action->user);
    else if (*action->subject)
        snprintf(who, sizeof who, "%s", action->subject);
    if (*action->peer)
        snprintf(
            target, DET_TASK_REASON_MAX + 1, "%.80s: %.8s, by %.40s from %.47s", action->what,
            audit_outcome_name(action->outcome), who, action->peer);
    else
        snprintf(target, DET_TASK_REASON_MAX + 1, "%.190s", action->what);
}

/* Publishes the record on the bus, and so in the journal. A refused request had no effect, and is
 * not published. */
static void publish_record(struct up *up, const struct audit_action *action)
{
    struct det_task_event event = {
        .kind = DET_TASK_EVENT_ORDERED,
        .at = det_world_now(up_cli(up)->world, DET_CLOCK_WALL),
    };

    if (!up_tasks_supervisor(up) || action->outcome == AUDIT_REFUSED)
        return;
    put_words(action, event.reason);
    det_bus_publish(det_tasks_bus(up_tasks_supervisor(up)), &event);
}

static void print_record(struct up *up, const struct audit_action *action)
{
    char text[DET_TASK_REASON_MAX + 1];

    put_words(action, text);
    up_note(up, UP_NAME, "%s", text);
}

static void report_record(void *user, const struct audit_action *action)
{
    struct up *up = user;

    if (action->outcome != AUDIT_INCIDENT)
        publish_record(up, action);
    if (action->outcome == AUDIT_INCIDENT)
        up_note_failure(up, UP_NAME, "%s", action->what);
    else if (up_logger(up))
        write_line(up, action);
    else if (up_options(up)->is_serving && !up_cli(up)->is_json)
        print_record(up, action);
}

int up_audit_open(struct up *up)
{
    const struct audit_options options = {
        .allocator = up_allocator(up),
        .world = up_cli(up)->world,
        .wake = wake_loop,
        .report = report_record,
        .user = up,
    };
    struct up_audit *audit = DET_NEW(options.allocator, struct up_audit);
    int r;

    if (!audit)
        return DET_ERR_NO_MEMORY;
    r = audit_open(&options, &audit->ring);
    if (r < 0)
        DET_DELETE(options.allocator, audit);
    else
        up_set_audit(up, audit);
    return r;
}

void up_audit_close(struct up *up)
{
    if (!up_audit(up))
        return;
    audit_close(up_audit(up)->ring);
    up_audit(up)->ring = NULL;
}

void up_audit_free(struct up *up)
{
    if (up_audit(up))
        DET_DELETE(up_allocator(up), up_audit(up));
    up_set_audit(up, NULL);
}

void up_audit_add(struct up *up, const struct audit_action *action)
{
    if (up_audit(up))
        audit_add(up_audit(up)->ring, action);
}

void up_audit_signal(struct up *up, const char *what, int64_t uid)
{
    struct audit_action action = { .peer = "signal", .user = uid };

    snprintf(action.what, sizeof action.what, "%s", what);
    up_audit_add(up, &action);
}

/* Changes of tokens, from the thread that has read their file. */

void up_tokens_changed(void *user, const struct token *token, bool is_new)
{
    struct up *up = user;
    struct audit_action action = { .user = AUDIT_NOBODY };

    snprintf(
        action.what, sizeof action.what, "token %s (%s) is %s", token->id, token->name,
        is_new ? "new" : "gone");
    up_audit_add(up, &action);
}

void up_tokens_problem(void *user, const char *text, bool is_closed)
{
    struct up *up = user;
    struct audit_action action = { .outcome = AUDIT_INCIDENT, .user = AUDIT_NOBODY };

    snprintf(
        action.what, sizeof action.what, "%s%s",
        is_closed ? "all tokens are rejected until this is fixed: "
                  : "new tokens are not accepted yet: ",
        text);
    up_audit_add(up, &action);
}
