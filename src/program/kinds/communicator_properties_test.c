/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* communicator_properties_test.c - the communicator over views of chance: pure, and it stops. */
#include "lib/test.h"

#include <detent/worker_test.h>

#include "kinds/communicator.h"

static void make_likely(void *context, void *config)
{
    struct communicator_desired *desired = config;

    (void)context;
    snprintf(desired->relay_url, sizeof desired->relay_url, "https://relay.example");
    snprintf(desired->auth_token, sizeof desired->auth_token, "token");
    desired->timeout_ms %= 30001;
}

/* Half of the tokens are good. */
static void make_plausible(void *context, void *value)
{
    struct communicator_observed *observed = value;

    (void)context;
    if (observed->logins % 2)
        observed->token_expiry = 0;
}

static void communicator_kind_is_proven(void **state)
{
    struct det_worker_prove_options options = { .views = 1000,
                                                .adjust_config = make_likely,
                                                .adjust_observed = make_plausible };
    struct det_worker_proof proof;
    struct det_error error = { 0 };

    (void)state;
    if (det_worker_prove(&communicator_kind, &options, &proof, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(proof.refused, 0);
    assert_int_equal(proof.unstopped, 0);
    assert_int_equal(
        proof.entered, DET_IN(COMMUNICATOR_AUTHENTICATING) | DET_IN(COMMUNICATOR_SYNCING) |
                           DET_IN(COMMUNICATOR_DEGRADED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(communicator_kind_is_proven),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
