/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* request_parser_test.c - raw requests, each cut at every byte: the verdict is always the same. */
#include "http/request_parser.h"

#include "base/buffer.h"
#include "lib/test.h"

#define COUNT_MAX 5

struct row {
    const char *bytes;
    size_t size;
    const char *read;
    enum http_refusal refusal;
    int line;
};

static const struct row rows[] = {
#define BAD(bytes, refusal) { bytes, sizeof bytes - 1, NULL, HTTP_REFUSED_##refusal, __LINE__ },
#define GOOD(bytes, read)   { bytes, sizeof bytes - 1, read, HTTP_ACCEPTED, __LINE__ },
#include "http/request_parser_cases_test.h"
#undef BAD
#undef GOOD
};

#define ROWS (sizeof rows / sizeof *rows)

/* A parser over bytes that move with each that comes, and end where they end. */
struct reader {
    struct http_limits limits;
    struct http_parse parse;
    char *block; /* parse.data, or some bytes before it */
    struct http_header headers[COUNT_MAX];
    struct http_place places[COUNT_MAX];
    unsigned heads;
};

static void reader_init(struct reader *reader)
{
    *reader = (struct reader){
        .limits = { .line_max = 80, .headers_max = 200, .header_count_max = 5, .body_max = 100 },
    };
    http_limits_settle(&reader->limits);
    reader->parse = (struct http_parse){
        .limits = &reader->limits,
        .headers = reader->headers,
        .places = reader->places,
        .request = { .peer = "peer" },
    };
    http_parse_begin(&reader->parse);
}

static void reader_deinit(struct reader *reader)
{
    free(reader->block);
}

static enum http_verdict feed(struct reader *reader, const char *bytes, size_t size)
{
    struct http_parse *parse = &reader->parse;
    char *data = malloc(parse->size + size + 1);
    enum http_verdict verdict;

    assert_non_null(data);
    memcpy(data, parse->data ? parse->data : "", parse->size);
    memcpy(data + parse->size, bytes, size);
    free(reader->block);
    parse->data = reader->block = data;
    http_parse_add(parse, size);
    verdict = http_parse(parse);
    if (verdict == HTTP_HEADERS) {
        reader->heads++;
        verdict = http_parse(parse);
    }
    assert_true(verdict != HTTP_HEADERS && verdict != HTTP_GO_ON);
    assert_true((parse->refusal != HTTP_ACCEPTED) == (verdict == HTTP_REFUSED));
    return verdict;
}

static void print_request(const struct http_parse *parse, struct det_buffer *text)
{
    const struct http_request *request = &parse->request;

    det_buffer_format(
        text, "%s%s %s [%s] %s", request->method == HTTP_METHODS ? "*" : "", request->method_name,
        request->path, request->query, request->host);
    for (size_t i = 0; i < request->header_count; i++)
        det_buffer_format(text, " %s=%s", request->headers[i].name, request->headers[i].value);
    if (parse->is_keep_alive)
        det_buffer_append_text(text, " keep");
    if (parse->wants_continue)
        det_buffer_append_text(text, " continue");
    if (request->body_size)
        det_buffer_format(text, " %zu:%s", request->body_size, request->body);
    assert_int_equal(request->body[request->body_size], 0);
    assert_string_equal(request->peer, "peer");
}

static void check(const struct row *row, struct reader *reader, enum http_verdict verdict)
{
    struct http_parse *parse = &reader->parse;
    struct det_buffer text;

    if (reader->parse.refusal != row->refusal)
        fail_msg(
            "line %d: %s, not %s", row->line,
            reader->parse.refusal ? http_refusal_facts(reader->parse.refusal)->name : "accepted",
            row->refusal ? http_refusal_facts(row->refusal)->name : "accepted");
    if (row->refusal) {
        assert_int_equal(verdict, HTTP_REFUSED);
        assert_int_equal(http_parse(parse), HTTP_REFUSED);
        return;
    }
    if (verdict != HTTP_COMPLETE)
        fail_msg("line %d: it is not whole", row->line);
    assert_int_equal(reader->heads, 1);
    det_buffer_init(&text, NULL);
    print_request(&reader->parse, &text);
    if (strcmp(det_buffer_text(&text), row->read) != 0)
        fail_msg("line %d: %s", row->line, det_buffer_text(&text));
    det_buffer_deinit(&text);
}

