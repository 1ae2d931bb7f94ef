/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* conform.h - one suite of the contract of stores, driver/store.h, run over every driver.
 *
 *     driver --> box: a new store of that kind and a world with its clock, one per test
 *                  |
 *                  +-- subject: an instance in the state that the test expects
 *                  |      |
 *                  |      +-- draft: a commit in preparation for it
 *                  |
 *                  +-- image: everything that the store returns about an instance, to be compared
 *                      with another image, or with the model (model.h) after the same commits
 *
 * The suite was written from the header and from docs/formats/sql_schema.md, without a look at the
 * drivers. */
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

/* A kind of store, and its capabilities. */
struct driver {
    const char *scheme;
    bool is_kept;         /* commits survive a reopening */
    bool is_shared;       /* several programs may open it at once */
    bool is_simulated;    /* it has the clock of a simulated world */
    bool has_readers;     /* it can be opened for reading only */
    bool is_stand_in;     /* for tests: it is not opened by a URL, and has no definitions */
    uint64_t model_steps; /* of the random test */
    /* `begin` sets the URL of a store that does not exist yet, another one each time; `end` removes
     * all of them. */
    void (*begin)(struct box *box);
    void (*end)(struct box *box);
    /* Opens a stand-in. */
    struct det_store *(*open)(struct box *box);
    /* Runs SQL on the tables, with "@" before the name of each; NULL: no tables. The store must be
     * closed. */
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
    struct subject *subjects; /* all subjects of the box */
    uint32_t connections;     /* of its openings; 0: the default of the driver */
    bool is_damaged;          /* damaged intentionally: its check may have findings at the end */
};

/* Setup and teardown of every test, with the driver that the program was started for. The teardown
 * checks the store, if the driver can. */
extern const struct driver *box_driver;
int box_setup(void **state);
int box_teardown(void **state);
#define CASE(name) cmocka_unit_test_setup_teardown(name, box_setup, box_teardown)

/* Opens the same store again and serves the machine: of a shared store, or while that of the box is
 * closed. The caller closes it with box_close_store(). */
struct det_store *box_open_store(struct box *box);
int box_open_with(
    struct box *box, struct det_store_options options, struct det_store **ret,
    struct det_error *reterr);
/* Also releases the handles that subjects have of it. */
void box_close_store(struct box *box, struct det_store *store);
/* Closes the store of the box and damages its tables. */
void box_damage(struct box *box, const char *sql);
/* Closes the store of the box and opens it again; subjects must then be loaded. A store that ends
 * with the process stays open. */
void box_reopen(struct box *box);
/* Returns true if a reopening frees all locks and leases: stores of one process. */
bool box_frees_locks(const struct box *box);
det_time box_now(struct box *box);
/* Waits until the clock of the store has passed a time. */
void box_wait(struct box *box, det_time until);

/* An instance in the state that the test expects. */
struct subject {
    struct subject *next;
    struct box *box;
    struct det_store *store; /* the opening through which it is written */
    char id[DET_ID_MAX + 1];
    struct det_store_instance *instance;
    struct det_store_head head;
    struct parcel_data data;
    char reason[DET_REASON_MAX + 1];
    uint16_t history[DET_HISTORY_MAX]; /* most recent first */
    size_t history_count;
};

/* A commit in preparation, with everything that it points to. */
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

/* Returns an instance that does not exist yet; the box owns it. */
struct subject *subject_new(struct box *box, const char *id);
/* Prepares the commit that starts it, in the first state. */
void draft_start(struct draft *draft, struct subject *subject);
/* Calls both and commits. */
struct subject *subject_start(struct box *box, const char *id);
/* Loads an existing instance through an opening. */
struct subject *subject_find(struct box *box, struct det_store *store, const char *id);
void draft_init(struct draft *draft, struct subject *subject);
/* Adds an event with a kind, a value and a target state. A GOTO is a new visit. Returns the event
 * for further changes. */
struct det_store_event *draft_event(
    struct draft *draft, unsigned kind, enum det_outcome outcome, unsigned to);
/* Adds a manual stop. */
void draft_stop(struct draft *draft, const char *reason);
void draft_data(struct draft *draft, uint64_t number);
void draft_event_id(struct draft *draft, const char *event_id);
/* Adds a timer change. Its event is LATE with the number 100 * due + timer; SET has the visit after
 * the commit. */
struct det_store_timer *draft_timer(
    struct draft *draft, enum det_store_change_kind kind, uint16_t timer, det_time due);
/* Adds a change of the effect that the event with this sequence requested. */
struct det_store_effect *draft_effect(
    struct draft *draft, enum det_store_change_kind kind, uint64_t sequence, uint16_t index);
void draft_deferred(struct draft *draft, enum det_store_change_kind kind, uint64_t sequence);
void draft_snapshot(struct draft *draft);
/* Commits and returns the result. After 0 the subject is in the state of the draft. */
int draft_commit(struct draft *draft);
/* Commits several drafts in one call; each commit has its result. */
void draft_commit_all(struct draft **drafts, size_t count);

/* Sends one event, which must succeed. */
void subject_move(struct subject *subject, unsigned kind, unsigned to);
void subject_set_timer(struct subject *subject, uint16_t timer, det_time due);
void subject_set_effect(struct subject *subject, uint16_t index, det_time next);
void subject_defer(struct subject *subject);
/* Loads the subject again, with a new handle and head. */
void subject_load(struct subject *subject);

/* Everything that a store returns about an instance. */
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
/* The current comparison, for messages. */
extern char image_context[80];
/* Fails the test with the first difference. */
void image_assert_equal(const struct image *image, const struct image *expected);
/* Returns the number in a value of COUNT, CHECKED or LATE. */
uint64_t value_number(const struct parcel_event *value);

/* The lock of an instance, or a lease by name: both have the same rules. */
struct lender {
    struct box *box;
    struct det_store *store;
    const char *name;
    bool is_lock;
};
int lender_ask(
    const struct lender *lender, enum det_store_lease_verb verb, const char *owner, uint64_t token,
    det_time span, struct det_store_lease *ret);
/* Acquires it, which must succeed; returns the token. */
uint64_t lender_grant(const struct lender *lender, const char *owner, det_time span);
/* Waits until it has lapsed by the store's clock. */
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
