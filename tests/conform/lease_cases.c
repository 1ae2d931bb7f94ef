/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lease_cases.c - leases by name and the locks of instances: holders and ends. Each test runs with
 * both. */
#include "conform/conform.h"

#define LONG  DET_HOUR
#define SHORT DET_MILLISECOND

int lender_ask(
    const struct lender *lender, enum det_store_lease_verb verb, const char *owner, uint64_t token,
    det_time span, struct det_store_lease *ret)
{
    struct det_store_lease_change change = { verb, lender->name, owner, token, span };
    struct det_store *store = lender->store;

    memset(ret, 0x55, sizeof *ret);
    if (lender->is_lock)
        return store->ops->lock(store, lender->box->machine, &change, ret);
    return store->ops->lease(store, &change, ret);
}

uint64_t lender_grant(const struct lender *lender, const char *owner, det_time span)
{
    struct det_store_lease lease;

    assert_int_equal(lender_ask(lender, DET_LEASE_ACQUIRE, owner, 0, span, &lease), 0);
    return lease.token;
}

static struct det_store_lease inspect(const struct lender *lender)
{
    struct det_store_lease lease;

    assert_int_equal(lender_ask(lender, DET_LEASE_READ, NULL, 0, 0, &lease), 0);
    return lease;
}

void lender_lapse(const struct lender *lender)
{
    struct det_store_lease lease = inspect(lender);
    det_time limit = lease.expires_at + 30 * DET_SECOND;

    if (lease.owner[0])
        box_wait(lender->box, lease.expires_at - 1);
    /* The estimate of a shared store's clock may be a little fast. */
    while (inspect(lender).owner[0])
        assert_true(box_now(lender->box) < limit);
}

static void starts_free(const struct lender *lender)
{
    struct det_store_lease lease = inspect(lender);

    assert_int_equal(lease.token, 0);
    assert_string_equal(lease.owner, "");
    assert_int_equal(lender_ask(lender, DET_LEASE_RENEW, "a", 1, LONG, &lease), DET_ERR_LOCK_LOST);
    assert_int_equal(lender_ask(lender, DET_LEASE_RENEW, "a", 0, LONG, &lease), DET_ERR_LOCK_LOST);
    assert_int_equal(lender_ask(lender, DET_LEASE_RELEASE, "a", 1, 0, &lease), DET_ERR_LOCK_LOST);
    assert_int_equal(inspect(lender).token, 0);
}

static void is_granted_when_it_is_free(const struct lender *lender)
{
    struct det_store_lease lease;
    det_time before = box_now(lender->box);

    assert_int_equal(lender_ask(lender, DET_LEASE_ACQUIRE, "a", 0, LONG, &lease), 0);
    assert_int_equal(lease.token, 1);
    assert_string_equal(lease.owner, "a");
    assert_true(lease.expires_at > before && lease.expires_at >= before + LONG - DET_SECOND);
    assert_true(lease.expires_at <= box_now(lender->box) + LONG + DET_SECOND);
    assert_true(inspect(lender).expires_at == lease.expires_at);
    assert_string_equal(inspect(lender).owner, "a");
}

/* Also for the same owner: another opening has to wait. */
static void is_busy_for_everybody_else_and_tells_who_has_it(const struct lender *lender)
{
    static const char *const others[] = { "b", "a", "" };
    struct det_store_lease lease;
    uint64_t token = lender_grant(lender, "a", LONG);

    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(
            lender_ask(lender, DET_LEASE_ACQUIRE, others[i], 0, LONG, &lease), DET_ERR_LOCKED);
        assert_string_equal(lease.owner, "a");
        assert_int_equal(lease.token, token);
        assert_true(lease.expires_at == inspect(lender).expires_at);
    }
    assert_int_equal(inspect(lender).token, token);
}

static void can_be_granted_to_another_after_it_lapses(const struct lender *lender)
{
    struct det_store_lease lease;
    uint64_t token = lender_grant(lender, "a", SHORT);

    lender_lapse(lender);
    assert_int_equal(inspect(lender).token, token);
    assert_int_equal(lender_ask(lender, DET_LEASE_ACQUIRE, "b", 0, LONG, &lease), 0);
    assert_int_equal(lease.token, token + 1);
    assert_string_equal(lease.owner, "b");
    assert_int_equal(
        lender_ask(lender, DET_LEASE_RENEW, "a", token, LONG, &lease), DET_ERR_LOCK_LOST);
    assert_string_equal(lease.owner, "b");
    assert_int_equal(lease.token, token + 1);
    assert_int_equal(
        lender_ask(lender, DET_LEASE_RELEASE, "a", token, 0, &lease), DET_ERR_LOCK_LOST);
    assert_string_equal(inspect(lender).owner, "b");
}

