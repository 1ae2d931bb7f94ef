/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* actor.pml - the life of tasks that share permits, checked by Spin over the table of
 * src/task/actor.fsm.
 *
 * TASKS tasks share LIMIT permits. Around them, in any order: a tree that allows and forbids, work
 * that ends at any time and in any way, timers, cancels, restarts, errors of the base.
 *
 * What must hold, as assertions
 *   1. an attempt lives only with a permit, and permits are never more than the limit;
 *   2. in line for a permit are exactly those who wait and have none;
 *   3. a task never has two attempts, and none is left when it is done;
 *   4. nothing starts after a cancel, or between a hold of the tree and its release;
 *   5. an outcome is known exactly when it is done, and is told once;
 *   6. who pauses has a plan, and nobody else has; who is stopping was asked to;
 *   7. events that the machine gets from its own actions and timers are always taken;
 *   8. when nothing can happen any more, each task is done or held by the tree.
 * And as LTL, when work ends and the loop comes round: a cancelled task is done in the end, and
 * nobody waits for a permit for ever.
 *
 * BROKEN=n breaks one rule, and must be found:
 *   1 the permit is kept through a backoff      2 a cancel is taken for a hold
 *   3 force gives up work that goes on          4 grants do not look at the limit
 *   5 who is cancelled stays in line            6 an outcome is told twice
 *   7 who asks for a permit overtakes the line */
#ifndef TASKS
#define TASKS 2
#endif
#ifndef LIMIT
#define LIMIT 1
#endif

/* Asked for when the search begins: one program is all variants. */
c_decl {
extern char *getenv(const char *);
static int broken;
static void __attribute__((constructor)) ask_broken(void)
{
    const char *text = getenv("BROKEN");

    broken = text ? text[0] - '0' : 0;
}
};
#define BROKEN c_expr { broken }

#define NONE 255

byte states[TASKS]; /* the initial one is 0 */
bool unhandled;     /* of the step that is made */
#define actor_state     states[me]
#define actor_unhandled unhandled

bool allowed[TASKS]; /* the tree has nothing against a start */
bool held[TASKS];    /* the tree has said hold, and not taken it back */
/* What a task has. */
bool permit[TASKS];
bool working[TASKS]; /* its attempt lives */
bool asked[TASKS];   /* to stop */
bool plan[TASKS];
bool cancelled[TASKS];
byte outcomes[TASKS];
/* Permits, and the line for them. */
byte used;
byte line[TASKS] = NONE;
byte waiting;
/* Nobody is forced to cancel, and no timer to go off: under fairness these may also do nothing. */
#ifdef LIVE
#define OR_NOTHING :: true -> true
#else
#define OR_NOTHING
#endif

/* What is left of what may happen only so often, to keep the state space small. */
#ifdef LIVE
byte restarts_left = 1;
byte changes_left = 2;
#else
byte restarts_left = 2;
byte changes_left = 3;
#endif
byte errors_left = 1;

/* To the one who steps the machines: whose, the event, and whether it must be taken. Sending is the
 * last thing that happens in a step of the environment. */
chan offers = [0] of { byte, byte, bool };

/* What the policy says of an attempt that has ended. */
#define AGAIN 1
#define LATER 2

#define actor_guard_may_start()   allowed[me]
#define actor_guard_is_planned()  is_planned
#define actor_guard_will_retry()  (verdict == AGAIN)
#define actor_guard_will_repeat() (verdict == LATER)
#include "actor_table.pml"

inline produce(what)
{
    assert(produced == NONE);
    produced = what;
}

inline take_permit()
{
    assert(!permit[me]);
    permit[me] = true;
    used++;
}

inline actor_do_ask_permit()
{
    if
    :: (waiting == 0 || BROKEN == 7) && used < LIMIT ->
        take_permit();
        produce(ACTOR_GRANTED);
    :: else ->
        assert(waiting < TASKS);
        line[waiting] = me;
        waiting++;
    fi;
}

