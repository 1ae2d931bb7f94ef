/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_get.c - one GET with a separate client. Connections are not reused: an open connection says
 * nothing about the next one. */
#include "kinds/http_get.h"

#include <string.h>

#include "base/assert.h"
#include "base/buffer.h"
#include "base/text.h"
#include "http/client.h"

struct get {
    const struct http_get_options *options;
    struct det_buffer body; /* what is searched of it */
};

static int take_body(void *user, const char *data, size_t size)
{
    struct get *get = user;
    size_t room = HTTP_GET_TEXT_MAX - get->body.size;

    det_assert(get->body.size <= HTTP_GET_TEXT_MAX);
    if (*get->options->text)
        det_buffer_append(&get->body, data, size < room ? size : room);
    return det_buffer_status(&get->body);
}

/* False: no memory. */
static bool add_headers(const struct http_get_options *options, struct http_lines *lines)
{
    for (size_t i = 0; options->headers[i]; i++)
        if (!http_lines_add_line(lines, options->headers[i]))
            return false;
    return true;
}

static void take_answer(
    const struct get *get, int code, const struct http_result *result, struct http_get_answer *ret)
{
    det_time now = det_world_now(get->options->world, DET_CLOCK_WALL);
    const char *text = get->options->text;

    ret->latency_ms = (uint32_t)(result->took / DET_MILLISECOND);
    ret->body_size = result->body_size;
    ret->has_tls_days = result->certificate_end != 0;
    if (ret->has_tls_days)
        ret->tls_days = (int32_t)((result->certificate_end - now) / DET_DAY);
    if (code == DET_ERR_LIMIT)
        (void)det_text_copy(ret->error, sizeof ret->error, "the body has more than 64 MiB");
    else if (code < 0)
        (void)det_text_copy(ret->error, sizeof ret->error, result->text);
    if (code < 0)
        return;
    ret->status = (uint16_t)result->status;
    ret->has_text =
        *text && memmem(det_buffer_text(&get->body), get->body.size, text, strlen(text)) != NULL;
}

static int call_once(struct get *get, struct http_client *client, struct http_result *ret)
{
    const struct http_get_options *options = get->options;
    struct http_lines lines = { NULL };
    struct http_call call = {
        .url = options->url,
        .lines = &lines,
        .timeout = options->timeout,
        .on_body = take_body,
        .user = get,
        .body_max = HTTP_GET_BODY_MAX,
        .ca_file = options->ca_file,
        .is_insecure = options->is_insecure,
        .wants_certificate = true,
    };
    int r = DET_ERR_NO_MEMORY;

    if (add_headers(options, &lines))
        r = http_client_call(client, &call, ret);
    http_lines_deinit(&lines);
    return r;
}

int http_get(const struct http_get_options *options, struct http_get_answer *ret)
{
    struct http_client_options wanted = { .allocator = options->allocator,
                                          .world = options->world,
                                          .is_cancelled = options->is_cancelled,
                                          .user = options->user };
    struct get get = { .options = options };
    struct http_client *client = NULL;
    struct http_result result = { 0 };
    int r;

    *ret = (struct http_get_answer){ 0 };
    det_buffer_init(&get.body, options->allocator);
    r = http_client_open(&wanted, &client);
    if (r < 0)
        return r;
    r = call_once(&get, client, &result);
    take_answer(&get, r, &result, ret);
    http_client_close(client);
    det_buffer_deinit(&get.body);
    if (r == DET_ERR_CANCELLED || r == DET_ERR_NO_MEMORY)
        return r;
    return result.is_shortage ? DET_ERR_LIMIT : 0;
}
