/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* remote_test.h - a detent that is up and says what a test has put into its mouth: for the tests of
 * the commands that talk to one. It answers on a thread of its own; the command under test runs on
 * the test's, in a world whose wall clock stands still.
 *
 * What is said to a request, such as "GET /v1/tasks", is a text of lines, each one of
 *
 *     {...}         an item of a list, or the data of an event
 *     ={...}        the one answer
 *     .             the end
 *     !CODE text    it failed
 *     ~             nothing more, for ever
 *     ^             the end of events for a reader that is too slow
 *     x             it goes away
 *     .x, ={...}x   the same, and it goes away
 *
 * Requests that follow, and submissions that wait, are answered with events. */
#ifndef DET_COMMANDS_REMOTE_TEST_H
#define DET_COMMANDS_REMOTE_TEST_H

#include "lib/test.h"

#include <detent/driver/loop.h>
#include <detent/sim.h>

#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "client/remote.h"
#include "http/http.h"
#include "terminal/args.h"

#define SAYINGS_MAX 8
#define WORDS_MAX   24
#define WORDS(...)  ((const char *const[]){ __VA_ARGS__, NULL })

struct fake;

/* Used once, but the last one about a verb, which is used again. */
struct saying {
    const char *request, *lines;
    bool is_used;
};

struct fake {
    char *folder;
    struct det_sim *sim;
    struct cli cli; /* what a run starts from */
    struct det_loop *loop;
    struct http_server *server;
    struct saying sayings[SAYINGS_MAX];
    size_t saying_count;
    struct det_buffer received; /* "GET /v1/tasks" or "POST /v1/stop {body}", and a newline each */
    struct det_post leaving;
    unsigned turns;  /* since it is to leave */
    bool leaves;     /* when what it has said is on its way */
    char *out, *err; /* of the last run */
    size_t out_size, err_size;
};

/* Some turns of the loop later: what was written is on its way then. */
static inline void leave(void *argument)
{
    struct fake *fake = argument;

    if (++fake->turns < 4) {
        det_loop_post(fake->loop, &fake->leaving);
        return;
    }
    http_server_close(fake->server);
    fake->server = NULL;
}

static inline void forget(void *user)
{
    (void)user;
}

static inline void leave_soon(void *user)
{
    struct fake *fake = user;

    if (fake->leaving.run)
        return;
    fake->turns = 0;
    fake->leaving = (struct det_post){ .run = leave, .argument = fake };
    det_loop_post(fake->loop, &fake->leaving);
}

/* An answer is on its way. */
static inline void note_done(void *context, const struct http_done *done)
{
    struct fake *fake = context;

    (void)done;
    if (fake->leaves)
        leave_soon(fake);
}

/* An answer on its way. */
struct telling {
    struct fake *fake;
    struct http_exchange *exchange;
    bool is_stream, is_tree;
    struct det_buffer groups, items; /* with commas between */
};

static inline void add_item(struct telling *telling, const char *text)
{
    bool is_group = telling->is_tree && strstr(text, "\"kind\":\"group\"");
    struct det_buffer *list = is_group ? &telling->groups : &telling->items;

    if (telling->is_stream) {
        /* One that has gone away meanwhile does not need to know. */
        char event[4200];
        int size = snprintf(event, sizeof event, "event: part\ndata: %s\n\n", text);

        (void)http_write(telling->exchange, event, (size_t)size);
        return;
    }
    det_buffer_format(list, "%s%s", list->size ? "," : "", text);
}

static inline void answer_with(struct telling *telling, unsigned status, const char *body)
{
    http_answer(
        telling->exchange, &(struct http_answer){ .status = status,
                                                  .type = "application/json",
                                                  .body = body,
                                                  .body_size = strlen(body) });
}

static inline void end_list(struct telling *telling)
{
    struct det_buffer body = { 0 };

    if (telling->is_stream) {
        http_end(telling->exchange);
        return;
    }
    if (telling->is_tree)
        det_buffer_format(
            &body, "{\"groups\":[%s],\"tasks\":[%s]}", det_buffer_text(&telling->groups),
            det_buffer_text(&telling->items));
    else
        det_buffer_format(&body, "{\"items\":[%s]}", det_buffer_text(&telling->items));
    answer_with(telling, 200, det_buffer_text(&body));
    det_buffer_deinit(&body);
}

/* One line of a saying; returns whether the exchange is still open. */
static inline bool print_line(struct telling *telling, const char *line, size_t size)
{
    struct fake *fake = telling->fake;
    static const char dropped[] = "event: dropped\ndata: {}\n\n";
    char text[4096], error[HTTP_ERROR_BODY];
    bool leaves = size > 0 && line[size - 1] == 'x' && *line != '!';
    char *behind;

    assert_true(size < sizeof text);
    size -= leaves && size > 1;
    memcpy(text, line, size);
    text[size] = '\0';
    behind = strchr(text, ' ');
    /* An answer may be over before http_answer() is. */
    fake->leaves = fake->leaves || leaves;
    if (*text == '{') {
        add_item(telling, text);
        return true;
    }
    if (*text == '=') {
        answer_with(telling, 200, text + 1);
    } else if (*text == '.') {
        end_list(telling);
    } else if (*text == '!') {
        *behind = '\0';
        (void)http_error_body(error, text + 1, behind + 1);
        answer_with(telling, 409, error);
    } else if (*text == '^') {
        (void)http_write(telling->exchange, dropped, strlen(dropped));
        http_end(telling->exchange);
    } else {
        http_keep(telling->exchange, forget, leaves ? leave_soon : NULL, fake);
    }
    if (*text == 'x' && !telling->is_stream)
        leave_soon(fake);
    return false;
}

