/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* words_test.c - the words that cannot be names, and some that can. */
#include "machine/words.h"

#include "lib/test.h"

static void keywords_of_c_cannot_be_names(void **state)
{
    (void)state;
    assert_true(det_is_keyword("int"));
    assert_true(det_is_keyword("_Alignas"));
    assert_true(det_is_keyword("while"));
    assert_true(det_is_keyword("bool"));
    assert_false(det_is_keyword("integer"));
    assert_false(det_is_keyword("INT"));
    assert_false(det_is_keyword(""));
}

static void names_that_the_template_makes_are_taken(void **state)
{
    (void)state;
    assert_true(det_is_taken_by_template("send", false));
    assert_true(det_is_taken_by_template("machine", false));
    assert_true(det_is_taken_by_template("event_count", false));
    assert_false(det_is_taken_by_template("start", false));
    assert_false(det_is_taken_by_template("stop", false));
    assert_false(det_is_taken_by_template("offer", false));
    assert_true(det_is_taken_by_template("offer", true));
    assert_true(det_is_taken_by_template("state_name", true));
    assert_false(det_is_taken_by_template("send", true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keywords_of_c_cannot_be_names),
        cmocka_unit_test(names_that_the_template_makes_are_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
