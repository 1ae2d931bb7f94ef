/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* request_parser.c - parses the request line and the headers, line by line. */
#include "http/request_parser.h"

#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/text.h"

#define LENGTH_DIGITS_MAX 19 /* as many as always fit 64 bits */

/* Letters, digits and !#$%&'*+-.^_`|~ */
const struct http_set http_token_set = { 0x03ff6cfa00000000, 0x57ffffffc7fffffe };

static const char *const methods[HTTP_METHODS] = {
    [HTTP_GET] = "GET",         [HTTP_HEAD] = "HEAD",   [HTTP_POST] = "POST",
    [HTTP_PUT] = "PUT",         [HTTP_PATCH] = "PATCH", [HTTP_DELETE] = "DELETE",
    [HTTP_OPTIONS] = "OPTIONS",
};

static enum http_verdict refuse_request(struct http_parse *parse, enum http_refusal refusal)
{
    parse->refusal = refusal;
    parse->phase = HTTP_PHASE_REFUSED;
    return HTTP_REFUSED;
}

/* Finds the line at `at`, and the start of the next one. The limit counts from `section`, and is
 * checked first, since a line without its end has no meaning. */
static enum http_verdict find_line(
    struct http_parse *parse, size_t section, size_t limit, enum http_refusal too_long,
    struct det_view *ret)
{
    char *line = parse->data + parse->at, *end;

    end = memchr(parse->data + parse->scanned, '\n', parse->size - parse->scanned);
    if (!end) {
        parse->scanned = parse->size;
        return parse->size - section >= limit ? refuse_request(parse, too_long) : HTTP_MORE;
    }
    if ((size_t)(end - parse->data) - section >= limit)
        return refuse_request(parse, too_long);
    if (end == line || end[-1] != '\r')
        return refuse_request(parse, HTTP_REFUSED_BARE_LF);
    *ret = det_view_of(line, (size_t)(end - 1 - line));
    if (memchr(line, '\r', ret->size))
        return refuse_request(parse, HTTP_REFUSED_BARE_CR);
    parse->at = parse->scanned = (size_t)(end + 1 - parse->data);
    return HTTP_GO_ON;
}

static enum http_method method_of(const char *name)
{
    int i = 0;

    while (i < HTTP_METHODS && strcmp(name, methods[i]) != 0)
        i++;
    return (enum http_method)i;
}

static bool is_token(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!http_set_has(&http_token_set, text[i]))
            return false;
    return size > 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static enum http_refusal read_version(struct http_parse *parse, const char *text, size_t size)
{
    if (size != 8 || memcmp(text, "HTTP/", 5) != 0 || !is_digit(text[5]) || text[6] != '.' ||
        !is_digit(text[7]))
        return HTTP_REFUSED_VERSION;
    if (text[5] != '1' || text[7] > '1')
        return HTTP_REFUSED_VERSION_UNSUPPORTED;
    parse->minor = (unsigned)(text[7] - '0');
    parse->is_keep_alive = parse->minor == 1;
    return HTTP_ACCEPTED;
}

static enum http_refusal read_method(struct http_parse *parse, char *name, size_t size)
{
    if (!is_token(name, size))
        return HTTP_REFUSED_METHOD;
    name[size] = '\0';
    parse->request.method = method_of(name);
    if (strcmp(name, "CONNECT") == 0)
        return HTTP_REFUSED_METHOD_UNSUPPORTED;
    return HTTP_ACCEPTED;
}

/* Checks the version first: the rest of another version is unknown. */
static enum http_refusal read_request_line(struct http_parse *parse, struct det_view view)
{
    char *line = parse->data, *end = line + view.size;
    char *target = memchr(line, ' ', view.size), *version;
    enum http_refusal refusal;

    version = target ? memchr(target + 1, ' ', (size_t)(end - target - 1)) : NULL;
    if (!version || version == target + 1 || target == line ||
        memchr(version + 1, ' ', (size_t)(end - version - 1)))
        return HTTP_REFUSED_REQUEST_LINE;
    refusal = read_version(parse, version + 1, (size_t)(end - version - 1));
    if (refusal == HTTP_ACCEPTED)
        refusal = read_method(parse, line, (size_t)(target - line));
    if (refusal == HTTP_ACCEPTED)
        refusal = http_target_read(
            parse, (size_t)(target + 1 - parse->data), (size_t)(version - target - 1));
    return refusal;
}

