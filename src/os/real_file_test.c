/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_file_test.c - the real world holds what every world holds of files and processes; and what
 * only the real one has: full disks, streams, groups, missing descriptors. */
#include "os/file_cases.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/real.h"

static int world_setup(void **state)
{
    static struct world_fixture fixture;

    fixture = (struct world_fixture){ .world = det_world_real(), .folder = det_test_folder() };
    *state = &fixture;
    return 0;
}

static int world_teardown(void **state)
{
    struct world_fixture *fixture = *state;

    det_test_folder_remove(fixture->folder);
    return 0;
}

/* No descriptor more than those that are open; returns the limit as it was. */
static rlim_t forbid_descriptors(void)
{
    struct rlimit limit;
    rlim_t before;
    int lowest = dup(0);

    assert_true(lowest >= 0);
    close(lowest);
    assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &limit));
    before = limit.rlim_cur;
    limit.rlim_cur = (rlim_t)lowest;
    assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &limit));
    return before;
}

static void allow_descriptors(rlim_t before)
{
    struct rlimit limit;

    assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = before;
    assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &limit));
}

static void filesystems_of_other_machines_are_known_by_their_type(void **state)
{
    (void)state;
    assert_true(det_real_filesystem_is_remote(0x6969));
    assert_true(det_real_filesystem_is_remote((int64_t)0xFF534D42));
    assert_true(det_real_filesystem_is_remote((int32_t)0xFE534D42));
    assert_false(det_real_filesystem_is_remote(0xEF53));
    assert_false(det_real_filesystem_is_remote(0x01021994));
}

static void full_disk_returns_no_space(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    char path[PATH_SIZE];
    struct det_file *file;

    assert_int_equal(0, det_file_open(world, "/dev/full", DET_FILE_WRITE, &file));
    assert_int_equal(DET_ERR_NO_SPACE, det_file_write(world, file, 0, "x", 1));
    assert_int_equal(DET_ERR_INVALID, det_file_sync(world, file));
    det_file_close(world, file);
    /* The file to be written first is full: the old one stays and the full one goes. */
    assert_int_equal(0, det_file_replace(world, path_to(fixture, "a", path), "old", 3));
    assert_int_equal(0, symlink("/dev/full", path_to(fixture, "a.tmp", path)));
    assert_int_equal(
        DET_ERR_INVALID, det_file_replace(world, path_to(fixture, "a", path), "new", 3));
    load_is(fixture, "a", "old");
    assert_int_equal(-1, access(path_to(fixture, "a.tmp", path), F_OK));
}

static void shared_file_copies_the_permissions_of_the_other(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    char path[PATH_SIZE], other[PATH_SIZE];
    struct det_file *file;
    struct stat status;

    det_test_write_file(path_to(fixture, "other", other), "", 0);
    assert_int_equal(0, chmod(other, 0464));
    /* Only the administrator can see to the owner. */
    if (geteuid() == 0)
        assert_int_equal(0, chown(other, 65534, 65533));
    path_to(fixture, "shared", path);
    assert_int_equal(0, det_file_open(world, path, DET_FILE_WRITE | DET_FILE_CREATE, &file));
    det_file_share(world, file, other);
    det_file_close(world, file);
    assert_int_equal(0, stat(path, &status));
    assert_int_equal(0664, status.st_mode & 07777);
    assert_int_equal(geteuid() == 0 ? 65534 : geteuid(), status.st_uid);
    assert_int_equal(geteuid() == 0 ? 65533 : getegid(), status.st_gid);
}

static void a_file_in_a_folder_is_for_its_owner_and_keeps_its_mode(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    char path[PATH_SIZE], folder[PATH_SIZE];
    struct det_file *file;
    struct stat status;

    assert_int_equal(0, mkdir(path_to(fixture, "theirs", folder), 0755));
    if (geteuid() == 0)
        assert_int_equal(0, chown(folder, 65534, 65533));
    path_to(fixture, "theirs/a", path);
    assert_int_equal(0, det_file_open(world, path, DET_FILE_WRITE | DET_FILE_CREATE, &file));
    det_file_share(world, file, folder);
    det_file_close(world, file);
    assert_int_equal(0, stat(path, &status));
    assert_int_equal(0600, status.st_mode & 07777);
    assert_int_equal(geteuid() == 0 ? 65534 : geteuid(), status.st_uid);
    assert_int_equal(geteuid() == 0 ? 65533 : getegid(), status.st_gid);
}

