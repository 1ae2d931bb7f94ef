/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reserved_names_test.c - the words that cannot be names, and some that can. */
#include "machine/reserved_names.h"

#include "lib/test.h"

#define HEADER DET_SOURCE_DIR "/include/detent/rec/reserved.h"

static void keywords_of_c_cannot_be_names(void **state)
{
    (void)state;
    assert_string_equal(det_name_use("int"), "a keyword of C");
    assert_string_equal(det_name_use("_Alignas"), "a keyword of C");
    assert_string_equal(det_name_use("bool"), "a keyword of C");
    assert_null(det_name_use("integer"));
    assert_null(det_name_use("INT"));
    assert_null(det_name_use(""));
}

static void macros_of_c_and_of_the_templates_cannot_be_names(void **state)
{
    (void)state;
    assert_string_equal(det_name_use("errno"), "a macro of <errno.h>");
    assert_string_equal(det_name_use("linux"), "a macro of some compilers");
    assert_string_equal(det_name_use("END"), "a word of the templates");
    assert_non_null(det_name_use("__LINE__"));
    assert_non_null(det_name_use("_Exit"));
    assert_non_null(det_name_use("DET_SECOND"));
    assert_null(det_name_use("_exit"));
    assert_null(det_name_use("STOP"));
    assert_null(det_name_use("SECONDS"));
}

static void rows_cannot_be_the_names_of_functions(void **state)
{
    (void)state;
    assert_non_null(det_function_name_use("STOP"));
    assert_non_null(det_function_name_use("SECONDS"));
    assert_non_null(det_function_name_use("errno"));
    assert_null(det_function_name_use("stop"));
}

/* The templates and the reader of specs refuse the same names, with the words of the header. */
static void the_list_of_the_templates_is_that_of_the_reader(void **state)
{
    static const char word[] = "#define REC__NAME_";
    char name[64], before[64] = "", use[64];
    size_t count = 0, size;
    char *header = det_test_read_file(HEADER, &size);

    (void)state;
    for (const char *at = header; (at = strstr(at, word)) != NULL; at++, count++) {
        assert_int_equal(sscanf(at + strlen(word), "%63s 0 /* %63[^*]", name, use), 2);
        use[strlen(use) - 1] = '\0'; /* the blank before the end of the comment */
        if (det_name_use(name) == NULL || strcmp(det_name_use(name), use) != 0)
            fail_msg("%s is not %s", name, use);
        assert_true(strcmp(before, name) < 0);
        memcpy(before, name, sizeof before);
    }
    assert_true(count > 250);
    free(header);
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
        cmocka_unit_test(macros_of_c_and_of_the_templates_cannot_be_names),
        cmocka_unit_test(rows_cannot_be_the_names_of_functions),
        cmocka_unit_test(the_list_of_the_templates_is_that_of_the_reader),
        cmocka_unit_test(names_that_the_template_makes_are_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
