/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay_calls.c - login, pull and push: what is sent, and what the answers mean. Answers are strict
 * JSON: what is there has its type, nothing is there twice; members that we do not know are left to
 * those who do. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "kinds/relay_http.h"
#include "kinds/relay_token.h"
#include "observe/quote.h"

#define LOGIN_PATH "/v2/instance/login"
#define PULL_PATH  "/v2/instance/pull"
#define PUSH_PATH  "/v2/instance/push"

#define NO_CONTENT 204

/* NULL: it is not JSON. */
static json_t *read_answer(const struct relay *relay)
{
    return json_loadb(
        det_buffer_text(&relay->answer), relay->answer.size, JSON_REJECT_DUPLICATES, NULL);
}

/* The text of a member, at most `max` bytes of it; NULL: it is of another type, or too long, or not
 * there though it must be. */
static const char *text_of(const json_t *object, const char *name, bool is_needed, size_t max)
{
    const json_t *member = json_object_get(object, name);

    if (!member)
        return is_needed ? NULL : "";
    return json_is_string(member) && json_string_length(member) <= max ? json_string_value(member)
                                                                       : NULL;
}

int relay_login(
    struct relay *relay, const struct relay_call *call, const char *auth_token,
    struct relay_instance *ret, struct relay_failure *failure)
{
    char authorization[8 + RELAY_HASH_TEXT] = "Bearer ";
    const char *uuid, *name;
    json_t *answer;
    int r;

    det_buffer_clear(&relay->request);
    r = relay_hash(auth_token, authorization + strlen(authorization));
    if (r < 0)
        return relay_misunderstood(relay, r, "login", "there is no SHA3-256 here", failure);
    r = relay_exchange(
        relay, call, &(struct relay_request){ "login", LOGIN_PATH, true, authorization }, failure);
    explicit_bzero(authorization, sizeof authorization);
    if (r < 0)
        return r;
    answer = read_answer(relay);
    uuid = text_of(answer, "uuid", true, RELAY_UUID_MAX);
    name = text_of(answer, "name", false, RELAY_NAME_MAX);
    if (!uuid || !*uuid || !name)
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
    }
    json_decref(answer);
    return r;
}

/* False: it is useless. */
static bool take_message(struct relay *relay, const json_t *item, struct det_list *messages)
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
    const json_t *list, *item;
    json_t *answer;
    size_t i;
    int r;

    det_buffer_clear(&relay->request);
    r = relay_exchange(
        relay, call, &(struct relay_request){ "pull", PULL_PATH, false, NULL }, failure);
    if (r < 0)
        return r;
    pulled.bytes = relay->answer.size;
    answer = relay->status == NO_CONTENT ? NULL : read_answer(relay);
    list = json_object_get(answer, "messages");
    if (relay->status != NO_CONTENT && !json_is_array(list))
        r = relay_misunderstood(
            relay, DET_ERR_MALFORMED, "pull", "the answer has no messages", failure);
    json_array_foreach(list, i, item)
    {
        pulled.count++;
        pulled.useless += !take_message(relay, item, messages);
    }
    json_decref(answer);
    if (r == 0)
        *ret = pulled;
    return r;
}

static void write_member(struct det_buffer *buffer, const char *name, const char *text)
{
    det_buffer_append_text(buffer, name);
    det_buffer_quote(buffer, det_view_text(text));
}

static void write_messages(
    struct det_buffer *buffer, const char *uuid, struct channel_message *const *list,
    uint32_t count)
{
    det_buffer_append_text(buffer, "{\"messages\":[");
    for (uint32_t i = 0; i < count; i++) {
        const struct det_message *text = &list[i]->text;

        write_member(
            buffer,
            i ? ",{\"instance\":" : "{\"instance\":", *text->instance ? text->instance : uuid);
        write_member(buffer, ",\"content\":", text->content);
        write_member(buffer, ",\"email\":", text->email);
        if (*text->trace_id)
            write_member(buffer, ",\"traceId\":", text->trace_id);
        det_buffer_append_char(buffer, '}');
    }
    det_buffer_append_text(buffer, "]}");
}

int relay_push(
    struct relay *relay, const struct relay_call *call, struct channel_message *const *list,
    uint32_t count, size_t *ret_bytes, struct relay_failure *failure)
{
    int r;

    det_buffer_clear(&relay->request);
    write_messages(&relay->request, relay->uuid, list, count);
    r = relay_exchange(
        relay, call, &(struct relay_request){ "push", PUSH_PATH, true, NULL }, failure);
    if (r == 0)
        *ret_bytes = relay->request.size;
    return r;
}
