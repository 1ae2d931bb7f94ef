/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gate_expression.c - a condition with three comparisons, and a product that is stored, over the
 * rows of a batch. */
#include <string.h>

#include <detent/expression.h>

#define REC_SPEC "sale.rec"
#include <detent/rec/declare.h>

#include "gate.h"

#define ROWS 100

struct batch {
    struct sale rows[ROWS];
    int8_t results[ROWS];
    struct det_expression *wanted, *total;
    struct det_expression_scratch scratch;
};

static int open_expression(const char *text, const char *field, struct det_expression **ret)
{
    struct det_expression_input input = { .record = sale_record() };
    struct det_expression_options options = {
        .inputs = &input, .input_count = 1, .target = field ? sale_record() : NULL, .field = field
    };

    return det_expression_open(text, strlen(text), &options, ret, NULL);
}

static int work_rows(void *argument, unsigned operations)
{
    struct batch *batch = argument;
    const void *inputs[] = { batch->rows };
    size_t strides[] = { sizeof batch->rows[0] }, errors = 0;
    struct det_expression_rows rows = { inputs, strides, ROWS };

    for (unsigned i = 0; i < operations; i += ROWS) {
        errors += det_expression_test_rows(batch->wanted, &rows, &batch->scratch, batch->results);
        errors += det_expression_store_rows(
            batch->total, &rows, &batch->scratch, batch->rows, sizeof batch->rows[0],
            batch->results);
    }
    return errors > 0 ? DET_ERR_INVALID : 0;
}

int gate_expression(unsigned operations)
{
    static struct batch batch;
    int r;

    for (unsigned i = 0; i < ROWS; i++)
        batch.rows[i] = (struct sale){ .price = 1500, .quantity = (uint16_t)(i % 5), .number = i };
    r = open_expression("price > 1000 and quantity >= 2 and state != 'lost'", NULL, &batch.wanted);
    if (r == 0)
        r = open_expression("price * quantity + discount", "total", &batch.total);
    if (r == 0)
        r = gate_measured(work_rows, &batch, operations);
    gate_use(batch.rows[ROWS - 1].total);
    det_expression_close(batch.wanted);
    det_expression_close(batch.total);
    return r;
}