/* In parts of `first` bytes, and then of `step`, until there is a verdict. */
static void run(const struct row *row, size_t first, size_t step)
{
    enum http_verdict verdict = HTTP_MORE;
    struct reader reader;
    size_t size = first;

    reader_init(&reader);
    for (size_t at = 0; at < row->size && verdict == HTTP_MORE; at += size, size = step) {
        if (size > row->size - at)
            size = row->size - at;
        verdict = feed(&reader, row->bytes + at, size);
    }
    check(row, &reader, verdict);
    reader_deinit(&reader);
}

static void test_each_request_is_read_or_refused_for_its_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++)
        run(&rows[i], rows[i].size, rows[i].size);
}

static void test_split_requests_get_the_same_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        run(&rows[i], 1, 1);
        run(&rows[i], 3, 2);
        for (size_t cut = 1; cut < rows[i].size; cut++)
            run(&rows[i], cut, rows[i].size);
    }
}

static void test_every_refusal_of_the_parser_has_a_row(void **state)
{
    bool is_seen[HTTP_REFUSALS] = { 0 };

    (void)state;
    for (size_t i = 0; i < ROWS; i++)
        is_seen[rows[i].refusal] = true;
    for (int i = 0; i < HTTP_REFUSED_HEADER_SLOW; i++)
        if (!is_seen[i])
            fail_msg("no row is refused as %s", http_refusal_facts((enum http_refusal)i)->name);
}

/* Consecutive requests, given in one piece or byte by byte, are parsed as these and no others. */
static void pipeline(size_t step)
{
    struct det_buffer all, text, expected;
    struct reader reader;
    size_t at = 0;

    det_buffer_init(&all, NULL);
    det_buffer_init(&text, NULL);
    det_buffer_init(&expected, NULL);
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].refusal)
            continue;
        det_buffer_append(&all, rows[i].bytes, rows[i].size);
        det_buffer_format(&expected, "%s\n", rows[i].read);
    }
    reader_init(&reader);
    while (at < all.size) {
        size_t size = step < all.size - at ? step : all.size - at;
        enum http_verdict verdict = feed(&reader, all.data + at, size);

        at += size;
        while (verdict == HTTP_COMPLETE) {
            char *start = reader.parse.data;

            print_request(&reader.parse, &text);
            det_buffer_append_char(&text, '\n');
            http_parse_next(&reader.parse);
            memmove(start, reader.parse.data, reader.parse.size);
            reader.parse.data = start;
            verdict = feed(&reader, "", 0);
        }
        assert_int_equal(verdict, HTTP_MORE);
    }
    assert_string_equal(det_buffer_text(&text), det_buffer_text(&expected));
    assert_int_equal(reader.parse.size, 0);
    reader_deinit(&reader);
    det_buffer_deinit(&all);
    det_buffer_deinit(&text);
    det_buffer_deinit(&expected);
}

static void test_pipelined_requests_are_read_one_by_one(void **state)
{
    (void)state;
    pipeline(SIZE_MAX);
    pipeline(1);
    pipeline(7);
    pipeline(100);
}

enum part {
    PART_LINE,
    PART_HEADERS,
    PART_COUNT,
    PART_BODY,
    PART_CHUNKS,
    PARTS,
};

/* A request whose part has the given size, in bytes or in headers. */
static void write_request(enum part part, size_t size, struct det_buffer *to)
{
    static const char head[] = "POST /", version[] = " HTTP/1.1\r\n", host[] = "Host: a\r\n";
    size_t fill = part == PART_LINE ? size - strlen(head) - strlen(version) : 0;

    det_buffer_append_text(to, head);
    det_buffer_format(
        to, "%.*s", (int)fill,
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    det_buffer_format(to, "%s%s", version, host);
    if (part == PART_HEADERS)
        det_buffer_format(to, "X: %0*d\r\n", (int)(size - strlen(host) - strlen("X: \r\n") - 2), 7);
    for (size_t i = 1; part == PART_COUNT && i < size; i++)
        det_buffer_append_text(to, "Y: z\r\n");
    if (part == PART_BODY)
        det_buffer_format(to, "Content-Length: %zu\r\n\r\n%0*d", size, (int)size, 7);
    else if (part == PART_CHUNKS)
        det_buffer_format(
            to, "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n%zx\r\n%0*d\r\n0\r\n\r\n", size - 3,
            (int)size - 3, 7);
    else
        det_buffer_append_text(to, "\r\n");
}

static void test_limits_hold_to_the_byte(void **state)
{
    static const struct {
        size_t limit;
        enum http_refusal refusal;
    } limits[PARTS] = {
        [PART_LINE] = { 80, HTTP_REFUSED_LINE_LONG },
        [PART_HEADERS] = { 200, HTTP_REFUSED_HEADERS_LONG },
        [PART_COUNT] = { 5, HTTP_REFUSED_HEADERS_MANY },
        [PART_BODY] = { 100, HTTP_REFUSED_BODY_LONG },
        [PART_CHUNKS] = { 100, HTTP_REFUSED_BODY_LONG },
    };

    (void)state;
    for (int part = 0; part < PARTS; part++) {
        for (size_t size = limits[part].limit - 1; size <= limits[part].limit + 1; size++) {
            bool is_over = size > limits[part].limit;
            struct det_buffer bytes;
            struct reader reader;

            det_buffer_init(&bytes, NULL);
            write_request((enum part)part, size, &bytes);
            reader_init(&reader);
            assert_int_equal(
                feed(&reader, bytes.data, bytes.size), is_over ? HTTP_REFUSED : HTTP_COMPLETE);
            assert_int_equal(reader.parse.refusal, is_over ? limits[part].refusal : HTTP_ACCEPTED);
            reader_deinit(&reader);
            det_buffer_deinit(&bytes);
        }
    }
}

/* The smallest chunks there are take no more room than the body and a frame. */
static void test_chunk_framing_uses_no_memory(void **state)
{
    static const char head[] = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    struct reader reader;

    (void)state;
    reader_init(&reader);
    assert_int_equal(feed(&reader, head, strlen(head)), HTTP_MORE);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(feed(&reader, "1\r\nx\r\n", 6), HTTP_MORE);
        assert_int_equal(reader.parse.size, strlen(head) + i + 1);
    }
    assert_int_equal(feed(&reader, "0\r\n\r\n", 5), HTTP_COMPLETE);
    assert_int_equal(reader.parse.request.body_size, 100);
    reader_deinit(&reader);
}

