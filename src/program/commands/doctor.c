/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* doctor.c - `detent doctor`: finds unsafe settings and permissions of a project, and suggests
 * remedies. It changes nothing and queries a PostgreSQL server, but no running daemon. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <detent/driver/store.h>

#include "auth/tokens.h"
#include "base/text.h"
#include "client/remote.h"
#include "config/config_internal.h"
#include "config/socket_place.h"
#include "daemon/host.h"
#include "http/tls_stream.h"
#include "terminal/command.h"
#include "json/writer.h"

#define CERTIFICATE_SOON (30 * DET_DAY)
#define TOKEN_SOON       (7 * DET_DAY)

/* Limits and signatures for searching a data folder. */
#define ENTRIES_MAX           10000
#define SQLITE_HEAD           "SQLite format 3"
#define SQLITE_HEAD_SIZE      100
#define SQLITE_APPLICATION_AT 68
#define SQLITE_APPLICATION    "dete" /* of stores, docs/formats/sql_schema.md */
#define EXPORT_HEAD           "{\"kind\":\"store\",\"format\":"

struct doctor {
    struct cli *cli;
    struct config_file file;
    struct serve_sockets none;
    char project[DET_PATH_MAX];
    det_time now; /* wall */
    size_t careless, unsafe;
};

static void print_finding(struct cli *cli, const char *level, const char *text)
{
    struct det_json_writer json;

    if (!cli->is_json) {
        cli_print(cli, "%-8s  %s\n", level, text);
        return;
    }
    cli_json_begin(cli, &json, "finding");
    det_json_text(&json, "level", level);
    det_json_text(&json, "text", text);
    cli_json_end(cli, &json);
}

/* Unsafe findings, on which `detent serve` refuses to run; the others are careless. */
static void on_found(void *user, int code, const char *text)
{
    struct doctor *doctor = user;

    if (code == CLI_OK)
        doctor->careless++;
    else
        doctor->unsafe++;
    print_finding(doctor->cli, code == CLI_OK ? "careless" : "unsafe", text);
}

static void add_finding(struct doctor *doctor, int code, const char *format, ...) DET_PRINTF(3, 4);

static void add_finding(struct doctor *doctor, int code, const char *format, ...)
{
    char text[2 * DET_ERROR_TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    on_found(doctor, code, text);
}

static void check_owner(struct doctor *doctor, const char *path)
{
    struct stat status;

    if (stat(path, &status) == 0 && status.st_uid != geteuid() && status.st_uid != 0 &&
        geteuid() != 0)
        add_finding(
            doctor, CLI_OK, "%s: the file belongs to another user, who may change it", path);
}

/* Files. `why` is the reason against permitting others to read it. */
static void check_file(struct doctor *doctor, const char *path, const char *why)
{
    struct stat status;

    if (stat(path, &status) < 0)
        return;
    if (status.st_mode & 002)
        add_finding(doctor, CLI_REFUSED, "%s: everybody may change it; chmod o-w", path);
    else if (status.st_mode & 004)
        add_finding(doctor, CLI_OK, "%s: everybody may read it, %s; chmod o-r", path, why);
    check_owner(doctor, path);
}

/* Only the owner may access the data of instances. */
static void check_data(struct doctor *doctor, const char *path)
{
    struct stat status;

    if (lstat(path, &status) == 0 && (status.st_mode & 077))
        add_finding(
            doctor, CLI_REFUSED,
            "%s: mode %04o lets other users read or write the data of instances; run: chmod %s %s",
            path, (unsigned)(status.st_mode & 07777), S_ISDIR(status.st_mode) ? "700" : "600",
            path);
}

static void check_state(struct doctor *doctor)
{
    char path[DET_PATH_MAX + 16];

    snprintf(path, sizeof path, "%s/" SOCKET_FOLDER, doctor->project);
    check_data(doctor, path);
}

/* Returns true for the name of a file of the store: "shop.db", "shop.db-wal", "shop.db.mark". */
static bool is_beside(const char *name, const char *store)
{
    size_t length = strlen(store);

    return strncmp(name, store, length) == 0 && (!name[length] || strchr("-.", name[length]));
}

/* Returns true for a store, such as a backup, and for an export, whatever its name. */
static bool has_instances(int folder, const char *name)
{
    int descriptor = openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    unsigned char head[SQLITE_HEAD_SIZE] = { 0 };
    ssize_t size = descriptor < 0 ? -1 : read(descriptor, head, sizeof head);

    if (descriptor >= 0)
        close(descriptor);
    if (size == sizeof head && memcmp(head, SQLITE_HEAD, sizeof SQLITE_HEAD) == 0)
        return memcmp(head + SQLITE_APPLICATION_AT, SQLITE_APPLICATION, 4) == 0;
    return size >= (ssize_t)strlen(EXPORT_HEAD) &&
           memcmp(head, EXPORT_HEAD, strlen(EXPORT_HEAD)) == 0;
}

static void inspect_entry(
    struct doctor *doctor, int folder, const char *path, const char *name, const char *store)
{
    char whole[2 * DET_PATH_MAX];
    struct stat status;

    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
        (status.st_mode & 077) && (is_beside(name, store) || has_instances(folder, name))) {
        snprintf(whole, sizeof whole, "%s/%s", path, name);
        check_data(doctor, whole);
    }
}