/* Ignores one CR LF before a request, which old clients send after a body (RFC 9112, 2.2). */
static enum http_verdict skip_blank(struct http_parse *parse)
{
    if (parse->size == 0 || parse->data[0] != '\r' || parse->has_blank)
        return HTTP_GO_ON;
    if (parse->size == 1)
        return HTTP_MORE;
    if (parse->data[1] != '\n')
        return refuse_request(parse, HTTP_REFUSED_FIRST_BYTE);
    parse->data += 2;
    parse->size -= 2;
    parse->has_blank = true;
    return HTTP_GO_ON;
}

static enum http_verdict parse_line(struct http_parse *parse)
{
    enum http_refusal refusal;
    enum http_verdict verdict = skip_blank(parse);
    struct det_view line;

    if (verdict != HTTP_GO_ON)
        return verdict;
    if (parse->size == 0)
        return HTTP_MORE;
    /* Other protocols, such as TLS, may never send the end of a line. */
    if (!http_set_has(&http_token_set, parse->data[0]))
        return refuse_request(parse, HTTP_REFUSED_FIRST_BYTE);
    verdict = find_line(parse, 0, parse->limits->line_max, HTTP_REFUSED_LINE_LONG, &line);
    if (verdict != HTTP_GO_ON)
        return verdict;
    refusal = read_request_line(parse, line);
    if (refusal != HTTP_ACCEPTED)
        return refuse_request(parse, refusal);
    parse->headers_at = parse->at;
    parse->phase = HTTP_PHASE_HEADERS;
    return HTTP_GO_ON;
}

static enum http_refusal take_host(struct http_parse *parse, const char *value)
{
    if (parse->host)
        return HTTP_REFUSED_HOST_TWICE;
    parse->host = (size_t)(value - parse->data);
    return http_host_is_valid(value) ? HTTP_ACCEPTED : HTTP_REFUSED_HOST;
}

static enum http_refusal take_length(struct http_parse *parse, const char *value)
{
    struct det_view view = det_view_text(value);

    if (parse->has_length)
        return HTTP_REFUSED_LENGTH_TWICE;
    if (view.size > LENGTH_DIGITS_MAX || det_parse_u64(view, &parse->length) < 0)
        return HTTP_REFUSED_LENGTH;
    parse->has_length = true;
    return HTTP_ACCEPTED;
}

static enum http_refusal take_encoding(struct http_parse *parse, const char *value)
{
    if (parse->has_encoding)
        return HTTP_REFUSED_ENCODING_TWICE;
    parse->has_encoding = true;
    return strcasecmp(value, "chunked") == 0 ? HTTP_ACCEPTED : HTTP_REFUSED_ENCODING;
}

static enum http_refusal take_content_encoding(struct http_parse *parse, const char *value)
{
    (void)parse;
    return strcasecmp(value, "identity") == 0 ? HTTP_ACCEPTED : HTTP_REFUSED_CONTENT_ENCODING;
}

static enum http_refusal take_expect(struct http_parse *parse, const char *value)
{
    if (strcasecmp(value, "100-continue") != 0)
        return HTTP_REFUSED_EXPECT;
    parse->wants_continue = true;
    return HTTP_ACCEPTED;
}

static bool has_word(const char *list, const char *word)
{
    size_t size = strlen(word);

    for (;;) {
        list += strspn(list, " \t,");
        if (!*list)
            return false;
        if (strncasecmp(list, word, size) == 0 && strchr(" \t,", list[size]))
            return true;
        list += strcspn(list, ",");
    }
}

static enum http_refusal take_connection(struct http_parse *parse, const char *value)
{
    if (has_word(value, "close"))
        parse->is_keep_alive = false;
    else if (parse->minor == 0 && has_word(value, "keep-alive"))
        parse->is_keep_alive = true;
    return HTTP_ACCEPTED;
}

/* Headers of which we might use the first one and an intermediary the last: refuses duplicates. */
static enum http_refusal take_once(struct http_parse *parse, const char *value)
{
    (void)parse;
    (void)value;
    return HTTP_ACCEPTED;
}

/* The headers that mean something to the server itself. */
static const struct known {
    const char *name;
    size_t size;
    enum http_refusal (*take)(struct http_parse *parse, const char *value);
} known[] = {
#define KNOWN(name, take)           \
    {                               \
        name, sizeof name - 1, take \
    }
    KNOWN("host", take_host),
    KNOWN("connection", take_connection),
    KNOWN("content-length", take_length),
    KNOWN("transfer-encoding", take_encoding),
    KNOWN("content-encoding", take_content_encoding),
    KNOWN("expect", take_expect),
    KNOWN("authorization", take_once),
    KNOWN("content-type", take_once),
    KNOWN("idempotency-key", take_once),
    KNOWN("last-event-id", take_once),
    KNOWN("origin", take_once),
    KNOWN("sec-fetch-site", take_once),
#undef KNOWN
};

