/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* record.c - an invoice to bytes and back, to JSON and back; jansson does the same document.
 *
 * jansson's cases start and end with its tree: the conversion between tree and struct, with all
 * checks, would be extra and is not measured. */
#ifdef BENCH_JANSSON
#include <jansson.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <detent/record.h>

#define REC_SPEC "document.rec"
#include <detent/rec/declare.h>

#include "base/hash.h"
#include "bench.h"

#define RECORDS      200000
#define RECORDS_JSON 50000
#define LINES        6
#define TEXT_MAX     2048

/* The sizes of the document, for MB/s; open_record() checks them. */
#define BINARY_SIZE 260
#define JSON_SIZE   579

static struct invoice invoice;
static uint8_t bytes[TEXT_MAX];
static size_t byte_count;
static char text[TEXT_MAX];
static size_t text_size;

static void fill_invoice(void)
{
    invoice = (struct invoice){ .number = UINT64_C(9007199254740993),
                                .customer = "the customer",
                                .address = "12 Long Street, in a small town",
                                .due = INT64_C(1800000000000000000),
                                .currency = CURRENCY_USD,
                                .rebate = 12.5,
                                .has_note = true,
                                .note = "Please leave it with the neighbour, \"quotes\" and all.",
                                .lines_count = LINES };
    for (unsigned i = 0; i < LINES; i++) {
        invoice.lines[i] =
            (struct invoice_line){ .pieces = i + 1, .cents = UINT64_C(1999) * (i + 1) };
        (void)snprintf(
            invoice.lines[i].article, sizeof invoice.lines[i].article, "article no. %u", 4711 + i);
    }
}

static int run_copy(struct bench_lap *lap)
{
    uint8_t copy[TEXT_MAX];
    uint32_t crc = 0;

    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations; i++) {
        memcpy(copy, bytes, byte_count);
        crc = det_crc32c(crc, copy, byte_count);
    }
    bench_lap_end(lap);
    bench_use(crc);
    return 0;
}

static int run_encode(struct bench_lap *lap)
{
    uint8_t target[TEXT_MAX] = { 0 };
    int64_t size = 0;

    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && size >= 0; i++)
        size = det_record_encode(invoice_record(), &invoice, target, sizeof target, NULL);
    bench_lap_end(lap);
    bench_use(target[0]);
    return size < 0 ? bench_lap_fail(lap, (int)size, "%s", det_error_text((int)size)) : 0;
}

static int run_decode(struct bench_lap *lap)
{
    struct invoice value = { 0 };
    int r = 0;

    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++)
        r = det_record_decode(invoice_record(), bytes, byte_count, &value, NULL);
    bench_lap_end(lap);
    bench_use(value.number);
    return r < 0 ? bench_lap_fail(lap, r, "%s", det_error_text(r)) : 0;
}

static int run_write(struct bench_lap *lap)
{
    char target[TEXT_MAX];
    size_t size = 0;

    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations; i++)
        size += det_record_to_json(invoice_record(), &invoice, 0, target, sizeof target);
    bench_lap_end(lap);
    bench_use(size);
    return 0;
}

static int run_read(struct bench_lap *lap)
{
    struct invoice value = { 0 };
    int r = 0;

    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++)
        r = det_record_from_json(invoice_record(), text, text_size, 0, &value, NULL);
    bench_lap_end(lap);
    bench_use(value.number);
    return r < 0 ? bench_lap_fail(lap, r, "%s", det_error_text(r)) : 0;
}

#ifdef BENCH_JANSSON
static json_t *tree;

static int run_dumps(struct bench_lap *lap)
{
    size_t size = 0;

    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations; i++) {
        char *dump = json_dumps(tree, JSON_COMPACT);

        size += dump ? (size_t)dump[0] : 0;
        free(dump);
    }
    bench_lap_end(lap);
    bench_use(size);
    return 0;
}

static int run_loads(struct bench_lap *lap)
{
    size_t size = 0;

    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations; i++) {
        json_t *value = json_loadb(text, text_size, 0, NULL);

        size += json_object_size(value);
        json_decref(value);
    }
    bench_lap_end(lap);
    bench_use(size);
    return 0;
}

static bool open_peer(void)
{
    tree = json_loadb(text, text_size, 0, NULL);
    return tree;
}

static void close_peer(void)
{
    json_decref(tree);
    tree = NULL;
}
#else
static int run_dumps(struct bench_lap *lap)
{
    return bench_lap_fail(lap, DET_ERR_UNSUPPORTED, "not installed");
}

static int run_loads(struct bench_lap *lap)
{
    return run_dumps(lap);
}

static bool open_peer(void)
{
    return true;
}

static void close_peer(void)
{
}
#endif

static int open_record(char *note)
{
    int64_t size;

    fill_invoice();
    size = det_record_encode(invoice_record(), &invoice, bytes, sizeof bytes, NULL);
    if (size < 0)
        return (int)size;
    byte_count = (size_t)size;
    text_size = det_record_to_json(invoice_record(), &invoice, 0, text, sizeof text);
    if (byte_count == BINARY_SIZE && text_size == JSON_SIZE && open_peer())
        return 0;
    (void)snprintf(
        note, BENCH_NOTE_MAX, "the document has %zu bytes and %zu as JSON, not %d and %d",
        byte_count, text_size, BINARY_SIZE, JSON_SIZE);
    return DET_ERR_INVALID;
}

#define BINARY RECORDS, .bytes = BINARY_SIZE, .clock = BENCH_OWN
#define JSON   RECORDS_JSON, .bytes = JSON_SIZE, .clock = BENCH_OWN
#define NO_HEAP                        \
    {                                  \
        BENCH_ALLOCATIONS_MAX, 0, NULL \
    }

static const struct bench_case cases[] = {
    { "copy and crc32c", BENCH_LIMIT, run_copy, NULL, BINARY },
    { "encode", BENCH_OURS, run_encode, NULL, BINARY,
      .goals = { { BENCH_NS_MAX, 250, NULL }, NO_HEAP } },
    { "decode", BENCH_OURS, run_decode, NULL, BINARY,
      .goals = { { BENCH_NS_MAX, 250, NULL }, NO_HEAP } },
    { "jansson dumps", BENCH_PEER, run_dumps, NULL, JSON, .against = "" },
    { "to JSON", BENCH_OURS, run_write, NULL, JSON, .against = "jansson dumps",
      .goals = { { BENCH_AHEAD_OF, 0, "jansson dumps" }, NO_HEAP } },
    { "jansson loads", BENCH_PEER, run_loads, NULL, JSON, .against = "" },
    { "from JSON", BENCH_OURS, run_read, NULL, JSON, .against = "jansson loads",
      .goals = { { BENCH_AHEAD_OF, 0, "jansson loads" }, NO_HEAP } },
};

extern const struct bench bench_record;
const struct bench bench_record = {
    .title = "an invoice of six lines, as bytes and as JSON",
    .operation = "record",
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .open = open_record,
    .close = close_peer,
};
