/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* assets.c - answers with the files of the web console. */
#include "api/assets.h"

#include <string.h>

#define PAGE "/index.html"

/* Scripts come from here alone, and there are none in the page itself. Drawings are laid out by
 * WebAssembly, which needs its own leave. */
#define POLICY                                                                     \
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; " \
    "img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; " \
    "form-action 'none'; frame-ancestors 'none'"

struct type {
    const char *suffix, *type;
};

static const struct type types[] = {
    { ".html", "text/html; charset=utf-8" },
    { ".js", "text/javascript; charset=utf-8" },
    { ".css", "text/css; charset=utf-8" },
    { ".svg", "image/svg+xml" },
    { ".wasm", "application/wasm" },
    { ".json", "application/json" },
    { ".png", "image/png" },
    { ".ico", "image/x-icon" },
    { ".woff2", "font/woff2" },
    { ".txt", "text/plain; charset=utf-8" },
};

static const char *type_of(const char *path)
{
    const char *suffix = strrchr(path, '.');

    for (size_t i = 0; suffix && i < sizeof types / sizeof *types; i++) {
        if (strcmp(suffix, types[i].suffix) == 0)
            return types[i].type;
    }
    return "application/octet-stream";
}

const struct asset *assets_find(const char *path)
{
    for (const struct asset *asset = assets; asset->path; asset++) {
        if (strcmp(asset->path, path) == 0)
            return asset;
    }
    return NULL;
}

/* The names of these change with their content. */
static bool is_for_ever(const char *path)
{
    return strncmp(path, "/assets/", 8) == 0;
}

/* Whether it could only be one of ours, as "/robots.txt": views have names of instances in them,
 * where a dot means nothing. */
static bool is_file(const char *path)
{
    return is_for_ever(path) || (!strchr(path + 1, '/') && strchr(path, '.'));
}

static void answer_file(struct http_exchange *exchange, const struct asset *asset)
{
    const struct http_header headers[] = {
        { "content-security-policy", POLICY },
        { "cross-origin-opener-policy", "same-origin" },
        { "cache-control",
          is_for_ever(asset->path) ? "public, max-age=31536000, immutable" : "no-cache" },
    };

    http_answer(
        exchange, &(struct http_answer){
                      .status = 200,
                      .type = type_of(asset->path),
                      .headers = headers,
                      .header_count = sizeof headers / sizeof *headers,
                      .body = asset->data,
                      .body_size = (size_t)(asset->end - asset->data),
                      .is_static = true,
                  });
}

static void refuse(
    struct http_exchange *exchange, unsigned status, const char *code, const char *text)
{
    char body[HTTP_ERROR_BODY];

    http_answer(
        exchange, &(struct http_answer){ .status = status,
                                         .type = "application/json",
                                         .body = body,
                                         .body_size = http_error_body(body, code, text) });
}

void assets_answer(struct http_exchange *exchange, const char *path)
{
    const struct http_request *request = http_request(exchange);
    const struct asset *asset = assets_find(path);

    if (request->method != HTTP_GET && request->method != HTTP_HEAD) {
        refuse(exchange, 405, "UNSUPPORTED", "files can only be read");
        return;
    }
    if (!asset && !is_file(path))
        asset = assets_find(PAGE);
    if (asset)
        answer_file(exchange, asset);
    else
        refuse(exchange, 404, "NOT_FOUND", "there is no such file");
}