static const struct known *find_known(const char *name, size_t size)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].size == size && memcmp(name, known[i].name, size) == 0)
            return &known[i];
    return NULL;
}

static enum http_refusal take_header(
    struct http_parse *parse, const char *name, size_t size, const char *value)
{
    const struct known *found = find_known(name, size);
    unsigned bit = found ? 1u << (found - known) : 0;

    if (!found)
        return HTTP_ACCEPTED;
    if (found->take == take_once && (parse->seen & bit))
        return HTTP_REFUSED_HEADER_TWICE;
    parse->seen |= bit;
    return found->take(parse, value);
}

bool http_field_is_known(const struct http_field *field)
{
    return find_known(field->name, field->name_size) != NULL;
}

static bool read_name(char *name, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (!http_set_has(&http_token_set, name[i]))
            return false;
        if (name[i] >= 'A' && name[i] <= 'Z')
            name[i] = (char)(name[i] - 'A' + 'a');
    }
    return size > 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

#define EACH_BYTE(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Returns true if one of eight bytes is below a blank or is DEL. The subtraction only carries from
 * a byte that is below, so there are false positives, but no false negatives. */
static bool may_have_control(const char *text)
{
    uint64_t bytes, below, del;

    memcpy(&bytes, text, sizeof bytes);
    del = bytes ^ EACH_BYTE(0x7f);
    below = (bytes - EACH_BYTE(' ')) & ~bytes;
    del = (del - EACH_BYTE(1)) & ~del;
    return (below | del) & EACH_BYTE(0x80);
}

static bool is_control(char c)
{
    unsigned char byte = (unsigned char)c;

    return (byte < ' ' && byte != '\t') || byte == 0x7f;
}

/* Allows bytes above ASCII: they have no meaning in HTTP. */
static bool has_control(const char *text, size_t size)
{
    size_t i = 0;

    while (i < size) {
        if (size - i >= 8 && !may_have_control(text + i)) {
            i += 8;
            continue;
        }
        if (is_control(text[i++]))
            return true;
    }
    return false;
}

enum http_refusal http_field_read(char *line, size_t size, struct http_field *ret)
{
    char *end = line + size, *colon = memchr(line, ':', size), *value;

    if (is_blank(*line))
        return HTTP_REFUSED_FOLDED;
    if (!colon)
        return HTTP_REFUSED_HEADER_COLON;
    if (!read_name(line, (size_t)(colon - line)))
        return HTTP_REFUSED_HEADER_NAME;
    for (value = colon + 1; value < end && is_blank(*value);)
        value++;
    while (end > value && is_blank(end[-1]))
        end--;
    if (has_control(value, (size_t)(end - value)))
        return HTTP_REFUSED_HEADER_BYTE;
    *colon = *end = '\0';
    *ret = (struct http_field){ line, value, (size_t)(colon - line) };
    return HTTP_ACCEPTED;
}

static enum http_refusal read_header(struct http_parse *parse, struct det_view view)
{
    struct http_field field;
    enum http_refusal refusal;

    if (parse->request.header_count == parse->limits->header_count_max && !is_blank(*view.data))
        return HTTP_REFUSED_HEADERS_MANY;
    refusal = http_field_read(parse->data + (view.data - parse->data), view.size, &field);
    if (refusal != HTTP_ACCEPTED)
        return refusal;
    parse->places[parse->request.header_count++] = (struct http_place){
        .name = (uint32_t)(field.name - parse->data),
        .value = (uint32_t)(field.value - parse->data),
    };
    return take_header(parse, field.name, field.name_size, field.value);
}

/* Checks that need all headers. */
static enum http_refusal validate_head(struct http_parse *parse)
{
    if (parse->minor == 1 && !parse->host)
        return HTTP_REFUSED_HOST_MISSING;
    if (parse->authority && parse->host &&
        strcasecmp(parse->data + parse->authority, parse->data + parse->host) != 0)
        return HTTP_REFUSED_TARGET_HOST;
    if (parse->has_length && parse->has_encoding)
        return HTTP_REFUSED_LENGTH_AND_ENCODING;
    if (parse->minor == 0 && parse->has_encoding)
        return HTTP_REFUSED_ENCODING_VERSION;
    if (parse->length > parse->limits->body_max)
        return HTTP_REFUSED_BODY_LONG;
    return HTTP_ACCEPTED;
}

