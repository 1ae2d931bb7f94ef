/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file_search.c - finds files in folders. Pending folders are in a list: there is no recursion, and
 * links are not followed, so every search ends. */
#include "terminal/file_search.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "os/os.h"
#include "terminal/input.h"

/* One folder under inspection. */
struct scan {
    struct cli *cli;
    const char *const *suffixes;
    const char *folder;
    struct cli_names *files;
    struct cli_names *folders; /* NULL: subfolders are ignored */
};

static int add_path(struct cli *cli, struct cli_names *names, const char *path)
{
    det_assert(names->count <= names->capacity);
    if (names->count == names->capacity) {
        size_t capacity = names->capacity ? names->capacity * 2 : 8;
        char **items = det_realloc(
            cli->allocator, names->items, names->capacity * sizeof *items,
            capacity * sizeof *items);

        if (!items)
            return DET_ERR_NO_MEMORY;
        names->items = items;
        names->capacity = capacity;
    }
    names->items[names->count] = det_string_copy(cli->allocator, path);
    if (!names->items[names->count])
        return DET_ERR_NO_MEMORY;
    names->count++;
    return 0;
}

static int add_in(const struct scan *scan, struct cli_names *names, const char *name)
{
    char path[DET_PATH_MAX];
    bool is_here = strcmp(scan->folder, ".") == 0;
    size_t size = strlen(scan->folder);
    const char *slash = size && scan->folder[size - 1] == '/' ? "" : "/";
    int length = is_here ? snprintf(path, sizeof path, "%s", name)
                         : snprintf(path, sizeof path, "%s%s%s", scan->folder, slash, name);

    return length < (int)sizeof path ? add_path(scan->cli, names, path) : DET_ERR_LIMIT;
}

static bool has_any_suffix(const char *name, const char *const *suffixes)
{
    while (*suffixes && !cli_has_suffix(name, *suffixes) && strcmp(name, *suffixes) != 0)
        suffixes++;
    return *suffixes != NULL;
}

/* Hidden, generated and third-party folders. */
static bool is_passed_over(const char *name)
{
    return strcmp(name, "build") == 0 || strcmp(name, "node_modules") == 0;
}

static int take_entry(const struct scan *scan, int folder, const char *name)
{
    bool is_wanted = has_any_suffix(name, scan->suffixes);
    struct stat status;

    if (*name == '.' || fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (S_ISDIR(status.st_mode))
        return scan->folders && !is_passed_over(name) ? add_in(scan, scan->folders, name) : 0;
    if (!is_wanted)
        return 0;
    /* A link to a file counts as a file; a link to a folder might form a cycle. */
    if (S_ISLNK(status.st_mode) && fstatat(folder, name, &status, 0) == 0 &&
        S_ISDIR(status.st_mode))
        return 0;
    return add_in(scan, scan->files, name);
}

/* 0, DET_ERR_NO_MEMORY, DET_ERR_LIMIT for a path that is too long, or DET_ERR_IO with errno. */
static int scan_folder(const struct scan *scan)
{
    DIR *stream = opendir(scan->folder);
    const struct dirent *entry;
    int r = 0;

    if (!stream)
        return DET_ERR_IO;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): this stream is ours */
    while (r == 0 && !cli_is_stopped(scan->cli) && (entry = readdir(stream)))
        r = take_entry(scan, dirfd(stream), entry->d_name);
    closedir(stream);
    return r;
}

static int report_folder(struct cli *cli, const char *folder, int error)
{
    if (error == DET_ERR_NO_MEMORY)
        return cli_no_memory(cli);
    if (error == DET_ERR_LIMIT)
        cli_report_error(cli, "%s: a path in it is too long", folder);
    else
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
        cli_report_error(cli, "%s: %s", folder, strerror(errno));
    return CLI_FAILURE;
}

