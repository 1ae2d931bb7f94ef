/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_kernel_test.c - answers that the kernel may give and hardly ever does: a call that a signal
 * interrupts, a kernel without the newest call, no room for a thread, a clock that is set. The
 * functions of the C library that the real world calls are replaced here, so that each answer comes
 * on request. */
/* test: alone */
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"

#define IN_PLACE_OF(function) __asm__(#function)

/* The next results of the kernel. */
static struct {
    int interruptions;      /* number of calls that are interrupted */
    int reap_interruptions; /* and so many more, once a process has ended */
    int watches_left;
    bool is_clock_set, is_timer_refused;
    void *last_watched; /* the tag of the descriptor that was added last */
} kernel = { .watches_left = 100 };

static bool interrupts(void)
{
    if (!kernel.interruptions)
        return false;
    kernel.interruptions--;
    errno = EINTR;
    return true;
}

ssize_t read_at(int descriptor, void *target, size_t size, off_t offset) IN_PLACE_OF(pread);
ssize_t write_at(int descriptor, const void *data, size_t size, off_t offset) IN_PLACE_OF(pwrite);
int open_path(const char *path, int flags, ...) IN_PLACE_OF(open);
int sync_data(int descriptor) IN_PLACE_OF(fdatasync);
int sync_all(int descriptor) IN_PLACE_OF(fsync);
int cut(int descriptor, off_t size) IN_PLACE_OF(ftruncate);
int reap(int kind, id_t process, void *ret, int options) IN_PLACE_OF(waitid);
int wait_for_end(struct pollfd *polls, nfds_t count, const struct timespec *span, const void *mask)
    IN_PLACE_OF(ppoll);
ssize_t draw(void *target, size_t size, unsigned flags) IN_PLACE_OF(getrandom);
int set_timer(int timer, int flags, const void *value, const void *before)
    IN_PLACE_OF(timerfd_settime);
int create(const void *ret, const void *attributes, void *(*run)(void *), void *argument)
    IN_PLACE_OF(pthread_create);
int control(int epoll, int operation, int descriptor, struct epoll_event *event)
    IN_PLACE_OF(epoll_ctl);
int wait_for_events(
    int epoll, struct epoll_event *ret, int capacity, const struct timespec *span, const void *mask)
    IN_PLACE_OF(epoll_pwait2);

ssize_t read_at(int descriptor, void *target, size_t size, off_t offset)
{
    return interrupts() ? -1 : syscall(SYS_pread64, descriptor, target, size, offset);
}

ssize_t write_at(int descriptor, const void *data, size_t size, off_t offset)
{
    return interrupts() ? -1 : syscall(SYS_pwrite64, descriptor, data, size, offset);
}

