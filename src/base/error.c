/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* error.c - names and sentences of errors.def; fills a struct det_error. */
#include <detent/base.h>

#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

#ifndef DET_VERSION_TEXT
#define DET_VERSION_TEXT "0.1.0"
#endif

struct entry {
    int code;
    const char *name;
    const char *text;
};

static const struct entry entries[] = {
#define DET_ERROR(name, number, text) { -(number), #name, text },
#include <detent/errors.def>
#undef DET_ERROR
};

static const struct entry success = { 0, "OK", "no error" };
static const struct entry unknown = { 0, "UNKNOWN", "not an error code of libdetent" };

static const struct entry *find_entry(int code)
{
    if (code == 0)
        return &success;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        if (entries[i].code == code)
            return &entries[i];
    }
    return &unknown;
}

const char *det_error_name(int code)
{
    return find_entry(code)->name;
}

const char *det_error_text(int code)
{
    return find_entry(code)->text;
}

int det_error_set(struct det_error *error, int code, const char *format, ...)
{
    /* A separate buffer, because the arguments may point into `error`. It is one byte longer than
     * the stored text, so that the copy can detect that it cuts a character. */
    char text[DET_ERROR_TEXT_MAX + 1];
    va_list arguments;
    int length;

    if (error == NULL)
        return code;
    va_start(arguments, format);
    length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    *error = (struct det_error){ .code = code };
    (void)det_text_copy(error->text, sizeof error->text, length < 0 ? det_error_text(code) : text);
    return code;
}

const char *det_version(void)
{
    return DET_VERSION_TEXT;
}
