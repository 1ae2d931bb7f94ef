/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* share_test.c - threads evaluate one expression at the same time, each with its own scratch. */
/* test: threads */
#include <pthread.h>

#include "expression/expression_test.h"

#define THREADS 4
#define TIMES   2000

struct share {
    const struct det_expression *expression;
    struct row row;
    uint32_t expected;
};

static void *evaluate_often(void *argument)
{
    struct share *share = argument;
    const void *inputs[] = { &share->row, &share->row, NULL, NULL };
    static _Thread_local struct det_expression_scratch scratch;
    struct det_expression_value value;

    for (unsigned i = 0; i < TIMES; i++) {
        share->row.c = i;
        if (det_expression_value(share->expression, inputs, &scratch, &value, NULL) == 0)
            share->expected += value.integer == (int64_t)i * 2 + 4;
    }
    return NULL;
}

static void threads_share_an_expression(void **state)
{
    static const char text[] = "length(title + upper(title)) + c * if c in [1, 2, 3] then 2 else 2";
    struct det_expression_options options = test_options();
    struct det_expression *expression = NULL;
    struct share shares[THREADS];
    pthread_t threads[THREADS];

    (void)state;
    assert_int_equal(det_expression_open(text, sizeof text - 1, &options, &expression, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        shares[i] = (struct share){ .expression = expression, .row = { .title = "" } };
        memcpy(shares[i].row.title, "ab", 3);
        assert_int_equal(pthread_create(&threads[i], NULL, evaluate_often, &shares[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(shares[i].expected, TIMES);
    }
    det_expression_close(expression);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(threads_share_an_expression) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
