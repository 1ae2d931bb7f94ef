/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* safety_checks.c - refuses to run what is unsafe; each message says what to do. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/tokens.h"
#include "config/socket_place.h"
#include "daemon/host.h"
#include "http/address.h"
#include "os/os.h"
#include "terminal/input.h"
#include "terminal/trust.h"

/* The receiver of findings. */
struct checks {
    struct cli *cli;
    serve_found_fn *found;
    void *user;
};

static void report_finding(const struct checks *checks, int code, const char *format, ...)
    DET_PRINTF(3, 4);

static void report_finding(const struct checks *checks, int code, const char *format, ...)
{
    char text[2 * DET_ERROR_TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    checks->found(checks->user, code, text);
}

static void check_root(const struct checks *checks, const struct serve_request *request)
{
    if (request->is_serving && geteuid() == 0 && !request->user && !request->may_be_root)
        report_finding(
            checks, CLI_REFUSED,
            "detent and all its tasks would run as root; --user NAME changes the user once the "
            "sockets are open, --allow-root permits root");
}

const char *serve_open_address(const struct config_http *http, const struct serve_sockets *sockets)
{
    union http_address address;

    for (size_t i = 0; i < sockets->count; i++) {
        if (!sockets->items[i].is_loopback)
            return sockets->items[i].text;
    }
    for (const char *const *listen = http->listen; !sockets->is_given && *listen; listen++) {
        if (http_address_read(*listen, &address, NULL) == 0 && !http_address_is_loopback(&address))
            return *listen;
    }
    return NULL;
}

static void check_address(
    const struct checks *checks, const char *open, const struct config_http *http, size_t count)
{
    if (open && !http->tls.certificate)
        report_finding(
            checks, CLI_REFUSED,
            "%s can be reached from other machines, and there is no TLS; write http: {tls: "
            "{certificate: FILE, key: FILE}} into " CONFIG_FILE_NAME ", or listen on 127.0.0.1",
            open);
    else if (open && count == 0)
        report_finding(
            checks, CLI_REFUSED,
            "%s can be reached from other machines, and there is no token yet; 'detent token "
            "new' creates one",
            open);
}

/* Returns the number of tokens, or SIZE_MAX: their file is refused if others can read it. */
static size_t count_tokens(const struct checks *checks, const char *project)
{
    char folder[DET_PATH_MAX];
    struct tokens_options options = { .allocator = checks->cli->allocator,
                                      .world = checks->cli->world,
                                      .folder = folder };
    struct tokens *tokens = NULL;
    struct det_error error = { 0 };
    size_t count;
    int r;

    if (snprintf(folder, sizeof folder, "%s/" SOCKET_FOLDER, project) >= (int)sizeof folder) {
        report_finding(checks, CLI_USAGE, "%.200s: the path is too long", project);
        return SIZE_MAX;
    }
    r = tokens_open(&options, &tokens, &error);
    if (r < 0) {
        report_finding(checks, cli_exit_of(r), "%s", error.text);
        return SIZE_MAX;
    }
    count = tokens_count(tokens);
    tokens_close(tokens);
    return count;
}

static void check_key(const struct checks *checks, const struct http_tls *tls)
{
    struct stat status;

    if (!tls->key)
        return;
    if (stat(tls->key, &status) < 0)
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
        report_finding(checks, CLI_NOT_FOUND, "%s: %s", tls->key, strerror(errno));
    else if (status.st_mode & 077)
        report_finding(
            checks, CLI_REFUSED, "%s: others can read or write this private key; run: chmod 600 %s",
            tls->key, tls->key);
}

/* The user that tasks will run as. */
static uid_t runner_of(const struct serve_request *request)
{
    uid_t runner = geteuid();

    /* serve_become() reports an unknown user. */
    if (request->user && serve_find_user(request->user, &runner) < 0)
        return geteuid();
    return runner;
}

/* At a terminal a user may run a file of another user; root and a daemon may not. */
static bool checks_owner(const struct serve_request *request)
{
    return request->is_serving || geteuid() == 0;
}

static void report_owner(const struct checks *checks, const char *path, const struct stat *status)
{
    report_finding(
        checks, CLI_REFUSED,
        "%s: its owner is user %u, who could change what runs here; chown it to root or to the "
        "user that runs detent",
        path, (unsigned)status->st_uid);
}

/* Whoever can change the file decides what runs here, as our user. */
static void check_file(const struct checks *checks, const struct serve_request *request)
{
    struct stat status;
    enum trust trust;

    if (!request->path || stat(request->path, &status) < 0)
        return;
    trust = trust_of(&status, runner_of(request));
    if (trust == TRUST_OWNER && checks_owner(request))
        report_owner(checks, request->path, &status);
    else if (trust == TRUST_GROUP || trust == TRUST_EVERYBODY)
        report_finding(
            checks, CLI_REFUSED, "%s: %s may change it, and so what runs here; run: %s %s",
            request->path, trust_who(trust), trust_chmod(trust), request->path);
}

/* Whoever can write to a folder can replace its content, `kept`. In a sticky folder such as /tmp
 * files of other users cannot be replaced, which is enough at a terminal. */
static void check_folder(
    const struct checks *checks, const struct serve_request *request, const char *path,
    const char *kept)
{
    struct stat status;
    enum trust trust;

    if (stat(path, &status) < 0)
        return;
    trust = request->is_serving ? trust_of(&status, runner_of(request))
                                : trust_of_sticky(&status, runner_of(request));
    if (trust == TRUST_OWNER && checks_owner(request))
        report_owner(checks, path, &status);
    else if (trust == TRUST_GROUP || trust == TRUST_EVERYBODY)
        report_finding(
            checks, CLI_REFUSED, "%s: %s may write to this folder, and so replace %s; run: %s %s",
            path, trust_who(trust), kept, trust_chmod(trust), path);
}

static void check_folders(const struct checks *checks, const struct serve_request *request)
{
    char state[DET_PATH_MAX + 16], folder[DET_PATH_MAX];
    bool has_file = request->path && access(request->path, F_OK) == 0 &&
                    det_file_folder(request->path, folder) == 0;

    snprintf(state, sizeof state, "%s/" SOCKET_FOLDER, request->project);
    if (has_file)
        check_folder(checks, request, folder, CONFIG_FILE_NAME);
    else if (checks_owner(request))
        check_folder(checks, request, request->project, "its content");
    if (request->is_serving)
        check_folder(checks, request, state, "its content");
}

void serve_examine(
    struct cli *cli, const struct serve_request *request, const struct config_http *http,
    const struct serve_sockets *sockets, serve_found_fn *found, void *user)
{
    const struct checks checks = { cli, found, user };

    check_root(&checks, request);
    check_file(&checks, request);
    check_folders(&checks, request);
    check_key(&checks, &http->tls);
    check_address(
        &checks, serve_open_address(http, sockets), http, count_tokens(&checks, request->project));
}

/* The first finding refuses the run. */
struct refusal {
    struct cli *cli;
    int code;
};

static void refuse_run(void *user, int code, const char *text)
{
    struct refusal *refusal = user;

    if (refusal->code != CLI_OK)
        return;
    refusal->code = code;
    cli_report_error(refusal->cli, "%s", text);
}

int serve_check(
    struct cli *cli, const struct serve_request *request, const struct config_http *http,
    const struct serve_sockets *sockets)
{
    struct refusal refusal = { cli, CLI_OK };

    serve_examine(cli, request, http, sockets, refuse_run, &refusal);
    return refusal.code;
}
