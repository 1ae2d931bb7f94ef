/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_kernel_test.c - answers that the kernel may give and hardly ever does: a call that a signal
 * interrupts, a kernel without the newest call, no room for a thread, a clock that is set. The
 * functions of the C library that the real world calls are replaced here, so that each answer comes
 * when it is wanted. */
#include "lib/test.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"

#define IN_PLACE_OF(function) __asm__(#function)

/* What the kernel does next. */
static struct {
    int interruptions; /* so many calls are interrupted */
    bool is_clock_set;
    void *last_watched; /* the tag of the descriptor that was added last */
} kernel;

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
ssize_t draw(void *target, size_t size, unsigned flags) IN_PLACE_OF(getrandom);
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

/* As with a large request: it gives a part, and is interrupted before the rest. */
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

static void what_a_signal_interrupts_is_done_again(void **state)
{
    struct det_world *world = det_world_real();
    char *folder = det_test_folder(), path[256], word[8] = "";
    unsigned char bytes[64] = { 0 };
    struct det_file *file;
    int zeroes = 0;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/a", folder);
    assert_int_equal(
        0, det_file_open(world, path, DET_FILE_READ | DET_FILE_WRITE | DET_FILE_CREATE, &file));
    kernel.interruptions = 2;
    assert_int_equal(0, det_file_write(world, file, 0, "word", 5));
    assert_int_equal(0, kernel.interruptions);
    kernel.interruptions = 2;
    assert_int_equal(5, det_file_read(world, file, 0, word, 5));
    assert_int_equal(0, kernel.interruptions);
    assert_string_equal("word", word);
    kernel.interruptions = 2;
    det_world_random(world, bytes, sizeof bytes);
    assert_int_equal(0, kernel.interruptions);
    for (size_t i = 0; i < sizeof bytes; i++)
        zeroes += bytes[i] == 0;
    assert_true(zeroes < 16);
    det_file_close(world, file);
    det_test_folder_remove(folder);
}

static void without_room_for_a_thread_none_is_started(void **state)
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

static void an_old_kernel_waits_in_milliseconds_and_no_less(void **state)
{
    struct det_world *world = det_world_real();
    det_time deadline = det_world_now(world, DET_CLOCK_MONOTONIC) + 1500 * DET_MICROSECOND;
    struct det_poller *poller;

    (void)state;
    assert_int_equal(0, world->ops->poller_open(world, &poller));
    assert_int_equal(0, wait_until(poller, deadline));
    assert_true(det_world_now(world, DET_CLOCK_MONOTONIC) >= deadline);
    /* More milliseconds than it can be told; the wake ends it. */
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
        cmocka_unit_test(what_a_signal_interrupts_is_done_again),
        cmocka_unit_test(without_room_for_a_thread_none_is_started),
        cmocka_unit_test(an_old_kernel_waits_in_milliseconds_and_no_less),
        cmocka_unit_test(a_clock_that_is_set_ends_a_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
