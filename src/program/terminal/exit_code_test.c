/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* exit_code_test.c - errors of each kind have their exit code. */
#include "lib/test.h"

#include "terminal/terminal.h"

static void every_error_has_its_exit_code(void **state)
{
    (void)state;
    assert_int_equal(cli_exit_of(0), CLI_OK);
    assert_int_equal(cli_exit_of(DET_ERR_TYPE), CLI_USAGE);
    assert_int_equal(cli_exit_of(DET_ERR_NOT_FOUND), CLI_NOT_FOUND);
    assert_int_equal(cli_exit_of(DET_ERR_EXISTS), CLI_CONFLICT);
    assert_int_equal(cli_exit_of(DET_ERR_CONFLICT), CLI_CONFLICT);
    assert_int_equal(cli_exit_of(DET_ERR_TIMEOUT), CLI_TIMEOUT);
    assert_int_equal(cli_exit_of(DET_ERR_STOPPED), CLI_REFUSED);
    assert_int_equal(cli_exit_of(DET_ERR_LOCKED), CLI_REFUSED);
    assert_int_equal(cli_exit_of(DET_ERR_LIMIT), CLI_REFUSED);
    assert_int_equal(cli_exit_of(DET_ERR_CANCELLED), CLI_INTERRUPTED);
    assert_int_equal(cli_exit_of(DET_ERR_IO), CLI_FAILURE);
    assert_int_equal(cli_exit_of(DET_ERR_CORRUPT), CLI_FAILURE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_has_its_exit_code),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
