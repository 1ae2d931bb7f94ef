/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay_mock_answer.c - answers, state and faults of the mock relay. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "kinds/relay_mock_internal.h"
#include "json/reader.h"
#include "json/writer.h"

struct reply {
    int status;
    char headers[256];
    struct det_buffer body;
};

static const struct {
    const char *line;
    enum relay_mock_call call;
} calls[] = {
    { "POST /v2/instance/login HTTP/1.1\r\n", RELAY_MOCK_LOGIN },
    { "GET /v2/instance/pull HTTP/1.1\r\n", RELAY_MOCK_PULL },
    { "POST /v2/instance/push HTTP/1.1\r\n", RELAY_MOCK_PUSH },
};

/* Returns RELAY_MOCK_CALLS for an unknown call. */
static enum relay_mock_call call_of(const char *head)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (!strncmp(head, calls[i].line, strlen(calls[i].line)))
            return calls[i].call;
    return RELAY_MOCK_CALLS;
}

static bool has_line(const char *head, const char *line)
{
    return strstr(head, line) != NULL;
}

static void log_in(struct relay_mock *mock, const char *head, struct reply *reply)
{
    char line[160];

    snprintf(line, sizeof line, "\r\nAuthorization: Bearer %s\r\n", mock->hash);
    if (!has_line(head, line)) {
        mock->counts[RELAY_MOCK_STRANGERS]++;
        reply->status = 401;
        return;
    }
    mock->token = ++mock->tokens;
    reply->status = 200;
    snprintf(
        reply->headers, sizeof reply->headers,
        "Set-Cookie: theme=dark\r\nSet-Cookie: token=mock.%llu; Path=/; HttpOnly\r\n",
        (unsigned long long)mock->token);
    det_buffer_format(&reply->body, "{\"uuid\":\"%s\",\"name\":\"mock\"}", mock->uuid);
}

static bool is_known(struct relay_mock *mock, const char *head, struct reply *reply)
{
    char line[80];

    snprintf(line, sizeof line, "\r\nCookie: token=mock.%llu\r\n", (unsigned long long)mock->token);
    if (mock->token && has_line(head, line))
        return true;
    mock->counts[RELAY_MOCK_STRANGERS]++;
    reply->status = 401;
    return false;
}

static void write_message(struct det_json_writer *json, const struct det_message *text)
{
    det_json_open(json, NULL, '{');
    det_json_text(json, "instance", text->instance);
    det_json_text(json, "content", text->content);
    det_json_text(json, "email", text->email);
    if (*text->trace_id)
        det_json_text(json, "traceId", text->trace_id);
    det_json_close(json, '}');
}

static void answer_pull(struct relay_mock *mock, struct reply *reply)
{
    struct det_json_writer json = { .text = reply->body };
    uint32_t count = 0;

    reply->status = 204;
    if (det_list_is_empty(&mock->to_pull))
        return;
    reply->status = 200;
    det_json_open(&json, NULL, '{');
    det_json_open(&json, "messages", '[');
    for (struct det_list *node;
         (!mock->most || count < mock->most) && (node = det_list_take(&mock->to_pull)); count++) {
        struct channel_message *message = DET_CONTAINER(node, struct channel_message, node);

        write_message(&json, &message->text);
        channel_message_close(message);
        mock->counts[RELAY_MOCK_PULLED]++;
    }
    det_json_close(&json, ']');
    det_json_close(&json, '}');
    reply->body = json.text;
}

static const char *text_of(const struct det_json_value *item, const char *name)
{
    const char *text = det_json_get_text(item, name);

    return text ? text : "";
}

/* The status. */
static int take_messages(struct relay_mock *mock, const struct det_json_value *list)
{
    if (!det_json_is(list, DET_JSON_ARRAY))
        return 400;
    DET_JSON_EACH (item, list) {
        if (mock->poison && strstr(text_of(item, "content"), mock->poison))
            return 422;
    }
    DET_JSON_EACH (item, list) {
        struct det_message text = { text_of(item, "instance"), text_of(item, "content"),
                                    text_of(item, "email"), text_of(item, "traceId") };
        struct channel_message *message;

        if (channel_message_open(NULL, &text, &message) < 0)
            return 500;
        det_list_append(&mock->pushed, &message->node);
        mock->counts[RELAY_MOCK_PUSHED]++;
    }
    return 200;
}

static void answer_push(
    struct relay_mock *mock, const struct relay_mock_request *request, struct reply *reply)
{
    const struct det_json_value *body = NULL;
    struct det_arena arena;
    int r;

