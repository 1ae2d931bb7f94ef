/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* mqtt_link.c - one connection to an MQTT broker.
 *
 * It has no thread: collect turns the connection once a second, and so does an action while it
 * waits for the broker's answer. Both hold the lock of the worker; the blocking lookup of the host
 * happens before the connection is shared. So a message may wait for a second, and a thousand links
 * are not a thousand threads. */
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "kinds/kinds.h"
#include "kinds/mqtt_client.h"

struct mqtt_link_deps {
    struct mqtt_client *client;                   /* NULL: none */
    uint64_t connects, messages_in, messages_out; /* of those before it */
    char last_error[121];
};

#define WORKER_SPEC "kinds/mqtt_link.worker"
#include <detent/worker/define.h>

#define PORT          1883
#define PORT_TLS      8883
#define KEEPALIVE     30
#define KEEPALIVE_MIN 10
#define ANSWER_MAX    (10 * DET_SECOND) /* for the broker */
#define GOODBYE_MAX   DET_SECOND
#define SLICE_MS      50 /* interval of checks for cancellation */

static bool has_done(const struct mqtt_link_view *view, const char *action)
{
    const struct det_action_end *last = view->all->last_action;

    return last->action && last->at >= view->all->since && strcmp(last->action, action) == 0;
}

static const char *place_reason(const struct mqtt_link_view *view, const char *text)
{
    return det_reason(
        view->all, "%s %.80s:%u", text, view->desired->host, (unsigned)view->desired->port);
}

static const char *loss_reason(const struct mqtt_link_view *view)
{
    const char *error = view->observed->last_error;

    return det_reason(
        view->all, "%.80s:%u: %s", view->desired->host, (unsigned)view->desired->port,
        *error ? error : "not connected");
}

/* The next step to a link that is up, from both states that want it. */
static struct mqtt_link_next bring_up(const struct mqtt_link_view *view)
{
    const struct mqtt_link_observed *seen = view->observed;

    if (seen->is_connected && !seen->is_current)
        return mqtt_link_do(MQTT_LINK_DISCONNECT, "its config needs another connection");
    if (!seen->is_connected)
        return mqtt_link_do(MQTT_LINK_CONNECT, loss_reason(view));
    if (!seen->is_subscribed)
        return mqtt_link_do(MQTT_LINK_SUBSCRIBE, "topics are missing");
    return mqtt_link_goto(MQTT_LINK_CONNECTED, place_reason(view, "is connected to"));
}

static struct mqtt_link_next mqtt_link_in_stopped(const struct mqtt_link_view *view)
{
    return mqtt_link_goto(MQTT_LINK_CONNECTING, place_reason(view, "must be connected to"));
}

static struct mqtt_link_next mqtt_link_in_connecting(const struct mqtt_link_view *view)
{
    if (view->all->last_action->code < 0 &&
        (has_done(view, "connect") || has_done(view, "subscribe")))
        return mqtt_link_goto(
            MQTT_LINK_LOST, det_reason(view->all, "%s", view->all->last_action->text));
    return bring_up(view);
}

static struct mqtt_link_next mqtt_link_in_connected(const struct mqtt_link_view *view)
{
    const struct mqtt_link_observed *seen = view->observed;

    if (!seen->is_connected)
        return mqtt_link_goto(MQTT_LINK_LOST, loss_reason(view));
    if (!seen->is_current || !seen->is_subscribed)
        return mqtt_link_goto(MQTT_LINK_CONNECTING, "its config has changed");
    return mqtt_link_hold(place_reason(view, "is connected to"));
}

static struct mqtt_link_next mqtt_link_in_lost(const struct mqtt_link_view *view)
{
    return bring_up(view);
}

/* Disconnects even if nothing seems to be connected: a connect may have been in progress. */
static struct mqtt_link_next mqtt_link_in_disconnecting(const struct mqtt_link_view *view)
{
    if (!has_done(view, "disconnect") || view->observed->is_connected)
        return mqtt_link_do(MQTT_LINK_DISCONNECT, "must stop");
    return mqtt_link_goto(MQTT_LINK_STOPPED, "it is disconnected");
}