static void a_link_is_not_followed_where_none_may_be(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    unsigned flags = DET_FILE_WRITE | DET_FILE_CREATE | DET_FILE_NO_LINK;
    char path[PATH_SIZE], target[PATH_SIZE];
    struct det_file *file;

    path_to(fixture, "target", target);
    assert_int_equal(0, symlink(target, path_to(fixture, "link", path)));
    assert_int_equal(DET_ERR_IO, det_file_open(world, path, flags, &file));
    assert_int_equal(-1, access(target, F_OK));
    assert_int_equal(0, det_file_open(world, target, flags, &file));
    det_file_close(world, file);
}

static void a_failed_read_or_size_is_an_error(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    char byte, path[PATH_SIZE], *data;
    struct det_file *file;
    size_t size;
    int stolen = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_int_equal(0, det_file_open(world, fixture->folder, DET_FILE_READ, &file));
    assert_int_equal(DET_ERR_IO, det_file_read(world, file, 0, &byte, 1));
    det_file_close(world, file);
    assert_int_equal(
        DET_ERR_IO, det_file_load(world, NULL, fixture->folder, SIZE_MAX, &data, &size));
    /* A descriptor that other code has closed. */
    close(stolen);
    assert_int_equal(0, det_file_open(world, "/dev/null", DET_FILE_READ, &file));
    close(stolen);
    assert_int_equal(DET_ERR_IO, det_file_size(world, file));
    det_file_close(world, file);
    /* A file of the kernel says it has 4096 bytes and has fewer. */
    (void)snprintf(path, sizeof path, "/sys/kernel/mm/transparent_hugepage/enabled");
    if (access(path, R_OK) == 0)
        assert_int_equal(DET_ERR_BUSY, det_file_load(world, NULL, path, 5000, &data, &size));
}

static int64_t size_unknown(struct det_world *world, struct det_file *file)
{
    (void)world;
    (void)file;
    return DET_ERR_IO;
}

static void a_file_whose_size_is_unknown_is_not_loaded(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world_ops ops = *fixture->world->ops;
    struct det_real_world world = { .world = { .ops = &ops } };
    char *data = NULL;
    size_t size;

    ops.file_size = size_unknown;
    assert_int_equal(
        DET_ERR_IO, det_file_load(&world.world, NULL, "/dev/null", SIZE_MAX, &data, &size));
    assert_null(data);
}

static void folders_that_are_not_there_are_not_found(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    char path[PATH_SIZE];
    struct det_file *file;

    path_to(fixture, "none", path);
    assert_int_equal(DET_ERR_NOT_FOUND, det_folder_sync(world, path));
    path_to(fixture, "none/a", path);
    assert_int_equal(DET_ERR_NOT_FOUND, world->ops->folder_make(world, path));
    assert_int_equal(DET_ERR_NOT_FOUND, det_file_replace(world, path, "x", 1));
    assert_int_equal(
        DET_ERR_NOT_FOUND, det_file_open(world, path, DET_FILE_WRITE | DET_FILE_CREATE, &file));
    assert_int_equal(DET_ERR_INVALID, det_folder_sync(world, "/proc/self/fd"));
}

static void files_are_created_for_their_owner_and_closed_on_exec(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_file *file;
    char path[PATH_SIZE];
    struct stat status;
    int lowest = dup(0);
    mode_t mask = umask(0);

    close(lowest);
    file = open_file(fixture, "a", DET_FILE_WRITE | DET_FILE_CREATE);
    assert_int_equal(
        0, fixture->world->ops->folder_make(fixture->world, path_to(fixture, "b", path)));
    umask(mask);
    assert_int_equal(FD_CLOEXEC, fcntl(lowest, F_GETFD));
    assert_int_equal(0, fstat(lowest, &status));
    assert_int_equal(0600, status.st_mode & 07777);
    assert_int_equal(0, stat(path, &status));
    assert_int_equal(0750, status.st_mode & 07777);
    det_file_close(fixture->world, file);
}

