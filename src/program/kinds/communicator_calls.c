/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* communicator_calls.c - the actions of the communicator: one attempt each. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "kinds/communicator.h"
#include "kinds/relay_token.h"
#include "kinds/relay_url.h"

/* A sync that has pushed for so long leaves the rest to the next one. */
#define PUSH_TIME (15 * DET_SECOND)

struct attempt {
    struct det_worker_context *context;
    struct communicator_deps *deps;
    struct relay_call call;
    det_time wall;  /* when it began */
    det_time begin; /* monotonic */
    struct relay_failure failure;
};

static bool is_cancelled(void *user)
{
    return det_worker_is_cancelled(user);
}

static det_time now_of(const struct attempt *attempt)
{
    return det_world_now(attempt->context->world, DET_CLOCK_MONOTONIC);
}

/* Acquires the relay for this action, and discards the state of another config. */
static int begin_attempt(
    struct attempt *attempt, struct det_worker_context *context, struct communicator_deps *deps,
    const struct communicator_desired *desired)
{
    struct relay *old = NULL;
    bool is_busy;

    *attempt = (struct attempt){
        .context = context,
        .deps = deps,
        .call = { desired->timeout_ms * DET_MILLISECOND, is_cancelled, context },
        .wall = det_world_now(context->world, DET_CLOCK_WALL),
        .begin = det_world_now(context->world, DET_CLOCK_MONOTONIC),
    };
    det_worker_lock(context);
    is_busy = deps->is_busy;
    if (!is_busy && !det_record_equal(communicator_desired_record(), &deps->served, desired)) {
        deps->served = *desired;
        deps->observed = (struct communicator_observed){ 0 };
        old = deps->relay;
        deps->relay = NULL;
    }
    deps->is_busy = true;
    det_worker_unlock(context);
    relay_close(old);
    return is_busy ? det_worker_fail(context, DET_ERR_BUSY, "another call is still under way") : 0;
}

static void end_attempt(struct attempt *attempt)
{
    det_worker_lock(attempt->context);
    det_assert(attempt->deps->is_busy);
    attempt->deps->is_busy = false;
    det_worker_unlock(attempt->context);
}

static void show_errors(struct attempt *attempt)
{
    det_worker_gauge(
        attempt->context, "consecutive_errors", attempt->deps->observed.consecutive_errors);
}

static void note_success(struct attempt *attempt)
{
    struct communicator_observed *observed = &attempt->deps->observed;

    det_worker_lock(attempt->context);
    observed->consecutive_errors = observed->reset_for = 0;
    observed->last_error = RELAY_NONE;
    observed->last_error_text[0] = 0;
    observed->retry_after_ms = 0;
    observed->last_attempt = observed->degraded_since = 0;
    det_worker_unlock(attempt->context);
    show_errors(attempt);
}

/* A failure of the relay is observed, and next() decides the delay: the supervisor would delay a
 * failed action as well, without regard to Retry-After. Cancellation and lack of memory are not
 * failures of the relay. */
static int note_failure(struct attempt *attempt, int r)
{
    struct communicator_observed *observed = &attempt->deps->observed;
    const struct relay_failure *failure = &attempt->failure;

    det_assert(r < 0 && failure->class < RELAY_CLASSES);
    if (r == DET_ERR_CANCELLED || r == DET_ERR_NO_MEMORY)
        return det_worker_fail(attempt->context, r, "%s", failure->text);
    det_worker_lock(attempt->context);
    observed->consecutive_errors++;
    observed->last_error = failure->class;
    memcpy(observed->last_error_text, failure->text, sizeof observed->last_error_text);
    observed->retry_after_ms = (uint32_t)(failure->retry_after / DET_MILLISECOND);
    observed->last_attempt = attempt->wall;
    if (observed->consecutive_errors == 1)
        observed->degraded_since = attempt->wall;
    det_worker_unlock(attempt->context);
    det_worker_count(attempt->context, relay_class_metric(failure->class), 1);
    show_errors(attempt);
    return 0;
}

