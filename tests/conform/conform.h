/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* conform.h - one suite of the contract of stores, driver/store.h, run over every driver.
 *
 *     driver --> box: a fresh store of that kind and a world with its clock, one per test
 *                  |
 *                  +-- subject: an instance as the test believes it to be
 *                  |      |
 *                  |      +-- draft: the commit that is being made up for it
 *                  |
 *                  +-- image: all that the store says about an instance, to be compared with
 *                      another image, or with what the model (model.h) made of the same commits
 *
 * The suite was written from the header and from docs/formats/sql_schema.md, without a look at the
 * drivers. Tests about items of the specification's list of behaviours have the numbers of those in
 * their names. */
#ifndef DET_CONFORM_H
#define DET_CONFORM_H

#include "lib/test.h"

#include "conform/parcel.h"

#define URL_MAX      512
#define ROWS_MAX     8
#define CAUSE_MAX    200
#define IMAGE_ROWS   160
#define IMAGE_EVENTS 600

struct box;

/* A kind of store, and what may be asked of it. */
struct driver {
    const char *scheme;
    bool is_kept;         /* what was committed is there when it is opened again */
    bool is_shared;       /* several may have it open at once */
    bool is_simulated;    /* it has the clock of a simulated world */
    bool has_readers;     /* it can be opened for reading only */
    bool is_stand_in;     /* for tests: it is not opened by a URL, and has no definitions */
    uint64_t model_steps; /* of the random test */
    /* Sets the URL of a store that is not there yet, each time another one; and away with all that
     * they have become. */
    void (*begin)(struct box *box);
    void (*end)(struct box *box);
    /* Opens a stand-in. */
    struct det_store *(*open)(struct box *box);
    /* Runs SQL on the tables themselves, where "@" stands before the name of each; NULL: there are
     * none. Nobody has the store open. */
    void (*execute)(struct box *box, const char *sql);
};
extern const struct driver driver_memory, driver_pooled, driver_postgres, driver_shared,
    driver_sqlite;

/* A store in its world. */
struct box {
    const struct driver *driver;
    char url[URL_MAX];
    void *place; /* the driver's */
    unsigned place_count;
    struct det_sim *sim; /* NULL: the real world */
    struct det_world *world;
    struct det_store *store;
    const struct det_machine *machine;
    struct subject *subjects; /* all that were made in it */
    uint32_t connections;     /* of its openings; 0: as many as the driver thinks */
    bool is_damaged;          /* on purpose: its check may find something at the end */
};

/* Setup and teardown of every test; the driver is the one the program was started for. A store that
 * can be checked is checked at the end of each. */
extern const struct driver *box_driver;
int box_setup(void **state);
int box_teardown(void **state);
#define CASE(name) cmocka_unit_test_setup_teardown(name, box_setup, box_teardown)

/* One more opening of the same store, that serves the machine: of a shared one, or while the box's
 * own is closed. Whoever opens it closes it, with box_close_store(). */
struct det_store *box_open_store(struct box *box);
int box_open_with(
    struct box *box, struct det_store_options options, struct det_store **ret,
    struct det_error *reterr);
/* Also gives back the handles that subjects have of it. */
void box_close_store(struct box *box, struct det_store *store);
/* Closes the box's own, and does something to its tables. It is damaged from then on. */
void box_damage(struct box *box, const char *sql);
/* Closes the box's own and opens it again; subjects have to be loaded then. A store that is not
 * kept stays open, as it is. */
void box_reopen(struct box *box);
/* Whether a reopening frees all locks and leases: where only one may have the store open. */
bool box_frees_locks(const struct box *box);
det_time box_now(struct box *box);
/* Lets the store's clock pass a time. */
void box_wait(struct box *box, det_time until);

/* An instance, as the test believes it to be. */
struct subject {
    struct subject *next;
    struct box *box;
    struct det_store *store; /* through which it is written: the box's own, or another opening */
    char id[DET_ID_MAX + 1];
    struct det_store_instance *instance;
    struct det_store_head head;
    struct parcel_data data;
    char reason[DET_REASON_MAX + 1];
    uint16_t history[DET_HISTORY_MAX]; /* most recent first */
    size_t history_count;
};

/* A commit in the making, with all that it points to. */
struct draft {
    struct subject *subject;
    struct det_store_commit commit;
    struct det_store_head head;
    struct det_store_event events[ROWS_MAX];
    struct det_store_timer_change timers[ROWS_MAX];
    struct det_store_effect_change effects[ROWS_MAX];
    struct det_store_deferred_change deferred[ROWS_MAX];
    struct parcel_event values[ROWS_MAX], timer_values[ROWS_MAX], effect_values[ROWS_MAX],
        deferred_values[ROWS_MAX];
    struct parcel_data data, effect_data[ROWS_MAX];
    uint16_t history[DET_HISTORY_MAX];
    size_t history_count;
};

