/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* until_test.c - the end of a lease goes forward, or to 0 for good. */
#include "runtime/until.h"

#include "lib/test.h"

static void a_renewal_moves_the_end_forward_only(void **unused)
{
    _Atomic det_time until = 10;

    (void)unused;
    det_until_extend(&until, 30);
    assert_int_equal(until, 30);
    det_until_extend(&until, 20);
    assert_int_equal(until, 30);
}

static void lost_lease_cannot_be_extended(void **unused)
{
    _Atomic det_time until = 0;

    (void)unused;
    det_until_extend(&until, 30);
    assert_int_equal(until, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_renewal_moves_the_end_forward_only),
        cmocka_unit_test(lost_lease_cannot_be_extended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
