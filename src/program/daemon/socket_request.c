/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* socket_request.c - the lines of the local socket, both ways. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "daemon/socket.h"
#include "terminal/terminal.h"

static bool is_verb(const char *text)
{
    size_t length = strlen(text);

    return length && length <= SOCKET_VERB_MAX &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

static bool is_id(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 &&
           (uint64_t)json_integer_value(value) <= SOCKET_ID_MAX;
}

static int check_members(json_t *root, struct det_error *reterr)
{
    static const char *const members[] = { "id", "verb", "arguments" };
    const char *key;
    json_t *value;

    json_object_foreach(root, key, value)
    {
        size_t i = 0;

        while (i < 3 && strcmp(members[i], key) != 0)
            i++;
        if (i == 3)
            return det_error_set(
                reterr, DET_ERR_INVALID, "a request has no member '%.80s': id, verb, arguments",
                key);
    }
    return 0;
}

static int take_members(struct socket_request *request, struct det_error *reterr)
{
    json_t *id = json_object_get(request->root, "id");
    const char *verb = json_string_value(json_object_get(request->root, "verb"));

    if (!is_id(id))
        return det_error_set(
            reterr, DET_ERR_INVALID, "'id' is a whole number from 0 to 9007199254740991");
    request->id = (uint64_t)json_integer_value(id);
    request->has_id = true;
    if (!verb || !is_verb(verb))
        return det_error_set(
            reterr, DET_ERR_INVALID, "'verb' is a word of small letters, digits and '-'");
    request->verb = verb;
    request->arguments = json_object_get(request->root, "arguments");
    if (request->arguments && !json_is_object(request->arguments))
        return det_error_set(reterr, DET_ERR_INVALID, "'arguments' is an object");
    return check_members(request->root, reterr);
}

int socket_request_read(
    const char *line, size_t size, struct socket_request *ret, struct det_error *reterr)
{
    json_error_t error;

    *ret = (struct socket_request){ 0 };
    ret->root = json_loadb(line, size, JSON_REJECT_DUPLICATES, &error);
    if (!ret->root && json_error_code(&error) == json_error_out_of_memory)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    if (!ret->root)
        return det_error_set(
            reterr, DET_ERR_MALFORMED, "not JSON, at byte %d: %s", error.position, error.text);
    if (!json_is_object(ret->root))
        return det_error_set(reterr, DET_ERR_MALFORMED, "a request is an object");
    return take_members(ret, reterr);
}

void socket_request_deinit(struct socket_request *request)
{
    json_decref(request->root);
    *request = (struct socket_request){ 0 };
}

char *socket_answer_line(const uint64_t *id, const char *key, json_t *value_take)
{
    json_t *line = json_pack(
        "{s:o, s:o}", "id", id ? json_integer((json_int_t)*id) : json_null(), key, value_take);
    char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    size_t length = text ? strlen(text) : 0;
    char *ended = text ? realloc(text, length + 2) : NULL;

    json_decref(line);
    if (ended)
        memcpy(ended + length, "\n", 2);
    else
        free(text);
    return ended;
}

json_t *socket_error_value(int code, const char *text)
{
    return json_pack("{s:s, s:o}", "code", det_error_name(code), "text", cli_json_text(text));
}

int socket_error_code(const char *name)
{
    static const int codes[] = {
#define DET_ERROR(error, number, text) DET_ERR_##error,
#include <detent/errors.def>
#undef DET_ERROR
    };

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (strcmp(det_error_name(codes[i]), name) == 0)
            return codes[i];
    }
    return DET_ERR_IO;
}