/* Converts offsets to pointers, since the bytes do not move for now. */
static void settle_pointers(struct http_parse *parse)
{
    struct http_request *request = &parse->request;
    size_t host = parse->host ? parse->host : parse->authority;
    char *data = parse->data;

    request->method_name = data;
    request->path = parse->path ? data + parse->path : "/";
    request->query = parse->query ? data + parse->query : "";
    request->host = host ? data + host : "";
    for (size_t i = 0; i < request->header_count; i++)
        parse->headers[i] = (struct http_header){
            .name = data + parse->places[i].name,
            .value = data + parse->places[i].value,
        };
    request->headers = parse->headers;
    request->body_size = parse->body_end - parse->body_at;
    request->body = request->body_size ? data + parse->body_at : "";
}

static enum http_verdict end_head(struct http_parse *parse)
{
    enum http_refusal refusal = validate_head(parse);

    if (refusal != HTTP_ACCEPTED)
        return refuse_request(parse, refusal);
    parse->phase = parse->has_encoding ? HTTP_PHASE_CHUNK_SIZE : HTTP_PHASE_BODY;
    parse->has_body = parse->has_encoding || parse->length > 0;
    parse->wants_continue = parse->wants_continue && parse->has_body && parse->minor == 1;
    parse->body_at = parse->body_end = parse->at;
    settle_pointers(parse);
    return HTTP_HEADERS;
}

static enum http_verdict parse_headers(struct http_parse *parse)
{
    enum http_refusal refusal;
    enum http_verdict verdict;
    struct det_view line;

    for (;;) {
        verdict = find_line(
            parse, parse->headers_at, parse->limits->headers_max, HTTP_REFUSED_HEADERS_LONG, &line);
        if (verdict != HTTP_GO_ON)
            return verdict;
        if (line.size == 0)
            return end_head(parse);
        refusal = read_header(parse, line);
        if (refusal != HTTP_ACCEPTED)
            return refuse_request(parse, refusal);
    }
}

static enum http_verdict parse_body(struct http_parse *parse)
{
    enum http_verdict verdict = http_body_read(parse);

    if (verdict == HTTP_COMPLETE)
        settle_pointers(parse);
    return verdict;
}

void http_parse_begin(struct http_parse *parse)
{
    struct http_request request = {
        .peer = parse->request.peer,
        .user = parse->request.user,
        .uid = parse->request.uid,
        .is_trusted = parse->request.is_trusted,
        .is_encrypted = parse->request.is_encrypted,
        .subject = parse->request.subject,
    };

    *parse = (struct http_parse){
        .limits = parse->limits,
        .headers = parse->headers,
        .places = parse->places,
        .data = parse->data,
        .size = parse->size,
        .request = request,
    };
}

void http_parse_add(struct http_parse *parse, size_t size)
{
    bool is_hit = parse->is_cut && parse->used == parse->size && size > 0;

    parse->size += size;
    if (!is_hit)
        return;
    /* Its first byte was replaced by the NUL after the body. */
    parse->cut = parse->data[parse->used];
    parse->data[parse->used] = '\0';
}

enum http_verdict http_parse(struct http_parse *parse)
{
    enum http_verdict verdict;

    switch (parse->phase) {
    case HTTP_PHASE_LINE:
        verdict = parse_line(parse);
        return verdict == HTTP_GO_ON ? parse_headers(parse) : verdict;
    case HTTP_PHASE_HEADERS:
        return parse_headers(parse);
    case HTTP_PHASE_BODY:
    case HTTP_PHASE_CHUNK_SIZE:
    case HTTP_PHASE_CHUNK_DATA:
    case HTTP_PHASE_CHUNK_END:
    case HTTP_PHASE_CHUNK_LAST:
        return parse_body(parse);
    case HTTP_PHASE_COMPLETE:
        return HTTP_COMPLETE;
    case HTTP_PHASE_REFUSED:
        break;
    }
    return HTTP_REFUSED;
}

void http_parse_next(struct http_parse *parse)
{
    det_assert(parse->phase == HTTP_PHASE_COMPLETE && parse->used <= parse->size);
    if (parse->is_cut)
        parse->data[parse->used] = parse->cut;
    parse->data += parse->used;
    parse->size -= parse->used;
    http_parse_begin(parse);
}

const char *http_header(const struct http_request *request, const char *name)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (strcmp(request->headers[i].name, name) == 0)
            return request->headers[i].value;
    return NULL;
}
