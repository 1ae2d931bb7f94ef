/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_url.c - finds and opens a store. */
#include "inspect/store_url.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/assert.h"
#include "config/socket_place.h"
#include "inspect/store_internal.h"

/* How long to wait for another writer, and the maximum pause between two attempts, doubled at
 * most. */
#define TURN_SPAN  (5 * DET_SECOND)
#define TURN_PAUSE (10 * DET_MILLISECOND)
/* After this time the wait is reported. */
#define TURN_QUIET DET_SECOND

int cli_report_store_error(struct cli_store *store, int code, const struct det_error *error)
{
    struct cli *cli = store->cli;

    det_assert(code < 0);
    store->error = code;
    if (code == DET_ERR_NO_MEMORY)
        return cli_no_memory(cli);
    if (!error && store->served_error && store->served_error->code == code)
        error = store->served_error;
    if (code == DET_ERR_CANCELLED && cli_is_stopped(cli))
        return CLI_INTERRUPTED;
    if (error && error->code == code && error->text[0])
        cli_report_error(cli, "%s", error->text);
    else if (code == DET_ERR_CORRUPT)
        cli_report_error(
            cli,
            "%s is damaged; 'detent store verify' shows where, if possible; take the "
            "newest backup",
            store->url);
    else if (code == DET_ERR_VERSION)
        cli_report_error(
            cli,
            "%s: something in it does not fit the definition of its machine, or is damaged; "
            "'detent store verify' shows the damage",
            store->url);
    else
        cli_report_error(cli, "%s: %s", store->url, det_error_text(code));
    return cli_exit_of(code);
}

static const char *url_given(const struct cli_store *store)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): no thread sets the environment */
    const char *environment = getenv("DETENT_STORE");

    if (store->request.url)
        return store->request.url;
    return environment && *environment ? environment : NULL;
}

/* Reads the project of the current folder if it exists and is needed: a store given by URL contains
 * everything needed for reading. Problems were reported. */
static int read_project(struct cli_store *store)
{
    struct det_error error = { 0 };
    char *path;

    if (url_given(store) && !store->request.is_writing)
        return CLI_OK;
    if (socket_find(".", store->folder, &error) < 0) {
        store->folder[0] = '\0';
        return CLI_OK;
    }
    if (cli_is_there(CONFIG_FILE_NAME))
        snprintf(store->folder, sizeof store->folder, ".");
    path = det_arena_format(&store->arena, "%s/" CONFIG_FILE_NAME, store->folder);
    if (!path)
        return cli_no_memory(store->cli);
    if (strcmp(store->folder, ".") == 0)
        path += 2;
    return config_project_open(store->cli, path, false, &store->project);
}

const char *store_in_project(struct cli_store *store, const char *path)
{
    if (path[0] == '/' || strcmp(store->folder, ".") == 0)
        return path;
    return det_arena_format(&store->arena, "%s/%s", store->folder, path);
}

const char *store_url_in(struct det_arena *arena, const char *folder, const char *url)
{
    static const char scheme[] = "sqlite:";
    const char *path = url + sizeof scheme - 1;

    if (strncmp(url, scheme, sizeof scheme - 1) != 0 || *path == '/' || strcmp(folder, ".") == 0)
        return url;
    return det_arena_format(arena, "%s%s/%s", scheme, folder, path);
}

/* Removes the text between two positions. */
static void take_out(char *from, const char *to)
{
    det_assert(from <= to);
    memmove(from, to, strlen(to) + 1);
}

const char *store_url_shown(struct det_arena *arena, const char *url)
{
    static const char key[] = "password=";
    char *copy = det_arena_copy(arena, url), *colon, *at, *host;

    host = copy ? strstr(copy, "://") : NULL;
    if (!host)
        return copy;
    host += 3;
    at = memrchr(host, '@', strcspn(host, "/?#"));
    colon = at ? memchr(host, ':', (size_t)(at - host)) : NULL;
    if (colon)
        take_out(colon, at);
    for (char *next = strchr(host, '?'); next; next = strpbrk(next, "&")) {
        next++;
        if (strncmp(next, key, sizeof key - 1) == 0) {
            char *value = next + sizeof key - 1;

            take_out(value, value + strcspn(value, "&"));
        }
    }
    return copy;
}

static int find_url(struct cli_store *store)
{
    const char *url = url_given(store);

    if (!url && store->project.config.store) {
        url = store_url_in(&store->arena, store->folder, store->project.config.store);
        if (!url)
            return cli_no_memory(store->cli);
    }
    if (!url) {
        cli_report_error(
            store->cli, "which store? --store sqlite:FILE or --store postgres://..., or the "
                        "variable DETENT_STORE, or a detent.yaml with 'store: sqlite:FILE'");
        return CLI_USAGE;
    }
    store->address = det_arena_copy(&store->arena, url);
    store->url = store_url_shown(&store->arena, url);
    return store->address && store->url ? CLI_OK : cli_no_memory(store->cli);
}