static void can_be_released_once(const struct lender *lender)
{
    struct det_store_lease lease;
    uint64_t token = lender_grant(lender, "a", LONG);

    assert_int_equal(lender_ask(lender, DET_LEASE_RELEASE, "a", token, 0, &lease), 0);
    assert_string_equal(lease.owner, "");
    assert_int_equal(lease.token, token);
    assert_int_equal(
        lender_ask(lender, DET_LEASE_RELEASE, "a", token, 0, &lease), DET_ERR_LOCK_LOST);
}

static void is_not_released_by_another_token(const struct lender *lender)
{
    struct det_store_lease lease;
    uint64_t token = lender_grant(lender, "a", LONG);

    for (uint64_t other = 0; other < token + 3; other++) {
        if (other == token)
            continue;
        assert_int_equal(
            lender_ask(lender, DET_LEASE_RELEASE, "a", other, 0, &lease), DET_ERR_LOCK_LOST);
        assert_int_equal(
            lender_ask(lender, DET_LEASE_RENEW, "a", other, LONG, &lease), DET_ERR_LOCK_LOST);
    }
    assert_string_equal(inspect(lender).owner, "a");
}

static void renewing_moves_its_end(const struct lender *lender)
{
    struct det_store_lease lease;
    uint64_t token = lender_grant(lender, "a", LONG);
    det_time end = inspect(lender).expires_at;

    assert_int_equal(lender_ask(lender, DET_LEASE_RENEW, "a", token, 2 * LONG, &lease), 0);
    assert_int_equal(lease.token, token);
    assert_string_equal(lease.owner, "a");
    assert_true(lease.expires_at > end && inspect(lender).expires_at == lease.expires_at);
    assert_int_equal(lender_ask(lender, DET_LEASE_RENEW, "a", token, LONG, &lease), 0);
    assert_true(lease.expires_at < end + LONG);
}

static void cannot_be_renewed_once_released_or_lapsed(const struct lender *lender)
{
    struct det_store_lease lease;
    uint64_t token = lender_grant(lender, "a", LONG);

    assert_int_equal(lender_ask(lender, DET_LEASE_RELEASE, "a", token, 0, &lease), 0);
    assert_int_equal(
        lender_ask(lender, DET_LEASE_RENEW, "a", token, LONG, &lease), DET_ERR_LOCK_LOST);
    token = lender_grant(lender, "a", SHORT);
    lender_lapse(lender);
    assert_int_equal(
        lender_ask(lender, DET_LEASE_RENEW, "a", token, LONG, &lease), DET_ERR_LOCK_LOST);
    assert_string_equal(inspect(lender).owner, "");
}

static void hides_who_had_it_once_it_has_lapsed(const struct lender *lender)
{
    lender_grant(lender, "a", SHORT);
    lender_lapse(lender);
    assert_string_equal(inspect(lender).owner, "");
    assert_int_equal(inspect(lender).token, 1);
}

/* A late release changes nothing, and succeeds once. */
static void stays_free_when_a_lapsed_one_is_released(const struct lender *lender)
{
    struct det_store_lease lease;
    uint64_t token = lender_grant(lender, "a", SHORT);

    lender_lapse(lender);
    assert_int_equal(lender_ask(lender, DET_LEASE_RELEASE, "a", token, 0, &lease), 0);
    assert_string_equal(lease.owner, "");
    assert_int_equal(
        lender_ask(lender, DET_LEASE_RELEASE, "a", token, 0, &lease), DET_ERR_LOCK_LOST);
    assert_string_equal(inspect(lender).owner, "");
    assert_int_equal(lender_grant(lender, "b", LONG), token + 1);
}

static void renewals_keep_rivals_out(const struct lender *lender)
{
    struct det_store_lease lease;
    uint64_t token = lender_grant(lender, "a", 10 * DET_SECOND);
    det_time first_end = inspect(lender).expires_at;

    for (int i = 0; i < 5; i++) {
        if (lender->box->sim)
            box_wait(lender->box, box_now(lender->box) + 4 * DET_SECOND);
        assert_int_equal(
            lender_ask(lender, DET_LEASE_RENEW, "a", token, 10 * DET_SECOND, &lease), 0);
        assert_int_equal(
            lender_ask(lender, DET_LEASE_ACQUIRE, "b", 0, LONG, &lease), DET_ERR_LOCKED);
    }
    assert_true(!lender->box->sim || box_now(lender->box) > first_end);
}

static void a_release_lets_the_next_one_in_at_once(const struct lender *lender)
{
    struct det_store_lease lease;
    uint64_t token = lender_grant(lender, "a", LONG);

    assert_int_equal(lender_ask(lender, DET_LEASE_RELEASE, "a", token, 0, &lease), 0);
    assert_int_equal(lender_grant(lender, "b", LONG), token + 1);
}

