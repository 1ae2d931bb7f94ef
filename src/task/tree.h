/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tree.h - groups, and who depends on whom, as the files of the tree share them.
 *
 *     root --+-- web (a task)            members stand in the order in which they were added,
 *            +-- back (a group) --+-- db          tasks and groups in one list
 *            |                    +-- cache
 *            +-- mail
 *
 *     need of web ----> anchor "back" <---- need of mail
 *                          | the group or task of that name, if there is one
 *
 * Invariants
 *   1. An anchor lives exactly as long as somebody needs its name; it outlives the task of that
 *      name, so that a completion is remembered and a task of the same name is found again.
 *   2. The counts of a group are those of all tasks below it, at any depth: what a task adds to
 *      them stands in its `standing`.
 *   3. A task is looked at (`turn`) only when something has happened that may let it start. */
#ifndef DET_TASK_TREE_H
#define DET_TASK_TREE_H

#include "task/registry.h"

/* An end of a task may be the end of all groups above it, each told by the one below. So groups are
 * far less deep (DET_TASK_GROUP_DEPTH_MAX) than components may be. */

/* What can be said of a task, and of a group as a whole: one for each enum det_condition_kind. */
#define STANDINGS 3

/* A place in the graph of who waits for whom, for a walk without recursion: a task that needs
 * others, or a group, which needs its members. */
struct node {
    struct node *from;     /* by which the walk came here */
    struct det_list *next; /* of a group: the member that is next */
    size_t next_need;      /* of a task */
    uint64_t walk;         /* the last one that was here */
    bool is_group;
};

/* The name that somebody depends on. */
struct anchor {
    const char *name; /* behind this struct */
    struct det_tasks *tasks;
    struct det_task *task; /* NULL: there is none at the moment, */
    struct group *group;   /* or it is this group */
    struct det_list needs; /* of those who depend on it; never empty */
    bool has_completed;
};

/* One dependency of one task. */
struct need {
    struct det_list others; /* of the same anchor */
    struct anchor *anchor;
    struct det_task *task; /* whose */
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
    struct det_list all;            /* of all groups, parents first */
    struct det_tasks *tasks;
    struct group *parent;    /* NULL: this is the root */
    struct det_list members; /* by `siblings` */
    struct node node;
    struct anchor *anchor; /* NULL: nobody depends on it */
    struct det_intensity intensity;
    struct det_intensity_window *window;
    enum det_strategy strategy;
    uint32_t depth; /* 0: the root */
    uint32_t member_count;
    uint64_t next_order;

    /* Of all tasks below it. */
    uint32_t task_count;
    uint32_t standing[STANDINGS]; /* how many of them are running, healthy, have succeeded */
    uint64_t joined_count;        /* that were here since the group began */
    bool has_lost;                /* one has left, since the group began, that had not completed */

    /* Of a stop or a restart. */
    struct member *blamed;   /* the one that has just failed */
    struct member *culprit;  /* for which the others are held; NULL: gone, or nobody */
    uint64_t scope_from;     /* concerns the members from this order on */
    struct det_list *cursor; /* the next one to be held, from the end to the start */
    bool is_stopped_by_hand;

    /* Of its own failures, as those of a task. */
    det_time since, due, delay;
    uint32_t failures;

    struct det_list stop_line; /* at the top, in a shutdown: its tasks in the order of their stop */
    char reason[DET_TASK_REASON_MAX + 1];
    const char *name; /* behind this struct; NULL: the root */
};

/* group_calls.c */
void det_group_free(struct group *group);

/* group.c: what the tree tells the machine of a group */
DET_MUST_CHECK int det_group_start(struct group *group, struct det_error *reterr);
/* Whether this member may run, as far as its group is concerned; not those above it. */
bool det_group_is_open_for(const struct group *group, const struct member *member);
bool det_group_has_failed(const struct group *group);
const char *det_group_state(const struct group *group);
/* A member failed and will be tried again. */
void det_group_member_failed(struct group *group, struct member *member, const char *reason);
/* A member failed for good. */
void det_group_member_lost(struct group *group, struct member *member, const char *reason);
/* A member is held now, or about to leave: it is still in its place. */
void det_group_member_held(struct group *group);
void det_group_member_leaves(struct group *group, struct member *member);
void det_group_stop(struct group *group);
void det_group_go(struct group *group);
/* The group above it is open for it: true when it runs by that. Its members are the caller's. */
bool det_group_release(struct group *group);

/* dependency.c */
/* Binds what stands in the task's body to anchors. */
DET_MUST_CHECK int det_needs_open(struct det_task *task, struct det_error *reterr);
void det_needs_close(struct det_task *task);
/* The first need that is not met; NULL: all are. */
const struct need *det_needs_unmet(const struct det_task *task);
/* What is missing, for people. */
const char *det_need_text(const struct need *need);
/* Takes up with those who depend on its name already. */
void det_anchor_attach(struct det_tasks *tasks, struct det_task *task, struct group *group);
void det_anchor_detach(struct anchor *anchor, bool has_completed);
/* Those who wait for it, and wait no more, are looked at. */
void det_anchor_changed(struct anchor *anchor);

/* tree.c */
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

/* It may have become startable. */
void det_tree_look_at(struct det_task *task);
/* The members from this order on, and all below them: groups are released, tasks looked at. */
void det_tree_release_members(struct group *group, uint64_t from);
/* All tasks below a group, in order; a negative answer ends it. */
int det_tree_each_below(
    struct group *group, int (*each)(struct det_task *task, void *argument), void *argument);

/* walk.c: along what a node needs, depth first; each node once */
struct walk {
    struct det_tasks *tasks;
    struct node *goal;                    /* ends when it comes to this one again; NULL: no goal */
    void (*leave)(struct det_task *task); /* after all it needs; may come several times; NULL */
};
/* True when it came to the goal; then `from` of the goal leads back along the way. */
bool det_walk(const struct walk *walk, struct node *start);
const char *det_node_name(struct node *node);

/* stop_order.c */
/* A task has left, and with it what it needed. */
void det_stop_left(struct det_task *task);
/* Nobody depends on it any more. */
void det_stop_unneeded(struct anchor *anchor);

#endif