    det_arena_init(&arena, NULL);
    r = det_json_read(&arena, det_view_of(request->body, request->body_size), &body, NULL);
    reply->status = r < 0 ? 400 : take_messages(mock, det_json_get(body, "messages"));
    det_arena_deinit(&arena);
}

static void act_on_call(
    struct relay_mock *mock, enum relay_mock_call call, const struct relay_mock_request *request,
    struct reply *reply)
{
    switch (call) {
    case RELAY_MOCK_LOGIN:
        log_in(mock, request->head, reply);
        break;
    case RELAY_MOCK_PULL:
        if (is_known(mock, request->head, reply))
            answer_pull(mock, reply);
        break;
    case RELAY_MOCK_PUSH:
        if (is_known(mock, request->head, reply))
            answer_push(mock, request, reply);
        break;
    case RELAY_MOCK_CALLS:
        reply->status = 404;
        break;
    }
}

/* Call it with the lock. Returns the fault of this call. */
static struct relay_mock_fault next_fault(struct relay_mock *mock, enum relay_mock_call call)
{
    struct relay_mock_faults *faults = &mock->faults[call];
    struct relay_mock_fault fault = { 0 };

    det_assert(faults->first < RELAY_MOCK_FAULTS_MAX && faults->count <= RELAY_MOCK_FAULTS_MAX);
    if (faults->count > 0) {
        fault = faults->list[faults->first];
        faults->first = (faults->first + 1) % RELAY_MOCK_FAULTS_MAX;
        faults->count--;
    }
    return fault;
}

/* Under the lock. */
static void delay_answer(struct relay_mock *mock, det_time span)
{
    det_time deadline = det_world_now(mock->world, DET_CLOCK_MONOTONIC) + span;

    while (span && !mock->is_down &&
           det_condition_wait(mock->world, mock->changed, mock->mutex, deadline) == 0)
        ;
}

static void write_reply(
    const struct reply *reply, const struct relay_mock_fault *fault, struct det_buffer *answer)
{
    det_buffer_format(answer, "HTTP/1.1 %d Mock\r\n%s", reply->status, reply->headers);
    if (fault->headers)
        det_buffer_append_text(answer, fault->headers);
    if (reply->status != 204)
        det_buffer_format(answer, "Content-Length: %zu\r\n", reply->body.size);
    det_buffer_append_text(answer, "\r\n");
    det_buffer_append(answer, det_buffer_text(&reply->body), reply->body.size);
}

bool relay_mock_answer(
    struct relay_mock *mock, const struct relay_mock_request *request, struct det_buffer *answer)
{
    enum relay_mock_call call = call_of(request->head);
    struct relay_mock_fault fault = { 0 };
    struct reply reply = { 0 };

    relay_mock_lock(mock);
    if (call != RELAY_MOCK_CALLS) {
        fault = next_fault(mock, call);
        (void)det_text_copy(mock->heads[call], sizeof mock->heads[call], request->head);
        mock->counts[RELAY_MOCK_LOGINS + (int)call]++;
        det_condition_broadcast(mock->world, mock->changed);
    }
    delay_answer(mock, fault.delay);
    if (fault.status) {
        reply.status = fault.status;
        det_buffer_append_text(&reply.body, fault.body ? fault.body : "");
        for (uint32_t i = 0; i < fault.padding; i++)
            det_buffer_append_char(&reply.body, 'x');
    } else if (!fault.is_cut_before) {
        act_on_call(mock, call, request, &reply);
    }
    det_condition_broadcast(mock->world, mock->changed);
    relay_mock_unlock(mock);
    write_reply(&reply, &fault, answer);
    det_buffer_deinit(&reply.body);
    return !fault.is_cut_before && !fault.is_cut_after;
}

void relay_mock_set_uuid(struct relay_mock *mock, const char *uuid)
{
    if (mock->mutex)
        relay_mock_lock(mock);
    (void)det_text_copy(mock->uuid, sizeof mock->uuid, uuid);
    if (mock->mutex)
        relay_mock_unlock(mock);
}

int relay_mock_queue(struct relay_mock *mock, const struct det_message *text)
{
    struct channel_message *message;
    int r;

    r = channel_message_open(NULL, text, &message);
    if (r < 0)
        return r;
    relay_mock_lock(mock);
    det_list_append(&mock->to_pull, &message->node);
    relay_mock_unlock(mock);
    return 0;
}

uint64_t relay_mock_count(struct relay_mock *mock, enum relay_mock_count which)
{
    uint64_t count;

    det_assert(which < RELAY_MOCK_COUNTS);
    relay_mock_lock(mock);
    count = mock->counts[which];
    relay_mock_unlock(mock);
    return count;
}
