/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* slot.pml - who owns a slot, who waits, who is stopped for whom, checked by Spin over the table of
 * src/task/slot.fsm.
 *
 * SUBMISSIONS tasks are submitted one after the other, each with any admission; owners end when they
 * like; anybody removes a task, stops or purges the slot or makes it wider or narrower at any time;
 * the supervisor may shut down.
 *
 *     new -> queued -> owner -> gone        (of a task; between its end and its removal it is an
 *      \_________\______________/             owner still, and nothing here can tell the difference)
 *       rejected, displaced, purged, taken out, not started
 *
 * What must hold, as assertions
 *   1. nobody starts unless there is a place: the owners that are not removed are fewer than the
 *      width, so the next one starts only after a removal;
 *   2. every task gets one outcome, never two;
 *   3. the slot stops an owner at most once;
 *   4. the state says what is so: idle without owners, terminating when one was told to stop;
 *   5. nobody waits while there is a place, and never more than may, but for a replacement;
 *   6. those that were queued start in their order;
 *   7. events that the slot gets from its own actions and from its owners are always taken;
 *   8. when nothing can happen any more, every task has its outcome and the slot is empty.
 * There is no LTL here: without cycles, which is checked too, the last one says that every
 * submission gets its outcome in the end.
 *
 * BROKEN=n breaks one rule, and must be found:
 *   1 the next one starts when its owner is told to stop, not when it is gone
 *   2 a second replace stops the owner again    3 a displaced one gets no outcome
 *   4 a purge forgets the last one              5 a rejection is told, and it is queued as well
 *   6 the next one is taken from the end        7 nobody hears of a start that failed
 *   8 the next one does not look at the width, which was made narrower */
#ifndef SUBMISSIONS
#define SUBMISSIONS 5
#endif
#ifndef WIDTH
#define WIDTH 1
#endif
#ifndef DEPTH
#define DEPTH 3
#endif
/* How often somebody removes a task, gives an order, changes the width; a start fails. */
#ifndef REMOVALS
#define REMOVALS 1
#endif
#ifndef ORDERS
#define ORDERS 1
#endif
#ifndef WIDTHS
#define WIDTHS 0
#endif
#ifndef FAILURES
#define FAILURES 1
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

#define WIDTH_MAX 2
#define NONE      255

/* Where a task stands. */
#define NEW    0
#define QUEUED 1
#define OWNER  2
#define GONE   3
byte stands[SUBMISSIONS];
bool told[SUBMISSIONS];     /* to stop, if it is an owner */
byte outcomes[SUBMISSIONS];
bool in_order[SUBMISSIONS]; /* was put at the end of the queue, not at its head */

byte width = WIDTH;
byte owners[WIDTH_MAX] = NONE; /* the one that has run longest first */
byte owner_count;
byte queue[DEPTH + 1] = NONE;
byte depth;
byte last_started; /* of those that were put at the end: the number of the last, plus one */
bool is_closed;    /* the supervisor takes nothing any more */
bool retires;      /* it was idle, and will be asked to go */

/* What is left of what may happen only so often. */
byte removals_left = REMOVALS;
byte orders_left = ORDERS;
byte widths_left = WIDTHS;
byte failures_left = FAILURES;

/* To the one who steps the machine: the event, and whom it is about. */
chan offers = [0] of { byte, byte };

/* The owners beside the subject that were told to stop. */
#define stops(i)       (owners[i] != NONE && owners[i] != subject && told[owners[i]])
#define another_stops  (stops(0) || stops(1))
#define slot_guard_has_place()           (owner_count < width)
#define slot_guard_has_room()            (depth < DEPTH)
#define slot_guard_has_next()            (depth > 0)
#define slot_guard_has_owners()          (owner_count > 0)
#define slot_guard_has_others()          (owner_count > 1)
#define slot_guard_stays_stopping()      another_stops
#define slot_guard_next_stays_stopping() (depth > 0 && another_stops)
#define slot_guard_place_for_next()      (depth > 0 && owner_count < width)
#include "slot_table.pml"

inline produce(what)
{
    assert(produced == NONE);
    produced = what;
}

inline end_with_outcome(id)
{
    outcomes[id]++;
    stands[id] = GONE;
    in_order[id] = false;
}

