/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* child_user_test.c - children of other users: their rights and no others, and the errors of a
 * failed change. Tests that need the privilege to change users are skipped without it. */
/* test: alone */
#include "task/child_real_cases.h"

#include <sys/resource.h>
#include <sys/stat.h>

#define IN_PLACE_OF(function) __asm__(#function)

int list_groups(const char *name, gid_t group, gid_t *groups, int *count) IN_PLACE_OF(getgrouplist);

/* In how many groups a user is. */
static int group_count = 1;

int list_groups(const char *name, gid_t group, gid_t *groups, int *count)
{
    int room = *count;

    (void)name;
    *count = group_count;
    if (room < group_count)
        return -1;
    for (int i = 0; i < group_count; i++)
        groups[i] = group + (gid_t)i;
    return group_count;
}

static void a_child_of_another_user_has_its_rights_alone(void **state)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    const struct passwd *entry = getpwnam("nobody");
    int extra = dup(2);
    char expected[64];

    (void)state;
    if (!somebody())
        skip();
    start_as(
        "nobody",
        (const char *const[]){ "sh", "-c", "id -u; id -ru; id -g; ls /proc/$$/fd", NULL });
    ends_with(&witness, 0, 0);
    (void)snprintf(
        expected, sizeof expected, "%u|%u|%u|0|1|2|", entry->pw_uid, entry->pw_uid, entry->pw_gid);
    assert_string_equal(expected, witness.printed[0]);
    close(extra);
}

static void a_child_of_another_user_has_no_signal_settings_of_ours(void **state)
{
    sigset_t set;

    (void)state;
    if (!somebody())
        skip();
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    assert_int_equal(0, sigprocmask(SIG_BLOCK, &set, NULL));
    signal(SIGUSR2, SIG_IGN);
    /* 32 and 33 belong to the C library, which never resets them, and make leaves them so. */
    start_as(
        "nobody", (const char *const[]){ "grep", "-cE", "^Sig(Blk|Ign):.0*(180000000)?$",
                                         "/proc/self/status", NULL });
    ends_with(&witness, 0, 0);
    assert_string_equal("2|", witness.printed[0]);
    signal(SIGUSR2, SIG_DFL);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    assert_int_equal(0, sigprocmask(SIG_UNBLOCK, &set, NULL));
}

static void running_as_the_current_user_changes_nothing(void **state)
{
    (void)state;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    start_as(getpwuid(geteuid())->pw_name, (const char *const[]){ nasty, "user", NULL });
    ends_with(&witness, 0, 0);
    assert_int_equal(geteuid(), strtol(witness.printed[0], NULL, 10));
}

static void a_child_of_another_user_has_all_its_groups(void **state)
{
    const struct det_process_spec spec = { .argv = (const char *const[]){ "true", NULL },
                                           .user = "nobody" };

    (void)state;
    if (!somebody())
        skip();
    group_count = 50;
    start_as("nobody", (const char *const[]){ "sh", "-c", "id -G | wc -w", NULL });
    ends_with(&witness, 0, 0);
    assert_string_equal("50|", witness.printed[0]);
    det_child_close(witness.child);
    witness = (struct witness){ .loop = witness.loop };
    group_count = 1 << 20;
    fails_with(&spec, DET_ERR_LIMIT, "as user nobody");
    group_count = 1;
}

static void fails_as_nobody(const char *const *argv, const char *folder, int code, const char *text)
{
    fails_with(
        &(struct det_process_spec){ .argv = argv, .user = "nobody", .folder = folder }, code, text);
}

static void child_of_another_user_start_failure_gives_a_remedy(void **state)
{
    char *folder, path[512];

    (void)state;
    if (!somebody())
        skip();
    folder = det_test_folder();
    fails_as_nobody(
        (const char *const[]){ "no-such", NULL }, NULL, DET_ERR_NOT_FOUND, "in PATH (/");
    fails_as_nobody(
        (const char *const[]){ "/no/such", NULL }, NULL, DET_ERR_NOT_FOUND, "no such file");
    fails_as_nobody(
        (const char *const[]){ "true", NULL }, "/none", DET_ERR_NOT_FOUND, "create the folder");
    assert_int_equal(0, chmod(folder, 0700));
    fails_as_nobody((const char *const[]){ "true", NULL }, folder, DET_ERR_IO, "Permission denied");
    (void)snprintf(path, sizeof path, "%s/script", folder);
    det_test_write_file(path, "echo hello\n", 11);
    assert_int_equal(0, chmod(path, 0755));
    fails_as_nobody((const char *const[]){ path, NULL }, NULL, DET_ERR_IO, "chmod +x");
    assert_int_equal(0, chmod(folder, 0755));
    /* Never a shell: a script without its first line is not run. */
    fails_as_nobody((const char *const[]){ path, NULL }, NULL, DET_ERR_IO, "#!");
    det_test_folder_remove(folder);
}

/* In a process that has given its rights away: 0 when it was refused with the right words. */
static int try_without_rights(void)
{
    const struct det_process_spec spec = { .argv = (const char *const[]){ "true", NULL },
                                           .user = "root" },
                                  plain = { .argv = spec.argv };
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    const struct passwd *entry = getpwnam("nobody");
    struct det_child_events events = events_of(&witness);
    struct det_error error;

    if (setresuid(entry->pw_uid, entry->pw_uid, entry->pw_uid) < 0)
        return 1;
    if (det_child_start(witness.loop, NULL, &spec, &events, &witness.child, &error) != DET_ERR_IO)
        return 2;
    if (error.cause != EPERM || !strstr(error.text, "run as root"))
        return 3;
    if (setrlimit(RLIMIT_NPROC, &(struct rlimit){ 0, 0 }) < 0)
        return 4;
    if (det_child_start(witness.loop, NULL, &plain, &events, &witness.child, &error) !=
            DET_ERR_LIMIT ||
        !strstr(error.text, "ulimit -u"))
        return 5;
    return waitpid(-1, NULL, WNOHANG) < 0 ? 0 : 6;
}

static void start_as_another_user_needs_the_privilege(void **state)
{
    pid_t number;
    int status;

    (void)state;
    if (!somebody())
        skip();
    number = fork();
    if (number == 0)
        _exit(try_without_rights());
    assert_int_equal(number, waitpid(number, &status, 0));
    assert_int_equal(0, status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_child_of_another_user_has_its_rights_alone),
        CASE(a_child_of_another_user_has_no_signal_settings_of_ours),
        CASE(running_as_the_current_user_changes_nothing),
        CASE(a_child_of_another_user_has_all_its_groups),
        CASE(child_of_another_user_start_failure_gives_a_remedy),
        CASE(start_as_another_user_needs_the_privilege),
    };

    return cmocka_run_group_tests(tests, find_nasty, NULL);
}
