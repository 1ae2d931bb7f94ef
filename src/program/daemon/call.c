/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* call.c - answers to what was asked, for whoever carries them. */
#include "daemon/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "terminal/terminal.h"

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

void socket_call_answer(struct socket_call *call, json_t *data_take)
{
    call->ops->put(call, "data", data_take);
    call->ops->release(call);
}

int socket_call_send(struct socket_call *call, json_t *data_take)
{
    call->ops->put(call, "data", data_take);
    return call->ops->is_gone(call) ? DET_ERR_CLOSED : 0;
}

size_t socket_call_waiting(const struct socket_call *call)
{
    return call->ops->waiting(call);
}

void socket_call_end(struct socket_call *call)
{
    call->ops->put(call, "end", json_true());
    call->ops->release(call);
}

void socket_call_fail(struct socket_call *call, int code, const char *format, ...)
{
    struct det_error error = { 0 };
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(error.text, sizeof error.text, format, arguments);
    va_end(arguments);
    call->ops->put(call, "error", socket_error_value(code, error.text));
    call->ops->release(call);
}

void socket_call_keep(struct socket_call *call, void (*on_gone)(void *user), void *user)
{
    call->is_kept = true;
    call->on_gone = on_gone;
    call->user = user;
}
