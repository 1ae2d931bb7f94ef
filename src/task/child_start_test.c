/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* child_start_test.c - the start of children, from any thread; and failed starts: their errors, and
 * that nothing is left. The functions of the C library that a start calls are replaced here, so
 * that each of them fails on request. */
/* test: alone */
/* test: threads */
#include <detent/driver/loop.h>

#include "task/child_real_cases.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "os/real.h"
#include "os/real_process.h"

#define IN_PLACE_OF(function) __asm__(#function)

/* So many calls succeed, then one fails with EMFILE; negative: all succeed. */
static int calls_left = -1;

static bool fails(void)
{
    if (calls_left < 0 || calls_left-- > 0)
        return false;
    errno = EMFILE;
    return true;
}

int make_pipe(int ends[2], int flags) IN_PLACE_OF(pipe2);
int control_file(int descriptor, int command, ...) IN_PLACE_OF(fcntl);
int make_socket(int family, int kind, int protocol) IN_PLACE_OF(socket);
int set_option(int descriptor, int level, int name, const void *value, socklen_t size)
    IN_PLACE_OF(setsockopt);
int bind_socket(int descriptor, const struct sockaddr *address, socklen_t size) IN_PLACE_OF(bind);
int ask_name(int descriptor, struct sockaddr *address, socklen_t *size) IN_PLACE_OF(getsockname);
int open_process(pid_t number, unsigned flags) IN_PLACE_OF(pidfd_open);
int control_epoll(int epoll, int operation, int descriptor, struct epoll_event *event)
    IN_PLACE_OF(epoll_ctl);
int make_pipe(int ends[2], int flags)
{
    return fails() ? -1 : (int)syscall(SYS_pipe2, ends, flags);
}

int control_file(int descriptor, int command, ...)
{
    va_list list;
    long argument;

    va_start(list, command);
    argument = va_arg(list, long);
    va_end(list);
    return fails() ? -1 : (int)syscall(SYS_fcntl, descriptor, command, argument);
}

int make_socket(int family, int kind, int protocol)
{
    return fails() ? -1 : (int)syscall(SYS_socket, family, kind, protocol);
}

int set_option(int descriptor, int level, int name, const void *value, socklen_t size)
{
    return fails() ? -1 : (int)syscall(SYS_setsockopt, descriptor, level, name, value, size);
}

int bind_socket(int descriptor, const struct sockaddr *address, socklen_t size)
{
    return fails() ? -1 : (int)syscall(SYS_bind, descriptor, address, size);
}

int ask_name(int descriptor, struct sockaddr *address, socklen_t *size)
{
    return fails() ? -1 : (int)syscall(SYS_getsockname, descriptor, address, size);
}

int open_process(pid_t number, unsigned flags)
{
    return fails() ? -1 : (int)syscall(SYS_pidfd_open, number, flags);
}

int control_epoll(int epoll, int operation, int descriptor, struct epoll_event *event)
{
    if (operation == EPOLL_CTL_ADD && fails())
        return -1;
    return (int)syscall(SYS_epoll_ctl, epoll, operation, descriptor, event);
}

static void fails_to_run(const char *program, int code, const char *text)
{
    fails_with(
        &(struct det_process_spec){ .argv = (const char *const[]){ program, NULL } }, code, text);
}

static void child_start_failure_gives_a_remedy(void **state)
{
    char *folder = det_test_folder(), path[512];

    (void)state;
    fails_to_run("no-such-program", DET_ERR_NOT_FOUND, "no such program in PATH (/");
    fails_to_run("/no/such/program", DET_ERR_NOT_FOUND, "no such file");
    fails_to_run("/usr", DET_ERR_IO, "it is a directory");
    (void)snprintf(path, sizeof path, "%s/script", folder);
    det_test_write_file(path, "#!/no/such/interpreter\n", 23);
    fails_to_run(path, DET_ERR_IO, "chmod +x");
    assert_int_equal(0, chmod(path, 0755));
    fails_to_run(path, DET_ERR_NOT_FOUND, "the interpreter or loader");
    det_test_write_file(path, "echo hello\n", 11);
    fails_to_run(path, DET_ERR_IO, "#!");
    fails_with(
        &(struct det_process_spec){ .argv = (const char *const[]){ "true", NULL },
                                    .folder = "/no/such/folder" },
        DET_ERR_NOT_FOUND, "create the folder");
    fails_with(
        &(struct det_process_spec){ .argv = (const char *const[]){ "true", NULL }, .folder = path },
        DET_ERR_IO, "Not a directory");
    fails_with(
        &(struct det_process_spec){ .argv = (const char *const[]){ "no-such-program", NULL },
                                    .folder = "/usr" },
        DET_ERR_NOT_FOUND, "in PATH");
    (void)snprintf(path, sizeof path, "%s/circle", folder);
    assert_int_equal(0, symlink("circle", path));
    fails_to_run(path, DET_ERR_IO, "from a shell");
    fails_with(&(struct det_process_spec){ 0 }, DET_ERR_INVALID, "argv[0]");
    fails_to_run("", DET_ERR_INVALID, "argv[0]");
    fails_with(
        &(struct det_process_spec){ .argv = (const char *const[]){ "true", NULL },
                                    .user = "no-such-user" },
        DET_ERR_NOT_FOUND, "no such user");
    det_test_folder_remove(folder);
}

