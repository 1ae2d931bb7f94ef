/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable_kill_test.c - durable queues of processes that are really killed: with SIGKILL in the
 * middle of whatever they do, or stopped past their lease.
 *
 *     test --fork--> process: store, tasks, queue; submits, works
 *        ^              |-- "acks": a line for each submission that was acknowledged
 *        |              |-- "ledger": a line for each piece of work that begins, ends, overlaps
 *        +---- pipe ----+   a byte for each of these, so that the test knows when to kill
 *
 * A piece of work locks its own file; the kernel releases the lock only when the process dies, so a
 * work that finds the file locked has found an overlap. */
#include "lib/patience.h"
#include "lib/postgres.h"
#include "lib/test.h"

#include <detent/durable.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"
#include "store/store.h"

#define JOBS_MAX 2000
#define KILLS    40

/* The settings that the processes of a test share. */
static struct {
    const char *url;
    char *folder;
    int pipe[2];
    det_time lease, takes;
    uint32_t width;  /* 0: 1 */
    bool is_locking; /* overlaps are looked for */
} place;

struct process {
    struct det_world *world;
    struct det_store *store;
    struct det_tasks *tasks;
    struct det_durable *durable;
};

static void report(char what)
{
    if (write(place.pipe[1], &what, 1) != 1)
        _exit(3);
}

/* One line, in one write. */
static void append(const char *file, char letter, int number, unsigned attempt)
{
    char path[300], line[64];
    int fd, size = snprintf(line, sizeof line, "%c %d %u\n", letter, number, attempt);

    snprintf(path, sizeof path, "%s/%s", place.folder, file);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, line, (size_t)size) != size)
        _exit(4);
    close(fd);
}

static int lock_job(int number)
{
    char path[300];
    int fd;

    snprintf(path, sizeof path, "%s/job-%d", place.folder, number);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        _exit(5);
    if (place.is_locking && flock(fd, LOCK_EX | LOCK_NB) < 0)
        append("ledger", 'X', number, 0);
    return fd;
}

static int work(struct det_task_context *context, void *argument)
{
    const struct det_durable_job *job = argument;
    struct det_world *world = det_task_world(context);
    int number = (int)strtol(job->id + 4, NULL, 10), lock = lock_job(number), r;

    append("ledger", 'B', number, job->attempt);
    report(job->attempt > 1 ? 'R' : 'B');
    r = det_task_wait(context, det_world_now(world, DET_CLOCK_MONOTONIC) + place.takes);
    if (r == 0)
        append("ledger", 'E', number, job->attempt);
    close(lock);
    report('E');
    return r;
}

static const struct det_task_spec spec = { .function = work };
static const struct det_durable_work works[] = { { .name = "work", .spec = &spec } };

static void open_process(struct process *process)
{
    struct det_error error = { 0 };
    int r;

    process->world = det_world_real();
    r = det_store_open(place.url, &process->store, &error);
    if (r == 0)
        r = det_tasks_open(&(struct det_tasks_options){ 0 }, &process->tasks, &error);
    if (r == 0)
        r = det_durable_open(
            &(struct det_durable_options){ .tasks = process->tasks,
                                           .store = process->store,
                                           .queue = "q",
                                           .width = place.width,
                                           .works = works,
                                           .work_count = 1,
                                           .lease = place.lease,
                                           .poll = 20 * DET_MILLISECOND,
                                           .attempts_max = 1000 },
            &process->durable, &error);
    if (r < 0) {
        fprintf(stderr, "%s\n", error.text);
        _exit(6);
    }
}

static void submit(struct process *process, int number)
{
    char id[24];

    snprintf(id, sizeof id, "job-%d", number);
    if (det_durable_submit(
            process->durable,
            &(struct det_durable_submission){ .id = id, .work = "work", .body = id, .size = 3 },
            NULL, NULL) < 0)
        return;
    append("acks", 'A', number, 0);
    report('A');
}

static void each_line(const char *file, void (*each)(void *, char, int, unsigned), void *context)
{
    char path[300], line[64], *end;
    unsigned long attempt;
    FILE *stream;
    long number;

    snprintf(path, sizeof path, "%s/%s", place.folder, file);
    stream = fopen(path, "re");
    if (!stream)
        return;
    while (fgets(line, sizeof line, stream)) {
        number = strtol(line + 1, &end, 10);
        attempt = strtoul(end, &end, 10);
        assert_string_equal(end, "\n");
        each(context, line[0], (int)number, (unsigned)attempt);
    }
    fclose(stream);
}

