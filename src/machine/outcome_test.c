/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* outcome_test.c - every outcome has a name, which is found again. */
#include "machine/outcome.h"

#include <detent/machine.h>

#include "lib/test.h"

static void every_outcome_has_a_name_that_is_found_again(void **state)
{
    (void)state;
    for (unsigned i = DET_OUTCOME_UNHANDLED; i <= DET_OUTCOME_DEAD_LETTER; i++)
        assert_int_equal(det_outcome_find(det_outcome_name(i)), i);
    assert_string_equal(det_outcome_name(DET_OUTCOME_DEAD_LETTER), "dead_letter");
    assert_int_equal(det_outcome_find("Goto"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_outcome_has_a_name_that_is_found_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