/* LIMIT and NO_MEMORY say that we are short of something, and the start is tried again for ever. */
static void start_failure_by_own_limits_is_not_a_shortage(void **state)
{
    static const struct {
        enum det_spawn_stage stage;
        int number, own, code;
    } cases[] = {
        { DET_SPAWN_PROGRAM, EAGAIN, DET_LIMIT_PROCESSES, DET_ERR_IO },
        { DET_SPAWN_USER, EAGAIN, DET_LIMIT_PROCESSES, DET_ERR_IO },
        { DET_SPAWN_PROGRAM, ENOMEM, DET_LIMIT_MEMORY, DET_ERR_IO },
        { DET_SPAWN_PROGRAM, ENOMEM, DET_LIMIT_STACK, DET_ERR_IO },
        { DET_SPAWN_FOLDER, ENOMEM, DET_LIMIT_MEMORY, DET_ERR_IO },
        { DET_SPAWN_PROGRAM, EMFILE, DET_LIMIT_OPEN_FILES, DET_ERR_IO },
        /* Ours: another limit, or before its limits were set. */
        { DET_SPAWN_PROGRAM, EAGAIN, DET_LIMIT_MEMORY, DET_ERR_LIMIT },
        { DET_SPAWN_PROGRAM, ENOMEM, DET_LIMIT_CORE, DET_ERR_NO_MEMORY },
        { DET_SPAWN_US, EAGAIN, DET_LIMIT_PROCESSES, DET_ERR_LIMIT },
        { DET_SPAWN_US, ENOMEM, DET_LIMIT_MEMORY, DET_ERR_NO_MEMORY },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct det_process_limit limit = { .kind = (enum det_limit_kind)cases[i].own, .most = 1 };
        const struct det_process_options options = {
            .argv = (const char *const[]){ "true", NULL },
            .user = "nobody",
            .folder = "/",
            .limits = &limit,
            .limit_count = 1,
        };
        const struct det_spawn_failure failure = { cases[i].stage, cases[i].number };
        struct det_error error = { 0 };

        assert_int_equal(cases[i].code, det_real_spawn_error(&options, &failure, &error));
        assert_int_equal(
            cases[i].code == DET_ERR_IO, strstr(error.text, "within its own limits") != NULL);
    }
}

static void missing_program_error_names_the_searched_path(void **state)
{
    /* NOLINTBEGIN(concurrency-mt-unsafe): one thread */
    const char *found = getenv("PATH");
    char *folder = det_test_folder(), *before = strdup(found ? found : "/bin:/usr/bin"), path[512];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/refused", folder);
    det_test_write_file(path, "", 0);
    (void)snprintf(path, sizeof path, "/none:%s", folder);
    assert_int_equal(0, setenv("PATH", path, 1));
    fails_to_run("refused", DET_ERR_IO, "chmod +x");
    fails_to_run("none", DET_ERR_NOT_FOUND, folder);
    assert_int_equal(0, unsetenv("PATH"));
    fails_to_run("none", DET_ERR_NOT_FOUND, "PATH (not set)");
    assert_int_equal(0, setenv("PATH", before, 1));
    free(before);
    det_test_folder_remove(folder);
    /* NOLINTEND(concurrency-mt-unsafe) */
}

static void child_starts_without_parent_streams(void **state)
{
    int saved[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
        close(i);
    }
    start_as(NULL, (const char *const[]){ nasty, "descriptors", NULL });
    turn_until(&witness, has_ended, NULL);
    if (somebody()) {
        det_child_close(witness.child);
        witness.ends = 0;
        start_as(somebody(), (const char *const[]){ "sh", "-c", "ls /proc/$$/fd", NULL });
        turn_until(&witness, has_ended, NULL);
    }
    for (int i = 0; i < 3; i++) {
        dup2(saved[i], i);
        close(saved[i]);
    }
    assert_string_equal(somebody() ? "0|1|2|0|1|2|" : "0|1|2|", witness.printed[0]);
}

static void arguments_that_are_too_long_are_reported(void **state)
{
    size_t size = (size_t)256 << 10;
    char *word = malloc(size);

    (void)state;
    assert_non_null(word);
    memset(word, 'x', size - 1);
    word[size - 1] = '\0';
    fails_with(
        &(struct det_process_spec){ .argv = (const char *const[]){ "true", word, NULL } },
        DET_ERR_IO, "shorter arguments");
    free(word);
}