struct tally {
    unsigned acked[JOBS_MAX], begun[JOBS_MAX], ended[JOBS_MAX], attempt[JOBS_MAX];
    unsigned overlaps, ack_count, repeats;
    int last, highest;
    bool is_ordered;
};

static void count_line(void *context, char letter, int number, unsigned attempt)
{
    struct tally *tally = context;

    assert_in_range(number, 0, JOBS_MAX - 1);
    if (letter == 'A') {
        tally->ack_count += !tally->acked[number]++;
        if (number > tally->highest)
            tally->highest = number;
    } else if (letter == 'X') {
        tally->overlaps++;
    } else if (letter == 'E') {
        tally->ended[number]++;
    } else {
        tally->repeats += attempt > 1;
        tally->begun[number]++;
        /* The number of an attempt is a token: no two that have begun have the same. */
        assert_true(!place.is_locking || attempt > tally->attempt[number]);
        tally->attempt[number] = attempt;
        assert_true(!tally->is_ordered || number >= tally->last);
        tally->last = number;
    }
}

static struct tally *count_all(bool is_ordered)
{
    struct tally *tally = calloc(1, sizeof *tally);

    assert_non_null(tally);
    tally->highest = -1;
    tally->is_ordered = is_ordered;
    each_line("acks", count_line, tally);
    each_line("ledger", count_line, tally);
    return tally;
}

static int is_open(void *context, const struct det_job_row *row)
{
    *(unsigned *)context += row->ended_at == 0;
    return 0;
}

static unsigned count_open(struct det_store *store)
{
    unsigned open = 0;

    if (store->ops->jobs->list(
            store, &(struct det_job_query){ .limit = JOBS_MAX }, is_open, &open) < 0)
        return 1;
    return open;
}

/* Never returns. `first`: submits from there on, every so many; else works until all is done. */
static void run_process(int first, int step)
{
    struct process process;

    open_process(&process);
    report('O');
    for (int i = first; first >= 0 && i < JOBS_MAX; i += step) {
        submit(&process, i);
        (void)!det_world_sleep(process.world, 2 * DET_MILLISECOND);
    }
    while (count_open(process.store) > 0)
        (void)!det_world_sleep(process.world, 5 * DET_MILLISECOND);
    det_durable_close(process.durable);
    det_tasks_close(process.tasks);
    det_store_close(process.store);
    report('D');
    _exit(0);
}

static pid_t start(int first, int step)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        run_process(first, step);
    return pid;
}

static char receive(void)
{
    char what;

    assert_int_equal(read(place.pipe[0], &what, 1), 1);
    return what;
}

static void receive_until(char wanted)
{
    while (receive() != wanted)
        continue;
}

