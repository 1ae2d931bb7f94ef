/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* daemon_client.c - requests to the running daemon, and its answers part by part.
 *
 *     idle --ask--> plain: read to its end, then one value or its items
 *               \-> events: a part whenever one is complete */
#include "client/daemon_client.h"

#include <signal.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "http/client.h"
#include "os/os.h"
#include "terminal/terminal.h"

#define HOST "http://localhost"
/* Maximum size of an answer, or of the unread part of a stream. */
#define ANSWER_MAX (UINT64_C(256) << 20)
/* Nanoseconds between two checks whether the socket is in use. */
#define CHECK_EVERY 5000000

/* A line of Server-Sent Events. */
enum field { FIELD_OTHER, FIELD_EVENT, FIELD_DATA, FIELD_END };

struct daemon_client {
    const struct det_allocator *allocator;
    char project[DET_PATH_MAX];
    int folder; /* that contains the socket */
    struct http_client *http;
    /* The current request. */
    struct http_call call;
    struct http_result result;
    struct http_lines lines;
    struct det_buffer path, body, in;
    size_t from;    /* start of the unread part of `in` */
    bool is_stream; /* of events */
    bool is_over;   /* the answer is complete; `code` is its result */
    int code;
    char event[32]; /* name of the current event */
    bool is_taken;  /* the value was returned; or the page, except for these items */
    const struct det_json_value *items;
    const struct det_json_value *page; /* of the items; NULL: none */
    struct det_buffer next_page;       /* its path; "": none */
    struct det_arena own;              /* values of the answer */
    struct det_arena *values;          /* `own`, or that of daemon_client_keep() */
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
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    client->allocator = allocator;
    client->folder = -1;
    (void)snprintf(client->project, sizeof client->project, "%s", project);
    det_buffer_init(&client->path, allocator);
    det_buffer_init(&client->body, allocator);
    det_buffer_init(&client->in, allocator);
    det_buffer_init(&client->next_page, allocator);
    det_arena_init(&client->own, allocator);
    client->values = &client->own;
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

/* Discards the previous request except its values. */
static void reset(struct daemon_client *client)
{
    if (client->http)
        http_client_end(client->http);
    http_lines_deinit(&client->lines);
    det_buffer_deinit(&client->body);
    client->items = client->page = NULL;
    client->from = 0;
    client->is_stream = client->is_over = client->is_taken = false;
    client->code = 0;
    client->event[0] = '\0';
    det_buffer_clear(&client->path);
    det_buffer_clear(&client->in);
}

static void forget_values(struct daemon_client *client)
{
    det_arena_deinit(&client->own);
    det_arena_init(&client->own, client->allocator);
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
    det_arena_deinit(&client->own);
    DET_DELETE(client->allocator, client);
}

static void add_encoded(struct det_buffer *path, struct det_view part)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

    for (size_t i = 0; i < part.size; i++) {
        if (part.data[i] && strchr(plain, part.data[i]))
            det_buffer_append_char(path, part.data[i]);
        else
            det_buffer_format(path, "%%%02X", (unsigned char)part.data[i]);
    }
}

void daemon_path_add(struct det_buffer *path, const char *part)
{
    add_encoded(path, det_view_text(part));
}

const char *daemon_path_text(const struct det_buffer *path)
{
    return det_buffer_status(path) < 0 ? NULL : det_buffer_text(path);
}

/* The head says whether events follow. */
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
    return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
}

/* False: no memory. */
static bool add_lines(struct daemon_client *client, const char *key)
{
    return (client->body.size == 0 ||
            (http_lines_add(&client->lines, "Content-Type", "application/json") &&
             http_lines_add(&client->lines, "Expect", ""))) &&
           (!key || http_lines_add(&client->lines, "Idempotency-Key", key));
}

static int begin_call(
    struct daemon_client *client, const char *method, const char *path, const char *key,
    struct det_error *reterr)
{
    det_buffer_append_text(&client->path, HOST);
    det_buffer_append_text(&client->path, path ? path : "");
    det_buffer_clear(&client->next_page);
    if (!path || !add_lines(client, key) || det_buffer_status(&client->body) < 0 ||
        det_buffer_status(&client->path) < 0)
        return fail_memory(reterr);
    client->call = (struct http_call){
        .method = method,
        .url = det_buffer_text(&client->path),
        .lines = &client->lines,
        .send = client->body.data,
        .send_size = client->body.size,
        .timeout = DET_NEVER,
        .on_body = take_body,
        .on_line = take_line,
        .user = client,
    };
    http_client_begin(client->http, &client->call, &client->result);
    return 0;
}

struct det_json_writer daemon_body(struct daemon_client *client)
{
    struct det_json_writer body;

    det_json_writer_init(&body, client->allocator);
    det_json_open(&body, NULL, '{');
    return body;
}

