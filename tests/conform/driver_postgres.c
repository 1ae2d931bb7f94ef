/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver_postgres.c - the suite over a separate PostgreSQL server, where every store is a schema;
 * directly, and through a transaction pooler. */
#include "conform/conform.h"
#include "lib/postgres.h"

/* One server for all tests; its keeper ends it with the program. */
static struct det_test_postgres *server;

static void postgres_begin(struct box *box)
{
    char *url;

    if (!server)
        server = det_test_postgres_open();
    url = det_test_postgres_url(server, NULL);
    snprintf(box->url, URL_MAX, "%s", url);
    free(url);
}

static void pooled_begin(struct box *box)
{
    static const char *pooler;
    static unsigned schemas;

    if (!server)
        server = det_test_postgres_open();
    if (!pooler)
        pooler = det_test_postgres_pooler(server, 3);
    snprintf(
        box->url, URL_MAX, "postgres://postgres@/postgres?host=%s&schema=pooled_%u&pooler=yes",
        pooler, ++schemas);
}

static void postgres_end(struct box *box)
{
    (void)box;
}

static void postgres_execute(struct box *box, const char *sql)
{
    const char *schema = strstr(box->url, "schema=");
    char text[1024];
    size_t size = 0;

    assert_non_null(schema);
    schema += strlen("schema=");
    for (; *sql; sql++)
        size += (size_t)snprintf(
            text + size, sizeof text - size, *sql == '@' ? "%.*s." : "%.*s",
            *sql == '@' ? (int)strcspn(schema, "&") : 1, *sql == '@' ? schema : sql);
    assert_true(size < sizeof text);
    free(det_test_postgres_execute(server, text));
}

const struct driver driver_postgres = {
    .scheme = "postgres",
    .is_kept = true,
    .is_shared = true,
    .has_readers = true,
    .model_steps = 1500,
    .begin = postgres_begin,
    .end = postgres_end,
    .execute = postgres_execute,
};

const struct driver driver_pooled = {
    .scheme = "pooled",
    .is_kept = true,
    .is_shared = true,
    .has_readers = true,
    .model_steps = 500,
    .begin = pooled_begin,
    .end = postgres_end,
    .execute = postgres_execute,
};