static int end_of(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void kill_it(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(end_of(pid), -SIGKILL);
}

/* Bytes in the pipe that were not read. */
static void forget_reported(void)
{
    char waste[256];

    assert_int_equal(fcntl(place.pipe[0], F_SETFL, O_NONBLOCK), 0);
    while (read(place.pipe[0], waste, sizeof waste) > 0)
        continue;
    assert_int_equal(fcntl(place.pipe[0], F_SETFL, 0), 0);
}

/* One more process, until all is done. It reports that by the pipe, which is read meanwhile. */
static void finish(void)
{
    pid_t pid = start(-1, 1);

    receive_until('D');
    assert_int_equal(end_of(pid), 0);
}

static int next_number(void)
{
    struct tally *tally = count_all(false);
    int next = tally->highest + 1;

    free(tally);
    return next;
}

static void assert_all_done(bool is_ordered)
{
    struct tally *tally = count_all(is_ordered);
    unsigned lost = 0;

    for (int i = 0; i < JOBS_MAX; i++)
        lost += tally->acked[i] && !tally->ended[i];
    assert_int_equal(lost, 0);
    assert_int_equal(tally->overlaps, 0);
    assert_true(tally->ack_count > 0);
    printf("             %u acknowledged, %u begun again\n", tally->ack_count, tally->repeats);
    free(tally);
}

static void kill_on_a_file(uint32_t width)
{
    uint64_t seed = 4;
    char url[300];

    snprintf(url, sizeof url, "sqlite:%s/store.db", place.folder);
    place.url = url;
    place.width = width;
    place.lease = 30 * DET_SECOND;
    place.takes = 3 * DET_MILLISECOND;
    for (int i = 0; i < KILLS; i++) {
        pid_t pid = start(next_number(), 1);

        for (uint64_t n = det_test_random(&seed) % 40; n > 0; n--)
            (void)receive();
        kill_it(pid);
        forget_reported();
    }
    finish();
    assert_all_done(width == 1);
}

static void kill_on_a_file_loses_repeats_and_reorders_no_job(void **state)
{
    (void)state;
    kill_on_a_file(1);
}

static void kill_during_batches_on_a_file_loses_no_job(void **state)
{
    (void)state;
    kill_on_a_file(16);
}

static void kill_on_a_server(uint32_t width)
{
    char *url = det_test_postgres_url(det_test_server, NULL);
    uint64_t seed = 5;
    pid_t pids[2];

    place.url = url;
    place.width = width;
    place.lease = 2 * DET_SECOND * det_test_load();
    place.takes = 10 * DET_MILLISECOND;
    pids[0] = start(0, 2);
    receive_until('O');
    pids[1] = start(1, 2);
    receive_until('O');
    for (int i = 0; i < 8; i++) {
        unsigned which = (unsigned)(det_test_random(&seed) % 2);
        int next;

        for (uint64_t n = 10 + det_test_random(&seed) % 30; n > 0; n--)
            (void)receive();
        kill_it(pids[which]);
        /* The other one continues meanwhile; ids with an unknown result are submitted again. */
        next = next_number();
        pids[which] = start(next + ((next ^ (int)which) & 1), 2);
        receive_until('O');
    }
    kill_it(pids[0]);
    kill_it(pids[1]);
    finish();
    assert_all_done(false);
    free(url);
}

static void kill_on_a_server_lets_others_continue_without_overlap(void **state)
{
    (void)state;
    kill_on_a_server(1);
}

static void kill_during_batches_on_a_server_loses_no_job(void **state)
{
    (void)state;
    kill_on_a_server(16);
}

/* A stopped process holds its lock, and works for a moment when it continues: overlaps are not
 * checked, but its end must not count. */
static void end_after_a_lost_lease_is_ignored(void **state)
{
    char *url = det_test_postgres_url(det_test_server, NULL);
    struct process process;
    pid_t pids[2];

    (void)state;
    place.url = url;
    place.is_locking = false;
    place.width = 1;
    place.lease = DET_SECOND;
    place.takes = 2 * DET_SECOND;
    pids[0] = start(0, JOBS_MAX);
    receive_until('B');
    assert_int_equal(kill(pids[0], SIGSTOP), 0);
    pids[1] = start(-1, 1);
    receive_until('R');
    assert_int_equal(kill(pids[0], SIGCONT), 0);
    assert_int_equal(end_of(pids[1]), 0);
    assert_int_equal(end_of(pids[0]), 0);
    assert_int_equal(det_store_open(url, &process.store, NULL), 0);
    assert_int_equal(count_open(process.store), 0);
    det_store_close(process.store);
    assert_all_done(false);
    free(url);
}

static int open_place(void **state)
{
    (void)state;
    place.folder = det_test_folder();
    place.is_locking = true;
    return pipe(place.pipe);
}

static int close_place(void **state)
{
    (void)state;
    close(place.pipe[0]);
    close(place.pipe[1]);
    det_test_folder_remove(place.folder);
    return 0;
}

#define PLACED(name) cmocka_unit_test_setup_teardown(name, open_place, close_place)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACED(kill_on_a_file_loses_repeats_and_reorders_no_job),
        PLACED(kill_during_batches_on_a_file_loses_no_job),
        PLACED(kill_on_a_server_lets_others_continue_without_overlap),
        PLACED(kill_during_batches_on_a_server_loses_no_job),
        PLACED(end_after_a_lost_lease_is_ignored),
    };

    return cmocka_run_group_tests(tests, det_test_server_open, det_test_server_close);
}
