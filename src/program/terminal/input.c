/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* input.c - reads and writes files for the commands. */
#include "terminal/input.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "os/os.h"

/* Returns the suffix with which the path names an existing file; NULL if there is none. */
static const char *missing_suffix(const struct cli *cli, const char *path)
{
    bool is_test = cli->command && strcmp(cli->command, "test") == 0;
    const char *suffixes[] = { is_test ? CLI_CASES_SUFFIX : CLI_SPEC_SUFFIX, CLI_RECORDS_SUFFIX,
                               CLI_WORKER_SUFFIX, CLI_FLOW_SUFFIX };

    for (size_t i = 0; i < (is_test ? 1 : sizeof suffixes / sizeof *suffixes); i++) {
        char meant[DET_PATH_MAX];
        int length = snprintf(meant, sizeof meant, "%s%s", path, suffixes[i]);

        if (length < (int)sizeof meant && cli_is_there(meant) && !cli_is_folder(meant))
            return suffixes[i];
    }
    return NULL;
}

static int print_error(struct det_error *error, int code, const char *path, size_t limit)
{
    if (code == DET_ERR_LIMIT)
        return det_error_set(error, code, "%s: larger than %zu KiB", path, limit / 1024);
    if (code == DET_ERR_NOT_FOUND)
        return det_error_set(error, code, "%s: there is no such file", path);
    if (code == DET_ERR_IO && errno)
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
        return det_error_set(error, code, "%s: %s", path, strerror(errno));
    return det_error_set(error, code, "%s: %s", path, det_error_text(code));
}

static int print_missing(const struct cli *cli, struct det_error *error, const char *path)
{
    const char *suffix = missing_suffix(cli, path);

    if (!suffix)
        return print_error(error, DET_ERR_NOT_FOUND, path, 0);
    return det_error_set(
        error, DET_ERR_NOT_FOUND, "%s: there is no such file; did you mean %s%s?", path, path,
        suffix);
}

/* Takes over the content of the buffer; cli_text_free() requires an exact allocation. */
static int finish_stream(struct cli *cli, struct det_buffer *buffer, struct cli_text *ret)
{
    char *data = det_alloc(cli->allocator, buffer->size + 1);

    det_assert(det_buffer_status(buffer) == 0);
    if (!data)
        return DET_ERR_NO_MEMORY;
    memcpy(data, det_buffer_text(buffer), buffer->size);
    data[buffer->size] = '\0';
    *ret = (struct cli_text){ data, buffer->size };
    return 0;
}

/* Pipes and terminals have no size. */
static int load_stream(struct cli *cli, FILE *stream, size_t limit, struct cli_text *ret)
{
    struct det_buffer buffer;
    char part[4096];
    size_t count;
    int r;

    det_buffer_init(&buffer, cli->allocator);
    buffer.limit = limit;
    while ((count = fread(part, 1, sizeof part, stream)) > 0 && !det_buffer_status(&buffer))
        det_buffer_append(&buffer, part, count);
    r = ferror(stream) ? DET_ERR_IO : det_buffer_status(&buffer);
    det_assert(r < 0 || buffer.size <= limit);
    if (r == 0)
        r = finish_stream(cli, &buffer, ret);
    det_buffer_deinit(&buffer);
    return r;
}

int cli_text_load(
    struct cli *cli, const char *path, size_t limit, struct cli_text *ret, struct det_error *reterr)
{
    struct stat status;
    int r;

    det_assert(limit > 0);
    errno = 0;
    if (strcmp(path, "-") == 0) {
        r = load_stream(cli, cli->in, limit, ret);
        return r < 0 ? print_error(reterr, r, CLI_STDIN_NAME, limit) : 0;
    }
    if (stat(path, &status) < 0)
        return errno == ENOENT || errno == ENOTDIR ? print_missing(cli, reterr, path)
                                                   : print_error(reterr, DET_ERR_IO, path, limit);
    if (S_ISDIR(status.st_mode))
        return det_error_set(reterr, DET_ERR_IO, "%s: is a folder, not a file", path);
    if (!S_ISREG(status.st_mode))
        return det_error_set(
            reterr, DET_ERR_IO, "%s: is not a regular file; '-' reads the standard input", path);
    r = det_file_load(cli->world, cli->allocator, path, limit, &ret->data, &ret->size);
    return r < 0 ? print_error(reterr, r, path, limit) : 0;
}

int cli_text_read(struct cli *cli, const char *path, size_t limit, struct cli_text *ret)
{
    struct det_error error = { 0 };
    int r = cli_text_load(cli, path, limit, ret, &error);

    if (r == 0)
        return CLI_OK;
    cli_report_error(cli, "%s", error.text);
    /* A file that is too large is invalid. */
    return r == DET_ERR_LIMIT ? CLI_USAGE : cli_exit_of(r);
}

void cli_text_free(struct cli *cli, struct cli_text *text)
{
    if (text->data)
        det_free(cli->allocator, text->data, text->size + 1);
    *text = (struct cli_text){ 0 };
}

/* Returns the mode for a file: its own, or the default of a new one. */
static mode_t mode_of(const char *path)
{
    struct stat status;
    mode_t mask;

    if (stat(path, &status) == 0)
        return status.st_mode & 07777;
    mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* A missing folder, or one such as /proc in which no files can be created. */
static int print_write_error(struct det_error *error, int code, const char *path)
{
    char folder[DET_PATH_MAX];
    struct stat status;

    if (code != DET_ERR_NOT_FOUND || det_file_folder(path, folder) < 0)
        return print_error(error, code, path, 0);
    if (stat(folder, &status) < 0)
        return det_error_set(error, code, "%s: there is no folder %s", path, folder);
    return det_error_set(
        error, DET_ERR_IO, "%s: the folder %s does not accept new files", path, folder);
}

int cli_file_write(struct cli *cli, const char *path, const char *data, size_t size)
{
    char *target = realpath(path, NULL);
    const char *written = target ? target : path;
    mode_t mode = mode_of(written);
    struct det_error error;
    int r;

    errno = 0;
    if (cli_is_folder(path)) {
        cli_report_error(cli, "%s: is a folder, not a file", path);
        free(target);
        return CLI_FAILURE;
    }
    r = det_file_replace(cli->world, written, data, size);
    if (r == 0 && chmod(written, mode) < 0)
        r = DET_ERR_IO;
    free(target);
    if (r == 0)
        return CLI_OK;
    r = print_write_error(&error, r, path);
    cli_report_error(cli, "cannot write %s", error.text);
    return cli_exit_of(r);
}

int cli_write_to(struct cli *cli, const char *path, const char *data, size_t size)
{
    if (path && strcmp(path, "-") != 0)
        return cli_file_write(cli, path, data, size);
    cli_write(cli, data, size);
    return CLI_OK;
}

bool cli_is_folder(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool cli_is_there(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

bool cli_has_suffix(const char *path, const char *suffix)
{
    size_t size = strlen(path), length = strlen(suffix);

    return size > length && strcmp(path + size - length, suffix) == 0;
}

bool cli_is_same_file(const char *a, const char *b)
{
    struct stat left, right;

    return stat(a, &left) == 0 && stat(b, &right) == 0 && left.st_dev == right.st_dev &&
           left.st_ino == right.st_ino;
}
