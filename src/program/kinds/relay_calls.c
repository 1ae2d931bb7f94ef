/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay_calls.c - login, pull and push: requests, and the meaning of answers. Answers are strict
 * JSON: members have their type, no key is duplicated; unknown members are ignored. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "kinds/relay_http.h"
#include "kinds/relay_token.h"
#include "json/reader.h"
#include "json/writer.h"

#define LOGIN_PATH "/v2/instance/login"
#define PULL_PATH  "/v2/instance/pull"
#define PUSH_PATH  "/v2/instance/push"

#define NO_CONTENT 204

/* Returns the answer as JSON; NULL: it is not JSON. Only DET_ERR_NO_MEMORY is an error. */
static int read_answer(
    const struct relay *relay, struct det_arena *arena, const struct det_json_value **ret)
{
    struct det_view text = det_view_of(det_buffer_text(&relay->answer), relay->answer.size);
    int r;

    *ret = NULL;
    r = det_json_read(arena, text, ret, NULL);
    return r == DET_ERR_NO_MEMORY ? r : 0;
}

/* Returns the text of a member, at most `max` bytes; NULL: another type, too long, or a required
 * member is missing. */
static const char *text_of(
    const struct det_json_value *object, const char *name, bool is_needed, size_t max)
{
    const struct det_json_value *member = det_json_get(object, name);

    if (!member)
        return is_needed ? NULL : "";
    return member->text.size <= max ? det_json_value_text(member) : NULL;
}

int relay_login(
    struct relay *relay, const struct relay_call *call, const char *auth_token,
    struct relay_instance *ret, struct relay_failure *failure)
{
    char authorization[8 + RELAY_HASH_TEXT] = "Bearer ";
    const struct det_json_value *answer;
    const char *uuid, *name;
    struct det_arena arena;
    int r;

    det_buffer_clear(&relay->request);
    r = relay_hash(auth_token, authorization + strlen(authorization));
    if (r < 0)
        return relay_misunderstood(relay, r, "login", "SHA3-256 is not available", failure);
    r = relay_exchange(
        relay, call, &(struct relay_request){ "login", LOGIN_PATH, true, authorization }, failure);
    explicit_bzero(authorization, sizeof authorization);
    if (r < 0)
        return r;
    det_arena_init(&arena, relay->allocator);
    r = read_answer(relay, &arena, &answer);
    uuid = text_of(answer, "uuid", true, RELAY_UUID_MAX);
    name = text_of(answer, "name", false, RELAY_NAME_MAX);
    if (r < 0)
        r = relay_misunderstood(relay, r, "login", "out of memory", failure);
    else if (!uuid || !*uuid || !name)
        r = relay_misunderstood(
            relay, DET_ERR_MALFORMED, "login", "the answer has no uuid and name", failure);
    else if (!relay->offered[0])
        r = relay_misunderstood(
            relay, DET_ERR_MALFORMED, "login", "the answer has no cookie \"token\"", failure);
    if (r == 0) {
        memcpy(relay->token, relay->offered, sizeof relay->token);
        snprintf(ret->uuid, sizeof ret->uuid, "%s", uuid);
        memcpy(relay->uuid, ret->uuid, sizeof relay->uuid);
        snprintf(ret->name, sizeof ret->name, "%s", name);
        det_assert(relay_has_token(relay) && strlen(relay->uuid) == strlen(uuid));
    }
    det_arena_deinit(&arena);
    return r;
}

/* Returns false for an invalid message. */
static bool take_message(
    struct relay *relay, const struct det_json_value *item, struct det_list *messages)
{
    struct det_message text = {
        .instance = text_of(item, "instance", false, DET_MESSAGE_KEY_MAX),
        .content = text_of(item, "content", true, DET_MESSAGE_MAX),
        .email = text_of(item, "email", false, DET_MESSAGE_KEY_MAX),
        .trace_id = text_of(item, "traceId", false, DET_MESSAGE_KEY_MAX),
    };
    struct channel_message *message;

    if (!text.instance || !text.content || !text.email || !text.trace_id ||
        channel_message_open(relay->allocator, &text, &message) < 0)
        return false;
    det_list_append(messages, &message->node);
    return true;
}

int relay_pull(
    struct relay *relay, const struct relay_call *call, struct det_list *messages,
    struct relay_pulled *ret, struct relay_failure *failure)
{
    struct relay_pulled pulled = { 0 };
    const struct det_json_value *answer = NULL, *list;
    struct det_arena arena;
    int r;

    det_buffer_clear(&relay->request);
    r = relay_exchange(
        relay, call, &(struct relay_request){ "pull", PULL_PATH, false, NULL }, failure);
    if (r < 0)
        return r;
    pulled.bytes = relay->answer.size;
    det_arena_init(&arena, relay->allocator);
    if (relay->status != NO_CONTENT)
        r = read_answer(relay, &arena, &answer);
    list = det_json_get(answer, "messages");
    if (r < 0)
        r = relay_misunderstood(relay, r, "pull", "out of memory", failure);
    else if (relay->status != NO_CONTENT && !det_json_is(list, DET_JSON_ARRAY))
        r = relay_misunderstood(
            relay, DET_ERR_MALFORMED, "pull", "the answer has no messages", failure);
    DET_JSON_EACH (item, r == 0 ? list : NULL) {
        pulled.count++;
        pulled.useless += !take_message(relay, item, messages);
    }
    det_assert(pulled.useless <= pulled.count);
    det_arena_deinit(&arena);
    if (r == 0)
        *ret = pulled;
    return r;
}

static void write_messages(
    struct det_json_writer *json, const char *uuid, struct channel_message *const *list,
    uint32_t count)
{
    det_json_open(json, NULL, '{');
    det_json_open(json, "messages", '[');
    for (uint32_t i = 0; i < count; i++) {
        const struct det_message *text = &list[i]->text;

        det_json_open(json, NULL, '{');
        det_json_text(json, "instance", *text->instance ? text->instance : uuid);
        det_json_text(json, "content", text->content);
        det_json_text(json, "email", text->email);
        if (*text->trace_id)
            det_json_text(json, "traceId", text->trace_id);
        det_json_close(json, '}');
    }
    det_json_close(json, ']');
    det_json_close(json, '}');
    det_assert(json->depth == 0);
}

int relay_push(
    struct relay *relay, const struct relay_call *call, struct channel_message *const *list,
    uint32_t count, size_t *ret_bytes, struct relay_failure *failure)
{
    struct det_json_writer json;
    int r;

    det_assert(count > 0 && count <= CHANNEL_BATCH_MAX);
    det_json_writer_init(&json, relay->allocator);
    write_messages(&json, relay->uuid, list, count);
    det_buffer_clear(&relay->request);
    det_buffer_append(&relay->request, det_buffer_text(&json.text), json.text.size);
    if (det_buffer_status(&json.text) < 0)
        relay->request.error = det_buffer_status(&json.text);
    det_json_writer_deinit(&json);
    r = relay_exchange(
        relay, call, &(struct relay_request){ "push", PUSH_PATH, true, NULL }, failure);
    if (r == 0)
        *ret_bytes = relay->request.size;
    return r;
}