static void note_login(struct attempt *attempt, const struct relay_instance *instance)
{
    struct communicator_observed *observed = &attempt->deps->observed;

    det_worker_lock(attempt->context);
    observed->has_token = true;
    observed->token_expiry = attempt->wall + RELAY_TOKEN_LIFE;
    memcpy(observed->uuid, instance->uuid, sizeof observed->uuid);
    memcpy(observed->name, instance->name, sizeof observed->name);
    observed->logins++;
    det_worker_unlock(attempt->context);
    note_success(attempt);
}

/* From the config, else from the environment, which is not recorded anywhere. */
static const char *one_of(const char *configured, const char *otherwise)
{
    return *configured ? configured : otherwise ? otherwise : "";
}

static int log_in(struct attempt *attempt, const struct communicator_desired *desired)
{
    struct communicator_deps *deps = attempt->deps;
    const char *url = one_of(desired->relay_url, deps->defaults.relay_url);
    const char *token = one_of(desired->auth_token, deps->defaults.auth_token);
    struct relay_instance instance = { 0 };
    int r = 0;

    if (!*url)
        return det_worker_fail(
            attempt->context, DET_ERR_INVALID,
            "relay_url is missing: set it in the config, or " COMMUNICATOR_URL_VARIABLE
            " in the environment");
    if (!relay_url_is_valid(url))
        return det_worker_fail(
            attempt->context, DET_ERR_INVALID,
            COMMUNICATOR_URL_VARIABLE " is \"%s\": it must be http://host or https://host", url);
    if (!*token)
        return det_worker_fail(
            attempt->context, DET_ERR_INVALID,
            "auth_token is missing: set it in the config, or " COMMUNICATOR_TOKEN_VARIABLE
            " in the environment");
    det_worker_lock(attempt->context);
    deps->observed.last_auth_attempt = attempt->wall;
    det_worker_unlock(attempt->context);
    if (!deps->relay)
        r = relay_open(
            &(struct relay_options){ attempt->context->world, deps->allocator, url }, &deps->relay);
    if (r < 0)
        return det_worker_fail(attempt->context, r, "login: libcurl cannot be set up");
    r = relay_login(deps->relay, &attempt->call, token, &instance, &attempt->failure);
    if (r < 0)
        return note_failure(attempt, r);
    note_login(attempt, &instance);
    return 0;
}

int communicator_authenticate(
    struct det_worker_context *context, struct communicator_deps *deps,
    const struct communicator_desired *desired)
{
    struct attempt attempt;
    int r;

    r = begin_attempt(&attempt, context, deps, desired);
    if (r < 0)
        return r;
    r = log_in(&attempt, desired);
    end_attempt(&attempt);
    return r;
}

/* One call: what all of them count. */
static int count_call(struct attempt *attempt, det_time since, int r, const char *const names[4])
{
    det_worker_count(attempt->context, names[0], 1);
    det_worker_count(attempt->context, names[r < 0 ? 2 : 1], 1);
    if (r == 0)
        det_worker_gauge(
            attempt->context, names[3],
            (double)(now_of(attempt) - since) / (double)DET_MILLISECOND);
    return r;
}

static void note_useless(struct attempt *attempt, const struct relay_pulled *pulled)
{
    char because[CHANNEL_REASON_MAX + 1];

    det_assert(pulled->useless > 0 && pulled->useless <= pulled->count);
    snprintf(
        because, sizeof because, "pull: %u of %u message%s %s invalid or too large",
        pulled->useless, pulled->count, det_plural(pulled->count), det_is_or_are(pulled->useless));
    channel_refuse(attempt->deps->channel, pulled->useless, because);
    det_worker_count(attempt->context, "messages_dropped", pulled->useless);
}

static int pull_messages(struct attempt *attempt)
{
    static const char *const names[4] = { "pull_ops", "pull_success", "pull_failures",
                                          "last_pull_latency_ms" };
    struct communicator_deps *deps = attempt->deps;
    struct relay_pulled pulled = { 0 };
    struct det_list messages;
    det_time since = now_of(attempt);
    int r;

    det_list_init(&messages);
    r = relay_pull(deps->relay, &attempt->call, &messages, &pulled, &attempt->failure);
    r = count_call(attempt, since, r, names);
    if (r < 0)
        return r;
    channel_deliver(deps->channel, &messages);
    if (pulled.useless)
        note_useless(attempt, &pulled);
    if (pulled.count > pulled.useless)
        det_worker_count(attempt->context, "messages_pulled", pulled.count - pulled.useless);
    if (pulled.bytes)
        det_worker_count(attempt->context, "bytes_pulled", pulled.bytes);
    return 0;
}

