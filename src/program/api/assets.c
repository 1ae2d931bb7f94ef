/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* assets.c - serves the files of the web console. */
#include "api/assets.h"

#include <string.h>

#define PAGE "/index.html"

/* Scripts come from this origin only, and the page has no inline scripts. The layout of diagrams
 * runs in WebAssembly, which needs its own permission. */
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

/* Names in /assets/ contain a hash of the content. */
static bool is_immutable(const char *path)
{
    return strncmp(path, "/assets/", 8) == 0;
}

/* Returns true if the path can only be a file, such as "/robots.txt". Views contain names of
 * instances, which may have dots. */
static bool is_file(const char *path)
{
    return is_immutable(path) || (!strchr(path + 1, '/') && strchr(path, '.'));
}

static void answer_file(struct http_exchange *exchange, const struct asset *asset)
{
    const struct http_header headers[] = {
        { "content-security-policy", POLICY },
        { "cross-origin-opener-policy", "same-origin" },
        { "cache-control",
          is_immutable(asset->path) ? "public, max-age=31536000, immutable" : "no-cache" },
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

static void refuse_file(
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
        refuse_file(exchange, 405, "UNSUPPORTED", "files support only GET and HEAD");
        return;
    }
    if (!asset && !is_file(path))
        asset = assets_find(PAGE);
    if (asset)
        answer_file(exchange, asset);
    else
        refuse_file(exchange, 404, "NOT_FOUND", "no such file");
}