static inline const char *lines_for(struct fake *fake, const char *request)
{
    struct saying *found = NULL;

    for (size_t i = 0; i < fake->saying_count; i++) {
        struct saying *saying = &fake->sayings[i];

        if (strcmp(saying->request, request) != 0)
            continue;
        found = saying;
        if (!saying->is_used)
            break;
    }
    if (!found)
        return "!NOT_FOUND nothing was put into its mouth";
    found->is_used = true;
    return found->lines;
}

static inline void answer(void *context, struct http_exchange *exchange)
{
    const struct http_request *request = http_request(exchange);
    struct telling telling = { .fake = context, .exchange = exchange };
    struct fake *fake = context;
    bool is_open = true, waits = strstr(request->body, "\"wait\":true") != NULL;
    const char *lines;
    char what[256];

    snprintf(what, sizeof what, "%s %s", request->method_name, request->path);
    lines = lines_for(fake, what);
    det_buffer_format(
        &fake->received, "%s%s%s%s%s\n", what, *request->query ? "?" : "", request->query,
        request->body_size ? " " : "", request->body);
    telling.is_tree = strcmp(request->path, "/v1/tree") == 0;
    telling.is_stream =
        *lines != '!' && *lines != '=' &&
        (strstr(request->query, "follow=true") || (waits && strstr(request->path, "/submissions")));
    if (telling.is_stream)
        http_begin(exchange, &(struct http_answer){ .status = 200, .type = "text/event-stream" });
    while (is_open) {
        size_t size = strcspn(lines, "\n");

        is_open = print_line(&telling, lines, size);
        lines += size + (lines[size] ? 1 : 0);
    }
    det_buffer_deinit(&telling.groups);
    det_buffer_deinit(&telling.items);
}

static inline void answer_to(struct fake *fake, const char *request, const char *lines)
{
    struct saying *saying = &fake->sayings[fake->saying_count];

    assert_true(fake->saying_count < SAYINGS_MAX);
    *saying = (struct saying){ .request = request, .lines = lines };
    fake->saying_count++;
}

static inline void forget_run(struct fake *fake)
{
    free(fake->out);
    free(fake->err);
    fake->out = fake->err = NULL;
    det_buffer_clear(&fake->received);
}

/* Runs the command with the words; its output is in `out` and `err`. */
static inline int run_command_of(struct fake *fake, struct cli *cli, const char *const *words)
{
    const char *all[WORDS_MAX] = { "--project", fake->folder };
    const struct cli_command *command = cli_command_find(words[0]);
    struct det_error error = { 0 };
    struct cli_args args;
    int code;

    assert_non_null(command);
    for (size_t i = 0; words[i]; i++) {
        assert_true(i + 3 < WORDS_MAX);
        all[i + 2] = words[i + 1];
    }
    if (cli_args_read(command, all, NULL, &args, &error) < 0)
        fail_msg("%s", error.text);
    cli->command = command->name;
    cli->is_json = args.wants_json;
    code = command->run(cli, &args);
    cli_args_deinit(&args, NULL);
    return code;
}

static inline int run_in(struct fake *fake, struct cli *cli, const char *const *words)
{
    struct http_options options = { .handle = answer, .done = note_done, .context = fake };
    char path[DET_PATH_MAX];
    int descriptor, code;

    forget_run(fake);
    fake->leaving.run = NULL;
    fake->leaves = false;
    cli->out = open_memstream(&fake->out, &fake->out_size);
    cli->err = open_memstream(&fake->err, &fake->err_size);
    assert_non_null(cli->out);
    assert_non_null(cli->err);
    assert_int_equal(det_loop_open(NULL, NULL, &fake->loop), 0);
    options.loop = fake->loop;
    assert_int_equal(http_server_open(&options, &fake->server, NULL), 0);
    snprintf(path, sizeof path, "%s/" SOCKET_FOLDER "/" SOCKET_NAME, fake->folder);
    assert_int_equal(http_bind_path(path, 0600, &descriptor, NULL), 0);
    assert_int_equal(http_listen_given(fake->server, descriptor, NULL, NULL), 0);
    assert_int_equal(det_loop_start(fake->loop, "fake"), 0);
    code = run_command_of(fake, cli, words);
    det_loop_stop(fake->loop);
    http_server_close(fake->server);
    det_loop_close(fake->loop);
    (void)unlink(path);
    fclose(cli->out);
    fclose(cli->err);
    return code;
}

static inline int run(struct fake *fake, const char *const *words)
{
    struct cli cli = fake->cli;
    int code = run_in(fake, &cli, words);

    assert_false(cli.has_failed);
    return code;
}

/* Runs it with memory that fails. */
static inline int run_with(
    struct fake *fake, struct det_test_memory *memory, const char *const *words)
{
    struct cli cli = fake->cli;
    int code;

    cli.allocator = &memory->allocator;
    code = run_in(fake, &cli, words);
    return cli.has_failed || code == CLI_FAILURE ? DET_ERR_NO_MEMORY : 0;
}

static inline int open_fake(void **state)
{
    static struct fake fake;
    struct det_sim_options options = { .seed = 1 };
    char path[DET_PATH_MAX];

    fake = (struct fake){ .folder = det_test_folder() };
    snprintf(path, sizeof path, "%s/" SOCKET_FOLDER, fake.folder);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(det_sim_open(&options, &fake.sim, NULL), 0);
    fake.cli.world = det_sim_world(fake.sim);
    det_buffer_init(&fake.received, NULL);
    *state = &fake;
    return 0;
}

static inline int close_fake(void **state)
{
    struct fake *fake = *state;

    forget_run(fake);
    det_buffer_deinit(&fake->received);
    det_sim_close(fake->sim);
    det_test_folder_remove(fake->folder);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, close_fake)

#endif
