/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tables.h - meaning of rows in pass 5 of define.h, which makes the tables. */
#ifndef DETENT_FSM_TABLES_H
#define DETENT_FSM_TABLES_H

#define FSM__T_EFFECT(...)   FSM__CAT(FSM__T_EFFECT_, FSM__ONE_OR_MANY(__VA_ARGS__))(__VA_ARGS__)
#define FSM__T_EFFECT_ONE(f) [FSM__EFFECT(f)] = { .name = #f, .run = FSM__RUN(f) },
#define FSM__T_EFFECT_MANY(f, ...)                                             \
    [FSM__EFFECT(f)] = { .name = #f,                                           \
                         .run = FSM__RUN(f),                                   \
                         .produces = FSM__T_IDS(FSM__T_EVENT_ID, __VA_ARGS__), \
                         .produces_count = FSM__COUNT(__VA_ARGS__) },
#define FSM__T_IDS(F, ...)                  \
    (const uint16_t[])                      \
    {                                       \
        FSM__EACH_MEMBER(F, ~, __VA_ARGS__) \
    }
#define FSM__T_STATE_ID(x, s)  FSM__STATE(s),
#define FSM__T_EVENT_ID(x, e)  FSM__EVENT(e),
#define FSM__T_EFFECT_ID(x, f) FSM__EFFECT(f),
#define FSM__T_TIMER_ID(x, t)  FSM__TIMER(t),

/* (duration, event) or (duration, event, fill) as a struct det_timeout. */
#define FSM__T_TIMEOUT(...) \
    FSM__CAT(FSM__T_TIMEOUT_, FSM__PICK4(__VA_ARGS__, 4, 3, 2, 1, ~))(__VA_ARGS__)
#define FSM__T_TIMEOUT_2(duration, e)                               \
    {                                                               \
        .after = REC__NANOSECONDS(duration), .event = FSM__EVENT(e) \
    }
#define FSM__T_TIMEOUT_3(duration, e, f)                                                   \
    {                                                                                      \
        .after = REC__NANOSECONDS(duration), .event = FSM__EVENT(e), .fill = &FSM__FILL(f) \
    }

#define FSM__T_STATE(...) FSM__T_STATE_(__VA_ARGS__, NORMAL, NORMAL, ~)
#define FSM__T_STATE_(s, wire, flag, health, ...) \
    [FSM__STATE(s)].name = #wire,                 \
    [FSM__STATE(s)].flags =                       \
        (unsigned)FSM_STATE_IS_##flag | (unsigned)FSM_STATE_HEALTH_IS_##health,
#define FSM__T_ENTRY(hook, s) [FSM__STATE(s)].entry = &FSM__HOOK(hook),
#define FSM__T_EXIT(hook, s)  [FSM__STATE(s)].exit = &FSM__HOOK(hook),
#define FSM__T_AFTER(x, s)    [FSM__STATE(s)].timeout = FSM__T_TIMEOUT x,

#define FSM__T_EVENT(internal, ...) \
    FSM__CAT(FSM__T_EVENT_, FSM__EVENT_FORM(__VA_ARGS__))(internal, __VA_ARGS__)