static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    /* NOLINTNEXTLINE(concurrency-mt-unsafe): this stream is ours */
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* Fails the first, second, ... call of the kernel, until none is left; returns how many. */
static int fail_each_call(const char *user)
{
    const struct det_process_spec spec = { .argv = (const char *const[]){ "true", NULL },
                                           .user = user,
                                           .has_notify = true };
    struct det_child_events events = events_of(&witness);
    int before = count_descriptors(), r = DET_ERR_LIMIT, count = 0;

    for (; r < 0; count++) {
        struct det_error error = { .code = 0 };

        calls_left = count;
        r = det_child_start(witness.loop, NULL, &spec, &events, &witness.child, &error);
        if (r == 0)
            break;
        assert_true(calls_left == -1);
        assert_int_equal(DET_ERR_LIMIT, r);
        assert_int_equal(DET_ERR_LIMIT, error.code);
        assert_non_null(strstr(error.text, "cannot start \"true\""));
        assert_null(witness.child);
        assert_int_equal(before, count_descriptors());
        assert_int_equal(0, det_loop_turn(witness.loop, 0));
        has_no_children();
    }
    calls_left = -1;
    ends_with(&witness, 0, 0);
    det_child_close(witness.child);
    witness = (struct witness){ .loop = witness.loop };
    return count;
}

static void a_start_that_fails_anywhere_leaves_nothing(void **state)
{
    (void)state;
    assert_true(fail_each_call(NULL) >= 12);
    if (somebody())
        assert_true(fail_each_call("nobody") >= 14);
}

static int start_and_end(struct det_test_memory *memory, void *argument)
{
    const struct det_process_spec spec = { .argv = (const char *const[]){ "echo", "a", NULL },
                                           .user = argument,
                                           .has_notify = true };
    struct det_real_world world = { .world = *det_world_real(), .allocator = &memory->allocator };
    struct witness one = { 0 };
    struct det_child_events events = events_of(&one);
    int r;

    r = det_loop_open(&world.world, &memory->allocator, &one.loop);
    if (r < 0)
        return r;
    r = det_child_start(one.loop, &memory->allocator, &spec, &events, &one.child, NULL);
    if (r == 0) {
        turn_until(&one, has_ended, NULL);
        assert_string_equal("a|", one.printed[0]);
    }
    det_child_close(one.child);
    det_loop_close(one.loop);
    has_no_children();
    return r;
}

static void children_survive_every_failed_allocation(void **state)
{
    char nobody[] = "nobody";

    (void)state;
    det_test_each_failure(start_and_end, NULL);
    if (somebody())
        det_test_each_failure(start_and_end, nobody);
}

/* A loop on a separate thread that starts one child after the other. */
struct runner {
    struct witness witness;
    struct det_post post;
    const char *user;
    int left;
};

static void start_next(void *argument);

static void count_end(void *user, const struct det_process_end *end)
{
    struct runner *runner = user;

    runner->witness.end = *end;
    runner->witness.ends += end->code == 3;
    det_child_close(runner->witness.child);
    runner->witness.child = NULL;
    det_loop_post(runner->witness.loop, &runner->post);
}

static void start_next(void *argument)
{
    struct runner *runner = argument;
    const struct det_process_spec spec = { .argv =
                                               (const char *const[]){ "sh", "-c", "exit 3", NULL },
                                           .user = runner->left % 2 ? runner->user : NULL };
    const struct det_child_events events = { .on_end = count_end, .user = runner };

    if (runner->left-- == 0 ||
        det_child_start(runner->witness.loop, NULL, &spec, &events, &runner->witness.child, NULL) <
            0)
        det_loop_break(runner->witness.loop);
}

static void run_loop(void *argument)
{
    struct runner *runner = argument;

    if (det_loop_run(runner->witness.loop) < 0)
        runner->witness.ends = -1;
}

static void children_start_on_many_threads_at_once(void **state)
{
    enum { LOOPS = 4, CHILDREN = 10 };
    struct runner runners[LOOPS];
    struct det_thread *threads[LOOPS];

    (void)state;
    for (int i = 0; i < LOOPS; i++) {
        runners[i] = (struct runner){ .left = CHILDREN,
                                      .user = somebody(),
                                      .post = { .run = start_next, .argument = &runners[i] } };
        assert_int_equal(0, det_loop_open(NULL, NULL, &runners[i].witness.loop));
        det_loop_post(runners[i].witness.loop, &runners[i].post);
        assert_int_equal(
            0, det_thread_start(det_world_real(), "children", run_loop, &runners[i], &threads[i]));
    }
    for (int i = 0; i < LOOPS; i++) {
        det_thread_join(det_world_real(), threads[i]);
        det_loop_close(runners[i].witness.loop);
        assert_int_equal(CHILDREN, runners[i].witness.ends);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(child_start_failure_gives_a_remedy),
        CASE(start_failure_by_own_limits_is_not_a_shortage),
        CASE(missing_program_error_names_the_searched_path),
        CASE(child_starts_without_parent_streams),
        CASE(arguments_that_are_too_long_are_reported),
        CASE(a_start_that_fails_anywhere_leaves_nothing),
        CASE(children_survive_every_failed_allocation),
        CASE(children_start_on_many_threads_at_once),
    };

    return cmocka_run_group_tests(tests, find_nasty, NULL);
}
