/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* token_file.c - the token file: its lines, its owner and mode, its lock.
 *
 * A line has exactly one valid form, so it is valid if writing what was read gives the same bytes.
 * Uses system headers: the owner and the mode of a file come from the kernel. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/tokens_internal.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"

#define HEAD           "{\"tokens\":1"
#define LOCK_NAME      "tokens.lock"
#define TEMPORARY_NAME TOKENS_FILE_NAME ".tmp"
#define MODE           0600
#define RETRY_MS       5
#define HASH_TEXT      (2 * TOKENS_HASH_SIZE)

/* Lines. */

/* Ends a line, which begins at `from`. */
static void end_line(struct det_buffer *buffer, size_t from)
{
    uint32_t crc = det_crc32c(0, det_buffer_text(buffer) + from, buffer->size - from);

    det_buffer_format(buffer, ",\"crc\":\"%08x\"}\n", crc);
}

static void format_scopes(struct det_buffer *buffer, unsigned scopes)
{
    const char *separator = "";

    for (size_t i = 0; i < TOKENS_SCOPE_COUNT; i++) {
        if (!(scopes & 1u << i))
            continue;
        det_buffer_format(buffer, "%s\"%s\"", separator, tokens_scope_word(i));
        separator = ",";
    }
}

static void format_row(struct det_buffer *buffer, const struct tokens_row *row)
{
    char created[DET_TIME_TEXT], expires[DET_TIME_TEXT], hash[HASH_TEXT + 1];
    size_t from = buffer->size;

    sodium_bin2hex(hash, sizeof hash, row->hash, sizeof row->hash);
    det_format_time(row->token.created, created, sizeof created);
    det_format_time(row->token.expires, expires, sizeof expires);
    det_buffer_format(
        buffer, "{\"id\":\"%s\",\"name\":\"%s\",\"scopes\":[", row->token.id, row->token.name);
    format_scopes(buffer, row->token.scopes);
    det_buffer_format(buffer, "],\"created\":\"%s\",\"expires\":", created);
    if (row->token.expires)
        det_buffer_format(buffer, "\"%s\"", expires);
    else
        det_buffer_append_text(buffer, "null");
    det_buffer_format(buffer, ",\"sha256\":\"%s\"", hash);
    end_line(buffer, from);
}

void tokens_file_format(struct det_buffer *buffer, const struct tokens_set *set)
{
    det_buffer_append_text(buffer, HEAD);
    end_line(buffer, 0);
    for (size_t i = 0; i < set->count; i++)
        format_row(buffer, &set->rows[i]);
}

/* The rest of a line; NULL: malformed. */
static void take_literal(const char **at, const char *literal)
{
    size_t size = strlen(literal);

    *at = *at && strncmp(*at, literal, size) == 0 ? *at + size : NULL;
}

/* Reads up to the next quote. */
static void take_word(const char **at, char *target, size_t capacity)
{
    size_t size = *at ? strcspn(*at, "\"\n") : capacity;

    if (size >= capacity) {
        *at = NULL;
        return;
    }
    memcpy(target, *at, size);
    target[size] = '\0';
    *at += size;
}

static void take_time(const char **at, det_time *ret)
{
    char text[DET_TIME_TEXT];

    take_word(at, text, sizeof text);
    if (*at && det_parse_time(det_view_text(text), ret) < 0)
        *at = NULL;
}

static void take_scopes(const char **at, unsigned *ret)
{
    for (size_t i = 0; *at && i < TOKENS_SCOPE_COUNT; i++) {
        const char *word = tokens_scope_word(i), *quote = *at + (**at == ',');

        if (*quote != '"' || strncmp(quote + 1, word, strlen(word)) != 0)
            continue;
        *ret |= 1u << i;
        *at = quote + strlen(word) + 2;
    }
}