/* An instance that is not there yet; the box's. */
struct subject *subject_new(struct box *box, const char *id);
/* What starts it, in the first state. */
void draft_start(struct draft *draft, struct subject *subject);
/* Both. */
struct subject *subject_start(struct box *box, const char *id);
/* One that somebody has started, as it is found through an opening. */
struct subject *subject_find(struct box *box, struct det_store *store, const char *id);
void draft_init(struct draft *draft, struct subject *subject);
/* One more event: what kind, with which value, to which state. A GOTO is a new visit. Returns it,
 * for what else is to be said of it. */
struct det_store_event *draft_event(
    struct draft *draft, unsigned kind, enum det_outcome outcome, unsigned to);
/* A stop by hand. */
void draft_stop(struct draft *draft, const char *reason);
void draft_data(struct draft *draft, uint64_t number);
void draft_event_id(struct draft *draft, const char *event_id);
/* The timer's event is LATE with the number 100 * due + timer. SET is of the visit afterwards. */
struct det_store_timer *draft_timer(
    struct draft *draft, enum det_store_change_kind kind, uint16_t timer, det_time due);
/* The effect that the event with this sequence asked for. */
struct det_store_effect *draft_effect(
    struct draft *draft, enum det_store_change_kind kind, uint64_t sequence, uint16_t index);
void draft_deferred(struct draft *draft, enum det_store_change_kind kind, uint64_t sequence);
void draft_snapshot(struct draft *draft);
/* The result. After 0 the subject is as the draft said. */
int draft_commit(struct draft *draft);
/* Several in one call; each one's result is in its commit. */
void draft_commit_all(struct draft **drafts, size_t count);

/* The same in one go, and it must succeed. */
void subject_move(struct subject *subject, unsigned kind, unsigned to);
void subject_set_timer(struct subject *subject, uint16_t timer, det_time due);
void subject_set_effect(struct subject *subject, uint16_t index, det_time next);
void subject_defer(struct subject *subject);
/* Loads it again, as somebody else would see it: the handle and the head are new. */
void subject_load(struct subject *subject);

/* All that a store says about an instance. */
struct image_event {
    struct det_store_event row;
    struct parcel_event value;
    char event_id[DET_ID_MAX + 1], cause[CAUSE_MAX + 1];
};
struct image_timer {
    struct det_store_timer row;
    struct parcel_event value;
    char reason[DET_REASON_MAX + 1]; /* that of the row, which is gone; "": none */
};
struct image_effect {
    struct det_store_effect row;
    struct parcel_event value;
    struct parcel_data data;
    char reason[DET_REASON_MAX + 1]; /* that of the row, which is gone; "": none */
};
struct image_deferred {
    uint64_t sequence;
    struct parcel_event value;
};
struct image {
    bool is_there;
    struct det_store_loaded loaded; /* its data is `data` */
    struct parcel_data data;
    struct image_event events[IMAGE_EVENTS];
    size_t event_count;
    struct image_timer timers[4]; /* in the order of their numbers, the state's own last */
    size_t timer_count;
    struct image_effect effects[IMAGE_ROWS];
    size_t effect_count;
    struct image_deferred deferred[DET_DEFERRED_MAX];
    size_t deferred_count;
    bool has_snapshot;
    struct det_store_snapshot snapshot; /* its data is `snapshot_data` */
    struct parcel_data snapshot_data;
    struct det_store_lease lock;
};
/* free() it. */
struct image *image_read(struct box *box, const char *id);
/* What is being compared, for messages. */
extern char image_context[80];
/* Fails the test, and says where they differ. */
void image_assert_equal(const struct image *image, const struct image *expected);
/* The number that is in a value of COUNT, CHECKED or LATE. */
uint64_t value_number(const struct parcel_event *value);

/* Something to be held: the lock of an instance, or a lease by name. Both obey the same rules. */
struct lender {
    struct box *box;
    struct det_store *store;
    const char *name;
    bool is_lock;
};
int lender_ask(
    const struct lender *lender, enum det_store_lease_verb verb, const char *owner, uint64_t token,
    det_time span, struct det_store_lease *ret);
/* It must be granted; the token. */
uint64_t lender_grant(const struct lender *lender, const char *owner, det_time span);
/* Lets its time pass, by the store's clock. */
void lender_lapse(const struct lender *lender);

/* The groups of tests. */
struct group {
    const char *name;
    const struct CMUnitTest *tests;
    size_t count;
};
#define GROUP_OF(tests)                                   \
    {                                                     \
#tests, tests, sizeof(tests) / sizeof((tests)[0]) \
    }
extern const struct group trace_cases, answer_cases, atomic_cases, commit_cases, count_cases,
    damage_cases, document_cases, document_look_cases, due_cases, effect_cases, job_batch_cases,
    job_cases, job_change_cases, keep_cases, lease_cases, list_cases, lock_cases, log_cases,
    model_cases, serve_cases, shared_cases, snapshot_cases, start_cases, thread_cases, timer_cases,
    walk_cases;

#endif
