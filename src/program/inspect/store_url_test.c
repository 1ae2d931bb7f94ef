/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_url_test.c - what is shown of a URL, and the exit codes of errors. */
#include "inspect/store_internal.h"
#include "lib/test.h"

static void a_password_is_never_shown(void **state)
{
    static const struct {
        const char *url, *shown;
    } cases[] = {
        { "sqlite:orders.db", "sqlite:orders.db" },
        { "sqlite:a:b@c/d", "sqlite:a:b@c/d" },
        { "postgres://u:secret@host/db", "postgres://u@host/db" },
        { "postgres://u:se:c@ret@host:5432/db", "postgres://u@host:5432/db" },
        { "postgres://u@host/a:b@c", "postgres://u@host/a:b@c" },
        { "postgres://host:5432/db?schema=x", "postgres://host:5432/db?schema=x" },
        { "postgres:///db?password=secret&host=/tmp", "postgres:///db?password=&host=/tmp" },
        { "postgres:///db?host=/tmp&password=secret", "postgres:///db?host=/tmp&password=" },
        { "postgres://u:?password=a&password=b", "postgres://u:?password=&password=" },
        { "postgres://", "postgres://" },
    };
    struct det_arena arena;

    (void)state;
    det_arena_init(&arena, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(store_url_shown(&arena, cases[i].url), cases[i].shown);
    det_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_password_is_never_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
