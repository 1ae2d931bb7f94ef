/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* audit_requests.c - audit entries of the HTTP API: actions and refusals. */
#include <stdio.h>
#include <string.h>

#include "api/api_internal.h"
#include "base/text.h"
#include "daemon/daemon.h"

/* Admin routes are audited, and those that cancel, retry, sign in or sign out. */
bool api_is_audited(const struct api_route *route)
{
    return route->scope == TOKENS_ADMIN || route->run == api_cancel || route->run == api_retry ||
           route->run == api_redeem || route->run == api_sign_out;
}

static void fill_action(
    struct audit_action *action, const struct http_request *request, const struct api_note *note)
{
    *action = (struct audit_action){ .user = request->uid };
    if (!request->is_trusted)
        (void)det_text_copy(action->token, sizeof action->token, note->who);
    if (request->subject)
        snprintf(action->subject, sizeof action->subject, "%s", request->subject);
    snprintf(action->peer, sizeof action->peer, "%s", request->peer);
}

struct audit_action *api_action(struct det_arena *arena, struct http_exchange *exchange)
{
    const struct http_request *request = http_request(exchange);
    struct audit_action *action = det_arena_alloc(arena, sizeof *action);

    if (!action)
        return NULL;
    fill_action(action, request, http_note(exchange));
    snprintf(
        action->what, sizeof action->what, "%s %s", api_method_name(request->method),
        request->path);
    return action;
}

const char *api_actor(struct api_call *call)
{
    const struct audit_action *action = call->action;

    if (*action->token)
        return det_arena_format(&call->arena, "by token %s", action->token);
    return det_arena_format(&call->arena, "by user %lld", (long long)action->user);
}

/* Refusals of the guard, and 401 for a wrong code. */
static bool is_refusal(unsigned status)
{
    return status == 401 || status == 403 || status == 421 || status == 429;
}

void api_audit(struct api *api, struct audit_action *action, unsigned status)
{
    /* api_audit_refusal() reports it when the answer is sent. */
    if (is_refusal(status))
        return;
    action->status = status;
    if (action->outcome != AUDIT_UNKNOWN)
        action->outcome = status < 400 && !action->code ? AUDIT_DONE : AUDIT_FAILED;
    up_audit_add(api->up, action);
}

/* The path of a refused request is arbitrary text, so the entry names its route. */
void api_audit_refusal(struct api *api, const struct http_done *done)
{
    const struct api_note *note = done->note;
    struct audit_action action;

    if (!note || !is_refusal(done->status))
        return;
    fill_action(&action, done->request, note);
    action.outcome = AUDIT_REFUSED;
    action.status = done->status;
    snprintf(
        action.what, sizeof action.what, "%s %s", api_method_name(done->request->method),
        note->label);
    up_audit_add(api->up, &action);
}