int open_path(const char *path, int flags, ...)
{
    va_list list;
    mode_t mode;

    va_start(list, flags);
    mode = va_arg(list, mode_t);
    va_end(list);
    return interrupts() ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int sync_data(int descriptor)
{
    return interrupts() ? -1 : (int)syscall(SYS_fdatasync, descriptor);
}

int sync_all(int descriptor)
{
    return interrupts() ? -1 : (int)syscall(SYS_fsync, descriptor);
}

int cut(int descriptor, off_t size)
{
    return interrupts() ? -1 : (int)syscall(SYS_ftruncate, descriptor, size);
}

int reap(int kind, id_t process, void *ret, int options)
{
    kernel.interruptions += kernel.reap_interruptions;
    kernel.reap_interruptions = 0;
    return interrupts() ? -1 : (int)syscall(SYS_waitid, kind, process, ret, options, NULL);
}

int wait_for_end(struct pollfd *polls, nfds_t count, const struct timespec *span, const void *mask)
{
    struct timespec left;

    /* The kernel writes what is left. */
    if (span)
        left = *span;
    return interrupts() ? -1 : (int)syscall(SYS_ppoll, polls, count, span ? &left : NULL, mask, 8);
}

int set_timer(int timer, int flags, const void *value, const void *before)
{
    if (!kernel.is_timer_refused)
        return (int)syscall(SYS_timerfd_settime, timer, flags, value, before);
    errno = EINVAL;
    return -1;
}

/* As for a large request: the call returns a part, and is interrupted before the rest. */
ssize_t draw(void *target, size_t size, unsigned flags)
{
    return interrupts() ? -1 : syscall(SYS_getrandom, target, size > 3 ? 3 : size, flags);
}

int create(const void *ret, const void *attributes, void *(*run)(void *), void *argument)
{
    (void)ret;
    (void)attributes;
    (void)run;
    (void)argument;
    return EAGAIN;
}

int control(int epoll, int operation, int descriptor, struct epoll_event *event)
{
    if (operation == EPOLL_CTL_ADD && kernel.watches_left-- <= 0) {
        errno = ENOSPC;
        return -1;
    }
    if (operation == EPOLL_CTL_ADD)
        kernel.last_watched = event->data.ptr;
    return (int)syscall(SYS_epoll_ctl, epoll, operation, descriptor, event);
}

int wait_for_events(
    int epoll, struct epoll_event *ret, int capacity, const struct timespec *span, const void *mask)
{
    (void)epoll;
    (void)capacity;
    (void)span;
    (void)mask;
    if (!kernel.is_clock_set) {
        errno = ENOSYS;
        return -1;
    }
    kernel.is_clock_set = false;
    ret[0] = (struct epoll_event){ .events = EPOLLIN, .data.ptr = kernel.last_watched };
    return 1;
}

/* The next two calls of the kernel are interrupted; the one that is tried must have met both. */
#define IN_SPITE_OF_SIGNALS(expected, call)        \
    do {                                           \
        kernel.interruptions = 2;                  \
        assert_int_equal(expected, call);          \
        assert_int_equal(0, kernel.interruptions); \
    } while (0)

static void interrupted_system_calls_are_repeated(void **state)
{
    struct det_world *world = det_world_real();
    char *folder = det_test_folder(), path[256], word[8] = "";
    struct det_file *file;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/a", folder);
    IN_SPITE_OF_SIGNALS(
        0, det_file_open(world, path, DET_FILE_READ | DET_FILE_WRITE | DET_FILE_CREATE, &file));
    IN_SPITE_OF_SIGNALS(0, det_file_write(world, file, 0, "word", 5));
    IN_SPITE_OF_SIGNALS(0, det_file_sync(world, file));
    IN_SPITE_OF_SIGNALS(5, det_file_read(world, file, 0, word, 5));
    assert_string_equal("word", word);
    IN_SPITE_OF_SIGNALS(0, det_file_truncate(world, file, 3));
    assert_int_equal(3, det_file_size(world, file));
    det_file_close(world, file);
    IN_SPITE_OF_SIGNALS(0, det_folder_sync(world, folder));
    det_test_folder_remove(folder);
}

static void random_bytes_continue_after_an_interrupt(void **state)
{
    unsigned char bytes[64] = { 0 };
    int zeroes = 0;

    (void)state;
    kernel.interruptions = 2;
    det_world_random(NULL, bytes, sizeof bytes);
    assert_int_equal(0, kernel.interruptions);
    for (size_t i = 0; i < sizeof bytes; i++)
        zeroes += bytes[i] == 0;
    assert_true(zeroes < 16);
}

static void a_wait_for_a_process_continues_after_signals(void **state)
{
    const struct det_process_options options = {
        .argv = (const char *const[]){ "true", NULL }, .input = -1, .output = -1, .error = -1
    };
    struct det_world *world = det_world_real();
    struct det_process *process;
    struct det_process_end end = { .code = -1 };

    (void)state;
    assert_int_equal(0, world->ops->process_start(world, &options, &process, NULL));
    kernel.reap_interruptions = 2;
    IN_SPITE_OF_SIGNALS(0, world->ops->process_wait(world, process, DET_NEVER, &end));
    assert_int_equal(0, kernel.reap_interruptions);
    assert_int_equal(0, end.code);
    world->ops->process_close(world, process);
}

static void poller_open_fails_without_all_descriptors(void **state)
{
    struct det_world *world = det_world_real();
    struct det_poller *poller = NULL;
    int before = dup(0), after;

    (void)state;
    close(before);
    for (int watches = 0; watches < 2; watches++) {
        kernel.watches_left = watches;
        assert_int_equal(DET_ERR_NO_SPACE, world->ops->poller_open(world, &poller));
    }
    kernel.watches_left = 100;
    kernel.is_timer_refused = true;
    assert_int_equal(DET_ERR_INVALID, world->ops->poller_open(world, &poller));
    kernel.is_timer_refused = false;
    assert_null(poller);
    after = dup(0);
    close(after);
    assert_int_equal(before, after);
}

static void thread_start_fails_with_a_limit_error(void **state)
{
    struct det_thread *thread = NULL;

    (void)state;
    assert_int_equal(
        DET_ERR_LIMIT, det_thread_start(det_world_real(), "none", free, NULL, &thread));
    assert_null(thread);
}

static int wait_until(struct det_poller *poller, det_time deadline)
{
    struct det_world *world = det_world_real();
    struct det_poll_event event;

    return world->ops->poller_wait(world, poller, &event, 1, deadline);
}

static void old_kernel_waits_round_up_to_milliseconds(void **state)
{
    struct det_world *world = det_world_real();
    det_time deadline = det_world_now(world, DET_CLOCK_MONOTONIC) + 1500 * DET_MICROSECOND;
    struct det_poller *poller;

    (void)state;
    assert_int_equal(0, world->ops->poller_open(world, &poller));
    assert_int_equal(0, wait_until(poller, deadline));
    assert_true(det_world_now(world, DET_CLOCK_MONOTONIC) >= deadline);
    /* More milliseconds than the argument can hold; the wake ends the wait. */
    world->ops->poller_wake(world, poller);
    assert_int_equal(0, wait_until(poller, DET_NEVER - 1));
    world->ops->poller_close(world, poller);
}

static void a_clock_that_is_set_ends_a_wait(void **state)
{
    struct det_world *world = det_world_real();
    struct det_poller *poller;

    (void)state;
    assert_int_equal(0, world->ops->poller_open(world, &poller));
    kernel.is_clock_set = true;
    assert_int_equal(0, wait_until(poller, DET_NEVER - 1));
    assert_false(kernel.is_clock_set);
    world->ops->poller_close(world, poller);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interrupted_system_calls_are_repeated),
        cmocka_unit_test(random_bytes_continue_after_an_interrupt),
        cmocka_unit_test(a_wait_for_a_process_continues_after_signals),
        cmocka_unit_test(poller_open_fails_without_all_descriptors),
        cmocka_unit_test(thread_start_fails_with_a_limit_error),
        cmocka_unit_test(old_kernel_waits_round_up_to_milliseconds),
        cmocka_unit_test(a_clock_that_is_set_ends_a_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
