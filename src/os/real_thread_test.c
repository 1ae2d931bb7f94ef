/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_thread_test.c - the real world holds what every world holds, as far as threads, pollers,
 * loops and pools go; and what only the real one has: descriptors, precision, want of resources. */
/* test: threads */
#include <detent/driver/loop.h>

#include "os/loop_loan_cases.h"
#include "os/pool_cases.h"
#include "os/world_cases.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/real.h"

static int world_setup(void **state)
{
    static struct world_fixture fixture;

    fixture = (struct world_fixture){ .world = det_world_real() };
    *state = &fixture;
    return 0;
}

static int world_teardown(void **state)
{
    (void)state;
    return 0;
}

/* Limits the descriptors to those that are open and `more`; returns the limit as it was. */
static rlim_t limit_descriptors(unsigned more)
{
    struct rlimit limit;
    rlim_t before;
    int lowest = dup(0);

    assert_true(lowest >= 0);
    close(lowest);
    assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &limit));
    before = limit.rlim_cur;
    limit.rlim_cur = (rlim_t)lowest + more;
    assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &limit));
    return before;
}

static void unlimit_descriptors(rlim_t before)
{
    struct rlimit limit;

    assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = before;
    assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &limit));
}

static void null_world_means_the_real_world(void **state)
{
    det_time before = det_world_now(NULL, DET_CLOCK_MONOTONIC);

    (void)state;
    assert_string_equal("real", det_world_or_real(NULL)->ops->name);
    assert_true(det_world_now(NULL, DET_CLOCK_MONOTONIC) >= before);
    assert_true(det_world_random_u64(NULL) != det_world_random_u64(NULL));
}

static void system_errors_map_to_detent_errors(void **state)
{
    (void)state;
    assert_int_equal(DET_ERR_NO_MEMORY, det_real_error(ENOMEM));
    assert_int_equal(DET_ERR_INVALID, det_real_error(EINVAL));
    assert_int_equal(DET_ERR_INVALID, det_real_error(ENAMETOOLONG));
    assert_int_equal(DET_ERR_NOT_FOUND, det_real_error(ENOENT));
    assert_int_equal(DET_ERR_EXISTS, det_real_error(EEXIST));
    assert_int_equal(DET_ERR_NO_SPACE, det_real_error(ENOSPC));
    assert_int_equal(DET_ERR_NO_SPACE, det_real_error(EDQUOT));
    assert_int_equal(DET_ERR_LIMIT, det_real_error(EMFILE));
    assert_int_equal(DET_ERR_LIMIT, det_real_error(ENFILE));
    assert_int_equal(DET_ERR_LIMIT, det_real_error(EAGAIN));
    assert_int_equal(DET_ERR_IO, det_real_error(EIO));
    assert_int_equal(DET_ERR_IO, det_real_error(0));
}

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    (void)number;
    signals = signals + 1;
}

static bool is_readable(int descriptor)
{
    struct pollfd poll_one = { .fd = descriptor, .events = POLLIN };

    return poll(&poll_one, 1, 0) == 1;
}

static void a_foreign_loop_sees_messages_at_the_descriptor(void **state)
{
    struct world_fixture *fixture = *state;
    struct diary diary;
    struct entry entries[2];
    struct det_thread *thread;
    struct pollfd poll_one = { .events = POLLIN };

    diary_open(&diary, fixture->world);
    entries_init(entries, 2, &diary);
    entries[0].post.run = post_other;
    entries[0].other = &entries[1];
    poll_one.fd = det_loop_descriptor(diary.loop);
    assert_false(is_readable(poll_one.fd));
    thread = start(
        fixture->world, post_other,
        &(struct entry){ .diary = &diary, .other = &entries[0], .letter = '.' });
    assert_int_equal(1, poll(&poll_one, 1, -1));
    det_thread_join(fixture->world, thread);
    assert_int_equal(0, det_loop_deadline(diary.loop));
    assert_int_equal(1, det_loop_turn(diary.loop, 0));
    /* The message that the callback posted is seen too; and when all is done, nothing is. */
    assert_true(is_readable(poll_one.fd));
    assert_int_equal(1, det_loop_turn(diary.loop, 0));
    assert_int_equal(0, det_loop_turn(diary.loop, 0));
    assert_false(is_readable(poll_one.fd));
    /* A message that a timer posts wakes no thread, and runs nevertheless. */
    entries[0].timer.run = post_other;
    arm(&entries[0], 0);
    assert_int_equal(1, det_loop_turn(diary.loop, 0));
    assert_true(is_readable(poll_one.fd));
    assert_int_equal(1, det_loop_turn(diary.loop, 0));
    assert_string_equal(".abab", diary.text);
    det_loop_close(diary.loop);
}

