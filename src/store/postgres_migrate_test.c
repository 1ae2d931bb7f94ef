/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* postgres_migrate_test.c - the suite of migrating, over a schema of a server. */
#include "lib/postgres.h"
#include "store/migrate_cases.h"

static struct det_test_postgres *server;

static int open_server(void **state)
{
    (void)state;
    server = det_test_postgres_open();
    return 0;
}

static int close_server(void **state)
{
    (void)state;
    det_test_postgres_close(server);
    return 0;
}

static void place(char url[URL_MAX])
{
    char *made = det_test_postgres_url(server, NULL);

    (void)snprintf(url, URL_MAX, "%s", made);
    free(made);
}

static void leave(void)
{
}

int main(void)
{
    return cmocka_run_group_tests(migrate_cases, open_server, close_server);
}
