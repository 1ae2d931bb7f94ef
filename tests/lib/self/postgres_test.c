/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* postgres_test.c - the server of the tests starts, crashes, comes back, and leaves nothing. */
#include "lib/postgres.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/test.h"

static void test_server_keeps_its_data_over_a_crash(void **state)
{
    struct det_test_postgres *postgres = *state;
    char *value;

    free(det_test_postgres_execute(
        postgres, "CREATE TABLE t (n integer); INSERT INTO t VALUES (42)"));
    det_test_postgres_crash(postgres);
    det_test_postgres_start(postgres, "-c work_mem=1234kB");
    value = det_test_postgres_execute(postgres, "SELECT n FROM t");
    assert_string_equal(value, "42");
    free(value);
    value = det_test_postgres_execute(postgres, "SHOW work_mem");
    assert_string_equal(value, "1234kB");
    free(value);
    value = det_test_postgres_execute(postgres, "SHOW fsync");
    assert_string_equal(value, "on");
    free(value);
}

static void each_url_has_a_schema_of_its_own(void **state)
{
    struct det_test_postgres *postgres = *state;
    char *one = det_test_postgres_url(postgres, NULL);
    char *other = det_test_postgres_url(postgres, "&pooler=yes");

    assert_string_not_equal(one, other);
    assert_non_null(strstr(other, "&pooler=yes"));
    assert_non_null(strstr(one, det_test_postgres_host(postgres)));
    free(one);
    free(other);
}

/* A test that is killed must leave no server and no folder behind. */
static void test_server_ends_with_its_test(void **state)
{
    char folder[128] = "", rest;
    struct stat status;
    int line[2];
    pid_t child;

    (void)state;
    assert_int_equal(pipe(line), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct det_test_postgres *postgres = det_test_postgres_open();
        const char *host = det_test_postgres_host(postgres);

        if (write(line[1], host, strlen(host)) < 0)
            _exit(1);
        (void)raise(SIGKILL);
    }
    close(line[1]);
    assert_true(read(line[0], folder, sizeof folder - 1) > 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    /* The keeper and the server have the other end until they are gone. */
    assert_int_equal(read(line[0], &rest, 1), 0);
    close(line[0]);
    assert_int_not_equal(stat(folder, &status), 0);
}

static int open_server(void **state)
{
    *state = det_test_postgres_open();
    return 0;
}

static int close_server(void **state)
{
    det_test_postgres_close(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_server_keeps_its_data_over_a_crash),
        cmocka_unit_test(each_url_has_a_schema_of_its_own),
        cmocka_unit_test(test_server_ends_with_its_test),
    };

    return cmocka_run_group_tests(tests, open_server, close_server);
}