/* Pushes these messages. 0: they are removed, or will be pushed one by one. */
static int push_list(struct attempt *attempt, struct channel_message *const *list, uint32_t count)
{
    static const char *const names[4] = { "push_ops", "push_success", "push_failures",
                                          "last_push_latency_ms" };
    struct communicator_deps *deps = attempt->deps;
    det_time since = now_of(attempt);
    size_t bytes = 0;
    int r;

    det_assert(count > 0 && count <= CHANNEL_BATCH_MAX);
    r = relay_push(deps->relay, &attempt->call, list, count, &bytes, &attempt->failure);
    r = count_call(attempt, since, r, names);
    if (r == 0) {
        channel_acknowledge(deps->channel, list, count);
        det_worker_count(attempt->context, "messages_pushed", count);
        det_worker_count(attempt->context, "bytes_pushed", bytes);
        return 0;
    }
    channel_push_failed(deps->channel);
    if (r != DET_ERR_REFUSED || attempt->failure.class != RELAY_UNKNOWN ||
        !relay_status_is_poison(attempt->failure.status))
        return r;
    if (count == 1) {
        channel_drop(deps->channel, list[0], attempt->failure.text);
        det_worker_count(attempt->context, "messages_dropped", 1);
    }
    return 0;
}

/* Includes messages that were sent meanwhile. */
static int push_messages(struct attempt *attempt)
{
    struct communicator_deps *deps = attempt->deps;
    int r = 0;

    while (r == 0 && channel_drain(deps->channel) > 0 &&
           now_of(attempt) - attempt->begin < PUSH_TIME &&
           !det_worker_is_cancelled(attempt->context)) {
        struct channel_message *list[CHANNEL_BATCH_MAX];
        uint32_t count = channel_peek(deps->channel, list);

        if (count > 0)
            r = push_list(attempt, list, count);
        channel_unpeek(list, count);
    }
    return r;
}

static int pull_and_push(struct attempt *attempt)
{
    struct communicator_deps *deps = attempt->deps;
    int r = 0;

    if (!deps->relay || !relay_has_token(deps->relay))
        return det_worker_fail(attempt->context, DET_ERR_INVALID, "sync: not logged in");
    if (channel_wants_more(deps->channel))
        r = pull_messages(attempt);
    if (r == 0)
        r = push_messages(attempt);
    if (r == 0) {
        note_success(attempt);
        return 0;
    }
    if (attempt->failure.class == RELAY_INVALID_TOKEN) {
        relay_forget_token(deps->relay);
        det_worker_lock(attempt->context);
        deps->observed.has_token = false;
        deps->observed.token_expiry = 0;
        det_worker_unlock(attempt->context);
    }
    return note_failure(attempt, r);
}

int communicator_sync(
    struct det_worker_context *context, struct communicator_deps *deps,
    const struct communicator_desired *desired)
{
    struct attempt attempt;
    int r;

    r = begin_attempt(&attempt, context, deps, desired);
    if (r < 0)
        return r;
    r = pull_and_push(&attempt);
    end_attempt(&attempt);
    return r;
}

int communicator_reset(
    struct det_worker_context *context, struct communicator_deps *deps,
    const struct communicator_desired *desired)
{
    struct attempt attempt;
    int r;

    r = begin_attempt(&attempt, context, deps, desired);
    if (r < 0)
        return r;
    if (deps->relay)
        r = relay_reset(deps->relay);
    if (r < 0) {
        r = det_worker_fail(context, r, "transport: out of memory");
    } else {
        det_worker_lock(context);
        deps->observed.reset_for = deps->observed.consecutive_errors;
        deps->observed.resets++;
        det_worker_unlock(context);
    }
    end_attempt(&attempt);
    return r;
}
