/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lease.pml - leases, fences, leaders and what they take over, checked by Spin over the table of
 * src/runtime/lease.fsm.
 *
 * NODES nodes and one store. Every node may stop at any place for as long as it likes (any other
 * process may go on), and all but the first may die. Requests and answers get lost. Clocks only move
 * forward, and in one order: what a holder reckons from when it asked ends before what the store
 * reckons from when it was asked.
 *
 *     ROLE=1   nodes open and close the lock of one instance, and write under it
 *     ROLE=2   nodes compete for a lease by name, and give it up
 *     ROLE=3   timers belong to nodes that have leases of their own; who believes to be the leader
 *              takes over those of a node whose lease has lapsed. By 2 there is one that believes
 *              so; here any number may, which must do no harm either
 *
 * What must hold, as assertions
 *   1. no two nodes believe at once that they hold the lease;
 *   2. no write is accepted under an older fence than the last grant;
 *   3. every answer of the store is taken, and there is one request at a time;
 *   4. a timer fires at most once per visit;
 *   5. what a node has begun to run while it had its lease, no other node runs as well, as long as
 *      it has not lost that lease;
 *   6. a lease that was closed is not held.
 *
 * BROKEN=n breaks one rule, and must be found:
 *   1 the store does not look at the fence     2 a release frees the lock, whoever has it
 *   3 a timer is taken by its instance alone    4 the holder reckons by a clock of its own
 *   5 the leader takes over from nodes that live
 *   6 a node that has its lease again goes on with what it had in memory
 *   7 an answer counts from when it came, not from when it was asked for */
#ifndef NODES
#define NODES 2
#endif
#ifndef ROLE
#define ROLE 1
#endif
#ifndef TOKENS
#define TOKENS 3
#endif
#ifndef FAILURES
#define FAILURES 1
#endif
#ifndef RENEWALS
#define RENEWALS 2
#endif
#ifndef VISITS
#define VISITS 2
#endif
#ifndef LAPSES
#define LAPSES 2
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

#define NONE    255
#define ACQUIRE 1
#define RENEW   2
#define RELEASE 3

/* The lease, as the store has it. */
byte holder = NONE;
byte round_of_holder; /* which of its acquisitions: each is an owner of its own */
byte granted;         /* the last token */
bool lapsed;

/* The leases, as the nodes have them. */
byte states[NODES];
bool unhandled;
byte tokens[NODES];
byte rounds[NODES];
bool held[NODES];                /* until is not 0 */
bool local_over[NODES] = true;   /* our own end of it has come */
bool dead[NODES];
byte job[NODES];
bool served[NODES];
byte answer[NODES];
bool sent_over[NODES];           /* the end that would follow from the request under way has come */
bool prolongs[NODES];            /* the store's end follows from the request under way */
bool abandoned[NODES];
byte failures_left = FAILURES;
byte renewals_left = RENEWALS;
byte lapses_left = LAPSES;
byte errors_left = 1;

#define lease_state     states[me]
#define lease_unhandled unhandled
#define lease_guard_is_once()   (ROLE == 1)
#define lease_guard_has_token() (tokens[me] && !abandoned[me])
#include "lease_table.pml"

#define believes(n) (held[n] && !local_over[n] && !dead[n])

inline submit(what)
{
    assert(job[me] == 0);
    job[me] = what;
    served[me] = false;
    sent_over[me] = false;
    prolongs[me] = false;
}

inline lease_do_ask()          { submit(ACQUIRE) }
inline lease_do_renew()        { submit(RENEW) }
inline lease_do_release()      { submit(RELEASE) }
inline lease_do_plan_renewal() { skip }
inline lease_do_plan_retry()   { skip }
inline lease_do_plan_asking()  { skip }
inline lease_do_ask_soon()     { skip }
inline lease_do_lose()         { held[me] = false }
inline lease_do_withdraw()     { held[me] = false }

inline hold()
{
    local_over[me] = (sent_over[me] && BROKEN != 7);
}

inline lease_do_hold()
{
    held[me] = true;
    hold();
}

inline lease_do_extend()
{
    if
    :: held[me] -> hold()
    :: else
    fi
}

/* 1 and 6. */
inline look()
{
    assert(!believes(0) || !believes(1));
#if NODES > 2
    assert(!believes(0) || !believes(2));
    assert(!believes(1) || !believes(2));
#endif
    assert(!held[me] || lease_is_ours());
}

#define has_it (holder == me && round_of_holder == rounds[me] && !lapsed)

inline store_renew()
{
    if
    :: holder == me && tokens[me] == granted && !lapsed ->
        lapsed = false;
        prolongs[me] = true;
        answer[me] = LEASE_GRANTED
    :: else -> answer[me] = LEASE_REFUSED
    fi
}

