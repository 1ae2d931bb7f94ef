/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* daemon_client.c - requests to the running daemon, and its answers part by part.
 *
 *     idle --ask--> plain: read to its end, then one value or its items
 *               \-> events: a part whenever one is complete */
#include "client/daemon_client.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "http/client.h"
#include "os/os.h"
#include "terminal/terminal.h"

#define HOST "http://localhost"
/* Of an answer, or of what waits of a stream. */
#define ANSWER_MAX (UINT64_C(256) << 20)
/* Nanoseconds between two looks whether somebody listens. */
#define LOOK_EVERY 5000000

/* A line of Server-Sent Events. */
enum field { FIELD_OTHER, FIELD_EVENT, FIELD_DATA, FIELD_END };

struct daemon_client {
    const struct det_allocator *allocator;
    char project[DET_PATH_MAX];
    int folder; /* of the socket */
    struct http_client *http;
    /* The request under way. */
    struct http_call call;
    struct http_result result;
    struct http_lines lines;
    struct det_buffer path, in;
    char *body;
    size_t from;    /* of `in`: before it is taken */
    bool is_stream; /* of events */
    bool is_over;   /* all has come; `code` says how */
    int code;
    char event[32]; /* of the event whose data come */
    json_t *items;  /* of a page; NULL: not read yet, or none */
    size_t next_item;
    bool is_taken;               /* the one value */
    struct det_buffer next_page; /* the path of it; "": there is none */
};

static bool is_interrupted(void *user)
{
    (void)user;
    return cli_is_interrupted();
}

static int check_peer(void *user, int descriptor, struct det_error *reterr)
{
    const struct daemon_client *client = user;

    return socket_check_peer(client->project, descriptor, reterr);
}

int daemon_client_open(
    const char *project, const struct det_allocator *allocator, struct daemon_client **ret,
    struct det_error *reterr)
{
    struct daemon_client *client = DET_NEW(allocator, struct daemon_client);
    char path[SOCKET_PATH_TEXT];
    int r;

    if (!client)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    client->allocator = allocator;
    client->folder = -1;
    (void)snprintf(client->project, sizeof client->project, "%s", project);
    det_buffer_init(&client->path, allocator);
    det_buffer_init(&client->in, allocator);
    det_buffer_init(&client->next_page, allocator);
    r = socket_reach(project, &client->folder, path, reterr);
    if (r == 0) {
        r = http_client_open(
            &(struct http_client_options){ .allocator = allocator,
                                           .socket_path = path,
                                           .check = check_peer,
                                           .is_cancelled = is_interrupted,
                                           .signal = SIGINT,
                                           .user = client },
            &client->http);
        if (r < 0)
            det_error_set(reterr, r, "%s", det_error_text(r));
    }
    if (r < 0)
        daemon_client_close(client);
    else
        *ret = client;
    return r;
}

/* Nothing is left of the request before. */
static void reset(struct daemon_client *client)
{
    if (client->http)
        http_client_end(client->http);
    http_lines_deinit(&client->lines);
    free(client->body);
    client->body = NULL;
    json_decref(client->items);
    client->items = NULL;
    client->next_item = client->from = 0;
    client->is_stream = client->is_over = client->is_taken = false;
    client->code = 0;
    client->event[0] = '\0';
    det_buffer_clear(&client->path);
    det_buffer_clear(&client->in);
}

void daemon_client_close(struct daemon_client *client)
{
    if (!client)
        return;
    reset(client);
    http_client_close(client->http);
    if (client->folder >= 0)
        close(client->folder);
    det_buffer_deinit(&client->path);
    det_buffer_deinit(&client->in);
    det_buffer_deinit(&client->next_page);
    DET_DELETE(client->allocator, client);
}

void daemon_path_add(struct det_buffer *path, const char *part)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

    for (; *part; part++) {
        if (strchr(plain, *part))
            det_buffer_append_char(path, *part);
        else
            det_buffer_format(path, "%%%02X", (unsigned char)*part);
    }
}

const char *daemon_path_text(const struct det_buffer *path)
{
    return det_buffer_status(path) < 0 ? NULL : det_buffer_text(path);
}

