/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_request.c - fuzz target: bytes into HTTP requests.
 *
 * The first byte says how they are cut; the rest is what a connection carries. Whatever the cuts,
 * the requests are the same, and so is the refusal that ends them; what is accepted has the form
 * that handlers rely on. */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "http/request_parser.h"

#define COUNT_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void check_text(const char *text)
{
    for (; *text; text++)
        require((unsigned char)*text >= ' ' || *text == '\t');
}

static void check_request(const struct http_parse *parse)
{
    const struct http_request *request = &parse->request;

    require(request->path[0] == '/' || strcmp(request->path, "*") == 0);
    require(!strstr(request->path, "%00") && !strstr(request->query, "%00"));
    require(!strpbrk(request->path, " ?#\\") && !strpbrk(request->query, " #\\"));
    require(parse->minor == 0 || http_host_is_valid(request->host));
    require(request->body_size <= parse->limits->body_max);
    require(request->body[request->body_size] == '\0');
    require(request->header_count <= COUNT_MAX);
    for (size_t i = 0; i < request->header_count; i++) {
        require(request->headers[i].name[0] && !strpbrk(request->headers[i].name, " :\t"));
        check_text(request->headers[i].value);
    }
    require(!http_header(request, "content-length") || !http_header(request, "transfer-encoding"));
}

static void print_request(const struct http_parse *parse, struct det_buffer *to)
{
    const struct http_request *request = &parse->request;

    det_buffer_format(
        to, "%s %s?%s %s %d%d%d\n", request->method_name, request->path, request->query,
        request->host, (int)parse->minor, parse->is_keep_alive, parse->wants_continue);
    for (size_t i = 0; i < request->header_count; i++)
        det_buffer_format(to, "%s=%s\n", request->headers[i].name, request->headers[i].value);
    det_buffer_append(to, request->body, request->body_size);
}

/* What becomes of the bytes when they come in parts of `step`. The parser's bytes end where its
 * memory ends, and move each time. */
static void read_all(const char *bytes, size_t size, size_t step, struct det_buffer *to)
{
    struct http_limits limits = {
        .line_max = 200, .headers_max = 400, .header_count_max = COUNT_MAX, .body_max = 100
    };
    struct http_header headers[COUNT_MAX];
    struct http_place places[COUNT_MAX];
    struct http_parse parse = { .limits = &limits, .headers = headers, .places = places };
    enum http_verdict verdict = HTTP_MORE;
    char *memory = NULL;

    http_limits_settle(&limits);
    http_parse_begin(&parse);
    for (size_t at = 0; at < size && verdict != HTTP_REFUSED; at += step) {
        size_t part = size - at < step ? size - at : step;
        char *more = malloc(parse.size + part + 1);

        require(more);
        if (parse.size)
            memcpy(more, parse.data, parse.size);
        memcpy(more + parse.size, bytes + at, part);
        free(memory);
        parse.data = memory = more;
        http_parse_add(&parse, part);
        do {
            verdict = http_parse(&parse);
            require(verdict != HTTP_GO_ON);
            if (verdict == HTTP_COMPLETE) {
                check_request(&parse);
                print_request(&parse, to);
                http_parse_next(&parse);
            }
        } while (verdict == HTTP_HEADERS || verdict == HTTP_COMPLETE);
    }
    det_buffer_format(to, "%d", (int)parse.refusal);
    free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct det_buffer whole, parts;
    const char *bytes = (const char *)data + 1;

    if (size < 2)
        return 0;
    det_buffer_init(&whole, NULL);
    det_buffer_init(&parts, NULL);
    read_all(bytes, size - 1, size, &whole);
    read_all(bytes, size - 1, 1 + data[0] % 64, &parts);
    require(det_buffer_status(&whole) == 0 && det_buffer_status(&parts) == 0);
    require(whole.size == parts.size && memcmp(whole.data, parts.data, whole.size) == 0);
    det_buffer_deinit(&whole);
    det_buffer_deinit(&parts);
    return 0;
}
