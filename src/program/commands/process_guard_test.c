/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* process_guard_test.c - the command up, whose guard process is killed and cannot be started again
 * for a while. fork() is replaced here. */
/* test: alone */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "terminal/command.h"
#include "terminal/folder_test.h"

#define IN_PLACE_OF(function) __asm__(#function)

/* The first fork is the guard, the second one the task. */
#define FAILURES   2
#define FORK_AGAIN (2 + FAILURES + 1)

extern const struct cli_command cli_command_up;

pid_t count_fork(void) IN_PLACE_OF(fork);

static int forks;
static char done[4200];

/* The guard is killed once the task is there; the task ends once there is another guard. */
pid_t count_fork(void)
{
    static pid_t guard;
    pid_t number;

    forks++;
    if (forks > 2 && forks < FORK_AGAIN) {
        errno = EAGAIN;
        return -1;
    }
    number = _Fork();
    if (number <= 0)
        return number;
    if (forks == 1)
        guard = number;
    else if (forks == 2)
        (void)kill(guard, SIGKILL);
    else
        close(open(done, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    return number;
}

static void while_no_guard_can_be_started_it_is_retried_and_reported_once(void **state)
{
    struct fixture *fixture = *state;
    char path[512], text[9000], *printed = NULL, *found;
    struct cli_args args = { .values = { path } };
    struct cli cli = fixture->cli;
    size_t size = 0;

    (void)snprintf(done, sizeof done, "%s/done", fixture->folder);
    (void)snprintf(path, sizeof path, "%s/detent.yaml", fixture->folder);
    (void)snprintf(
        text, sizeof text,
        "version: 1\ntasks:\n"
        "  a: {run: [sh, -c, 'until test -e %s; do sleep 0.01; done'], restart: never}\n",
        done);
    put_text(fixture, "detent.yaml", text);
    cli.command = "up";
    cli.out = open_memstream(&printed, &size);
    assert_non_null(cli.out);
    assert_int_equal(cli_command_up.run(&cli, &args), CLI_OK);
    fclose(cli.out);
    assert_int_equal(forks, FORK_AGAIN);
    found = strstr(printed, "cannot be restarted: ");
    assert_non_null(found);
    assert_null(strstr(found + 1, "cannot be restarted"));
    assert_non_null(strstr(found, "was killed; a new one is running"));
    free(printed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(while_no_guard_can_be_started_it_is_retried_and_reported_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
