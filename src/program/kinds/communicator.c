/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* communicator.c - the decisions of the communicator.
 *
 * It retries for ever: delays grow after each failed attempt, or follow the relay's request, and
 * the transport is reset periodically. */
#include "kinds/communicator.h"

#include <string.h>

#include "base/text.h"
#include "kinds/relay_token.h"
#include "kinds/relay_url.h"

#define WORKER_SPEC "kinds/communicator.worker"
#include <detent/worker/define.h>

/* Remaining delay after an attempt; 0: due. A clock that was set back does not lengthen the
 * delay. */
static det_time left_to_wait(const struct communicator_view *view, det_time attempt)
{
    const struct communicator_observed *observed = view->observed;
    bool is_known = attempt > 0 && attempt <= view->all->wall;
    det_time elapsed = is_known ? view->all->wall - attempt : 0;
    det_time delay = relay_delay(
        observed->last_error, observed->consecutive_errors,
        observed->retry_after_ms * DET_MILLISECOND);

    return !is_known || elapsed >= delay ? 0 : delay - elapsed;
}

static struct communicator_next wait_for(const struct communicator_view *view, det_time left)
{
    return communicator_hold(det_reason(
        view->all, "%u error%s in a row, the last is %s: next attempt in %lld s",
        view->observed->consecutive_errors, det_plural(view->observed->consecutive_errors),
        relay_class_name(view->observed->last_error),
        (long long)((left + DET_SECOND - 1) / DET_SECOND)));
}

static bool is_expiring(const struct communicator_view *view)
{
    return relay_token_is_expiring(view->observed->token_expiry, view->all->wall);
}

static struct communicator_next communicator_in_stopped(const struct communicator_view *view)
{
    (void)view;
    return communicator_goto(COMMUNICATOR_AUTHENTICATING, "start wanted");
}

static struct communicator_next communicator_in_authenticating(const struct communicator_view *view)
{
    const struct communicator_observed *observed = view->observed;
    det_time left =
        observed->consecutive_errors ? left_to_wait(view, observed->last_auth_attempt) : 0;

    if (observed->has_token && !is_expiring(view))
        return communicator_goto(
            COMMUNICATOR_SYNCING, det_reason(view->all, "logged in as %s", observed->uuid));
    if (left)
        return wait_for(view, left);
    return communicator_do(
        COMMUNICATOR_AUTHENTICATE,
        observed->has_token ? "the token ends in less than 10 minutes" : "there is no token");
}

static struct communicator_next communicator_in_syncing(const struct communicator_view *view)
{
    const struct communicator_observed *observed = view->observed;
    det_time left;

    if (!observed->has_token)
        return communicator_goto(COMMUNICATOR_AUTHENTICATING, "there is no token");
    if (is_expiring(view))
        return communicator_goto(
            COMMUNICATOR_AUTHENTICATING, "the token ends in less than 10 minutes");
    if (observed->consecutive_errors >= COMMUNICATOR_ERRORS_MAX)
        return communicator_goto(
            COMMUNICATOR_DEGRADED,
            det_reason(
                view->all, "%u error%s in a row: %s", observed->consecutive_errors,
                det_plural(observed->consecutive_errors), observed->last_error_text));
    left = observed->retry_after_ms ? left_to_wait(view, observed->last_attempt) : 0;
    if (left)
        return wait_for(view, left);
    return communicator_do(
        COMMUNICATOR_SYNC,
        det_reason(
            view->all, "%u to push%s", observed->outbound + observed->pending,
            observed->is_inbound_full ? ", none to pull: the inbound queue is full" : ""));
}

static struct communicator_next communicator_in_degraded(const struct communicator_view *view)
{
    const struct communicator_observed *observed = view->observed;
    det_time left = left_to_wait(view, observed->last_attempt);

