/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gate_record.c - a record to bytes and back, to JSON and back. */
#include <stdio.h>

#include <detent/record.h>

#define REC_SPEC "document.rec"
#include <detent/rec/declare.h>

#include "gate.h"

struct document {
    struct invoice invoice;
    struct invoice copy;
    uint8_t bytes[2048];
    size_t byte_count;
    char text[2048];
    size_t text_size;
};

static int document_init(struct document *document)
{
    struct invoice *invoice = &document->invoice;
    int64_t size;

    *document = (struct document){ 0 };
    *invoice = (struct invoice){ .number = 4711,
                                 .customer = "the customer",
                                 .address = "12 Long Street, in a small town",
                                 .due = INT64_C(1800000000000000000),
                                 .currency = CURRENCY_JPY,
                                 .rebate = 0.125,
                                 .has_note = true,
                                 .note = "with a \"note\"",
                                 .lines_count = 4 };
    for (unsigned i = 0; i < invoice->lines_count; i++)
        invoice->lines[i] = (struct invoice_line){ .article = "bolt", .pieces = i, .cents = 99 };
    size =
        det_record_encode(invoice_record(), invoice, document->bytes, sizeof document->bytes, NULL);
    if (size < 0)
        return (int)size;
    document->byte_count = (size_t)size;
    document->text_size =
        det_record_to_json(invoice_record(), invoice, 0, document->text, sizeof document->text);
    return document->text_size < sizeof document->text ? 0 : DET_ERR_LIMIT;
}

static int work_encode(void *argument, unsigned operations)
{
    struct document *document = argument;
    int64_t size = 0;

    for (unsigned i = 0; i < operations && size >= 0; i++)
        size = det_record_encode(
            invoice_record(), &document->invoice, document->bytes, sizeof document->bytes, NULL);
    return size < 0 ? (int)size : 0;
}

static int work_decode(void *argument, unsigned operations)
{
    struct document *document = argument;
    int r = 0;

    for (unsigned i = 0; i < operations && r == 0; i++)
        r = det_record_decode(
            invoice_record(), document->bytes, document->byte_count, &document->copy, NULL);
    return r;
}

static int work_to_json(void *argument, unsigned operations)
{
    struct document *document = argument;

    for (unsigned i = 0; i < operations; i++)
        gate_use(det_record_to_json(
            invoice_record(), &document->invoice, 0, document->text, sizeof document->text));
    return 0;
}

static int work_from_json(void *argument, unsigned operations)
{
    struct document *document = argument;
    int r = 0;

    for (unsigned i = 0; i < operations && r == 0; i++)
        r = det_record_from_json(
            invoice_record(), document->text, document->text_size, 0, &document->copy, NULL);
    return r;
}

static int measure(gate_work_fn *work, unsigned operations)
{
    struct document document;
    int r = document_init(&document);

    return r < 0 ? r : gate_measured(work, &document, operations);
}

int gate_encode(unsigned operations)
{
    return measure(work_encode, operations);
}

int gate_decode(unsigned operations)
{
    return measure(work_decode, operations);
}

int gate_to_json(unsigned operations)
{
    return measure(work_to_json, operations);
}

int gate_from_json(unsigned operations)
{
    return measure(work_from_json, operations);
}