/* Out of the line, wherever it stands. */
inline take_out(who)
{
    at = 0;
    do
    :: at < waiting && line[at] != who -> at++
    :: else -> break
    od;
    assert(at < waiting);
    do
    :: at + 1 < waiting ->
        line[at] = line[at + 1];
        at++
    :: else -> break
    od;
    waiting--;
    line[waiting] = NONE;
    at = 0;
}

inline actor_do_leave_line()
{
    if
    :: BROKEN == 5 -> skip
    :: else -> take_out(me)
    fi;
}

/* A program that is not there ends at once. */
inline actor_do_start_attempt()
{
    assert(permit[me]);
    assert(!working[me]);
    assert(!cancelled[me]);
    assert(!held[me]);
    if
    :: working[me] = true
    :: produce(ACTOR_ENDED)
    fi;
}

inline actor_do_ask_stop()
{
    assert(!asked[me]);
    asked[me] = true;
}

/* A step is dropped, and has so ended; a function or a process goes on until it ends. */
inline actor_do_force_stop()
{
    if
    :: skip
    ::
        working[me] = (working[me] && BROKEN == 3);
        produce(ACTOR_ENDED)
    fi;
}

inline close_it()
{
    assert(permit[me]);
    asked[me] = false;
    if
    :: BROKEN == 1 && actor_state == ACTOR_BACKOFF -> skip
    :: else -> permit[me] = false; used--
    fi;
}

inline actor_do_close_attempt()
{
    close_it();
}

inline actor_do_close_expired()
{
    close_it();
}

inline actor_do_close_stopped()
{
    close_it();
}

/* Without memory for a timer the action fails. */
inline make_plan()
{
    assert(!plan[me]);
    if
    :: plan[me] = true
    :: errors_left > 0 ->
        errors_left--;
        has_failed = true
    fi;
}

inline actor_do_plan_backoff()
{
    make_plan();
}

inline actor_do_plan_rest()
{
    make_plan();
}

inline actor_do_drop_plan()
{
    plan[me] = false;
}

inline actor_do_forget_failures()
{
    skip;
}

inline actor_do_conclude()
{
    outcomes[me] = outcomes[me] + (BROKEN == 6 -> 2 : 1);
}

inline actor_do_conclude_stopped()
{
    outcomes[me]++;
}

inline actor_do_conclude_cancelled()
{
    outcomes[me]++;
}

inline actor_do_conclude_given_up()
{
    outcomes[me]++;
}

/* When the next attempt begins is chance here, and who waits for a held one is the tree. */
inline actor_do_make_due()
{
    skip;
}

inline actor_do_report_held()
{
    skip;
}

inline actor_do_conclude_failure()
{
    outcomes[me]++;
}

/* Leaves in `found` how often it is in line. */
inline count_in_line()
{
    at = 0;
    do
    :: at < waiting ->
        found = found + (line[at] == me);
        at++
    :: else -> break
    od;
    at = 0;
}

inline check_sound()
{
    assert(used <= LIMIT);
    assert(actor_is_attempt() == permit[me]);
    assert(!working[me] || actor_is_attempt());
    count_in_line();
    assert(found == (actor_state == ACTOR_WAITING));
    found = 0;
    assert(outcomes[me] == (actor_state == ACTOR_DONE));
    assert(actor_is_paused() == plan[me]);
    assert(asked[me] == (actor_is_attempt() && actor_state != ACTOR_RUNNING));
}

/* What chance says before a step. */
inline choose()
{
    if
    :: event == ACTOR_RELEASE ->
        if
        :: is_planned = true
        :: skip
        fi
    :: event == ACTOR_ENDED ->
        if
        :: verdict = AGAIN
        :: verdict = LATER
        :: skip
        fi
    :: else -> skip
    fi;
}

/* The one who steps the machines: an event, and what follows from it at once. What comes from
 * outside may come too late, and is then not taken; what a machine brought about itself must be. */
