/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* token_file.c - the token file: its lines, its owner and mode, its lock.
 *
 * A line has exactly one valid form, so it is valid if writing what was read gives the same bytes.
 * Uses system headers: the owner and the mode of a file come from the kernel. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/tokens_internal.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/memory.h"
#include "base/text.h"
#include "json/reader.h"
#include "json/writer.h"

#define FILE_VERSION   1
#define LOCK_NAME      "tokens.lock"
#define TEMPORARY_NAME TOKENS_FILE_NAME ".tmp"
#define MODE           0600
#define RETRY_MS       5
#define HASH_TEXT      (2 * TOKENS_HASH_SIZE)
#define CRC_TEXT       8

/* Lines. */

/* Ends a line, which begins at `from`. */
static void end_line(struct det_json_writer *json, size_t from)
{
    const struct det_buffer *text = &json->text;
    char crc[CRC_TEXT + 1];

    det_assert(json->depth == 1 && from <= text->size);
    snprintf(
        crc, sizeof crc, "%08x", det_crc32c(0, det_buffer_text(text) + from, text->size - from));
    det_json_text(json, "crc", crc);
    det_json_close(json, '}');
    det_buffer_append_char(&json->text, '\n');
    json->needs_comma = false;
}

static void format_scopes(struct det_json_writer *json, unsigned scopes)
{
    det_assert((scopes & ~TOKENS_ALL) == 0);
    det_json_open(json, "scopes", '[');
    for (size_t i = 0; i < TOKENS_SCOPE_COUNT; i++) {
        if (scopes & 1u << i)
            det_json_text(json, NULL, tokens_scope_word(i));
    }
    det_json_close(json, ']');
}

static void format_row(struct det_json_writer *json, const struct tokens_row *row)
{
    size_t from = json->text.size;
    char hash[HASH_TEXT + 1];

    det_hex_write(row->hash, sizeof row->hash, hash);
    det_json_open(json, NULL, '{');
    det_json_text(json, "id", row->token.id);
    det_json_text(json, "name", row->token.name);
    format_scopes(json, row->token.scopes);
    det_json_time(json, "created", row->token.created);
    if (row->token.expires)
        det_json_time(json, "expires", row->token.expires);
    else
        det_json_null(json, "expires");
    det_json_text(json, "sha256", hash);
    end_line(json, from);
}

void tokens_file_format(struct det_buffer *buffer, const struct tokens_set *set)
{
    struct det_json_writer json = { .text = *buffer };

    det_assert(buffer->size == 0 && set->count <= set->capacity);
    det_json_open(&json, NULL, '{');
    det_json_number(&json, "tokens", FILE_VERSION);
    end_line(&json, 0);
    for (size_t i = 0; i < set->count; i++)
        format_row(&json, &set->rows[i]);
    *buffer = json.text;
}

static bool read_text(
    const struct det_json_value *line, const char *key, char *target, size_t capacity)
{
    const char *text = det_json_get_text(line, key);

    return text && det_text_copy(target, capacity, text);
}

/* An expiry may be null. */
static bool read_times(const struct det_json_value *line, struct token *token)
{
    const struct det_json_value *expires = det_json_get(line, "expires");

    return det_json_value_time(det_json_get(line, "created"), &token->created) == 0 &&
           (det_json_is(expires, DET_JSON_NULL) ||
            det_json_value_time(expires, &token->expires) == 0);
}

static bool read_scopes(const struct det_json_value *line, unsigned *ret)
{
    DET_JSON_EACH (item, det_json_get(line, "scopes")) {
        size_t i = 0;

        if (!det_json_is(item, DET_JSON_STRING))
            return false;
        while (i < TOKENS_SCOPE_COUNT && !det_view_is(item->text, tokens_scope_word(i)))
            i++;
        if (i == TOKENS_SCOPE_COUNT)
            return false;
        *ret |= 1u << i;
    }
    return true;
}

static bool read_hash(const struct det_json_value *line, unsigned char *target)
{
    const char *text = det_json_get_text(line, "sha256");

    return text && strlen(text) == HASH_TEXT && det_hex_read(text, target, TOKENS_HASH_SIZE);
}

static bool read_row(const struct det_json_value *line, struct tokens_row *row)
{
    struct token *token = &row->token;

    return read_text(line, "id", token->id, sizeof token->id) &&
           read_text(line, "name", token->name, sizeof token->name) &&
           read_scopes(line, &token->scopes) && read_times(line, token) &&
           read_hash(line, row->hash);
}

static int fail_line(struct det_error *reterr, size_t line)
{
    return det_error_set(
        reterr, DET_ERR_CORRUPT,
        "line %zu is damaged or was edited; its content is lost: remove the file and create new "
        "tokens",
        line);
}