/* Whether events come, is said by the head. */
static void take_line(void *user, const char *line, size_t size)
{
    static const char type[] = "content-type: text/event-stream";
    struct daemon_client *client = user;

    if (size >= sizeof type - 1 && strncasecmp(line, type, sizeof type - 1) == 0)
        client->is_stream = true;
}

static int take_body(void *user, const char *data, size_t size)
{
    struct daemon_client *client = user;

    if (client->in.size - client->from + size > ANSWER_MAX)
        return DET_ERR_LIMIT;
    det_buffer_append(&client->in, data, size);
    return det_buffer_status(&client->in);
}

static int fail_memory(struct det_error *reterr)
{
    return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
}

/* False: no memory. */
static bool add_lines(struct daemon_client *client, const char *key)
{
    return (!client->body || (http_lines_add(&client->lines, "Content-Type", "application/json") &&
                              http_lines_add(&client->lines, "Expect", ""))) &&
           (!key || http_lines_add(&client->lines, "Idempotency-Key", key));
}

/* Takes the body, which is that of free(). */
static int begin_call(
    struct daemon_client *client, const char *method, const char *path, char *body_take,
    const char *key, struct det_error *reterr)
{
    reset(client);
    client->body = body_take;
    det_buffer_clear(&client->next_page);
    det_buffer_append_text(&client->path, HOST);
    det_buffer_append_text(&client->path, path ? path : "");
    if (!path || !add_lines(client, key) || det_buffer_status(&client->path) < 0)
        return fail_memory(reterr);
    client->call = (struct http_call){
        .method = method,
        .url = det_buffer_text(&client->path),
        .lines = &client->lines,
        .send = client->body,
        .send_size = client->body ? strlen(client->body) : 0,
        .timeout = DET_NEVER,
        .on_body = take_body,
        .on_line = take_line,
        .user = client,
    };
    http_client_begin(client->http, &client->call, &client->result);
    return 0;
}

int daemon_client_ask(
    struct daemon_client *client, const char *method, const char *path, json_t *body_take,
    struct det_error *reterr)
{
    char *body = body_take ? json_dumps(body_take, JSON_COMPACT) : NULL;

    bool is_good = !body_take || body;

    json_decref(body_take);
    if (!is_good)
        return fail_memory(reterr);
    return begin_call(client, method, path, body, NULL, reterr);
}

int daemon_client_ask_text(
    struct daemon_client *client, const char *method, const char *path, const char *body,
    const char *key, struct det_error *reterr)
{
    char *copy = body ? strdup(body) : NULL;

    if (body && !copy)
        return fail_memory(reterr);
    return begin_call(client, method, path, copy, key, reterr);
}

static int fail_malformed(struct det_error *reterr)
{
    return det_error_set(
        reterr, DET_ERR_MALFORMED,
        "the detent that runs here does not speak as this one; is it another version?");
}

static int fail_closed(struct det_error *reterr)
{
    return det_error_set(
        reterr, DET_ERR_CLOSED, "the detent that ran here has gone, or has cut us off");
}

/* What became of the request as a whole. */
static int fail_call(const struct daemon_client *client, struct det_error *reterr)
{
    const struct http_result *result = &client->result;

    switch (client->code) {
    case DET_ERR_CANCELLED:
        return det_error_set(reterr, client->code, "interrupted");
    case DET_ERR_NO_MEMORY:
        return fail_memory(reterr);
    case DET_ERR_LIMIT:
        return det_error_set(reterr, DET_ERR_MALFORMED, "the answer has no end");
    case DET_ERR_IO:
        if (result->is_shortage)
            return det_error_set(reterr, DET_ERR_IO, "%s", HTTP_CLIENT_SHORTAGE_TEXT);
        return fail_closed(reterr);
    default:
        return det_error_set(reterr, client->code, "%s", result->text);
    }
}

static int code_of(const char *name)
{
    static const int codes[] = {
#define DET_ERROR(error, number, text) DET_ERR_##error,
#include <detent/errors.def>
#undef DET_ERROR
    };

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (strcmp(det_error_name(codes[i]), name) == 0)
            return codes[i];
    return DET_ERR_IO;
}