/* The best of many: a busy machine delays some of them, a coarse timer all of them. */
static void a_timer_is_late_by_less_than_a_millisecond(void **state)
{
    struct world_fixture *fixture = *state;
    struct diary diary;
    struct entry entries[1];
    det_time least = DET_NEVER;

    diary_open(&diary, fixture->world);
    entries_init(entries, 1, &diary);
    for (int i = 0; i < 20; i++) {
        det_time deadline = monotonic(fixture->world) + 300 * DET_MICROSECOND, late;

        arm(&entries[0], deadline);
        assert_int_equal(1, det_loop_turn(diary.loop, DET_NEVER));
        late = det_loop_now(diary.loop) - deadline;
        assert_true(late >= 0);
        least = late < least ? late : least;
    }
    assert_true(least < 600 * DET_MICROSECOND);
    det_loop_close(diary.loop);
}

struct reader {
    struct det_watch watch;
    struct det_loop *loop;
    struct reader *other;
    unsigned events;
    int count;
};

static void note_events(void *argument, unsigned events)
{
    struct reader *reader = argument;

    reader->events = events;
    reader->count++;
    if (reader->other)
        det_loop_unwatch(reader->loop, &reader->other->watch);
}

static void reader_init(struct reader *reader, struct det_loop *loop, int descriptor)
{
    *reader = (struct reader){
        .watch = { .run = note_events, .argument = reader, .descriptor = descriptor },
        .loop = loop,
    };
}

static void watched_descriptor_reports_readiness(void **state)
{
    struct world_fixture *fixture = *state;
    struct reader in, out;
    struct det_loop *loop;
    int ends[2];

    assert_int_equal(0, pipe2(ends, O_CLOEXEC));
    assert_int_equal(0, det_loop_open(fixture->world, NULL, &loop));
    reader_init(&in, loop, ends[0]);
    reader_init(&out, loop, ends[1]);
    assert_int_equal(0, det_loop_watch(loop, &in.watch, DET_POLL_READ));
    assert_int_equal(0, det_loop_turn(loop, 0));
    assert_int_equal(1, write(ends[1], "x", 1));
    assert_int_equal(1, det_loop_turn(loop, DET_NEVER));
    assert_int_equal(DET_POLL_READ, in.events);
    assert_int_equal(0, det_loop_watch(loop, &out.watch, DET_POLL_READ));
    assert_int_equal(0, det_loop_watch(loop, &out.watch, DET_POLL_WRITE));
    det_loop_unwatch(loop, &in.watch);
    det_loop_unwatch(loop, &in.watch);
    assert_int_equal(1, det_loop_turn(loop, DET_NEVER));
    assert_int_equal(DET_POLL_WRITE, out.events);
    assert_int_equal(1, in.count);
    det_loop_unwatch(loop, &out.watch);
    close(ends[1]);
    assert_int_equal(0, det_loop_watch(loop, &in.watch, DET_POLL_READ));
    assert_int_equal(1, det_loop_turn(loop, DET_NEVER));
    assert_int_equal(DET_POLL_READ | DET_POLL_HANGUP, in.events);
    det_loop_close(loop);
    close(ends[0]);
}

static void a_descriptor_unwatched_in_its_own_turn_does_not_run(void **state)
{
    struct world_fixture *fixture = *state;
    struct reader readers[2];
    struct det_loop *loop;
    int ends[2];

    assert_int_equal(0, pipe2(ends, O_CLOEXEC));
    assert_int_equal(0, det_loop_open(fixture->world, NULL, &loop));
    reader_init(&readers[0], loop, ends[0]);
    reader_init(&readers[1], loop, ends[1]);
    readers[0].other = &readers[1];
    readers[1].other = &readers[0];
    assert_int_equal(1, write(ends[1], "x", 1));
    assert_int_equal(0, det_loop_watch(loop, &readers[0].watch, DET_POLL_READ));
    assert_int_equal(0, det_loop_watch(loop, &readers[1].watch, DET_POLL_WRITE));
    /* Both are ready; whichever comes first unwatches the other. */
    assert_int_equal(1, det_loop_turn(loop, DET_NEVER));
    assert_int_equal(1, readers[0].count + readers[1].count);
    det_loop_close(loop);
    close(ends[0]);
    close(ends[1]);
}

