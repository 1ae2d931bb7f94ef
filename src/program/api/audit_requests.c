/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* audit_requests.c - what the HTTP API tells of who acts, and of who is refused. */
#include <stdio.h>
#include <string.h>

#include "api/api_internal.h"
#include "base/text.h"
#include "daemon/daemon.h"

/* Tasks and jobs need an admin; instances are cancelled and retried by who may send. */
bool api_is_audited(const struct api_route *route)
{
    return route->scope == TOKENS_ADMIN || route->run == api_cancel || route->run == api_retry ||
           route->run == api_redeem || route->run == api_sign_out;
}

static void fill(
    struct audit_deed *deed, const struct http_request *request, const struct api_note *note)
{
    *deed = (struct audit_deed){ .user = request->uid };
    if (!request->is_trusted)
        (void)det_text_copy(deed->token, sizeof deed->token, note->who);
    if (request->subject)
        snprintf(deed->subject, sizeof deed->subject, "%s", request->subject);
    snprintf(deed->peer, sizeof deed->peer, "%s", request->peer);
}

struct audit_deed *api_deed(struct det_arena *arena, struct http_exchange *exchange)
{
    const struct http_request *request = http_request(exchange);
    struct audit_deed *deed = det_arena_alloc(arena, sizeof *deed);

    if (!deed)
        return NULL;
    fill(deed, request, http_note(exchange));
    snprintf(
        deed->what, sizeof deed->what, "%s %s", api_method_name(request->method), request->path);
    return deed;
}

const char *api_actor(struct api_call *call)
{
    const struct audit_deed *deed = call->deed;

    if (*deed->token)
        return det_arena_format(&call->arena, "by token %s", deed->token);
    return det_arena_format(&call->arena, "by user %lld", (long long)deed->user);
}

/* 401 of a code that is none, and what the guard says. */
static bool is_refusal(unsigned status)
{
    return status == 401 || status == 403 || status == 421 || status == 429;
}

void api_audit(struct api *api, struct audit_deed *deed, unsigned status)
{
    /* A refusal is told of once, when its answer is there. */
    if (is_refusal(status))
        return;
    deed->status = status;
    if (deed->outcome != AUDIT_UNKNOWN)
        deed->outcome = status < 400 && !deed->code ? AUDIT_DONE : AUDIT_FAILED;
    audit_add(api->up->audit, deed);
}

/* The path is anybody's text here: its route is told instead. */
void api_audit_refusal(struct api *api, const struct http_done *done)
{
    const struct api_note *note = done->note;
    struct audit_deed deed;

    if (!note || !is_refusal(done->status))
        return;
    fill(&deed, done->request, note);
    deed.outcome = AUDIT_REFUSED;
    deed.status = done->status;
    snprintf(
        deed.what, sizeof deed.what, "%s %s", api_method_name(done->request->method), note->label);
    audit_add(api->up->audit, &deed);
}
