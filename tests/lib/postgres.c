/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* postgres.c - a PostgreSQL server for one test program. */
#include "lib/postgres.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/test.h"

#define ARGUMENTS_MAX 32
#define START_SECONDS 60
#define SETTINGS_MAX  256
#define INITDB        "/usr/lib/postgresql/*/bin/initdb"

struct det_test_postgres {
    char folder[64];    /* data/, the socket, log, pooler/ */
    char binaries[256]; /* where initdb and postgres are */
    char conninfo[192];
    char pooler_folder[96];
    pid_t keeper;
    int line;   /* closed: the keeper cleans up */
    int answer; /* a byte for each order that was carried out */
    unsigned pooler_connections;
    unsigned schemas;
};

/* An order to the keeper. */
struct printed {
    char order; /* 'i': initialize, 's': start, 'c': crash, 'p': pooler */
    unsigned number;
    char settings[SETTINGS_MAX];
};

/* Who runs the server; ourselves unless we are root. */
static const struct passwd *runner(void)
{
    const struct passwd *user;

    if (geteuid() != 0)
        return NULL;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): before the test has threads. */
    user = getpwnam("postgres");
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the same. */
    return user ? user : getpwnam("nobody");
}

static void become(const struct passwd *user)
{
    if (user && (setgroups(0, NULL) < 0 || setgid(user->pw_gid) < 0 || setuid(user->pw_uid) < 0))
        _exit(126);
}