/* The error that is all of an answer, or the data of an event. */
static int take_error(const json_t *root, struct det_error *reterr)
{
    const json_t *error = json_object_get(root, "error");
    const char *code = json_string_value(json_object_get(error, "code"));
    const char *text = json_string_value(json_object_get(error, "text"));

    if (!code || !text)
        return fail_malformed(reterr);
    return det_error_set(reterr, code_of(code), "%s", text);
}

/* Until more has come: 0 also at the end. */
static int read_more(struct daemon_client *client, det_time deadline, struct det_error *reterr)
{
    int r = http_client_wait(client->http, deadline);

    if (r < 1) {
        client->is_over = true;
        client->code = r;
    }
    if (r == 1 && deadline != DET_NEVER &&
        det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) >= deadline)
        return det_error_set(reterr, DET_ERR_TIMEOUT, "the detent that runs here does not answer");
    return 0;
}

/* The data of the event, which are JSON. */
static int take_event(
    struct daemon_client *client, const char *data, size_t size, json_t **ret,
    struct det_error *reterr)
{
    json_t *value = json_loadb(data, size, JSON_REJECT_DUPLICATES, NULL);
    int r = 1;

    if (!json_is_object(value))
        r = fail_malformed(reterr);
    else if (strcmp(client->event, "error") == 0)
        r = take_error(value, reterr);
    else if (strcmp(client->event, "dropped") == 0)
        r = fail_closed(reterr);
    if (r == 1)
        *ret = value;
    else
        json_decref(value);
    return r;
}

static enum field field_of(const char **line, size_t *size)
{
    static const char event[] = "event: ", data[] = "data: ";
    enum field field = FIELD_OTHER;
    size_t skip = 0;

    if (*size == 0)
        return FIELD_END;
    if (*size >= sizeof event - 1 && memcmp(*line, event, sizeof event - 1) == 0) {
        field = FIELD_EVENT;
        skip = sizeof event - 1;
    } else if (*size >= sizeof data - 1 && memcmp(*line, data, sizeof data - 1) == 0) {
        field = FIELD_DATA;
        skip = sizeof data - 1;
    }
    *line += skip;
    *size -= skip;
    return field;
}

/* The next line that is complete, without its newline; false: there is none yet. */
static bool take_stream_line(struct daemon_client *client, const char **ret, size_t *ret_size)
{
    const char *text = det_buffer_text(&client->in) + client->from;
    const char *end = memchr(text, '\n', client->in.size - client->from);

    if (!end)
        return false;
    *ret = text;
    *ret_size = (size_t)(end - text);
    client->from += *ret_size + 1;
    return true;
}

/* 1 with an event that has come, 0: none. Data of ours are one line. */
static int take_stream(struct daemon_client *client, json_t **ret, struct det_error *reterr)
{
    const char *line = "";
    size_t size = 0;

    while (take_stream_line(client, &line, &size)) {
        enum field field = field_of(&line, &size);

        if (field == FIELD_EVENT)
            snprintf(client->event, sizeof client->event, "%.*s", (int)size, line);
        else if (field == FIELD_END)
            client->event[0] = '\0';
        else if (field == FIELD_DATA)
            return take_event(client, line, size, ret, reterr);
    }
    det_buffer_drop(&client->in, client->from);
    client->from = 0;
    return 0;
}

/* `next` is the "after" of the next page; NULL: this is the last. */
static void take_page(struct daemon_client *client, json_t *items, const char *next)
{
    const char *path = det_buffer_text(&client->path) + strlen(HOST);
    const char *after = strstr(path, "after=");
    size_t size = after ? (size_t)(after - path) : strlen(path);

    client->items = json_incref(items);
    if (!next)
        return;
    det_buffer_append(&client->next_page, path, size);
    if (!after)
        det_buffer_append_char(&client->next_page, strchr(path, '?') ? '&' : '?');
    det_buffer_append_text(&client->next_page, "after=");
    daemon_path_add(&client->next_page, next);
}