static bool is_right(const struct tokens_set *set, const struct tokens_row *row)
{
    if (strlen(row->token.id) != TOKENS_ID_SIZE || !row->token.scopes ||
        !det_name_is_valid(row->token.name))
        return false;
    for (size_t i = 0; i < set->count; i++) {
        if (strcmp(set->rows[i].token.id, row->token.id) == 0)
            return false;
    }
    return true;
}

/* Reads the line at `*at`, whose values live in the arena, and moves to the next one. */
static int read_line(
    struct det_arena *arena, const char **at, size_t number, const struct det_json_value **ret,
    struct det_error *reterr)
{
    const char *end = strchr(*at, '\n');
    int r = DET_ERR_TRUNCATED;

    if (end)
        r = det_json_read(arena, det_view_of(*at, (size_t)(end - *at)), ret, NULL);
    if (r == DET_ERR_NO_MEMORY)
        return det_error_set(reterr, r, "out of memory");
    if (r < 0)
        return fail_line(reterr, number);
    *at = end + 1;
    return 0;
}

static int parse_row(
    struct det_arena *arena, const char **at, struct tokens_set *set, struct det_error *reterr)
{
    struct tokens_row row = { .token = { .id = "" } };
    const struct det_json_value *line = NULL;
    size_t number = set->count + 2;
    int r = read_line(arena, at, number, &line, reterr);

    if (r < 0)
        return r;
    if (!read_row(line, &row) || !is_right(set, &row))
        return fail_line(reterr, number);
    det_assert(set->count < set->capacity);
    set->rows[set->count++] = row;
    return 0;
}

static int parse_rows(
    const struct det_allocator *allocator, const char *at, struct tokens_set *set,
    struct det_error *reterr)
{
    int r = 0;

    while (r == 0 && *at) {
        struct det_arena arena;

        det_arena_init(&arena, allocator);
        r = parse_row(&arena, &at, set, reterr);
        det_arena_deinit(&arena);
    }
    return r;
}

/* Returns whether the set equals the text byte by byte, including what was skipped: checksums,
 * newlines. */
static int check_same(
    const struct det_allocator *allocator, const struct det_buffer *text,
    const struct tokens_set *set, struct det_error *reterr)
{
    struct det_buffer again;
    size_t same = 0, line = 1;
    int r;

    det_buffer_init(&again, allocator);
    tokens_file_format(&again, set);
    r = det_buffer_status(&again);
    if (r < 0)
        det_error_set(reterr, r, "%s", det_error_text(r));
    /* Both texts end with a NUL, which is compared, too. */
    for (; r == 0 && same <= text->size && same <= again.size; same++) {
        if (text->data[same] != again.data[same])
            r = fail_line(reterr, line);
        line += text->data[same] == '\n';
    }
    det_buffer_deinit(&again);
    return r;
}

/* Checks the first line and moves to the next one. */
static int check_head(
    const struct det_allocator *allocator, const char **at, struct det_error *reterr)
{
    const struct det_json_value *line = NULL;
    struct det_arena arena;
    uint64_t version = 0;
    int r;

    det_arena_init(&arena, allocator);
    r = read_line(&arena, at, 1, &line, reterr);
    if (r == 0 && det_json_value_u64(det_json_get(line, "tokens"), &version) < 0)
        r = fail_line(reterr, 1);
    det_arena_deinit(&arena);
    if (r == 0 && version != FILE_VERSION)
        return det_error_set(reterr, DET_ERR_VERSION, "a newer detent has written it");
    return r;
}

void tokens_set_free(const struct det_allocator *allocator, struct tokens_set *set)
{
    if (set->rows)
        DET_DELETE_ARRAY(allocator, set->rows, set->capacity);
    *set = (struct tokens_set){ 0 };
}

static size_t count_lines(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += *text == '\n';
    return count;
}

int tokens_file_parse(
    const struct det_allocator *allocator, const struct det_buffer *text, struct tokens_set *ret,
    struct det_error *reterr)
{
    const char *at = det_buffer_text(text);
    struct tokens_set set = { .capacity = count_lines(at) + 1 };
    int r;

    if (strlen(at) != text->size)
        return fail_line(reterr, 1);
    r = check_head(allocator, &at, reterr);
    if (r < 0)
        return r;
    if (set.capacity > TOKENS_MAX + 2)
        return det_error_set(reterr, DET_ERR_LIMIT, "there are more than %d tokens", TOKENS_MAX);
    set.rows = DET_NEW_ARRAY(allocator, set.capacity, struct tokens_row);
    if (!set.rows)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    r = parse_rows(allocator, at, &set, reterr);
    if (r == 0)
        r = check_same(allocator, text, &set, reterr);
    if (r < 0)
        tokens_set_free(allocator, &set);
    else
        *ret = set;
    return r;
}

