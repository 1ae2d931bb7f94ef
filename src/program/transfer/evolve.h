/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* evolve.h - shared by diff, replay and migrate: two definitions of a machine, the renames between
 * them, and a store that has instances of it.
 *
 *      OLD.fsm, or the store's definition --+
 *                                           +--> changes, hazards --> how much of it is stored
 *      NEW.fsm -----------------------------+ */
#ifndef DET_TRANSFER_EVOLVE_H
#define DET_TRANSFER_EVOLVE_H

#include "inspect/store_url.h"
#include "machine/compare.h"

/* The options of renames, in the order of enum det_name_kind. */
#define EVOLVE_OPTION_STATES                                                    \
    {                                                                           \
        "rename-state", 0, "A=B,...", NULL, "states that have another name now" \
    }
#define EVOLVE_OPTION_EVENTS                                                    \
    {                                                                           \
        "rename-event", 0, "A=B,...", NULL, "events that have another name now" \
    }
#define EVOLVE_OPTION_EFFECTS                                                     \
    {                                                                             \
        "rename-effect", 0, "A=B,...", NULL, "effects that have another name now" \
    }
#define EVOLVE_OPTION_TIMERS                                                    \
    {                                                                           \
        "rename-timer", 0, "A=B,...", NULL, "timers that have another name now" \
    }

/* The first options of diff, migrate and replay. */
#define EVOLVE_OPTIONS \
    EVOLVE_OPTION_STATES, EVOLVE_OPTION_EVENTS, EVOLVE_OPTION_EFFECTS, EVOLVE_OPTION_TIMERS

struct evolve_change {
    struct evolve_change *next;
    struct det_change it;
};

/* A hazard, and how much stored data it affects. */
struct evolve_hazard {
    struct evolve_hazard *next;
    struct det_hazard it;
    uint64_t count;   /* set by the count */
    uint64_t stopped; /* of a state: instances that have stopped there */
};

/* Number of uses of a name, by its id in the store's definition. */
struct evolve_counts {
    uint64_t instances, stopped;
    uint64_t *in_state, *stopped_in_state;
    uint64_t *of_event, *of_effect, *of_timer;
};

struct evolve {
    struct cli *cli;
    struct det_arena arena;
    struct cli_store store;
    bool has_store;
    bool needs_pending; /* timers, effects and deferred events are counted too */
    bool hides_renames; /* renames are reported in another way */
    struct det_spec *old_spec, *new_spec, *stored_spec;
    const struct det_machine *old, *new; /* `old` is the store's definition if no file is given */
    const struct det_machine *stored;    /* served; NULL: no store */
    struct det_rename *renames;
    size_t rename_count;
    struct evolve_change *changes;
    struct evolve_hazard *hazards;
    size_t change_count, hazard_count;
    uint64_t stranded; /* hazards that affect stored data; all of them without a store */
    struct evolve_counts counts;
};

struct evolve_request {
    const char *old_path; /* NULL: of the store */
    const char *new_path;
    const char *machine; /* in the store, where it has another name; NULL: the same */
    const char *url;
    bool needs_store; /* otherwise only if there is a URL */
    bool is_writing;
    const char *const *renames; /* four values of options, by enum det_name_kind */
};

/* Reads and opens everything requested. Reports errors, and returns an exit code. Close it in
 * either case. */
DET_MUST_CHECK int evolve_open(
    struct cli *cli, const struct evolve_request *request, struct evolve *evolve);
void evolve_close(struct evolve *evolve);

/* Returns the new name of an old one; the same if it was not renamed. */
const char *evolve_rename(const struct evolve *evolve, enum det_name_kind kind, const char *name);

/* Finds changes and hazards, and counts their uses in the store. */
DET_MUST_CHECK int evolve_compare(struct evolve *evolve);
/* Counts the uses of names in the store. */
DET_MUST_CHECK int evolve_count(struct evolve *evolve);
/* Number of uses of this name in the store; `ret_stopped` is set for a state. */
uint64_t evolve_count_of(
    const struct evolve *evolve, enum det_hazard_kind kind, const char *name,
    uint64_t *ret_stopped);

/* Calls `each` for the id of every instance of the store's machine, stopped ones too, with no call
 * of the store under way; stops at an exit code other than CLI_OK, and returns it. */
typedef int evolve_each_fn(struct evolve *evolve, const struct det_store_listed *row);
DET_MUST_CHECK int evolve_each(struct evolve *evolve, evolve_each_fn *each);

/* Prints them. */
void evolve_print_changes(struct evolve *evolve);
void evolve_print_hazards(struct evolve *evolve);

#endif