static void messages_do_not_starve_descriptors(void **state)
{
    struct world_fixture *fixture = *state;
    struct reader reader;
    struct diary diary;
    struct entry entries[1];
    int ends[2];

    assert_int_equal(0, pipe2(ends, O_CLOEXEC));
    diary_open(&diary, fixture->world);
    entries_init(entries, 1, &diary);
    reader_init(&reader, diary.loop, ends[1]);
    assert_int_equal(0, det_loop_watch(diary.loop, &reader.watch, DET_POLL_WRITE));
    det_loop_post(diary.loop, &entries[0].post);
    assert_int_equal(2, det_loop_turn(diary.loop, 0));
    assert_int_equal(1, reader.count);
    det_loop_close(diary.loop);
    close(ends[0]);
    close(ends[1]);
}

static void watching_an_invalid_descriptor_fails(void **state)
{
    struct world_fixture *fixture = *state;
    struct reader reader;
    struct det_loop *loop;
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    assert_true(file >= 0);
    assert_int_equal(0, det_loop_open(fixture->world, NULL, &loop));
    reader_init(&reader, loop, -1);
    assert_int_equal(DET_ERR_IO, det_loop_watch(loop, &reader.watch, DET_POLL_READ));
    reader.watch.descriptor = file;
    assert_int_equal(DET_ERR_IO, det_loop_watch(loop, &reader.watch, DET_POLL_READ));
    assert_false(det_watch_is_set(&reader.watch));
    det_loop_close(loop);
    close(file);
}

static void poller_reports_kernel_errors(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    struct polling polling;
    int own, saved;

    poller_setup(&polling, world);
    own = world->ops->poller_descriptor(world, polling.poller);
    assert_int_equal(
        DET_ERR_INVALID,
        world->ops->poller_watch(world, polling.poller, own, DET_POLL_READ, &polling));
    assert_int_equal(
        DET_ERR_INVALID, world->ops->poller_watch(world, polling.poller, own, 0, &polling));
    /* Other code closes our descriptor, and its number is reused. */
    saved = dup(own);
    assert_true(saved >= 0);
    assert_int_equal(own, dup2(0, own));
    assert_int_equal(DET_ERR_INVALID, poll_until(&polling, 0));
    assert_int_equal(own, dup2(saved, own));
    close(saved);
    world->ops->poller_close(world, polling.poller);
}

/* More than it takes at once: the others come with the next wait. */
static void poller_delivers_more_events_than_one_wait_takes(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    struct det_poll_event events[100];
    struct polling polling;
    int ends[2], copies[70], seen[70] = { 0 };

    poller_setup(&polling, world);
    assert_int_equal(0, pipe2(ends, O_CLOEXEC));
    for (int i = 0; i < 70; i++) {
        copies[i] = fcntl(ends[1], F_DUPFD_CLOEXEC, 0);
        assert_int_equal(
            0,
            world->ops->poller_watch(world, polling.poller, copies[i], DET_POLL_WRITE, &seen[i]));
    }
    for (int round = 0; round < 2; round++) {
        int count = world->ops->poller_wait(world, polling.poller, events, 100, DET_NEVER);

        assert_in_range(count, 1, 70);
        for (int i = 0; i < count; i++)
            ++*(int *)events[i].tag;
    }
    for (int i = 0; i < 70; i++) {
        assert_in_range(seen[i], 1, 2);
        close(copies[i]);
    }
    close(ends[0]);
    close(ends[1]);
    world->ops->poller_close(world, polling.poller);
}

static void poller_wait_continues_after_a_signal(void **state)
{
    struct world_fixture *fixture = *state;
    struct polling polling;
    det_time deadline;
    struct itimerval soon = { .it_value = { .tv_usec = 1000 } };
    struct sigaction action = { .sa_handler = count_signal }, before;

    poller_setup(&polling, fixture->world);
    assert_int_equal(0, sigaction(SIGALRM, &action, &before));
    assert_int_equal(0, setitimer(ITIMER_REAL, &soon, NULL));
    do {
        deadline = monotonic(fixture->world) + 4 * DET_MILLISECOND;
        assert_int_equal(0, poll_until(&polling, deadline));
        assert_true(monotonic(fixture->world) >= deadline);
    } while (signals == 0);
    assert_int_equal(1, signals);
    assert_int_equal(0, sigaction(SIGALRM, &before, NULL));
    fixture->world->ops->poller_close(fixture->world, polling.poller);
}

