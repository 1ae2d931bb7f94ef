/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* postgres.h - a PostgreSQL server of the test's own: a cluster in a temporary folder, reached by a
 * socket in that folder and nothing else, run by an unprivileged user even when the tests are not.
 *
 *     test ----- pipe ----> keeper ----> postmaster
 *
 * The keeper is a process that waits for the end of the test, however that comes, stops the server
 * and removes the folder. fsync stays on. A start takes one to two seconds: one per program. */
#ifndef DET_TEST_POSTGRES_H
#define DET_TEST_POSTGRES_H

#include <stdbool.h>
#include <stddef.h>

struct det_test_postgres;

bool det_test_postgres_is_installed(void);
/* Fails the test when there is no PostgreSQL. */
struct det_test_postgres *det_test_postgres_open(void);
void det_test_postgres_close(struct det_test_postgres *postgres);
/* The URL of a schema that nothing is in yet, with `more` ("&pooler=yes"; NULL: nothing) at its
 * end. free() it. */
char *det_test_postgres_url(struct det_test_postgres *postgres, const char *more);
/* The folder of the socket, which is "host" in a URL. */
const char *det_test_postgres_host(const struct det_test_postgres *postgres);
/* What libpq takes, for connections of the test's own. */
const char *det_test_postgres_conninfo(const struct det_test_postgres *postgres);
/* Runs statements, and fails the test when they fail. The first value of the last result, free()
 * it; NULL: there is none. */
char *det_test_postgres_execute(struct det_test_postgres *postgres, const char *sql);
/* Ends the server as a crash does: nothing is written, every connection is cut. */
void det_test_postgres_crash(struct det_test_postgres *postgres);
/* Starts it again after a crash. `settings` (NULL: none) is for the command line: "-c fsync=off".
 */
void det_test_postgres_start(struct det_test_postgres *postgres, const char *settings);
/* A transaction pooler before the server: pgbouncer, with this many connections to the server.
 * Returns its folder, to be used as "host" in a URL. It ends with the server's keeper. */
const char *det_test_postgres_pooler(struct det_test_postgres *postgres, unsigned connections);

/* One server for a group of tests: the setup and the teardown of the group. */
extern struct det_test_postgres *det_test_server;
int det_test_server_open(void **state);
int det_test_server_close(void **state);

#endif
