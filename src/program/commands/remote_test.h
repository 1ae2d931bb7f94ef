/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* remote_test.h - a detent that is up and says what a test has put into its mouth: for the tests of
 * the commands that talk to one. It answers on a thread of its own; the command under test runs on
 * the test's, in a world whose wall clock stands still.
 *
 * What is said to a verb is a text of lines, each one of
 *
 *     {...}         a part of the answer
 *     ={...}        the one answer
 *     .             the end
 *     !CODE text    it failed
 *     ~             nothing more, for ever
 *     x             it goes away
 *     .x, ={...}x   the same, and it goes away */
#ifndef DET_COMMANDS_REMOTE_TEST_H
#define DET_COMMANDS_REMOTE_TEST_H

#include "lib/test.h"

#include <detent/sim.h>

#include "base/buffer.h"
#include "client/remote.h"
#include "daemon/socket_server.h"
#include "terminal/args.h"

#define SAYINGS_MAX 8
#define WORDS_MAX   24
#define WORDS(...)  ((const char *const[]){ __VA_ARGS__, NULL })

struct fake;

/* Used once, but the last one about a verb, which is used again. */
struct saying {
    struct fake *fake;
    const char *verb, *lines;
    bool is_used;
};

struct fake {
    char *folder;
    struct det_sim *sim;
    struct cli cli; /* what a run starts from */
    struct det_loop *loop;
    struct socket_server *server;
    struct socket_verb verbs[SAYINGS_MAX + 1];
    struct saying sayings[SAYINGS_MAX];
    size_t saying_count;
    struct det_buffer heard; /* "verb {arguments}" and a newline each */
    struct det_post leaving;
    char *out, *err; /* of the last run */
    size_t out_size, err_size;
};

static inline void leave(void *argument)
{
    struct fake *fake = argument;

    socket_server_close(fake->server);
    fake->server = NULL;
}

static inline void forget(void *user)
{
    (void)user;
}

/* One line of a saying; returns whether the call is still open. */
static inline bool say_line(
    struct fake *fake, struct socket_call *call, const char *line, size_t size)
{
    char text[4096];
    const char *last = size ? &line[size - 1] : line;
    char *behind;

    assert_true(size < sizeof text);
    memcpy(text, line, size);
    text[size] = '\0';
    behind = strchr(text, ' ');
    if (*text == '{') {
        /* One that has gone away meanwhile does not need to know. */
        (void)socket_call_send(call, json_loads(text, 0, NULL));
        return true;
    }
    if (*text == '=')
        socket_call_answer(call, json_loads(text + 1, JSON_DISABLE_EOF_CHECK, NULL));
    else if (*text == '.')
        socket_call_end(call);
    else if (*text == '!') {
        *behind = '\0';
        socket_call_fail(call, socket_error_code(text + 1), "%s", behind + 1);
    } else {
        socket_call_keep(call, forget, fake);
    }
    if (*last == 'x' && *text != '!' && !fake->leaving.run) {
        fake->leaving = (struct det_post){ .run = leave, .argument = fake };
        det_loop_post(fake->loop, &fake->leaving);
    }
    return false;
}

static inline const char *lines_for(struct fake *fake, const char *verb)
{
    struct saying *found = NULL;

    for (size_t i = 0; i < fake->saying_count; i++) {
        struct saying *saying = &fake->sayings[i];

        if (strcmp(saying->verb, verb) != 0)
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

static inline void answer(
    void *context, const struct socket_request *request, struct socket_call *call)
{
    struct fake *fake = context;
    const char *lines = lines_for(fake, request->verb);
    char *arguments = json_dumps(request->arguments, JSON_COMPACT | JSON_SORT_KEYS);
    bool is_open = true;

    det_buffer_format(&fake->heard, "%s %s\n", request->verb, arguments);
    free(arguments);
    while (is_open) {
        size_t size = strcspn(lines, "\n");

        is_open = say_line(fake, call, lines, size);
        lines += size + (lines[size] ? 1 : 0);
    }
}

static inline void say_to(struct fake *fake, const char *verb, const char *lines)
{
    struct saying *saying = &fake->sayings[fake->saying_count];

    assert_true(fake->saying_count < SAYINGS_MAX);
    *saying = (struct saying){ .fake = fake, .verb = verb, .lines = lines };
    fake->verbs[fake->saying_count++] = (struct socket_verb){ verb, answer };
}

static inline void forget_run(struct fake *fake)
{
    free(fake->out);
    free(fake->err);
    fake->out = fake->err = NULL;
    det_buffer_clear(&fake->heard);
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
    struct socket_server_options options = { .project = fake->folder,
                                             .verbs = fake->verbs,
                                             .context = fake };
    int code;

    forget_run(fake);
    fake->leaving.run = NULL;
    cli->out = open_memstream(&fake->out, &fake->out_size);
    cli->err = open_memstream(&fake->err, &fake->err_size);
    assert_non_null(cli->out);
    assert_non_null(cli->err);
    assert_int_equal(det_loop_open(NULL, NULL, &fake->loop), 0);
    options.loop = fake->loop;
    assert_int_equal(socket_server_open(&options, &fake->server, NULL), 0);
    assert_int_equal(det_loop_start(fake->loop, "fake"), 0);
    code = run_command_of(fake, cli, words);
    det_loop_stop(fake->loop);
    socket_server_close(fake->server);
    det_loop_close(fake->loop);
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

    fake = (struct fake){ .folder = det_test_folder() };
    assert_int_equal(det_sim_open(&options, &fake.sim, NULL), 0);
    fake.cli.world = det_sim_world(fake.sim);
    det_buffer_init(&fake.heard, NULL);
    *state = &fake;
    return 0;
}

static inline int close_fake(void **state)
{
    struct fake *fake = *state;

    forget_run(fake);
    det_buffer_deinit(&fake->heard);
    det_sim_close(fake->sim);
    det_test_folder_remove(fake->folder);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, close_fake)

#endif