static void take_row(const char **at, struct tokens_row *row)
{
    char hash[HASH_TEXT + 1];

    take_literal(at, "{\"id\":\"");
    take_word(at, row->token.id, sizeof row->token.id);
    take_literal(at, "\",\"name\":\"");
    take_word(at, row->token.name, sizeof row->token.name);
    take_literal(at, "\",\"scopes\":[");
    take_scopes(at, &row->token.scopes);
    take_literal(at, "],\"created\":\"");
    take_time(at, &row->token.created);
    take_literal(at, "\",\"expires\":");
    if (*at && **at == '"') {
        take_literal(at, "\"");
        take_time(at, &row->token.expires);
        take_literal(at, "\"");
    } else {
        take_literal(at, "null");
    }
    take_literal(at, ",\"sha256\":\"");
    take_word(at, hash, sizeof hash);
    if (*at && sodium_hex2bin(row->hash, sizeof row->hash, hash, strlen(hash), NULL, NULL, NULL))
        *at = NULL;
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

static int parse_rows(const char *at, struct tokens_set *set, struct det_error *reterr)
{
    while (*at) {
        struct tokens_row *row = &set->rows[set->count];

        *row = (struct tokens_row){ .token = { .id = "" } };
        take_row(&at, row);
        at = at ? strchr(at, '\n') : NULL;
        if (!at || !is_right(set, row))
            return fail_line(reterr, set->count + 2);
        set->count++;
        at++;
    }
    return 0;
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
    /* Both end with a 0 that counts. */
    for (; r == 0 && same <= text->size && same <= again.size; same++) {
        if (text->data[same] != again.data[same])
            r = fail_line(reterr, line);
        line += text->data[same] == '\n';
    }
    det_buffer_deinit(&again);
    return r;
}

static int check_head(const char *text, struct det_error *reterr)
{
    if (strncmp(text, HEAD ",", sizeof HEAD) == 0)
        return 0;
    if (strncmp(text, "{\"tokens\":", strlen("{\"tokens\":")) == 0)
        return det_error_set(reterr, DET_ERR_VERSION, "a newer detent has written it");
    return fail_line(reterr, 1);
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
    const char *whole = det_buffer_text(text);
    struct tokens_set set = { .capacity = count_lines(whole) + 1 };
    int r;

    if (strlen(whole) != text->size || !strchr(whole, '\n'))
        return fail_line(reterr, 1);
    r = check_head(whole, reterr);
    if (r < 0)
        return r;
    if (set.capacity > TOKENS_MAX + 2)
        return det_error_set(reterr, DET_ERR_LIMIT, "there are more than %d tokens", TOKENS_MAX);
    set.rows = DET_NEW_ARRAY(allocator, set.capacity, struct tokens_row);
    if (!set.rows)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    r = parse_rows(strchr(whole, '\n') + 1, &set, reterr);
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

int tokens_file_look(
    int folder, const char *name, struct tokens_stamp *ret, struct det_error *reterr)
{
    struct stat status;

    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
        *ret = stamp_of(&status);
    else if (errno == ENOENT)
        *ret = (struct tokens_stamp){ 0 };
    else
        return fail_errno(reterr, "it cannot be looked at");
    return 0;
}

static int check_owner(const struct stat *status, struct det_error *reterr)
{
    if (!S_ISREG(status->st_mode))
        return det_error_set(reterr, DET_ERR_REFUSED, "it is no regular file");
    if (status->st_uid != geteuid() && status->st_uid != 0 && geteuid() != 0)
        return det_error_set(reterr, DET_ERR_REFUSED, "it is another user's");
    if (status->st_mode & 077)
        return det_error_set(
            reterr, DET_ERR_REFUSED, "others may read or write it; chmod 600 makes it yours");
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
        return fail_errno(reterr, "it cannot be looked at");
    r = check_owner(&status, reterr);
    if (r < 0)
        return r;
    *ret_stamp = stamp_of(&status);
    target = status.st_size ? det_buffer_extend(ret, (size_t)status.st_size) : NULL;
    if (det_buffer_status(ret) < 0)
        return det_error_set(reterr, det_buffer_status(ret), "there is no memory left");
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

/* A new file for our eyes alone. What root makes in another's folder is that one's. */
static int make_private(int folder, int *ret, struct det_error *reterr)
{
    struct stat status;
    int descriptor, r;

    if (fstat(folder, &status) < 0)
        return fail_errno(reterr, "its folder cannot be looked at");
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
        r = fail_errno(reterr, "it cannot be made private");
        close(descriptor);
    } else {
        *ret = descriptor;
    }
    return r;
}

/* What is open, for the world: whatever its name leads to by now. */
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

/* Another process holds it for as long as a file is written. */
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

/* Nobody else has made it, or can put files into it. */
static int check_folder(const char *path, int folder, struct det_error *reterr)
{
    struct stat status;

    if (fstat(folder, &status) < 0)
        return fail_errno(reterr, "their folder cannot be looked at");
    if (status.st_uid != geteuid() && geteuid() != 0)
        return det_error_set(reterr, DET_ERR_REFUSED, "%.200s is another user's; remove it", path);
    if (status.st_mode & 022)
        return det_error_set(
            reterr, DET_ERR_REFUSED, "%.200s: others may write to it; chmod 700 makes it yours",
            path);
    return 0;
}

int tokens_folder_open(const char *path, bool is_made, int *ret, struct det_error *reterr)
{
    int folder, r;

    *ret = -1;
    if (is_made && mkdir(path, 0700) < 0 && errno != EEXIST)
        return fail_errno(reterr, "their folder cannot be made");
    folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0 && errno == ENOENT && !is_made)
        return 0;
    if (folder < 0 && (errno == ENOTDIR || errno == ELOOP))
        return det_error_set(
            reterr, DET_ERR_REFUSED, "%.200s is no folder, but a link or a file; remove it", path);
    if (folder < 0)
        return fail_errno(reterr, "their folder cannot be opened");
    r = check_folder(path, folder, reterr);
    if (r < 0)
        close(folder);
    else
        *ret = folder;
    return r;
}

/* A file that root creates in the folder of another user belongs to that user. One that stays
 * root's is still a lock, and says so to that user. */
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
        return fail_errno(reterr, "their lock, " LOCK_NAME ", cannot be opened");
    give_to_owner(folder, descriptor);
    r = wait_for_lock(descriptor, patience);
    if (r == DET_ERR_BUSY)
        det_error_set(reterr, r, "another process is changing them; try again");
    else if (r < 0)
        fail_errno(reterr, "cannot lock them");
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