/* The file. */

static int fail_errno(struct det_error *reterr, const char *what)
{
    bool is_full = errno == ENOMEM || errno == EMFILE || errno == ENFILE;
    int code = is_full ? DET_ERR_NO_MEMORY : errno == ENOSPC ? DET_ERR_NO_SPACE : DET_ERR_IO;
    char text[128];

    return det_error_set(reterr, code, "%s: %s", what, strerror_r(errno, text, sizeof text));
}

static struct tokens_stamp stamp_of(const struct stat *status)
{
    return (struct tokens_stamp){
        .device = status->st_dev,
        .number = status->st_ino,
        .size = status->st_size,
        .seconds = status->st_mtim.tv_sec,
        .nanoseconds = status->st_mtim.tv_nsec,
        .mode = status->st_mode,
        .owner = status->st_uid,
        .is_there = true,
    };
}

int tokens_file_check(
    int folder, const char *name, struct tokens_stamp *ret, struct det_error *reterr)
{
    struct stat status;

    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
        *ret = stamp_of(&status);
    else if (errno == ENOENT)
        *ret = (struct tokens_stamp){ 0 };
    else
        return fail_errno(reterr, "cannot get its status");
    return 0;
}

static int check_owner(const struct stat *status, struct det_error *reterr)
{
    if (!S_ISREG(status->st_mode))
        return det_error_set(reterr, DET_ERR_REFUSED, "it is not a regular file");
    if (status->st_uid != geteuid() && status->st_uid != 0 && geteuid() != 0)
        return det_error_set(
            reterr, DET_ERR_REFUSED, "it belongs to another user; run chown on it");
    if (status->st_mode & 077)
        return det_error_set(
            reterr, DET_ERR_REFUSED, "others may read or write it; run chmod 600 on it");
    if (status->st_size > TOKENS_FILE_MAX)
        return det_error_set(reterr, DET_ERR_LIMIT, "it is larger than %d bytes", TOKENS_FILE_MAX);
    return 0;
}

static int read_opened(
    int descriptor, struct det_buffer *ret, struct tokens_stamp *ret_stamp,
    struct det_error *reterr)
{
    struct stat status;
    ssize_t count;
    void *target;
    int r;

    if (fstat(descriptor, &status) < 0)
        return fail_errno(reterr, "cannot get its status");
    r = check_owner(&status, reterr);
    if (r < 0)
        return r;
    *ret_stamp = stamp_of(&status);
    target = status.st_size ? det_buffer_extend(ret, (size_t)status.st_size) : NULL;
    if (det_buffer_status(ret) < 0)
        return det_error_set(reterr, det_buffer_status(ret), "out of memory");
    count = target ? pread(descriptor, target, (size_t)status.st_size, 0) : 0;
    if (count != status.st_size)
        return fail_errno(reterr, "it cannot be read");
    return 0;
}