    if (observed->last_error == RELAY_INVALID_TOKEN || !observed->has_token)
        return communicator_goto(COMMUNICATOR_AUTHENTICATING, "the token has expired");
    if (observed->consecutive_errors == 0)
        return communicator_goto(COMMUNICATOR_SYNCING, "a sync has succeeded");
    if (left)
        return wait_for(view, left);
    if (relay_reset_is_due(observed->last_error, observed->consecutive_errors, observed->reset_for))
        return communicator_do(
            COMMUNICATOR_RESET_TRANSPORT,
            det_reason(
                view->all, "%u error%s in a row, the last is %s", observed->consecutive_errors,
                det_plural(observed->consecutive_errors), relay_class_name(observed->last_error)));
    return communicator_do(
        COMMUNICATOR_SYNC,
        det_reason(
            view->all, "%u error%s in a row: another attempt", observed->consecutive_errors,
            det_plural(observed->consecutive_errors)));
}

static int communicator_do_authenticate(
    struct det_worker_context *context, struct communicator_deps *deps,
    const struct communicator_desired *desired)
{
    return communicator_authenticate(context, deps, desired);
}

static int communicator_do_sync(
    struct det_worker_context *context, struct communicator_deps *deps,
    const struct communicator_desired *desired)
{
    return communicator_sync(context, deps, desired);
}

static int communicator_do_reset_transport(
    struct det_worker_context *context, struct communicator_deps *deps,
    const struct communicator_desired *desired)
{
    return communicator_reset(context, deps, desired);
}

/* Observations of another relay or token do not count: a corrected config is tried at once. */
static int communicator_collect(
    struct det_worker_context *context, struct communicator_deps *deps,
    const struct communicator_desired *desired, struct communicator_observed *observed)
{
    struct channel_counts counts;

    channel_check(deps->channel, &counts);
    *observed = (struct communicator_observed){ 0 };
    det_worker_lock(context);
    if (det_record_equal(communicator_desired_record(), &deps->served, desired))
        *observed = deps->observed;
    det_worker_unlock(context);
    if (!*observed->uuid)
        memcpy(observed->uuid, desired->instance_uuid, sizeof observed->uuid);
    observed->messages_pulled = counts.delivered;
    observed->messages_pushed = counts.acknowledged;
    observed->messages_dropped = counts.dropped;
    memcpy(observed->dropped_because, counts.dropped_because, sizeof observed->dropped_because);
    observed->inbound = counts.inbound;
    observed->outbound = counts.outbound;
    observed->pending = counts.pending;
    observed->is_inbound_full = counts.is_inbound_full;
    return 0;
}

static int communicator_open(struct det_worker_context *context, struct communicator_deps *deps)
{
    const struct communicator_defaults *defaults =
        det_worker_inherited(context, COMMUNICATOR_DEFAULTS);

    deps->allocator = context->allocator;
    if (defaults)
        deps->defaults = *defaults;
    deps->channel = det_worker_inherited(context, DET_CHANNEL_NAME);
    if (!deps->channel)
        return det_worker_fail(
            context, DET_ERR_UNBOUND,
            "%s: no ancestor provides a \"" DET_CHANNEL_NAME "\" for its messages",
            context->identity->id);
    return 0;
}

static void communicator_close(struct communicator_deps *deps)
{
    relay_close(deps->relay);
    explicit_bzero(&deps->served, sizeof deps->served);
}

static int communicator_derive(
    struct det_derive *derive, const struct communicator_desired *config,
    struct communicator_desired *desired)
{
    if (*config->relay_url && !relay_url_is_valid(config->relay_url))
        return derive->refuse(
            derive,
            "relay_url is \"%s\": it must be http://host or https://host, without a "
            "password and a query",
            config->relay_url);
    if (config->timeout_ms * DET_MILLISECOND > COMMUNICATOR_TIMEOUT_MAX)
        return derive->refuse(
            derive, "timeout_ms is %u: it must be at most %lld", config->timeout_ms,
            (long long)(COMMUNICATOR_TIMEOUT_MAX / DET_MILLISECOND));
    *desired = *config;
    if (!desired->timeout_ms)
        desired->timeout_ms = COMMUNICATOR_TIMEOUT / DET_MILLISECOND;
    return 0;
}
