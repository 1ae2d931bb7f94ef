/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* serve_safe.c - what is not safe to run is not run; each refusal says what to do. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/remote.h"
#include "cli/serve.h"
#include "cli/socket.h"
#include "console/tokens.h"

static int check_root(struct cli *cli, const struct serve_wish *wish)
{
    if (!wish->is_serving || geteuid() != 0 || wish->user || wish->may_be_root)
        return CLI_OK;
    cli_complain(
        cli, "it would run as root, and so would all that it starts; --user NAME makes it another "
             "user once its sockets are open, --allow-root lets it be");
    return CLI_REFUSED;
}

/* The first address that others than this machine reach; NULL: none. */
static const char *find_open(const struct config_http *http, const struct serve_sockets *sockets)
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

static int check_open(
    struct cli *cli, const char *open, const struct config_http *http, size_t count)
{
    if (!open)
        return CLI_OK;
    if (!http->tls.certificate) {
        cli_complain(
            cli,
            "%s can be reached from other machines, and there is no TLS; write http: {tls: "
            "{certificate: FILE, key: FILE}} into " CONFIG_FILE_NAME ", or listen on 127.0.0.1",
            open);
        return CLI_REFUSED;
    }
    if (count == 0) {
        cli_complain(
            cli,
            "%s can be reached from other machines, and there is no token yet; `detent token "
            "new` makes one",
            open);
        return CLI_REFUSED;
    }
    return CLI_OK;
}

/* How many tokens there are; their file is refused if others can read it. */
static int count_tokens(struct cli *cli, const char *project, size_t *ret)
{
    char folder[DET_PATH_MAX];
    struct tokens_options options = { .allocator = cli->allocator,
                                      .world = cli->world,
                                      .folder = folder };
    struct tokens *tokens = NULL;
    struct det_error error = { 0 };
    int r;

    if (snprintf(folder, sizeof folder, "%s/" SOCKET_FOLDER, project) >= (int)sizeof folder) {
        cli_complain(cli, "%.200s: the path is too long", project);
        return CLI_USAGE;
    }
    r = tokens_open(&options, &tokens, &error);
    if (r < 0) {
        cli_complain(cli, "%s", error.text);
        return remote_exit(r);
    }
    *ret = tokens_count(tokens);
    tokens_close(tokens);
    return CLI_OK;
}

static int check_key(struct cli *cli, const struct http_tls *tls)
{
    struct stat status;

    if (!tls->key)
        return CLI_OK;
    if (stat(tls->key, &status) < 0) {
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
        cli_complain(cli, "%s: %s", tls->key, strerror(errno));
        return CLI_NOT_FOUND;
    }
    if ((status.st_mode & 077) == 0)
        return CLI_OK;
    cli_complain(
        cli, "%s: a key that others can read or write is no secret; chmod 600 makes it one",
        tls->key);
    return CLI_REFUSED;
}

static int check_folder(struct cli *cli, const char *path)
{
    struct stat status;

    if (stat(path, &status) < 0 || (status.st_mode & 002) == 0)
        return CLI_OK;
    cli_complain(
        cli, "%s: everybody may write to this folder, and so replace what is kept there; chmod o-w",
        path);
    return CLI_REFUSED;
}

int serve_check(
    struct cli *cli, const struct serve_wish *wish, const struct config_http *http,
    const struct serve_sockets *sockets)
{
    char state[DET_PATH_MAX + 16];
    size_t count = 0;
    int code = check_root(cli, wish);

    snprintf(state, sizeof state, "%s/" SOCKET_FOLDER, wish->project);
    if (code == CLI_OK)
        code = check_key(cli, &http->tls);
    if (code == CLI_OK)
        code = count_tokens(cli, wish->project, &count);
    if (code == CLI_OK)
        code = check_open(cli, find_open(http, sockets), http, count);
    if (code == CLI_OK && wish->is_serving)
        code = check_folder(cli, wish->project);
    if (code == CLI_OK && wish->is_serving)
        code = check_folder(cli, state);
    return code;
}
