/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* client_error.c - errors as clients see them.
 *
 * A text that names the store, by its path, its address or the words of its server, is for the
 * operator: clients get a fixed sentence, and the log gets the text. A text may be cut off and may
 * quote a path, so the beginning of a path is enough to match. Clients get a text that only ends
 * with the store ("... in sqlite:a.db") without this end. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "api/api_internal.h"
#include "daemon/daemon.h"

/* Length of the beginning of a path or address that must match. */
#define PLACE_SIZE 12

static bool has_place(const char *text, const char *place)
{
    char beginning[PLACE_SIZE + 1];
    size_t size = place ? strcspn(place, "?") : 0;

    if (size == 0)
        return false;
    snprintf(beginning, sizeof beginning, "%.*s", (int)size, place);
    for (const char *at = text; (at = strstr(at, beginning)); at++) {
        if (at == text || !isalnum((unsigned char)at[-1]))
            return true;
    }
    return false;
}

bool api_names_store(const char *text, const char *address, const char *url)
{
    const char *colon = address ? strchr(address, ':') : NULL;

    return strstr(text, "PostgreSQL: ") || has_place(text, address) || has_place(text, url) ||
           has_place(text, colon ? colon + 1 : NULL);
}

/* Removes " in PLACE" from the end: "there is no order 'o-1' in sqlite:a.db". */
static void remove_place(char *text, const char *place)
{
    size_t length = strlen(text), size = place ? strlen(place) : 0, end = strlen(" in ") + size;

    if (size > 0 && length > end && memcmp(text + length - end, " in ", 4) == 0 &&
        memcmp(text + length - size, place, size) == 0)
        text[length - end] = '\0';
}

static void write_text(
    const struct api *api, struct det_json_writer *json, int code, const struct det_error *error)
{
    bool has_text = error->code == code && error->text[0];
    char text[DET_ERROR_TEXT_MAX];

    snprintf(text, sizeof text, "%s", has_text ? error->text : det_error_text(code));
    if (has_text && api) {
        remove_place(text, api->source.address);
        remove_place(text, api->source.url);
    }
    if (!has_text || !api || !api_names_store(text, api->source.address, api->source.url)) {
        det_json_text(json, "text", text);
        return;
    }
    up_store_report(api->up, error->text);
    snprintf(text, sizeof text, "the store: %s; see the log of detent up", det_error_text(code));
    det_json_text(json, "text", text);
}

const struct api *api_error_reader(const struct api_call *call)
{
    return strcmp(call->who, "unix") == 0 ? NULL : call->api;
}

void api_error_line(
    const struct api *api, struct det_json_writer *json, int code, const struct det_error *error)
{
    det_json_open(json, "error", '{');
    det_json_text(json, "code", det_error_name(code));
    write_text(api, json, code, error);
    if (error->state)
        det_json_text(json, "state", error->state);
    if (error->event)
        det_json_text(json, "event", error->event);
    if (code == DET_ERR_CONFLICT && (error->expected || error->actual)) {
        det_json_number(json, "expected", error->expected);
        det_json_number(json, "actual", error->actual);
    }
    det_json_close(json, '}');
}
