/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* serve_safe.c - what is not safe to run is not run; each refusal says what to do. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/remote.h"
#include "cli/serve.h"
#include "cli/socket.h"
#include "console/tokens.h"
#include "os/os.h"

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
        tell(look, remote_exit(r), "%s", error.text);
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

static void look_at_folder(const struct look *look, const char *path)
{
    struct stat status;

    if (stat(path, &status) == 0 && status.st_mode & 002)
        tell(
            look, CLI_REFUSED,
            "%s: everybody may write to this folder, and so replace what is kept there; chmod o-w",
            path);
}

/* Whether the owner of a file that says what runs is root or the user who will run it. */
static bool is_trusted(const struct serve_wish *wish, uid_t owner)
{
    uid_t runner = geteuid();

    if (wish->user && serve_find_user(wish->user, &runner) < 0)
        return true; /* serve_become() says that there is no such user */
    return owner == 0 || owner == runner;
}

/* Who may change the file decides what runs here, as our user. Where everybody may write to its
 * folder the file can be replaced, unless the folder is sticky, as /tmp is. */
static void look_at_file(const struct look *look, const struct serve_wish *wish)
{
    char folder[DET_PATH_MAX];
    struct stat status;

    if (!wish->path || stat(wish->path, &status) < 0)
        return;
    if (status.st_mode & 002)
        tell(
            look, CLI_REFUSED,
            "%s: everybody may change it, and so what is run here; chmod o-w makes it yours",
            wish->path);
    else if (wish->is_serving && !is_trusted(wish, status.st_uid))
        tell(
            look, CLI_REFUSED,
            "%s: its owner is user %u, who could change what is run here; chown it to root or to "
            "the user who runs it",
            wish->path, (unsigned)status.st_uid);
    if (det_file_folder(wish->path, folder) < 0 || stat(folder, &status) < 0)
        return;
    if ((status.st_mode & 002) && !(status.st_mode & S_ISVTX))
        tell(
            look, CLI_REFUSED,
            "%s: everybody may write to this folder, and so replace " CONFIG_FILE_NAME
            "; chmod o-w makes it yours",
            folder);
}

void serve_examine(
    struct cli *cli, const struct serve_wish *wish, const struct config_http *http,
    const struct serve_sockets *sockets, serve_found_fn *found, void *user)
{
    const struct look look = { cli, found, user };
    char state[DET_PATH_MAX + 16];

    snprintf(state, sizeof state, "%s/" SOCKET_FOLDER, wish->project);
    look_at_root(&look, wish);
    look_at_file(&look, wish);
    look_at_key(&look, &http->tls);
    look_at_open(
        &look, serve_open_address(http, sockets), http, look_at_tokens(&look, wish->project));
    if (wish->is_serving) {
        look_at_folder(&look, wish->project);
        look_at_folder(&look, state);
    }
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