/* Under the lock: only its counters remain. */
static void drop_client(struct mqtt_link_deps *deps)
{
    if (!deps->client)
        return;
    deps->messages_in += deps->client->messages_in;
    deps->messages_out += deps->client->messages_out;
    mqtt_client_close(deps->client);
    deps->client = NULL;
}

/* Under the lock. */
static void turn_client(struct mqtt_link_deps *deps)
{
    if (!deps->client)
        return;
    mqtt_client_turn(deps->client);
    if (!deps->client->has_failed)
        return;
    (void)det_text_copy(deps->last_error, sizeof deps->last_error, deps->client->error);
    drop_client(deps);
}

static int mqtt_link_collect(
    struct det_worker_context *context, struct mqtt_link_deps *deps,
    const struct mqtt_link_desired *desired, struct mqtt_link_observed *observed)
{
    struct mqtt_client *client;

    det_worker_lock(context);
    turn_client(deps);
    client = deps->client;
    observed->is_connected = client && client->is_connected;
    observed->is_current = client && mqtt_client_is_for(client, desired);
    observed->is_subscribed = client && mqtt_client_has_topics(client, desired);
    observed->subscribed = client ? client->subscribed : 0;
    observed->connects = deps->connects;
    observed->messages_in = deps->messages_in + (client ? client->messages_in : 0);
    observed->messages_out = deps->messages_out + (client ? client->messages_out : 0);
    memcpy(observed->last_error, deps->last_error, sizeof observed->last_error);
    det_worker_unlock(context);
    return 0;
}

/* Conditions that an action waits for. */
static bool is_connected(const struct mqtt_client *client)
{
    return client->is_connected;
}

static bool is_answered(const struct mqtt_client *client)
{
    return client->asked == 0;
}

/* Returns 0 when it has arrived. The connection may be closed meanwhile, or belong to another
 * action. */
static int wait_for(
    struct det_worker_context *context, struct mqtt_link_deps *deps,
    bool (*has_come)(const struct mqtt_client *client), det_time span)
{
    det_time end = det_world_now(context->world, DET_CLOCK_MONOTONIC) + span;
    struct mqtt_client_need need = { -1, false };
    int r = 1;

    det_assert(span > 0);
    while (r > 0) {
        det_worker_lock(context);
        turn_client(deps);
        if (!deps->client)
            r = DET_ERR_IO;
        else if (has_come(deps->client))
            r = 0;
        else
            need = mqtt_client_need(deps->client);
        det_worker_unlock(context);
        if (r > 0 && det_worker_is_cancelled(context))
            r = DET_ERR_CANCELLED;
        else if (r > 0 && det_world_now(context->world, DET_CLOCK_MONOTONIC) >= end)
            r = DET_ERR_TIMEOUT;
        else if (r > 0)
            mqtt_client_wait(need, SLICE_MS);
    }
    return r;
}

static int fail_action(
    struct det_worker_context *context, struct mqtt_link_deps *deps,
    const struct mqtt_link_desired *desired, int r)
{
    char text[sizeof deps->last_error];

    det_assert(r < 0);
    det_worker_lock(context);
    if (r == DET_ERR_TIMEOUT)
        (void)det_text_copy(
            deps->last_error, sizeof deps->last_error, "the broker does not answer");
    memcpy(text, deps->last_error, sizeof text);
    if (r != DET_ERR_IO)
        drop_client(deps);
    det_worker_unlock(context);
    if (r == DET_ERR_CANCELLED)
        return r;
    return det_worker_fail(
        context, r, "%.80s:%u: %s", desired->host, (unsigned)desired->port, text);
}