/* Each byte at each place of a value that is looked at in parts. */
static void test_control_characters_are_found_wherever_they_are(void **state)
{
    static const char head[] = "GET / HTTP/1.1\r\nHost: a\r\nX: ";

    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        bool is_bad = (byte < ' ' && byte != '\t') || byte == 0x7f;

        for (size_t at = 1; at < 20; at++) {
            char bytes[sizeof head + 25 + 5];
            struct reader reader;

            memset(bytes, at % 2 ? 0xa0 : '!', sizeof bytes);
            memcpy(bytes, head, sizeof head);
            bytes[sizeof head - 1] = '!';
            bytes[sizeof head - 1 + at] = (char)byte;
            memcpy(bytes + sizeof bytes - 5, "\r\n\r\n", 5);
            reader_init(&reader);
            assert_int_equal(
                feed(&reader, bytes, sizeof bytes - 1), is_bad ? HTTP_REFUSED : HTTP_COMPLETE);
            reader_deinit(&reader);
        }
    }
}

static void test_a_header_is_found_by_its_name(void **state)
{
    static const char bytes[] = "GET / HTTP/1.1\r\nHost: a\r\nX-Y: 1\r\nx-y: 2\r\n\r\n";
    struct reader reader;

    (void)state;
    reader_init(&reader);
    assert_int_equal(feed(&reader, bytes, strlen(bytes)), HTTP_COMPLETE);
    assert_int_equal(http_parse(&reader.parse), HTTP_COMPLETE);
    assert_string_equal(http_header(&reader.parse.request, "x-y"), "1");
    assert_null(http_header(&reader.parse.request, "x"));
    reader_deinit(&reader);
}

static void test_http_limits_have_defaults_and_maxima(void **state)
{
    struct http_limits limits = { .line_max = UINT32_MAX, .idle_time = DET_NEVER, .body_max = 7 };

    (void)state;
    http_limits_settle(&limits);
    assert_int_equal(limits.line_max, 65536);
    assert_int_equal(limits.idle_time, 3600 * DET_SECOND);
    assert_int_equal(limits.body_max, 7);
    assert_int_equal(limits.header_count_max, 64);
    assert_int_equal(limits.header_time, 10 * DET_SECOND);
    assert_string_equal(http_status_phrase(431), "Request Header Fields Too Large");
    assert_string_equal(http_status_phrase(299), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_request_is_read_or_refused_for_its_reason),
        cmocka_unit_test(test_split_requests_get_the_same_verdict),
        cmocka_unit_test(test_every_refusal_of_the_parser_has_a_row),
        cmocka_unit_test(test_pipelined_requests_are_read_one_by_one),
        cmocka_unit_test(test_limits_hold_to_the_byte),
        cmocka_unit_test(test_chunk_framing_uses_no_memory),
        cmocka_unit_test(test_control_characters_are_found_wherever_they_are),
        cmocka_unit_test(test_a_header_is_found_by_its_name),
        cmocka_unit_test(test_http_limits_have_defaults_and_maxima),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