active proctype executor()
{
    byte me, event, at, found, verdict;
    byte produced = NONE;
    bool must, is_planned, has_failed;

end:
    do
    :: atomic {
        offers?me, event, must;
        do
        :: true ->
            choose();
            actor_step(event);
            assert(!must || !unhandled);
            unhandled = false;
            is_planned = false;
            verdict = 0;
            must = true;
            if
            :: has_failed ->
                has_failed = false;
                produced = NONE;
                event = ACTOR_ERROR
            :: !has_failed && produced != NONE ->
                event = produced;
                produced = NONE
            :: else -> break
            fi
        od;
        check_sound();
        me = 0;
        event = 0;
        must = false
    }
    od
}

/* Work ends, in whichever way. */
proctype work(byte me)
{
end:
    do
    :: atomic {
        working[me] ->
        working[me] = false;
        offers!me, ACTOR_ENDED, true
    }
    od
}

/* What time brings. */
proctype clock(byte me)
{
end:
    do
    :: atomic { actor_state == ACTOR_RUNNING -> offers!me, ACTOR_EXPIRED, true }
    :: atomic {
        actor_is_attempt() && actor_state != ACTOR_RUNNING -> offers!me, ACTOR_OVERDUE, true
    }
    :: atomic {
        plan[me] ->
        plan[me] = false;
        offers!me, ACTOR_DUE, true
    }
    OR_NOTHING
    od
}

/* What the loop does when it comes to it: permits to those in line, and the tree lets go. */
active proctype permits()
{
    byte me, at;

end:
    do
    :: atomic {
        waiting > 0 && (used < LIMIT || BROKEN == 4) ->
        me = line[0];
        take_out(me);
        take_permit();
        offers!me, ACTOR_GRANTED, true;
        me = 0
    }
    od
}

proctype tree(byte me)
{
end:
    do
    :: atomic {
        allowed[me] && (actor_state == ACTOR_HELD || actor_state == ACTOR_HOLDING) ->
        offers!me, ACTOR_RELEASE, true
    }
    od
}

/* What anybody may do at any time. */
proctype world(byte me)
{
end:
    do
    :: atomic {
        changes_left > 0 && !allowed[me] ->
        changes_left--;
        allowed[me] = true;
        held[me] = false
    }
    :: atomic {
        changes_left > 0 && allowed[me] ->
        changes_left--;
        allowed[me] = false /* what it depends on is gone: it may run, but not start */
    }
    :: atomic {
        changes_left > 0 && !held[me] ->
        changes_left--;
        allowed[me] = false;
        held[me] = true;
        offers!me, ACTOR_HOLD, false
    }
    :: atomic {
        held[me] && actor_state == ACTOR_HELD ->
        offers!me, ACTOR_GIVE_UP, true
    }
    :: atomic {
        restarts_left > 0 && actor_state != ACTOR_DONE ->
        restarts_left--;
        offers!me, ACTOR_RESTART, false
    }
    :: atomic {
        errors_left > 0 && actor_state != ACTOR_DONE ->
        errors_left--;
        offers!me, ACTOR_ERROR, true
    }
    :: atomic {
        !cancelled[me] && actor_state != ACTOR_DONE ->
        cancelled[me] = true;
        offers!me, (BROKEN == 2 -> ACTOR_HOLD : ACTOR_CANCEL), false
    }
    OR_NOTHING
    od
}

/* When nothing can happen any more, nobody was forgotten. */
active proctype watch()
{
    byte me;

    timeout;
    for (me : 0 .. TASKS - 1) {
        assert(actor_state == ACTOR_DONE || (actor_state == ACTOR_HELD && !allowed[me]))
    }
}

init {
    byte me;

    atomic {
        for (me : 0 .. TASKS - 1) {
            run work(me);
            run clock(me);
            run tree(me);
            run world(me)
        }
    }
}

#ifdef LIVE
#define is_cancelled cancelled[0]
#define is_waiting   (states[0] == ACTOR_WAITING)
#define is_done      (states[0] == ACTOR_DONE)
ltl a_cancelled_task_is_done_in_the_end { [](is_cancelled -> <> is_done) }
ltl nobody_waits_for_ever { [](is_waiting -> <> !is_waiting) }
#endif
