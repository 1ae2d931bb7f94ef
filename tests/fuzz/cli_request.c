/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* cli_request.c - fuzz target: a line of the local socket into a request. Whatever is read, there
 * is a request whose parts are in range, or an error with a sentence; either can be answered. */
#include <stdlib.h>
#include <string.h>

#include "daemon/socket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void answer(const struct socket_request *request, int code, const char *text)
{
    char *line = socket_answer_line(
        request->has_id ? &request->id : NULL, "error", socket_error_value(code, text));

    require(line && strchr(line, '\n') == line + strlen(line) - 1);
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct socket_request request;
    struct det_error error = { 0 };
    int r;

    if (size >= SOCKET_LINE_MAX)
        return 0;
    r = socket_request_read((const char *)data, size, &request, &error);
    if (r == 0) {
        require(request.has_id && request.id <= SOCKET_ID_MAX);
        require(request.verb[0] && strlen(request.verb) <= SOCKET_VERB_MAX);
        require(!request.arguments || json_is_object(request.arguments));
    } else {
        require(error.text[0] != '\0');
        answer(&request, r, error.text);
    }
    socket_request_deinit(&request);
    return 0;
}