/* Writes the folder of a SQLite file to `target`; false if it is another store, or the path is too
 * long. */
static bool find_folder(const struct cli_store *store, char target[DET_PATH_MAX])
{
    static const char scheme[] = "sqlite:";
    const char *path = store->address + sizeof scheme - 1, *slash;

    if (strncmp(store->address, scheme, sizeof scheme - 1) != 0)
        return false;
    slash = strrchr(path, '/');
    if (!slash)
        path = ".";
    return snprintf(
               target, DET_PATH_MAX, "%.*s",
               slash == path ? 1
               : slash       ? (int)(slash - path)
                             : 1,
               path) < DET_PATH_MAX;
}

/* Another process has the store; hints how to use its `detent up`. */
static void hint_up(struct cli_store *store)
{
    struct det_error error = { 0 };
    char folder[DET_PATH_MAX], project[DET_PATH_MAX];
    int peer = -1;

    if (!find_folder(store, folder))
        return;
    if (socket_find(folder, project, &error) < 0 || socket_connect(project, &peer, &error) < 0)
        cli_print_error(
            store->cli, store->request.is_alone
                            ? "This command needs the store for itself: stop the other process "
                              "first, and start it again afterwards.\n"
                            : "To use the detent up that holds it, run this in its "
                              "folder, or with -C.\n");
    else if (store->request.is_alone)
        cli_print_error(
            store->cli,
            "This command needs the store for itself: run 'detent stop --wait -C %s' first, and "
            "'detent up' afterwards.\n",
            project);
    else
        cli_print_error(store->cli, "A detent up runs in that project: -C %s uses it.\n", project);
    if (peer >= 0)
        close(peer);
}

/* Users may pass the file instead of a URL. */
static int report_url(struct cli_store *store, int r, const struct det_error *error)
{
    const char *url = store->url;

    if (strncmp(url, "memory:", 7) == 0)
        cli_report_error(
            store->cli, "a memory store lasts only for one command; use --store sqlite:FILE");
    else if (!strchr(url, ':') && cli_is_there(url))
        cli_report_error(store->cli, "'%s' is not a URL; did you mean sqlite:%s?", url, url);
    else if (!strchr(url, ':'))
        cli_report_error(
            store->cli, "'%s' is not the URL of a store; use sqlite:%s or postgres://...", url,
            url);
    else if (r == DET_ERR_NOT_FOUND && store->request.made_by) {
        store->error = r;
        cli_report_error(
            store->cli, "%s: there is no such store; check its URL (created by %s)", url,
            store->request.made_by);
        return CLI_NOT_FOUND;
    } else {
        int code = cli_report_store_error(store, r, error);

        if (r == DET_ERR_BUSY)
            hint_up(store);
        return code;
    }
    return CLI_USAGE;
}

/* Returns true if another process serves it, and reads it for us. */
static bool open_served(struct cli_store *store)
{
    if (!store->request.open_served || !store->request.open_served(store))
        return false;
    store->ops = store->store->ops;
    store->request.is_writing = false;
    store->is_served = true;
    return true;
}

/* A thread of `detent up` reads its signals; its loop does not while it waits here. */
static bool is_signalled(void)
{
    sigset_t pending;

    return cli_noted_signal() ||
           (sigpending(&pending) == 0 &&
            (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1));
}

/* Another command holds it briefly, another program perhaps for ever. */
int cli_store_open_in_turn(
    struct cli *cli, const char *address, const struct det_store_options *options,
    struct det_store **ret, struct det_error *reterr)
{
    struct det_world *world = det_world_or_real(options->world);
    det_time began = det_world_now(world, DET_CLOCK_MONOTONIC);
    bool is_reported = false;

    for (;;) {
        int r = det_store_open_with(address, options, ret, reterr);
        det_time waited = det_world_now(world, DET_CLOCK_MONOTONIC) - began;

        if (r != DET_ERR_BUSY || cli_is_stopped(cli) || is_signalled() || waited >= TURN_SPAN)
            return r;
        if (!is_reported && waited >= TURN_QUIET) {
            is_reported = true;
            cli_print_error(cli, "waiting for its turn: %s\n", reterr->text);
        }
        if (det_world_sleep(
                world, TURN_PAUSE + (det_time)(det_world_random_u64(world) % TURN_PAUSE)) < 0)
            return r;
    }
}