inline store_acquire()
{
    if
    :: has_it -> /* by a request whose answer was lost */
        tokens[me] = granted;
        store_renew()
    :: else ->
        if
        :: holder == NONE || lapsed ->
            granted++;
            holder = me;
            round_of_holder = rounds[me];
            lapsed = false;
            prolongs[me] = true;
            tokens[me] = granted;
            answer[me] = LEASE_GRANTED
        :: else -> answer[me] = LEASE_REFUSED
        fi
    fi
}

inline store_release(token)
{
    if
    :: BROKEN == 2 || (holder == me && token == granted && !lapsed) -> holder = NONE
    :: else
    fi
}

inline serve()
{
    served[me] = true;
    if
    :: failures_left > 0 ->
        failures_left--;
        answer[me] = LEASE_FAILED
    :: true ->
        if
        :: job[me] == ACQUIRE -> store_acquire()
        :: job[me] == RENEW -> store_renew()
        :: job[me] == RELEASE ->
            answer[me] = (holder == me && tokens[me] == granted && !lapsed -> LEASE_GRANTED :
                                                                              LEASE_REFUSED);
            store_release(tokens[me])
        fi;
        if
        :: true
        :: failures_left > 0 ->
            failures_left--;
            answer[me] = LEASE_FAILED
        fi
    fi
}

/* What comes too late to be of use is no answer. */
inline deliver()
{
    if
    :: answer[me] == LEASE_GRANTED && job[me] != RELEASE && sent_over[me] && BROKEN != 7 ->
        answer[me] = LEASE_FAILED
    :: else
    fi;
    job[me] = 0;
    served[me] = false;
    prolongs[me] = false;
    lease_step(answer[me]);
    assert(!unhandled);
    sent_over[me] = false;
    answer[me] = 0;
    look()
}

#if ROLE == 1

bool pending[NODES]; /* decided, and on its way to the store */

/* Whoever opens it asks by itself, and begins with what it got. */
inline open()
{
    rounds[me]++;
    granted++;
    holder = me;
    round_of_holder = rounds[me];
    lapsed = false;
    tokens[me] = granted;
    held[me] = true;
    local_over[me] = false;
    abandoned[me] = false;
    states[me] = LEASE_FREE;
    lease_step(LEASE_GIVEN);
    assert(!unhandled);
    look()
}

/* 2. */
inline write()
{
    pending[me] = false;
    if
    :: BROKEN == 1 || tokens[me] == granted -> assert(tokens[me] == granted)
    :: else -> held[me] = false
    fi
}

inline close()
{
    store_release(tokens[me]);
    abandoned[me] = true;
    lease_step(LEASE_CLOSE);
    assert(!unhandled);
    look()
}

#define is_open (states[me] != LEASE_GONE && states[me] != LEASE_WITHDRAWING && \
                 states[me] != LEASE_RELEASING && rounds[me] > 0 && !abandoned[me])

proctype Node(byte me)
{
    states[me] = LEASE_GONE;
end:
    do
    :: atomic { !dead[me] && states[me] == LEASE_GONE && !job[me] && granted < TOKENS &&
                (holder == NONE || lapsed) -> open() }
    :: atomic { !dead[me] && is_open && believes(me) && !pending[me] -> pending[me] = true }
    :: atomic { !dead[me] && pending[me] -> write() }
    :: atomic { !dead[me] && is_open && !pending[me] -> close() }
    :: atomic { !dead[me] && lease_is_ours() && (local_over[me] || !held[me]) ->
                lease_step(LEASE_EXPIRED); assert(!unhandled); look() }
    :: atomic { !dead[me] && states[me] == LEASE_HELD && renewals_left > 0 && !local_over[me] ->
                renewals_left--; lease_step(LEASE_TIME) }
    :: atomic { !dead[me] && errors_left > 0 && states[me] != LEASE_GONE ->
                errors_left--; lease_step(LEASE_ERROR); assert(!unhandled) }
    :: atomic { job[me] && !served[me] -> serve() }
    :: atomic { !dead[me] && job[me] && served[me] -> deliver() }
    :: atomic { me > 0 && !dead[me] -> dead[me] = true }
    od
}

#elif ROLE == 2

proctype Node(byte me)
{
    rounds[me] = 1;
end:
    do
    :: atomic { !dead[me] && lease_is_ours() && (local_over[me] || !held[me]) ->
                lease_step(LEASE_EXPIRED); assert(!unhandled); look() }
    :: atomic { !dead[me] && states[me] == LEASE_FREE && granted < TOKENS ->
                lease_step(LEASE_TIME) }
    :: atomic { !dead[me] && states[me] == LEASE_HELD && renewals_left > 0 && !local_over[me] ->
                renewals_left--; lease_step(LEASE_TIME) }
    :: atomic { !dead[me] && states[me] != LEASE_GONE && states[me] != LEASE_WITHDRAWING &&
                states[me] != LEASE_RELEASING ->
                lease_step(LEASE_CLOSE); assert(!unhandled); look() }
    :: atomic { !dead[me] && errors_left > 0 && states[me] != LEASE_GONE ->
                errors_left--; lease_step(LEASE_ERROR); assert(!unhandled) }
    :: atomic { job[me] && !served[me] -> serve() }
    :: atomic { !dead[me] && job[me] && served[me] -> deliver() }
    :: atomic { me > 0 && !dead[me] -> dead[me] = true }
    od
}

