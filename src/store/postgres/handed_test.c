/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* handed_test.c - what was handed over by the reading side of libpq: PQconsumeInput()
 * sends what is left before it reads. This program stands before three functions of libpq: from the
 * end of the commit on nothing can be read; the one that flushes says that something is left, and
 * the one that reads finds the connection cut when all has gone out. */
/* test: alone */
#include <dlfcn.h>

#include "store/postgres/postgres_test.h"

/* Of <sys/socket.h>, whose send() is another one than that of a pad. */
int shutdown(int socket, int how);
enum { READING, BOTH_WAYS = 2 };

static bool is_cut;

/* It sends already; and what the server has answered before a cut could still be read after it. */
int PQpipelineSync(PGconn *conn)
{
    int (*real)(PGconn * conn);

    *(void **)&real = dlsym(RTLD_NEXT, "PQpipelineSync");
    if (is_cut)
        assert_int_equal(shutdown(PQsocket(conn), READING), 0);
    return real(conn);
}

int PQflush(PGconn *conn)
{
    int (*real)(PGconn * conn);

    *(void **)&real = dlsym(RTLD_NEXT, "PQflush");
    return is_cut ? 1 : real(conn);
}

int PQconsumeInput(PGconn *conn)
{
    int (*real)(PGconn * conn);

    *(void **)&real = dlsym(RTLD_NEXT, "PQconsumeInput");
    if (is_cut) {
        is_cut = false;
        assert_int_equal(PQflush(conn), 0);
        assert_int_equal(shutdown(PQsocket(conn), BOTH_WAYS), 0);
    }
    return real(conn);
}

static void a_commit_that_reading_handed_over_is_unknown_and_sent_once(void **state)
{
    struct pad *pad = desk_open();
    struct pad before = *pad;
    char *text;

    (void)state;
    is_cut = true;
    assert_int_equal(send(pad, BARE, NULL), DET_ERR_IO);
    assert_false(is_cut);
    *pad = before;
    /* It waits for the other session, if that is still at it. */
    text = sql(pad->store, "LOCK TABLE @instances; SELECT count(*) FROM @events");
    assert_true(strcmp(text, "0") == 0 || strcmp(text, "1") == 0);
    free(text);
    desk_close(pad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit_that_reading_handed_over_is_unknown_and_sent_once),
    };

    return cmocka_run_group_tests(tests, open_server, close_server);
}