static int open_in_turn(struct cli_store *store, bool must_exist, struct det_error *reterr)
{
    const struct det_store_options options = {
        .world = store->cli->world,
        .allocator = store->cli->allocator,
        .is_read_only = !store->request.is_writing,
        .accepts_loss = store->request.accepts_loss,
        .must_exist = must_exist,
    };

    return cli_store_open_in_turn(store->cli, store->address, &options, &store->store, reterr);
}

/* The data shown is older than what was acknowledged; `store verify` reports it as a finding. */
static void warn_of_loss(struct cli_store *store)
{
    struct det_error error = { 0 };

    store->has_loss = store->ops->check_loss && store->ops->check_loss(store->store, &error) < 0;
    if (store->has_loss && !store->request.may_be_damaged)
        cli_report_error(store->cli, "%s", error.text);
}

static int open_url(struct cli_store *store)
{
    const struct store_request *request = &store->request;
    struct det_error error = { 0 };
    int code = CLI_OK, r = DET_ERR_INVALID;

    if (open_served(store))
        return CLI_OK;
    if (strncmp(store->url, "memory:", 7) != 0)
        r = open_in_turn(store, true, &error);
    if (r == DET_ERR_NOT_FOUND && request->may_make) {
        if (request->validate)
            code = request->validate(request->validate_context, store);
        if (code != CLI_OK)
            return code;
        r = open_in_turn(store, false, &error);
    }
    if (r < 0)
        return report_url(store, r, &error);
    store->ops = store->store->ops;
    warn_of_loss(store);
    return CLI_OK;
}

static void assert_store(const struct cli_store *store, int code)
{
    det_assert(!store->store == !store->ops);
    det_assert(code != CLI_OK || (store->store && store->address && store->url));
    det_assert(!store->is_served || !store->request.is_writing);
    det_assert(store->is_served || !store->served_error);
}

int cli_store_open(struct cli *cli, const struct store_request *request, struct cli_store *store)
{
    int code;

    *store = (struct cli_store){ .cli = cli, .request = *request };
    det_arena_init(&store->arena, cli->allocator);
    det_arena_init(&store->project.arena, cli->allocator);
    code = read_project(store);
    if (code == CLI_OK)
        code = find_url(store);
    if (code == CLI_OK)
        code = store_list_files(store);
    if (code == CLI_OK)
        code = open_url(store);
    if (code == CLI_OK)
        code = store_list_machines(store);
    assert_store(store, code);
    return code;
}

int cli_store_open_at(struct cli *cli, const char *address, struct cli_store *store)
{
    int code = CLI_OK;

    *store = (struct cli_store){ .cli = cli, .address = address };
    det_arena_init(&store->arena, cli->allocator);
    det_arena_init(&store->project.arena, cli->allocator);
    store->url = store_url_shown(&store->arena, address);
    if (!store->url)
        code = cli_no_memory(cli);
    if (code == CLI_OK)
        code = open_url(store);
    if (code == CLI_OK)
        code = store_list_machines(store);
    assert_store(store, code);
    return code;
}

bool cli_store_file(const char *address, char target[DET_PATH_MAX])
{
    static const char scheme[] = "sqlite:";
    const char *path = address + sizeof scheme - 1;

    return strncmp(address, scheme, sizeof scheme - 1) == 0 &&
           snprintf(target, DET_PATH_MAX, "%.*s", (int)strcspn(path, "?"), path) < DET_PATH_MAX;
}

/* Returns true if no process has the file open for writing. False also if unknown. */
static bool is_unlocked(const struct cli_store *store)
{
    char path[DET_PATH_MAX], lock[DET_PATH_MAX];
    int descriptor;
    bool is_free;

    if (!cli_store_file(store->address, path) ||
        snprintf(lock, sizeof lock, "%s.lock", path) >= (int)sizeof lock)
        return false;
    descriptor = open(lock, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return errno == ENOENT;
    /* Shared, and released at once, so that other readers are not blocked. */
    is_free = flock(descriptor, LOCK_SH | LOCK_NB) == 0;
    (void)flock(descriptor, LOCK_UN);
    close(descriptor);
    return is_free;
}

bool cli_store_is_unserved(const struct cli_store *store)
{
    uint64_t nodes = 0;

    if (!store->ops->nodes)
        return is_unlocked(store);
    return store->ops->nodes(store->store, &nodes) == 0 && nodes == 0;
}

void cli_store_close(struct cli_store *store)
{
    /* The store may use the definitions until it is closed. */
    det_store_close(store->store);
    for (struct store_machine *machine = store->machines; machine; machine = machine->next)
        det_spec_close(machine->spec);
    config_file_close(store->cli, &store->project);
    det_arena_deinit(&store->arena);
    store->store = NULL;
    store->served_error = NULL;
    store->machines = NULL;
}
