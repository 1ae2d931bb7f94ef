/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* handed_test.c - a commit that is sent by the reading side of libpq: PQconsumeInput() sends its
 * buffer before it reads. This program replaces three functions of libpq: after the end of the
 * commit nothing can be read; the flush reports unsent bytes, and the read finds the connection cut
 * after all bytes were sent. */
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

static void commit_sent_while_reading_is_unknown_and_not_repeated(void **state)
{
    struct pad *pad = desk_open();
    struct pad before = *pad;
    char *text;

    (void)state;
    is_cut = true;
    assert_int_equal(send(pad, BARE, NULL), DET_ERR_IO);
    assert_false(is_cut);
    *pad = before;
    /* The lock waits for the other session, if it is still active. */
    text = sql(pad->store, "LOCK TABLE @instances; SELECT count(*) FROM @events");
    assert_true(strcmp(text, "0") == 0 || strcmp(text, "1") == 0);
    free(text);
    desk_close(pad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commit_sent_while_reading_is_unknown_and_not_repeated),
    };

    return cmocka_run_group_tests(tests, open_server, close_server);
}