/* All of it has come: its value, or the items of a page, which has no "kind". */
static int read_plain(struct daemon_client *client, json_t **ret, struct det_error *reterr)
{
    json_t *root = json_loadb(
        det_buffer_text(&client->in), client->in.size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY,
        NULL);
    json_t *items = json_object_get(root, "items");
    unsigned status = client->result.status;
    int r = 1;

    det_buffer_clear(&client->in);
    if (!json_is_object(root))
        r = fail_malformed(reterr);
    else if (status < 200 || status > 299)
        r = take_error(root, reterr);
    else if (json_is_array(items) && !json_object_get(root, "kind"))
        take_page(client, items, json_string_value(json_object_get(root, "next")));
    else
        *ret = json_incref(root);
    json_decref(root);
    return r;
}

static int take_plain(struct daemon_client *client, json_t **ret, struct det_error *reterr)
{
    json_t *item = NULL;
    int r = 0;

    if (client->is_taken)
        return 0;
    if (!client->items)
        r = read_plain(client, ret, reterr);
    client->is_taken = !client->items;
    if (client->is_taken)
        return r;
    item = json_array_get(client->items, client->next_item++);
    *ret = json_incref(item);
    return item ? 1 : 0;
}

/* Asks for the page behind the one that has been taken; 0: there is none. */
static int ask_next_page(struct daemon_client *client, struct det_error *reterr)
{
    char *path;
    int r;

    if (!client->items || client->next_page.size == 0)
        return 0;
    path = det_string_copy(client->allocator, det_buffer_text(&client->next_page));
    if (!path)
        return fail_memory(reterr);
    r = daemon_client_ask(client, "GET", path, NULL, reterr);
    det_free_string(client->allocator, path);
    return r < 0 ? r : 1;
}

/* Of what has come, or is to come of this page. */
static int next_part(
    struct daemon_client *client, det_time deadline, json_t **ret, struct det_error *reterr)
{
    int r = 0;

    while (r == 0 && !client->is_over) {
        r = read_more(client, deadline, reterr);
        if (r == 0 && client->is_stream)
            r = take_stream(client, ret, reterr);
    }
    if (r == 0 && client->is_stream)
        r = take_stream(client, ret, reterr);
    if (r != 0)
        return r;
    if (client->code < 0)
        return fail_call(client, reterr);
    return client->is_stream ? 0 : take_plain(client, ret, reterr);
}

int daemon_client_next(
    struct daemon_client *client, det_time deadline, json_t **ret, struct det_error *reterr)
{
    int r = 0;

    if (client->is_stream)
        r = take_stream(client, ret, reterr);
    while (r == 0) {
        r = next_part(client, deadline, ret, reterr);
        if (r != 0)
            return r;
        r = ask_next_page(client, reterr);
        if (r == 0)
            return 0;
        r = r < 0 ? r : 0;
    }
    return r;
}

int daemon_client_call(
    struct daemon_client *client, const char *method, const char *path, json_t *body_take,
    det_time timeout, json_t **ret, struct det_error *reterr)
{
    det_time deadline = det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) + timeout;
    int r;

    r = daemon_client_ask(client, method, path, body_take, reterr);
    if (r == 0)
        r = daemon_client_next(client, deadline, ret, reterr);
    if (r == 0)
        r = fail_malformed(reterr);
    return r < 0 ? r : 0;
}

int daemon_client_wait_gone(
    struct daemon_client *client, det_time deadline, struct det_error *reterr)
{
    const struct timespec pause = { .tv_nsec = LOOK_EVERY };
    char path[SOCKET_PATH_TEXT];
    int folder;

    /* The connection says nothing about whether the next one finds somebody. */
    while (socket_reach(client->project, &folder, path, NULL) == 0) {
        close(folder);
        if (cli_is_interrupted())
            return det_error_set(reterr, DET_ERR_CANCELLED, "interrupted");
        if (det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) >= deadline)
            return det_error_set(reterr, DET_ERR_TIMEOUT, "the detent that runs here does not end");
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}
