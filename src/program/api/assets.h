/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* assets.h - the files of the web console, which are part of the program. They hold no data, so
 * nobody needs a token for them. */
#ifndef DET_API_ASSETS_H
#define DET_API_ASSETS_H

#include "http/http.h"

struct asset {
    const char *path; /* "/assets/index-3f2a.js" */
    const unsigned char *data, *end;
};

/* In the order of the build; ends with a NULL path. Made by the build. */
extern const struct asset assets[];

/* The file of this path; NULL: there is none. */
const struct asset *assets_find(const char *path);
/* Answers with the file of this path. What is none is a view of the console, and gets its page, but
 * for what is below /assets, and for names with a dot right below the root: 404. */
void assets_answer(struct http_exchange *exchange, const char *path);

#endif