int tokens_file_read(
    int folder, struct det_buffer *ret, struct tokens_stamp *ret_stamp, struct det_error *reterr)
{
    int descriptor =
        openat(folder, TOKENS_FILE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int r;

    if (descriptor < 0)
        return fail_errno(reterr, "it cannot be read");
    r = read_opened(descriptor, ret, ret_stamp, reterr);
    close(descriptor);
    return r;
}

/* Creates a file that only its owner can read. A file that root creates in the folder of another
 * user belongs to that user. */
static int make_private(int folder, int *ret, struct det_error *reterr)
{
    struct stat status;
    int descriptor, r;

    if (fstat(folder, &status) < 0)
        return fail_errno(reterr, "cannot get the status of its folder");
    /* A crash may have left one. */
    if (unlinkat(folder, TEMPORARY_NAME, 0) < 0 && errno != ENOENT)
        return fail_errno(reterr, "it cannot be written");
    descriptor =
        openat(folder, TEMPORARY_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, MODE);
    if (descriptor < 0)
        return fail_errno(reterr, "it cannot be written");
    r = fchmod(descriptor, MODE);
    if (r == 0 && geteuid() == 0)
        r = fchown(descriptor, status.st_uid, status.st_gid);
    if (r < 0) {
        r = fail_errno(reterr, "cannot set its owner and mode");
        close(descriptor);
    } else {
        *ret = descriptor;
    }
    return r;
}

/* Writes to an open file through the world, whatever its name refers to by now. */
#define OPENED_MAX (sizeof "/proc/self/fd/" + 12)

static int write_opened(struct det_world *world, int descriptor, const struct det_buffer *text)
{
    char path[OPENED_MAX];
    struct det_file *file;
    int r;

    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    r = det_file_open(world, path, DET_FILE_WRITE, &file);
    if (r < 0)
        return r;
    r = det_file_write(world, file, 0, text->data, text->size);
    if (r == 0)
        r = det_file_sync(world, file);
    det_file_close(world, file);
    return r;
}

static int rename_in(struct det_world *world, int folder)
{
    char path[OPENED_MAX];
    char from[OPENED_MAX + sizeof TEMPORARY_NAME], to[OPENED_MAX + sizeof TOKENS_FILE_NAME];
    int r;

    snprintf(path, sizeof path, "/proc/self/fd/%d", folder);
    snprintf(from, sizeof from, "%s/" TEMPORARY_NAME, path);
    snprintf(to, sizeof to, "%s/" TOKENS_FILE_NAME, path);
    r = world->ops->file_rename(world, from, to);
    return r < 0 ? r : det_folder_sync(world, path);
}

static int replace_file(
    struct det_world *world, int folder, const struct det_buffer *text, struct det_error *reterr)
{
    int descriptor = -1, r;

    r = make_private(folder, &descriptor, reterr);
    if (r < 0)
        return r;
    r = write_opened(world, descriptor, text);
    close(descriptor);
    if (r == 0)
        r = rename_in(world, folder);
    if (r < 0)
        det_error_set(reterr, r, "it cannot be written: %s", det_error_text(r));
    return r;
}

int tokens_file_write(
    struct det_world *world, int folder, const struct det_buffer *text, struct det_error *reterr)
{
    int r = det_buffer_status(text);

    if (r < 0)
        return det_error_set(reterr, r, "%s", det_error_text(r));
    r = replace_file(world, folder, text, reterr);
    if (r < 0)
        (void)unlinkat(folder, TEMPORARY_NAME, 0);
    return r;
}

/* Another process holds the lock only while it writes a file. */
static int wait_for_lock(int descriptor, det_time patience)
{
    det_time left = patience;

    while (flock(descriptor, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return DET_ERR_IO;
        if (left <= 0)
            return DET_ERR_BUSY;
        (void)poll(NULL, 0, RETRY_MS);
        left -= RETRY_MS * DET_MILLISECOND;
    }
    return 0;
}

/* This user owns the folder, and no other user can create files in it. */
static int check_folder(const char *path, int folder, struct det_error *reterr)
{
    struct stat status;

    if (fstat(folder, &status) < 0)
        return fail_errno(reterr, "cannot get the status of their folder");
    if (status.st_uid != geteuid() && geteuid() != 0)
        return det_error_set(
            reterr, DET_ERR_REFUSED, "%.200s belongs to another user; remove it", path);
    if (status.st_mode & 022)
        return det_error_set(
            reterr, DET_ERR_REFUSED, "%.200s: others may write to it; run chmod 700 on it", path);
    return 0;
}

int tokens_folder_open(const char *path, bool is_made, int *ret, struct det_error *reterr)
{
    int folder, r;

    *ret = -1;
    if (is_made && mkdir(path, 0700) < 0 && errno != EEXIST)
        return fail_errno(reterr, "cannot create their folder");
    folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0 && errno == ENOENT && !is_made)
        return 0;
    if (folder < 0 && (errno == ENOTDIR || errno == ELOOP))
        return det_error_set(
            reterr, DET_ERR_REFUSED, "%.200s is not a folder, but a link or a file; remove it",
            path);
    if (folder < 0)
        return fail_errno(reterr, "cannot open their folder");
    r = check_folder(path, folder, reterr);
    if (r < 0)
        close(folder);
    else
        *ret = folder;
    return r;
}

/* A file that root creates in the folder of another user belongs to that user. If this fails, the
 * file is still a lock, and that user gets an error. */
static void give_to_owner(int folder, int descriptor)
{
    struct stat status;

    if (geteuid() == 0 && fstat(folder, &status) == 0 &&
        fchown(descriptor, status.st_uid, status.st_gid) < 0)
        return;
}

int tokens_file_lock(int folder, det_time patience, int *ret, struct det_error *reterr)
{
    int descriptor = openat(folder, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, MODE);
    int r;

    if (descriptor < 0)
        return fail_errno(reterr, "cannot open their lock, " LOCK_NAME);
    give_to_owner(folder, descriptor);
    r = wait_for_lock(descriptor, patience);
    if (r == DET_ERR_BUSY)
        det_error_set(reterr, r, "another process is changing the tokens; retry");
    else if (r < 0)
        fail_errno(reterr, "cannot lock the tokens");
    if (r < 0)
        close(descriptor);
    else
        *ret = descriptor;
    return r;
}

void tokens_file_unlock(int lock)
{
    (void)flock(lock, LOCK_UN);
    close(lock);
}