#define FSM__T_EVENT_PLAIN(internal, e, wire) \
    [FSM__EVENT(e)] = { .name = #wire, .is_internal = internal, .unhandled = FSM__T_POLICY },
#define FSM__T_EVENT_PAYLOAD(internal, e, wire, type)                              \
    [FSM__EVENT(e)] = { .name = #wire,                                             \
                        .is_internal = internal,                                   \
                        .unhandled = FSM__T_POLICY,                                \
                        .payload_offset = offsetof(struct FSM__OWN(_event), wire), \
                        .payload = { .get = type##_record } },

/* A struct with the layout of the event struct and the C names of the events as members: for
 * KEEP. */
#define FSM__T_LAYOUT(...) FSM__CAT(FSM__T_LAYOUT_, FSM__EVENT_FORM(__VA_ARGS__))(__VA_ARGS__)
/* Without and with a payload. */
#define FSM__T_LAYOUT_PLAIN(e, wire)            struct det_empty e;
#define FSM__T_LAYOUT_PAYLOAD(e, wire, payload) struct payload e;
#define FSM__LAYOUT                             struct FSM__OWN(__event_layout)

/* A group with the ids of its members. */
#define FSM__T_GROUP(F, name, ...) { #name, FSM__T_IDS(F, __VA_ARGS__), FSM__COUNT(__VA_ARGS__) },

/* All cells of a state, before its rows. Just one cell if the number of states is zero or too
 * large, which is reported elsewhere. */
#define FSM__T_UNHANDLED(s) [FSM__T_FIRST(s)... FSM__T_LAST(s)] = { .to = FSM__STATE(s) },
#define FSM__T_FIRST(s)     (size_t) FSM__STATE(s) * (size_t)FSM__OWN(_event_count)
#define FSM__T_LAST(s)      FSM__T_FIRST(s) + FSM__T_BEHIND_FIRST
#define FSM__T_BEHIND_FIRST                                                   \
    (FSM__OWN(_event_count) > 0 &&                                            \
             FSM__OWN(_state_count) * FSM__OWN(_event_count) <= DET_CELLS_MAX \
         ? (size_t)FSM__OWN(_event_count) - 1                                 \
         : 0)

/* One cell, or one alternative; x is (outcome, target) or (outcome, target, extras...). */
#define FSM__T_CELL(x, s, e)   [FSM__T_AT(s, e)] = FSM__T_WAY(s, e, FSM__UNLIST x),
#define FSM__T_CHOICE(x, s, e) { FSM__STATE(s), FSM__EVENT(e), FSM__T_WAY(s, e, FSM__UNLIST x) },
#define FSM__T_WAY(...)        FSM__T_WAY_(__VA_ARGS__)
#define FSM__T_WAY_(s, e, ...) FSM__CAT(FSM__T_WAY_, FSM__EXTRAS_2(__VA_ARGS__))(s, e, __VA_ARGS__)
#define FSM__T_WAY_BARE(s, e, what, t)                 \
    {                                                  \
        .outcome = what, .to = FSM__T_TO_##what(s, t), \
    }
#define FSM__T_WAY_MORE(s, e, what, t, ...)                                                       \
    {                                                                                             \
        .outcome = what, .to = FSM__T_TO_##what(s, t),                                            \
        .more =                                                                                   \
            &(const struct det_transition_more){ FSM__EACH_EXTRA(FSM__T_EXTRA, e, __VA_ARGS__) }, \
    }
/* A row without a target, with or without extras: (S, E) or (S, E, extras...). */
#define FSM__T_HOLD(F, what, ...) \
    FSM__CAT(FSM__T_HOLD_, FSM__EXTRAS_2(__VA_ARGS__))(F, what, __VA_ARGS__)
#define FSM__T_HOLD_BARE(F, what, S, E)      FSM__PAIRS(F, (what, ~), S, E)
#define FSM__T_HOLD_MORE(F, what, S, E, ...) FSM__PAIRS(F, (what, ~, __VA_ARGS__), S, E)
#define FSM__T_AT(s, e)                      FSM__T_FIRST(s) + (size_t)FSM__EVENT(e)
#define FSM__T_TO_DET_OUTCOME_GOTO(s, t)     FSM__STATE(t)
#define FSM__T_TO_DET_OUTCOME_STAY(s, t)     FSM__STATE(s)
#define FSM__T_TO_DET_OUTCOME_STOP(s, t)     FSM__STATE(s)

/* FSM__T_<extra> gives initializers; KEEP also needs the event. */
#define FSM__T_EXTRA(e, extra)     FSM__T_TAKE(e, FSM__T_##extra)
#define FSM__T_TAKE(...)           FSM__T_TAKE_(__VA_ARGS__)
#define FSM__T_TAKE_(e, what, ...) FSM__T_TAKE_##what(e, __VA_ARGS__)
#define FSM__T_TAKE_INIT(e, ...)   __VA_ARGS__,
#define FSM__T_TAKE_KEEP(e, ...)                                                             \
    .keeps = (const struct det_keep[]){ FSM__EACH_MEMBER(FSM__T_KEEP_ONE, e, __VA_ARGS__) }, \
    .keep_count = FSM__COUNT(__VA_ARGS__),
#define FSM__T_IF(f)        INIT, .guard = &FSM__GUARD(f)
#define FSM__T_CALL(f)      INIT, .hook = &FSM__HOOK(f)
#define FSM__T_SET(f)       INIT, .update = &FSM__UPDATE(f)
#define FSM__T_REASON(text) INIT, .reason = text
#define FSM__T_KEEP(...)    KEEP, __VA_ARGS__
#define FSM__T_DO(...)                                          \
    INIT, .effects = FSM__T_FEW(FSM__T_EFFECT_ID, __VA_ARGS__), \
          .effect_count = FSM__COUNT_8(__VA_ARGS__)
#define FSM__T_ARM(...) \
    INIT, .arms = FSM__T_FEW(FSM__T_TIMER_ID, __VA_ARGS__), .arm_count = FSM__COUNT_8(__VA_ARGS__)
#define FSM__T_DISARM(...)                                     \
    INIT, .disarms = FSM__T_FEW(FSM__T_TIMER_ID, __VA_ARGS__), \
          .disarm_count = FSM__COUNT_8(__VA_ARGS__)
#define FSM__T_WITHIN(...) INIT, .within = &(const struct det_timeout)FSM__T_TIMEOUT(__VA_ARGS__)
#define FSM__T_FEW(F, ...)               \
    (const uint16_t[])                   \
    {                                    \
        FSM__EACH_FEW(F, ~, __VA_ARGS__) \
    }
#define FSM__T_KEEP_ONE(e, field)                                                              \
    { #field, offsetof(FSM__LAYOUT, e.field), offsetof(struct FSM__DATA, field),               \
      sizeof(((FSM__LAYOUT *)0)->e.field) +                                                    \
          0 * sizeof(struct {                                                                  \
              char unused;                                                                     \
              _Static_assert(                                                                  \
                  FSM__T_SAME(((FSM__LAYOUT *)0)->e.field, ((struct FSM__DATA *)0)->field),    \
                  "KEEP needs a field that the payload and the data have with the same type"); \
          }),                                                                                  \
      true },
/* bytes(n) is an unnamed struct, so two of them are compatible only in size. */
#define FSM__T_SAME(a, b)                                                     \
    (__builtin_types_compatible_p(__typeof__(a), __typeof__(b)) ||            \
     (__builtin_classify_type(a) == 12 && __builtin_classify_type(b) == 12 && \
      sizeof(a) == sizeof(b)))

#endif