/* A data folder: the files of the store, and copies of it. */
static void check_copies(struct doctor *doctor, const char *path, const char *store)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;

    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours */
    for (size_t i = 0; folder && i < ENTRIES_MAX && (entry = readdir(folder)); i++)
        inspect_entry(doctor, dirfd(folder), path, entry->d_name, store);
    if (folder)
        closedir(folder);
}

static bool may_use(const char *path, int how)
{
    return faccessat(AT_FDCWD, path, how, AT_EACCESS) == 0 || errno != EACCES;
}

/* Root can use every file, so compare with the owner of the folder. A folder that others may write
 * to may contain files of other users, but not of root. */
static void check_owners(
    struct doctor *doctor, const char *path, const struct stat *file, const struct stat *folder)
{
    if (file->st_uid != folder->st_uid && (file->st_uid == 0 || !(folder->st_mode & 022)))
        add_finding(
            doctor, folder->st_uid != 0 ? CLI_REFUSED : CLI_OK,
            "%s: a file of the store belongs to user %u, but its folder to user %u; sudo chown "
            "%u:%u %s",
            path, (unsigned)file->st_uid, (unsigned)folder->st_uid, (unsigned)folder->st_uid,
            (unsigned)folder->st_gid, path);
}

static void check_use(struct doctor *doctor, const char *path, const struct stat *file)
{
    unsigned user = (unsigned)geteuid();

    if (may_use(path, R_OK | W_OK))
        return;
    if (file->st_uid == geteuid())
        add_finding(
            doctor, CLI_REFUSED,
            "%s: mode %04o does not let its owner read and write the store; chmod 600", path,
            (unsigned)(file->st_mode & 07777));
    else
        add_finding(
            doctor, CLI_REFUSED,
            "%s: user %u may not read and write this file of the store, it belongs to user %u; "
            "sudo chown %u:%u %s",
            path, user, (unsigned)file->st_uid, user, (unsigned)getegid(), path);
}

/* Checks that the user can open all files of the store. */
static void check_users(struct doctor *doctor, const char *store, const char *folder)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", ".mark", ".lock" };
    char path[2 * DET_PATH_MAX + 8];
    struct stat status, above;

    if (!may_use(folder, W_OK | X_OK))
        add_finding(
            doctor, CLI_REFUSED,
            "%s: user %u may not enter or write to the folder of the store; sudo chown %u:%u %s",
            folder, (unsigned)geteuid(), (unsigned)geteuid(), (unsigned)getegid(), folder);
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        snprintf(path, sizeof path, "%s%s", store, suffixes[i]);
        if (stat(folder, &above) < 0 || lstat(path, &status) < 0)
            continue;
        /* Root must not chown the target of a user's link. */
        if (S_ISLNK(status.st_mode) && (geteuid() == 0 || stat(path, &status) < 0))
            continue;
        if (geteuid() == 0)
            check_owners(doctor, path, &status, &above);
        else
            check_use(doctor, path, &status);
    }
}

/* Timeout for reading the settings of a server. */
#define SERVER_WAIT (5 * DET_SECOND)

static bool is_server(const char *url)
{
    return strncmp(url, "postgres:", 9) == 0 || strncmp(url, "postgresql:", 11) == 0;
}

