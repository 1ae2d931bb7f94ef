/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_readers.c - stores that are open for reading, so that who looks disturbs nobody who writes.
 *
 * There are as many as threads of the pool need at once; each is used by one at a time, and opened
 * again when definitions have changed or it has failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
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

    det_mutex_lock(api->world, api->lock);
    reader = api->readers;
    if (reader)
        api->readers = reader->next;
    det_mutex_unlock(api->world, api->lock);
    return reader ? reader : make_reader(api);
}

static int open_reader(const struct api *api, struct api_reader *reader)
{
    int code;

    if (reader->is_open)
        return CLI_OK;
    if (!api->address)
        return CLI_NOT_FOUND;
    close_reader(reader);
    code = cli_store_open_at(&reader->cli, api->address, &reader->store);
    reader->is_open = code == CLI_OK;
    if (!reader->is_open)
        cli_store_close(&reader->store);
    return code;
}

static void forget_text(struct api_reader *reader)
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
    forget_text(reader);
    *ret_code = open_reader(api, reader);
    return reader;
}

bool api_reader_take(struct api_call *call)
{
    int code = CLI_OK;

    if (!call->api->address) {
        api_fail(call, DET_ERR_UNSUPPORTED, "there is no store here: no machine is served");
        return false;
    }
    call->reader = api_reader_open(call->api, &code);
    if (!call->reader) {
        api_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
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
    det_mutex_lock(api->world, api->lock);
    reader->next = api->readers;
    api->readers = reader;
    det_mutex_unlock(api->world, api->lock);
}

void api_readers_close(struct api *api)
{
    while (api->readers) {
        struct api_reader *reader = api->readers;

        api->readers = reader->next;
        free_reader(api, reader);
    }
}

/* The error that was complained about; where it was none of the store, what the exit code says. */
static int error_of(const struct api_reader *reader, int exit_code)
{
    int code = reader->store.error;

    if (code < 0 && cli_store_exit(code) == exit_code)
        return code;
    return exit_code == CLI_NOT_FOUND  ? DET_ERR_NOT_FOUND
           : exit_code == CLI_USAGE    ? DET_ERR_INVALID
           : exit_code == CLI_CONFLICT ? DET_ERR_CONFLICT
           : exit_code == CLI_TIMEOUT  ? DET_ERR_TIMEOUT
                                       : DET_ERR_IO;
}

/* What was complained, as one sentence. */
void api_fail_reader(struct api_call *call, int exit_code)
{
    struct api_reader *reader = call->reader;
    int code = error_of(reader, exit_code);
    const char *text;

    /* SQLite cannot open a file then, and says no more than that. */
    if (code == DET_ERR_IO && det_descriptors_are_short(SPARE_DESCRIPTORS)) {
        api_fail(call, DET_ERR_BUSY, "there are no descriptors left for the store; retry later");
        forget_text(reader);
        return;
    }
    fflush(reader->cli.err);
    text = reader->text && reader->text_size ? reader->text : det_error_text(code);
    if (strncmp(text, PREFIX, strlen(PREFIX)) == 0)
        text += strlen(PREFIX);
    api_fail(call, code, "%.*s", (int)strcspn(text, "\n"), text);
    forget_text(reader);
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
    forget_text(reader);
    return NULL;
}