/* Creates the connection, then passes it to the worker unless that must stop. */
static int begin_connect(
    struct det_worker_context *context, struct mqtt_link_deps *deps,
    const struct mqtt_link_desired *desired)
{
    struct det_error error = { 0 };
    struct mqtt_client *client = NULL;
    int r;

    r = mqtt_client_open(context->allocator, desired, &client, &error);
    if (r < 0)
        return det_worker_fail(context, r, "%s", error.text);
    mqtt_client_begin(client);
    det_worker_lock(context);
    if (det_worker_is_cancelled(context)) {
        mqtt_client_close(client);
        r = DET_ERR_CANCELLED;
    } else {
        drop_client(deps);
        deps->client = client;
    }
    det_worker_unlock(context);
    return r;
}

static int mqtt_link_do_connect(
    struct det_worker_context *context, struct mqtt_link_deps *deps,
    const struct mqtt_link_desired *desired)
{
    int r;

    r = begin_connect(context, deps, desired);
    if (r < 0)
        return r;
    r = wait_for(context, deps, is_connected, ANSWER_MAX);
    if (r < 0)
        return fail_action(context, deps, desired, r);
    det_worker_lock(context);
    deps->connects++;
    deps->last_error[0] = '\0';
    det_worker_unlock(context);
    det_worker_count(context, "connects", 1);
    return 0;
}

static int mqtt_link_do_subscribe(
    struct det_worker_context *context, struct mqtt_link_deps *deps,
    const struct mqtt_link_desired *desired)
{
    uint32_t refused = 0;
    int r;

    det_worker_lock(context);
    if (deps->client && !mqtt_client_has_topics(deps->client, desired))
        mqtt_client_subscribe(deps->client, desired);
    det_worker_unlock(context);
    r = wait_for(context, deps, is_answered, ANSWER_MAX);
    if (r < 0)
        return fail_action(context, deps, desired, r);
    det_worker_lock(context);
    refused = deps->client ? deps->client->refused : 0;
    det_worker_unlock(context);
    if (refused)
        return det_worker_fail(
            context, DET_ERR_REFUSED,
            "the broker refused %u of %u topic%s; check that this user may read %s", refused,
            desired->subscribe_count, det_plural(desired->subscribe_count),
            refused == 1 ? "it" : "them");
    return 0;
}

static int mqtt_link_do_disconnect(
    struct det_worker_context *context, struct mqtt_link_deps *deps,
    const struct mqtt_link_desired *desired)
{
    (void)desired;
    det_worker_lock(context);
    turn_client(deps);
    if (deps->client && deps->client->is_connected)
        mqtt_client_publish(deps->client, deps->client->desired.status_offline);
    det_worker_unlock(context);
    /* If it does not arrive, the broker publishes the last will. */
    (void)wait_for(context, deps, is_answered, GOODBYE_MAX);
    det_worker_lock(context);
    if (deps->client && is_answered(deps->client))
        mqtt_client_disconnect(deps->client);
    drop_client(deps);
    det_worker_unlock(context);
    return 0;
}

static int mqtt_link_open(struct det_worker_context *context, struct mqtt_link_deps *deps)
{
    (void)context;
    (void)deps;
    return 0;
}

static void mqtt_link_close(struct mqtt_link_deps *deps)
{
    drop_client(deps);
}

static int mqtt_link_derive(
    struct det_derive *derive, const struct mqtt_link_desired *config,
    struct mqtt_link_desired *desired)
{
    *desired = *config;
    if (!desired->port)
        desired->port = desired->tls ? PORT_TLS : PORT;
    if (!desired->keepalive_s)
        desired->keepalive_s = KEEPALIVE;
    if (!*desired->status_online)
        (void)det_text_copy(desired->status_online, sizeof desired->status_online, "online");
    if (!*desired->status_offline)
        (void)det_text_copy(desired->status_offline, sizeof desired->status_offline, "offline");
    if (desired->keepalive_s < KEEPALIVE_MIN)
        return derive->refuse(
            derive,
            "keepalive_s %u is too short: use at least %u, as a link is served once a second",
            (unsigned)desired->keepalive_s, KEEPALIVE_MIN);
    return mqtt_client_check(derive, desired);
}
