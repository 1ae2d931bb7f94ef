/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect_command.c - an effect that is a program: starts it, gives it its input, reads its output
 * and waits for its end, on a thread that may block.
 *
 * The input is a file in memory, so a program that does not read it blocks no other. The program
 * leads its own process group, which is killed at the deadline. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/effect.h"
#include "os/os.h"

#define SLICE_MS   200
#define READ_SIZE  4096
#define ERROR_KEPT 1024 /* bytes kept of the end of its error stream */

struct running {
    struct effects *effects;
    struct det_process *process;
    struct det_buffer *body;
    struct det_buffer error;
    int streams[2]; /* output, error; -1: closed */
    bool is_too_long;
};

/* The descriptor of the input, or -1. */
static int open_input(const struct det_buffer *input)
{
    int descriptor = memfd_create("input", MFD_CLOEXEC);
    size_t sent = 0;

    while (descriptor >= 0 && sent < input->size) {
        ssize_t count = write(descriptor, input->data + sent, input->size - sent);

        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0) {
            close(descriptor);
            return -1;
        }
        sent += (size_t)count;
    }
    if (descriptor >= 0)
        (void)lseek(descriptor, 0, SEEK_SET);
    return descriptor;
}

static void keep_output(struct running *running, int stream, const char *data, size_t size)
{
    struct det_buffer *error = &running->error;

    if (stream == DET_PROCESS_OUTPUT) {
        running->is_too_long = running->is_too_long || running->body->size + size > EFFECT_BODY_MAX;
        if (!running->is_too_long)
            det_buffer_append(running->body, data, size);
        return;
    }
    det_buffer_append(error, data, size);
    if (error->size > ERROR_KEPT)
        det_buffer_drop(error, error->size - ERROR_KEPT);
}

/* Reads what is available. */
static void read_stream(struct running *running, int stream)
{
    struct det_world *world = running->effects->world;
    char part[READ_SIZE];
    int64_t count = 1;

    while (running->streams[stream] >= 0 && count > 0 && !running->is_too_long) {
        count = world->ops->process_read(
            world, running->process, (enum det_process_stream)stream, part, sizeof part);
        if (count > 0)
            keep_output(running, stream, part, (size_t)count);
        else if (count != DET_ERR_BUSY)
            running->streams[stream] = -1;
    }
    explicit_bzero(part, sizeof part);
}

/* Waits for the end of the process or the deadline. True: it has ended. */
static bool wait_for_end(struct running *running, det_time deadline, struct det_process_end *ret)
{
    struct det_world *world = running->effects->world;
    int descriptor = world->ops->process_descriptor(world, running->process);

    while (!running->is_too_long && !effect_is_over(running->effects, deadline)) {
        struct pollfd polled[] = {
            { .fd = running->streams[0], .events = POLLIN },
            { .fd = running->streams[1], .events = POLLIN },
            { .fd = descriptor, .events = POLLIN },
        };

        (void)poll(polled, sizeof polled / sizeof *polled, SLICE_MS);
        read_stream(running, DET_PROCESS_OUTPUT);
        read_stream(running, DET_PROCESS_ERROR);
        /* An error: it has ended with an unknown result. */
        if (polled[2].revents &&
            world->ops->process_wait(world, running->process, 0, ret) != DET_ERR_TIMEOUT) {
            /* Its last output. */
            read_stream(running, DET_PROCESS_OUTPUT);
            read_stream(running, DET_PROCESS_ERROR);
            return true;
        }
    }
    return false;
}

/* Appends the last line that is not blank. */
static void add_last_words(const struct running *running, char *why, size_t size)
{
    size_t used = strlen(why), end = running->error.size, from;
    const char *text = (const char *)running->error.data;

    while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == ' '))
        end--;
    for (from = end; from > 0 && text[from - 1] != '\n';)
        from--;
    if (end > from)
        snprintf(why + used, size - used, ": %.*s", (int)(end - from), text + from);
}

static void set_outcome(
    const struct running *running, const struct det_process_end *end,
    struct effect_outcome *outcome)
{
    outcome->code = end->code;
    outcome->is_success = end->code == 0;
    outcome->is_strict = true;
    outcome->error = DET_ERR_ACTION_FAILED;
    if (end->signal)
        snprintf(outcome->why, sizeof outcome->why, "ended by signal %d", end->signal);
    else if (end->code < 0)
        snprintf(outcome->why, sizeof outcome->why, "it ended with an unknown result");
    else
        snprintf(outcome->why, sizeof outcome->why, "exit code %d", end->code);
    add_last_words(running, outcome->why, sizeof outcome->why);
}

static void watch_process(
    struct running *running, const struct effect_binding *binding, det_time deadline,
    struct effect_outcome *outcome)
{
    struct det_world *world = running->effects->world;
    struct det_process_end end = { .code = -1 };

    running->streams[0] = world->ops->process_stream(world, running->process, DET_PROCESS_OUTPUT);
    running->streams[1] = world->ops->process_stream(world, running->process, DET_PROCESS_ERROR);
    if (wait_for_end(running, deadline, &end) && !running->is_too_long) {
        set_outcome(running, &end, outcome);
        return;
    }
    (void)world->ops->process_kill(world, running->process, DET_PROCESS_SIGKILL);
    effect_time_out(running->effects, binding, deadline, outcome);
    if (!running->is_too_long)
        return;
    outcome->is_cut_off = false;
    outcome->error = DET_ERR_LIMIT;
    snprintf(outcome->why, sizeof outcome->why, "it wrote more than 1 MiB to its output");
}

void effect_command(
    struct effects *effects, const struct effect_binding *binding, const struct det_buffer *input,
    struct effect_outcome *outcome)
{
    const struct config_effect *config = binding->config;
    struct running running = { .effects = effects, .body = &outcome->body };
    struct det_process_options options = {
        .argv = config->argv,
        .environment = config->environment,
        .folder = config->folder,
        .input = open_input(input),
        .output = -1,
        .error = -1,
        .new_group = true,
        .has_streams = true,
        .ends_with_us = true,
    };
    det_time deadline = effect_deadline(effects, binding);
    struct det_error error = { 0 };
    int r = DET_ERR_IO;

    if (options.input < 0) {
        outcome->is_shortage = det_errno_is_shortage(errno);
        snprintf(
            outcome->why, sizeof outcome->why, "its input cannot be stored: %s",
            strerrordesc_np(errno));
    } else {
        r = effects->world->ops->process_start(effects->world, &options, &running.process, &error);
        close(options.input);
        if (r < 0)
            snprintf(outcome->why, sizeof outcome->why, "%s", error.text);
    }
    outcome->error = r;
    outcome->is_shortage |= r == DET_ERR_LIMIT || r == DET_ERR_NO_MEMORY;
    if (r < 0)
        return;
    det_buffer_init(&running.error, effects->allocator);
    watch_process(&running, binding, deadline, outcome);
    effects->world->ops->process_close(effects->world, running.process);
    det_buffer_deinit(&running.error);
}