static void out_of_descriptors_fails_opens_and_starts(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    struct det_process_options options = {
        .argv = (const char *const[]){ "sleep", "1000", NULL },
        .input = -1,
        .output = -1,
        .error = -1,
    };
    struct det_process *process = NULL;
    struct det_file *file = NULL;
    /* The C library uses no number at the limit, so an open one is in between. */
    int between = dup(0);
    rlim_t before = forbid_descriptors();
    int opened = det_file_open(world, "/dev/null", DET_FILE_READ, &file);
    int synced = det_folder_sync(world, "/");
    int started = world->ops->process_start(world, &options, &process, NULL), copied;

    options.output = 1;
    copied = world->ops->process_start(world, &options, &process, NULL);
    allow_descriptors(before);
    close(between);
    assert_int_equal(DET_ERR_LIMIT, opened);
    assert_int_equal(DET_ERR_LIMIT, synced);
    assert_int_equal(DET_ERR_LIMIT, started);
    assert_int_equal(DET_ERR_LIMIT, copied);
    assert_null(file);
    assert_null(process);
    /* The process started for a moment was ended and reaped. */
    assert_int_equal(-1, waitpid(-1, NULL, WNOHANG));
}

/* Reads to the end of a pipe. */
static void read_pipe(int end, char *target, size_t capacity)
{
    size_t size = 0;
    ssize_t count;

    while ((count = read(end, target + size, capacity - 1 - size)) > 0)
        size += (size_t)count;
    target[size] = 0;
}

/* Runs a program with text for its input; returns what it wrote. */
static void filter(
    struct det_world *world, struct det_process_options *options, const char *input, char *target,
    size_t capacity)
{
    int in[2], out[2];
    struct det_process *process;

    assert_int_equal(0, pipe2(in, O_CLOEXEC));
    assert_int_equal(0, pipe2(out, O_CLOEXEC));
    options->input = in[0];
    options->output = out[1];
    options->error = -1;
    assert_int_equal(0, world->ops->process_start(world, options, &process, NULL));
    close(in[0]);
    close(out[1]);
    assert_int_equal(strlen(input), write(in[1], input, strlen(input)));
    close(in[1]);
    read_pipe(out[0], target, capacity);
    close(out[0]);
    assert_int_equal(0, end_of(world, process).code);
    world->ops->process_close(world, process);
}

static void a_process_reads_and_writes_the_given_streams(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_process_options options = { .argv = (const char *const[]){ "cat", NULL } };
    char text[256];

    filter(fixture->world, &options, "meow", text, sizeof text);
    assert_string_equal("meow", text);
}

static void a_process_has_the_given_environment_and_folder(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_process_options options = {
        .argv = (const char *const[]){ "sh", "-c", "echo $A:$PWD; pwd -P", NULL },
        .environment = (const char *const[]){ "A=b", NULL },
        .folder = "/",
    };
    char text[256];

    filter(fixture->world, &options, "", text, sizeof text);
    assert_string_equal("b:/\n/\n", text);
    options.input = options.output = -1;
    options.folder = "/no/such/folder";
    assert_int_equal(
        DET_ERR_NOT_FOUND, fixture->world->ops->process_start(
                               fixture->world, &options, &(struct det_process *){ NULL }, NULL));
}

static void a_process_inherits_no_other_descriptor(void **state)
{
    struct world_fixture *fixture = *state;
    char command[256], text[256];
    struct det_process_options options = {
        .argv = (const char *const[]){ "sh", "-c", command, NULL },
    };
    int leaky = dup(0);

    assert_true(leaky > 2);
    (void)snprintf(command, sizeof command, "test -e /proc/self/fd/%d || echo closed", leaky);
    filter(fixture->world, &options, "", text, sizeof text);
    close(leaky);
    assert_string_equal("closed\n", text);
}

