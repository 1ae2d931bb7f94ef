/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* trust_test.c - who may change files that decide what runs. */
#include "terminal/trust.h"

#include <unistd.h>

#include "lib/test.h"

#define OTHER 54321

struct example {
    mode_t mode;
    uid_t owner;
    gid_t group;
    uid_t runner;
    enum trust expected, in_sticky;
};

static const struct example examples[] = {
    /* root trusts root alone */
    { S_IFREG | 0664, 0, 0, 0, TRUST_GIVEN, TRUST_GIVEN },
    { S_IFREG | 0644, 0, OTHER, 0, TRUST_GIVEN, TRUST_GIVEN },
    { S_IFREG | 0664, 0, OTHER, 0, TRUST_GROUP, TRUST_GROUP },
    { S_IFREG | 0600, OTHER, 0, 0, TRUST_OWNER, TRUST_OWNER },
    { S_IFREG | 0602, 0, 0, 0, TRUST_EVERYBODY, TRUST_EVERYBODY },
    { S_IFREG | 0666, OTHER, OTHER, 0, TRUST_EVERYBODY, TRUST_EVERYBODY },
    { S_IFDIR | 0775, 0, OTHER, 0, TRUST_GROUP, TRUST_GROUP },
    { S_IFDIR | 01777, 0, 0, 0, TRUST_EVERYBODY, TRUST_GIVEN },
    { S_IFDIR | 01775, 0, OTHER, 0, TRUST_GROUP, TRUST_GIVEN },
    { S_IFDIR | 01777, OTHER, 0, 0, TRUST_EVERYBODY, TRUST_OWNER },
    { S_IFREG | S_ISVTX | 0666, 0, 0, 0, TRUST_EVERYBODY, TRUST_EVERYBODY },
    /* others trust root, themselves and their groups; a group of the same number may differ */
    { S_IFREG | 0664, OTHER, OTHER, OTHER, TRUST_GROUP, TRUST_GROUP },
    { S_IFREG | 0664, 0, 0, OTHER, TRUST_GIVEN, TRUST_GIVEN },
    { S_IFDIR | 02775, 0, OTHER, OTHER, TRUST_GROUP, TRUST_GROUP },
    { S_IFREG | 0664, OTHER, OTHER + 1, OTHER, TRUST_GROUP, TRUST_GROUP },
    { S_IFREG | 0644, OTHER + 1, OTHER, OTHER, TRUST_OWNER, TRUST_OWNER },
    { S_IFREG | 0666, OTHER, OTHER, OTHER, TRUST_EVERYBODY, TRUST_EVERYBODY },
};

static void only_the_runner_and_root_are_trusted(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        const struct example *it = &examples[i];
        struct stat status = { .st_mode = it->mode, .st_uid = it->owner, .st_gid = it->group };

        if (trust_of(&status, it->runner) != it->expected)
            fail_msg("example %zu: %d", i, (int)trust_of(&status, it->runner));
        if (trust_of_sticky(&status, it->runner) != it->in_sticky)
            fail_msg("example %zu, sticky: %d", i, (int)trust_of_sticky(&status, it->runner));
    }
}

static void the_group_of_this_process_is_its_own(void **state)
{
    struct stat status = { .st_mode = S_IFREG | 0664, .st_uid = geteuid(), .st_gid = getegid() };

    (void)state;
    assert_int_equal(trust_of(&status, geteuid()), TRUST_GIVEN);
    assert_string_equal(trust_who(TRUST_GROUP), "its group");
    assert_string_equal(trust_chmod(TRUST_EVERYBODY), "chmod o-w");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_runner_and_root_are_trusted),
        cmocka_unit_test(the_group_of_this_process_is_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
