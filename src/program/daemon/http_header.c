/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_header.c - adds the configured headers of a request; reads secret ones and wipes their
 * memory. */
#include "daemon/http_header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "os/os.h"

#define SECRET_MAX 65536

static void wipe_text(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

/* Returns the secret: one line, without its end. NULL, with the reason. */
static char *read_secret(
    struct det_world *world, const struct config_header *header, char *why, size_t capacity)
{
    char *data = NULL, *copy = NULL;
    size_t size = 0;

    if (header->from == CONFIG_HEADER_VARIABLE) {
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): the environment is not changed */
        const char *value = getenv(header->value);

        copy = value ? strdup(value) : NULL;
    } else if (det_file_load(world, NULL, header->value, SECRET_MAX, &data, &size) == 0) {
        copy = strndup(data, strcspn(data, "\r\n"));
        explicit_bzero(data, size);
        det_free(NULL, data, size + 1);
    }
    if (copy && *copy && !copy[strcspn(copy, "\r\n")])
        return copy;
    wipe_text(copy);
    snprintf(
        why, capacity, "the secret header %s: %s:%.160s cannot be read", header->name,
        header->from == CONFIG_HEADER_FILE ? "file" : "env", header->value);
    return NULL;
}

bool http_lines_add_header(
    struct http_lines *lines, struct det_world *world, const struct config_header *header,
    char *why, size_t capacity)
{
    char *secret;
    bool is_added;

    if (header->from == CONFIG_HEADER_TEXT)
        return http_lines_add(lines, header->name, header->value);
    secret = read_secret(world, header, why, capacity);
    is_added = secret && http_lines_add(lines, header->name, secret);
    wipe_text(secret);
    return is_added;
}