static void loop_open_fails_without_descriptors(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_loop *loop = NULL;

    for (unsigned more = 0; more < 3; more++) {
        rlim_t before = limit_descriptors(more);
        int r = det_loop_open(fixture->world, NULL, &loop);

        unlimit_descriptors(before);
        assert_int_equal(DET_ERR_LIMIT, r);
        assert_null(loop);
    }
    assert_int_equal(0, det_loop_open(fixture->world, NULL, &loop));
    det_loop_close(loop);
}

static void do_nothing(void *argument)
{
    (void)argument;
}

/* In a child that may have no more threads, which takes a user without privileges. */
static int start_without_room(void)
{
    const struct rlimit none = { 0 };
    struct det_loop *loop = NULL;
    struct det_thread *thread;
    int r;

    if (det_loop_open(NULL, NULL, &loop) < 0 || setrlimit(RLIMIT_NPROC, &none) < 0)
        return 1;
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
        return 1;
    r = det_thread_start(det_world_real(), "none", do_nothing, NULL, &thread);
    if (r != DET_ERR_LIMIT || det_loop_start(loop, "none") != DET_ERR_LIMIT)
        return 2;
    /* The loop is idle again and as good as before. */
    det_loop_stop(loop);
    return det_loop_run(loop) == 0 ? 0 : 3;
}

static void thread_start_fails_without_address_space(void **state)
{
    int status;
    pid_t child;

    (void)state;
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(start_without_room());
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_true(WIFEXITED(status));
    assert_int_equal(0, WEXITSTATUS(status));
}

static int use_loop_and_pool(struct det_test_memory *memory, void *argument)
{
    struct det_real_world world = {
        .world = { .ops = det_world_real()->ops },
        .allocator = &memory->allocator,
    };
    struct det_loop *loop = NULL;
    struct det_pool *pool = NULL;
    struct det_timer timer = { .run = do_nothing };
    int r;

    (void)argument;
    r = det_loop_open(&world.world, &memory->allocator, &loop);
    if (r == 0)
        r = det_loop_timer_set(loop, &timer, 0);
    assert_true(timer.internal.is_set == (r == 0));
    if (r == 0)
        r = det_loop_start(loop, "loop");
    if (r == 0)
        r = det_pool_open(&world.world, &memory->allocator, 2, &pool);
    if (loop)
        det_loop_stop(loop);
    det_pool_close(pool);
    det_loop_close(loop);
    return r;
}

static int sleep_a_little(struct det_test_memory *memory, void *argument)
{
    struct det_real_world world = {
        .world = { .ops = det_world_real()->ops },
        .allocator = &memory->allocator,
    };

    (void)argument;
    return det_world_sleep(&world.world, 1);
}

static void sleep_survives_every_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(sleep_a_little, NULL);
}

static void loops_and_pools_survive_every_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(use_loop_and_pool, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_CASES,
        LOOP_CASES,
        LOAN_CASES,
        POOL_CASES,
        WORLD_CASE(null_world_means_the_real_world),
        WORLD_CASE(system_errors_map_to_detent_errors),
        WORLD_CASE(a_foreign_loop_sees_messages_at_the_descriptor),
        WORLD_CASE(a_timer_is_late_by_less_than_a_millisecond),
        WORLD_CASE(watched_descriptor_reports_readiness),
        WORLD_CASE(a_descriptor_unwatched_in_its_own_turn_does_not_run),
        WORLD_CASE(messages_do_not_starve_descriptors),
        WORLD_CASE(watching_an_invalid_descriptor_fails),
        WORLD_CASE(poller_reports_kernel_errors),
        WORLD_CASE(poller_delivers_more_events_than_one_wait_takes),
        WORLD_CASE(poller_wait_continues_after_a_signal),
        WORLD_CASE(loop_open_fails_without_descriptors),
        WORLD_CASE(thread_start_fails_without_address_space),
        WORLD_CASE(sleep_survives_every_failed_allocation),
        WORLD_CASE(loops_and_pools_survive_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