inline tell(id)
{
    assert(!told[id]);
    told[id] = true;
}

/* A name that is taken is found now. */
inline begin(id)
{
    assert(owner_count < width);
    assert(!is_closed);
    if
    ::
        owners[owner_count] = id;
        owner_count++;
        stands[id] = OWNER
    :: failures_left > 0 ->
        failures_left--;
        end_with_outcome(id);
        if
        :: BROKEN == 7 -> skip
        :: else -> produce(SLOT_UNSTARTED)
        fi
    fi;
}

inline slot_do_start()
{
    begin(subject);
}

/* The queue without the one in this place. */
inline close_gap(place)
{
    at = place;
    do
    :: at + 1 < depth ->
        queue[at] = queue[at + 1];
        at++
    :: else -> break
    od;
    depth--;
    queue[depth] = NONE;
    at = 0;
}

/* A slot that was made narrower may have no place although somebody has left. */
inline slot_do_start_next()
{
    if
    :: depth > 0 && (owner_count < width || BROKEN == 1 || BROKEN == 8) ->
        at = (BROKEN == 6 -> depth - 1 : 0);
        next = queue[at];
        close_gap(at);
        assert(!in_order[next] || next + 1 > last_started);
        last_started = (in_order[next] -> next + 1 : last_started);
        begin(next);
        next = 0;
        if
        :: produced == NONE && depth > 0 && owner_count < width -> produce(SLOT_ADVANCE)
        :: else -> skip
        fi
    :: else -> skip
    fi;
}

inline slot_do_enqueue()
{
    queue[depth] = subject;
    depth++;
    stands[subject] = QUEUED;
    in_order[subject] = true;
}

inline slot_do_put_head()
{
    if
    :: depth == 0 -> depth = 1
    :: else ->
        assert(stands[queue[0]] == QUEUED);
        if
        :: BROKEN == 3 -> skip
        :: else -> end_with_outcome(queue[0])
        fi
    fi;
    queue[0] = subject;
    stands[subject] = QUEUED;
    if
    :: BROKEN == 2 -> tell(owners[0])
    :: else -> skip
    fi;
}

inline slot_do_reject_full()
{
    end_with_outcome(subject);
    if
    :: BROKEN == 5 -> slot_do_enqueue()
    :: else -> skip
    fi;
}

inline slot_do_reject_busy()
{
    end_with_outcome(subject);
}

inline slot_do_reject_closing()
{
    end_with_outcome(subject);
}

inline slot_do_drop_owner()
{
    assert(owners[0] == subject || owners[1] == subject);
    if
    :: owners[0] == subject -> owners[0] = owners[1]
    :: else -> skip
    fi;
    owners[1] = NONE;
    owner_count--;
    told[subject] = false;
}

inline slot_do_stop_oldest()
{
    tell(owners[0]);
    if
    :: BROKEN == 1 -> slot_do_start_next()
    :: else -> skip
    fi;
}

inline stop_owner(i)
{
    if
    :: owners[i] != NONE && !told[owners[i]] -> tell(owners[i])
    :: else -> skip
    fi;
}

inline slot_do_stop_owners()
{
    stop_owner(0);
    stop_owner(1);
}

inline slot_do_mark_stopping()
{
    told[subject] = true;
}

inline slot_do_take_out()
{
    next = 0;
    do
    :: next < depth && queue[next] != subject -> next++
    :: else -> break
    od;
    assert(next < depth);
    close_gap(next);
    next = 0;
    end_with_outcome(subject);
}

inline slot_do_purge()
{
    do
    :: depth > 0 ->
        depth--;
        if
        :: BROKEN == 4 && depth == 0 -> skip
        :: else -> end_with_outcome(queue[depth])
        fi;
        queue[depth] = NONE
    :: else -> break
    od;
}

inline slot_do_purge_closing()
{
    slot_do_purge();
}

/* One that was given options stays; the others go at once, or when the loop comes to it. */
inline slot_do_settle()
{
    if
    :: produce(SLOT_RETIRE)
    :: retires = true
    :: skip
    fi;
}

inline slot_do_report()
{
    skip;
}

#define is_told(i) (owners[i] != NONE && told[owners[i]])