/* ".fsm, .worker or detent.yaml". */
static void list_suffixes(const char *const *suffixes, char *target, size_t capacity)
{
    size_t used = 0;

    for (size_t i = 0; suffixes[i] && used < capacity; i++) {
        const char *before = i == 0 ? "" : suffixes[i + 1] ? ", " : " or ";
        int length = snprintf(target + used, capacity - used, "%s%s", before, suffixes[i]);

        used += length > 0 ? (size_t)length : 0;
    }
}

static int report_empty(struct cli *cli, const char *folder, const char *const *suffixes)
{
    char names[256] = "";

    list_suffixes(suffixes, names, sizeof names);
    cli_report_error(cli, "there is no %s file in %s or below it", names, folder);
    return CLI_NOT_FOUND;
}

static int compare_names(const void *a, const void *b)
{
    const char *const *left = a, *const *right = b;

    return strcmp(*left, *right);
}

static int list_folder(
    struct cli *cli, const char *folder, const char *const *suffixes, struct cli_names *ret)
{
    struct cli_names folders = { 0 };
    size_t from = ret->count;
    int r = add_path(cli, &folders, folder);
    int code = r < 0 ? report_folder(cli, folder, r) : CLI_OK;

    for (size_t i = 0; i < folders.count && r != DET_ERR_NO_MEMORY; i++) {
        struct scan scan = { cli, suffixes, folders.items[i], ret, &folders };
        int problem;

        r = scan_folder(&scan);
        problem = r < 0 ? report_folder(cli, scan.folder, r) : CLI_OK;
        code = code == CLI_OK ? problem : code;
    }
    det_assert(folders.count <= folders.capacity && ret->count >= from);
    cli_names_free(cli, &folders);
    if (code == CLI_OK && ret->count == from && !cli_is_stopped(cli))
        return report_empty(cli, folder, suffixes);
    if (ret->count > from)
        qsort(ret->items + from, ret->count - from, sizeof *ret->items, compare_names);
    return code;
}

int cli_files_list(
    struct cli *cli, const char *const *operands, const char *const *suffixes,
    struct cli_names *ret)
{
    int worst = CLI_OK;

    for (; *operands && !cli_is_stopped(cli); operands++) {
        int code = cli_is_folder(*operands)            ? list_folder(cli, *operands, suffixes, ret)
                   : add_path(cli, ret, *operands) < 0 ? cli_no_memory(cli)
                                                       : CLI_OK;

        worst = worst == CLI_OK ? code : worst;
    }
    return worst;
}

void cli_names_free(struct cli *cli, struct cli_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        det_free_string(cli->allocator, names->items[i]);
    det_free(cli->allocator, names->items, names->capacity * sizeof *names->items);
    *names = (struct cli_names){ 0 };
}

/* Returns the part after the last slash. */
static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

bool cli_nearest_file(struct cli *cli, const char *path, const char *suffix, char *target)
{
    const char *const suffixes[] = { suffix, NULL };
    const char *name = last_part(path);
    struct cli_names names = { 0 };
    char folder[DET_PATH_MAX];
    struct scan scan = { cli, suffixes, folder, &names, NULL };
    const char **parts;
    int nearest = -1;

    snprintf(folder, sizeof folder, "%.*s", (int)(name - path), path);
    if (!*folder)
        snprintf(folder, sizeof folder, ".");
    if (scan_folder(&scan) == 0) {
        if (names.count)
            qsort(names.items, names.count, sizeof *names.items, compare_names);
        parts = DET_NEW_ARRAY(cli->allocator, names.count, const char *);
        for (size_t i = 0; parts && i < names.count; i++)
            parts[i] = last_part(names.items[i]);
        if (parts)
            nearest = det_text_nearest(name, parts, names.count);
        det_assert(nearest < 0 || (size_t)nearest < names.count);
        if (nearest >= 0)
            det_text_copy(target, DET_PATH_MAX, parts[nearest]);
        DET_DELETE_ARRAY(cli->allocator, parts, names.count);
    }
    cli_names_free(cli, &names);
    return nearest >= 0;
}