#elif ROLE == 3

/* The leases of the nodes themselves: by their own clock, and by the store's. */
bool acts[NODES] = true;
bool is_left[NODES];
/* The timer of one instance: who owns it, and of which visit it is; VISITS: there is none. */
byte owner = NODES - 1;
byte visit;
byte fired[VISITS];
/* What a node has in memory, which it is about to do, plus one; 0: nothing. */
byte known[NODES];
byte begun[NODES];
bool is_fresh[NODES]; /* it has had its lease ever since it began */
bool sweeping[NODES];

/* 5. */
#define runs(n) (begun[n] && is_fresh[n] && !dead[n])
inline look_at_runs()
{
    assert(!runs(0) || !runs(1) || begun[0] != begun[1]);
#if NODES > 2
    assert(!runs(0) || !runs(2) || begun[0] != begun[2]);
    assert(!runs(1) || !runs(2) || begun[1] != begun[2]);
#endif
}

inline begin()
{
    begun[me] = known[me];
    is_fresh[me] = true;
    look_at_runs()
}

/* 4. The commit says which visit it is about, and that the timer is ours. */
inline fire()
{
    if
    :: visit < VISITS && (BROKEN == 3 || (visit + 1 == begun[me] && owner == me)) ->
        fired[begun[me] - 1]++;
        assert(fired[begun[me] - 1] <= 1);
        visit++;
        owner = me;
        known[me] = (visit < VISITS -> visit + 1 : 0)
    :: else -> known[me] = (visit < VISITS && owner == me -> visit + 1 : 0)
    fi;
    begun[me] = 0;
    is_fresh[me] = false
}

inline adopt()
{
    sweeping[me] = false;
    if
    :: visit < VISITS && owner != me && (is_left[owner] || BROKEN == 5) ->
        owner = me;
        known[me] = visit + 1
    :: else
    fi
}

/* The node's own lease, again or for longer. */
inline renew_own()
{
    if
    :: !acts[me] && BROKEN != 6 -> known[me] = (visit < VISITS && owner == me -> visit + 1 : 0)
    :: else
    fi;
    acts[me] = true;
    is_left[me] = false
}

proctype Node(byte me)
{
    known[me] = (owner == me -> 1 : 0);
end:
    do
    :: atomic { !dead[me] && known[me] && acts[me] && !begun[me] -> begin() }
    :: atomic { !dead[me] && begun[me] -> fire() }
    :: atomic { !dead[me] && acts[me] && !sweeping[me] -> sweeping[me] = true }
    :: atomic { !dead[me] && sweeping[me] -> adopt() }
    :: atomic { !dead[me] && (!acts[me] || is_left[me]) -> renew_own() }
    :: atomic { me > 0 && !dead[me] -> dead[me] = true }
    od
}

#endif

/* Time passes. What a node reckons from an earlier request ends first, then what it reckons from
 * the one under way, and only then what the store reckons. */
proctype Clock()
{
end:
    do
    :: atomic { held[0] && !local_over[0] -> local_over[0] = true }
    :: atomic { held[1] && !local_over[1] -> local_over[1] = true }
    :: atomic { job[0] && !sent_over[0] && (local_over[0] || !held[0]) -> sent_over[0] = true }
    :: atomic { job[1] && !sent_over[1] && (local_over[1] || !held[1]) -> sent_over[1] = true }
#if NODES > 2
    :: atomic { held[2] && !local_over[2] -> local_over[2] = true }
    :: atomic { job[2] && !sent_over[2] && (local_over[2] || !held[2]) -> sent_over[2] = true }
#endif
    :: atomic { holder != NONE && !lapsed && lapses_left > 0 &&
                (BROKEN == 4 || ((local_over[holder] || !held[holder]) &&
                                 (!prolongs[holder] || sent_over[holder]))) ->
                lapsed = true; lapses_left-- }
#if ROLE == 3
    :: atomic { acts[0] && !dead[0] -> acts[0] = false }
    :: atomic { acts[1] -> acts[1] = false }
    :: atomic { (!acts[0] || BROKEN == 4) && !is_left[0] -> is_left[0] = true; is_fresh[0] = false }
    :: atomic { (!acts[1] || BROKEN == 4) && !is_left[1] -> is_left[1] = true; is_fresh[1] = false }
#if NODES > 2
    :: atomic { acts[2] -> acts[2] = false }
    :: atomic { (!acts[2] || BROKEN == 4) && !is_left[2] -> is_left[2] = true; is_fresh[2] = false }
#endif
#endif
    od
}

init
{
    atomic {
        run Node(0);
        run Node(1);
#if NODES > 2
        run Node(2);
#endif
        run Clock()
    }
}