/* A program in a child that ends with its parent; what it says goes to the log. */
static pid_t spawn(const struct det_test_postgres *postgres, char *const *argv)
{
    pid_t parent = getpid(), child = fork();
    char path[128];
    int log;

    if (child != 0)
        return child;
    become(runner());
    (void)prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (getppid() != parent)
        _exit(126);
    snprintf(path, sizeof path, "%s/log", postgres->folder);
    log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (log < 0 || chdir(postgres->folder) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
        _exit(126);
    execv(argv[0], argv);
    _exit(127);
}

static int run(const struct det_test_postgres *postgres, char *const *argv)
{
    pid_t child = spawn(postgres, argv);
    int status;

    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Until it takes connections. */
static bool wait_ready(const char *conninfo, pid_t server)
{
    for (int i = 0; i < START_SECONDS * 50; i++) {
        PGPing ping = PQping(conninfo);

        if (ping == PQPING_OK)
            return true;
        if (server > 0 && waitpid(server, NULL, WNOHANG) == server)
            return false;
        (void)poll(NULL, 0, 20);
    }
    return false;
}

static int initialize(const struct det_test_postgres *postgres)
{
    char program[320], data[128];
    char *argv[] = { program,
                     (char[]){ "-D" },
                     data,
                     (char[]){ "-A" },
                     (char[]){ "trust" },
                     (char[]){ "-U" },
                     (char[]){ "postgres" },
                     (char[]){ "-E" },
                     (char[]){ "UTF8" },
                     (char[]){ "--locale=C" },
                     (char[]){ "-N" },
                     NULL };

    snprintf(program, sizeof program, "%s/initdb", postgres->binaries);
    snprintf(data, sizeof data, "%s/data", postgres->folder);
    return run(postgres, argv);
}

static pid_t start_server(const struct det_test_postgres *postgres, char *settings)
{
    static char *const fixed[] = { "-c", "listen_addresses=",   "-c", "shared_buffers=32MB",
                                   "-c", "max_connections=100", "-c", "autovacuum_naptime=10s",
                                   "-c", "max_wal_size=256MB",  "-c", "log_min_messages=warning" };
    char program[320], data[128], socket[80];
    char *argv[ARGUMENTS_MAX] = { program, (char[]){ "-D" }, data, (char[]){ "-k" }, socket };
    size_t count = 5;
    char *rest = settings;
    pid_t server;

    snprintf(program, sizeof program, "%s/postgres", postgres->binaries);
    snprintf(data, sizeof data, "%s/data", postgres->folder);
    snprintf(socket, sizeof socket, "%s", postgres->folder);
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        argv[count++] = fixed[i];
    while (count < ARGUMENTS_MAX - 1 && (argv[count] = strsep(&rest, " ")))
        count++;
    argv[count] = NULL;
    server = spawn(postgres, argv);
    return server > 0 && wait_ready(postgres->conninfo, server) ? server : -1;
}

static pid_t start_pooler(const struct det_test_postgres *postgres, unsigned connections)
{
    char program[] = "/usr/sbin/pgbouncer", file[128], conninfo[160], text[1024];
    char *argv[] = { program, file, NULL };
    const struct passwd *user = runner();
    pid_t pooler;
    FILE *out;

    snprintf(file, sizeof file, "%s/pooler/pgbouncer.ini", postgres->folder);
    snprintf(
        text, sizeof text,
        "[databases]\n* = host=%s "
        "user=postgres\n[pgbouncer]\nlisten_addr=\nunix_socket_dir=%s/pooler\n"
        "listen_port=5432\nauth_type=any\npool_mode=transaction\ndefault_pool_size=%u\n"
        "max_client_conn=200\nlogfile=%s/pooler/log\nquery_wait_timeout=5\n",
        postgres->folder, postgres->folder, connections, postgres->folder);
    snprintf(conninfo, sizeof conninfo, "host=%s/pooler user=postgres", postgres->folder);
    out = fopen(file, "we");
    if (!out || fputs(text, out) < 0 || fclose(out) != 0)
        return -1;
    if (user && chown(file, user->pw_uid, user->pw_gid) < 0)
        return -1;
    pooler = spawn(postgres, argv);
    return pooler > 0 && wait_ready(conninfo, pooler) ? pooler : -1;
}

static void end(pid_t process, int signal)
{
    if (process > 0) {
        (void)kill(process, signal);
        (void)waitpid(process, NULL, 0);
    }
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

/* The orders of the test, until it closes its end of the line or is gone. */
static void keep(struct det_test_postgres *postgres, int orders, int answers)
{
    pid_t server = -1, pooler = -1;
    struct printed printed;

    (void)setsid();
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN);
    while (read(orders, &printed, sizeof printed) == (ssize_t)sizeof printed) {
        bool ok = true;

        if (printed.order == 'i')
            ok = initialize(postgres) == 0;
        if (printed.order == 'c') {
            end(server, SIGQUIT);
            server = -1;
        }
        if (printed.order == 's')
            ok = (server = start_server(postgres, printed.settings[0] ? printed.settings : NULL)) >
                 0;
        if (printed.order == 'p')
            ok = (pooler = start_pooler(postgres, printed.number)) > 0;
        if (write(answers, &ok, 1) != 1)
            break;
    }
    end(pooler, SIGKILL);
    end(server, SIGQUIT);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): this process has one thread. */
    (void)nftw(postgres->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    _exit(0);
}

static void order(
    struct det_test_postgres *postgres, char order, unsigned number, const char *settings)
{
    struct printed printed = { order, number, "" };
    char path[128];
    bool ok = false;

    snprintf(printed.settings, sizeof printed.settings, "%s", settings ? settings : "");
    assert_int_equal(write(postgres->line, &printed, sizeof printed), sizeof printed);
    if (read(postgres->answer, &ok, 1) == 1 && ok)
        return;
    snprintf(path, sizeof path, "%s/log", postgres->folder);
    fail_msg("PostgreSQL does not do '%c'; its log:\n%s", order, det_test_read_file(path, NULL));
}

static void find_binaries(struct det_test_postgres *postgres)
{
    glob_t found = { 0 };

    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a test has one thread when it opens a server. */
    if (glob(INITDB, 0, NULL, &found) != 0)
        fail_msg("there is no PostgreSQL here; install the package postgresql");
    snprintf(
        postgres->binaries, sizeof postgres->binaries, "%.*s",
        (int)(strlen(found.gl_pathv[found.gl_pathc - 1]) - strlen("/initdb")),
        found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
}

static void make_folder(struct det_test_postgres *postgres)
{
    const struct passwd *user = runner();

    snprintf(postgres->folder, sizeof postgres->folder, "%s/detent-pg-XXXXXX", det_test_place());
    assert_non_null(mkdtemp(postgres->folder));
    assert_int_equal(chmod(postgres->folder, 0755), 0);
    snprintf(
        postgres->pooler_folder, sizeof postgres->pooler_folder, "%s/pooler", postgres->folder);
    assert_int_equal(mkdir(postgres->pooler_folder, 0755), 0);
    if (user) {
        assert_int_equal(chown(postgres->folder, user->pw_uid, user->pw_gid), 0);
        assert_int_equal(chown(postgres->pooler_folder, user->pw_uid, user->pw_gid), 0);
    }
    snprintf(
        postgres->conninfo, sizeof postgres->conninfo, "host=%s user=postgres dbname=postgres",
        postgres->folder);
}

bool det_test_postgres_is_installed(void)
{
    glob_t found = { 0 };
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a test has one thread when it opens a server. */
    bool is_found = glob(INITDB, 0, NULL, &found) == 0;

    globfree(&found);
    return is_found;
}

struct det_test_postgres *det_test_postgres_open(void)
{
    struct det_test_postgres *postgres = calloc(1, sizeof *postgres);
    int orders[2], answers[2];

    assert_non_null(postgres);
    find_binaries(postgres);
    make_folder(postgres);
    assert_int_equal(pipe2(orders, O_CLOEXEC), 0);
    assert_int_equal(pipe2(answers, O_CLOEXEC), 0);
    postgres->keeper = fork();
    assert_true(postgres->keeper >= 0);
    if (postgres->keeper == 0) {
        close(orders[1]);
        close(answers[0]);
        keep(postgres, orders[0], answers[1]);
    }
    close(orders[0]);
    close(answers[1]);
    postgres->line = orders[1];
    postgres->answer = answers[0];
    order(postgres, 'i', 0, NULL);
    order(postgres, 's', 0, NULL);
    return postgres;
}

void det_test_postgres_close(struct det_test_postgres *postgres)
{
    if (!postgres)
        return;
    close(postgres->line);
    close(postgres->answer);
    (void)waitpid(postgres->keeper, NULL, 0);
    free(postgres);
}

char *det_test_postgres_url(struct det_test_postgres *postgres, const char *more)
{
    char *url = NULL;

    if (asprintf(
            &url, "postgres://postgres@/postgres?host=%s&schema=test_%u%s", postgres->folder,
            ++postgres->schemas, more ? more : "") < 0)
        fail_msg("no memory");
    return url;
}

const char *det_test_postgres_host(const struct det_test_postgres *postgres)
{
    return postgres->folder;
}

const char *det_test_postgres_conninfo(const struct det_test_postgres *postgres)
{
    return postgres->conninfo;
}

static void ignore_notice(void *argument, const PGresult *result)
{
    (void)argument;
    (void)result;
}

char *det_test_postgres_execute(struct det_test_postgres *postgres, const char *sql)
{
    PGconn *connection = PQconnectdb(postgres->conninfo);
    char *value = NULL;
    PGresult *result;
    ExecStatusType status;

    (void)PQsetNoticeReceiver(connection, ignore_notice, NULL);
    result = PQexec(connection, sql);
    status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(connection));
    if (status == PGRES_TUPLES_OK && PQntuples(result) && !PQgetisnull(result, 0, 0))
        value = strdup(PQgetvalue(result, 0, 0));
    PQclear(result);
    PQfinish(connection);
    return value;
}

void det_test_postgres_crash(struct det_test_postgres *postgres)
{
    order(postgres, 'c', 0, NULL);
}

void det_test_postgres_start(struct det_test_postgres *postgres, const char *settings)
{
    order(postgres, 's', 0, settings);
}

const char *det_test_postgres_pooler(struct det_test_postgres *postgres, unsigned connections)
{
    if (!postgres->pooler_connections) {
        postgres->pooler_connections = connections;
        order(postgres, 'p', connections, NULL);
    }
    return postgres->pooler_folder;
}

struct det_test_postgres *det_test_server;

int det_test_server_open(void **state)
{
    (void)state;
    det_test_server = det_test_postgres_open();
    return 0;
}

int det_test_server_close(void **state)
{
    (void)state;
    det_test_postgres_close(det_test_server);
    det_test_server = NULL;
    return 0;
}
