/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* child.c - other programs: compilers, the program detent, and peers that measure themselves. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "bench.h"
#include "record/number.h"
#include "json/reader.h"

#define EXIT_NOT_INSTALLED 3
#define OUTPUT_MAX         65536

extern char **environ;

/* Its output goes to `output`; its error output to `errors`, or to ours. */
static int start(const char *const *arguments, int output, int errors, pid_t *ret)
{
    posix_spawn_file_actions_t actions;
    char *const *words = (char *const *)(uintptr_t)arguments;
    int error;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (errors >= 0)
        posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    error = posix_spawnp(ret, arguments[0], &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error == ENOENT)
        return DET_ERR_NOT_FOUND;
    return error ? DET_ERR_IO : 0;
}

static int wait_for(pid_t child, int *ret_exit)
{
    int status;

    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            return DET_ERR_IO;
    }
    if (!WIFEXITED(status))
        return DET_ERR_IO;
    if (ret_exit)
        *ret_exit = WEXITSTATUS(status);
    return WEXITSTATUS(status) == 0 ? 0 : DET_ERR_IO;
}

static void drain(int descriptor, struct det_buffer *output)
{
    char bytes[4096];
    ssize_t size;

    while ((size = read(descriptor, bytes, sizeof bytes)) > 0)
        det_buffer_append(output, bytes, (size_t)size);
}

static int run_dropping(const char *const *arguments, int *ret_exit)
{
    int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    pid_t child;
    int r;

    if (sink < 0)
        return DET_ERR_IO;
    r = start(arguments, sink, sink, &child);
    close(sink);
    return r < 0 ? r : wait_for(child, ret_exit);
}

int bench_child_run(const char *const *arguments, struct det_buffer *output, int *ret_exit)
{
    int ends[2];
    pid_t child;
    int r;

    if (ret_exit)
        *ret_exit = 0;
    if (!output)
        return run_dropping(arguments, ret_exit);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return DET_ERR_IO;
    r = start(arguments, ends[1], -1, &child);
    close(ends[1]);
    if (r == 0) {
        drain(ends[0], output);
        r = wait_for(child, ret_exit);
    }
    close(ends[0]);
    return r;
}

bool bench_child_number(const char *text, const char *name, double *ret)
{
    const struct det_json_value *answer = NULL, *number;
    struct det_arena arena;
    bool is_there = false;

    det_arena_init(&arena, NULL);
    if (det_json_read(&arena, det_view_text(text), &answer, NULL) == 0) {
        number = det_json_get(answer, name);
        is_there = det_json_is(number, DET_JSON_NUMBER) && det_parse_double(number->text, ret) == 0;
    }
    det_arena_deinit(&arena);
    return is_there;
}

static int read_answer(struct bench_lap *lap, const char *text)
{
    if (!bench_child_number(text, "nanoseconds", &lap->nanoseconds) || lap->nanoseconds <= 0)
        return bench_lap_fail(lap, DET_ERR_MALFORMED, "its output is not valid");
    return 0;
}

int bench_child_peer(struct bench_lap *lap, const char *const *arguments)
{
    struct det_buffer output;
    int code, r;

    det_buffer_init(&output, NULL);
    output.limit = OUTPUT_MAX;
    r = bench_child_run(arguments, &output, &code);
    if (r == DET_ERR_NOT_FOUND || code == EXIT_NOT_INSTALLED)
        r = bench_lap_fail(lap, DET_ERR_UNSUPPORTED, "not installed");
    else if (r < 0)
        r = bench_lap_fail(lap, r, "%s ended with exit code %d", arguments[0], code);
    else
        r = read_answer(lap, det_buffer_text(&output));
    det_buffer_deinit(&output);
    return r;
}
