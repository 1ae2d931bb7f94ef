/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_tree.h - groups and dependencies, shared by the files of the tree.
 *
 *     root --+-- web (a task)            members are in the order of adding,
 *            +-- back (a group) --+-- db          tasks and groups in one list
 *            |                    +-- cache
 *            +-- mail
 *
 *     need of web ----> anchor "back" <---- need of mail
 *                          | the group or task of that name, if there is one
 *
 * Invariants
 *   1. An anchor lives exactly as long as a task needs its name; it outlives the task of that name,
 *      so that a completion is remembered and a new task of the same name is found.
 *   2. The counts of a group are those of all tasks below it, at any depth: a task's contribution
 *      is its `standing`.
 *   3. A task is checked (`turn`) only after an event that may let it start. */
#ifndef DET_TASK_TASK_TREE_H
#define DET_TASK_TASK_TREE_H

#include "task/registry.h"

/* The end of a task may end all groups above it, each notified by the one below. So groups are
 * nested far less deeply (DET_TASK_GROUP_DEPTH_MAX) than components may be. */

/* Number of conditions of a task or group: one for each enum det_condition_kind. */
#define STANDINGS 3

/* A node in the graph of dependencies, for a walk without recursion: a task that needs others, or a
 * group, which needs its members. */
struct node {
    struct node *from;     /* the previous node of the walk */
    struct det_list *next; /* of a group: the next member */
    size_t next_need;      /* of a task */
    uint64_t walk;         /* the last walk that visited it */
    bool is_group;
};

/* A name that a task depends on. */
struct anchor {
    const char *name; /* follows the struct */
    struct det_tasks *tasks;
    struct det_task *task; /* NULL: none at the moment, */
    struct group *group;   /* or it is this group */
    struct det_list needs; /* of its dependents; never empty */
    bool has_completed;
};

/* One dependency of one task. */
struct need {
    struct det_list others; /* needs of the same anchor */
    struct anchor *anchor;
    struct det_task *task; /* the dependent task */
    enum det_condition_kind when;
};

struct needs {
    struct node node;
    struct det_task *task;
    size_t count;
    struct need list[];
};

struct group {
    struct det_component component; /* group.fsm; not of the root */
    struct member member;           /* in the group above */
    struct det_list all;            /* in the list of all groups, parents first */
    struct det_tasks *tasks;
    struct group *parent;    /* NULL: this is the root */
    struct det_list members; /* by `siblings` */
    struct node node;
    struct anchor *anchor; /* NULL: no task depends on it */
    struct det_intensity intensity;
    struct det_intensity_window *window;
    enum det_strategy strategy;
    uint32_t depth; /* 0: the root */
    uint32_t member_count;
    uint64_t next_order;

    /* Over all tasks below it. */
    uint32_t task_count;
    uint32_t standing[STANDINGS]; /* number of tasks that are running, healthy, have succeeded */
    uint64_t joined_count;        /* number that joined since the group began */
    bool has_lost;                /* a task left since the group began without completing */

    /* For a stop or a restart. */
    struct member *blamed;   /* the member that has just failed */
    struct member *culprit;  /* the member that caused the restart; NULL: gone, or none */
    uint64_t scope_from;     /* the scope: members from this order on */
    struct det_list *cursor; /* the next one to hold, from the end to the start */
    bool is_stopped_by_hand;

    /* For its own failures, like those of a task. */
    det_time since, due, delay;
    uint32_t failures;

    struct det_list stop_line; /* at the top, during a shutdown: its tasks in the order of their
                                * stop */
    char reason[DET_TASK_REASON_MAX + 1];
    const char *name; /* follows the struct; NULL: the root */
};

/* group_calls.c */
void det_group_free(struct group *group);

/* group.c: notifications from the tree to the machine of a group */
DET_MUST_CHECK int det_group_start(struct group *group, struct det_error *reterr);
/* True if its group permits this member to run, ignoring the groups above. */
bool det_group_is_open_for(const struct group *group, const struct member *member);
bool det_group_has_failed(const struct group *group);
const char *det_group_state(const struct group *group);
/* A member failed and will be retried. */
void det_group_member_failed(struct group *group, struct member *member, const char *reason);
/* A member failed permanently. */
void det_group_member_lost(struct group *group, struct member *member, const char *reason);
/* A member is held now, or about to leave, and still in its place. */
void det_group_member_held(struct group *group);
void det_group_member_leaves(struct group *group, struct member *member);
void det_group_stop(struct group *group);
void det_group_go(struct group *group);
/* The group above is open for this one: true if that makes it run. The caller releases its
 * members. */
bool det_group_release(struct group *group);

/* dependency.c */
/* Binds the names in the task's extras to anchors. */
DET_MUST_CHECK int det_needs_open(struct det_task *task, struct det_error *reterr);
void det_needs_close(struct det_task *task);
/* The first unmet need; NULL: none. */
const struct need *det_needs_unmet(const struct det_task *task);
/* The unmet condition, for people. */
const char *det_need_text(const struct need *need);
/* Binds the existing dependents of its name. */
void det_anchor_attach(struct det_tasks *tasks, struct det_task *task, struct group *group);
void det_anchor_detach(struct anchor *anchor, bool has_completed);
/* Checks the dependents that waited for it. */
void det_anchor_changed(struct anchor *anchor);

/* task_tree.c */
static inline struct det_task *task_of_member(struct member *member)
{
    return DET_CONTAINER(member, struct det_task, member);
}

static inline struct group *group_of_member(struct member *member)
{
    return DET_CONTAINER(member, struct group, member);
}

static inline struct member *member_at(struct det_list *siblings)
{
    return DET_CONTAINER(siblings, struct member, siblings);
}

/* The task may have become startable. */
void det_tree_inspect(struct det_task *task);
/* The members from this order on, and everything below them: groups are released, tasks checked. */
void det_tree_release_members(struct group *group, uint64_t from);
/* Visits all tasks below a group, in order; a negative return value ends the walk. */
int det_tree_each_below(
    struct group *group, int (*each)(struct det_task *task, void *argument), void *argument);

/* walk.c: along the needs of a node, depth first; each node once */
struct walk {
    struct det_tasks *tasks;
    struct node *goal;                    /* ends when it reaches this node again; NULL: no goal */
    void (*leave)(struct det_task *task); /* called after all needs of a task; may be called several
                                           * times; NULL */
};
/* True if the walk reached the goal; then `from` of the goal leads back along the path. */
bool det_walk(const struct walk *walk, struct node *start);
const char *det_node_name(struct node *node);

/* stop_order.c */
/* A task has left: checks its dependencies. */
void det_stop_left(struct det_task *task);
/* Its last dependent is gone. */
void det_stop_unneeded(struct anchor *anchor);

#endif