static void a_process_inherits_no_signal_settings(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_process_options options = {
        .argv = (const char *const[]){ "grep", "Sig[BI]", "/proc/self/status", NULL },
    };
    struct sigaction ignore = { .sa_handler = SIG_IGN }, action;
    sigset_t blocked, mask;
    char text[256];

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    assert_int_equal(0, pthread_sigmask(SIG_BLOCK, &blocked, &mask));
    assert_int_equal(0, sigaction(SIGPIPE, &ignore, &action));
    filter(fixture->world, &options, "", text, sizeof text);
    assert_int_equal(0, sigaction(SIGPIPE, &action, NULL));
    assert_int_equal(0, pthread_sigmask(SIG_SETMASK, &mask, NULL));
    assert_non_null(strstr(text, "SigBlk:\t0000000000000000\n"));
    /* Two numbers that belong to the C library may be ignored ever since our own start. */
    assert_non_null(strstr(text, "SigIgn:\t"));
    assert_int_equal(
        0, strtoull(strstr(text, "SigIgn:\t") + 8, NULL, 16) & UINT64_C(1) << (SIGPIPE - 1));
}

/* Input and error are 1 and 0 here: each must be taken before the other overwrites it. */
static void process_input_and_error_may_be_swapped(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    int in[2], out[2], saved[2] = { dup(0), dup(1) };
    struct det_process_options options = {
        .argv = (const char *const[]){ "sh", "-c", "cat >&2", NULL },
        .input = 1,
        .output = -1,
        .error = 0,
    };
    struct det_process *process = NULL;
    char text[16];
    int r;

    assert_int_equal(0, fflush(stdout));
    assert_int_equal(0, pipe2(in, O_CLOEXEC));
    assert_int_equal(0, pipe2(out, O_CLOEXEC));
    dup2(in[0], 1);
    dup2(out[1], 0);
    r = world->ops->process_start(world, &options, &process, NULL);
    dup2(saved[0], 0);
    dup2(saved[1], 1);
    for (int i = 0; i < 2; i++)
        close(saved[i]);
    close(in[0]);
    close(out[1]);
    assert_int_equal(0, r);
    assert_int_equal(4, write(in[1], "swap", 4));
    close(in[1]);
    read_pipe(out[0], text, sizeof text);
    close(out[0]);
    assert_string_equal("swap", text);
    assert_int_equal(0, end_of(world, process).code);
    world->ops->process_close(world, process);
}

/* The grandchild holds the pipe open, so its end is seen there. */
static void a_kill_reaches_the_whole_group(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    int out[2];
    struct det_process_options options = {
        .argv = (const char *const[]){ "sh", "-c", "sleep 1000 & echo up; wait", NULL },
        .input = -1,
        .error = -1,
        .new_group = true,
    };
    struct det_process *process;
    char text[16];

    assert_int_equal(0, pipe2(out, O_CLOEXEC));
    options.output = out[1];
    assert_int_equal(0, world->ops->process_start(world, &options, &process, NULL));
    close(out[1]);
    assert_int_equal(3, read(out[0], text, 3));
    assert_int_equal(0, world->ops->process_kill(world, process, SIGKILL));
    assert_int_equal(0, read(out[0], text, sizeof text));
    close(out[0]);
    assert_int_equal(SIGKILL, end_of(world, process).signal);
    world->ops->process_close(world, process);
}

