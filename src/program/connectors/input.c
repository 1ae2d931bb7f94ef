/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* input.c - reads a file or a pipe into a buffer. */
#include "connectors/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/memory.h"
#include "connectors/waker.h"
#include "os/os.h"

static int fail_open(const char *path, int number, struct det_error *reterr)
{
    int r = number == ENOENT                ? DET_ERR_NOT_FOUND
            : det_errno_is_shortage(number) ? DET_ERR_LIMIT
                                            : DET_ERR_IO;
    const char *remedy = number == ENOENT     ? "create it, or correct the path"
                         : number == EACCES   ? "let this user read it"
                         : r == DET_ERR_LIMIT ? "raise the limit of open files (ulimit -n)"
                                              : "correct the path";

    return det_error_set(
        reterr, r, "%.160s cannot be opened: %s; %s", path, strerrordesc_np(number), remedy);
}

static int use_descriptor(struct input *input, struct det_error *reterr)
{
    struct stat status;
    int r;

    if (fstat(input->descriptor, &status) < 0)
        return fail_open(input->name, errno, reterr);
    if (S_ISDIR(status.st_mode))
        return fail_open(input->name, EISDIR, reterr);
    input->is_file = S_ISREG(status.st_mode);
    input->device = status.st_dev;
    input->inode = status.st_ino;
    if (input->is_file) {
        (void)posix_fadvise(input->descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
        return 0;
    }
    r = waker_open(input->call, &input->waker);
    if (r < 0)
        return det_error_set(
            reterr, r, "%.160s: no thread can wait for it: %s", input->name, det_error_text(r));
    return 0;
}

static void begin_input(
    struct input *input, struct det_stage_call *call, const char *name, size_t limit)
{
    det_assert(limit > 0);
    *input = (struct input){ .call = call, .name = name, .limit = limit, .descriptor = -1 };
}

int input_open(
    struct input *input, struct det_stage_call *call, const char *path, size_t limit,
    struct det_error *reterr)
{
    int r;

    begin_input(input, call, path, limit);
    input->is_owned = strcmp(path, "-") != 0;
    if (!input->is_owned)
        input->name = "standard input";
    /* Without waiting for the writer of a pipe. */
    input->descriptor =
        input->is_owned ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : STDIN_FILENO;
    if (input->descriptor < 0)
        return fail_open(path, errno, reterr);
    r = use_descriptor(input, reterr);
    if (r < 0)
        input_close(input);
    return r;
}

int input_open_pipe(
    struct input *input, struct det_stage_call *call, const char *name, int descriptor,
    size_t limit, struct det_error *reterr)
{
    int r;

    begin_input(input, call, name, limit);
    input->descriptor = descriptor;
    r = use_descriptor(input, reterr);
    if (r < 0)
        input_close(input);
    return r;
}

void input_close(struct input *input)
{
    if (!input->call)
        return;
    waker_close(input->waker);
    if (input->is_owned && input->descriptor >= 0)
        (void)close(input->descriptor);
    det_free(input->call->allocator, input->data, input->capacity);
    *input = (struct input){ .descriptor = -1 };
}

void input_seek(struct input *input, uint64_t offset)
{
    det_assert(input->is_file);
    input->begin = input->end = 0;
    input->offset = offset;
    input->is_ended = input->is_skipping = false;
}

int input_head(const struct input *input, size_t size, uint32_t *ret)
{
    char head[INPUT_HEAD];
    ssize_t count;

    det_assert(input->is_file && size <= INPUT_HEAD);
    count = pread(input->descriptor, head, size, 0);
    if (count < 0)
        return DET_ERR_IO;
    if ((size_t)count < size)
        return DET_ERR_TRUNCATED;
    *ret = det_crc32c(0, head, size);
    return 0;
}

/* Makes room after the unread bytes: moves them to the front, or grows. */
static int make_room(struct input *input)
{
    size_t unread = input->end - input->begin, wanted;
    char *data;

    if (unread >= input->limit)
        return DET_ERR_LIMIT;
    if (input->begin > 0) {
        memmove(input->data, input->data + input->begin, unread);
        input->begin = 0;
        input->end = unread;
    }
    if (input->capacity - input->end >= INPUT_CHUNK / 2)
        return 0;
    wanted = input->capacity ? 2 * input->capacity : INPUT_CHUNK;
    if (wanted > INPUT_CHUNK + input->limit)
        wanted = INPUT_CHUNK + input->limit;
    if (wanted == input->capacity)
        return 0;
    data = det_realloc(input->call->allocator, input->data, input->capacity, wanted);
    if (!data)
        return DET_ERR_NO_MEMORY;
    input->data = data;
    input->capacity = wanted;
    return 0;
}

static ssize_t read_some(struct input *input)
{
    char *target = input->data + input->end;
    size_t room = input->capacity - input->end;
    uint64_t at = input->offset + (input->end - input->begin);

    if (input->is_file)
        return pread(input->descriptor, target, room, (off_t)at);
    /* Standard input may block, and is shared with other processes: its flags stay as they are. */
    if (!waker_is_ready(input->descriptor, POLLIN)) {
        errno = EAGAIN;
        return -1;
    }
    return read(input->descriptor, target, room);
}

int input_more(struct input *input)
{
    ssize_t size;
    int r;

    if (input->is_ended)
        return 0;
    r = make_room(input);
    if (r < 0)
        return r;
    size = read_some(input);
    if (size > 0) {
        input->end += (size_t)size;
        det_assert(input->end <= input->capacity);
        return 1;
    }
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        waker_arm(input->waker, input->descriptor, POLLIN);
        return 0;
    }
    input->is_ended = size == 0;
    return size == 0 ? 0 : DET_ERR_IO;
}

/* Takes `size` bytes of a line, and returns whether it counts. */
static bool take_line(struct input *input, size_t size, bool has_end, struct det_view *ret)
{
    const char *line = input->data + input->begin;
    bool is_rest = input->is_skipping;

    input_take(input, size + has_end);
    input->is_skipping = is_rest && !has_end;
    if (is_rest)
        return false;
    *ret = det_view_of(line, size - (size > 0 && line[size - 1] == '\r'));
    return true;
}

int input_line(struct input *input, bool ends, struct det_view *ret)
{
    size_t searched = 0;
    int r;

    for (;;) {
        struct det_view unread = input_view(input);
        const char *end = searched < unread.size
                              ? memchr(unread.data + searched, '\n', unread.size - searched)
                              : NULL;

        if (end) {
            if (take_line(input, (size_t)(end - unread.data), true, ret))
                return 1;
            searched = 0;
            continue;
        }
        searched = unread.size;
        r = input_more(input);
        if (r == DET_ERR_LIMIT) {
            bool is_rest = input->is_skipping;

            input_take(input, unread.size);
            input->is_skipping = true;
            searched = 0;
            if (!is_rest)
                return r;
        } else if (r < 0) {
            return r;
        } else if (r == 0) {
            if (!input->is_ended || !ends || unread.size == 0)
                return 0;
            return take_line(input, unread.size, false, ret);
        }
    }
}