/* A server without a store is not checked. */
static void check_server(struct doctor *doctor, const char *url)
{
    const struct det_store_options options = { .world = doctor->cli->world,
                                               .allocator = doctor->cli->allocator,
                                               .timeout = SERVER_WAIT,
                                               .is_read_only = true,
                                               .must_exist = true };
    struct det_store *store = NULL;
    struct det_error error = { 0 };
    int r;

    r = det_store_open_with(url, &options, &store, &error);
    if (r == 0 && store->advice)
        add_finding(doctor, CLI_OK, "store: %s", store->advice);
    else if (r < 0 && r != DET_ERR_NOT_FOUND)
        add_finding(doctor, CLI_OK, "store: its settings were not examined: %s", error.text);
    det_store_close(store);
}

static void check_store(struct doctor *doctor)
{
    const char *named = doctor->file.config.store, *url = named ? named : CONFIG_STORE_DEFAULT;
    char path[2 * DET_PATH_MAX], folder[DET_PATH_MAX];

    if (is_server(url))
        check_server(doctor, url);
    if (strncmp(url, "sqlite:", 7) != 0)
        return;
    snprintf(
        path, sizeof path, "%s%s%.*s", url[7] == '/' ? "" : doctor->project,
        url[7] == '/' ? "" : "/", (int)strcspn(url + 7, "?"), url + 7);
    if (det_file_folder(path, folder) < 0)
        return;
    check_users(doctor, path, folder);
    check_copies(doctor, folder, strrchr(path, '/') + 1);
    if (strcmp(folder, doctor->project) != 0)
        check_copies(doctor, doctor->project, strrchr(path, '/') + 1);
}

/* Environment files. They are removed from the config, so that a refused one does not hide the
 * other findings. */
static void check_variables(struct doctor *doctor)
{
    struct config *config = &doctor->file.config;

    for (size_t i = 0; i < config->task_count; i++) {
        struct config_task *task = &config->tasks[i];

        for (const char *const *name = task->env_files; name && *name; name++) {
            bool is_complete = **name == '/';
            const char *const *unused;
            char path[2 * DET_PATH_MAX];
            struct det_error error;

            snprintf(
                path, sizeof path, "%s%s%s", is_complete ? "" : doctor->project,
                is_complete ? "" : "/", *name);
            if (config_read_variables(path, config->owner, &doctor->file.arena, &unused, &error) <
                0)
                add_finding(doctor, CLI_REFUSED, "%s", error.text);
            else
                check_file(doctor, path, "and a secret may be in it");
        }
        task->env_files = NULL;
    }
}

static void check_secrets(struct doctor *doctor)
{
    const struct config *config = &doctor->file.config;

    for (size_t i = 0; i < config->machine_count; i++) {
        const struct config_machine *machine = &config->machines[i];

        for (size_t j = 0; j < machine->effect_count; j++) {
            const struct config_headers *headers = &machine->effects[j].headers;

            for (size_t k = 0; k < headers->count; k++) {
                if (headers->items[k].from == CONFIG_HEADER_FILE)
                    check_file(doctor, headers->items[k].value, "and a secret is in it");
            }
        }
    }
}

/* The HTTP API. */

static void check_dates(struct doctor *doctor)
{
    const char *path = doctor->file.config.http.tls.certificate;
    struct det_error error = { 0 };
    char text[DET_TIME_TEXT];
    det_time from, until;

    if (!path)
        return;
    if (http_tls_dates(path, &from, &until, &error) < 0) {
        add_finding(doctor, CLI_NOT_FOUND, "%s", error.text);
        return;
    }
    det_format_time(doctor->now < from ? from : until, text, sizeof text);
    if (doctor->now < from)
        add_finding(doctor, CLI_REFUSED, "%s: the certificate is not valid before %s", path, text);
    else if (doctor->now >= until)
        add_finding(doctor, CLI_REFUSED, "%s: the certificate has expired, %s", path, text);
    else if (until - doctor->now < CERTIFICATE_SOON)
        add_finding(doctor, CLI_OK, "%s: the certificate expires soon, %s", path, text);
}

static void check_http(struct doctor *doctor)
{
    const struct config_http *http = &doctor->file.config.http;
    const char *open = serve_open_address(http, &doctor->none);

    if (open && http->rate == CONFIG_UNLIMITED)
        add_finding(
            doctor, CLI_OK,
            "%s can be reached from other machines, and http.rate is unlimited: one token can use "
            "all capacity",
            open);
}

