/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_readers.c - stores opened for reading, so that reads do not disturb writers.
 *
 * There are as many as lane threads need at the same time. Each has one user at a time, and is
 * reopened when definitions have changed or it has failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"

#define SPARE_DESCRIPTORS 4
#define PREFIX            "detent: "

static void close_reader(struct api_reader *reader)
{
    if (reader->is_open)
        cli_store_close(&reader->store);
    reader->is_open = false;
}

static void free_reader(struct api *api, struct api_reader *reader)
{
    close_reader(reader);
    if (reader->cli.err)
        fclose(reader->cli.err);
    free(reader->text);
    DET_DELETE(api->allocator, reader);
}

static struct api_reader *make_reader(struct api *api)
{
    struct api_reader *reader = DET_NEW(api->allocator, struct api_reader);

    if (!reader)
        return NULL;
    reader->cli = (struct cli){ .allocator = api->allocator, .world = api->world };
    reader->cli.err = open_memstream(&reader->text, &reader->text_size);
    reader->cli.out = reader->cli.err;
    if (!reader->cli.err) {
        free_reader(api, reader);
        return NULL;
    }
    return reader;
}

static struct api_reader *take_free(struct api *api)
{
    struct api_reader *reader;

    det_mutex_lock(api->world, api->source.lock);
    reader = api->source.readers;
    if (reader)
        api->source.readers = reader->next;
    det_mutex_unlock(api->world, api->source.lock);
    return reader ? reader : make_reader(api);
}

static int open_reader(const struct api *api, struct api_reader *reader)
{
    int code;

    if (reader->is_open)
        return CLI_OK;
    if (!api->source.address)
        return CLI_NOT_FOUND;
    close_reader(reader);
    code = cli_store_open_at(&reader->cli, api->source.address, &reader->store);
    reader->is_open = code == CLI_OK;
    if (!reader->is_open)
        cli_store_close(&reader->store);
    return code;
}

static void clear_messages(struct api_reader *reader)
{
    rewind(reader->cli.err);
    fflush(reader->cli.err);
    reader->text_size = 0;
    reader->store.error = 0;
}

struct api_reader *api_reader_open(struct api *api, int *ret_code)
{
    struct api_reader *reader = take_free(api);

    if (!reader)
        return NULL;
    clear_messages(reader);
    *ret_code = open_reader(api, reader);
    return reader;
}

bool api_reader_take(struct api_call *call)
{
    int code = CLI_OK;

    det_assert(!call->reader);
    if (!call->api->source.address) {
        api_fail(
            call, DET_ERR_UNSUPPORTED, "no store is configured: this detent serves no machine");
        return false;
    }
    call->reader = api_reader_open(call->api, &code);
    if (!call->reader) {
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
        return false;
    }
    if (code == CLI_OK)
        return true;
    api_fail_reader(call, code);
    close_reader(call->reader);
    return false;
}

void api_reader_give(struct api *api, struct api_reader *reader)
{
    det_mutex_lock(api->world, api->source.lock);
    det_assert(reader != api->source.readers);
    reader->next = api->source.readers;
    api->source.readers = reader;
    det_mutex_unlock(api->world, api->source.lock);
}

void api_readers_close(struct api *api)
{
    while (api->source.readers) {
        struct api_reader *reader = api->source.readers;

        api->source.readers = reader->next;
        free_reader(api, reader);
    }
}

/* Returns the error of the store, or else one that matches the exit code. */
static int error_of(const struct api_reader *reader, int exit_code)
{
    int code = reader->store.error;

    if (code < 0 && cli_exit_of(code) == exit_code)
        return code;
    return exit_code == CLI_NOT_FOUND  ? DET_ERR_NOT_FOUND
           : exit_code == CLI_USAGE    ? DET_ERR_INVALID
           : exit_code == CLI_CONFLICT ? DET_ERR_CONFLICT
           : exit_code == CLI_TIMEOUT  ? DET_ERR_TIMEOUT
                                       : DET_ERR_IO;
}

/* Fails with the first line of the error messages. */
void api_fail_reader(struct api_call *call, int exit_code)
{
    struct api_reader *reader = call->reader;
    int code = error_of(reader, exit_code);
    const char *text;

    det_assert(exit_code != CLI_OK);
    /* Without descriptors SQLite only reports that it cannot open a file. */
    if (code == DET_ERR_IO && det_descriptors_are_short(SPARE_DESCRIPTORS)) {
        api_fail(call, DET_ERR_BUSY, "out of file descriptors for the store; retry later");
        clear_messages(reader);
        return;
    }
    fflush(reader->cli.err);
    text = reader->text && reader->text_size ? reader->text : det_error_text(code);
    if (strncmp(text, PREFIX, strlen(PREFIX)) == 0)
        text += strlen(PREFIX);
    api_fail(call, code, "%.*s", (int)strcspn(text, "\n"), text);
    clear_messages(reader);
}

bool api_reader_machine(struct api_call *call, const char *name, struct det_machine **ret)
{
    int code = cli_store_machine(&call->reader->store, name, ret);

    if (code != CLI_OK)
        api_fail_reader(call, code);
    return code == CLI_OK;
}

bool api_reader_instance(struct api_call *call, struct instance *ret)
{
    struct det_machine *machine;
    int code;

    if (!api_reader_machine(call, call->parameters[0], &machine))
        return false;
    code = instance_open(&call->reader->store, machine, call->parameters[1], ret);
    if (code != CLI_OK)
        api_fail_reader(call, code);
    return code == CLI_OK;
}

const struct det_machine *api_reader_find(struct api_reader *reader, const char *name)
{
    struct det_machine *machine;

    for (const struct store_machine *m = reader->store.machines; m; m = m->next) {
        if (m->it && strcmp(m->name, name) == 0)
            return m->it;
    }
    if (cli_store_machine(&reader->store, name, &machine) == CLI_OK)
        return machine;
    clear_messages(reader);
    return NULL;
}
