/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* exit_code_test.c - errors of each kind have their exit code. */
#include "lib/test.h"

#include "terminal/terminal.h"

/* An error that is missing here is a failure of the program. */
static const struct {
    int error;
    enum cli_exit exit;
} exits[] = {
    { 0, CLI_OK },
    { DET_ERR_INVALID, CLI_USAGE },
    { DET_ERR_UNSUPPORTED, CLI_USAGE },
    { DET_ERR_MALFORMED, CLI_USAGE },
    { DET_ERR_MISSING_FIELD, CLI_USAGE },
    { DET_ERR_UNKNOWN_FIELD, CLI_USAGE },
    { DET_ERR_DUPLICATE_FIELD, CLI_USAGE },
    { DET_ERR_TYPE, CLI_USAGE },
    { DET_ERR_RANGE, CLI_USAGE },
    { DET_ERR_NOT_FOUND, CLI_NOT_FOUND },
    { DET_ERR_EXISTS, CLI_CONFLICT },
    { DET_ERR_CONFLICT, CLI_CONFLICT },
    { DET_ERR_TIMEOUT, CLI_TIMEOUT },
    { DET_ERR_UNHANDLED, CLI_REFUSED },
    { DET_ERR_STOPPED, CLI_REFUSED },
    { DET_ERR_REFUSED, CLI_REFUSED },
    { DET_ERR_ACTION_FAILED, CLI_REFUSED },
    { DET_ERR_UNBOUND, CLI_REFUSED },
    { DET_ERR_LOCKED, CLI_REFUSED },
    { DET_ERR_LIMIT, CLI_REFUSED },
    { DET_ERR_BUSY, CLI_REFUSED },
    { DET_ERR_CONTENTION, CLI_REFUSED },
    { DET_ERR_CANCELLED, CLI_INTERRUPTED },
};

static enum cli_exit expected_exit(int error)
{
    for (size_t i = 0; i < sizeof exits / sizeof exits[0]; i++) {
        if (exits[i].error == error)
            return exits[i].exit;
    }
    return CLI_FAILURE;
}

static void every_error_has_its_exit_code(void **state)
{
    static const int errors[] = {
        0,
#define DET_ERROR(name, number, text) DET_ERR_##name,
#include <detent/errors.def>
#undef DET_ERROR
    };

    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        assert_int_equal(cli_exit_of(errors[i]), expected_exit(errors[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_has_its_exit_code),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