static void check_token(struct doctor *doctor, const struct token *token)
{
    char text[DET_TIME_TEXT];

    if (!token->expires && token->scopes & TOKENS_ADMIN)
        add_finding(
            doctor, CLI_OK,
            "token %s (%s) may do everything and never expires; replace it with `detent token new "
            "--expires 90d`, then `detent token revoke %s`",
            token->id, token->name, token->id);
    if (!token->expires || strcmp(token->name, TOKENS_CONSOLE) == 0)
        return;
    det_format_time(token->expires, text, sizeof text);
    if (token->expires > doctor->now && token->expires - doctor->now < TOKEN_SOON)
        add_finding(doctor, CLI_OK, "token %s (%s) expires soon, %s", token->id, token->name, text);
}

/* Problems of the file itself were reported before. */
static void check_tokens(struct doctor *doctor)
{
    char folder[DET_PATH_MAX + sizeof SOCKET_FOLDER + 1];
    struct tokens_options options = { .allocator = doctor->cli->allocator,
                                      .world = doctor->cli->world,
                                      .folder = folder };
    struct tokens *tokens = NULL;
    struct det_error error;
    struct token token;

    snprintf(folder, sizeof folder, "%s/" SOCKET_FOLDER, doctor->project);
    if (tokens_open(&options, &tokens, &error) < 0)
        return;
    for (size_t i = 0; tokens_at(tokens, i, &token); i++)
        check_token(doctor, &token);
    tokens_close(tokens);
}

static void check_all(struct doctor *doctor)
{
    const struct serve_request request = { .project = doctor->project,
                                           .path = doctor->file.path,
                                           .is_serving = true,
                                           .may_be_root = true };

    if (geteuid() == 0)
        add_finding(
            doctor, CLI_OK,
            "running as root: all tasks would run as root, too; use `detent serve --user NAME`");
    serve_examine(
        doctor->cli, &request, &doctor->file.config.http, &doctor->none, on_found, doctor);
    check_store(doctor);
    check_state(doctor);
    check_secrets(doctor);
    check_dates(doctor);
    check_http(doctor);
    check_tokens(doctor);
}

static int resolve_config(struct doctor *doctor, const char *path)
{
    static const char *const nothing[] = { NULL };
    char *whole;
    int r;

    r = det_file_folder(path, doctor->project);
    whole = r == 0 ? realpath(doctor->project, NULL) : NULL;
    if (whole)
        snprintf(doctor->project, sizeof doctor->project, "%s", whole);
    free(whole);
    check_variables(doctor);
    if (r == 0)
        r = config_settle(&doctor->file.config, &doctor->file.arena, doctor->project, nothing);
    if (r < 0)
        cli_report_error(doctor->cli, "%s: %s", path, det_error_text(r));
    return r < 0 ? cli_exit_of(r) : CLI_OK;
}

static int examine(struct doctor *doctor, const char *path)
{
    int code;

    code = config_project_open(doctor->cli, path, false, &doctor->file);
    if (code == CLI_OK)
        code = resolve_config(doctor, path);
    if (code != CLI_OK)
        return code;
    check_all(doctor);
    if (!doctor->unsafe && !doctor->careless)
        cli_print_error(doctor->cli, "Nothing unsafe was found.\n");
    return doctor->unsafe ? CLI_REFUSED : CLI_OK;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    struct doctor doctor = { .cli = cli, .now = det_world_now(cli->world, DET_CLOCK_WALL) };
    char path[DET_PATH_MAX + sizeof CONFIG_FILE_NAME + 1];
    struct det_error error = { 0 };
    int code, r;

    (void)args;
    r = serve_project(doctor.project, &error);
    if (r < 0) {
        cli_report_error(cli, "%s", error.text);
        return cli_exit_of(r);
    }
    snprintf(path, sizeof path, "%s/" CONFIG_FILE_NAME, doctor.project);
    code = examine(&doctor, path);
    config_file_close(cli, &doctor.file);
    return code;
}

extern const struct cli_command cli_command_doctor;
const struct cli_command cli_command_doctor = {
    .name = "doctor",
    .summary = "check a project for unsafe settings and permissions",
    .about = "Checks the detent.yaml of the folder and who may read and change it, the store,\n"
             "the files with secrets and tokens, the addresses of the HTTP API, and when tokens\n"
             "and the certificate expire. With an unsafe finding the exit code is 6, and `detent\n"
             "serve` refuses to run, since others could control the project. Careless settings\n"
             "are only reported.",
    .operand = { .form = "" },
    .run = run_command,
};