static void of_ten_candidates_one_gets_it(const struct lender *lender)
{
    unsigned granted = 0;

    for (int i = 0; i < 10; i++) {
        struct det_store_lease lease;
        char owner[24];

        snprintf(owner, sizeof owner, "candidate %d", i);
        granted += lender_ask(lender, DET_LEASE_ACQUIRE, owner, 0, LONG, &lease) == 0;
    }
    assert_int_equal(granted, 1);
    assert_string_equal(inspect(lender).owner, "candidate 0");
}

static void the_token_only_grows(const struct lender *lender)
{
    struct lender again = *lender;
    uint64_t last = 0;

    for (int i = 0; i < 9; i++) {
        struct det_store_lease lease;
        uint64_t token = lender_grant(&again, "a", i % 3 == 1 ? SHORT : LONG);

        assert_int_equal(token, last + 1);
        last = token;
        if (i % 3 == 1)
            lender_lapse(&again);
        else
            assert_int_equal(lender_ask(&again, DET_LEASE_RELEASE, "a", token, 0, &lease), 0);
        if (i % 3 == 2)
            box_reopen(again.box);
        again.store = again.box->store;
    }
}

/* The only opening knows that the former holder is dead, and need not wait. */
static void of_an_earlier_opening_is_free_where_there_is_only_one(const struct lender *lender)
{
    struct lender again = *lender;
    struct det_store_lease lease;
    uint64_t token = lender_grant(lender, "gone", LONG);

    if (!box_frees_locks(again.box))
        return;
    box_reopen(again.box);
    again.store = again.box->store;
    lease = inspect(&again);
    assert_string_equal(lease.owner, "");
    assert_int_equal(lease.token, token);
    assert_int_equal(
        lender_ask(&again, DET_LEASE_RENEW, "gone", token, LONG, &lease), DET_ERR_LOCK_LOST);
    assert_int_equal(lender_grant(&again, "next", LONG), token + 1);
}

static void an_owner_may_have_a_long_name(const struct lender *lender)
{
    char owner[DET_OWNER_MAX + 1];

    memset(owner, 'o', DET_OWNER_MAX);
    owner[DET_OWNER_MAX] = 0;
    lender_grant(lender, owner, LONG);
    assert_string_equal(inspect(lender).owner, owner);
}

static void over_a_lease(void **state, void (*test)(const struct lender *lender))
{
    struct box *box = *state;
    struct lender lender = { box, box->store, "leader", false };

    test(&lender);
}

static void over_a_lock(void **state, void (*test)(const struct lender *lender))
{
    struct box *box = *state;
    struct lender lender = { box, box->store, "p", true };

    subject_start(box, "p");
    test(&lender);
}

#define EACH(X)                                              \
    X(starts_free)                                           \
    X(is_granted_when_it_is_free)                            \
    X(is_busy_for_everybody_else_and_tells_who_has_it)       \
    X(can_be_granted_to_another_after_it_lapses)             \
    X(can_be_released_once)                                  \
    X(is_not_released_by_another_token)                      \
    X(renewing_moves_its_end)                                \
    X(cannot_be_renewed_once_released_or_lapsed)             \
    X(hides_who_had_it_once_it_has_lapsed)                   \
    X(stays_free_when_a_lapsed_one_is_released)              \
    X(renewals_keep_rivals_out)                              \
    X(a_release_lets_the_next_one_in_at_once)                \
    X(of_ten_candidates_one_gets_it)                         \
    X(the_token_only_grows)                                  \
    X(of_an_earlier_opening_is_free_where_there_is_only_one) \
    X(an_owner_may_have_a_long_name)

#define BOTH(test)                           \
    static void a_lease_##test(void **state) \
    {                                        \
        over_a_lease(state, test);           \
    }                                        \
    static void a_lock_##test(void **state)  \
    {                                        \
        over_a_lock(state, test);            \
    }
EACH(BOTH)
#undef BOTH

static void leases_of_other_names_are_other_leases(void **state)
{
    struct box *box = *state;
    char name[DET_ID_MAX + 1];
    struct lender a = { box, box->store, "a", false }, b = { box, box->store, "A", false };
    struct lender c = { box, box->store, name, false };

    memset(name, 'n', DET_ID_MAX);
    name[DET_ID_MAX] = 0;
    assert_int_equal(lender_grant(&a, "x", LONG), 1);
    assert_int_equal(lender_grant(&b, "y", LONG), 1);
    assert_int_equal(lender_grant(&c, "z", LONG), 1);
    assert_string_equal(inspect(&a).owner, "x");
    assert_string_equal(inspect(&c).owner, "z");
}

#define TESTS(test) CASE(a_lease_##test), CASE(a_lock_##test),
static const struct CMUnitTest leases[] = {
    /* clang-format off */
    EACH(TESTS)
    /* clang-format on */
    CASE(leases_of_other_names_are_other_leases),
};
const struct group lease_cases = GROUP_OF(leases);