inline check_sound()
{
    assert(owner_count == (owners[0] != NONE) + (owners[1] != NONE));
    assert((slot_state == SLOT_RUNNING) == (slot_is_owned() && !is_told(0) && !is_told(1)));
    assert((owner_count > 0) == (slot_is_owned() || slot_state == SLOT_CLOSING));
    assert(depth == 0 || slot_is_owned());
    assert(depth == 0 || owner_count >= width);
    assert(depth <= (DEPTH > 0 -> DEPTH : 1));
    at = 0;
    do
    :: at < SUBMISSIONS ->
        assert(outcomes[at] == (stands[at] == GONE));
        at++
    :: else -> break
    od;
    at = 0;
}

/* The one who steps the machine: an event, and what follows from it at once. */
active proctype executor()
{
    byte event, subject, at, next;
    byte produced = NONE;

end:
    do
    :: atomic {
        offers?event, subject;
        do
        :: true ->
            slot_step(event);
            assert(!slot_unhandled);
            if
            :: produced != NONE ->
                event = produced;
                subject = NONE;
                produced = NONE
            :: else -> break
            fi
        od;
        check_sound();
        event = 0;
        subject = 0
    }
    od
}

/* One task, from its admission on: it is removed when it has ended, and anybody may ask for that. */
proctype task(byte id)
{
end:
    do
    :: atomic {
        stands[id] == OWNER ->
        end_with_outcome(id);
        offers!SLOT_REMOVED, id
    }
    :: atomic {
        removals_left > 0 && stands[id] == QUEUED ->
        removals_left--;
        offers!SLOT_TAKE_OUT, id
    }
    :: atomic {
        removals_left > 0 && stands[id] == OWNER && !told[id] ->
        removals_left--;
        offers!SLOT_STOPPING, id
    }
    od
}

/* A slot that is gone is made anew, unless the supervisor takes nothing any more. */
active proctype submitter()
{
    byte id, admission;

    do
    :: atomic {
        id < SUBMISSIONS ->
        run task(id);
        id++;
        if
        :: admission = SLOT_QUEUE
        :: admission = SLOT_REPLACE
        :: admission = SLOT_DROP
        :: admission = SLOT_REPLACE_ALL
        fi;
        if
        :: slot_state == SLOT_GONE && is_closed -> end_with_outcome(id - 1)
        :: slot_state == SLOT_GONE && !is_closed ->
            slot_state = SLOT_IDLE;
            retires = false;
            offers!admission, id - 1
        :: slot_state != SLOT_GONE -> offers!admission, id - 1
        fi
    }
    :: id == SUBMISSIONS -> break
    od
}

/* Orders by hand, at any time, and what the loop does later. */
active proctype operator()
{
end:
    do
    :: atomic { orders_left > 0 && slot_state != SLOT_GONE -> orders_left--; offers!SLOT_STOP, NONE }
    :: atomic { orders_left > 0 && slot_state != SLOT_GONE -> orders_left--; offers!SLOT_PURGE, NONE }
    :: atomic {
        orders_left > 0 && slot_state != SLOT_GONE ->
        orders_left--;
        offers!SLOT_STOP_AND_PURGE, NONE
    }
    :: atomic {
        orders_left > 0 && slot_state != SLOT_GONE -> orders_left--; offers!SLOT_ERROR, NONE
    }
    :: atomic {
        widths_left > 0 && slot_state != SLOT_GONE ->
        widths_left--;
        width = 3 - width;
        offers!SLOT_ADVANCE, NONE
    }
    :: atomic {
        !is_closed && slot_state != SLOT_GONE ->
        is_closed = true;
        offers!SLOT_CLOSE, NONE
    }
    :: atomic {
        is_closed && orders_left > 0 && slot_state == SLOT_CLOSING ->
        orders_left--;
        offers!SLOT_CLOSE, NONE
    }
    :: atomic {
        retires && slot_state != SLOT_GONE ->
        retires = false;
        offers!SLOT_RETIRE, NONE
    }
    od
}

/* When nothing can happen any more, nobody was forgotten. */
active proctype watch()
{
    byte id;

    timeout;
    for (id : 0 .. SUBMISSIONS - 1) {
        assert(outcomes[id] == 1)
    }
    assert(owner_count == 0 && depth == 0);
    assert(slot_state == SLOT_IDLE || slot_state == SLOT_GONE)
}