static void the_descriptor_of_a_process_is_readable_at_its_end(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    struct det_process *process = spawn(world, (const char *const[]){ "cat", NULL });
    struct pollfd poll_one = { .fd = world->ops->process_descriptor(world, process),
                               .events = POLLIN };

    assert_true(fcntl(poll_one.fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(1, poll(&poll_one, 1, -1));
    assert_int_equal(0, world->ops->process_kill(world, process, SIGTERM));
    assert_int_equal(DET_ERR_INVALID, world->ops->process_kill(world, process, 12345));
    assert_int_equal(0, end_of(world, process).code);
    world->ops->process_close(world, process);
}

static void process_reaped_elsewhere_has_an_unknown_end(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    struct det_process *process = spawn(world, (const char *const[]){ "true", NULL });
    struct det_process_end end;

    assert_true(waitpid(-1, NULL, 0) > 0);
    assert_int_equal(DET_ERR_IO, world->ops->process_wait(world, process, DET_NEVER, &end));
    assert_int_equal(-1, end_of(world, process).code);
    assert_int_equal(DET_ERR_NOT_FOUND, world->ops->process_kill(world, process, SIGTERM));
    world->ops->process_close(world, process);
}

static void ignore_signal(int number)
{
    (void)number;
}

static void process_wait_continues_after_a_signal(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    struct det_process *process = spawn(world, (const char *const[]){ "sleep", "1000", NULL });
    struct sigaction action = { .sa_handler = ignore_signal }, before;
    struct itimerval soon = { .it_value = { .tv_usec = 1000 } };
    det_time deadline = monotonic(world) + 4 * DET_MILLISECOND;
    struct det_process_end end;

    assert_int_equal(0, sigaction(SIGALRM, &action, &before));
    assert_int_equal(0, setitimer(ITIMER_REAL, &soon, NULL));
    assert_int_equal(DET_ERR_TIMEOUT, world->ops->process_wait(world, process, deadline, &end));
    assert_true(monotonic(world) >= deadline);
    assert_int_equal(0, sigaction(SIGALRM, &before, NULL));
    assert_int_equal(0, world->ops->process_kill(world, process, SIGKILL));
    world->ops->process_close(world, process);
}

static int use_files_and_processes(struct det_test_memory *memory, void *argument)
{
    struct world_fixture *fixture = argument;
    struct det_real_world real = {
        .world = { .ops = det_world_real()->ops },
        .allocator = &memory->allocator,
    };
    struct det_world *world = &real.world;
    const struct det_process_options options = {
        .argv = (const char *const[]){ "true", NULL }, .input = -1, .output = -1, .error = -1
    };
    struct det_process *process = NULL;
    char path[PATH_SIZE];
    int r;

    r = det_file_replace(world, path_to(fixture, "a", path), "one", 3);
    if (r < 0)
        return r;
    r = world->ops->process_start(world, &options, &process, NULL);
    if (r < 0) {
        assert_null(process);
        return r;
    }
    world->ops->process_close(world, process);
    return 0;
}

static void files_and_processes_survive_every_failed_allocation(void **state)
{
    det_test_each_failure(use_files_and_processes, *state);
}

static void a_closed_file_is_unlocked_although_a_fork_has_it(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    struct det_file *file;
    char path[PATH_SIZE], byte;
    int gate[2], status;
    pid_t child;

    path_to(fixture, "lock", path);
    assert_int_equal(0, pipe2(gate, O_CLOEXEC));
    assert_int_equal(0, det_file_open(world, path, DET_FILE_WRITE | DET_FILE_CREATE, &file));
    assert_int_equal(0, det_file_lock(world, file));
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(gate[1]);
        _exit(read(gate[0], &byte, 1) == 0 ? 0 : 1);
    }
    det_file_close(world, file);
    assert_int_equal(0, det_file_open(world, path, DET_FILE_WRITE | DET_FILE_CREATE, &file));
    assert_int_equal(0, det_file_lock(world, file));
    det_file_close(world, file);
    close(gate[0]);
    close(gate[1]);
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_int_equal(0, status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_CASES,
        PROCESS_CASES,
        WORLD_CASE(filesystems_of_other_machines_are_known_by_their_type),
        WORLD_CASE(full_disk_returns_no_space),
        WORLD_CASE(shared_file_copies_the_permissions_of_the_other),
        WORLD_CASE(a_file_in_a_folder_is_for_its_owner_and_keeps_its_mode),
        WORLD_CASE(a_link_is_not_followed_where_none_may_be),
        WORLD_CASE(a_failed_read_or_size_is_an_error),
        WORLD_CASE(a_file_whose_size_is_unknown_is_not_loaded),
        WORLD_CASE(folders_that_are_not_there_are_not_found),
        WORLD_CASE(files_are_created_for_their_owner_and_closed_on_exec),
        WORLD_CASE(out_of_descriptors_fails_opens_and_starts),
        WORLD_CASE(a_process_reads_and_writes_the_given_streams),
        WORLD_CASE(a_process_has_the_given_environment_and_folder),
        WORLD_CASE(a_process_inherits_no_other_descriptor),
        WORLD_CASE(a_process_inherits_no_signal_settings),
        WORLD_CASE(process_input_and_error_may_be_swapped),
        WORLD_CASE(a_kill_reaches_the_whole_group),
        WORLD_CASE(the_descriptor_of_a_process_is_readable_at_its_end),
        WORLD_CASE(process_reaped_elsewhere_has_an_unknown_end),
        WORLD_CASE(process_wait_continues_after_a_signal),
        WORLD_CASE(a_closed_file_is_unlocked_although_a_fork_has_it),
        WORLD_CASE(files_and_processes_survive_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