int daemon_client_ask(
    struct daemon_client *client, const char *method, const char *path,
    struct det_json_writer *body_take, const char *key, struct det_error *reterr)
{
    reset(client);
    forget_values(client);
    client->values = &client->own;
    if (body_take) {
        if (body_take->depth)
            det_json_close(body_take, '}');
        det_assert(body_take->depth == 0);
        client->body = body_take->text;
    }
    return begin_call(client, method, path, key, reterr);
}

void daemon_client_keep(struct daemon_client *client, struct det_arena *arena)
{
    client->values = arena;
}

int daemon_client_fail_invalid(struct det_error *reterr)
{
    return det_error_set(
        reterr, DET_ERR_IO,
        "the running detent sent an invalid answer; check that both have the same version");
}

static int fail_closed(struct det_error *reterr)
{
    return det_error_set(
        reterr, DET_ERR_CLOSED, "the running detent has exited or closed the connection");
}

/* The result of the request as a whole. */
static int fail_call(const struct daemon_client *client, struct det_error *reterr)
{
    const struct http_result *result = &client->result;

    switch (client->code) {
    case DET_ERR_CANCELLED:
        return det_error_set(reterr, client->code, "interrupted");
    case DET_ERR_NO_MEMORY:
        return fail_memory(reterr);
    case DET_ERR_LIMIT:
        return det_error_set(reterr, DET_ERR_IO, "the answer has no end");
    case DET_ERR_IO:
        if (result->is_shortage)
            return det_error_set(reterr, DET_ERR_IO, "%s", HTTP_CLIENT_SHORTAGE_TEXT);
        return fail_closed(reterr);
    default:
        return det_error_set(reterr, client->code, "%s", result->text);
    }
}

int daemon_error_code(const char *name)
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

/* Reads an error, which is a whole answer or the data of an event. */
static int take_error(const struct det_json_value *root, struct det_error *reterr)
{
    const struct det_json_value *error = det_json_get(root, "error");
    const char *code = det_json_get_text(error, "code");
    const char *text = det_json_get_text(error, "text");

    if (!code || !text)
        return daemon_client_fail_invalid(reterr);
    return det_error_set(reterr, daemon_error_code(code), "%s", text);
}

/* Waits for more data; returns 0 also at the end. */
static int read_more(struct daemon_client *client, det_time deadline, struct det_error *reterr)
{
    int r = http_client_wait(client->http, deadline);

    if (r < 1) {
        client->is_over = true;
        client->code = r;
    }
    if (r == 1 && deadline != DET_NEVER &&
        det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) >= deadline)
        return det_error_set(reterr, DET_ERR_TIMEOUT, "the running detent does not answer");
    return 0;
}

/* Reads an object together with its text. */
static int read_object(
    struct daemon_client *client, const char *data, size_t size, const struct det_json_value **ret,
    struct det_error *reterr)
{
    const char *text = det_arena_copy_n(client->values, data, size);
    const struct det_json_value *root = NULL;
    int r = DET_ERR_NO_MEMORY;

    if (text)
        r = det_json_read(client->values, det_view_of(text, size), &root, NULL);
    if (r == DET_ERR_NO_MEMORY)
        return fail_memory(reterr);
    if (r < 0 || !det_json_is(root, DET_JSON_OBJECT))
        return daemon_client_fail_invalid(reterr);
    *ret = root;
    return 0;
}

static int take_event(
    struct daemon_client *client, const char *data, size_t size, const struct det_json_value **ret,
    struct det_error *reterr)
{
    int r;

