/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* safety_checks.c - what is not safe to run is not run; each refusal says what to do. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/tokens.h"
#include "config/socket_place.h"
#include "daemon/serve.h"
#include "os/os.h"
#include "terminal/input.h"
#include "terminal/trust.h"

/* Who is told. */
struct look {
    struct cli *cli;
    serve_found_fn *found;
    void *user;
};

static void tell(const struct look *look, int code, const char *format, ...) DET_PRINTF(3, 4);

static void tell(const struct look *look, int code, const char *format, ...)
{
    char text[2 * DET_ERROR_TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    look->found(look->user, code, text);
}

static void look_at_root(const struct look *look, const struct serve_wish *wish)
{
    if (wish->is_serving && geteuid() == 0 && !wish->user && !wish->may_be_root)
        tell(
            look, CLI_REFUSED,
            "it would run as root, and so would all that it starts; --user NAME makes it another "
            "user once its sockets are open, --allow-root lets it be");
}

const char *serve_open_address(const struct config_http *http, const struct serve_sockets *sockets)
{
    struct config_address address;
    struct det_error error;

    for (size_t i = 0; i < sockets->count; i++) {
        if (!sockets->items[i].is_loopback)
            return sockets->items[i].text;
    }
    for (const char *const *listen = http->listen; !sockets->is_given && *listen; listen++) {
        if (config_parse_address(*listen, &address, &error) == 0 && !address.is_loopback)
            return *listen;
    }
    return NULL;
}

static void look_at_open(
    const struct look *look, const char *open, const struct config_http *http, size_t count)
{
    if (open && !http->tls.certificate)
        tell(
            look, CLI_REFUSED,
            "%s can be reached from other machines, and there is no TLS; write http: {tls: "
            "{certificate: FILE, key: FILE}} into " CONFIG_FILE_NAME ", or listen on 127.0.0.1",
            open);
    else if (open && count == 0)
        tell(
            look, CLI_REFUSED,
            "%s can be reached from other machines, and there is no token yet; `detent token "
            "new` makes one",
            open);
}

/* How many tokens there are, or SIZE_MAX: their file is refused if others can read it. */
static size_t look_at_tokens(const struct look *look, const char *project)
{
    char folder[DET_PATH_MAX];
    struct tokens_options options = { .allocator = look->cli->allocator,
                                      .world = look->cli->world,
                                      .folder = folder };
    struct tokens *tokens = NULL;
    struct det_error error = { 0 };
    size_t count;
    int r;

    if (snprintf(folder, sizeof folder, "%s/" SOCKET_FOLDER, project) >= (int)sizeof folder) {
        tell(look, CLI_USAGE, "%.200s: the path is too long", project);
        return SIZE_MAX;
    }
    r = tokens_open(&options, &tokens, &error);
    if (r < 0) {
        tell(look, cli_exit_of_request(r), "%s", error.text);
        return SIZE_MAX;
    }
    count = tokens_count(tokens);
    tokens_close(tokens);
    return count;
}

static void look_at_key(const struct look *look, const struct http_tls *tls)
{
    struct stat status;

    if (!tls->key)
        return;
    if (stat(tls->key, &status) < 0)
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
        tell(look, CLI_NOT_FOUND, "%s: %s", tls->key, strerror(errno));
    else if (status.st_mode & 077)
        tell(
            look, CLI_REFUSED,
            "%s: a key that others can read or write is no secret; chmod 600 makes it one",
            tls->key);
}

/* Who will run what the file says. */
static uid_t runner_of(const struct serve_wish *wish)
{
    uid_t runner = geteuid();

    /* serve_become() says that there is no such user. */
    if (wish->user && serve_find_user(wish->user, &runner) < 0)
        return geteuid();
    return runner;
}

/* A user may run at a terminal what somebody else has written; root and a daemon do not. */
static bool is_owner_told(const struct serve_wish *wish)
{
    return wish->is_serving || geteuid() == 0;
}

static void tell_owner(const struct look *look, const char *path, const struct stat *status)
{
    tell(
        look, CLI_REFUSED,
        "%s: its owner is user %u, who could change what is run here; chown it to root or to the "
        "user who runs it",
        path, (unsigned)status->st_uid);
}

/* Who may change the file decides what runs here, as our user. */
static void look_at_file(const struct look *look, const struct serve_wish *wish)
{
    struct stat status;
    enum trust trust;

    if (!wish->path || stat(wish->path, &status) < 0)
        return;
    trust = trust_of(&status, runner_of(wish));
    if (trust == TRUST_OWNER && is_owner_told(wish))
        tell_owner(look, wish->path, &status);
    else if (trust == TRUST_GROUP || trust == TRUST_EVERYBODY)
        tell(
            look, CLI_REFUSED, "%s: %s may change it, and so what is run here; %s makes it yours",
            wish->path, trust_who(trust), trust_chmod(trust));
}

/* Who may write to a folder can replace what is there: `kept`. In one that is sticky, as /tmp is,
 * nobody replaces the file of another user, which is enough at a terminal. */
static void look_at_folder(
    const struct look *look, const struct serve_wish *wish, const char *path, const char *kept)
{
    struct stat status;
    enum trust trust;

    if (stat(path, &status) < 0)
        return;
    trust = wish->is_serving ? trust_of(&status, runner_of(wish))
                             : trust_of_sticky(&status, runner_of(wish));
    if (trust == TRUST_OWNER && is_owner_told(wish))
        tell_owner(look, path, &status);
    else if (trust == TRUST_GROUP || trust == TRUST_EVERYBODY)
        tell(
            look, CLI_REFUSED,
            "%s: %s may write to this folder, and so replace %s; %s makes it yours", path,
            trust_who(trust), kept, trust_chmod(trust));
}

static void look_at_folders(const struct look *look, const struct serve_wish *wish)
{
    char state[DET_PATH_MAX + 16], folder[DET_PATH_MAX];
    bool has_file =
        wish->path && access(wish->path, F_OK) == 0 && det_file_folder(wish->path, folder) == 0;

    snprintf(state, sizeof state, "%s/" SOCKET_FOLDER, wish->project);
    if (has_file)
        look_at_folder(look, wish, folder, CONFIG_FILE_NAME);
    else if (is_owner_told(wish))
        look_at_folder(look, wish, wish->project, "what is kept there");
    if (wish->is_serving)
        look_at_folder(look, wish, state, "what is kept there");
}

void serve_examine(
    struct cli *cli, const struct serve_wish *wish, const struct config_http *http,
    const struct serve_sockets *sockets, serve_found_fn *found, void *user)
{
    const struct look look = { cli, found, user };

    look_at_root(&look, wish);
    look_at_file(&look, wish);
    look_at_folders(&look, wish);
    look_at_key(&look, &http->tls);
    look_at_open(
        &look, serve_open_address(http, sockets), http, look_at_tokens(&look, wish->project));
}

/* The first one is enough not to run. */
struct refusal {
    struct cli *cli;
    int code;
};

static void refuse(void *user, int code, const char *text)
{
    struct refusal *refusal = user;

    if (refusal->code != CLI_OK)
        return;
    refusal->code = code;
    cli_complain(refusal->cli, "%s", text);
}

int serve_check(
    struct cli *cli, const struct serve_wish *wish, const struct config_http *http,
    const struct serve_sockets *sockets)
{
    struct refusal refusal = { cli, CLI_OK };

    serve_examine(cli, wish, http, sockets, refuse, &refusal);
    return refusal.code;
}