    forget_values(client);
    r = read_object(client, data, size, ret, reterr);
    if (r < 0)
        return r;
    if (strcmp(client->event, "error") == 0)
        return take_error(*ret, reterr);
    return strcmp(client->event, "dropped") == 0 ? fail_closed(reterr) : 1;
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

/* Returns the next complete line without its newline; false if there is none yet. */
static bool take_stream_line(struct daemon_client *client, const char **ret, size_t *ret_size)
{
    const char *text = det_buffer_text(&client->in) + client->from;
    const char *end = memchr(text, '\n', client->in.size - client->from);

    if (!end)
        return false;
    *ret = text;
    *ret_size = (size_t)(end - text);
    client->from += *ret_size + 1;
    det_assert(client->from <= client->in.size);
    return true;
}

/* Returns 1 with a complete event, or 0. The API sends data in one line. */
static int take_stream(
    struct daemon_client *client, const struct det_json_value **ret, struct det_error *reterr)
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

/* The parameters of a query, one after the other: returns the next one, "key=value" without a final
 * NUL, and NULL after the last. Begin with an `at` after the '?'. */
static const char *next_parameter(const char **at, size_t *ret_size)
{
    const char *parameter = *at;

    if (!*parameter)
        return NULL;
    *ret_size = strcspn(parameter, "&");
    *at = parameter + *ret_size + (parameter[*ret_size] == '&');
    return parameter;
}

static bool has_key(const char *parameter, size_t size, const char *key)
{
    size_t length = strlen(key);

    return size > length && strncmp(parameter, key, length) == 0 && parameter[length] == '=';
}

static bool query_has(const char *query, const char *key)
{
    const char *parameter;
    size_t size = 0;

    while ((parameter = next_parameter(&query, &size))) {
        if (has_key(parameter, size, key))
            return true;
    }
    return false;
}

/* Returns true if `next` is the "after" of another page. A number may also be a position for later
 * news; only a list with a limit has pages. */
static bool has_next_page(const char *query, const struct det_json_value *next)
{
    return det_json_is(next, DET_JSON_STRING) ||
           (det_json_is(next, DET_JSON_NUMBER) && query_has(query, "limit"));
}

static void take_page(struct daemon_client *client, const struct det_json_value *page)
{
    const struct det_json_value *next = det_json_get(page, "next");
    const char *path = det_buffer_text(&client->path) + strlen(HOST);
    size_t size = strcspn(path, "?");
    const char *query = path + size + (path[size] == '?'), *parameter;
    char separator = '?';

    client->page = page;
    client->items = det_json_first(det_json_get(page, "items"));
    if (!has_next_page(query, next))
        return;
    det_assert(client->next_page.size == 0);
    det_buffer_append(&client->next_page, path, size);
    while ((parameter = next_parameter(&query, &size))) {
        if (has_key(parameter, size, "after"))
            continue;
        det_buffer_append_char(&client->next_page, separator);
        det_buffer_append(&client->next_page, parameter, size);
        separator = '&';
    }
    det_buffer_append_char(&client->next_page, separator);
    det_buffer_append_text(&client->next_page, "after=");
    add_encoded(&client->next_page, next->text);
}

/* Reads a complete answer: a value, or a page, which has no "kind". Returns 0 for a page. */
static int read_plain(
    struct daemon_client *client, const struct det_json_value **ret, struct det_error *reterr)
{
    const struct det_json_value *root = NULL, *items;
    unsigned status = client->result.status;
    int r;

    r = read_object(client, det_buffer_text(&client->in), client->in.size, &root, reterr);
    det_buffer_clear(&client->in);
    if (r < 0)
        return r;
    if (status < 200 || status > 299)
        return take_error(root, reterr);
    items = det_json_get(root, "items");
    if (det_json_is(items, DET_JSON_ARRAY) && !det_json_get(root, "kind")) {
        take_page(client, root);
        return 0;
    }
    *ret = root;
    return 1;
}

static int take_plain(
    struct daemon_client *client, const struct det_json_value **ret, struct det_error *reterr)
{
    int r = client->is_taken ? 0 : read_plain(client, ret, reterr);

    client->is_taken = true;
    if (r != 0 || !client->items)
        return r;
    *ret = client->items;
    client->items = client->items->next;
    return 1;
}

/* Requests the next page; returns 0 if there is none. */
static int ask_next_page(struct daemon_client *client, struct det_error *reterr)
{
    struct det_buffer path = client->next_page;
    int r;

    det_assert(client->is_over && !client->items);
    if (path.size == 0 && det_buffer_status(&path) == 0)
        return 0;
    det_buffer_init(&client->next_page, client->allocator);
    reset(client);
    r = begin_call(client, "GET", daemon_path_text(&path), NULL, reterr);
    det_buffer_deinit(&path);
    return r < 0 ? r : 1;
}

/* Returns the next part of this answer or page. */
static int next_part(
    struct daemon_client *client, det_time deadline, const struct det_json_value **ret,
    struct det_error *reterr)
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
    struct daemon_client *client, det_time deadline, const struct det_json_value **ret,
    struct det_error *reterr)
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

const struct det_json_value *daemon_client_page(const struct daemon_client *client)
{
    return client->page;
}

int daemon_client_call(
    struct daemon_client *client, const char *method, const char *path,
    struct det_json_writer *body_take, det_time timeout, const struct det_json_value **ret,
    struct det_error *reterr)
{
    det_time deadline = det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) + timeout;
    int r;

    r = daemon_client_ask(client, method, path, body_take, NULL, reterr);
    if (r == 0)
        r = daemon_client_next(client, deadline, ret, reterr);
    if (r == 0)
        r = daemon_client_fail_invalid(reterr);
    return r < 0 ? r : 0;
}

int daemon_client_wait_gone(
    struct daemon_client *client, det_time deadline, struct det_error *reterr)
{
    const struct timespec pause = { .tv_nsec = CHECK_EVERY };
    char path[SOCKET_PATH_TEXT];
    int folder;

    /* An open connection does not prove that the socket still accepts others. */
    while (socket_reach(client->project, &folder, path, NULL) == 0) {
        close(folder);
        if (cli_is_interrupted())
            return det_error_set(reterr, DET_ERR_CANCELLED, "interrupted");
        if (det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) >= deadline)
            return det_error_set(reterr, DET_ERR_TIMEOUT, "the running detent does not exit");
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}
