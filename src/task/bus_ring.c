/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* bus_ring.c - the last events of a bus, each with a stamp.
 *
 *     entry:  stamp | eight words of numbers | the name's words | the reason's words
 *                                               up to the one with the final 0
 *
 * Invariants
 *   1. `stamp` is 0 while the entry is being written and the event's sequence otherwise. The writer
 *      sets it to 0 before the first word and to the sequence after the last one; a reader that
 *      reads the same sequence before and after its copy has a whole event.
 *   2. All words are atomic, so a discarded copy was no data race either.
 *   3. A text extends to the first word that contains a 0, or to the end of its place: also a torn
 *      copy stays inside of both. Bytes after the 0 are undefined. */
#include "task/bus_ring.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"

#define WORD         sizeof(uint64_t)
#define NAME_WORDS   ((DET_TASK_NAME_MAX + 1) / WORD)
#define REASON_WORDS ((DET_TASK_REASON_MAX + 1) / WORD)

enum {
    WORD_AT,
    WORD_ID,
    WORD_KIND, /* with the attempt in the upper bits */
    WORD_DELAY,
    WORD_TIMEOUT,
    WORD_DURATION,
    WORD_COUNT,
    WORD_EXIT, /* with signal, outcome, rejection, source in the upper bits */
    NUMBER_WORDS,
};

/* In the byte of the source. */
#define HAS_EXIT_CODE ((uint64_t)0x80 << 56)
#define IS_RESTART    ((uint64_t)0x40 << 56)

struct det_bus_entry {
    _Atomic(uint64_t) stamp;
    _Atomic(uint64_t) words[NUMBER_WORDS + NAME_WORDS + REASON_WORDS];
};

_Static_assert((DET_TASK_NAME_MAX + 1) % WORD == 0, "a name is whole words");
_Static_assert((DET_TASK_REASON_MAX + 1) % WORD == 0, "a reason is whole words");

int det_bus_ring_init(
    struct det_bus_ring *ring, struct det_world *world, const struct det_allocator *allocator,
    uint32_t capacity)
{
    uint64_t rounded = 1;

    while (rounded < capacity)
        rounded *= 2;
    *ring = (struct det_bus_ring){ .allocator = allocator, .world = world, .mask = rounded - 1 };
    ring->entries = DET_NEW_ARRAY(allocator, rounded, struct det_bus_entry);
    return ring->entries ? 0 : DET_ERR_NO_MEMORY;
}

void det_bus_ring_deinit(struct det_bus_ring *ring)
{
    if (ring->entries)
        DET_DELETE_ARRAY(ring->allocator, ring->entries, ring->mask + 1);
}

static void put_word(_Atomic(uint64_t) *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

static uint64_t get(_Atomic(uint64_t) *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

/* True if one of the eight bytes is 0. */
static bool has_zero(uint64_t word)
{
    return ((word - UINT64_C(0x0101010101010101)) & ~word & UINT64_C(0x8080808080808080)) != 0;
}

/* Returns the place after the last word. */
static _Atomic(uint64_t) *put_text(_Atomic(uint64_t) *word, const char *text, size_t words)
{
    uint64_t value;

    for (size_t i = 0; i < words; i++) {
        memcpy(&value, text + i * WORD, WORD);
        put_word(word++, value);
        if (has_zero(value))
            break;
    }
    return word;
}

static _Atomic(uint64_t) *get_text(_Atomic(uint64_t) *word, char *text, size_t words)
{
    uint64_t value;

    for (size_t i = 0; i < words; i++) {
        value = get(word++);
        memcpy(text + i * WORD, &value, WORD);
        if (has_zero(value))
            break;
    }
    return word;
}

static void put_event(struct det_bus_entry *entry, const struct det_task_event *event)
{
    uint64_t exit_word =
        (event->has_exit_code ? HAS_EXIT_CODE : 0) | (event->is_restart ? IS_RESTART : 0);
    _Atomic(uint64_t) *words = entry->words;

    put_word(&words[WORD_AT], (uint64_t)event->at);
    put_word(&words[WORD_ID], event->id);
    put_word(&words[WORD_KIND], (uint64_t)event->attempt << 32 | (uint32_t)event->kind);
    put_word(&words[WORD_DELAY], (uint64_t)event->delay);
    put_word(&words[WORD_TIMEOUT], (uint64_t)event->timeout);
    put_word(&words[WORD_DURATION], (uint64_t)event->duration);
    put_word(&words[WORD_COUNT], event->count);
    exit_word |= (uint64_t)event->source << 56 | (uint64_t)event->rejection << 48 |
                 (uint64_t)event->outcome << 40 | (uint64_t)event->signal << 32 |
                 (uint32_t)event->exit_code;
    put_word(&words[WORD_EXIT], exit_word);
    words = put_text(&words[NUMBER_WORDS], event->name, NAME_WORDS);
    put_text(words, event->reason, REASON_WORDS);
}

static void get_event(struct det_bus_entry *entry, struct det_task_event *ret)
{
    _Atomic(uint64_t) *words = entry->words;
    uint64_t kind = get(&words[WORD_KIND]), exit_word = get(&words[WORD_EXIT]);

    ret->at = (det_time)get(&words[WORD_AT]);
    ret->id = get(&words[WORD_ID]);
    ret->kind = (enum det_task_event_kind)(uint32_t)kind;
    ret->attempt = (uint32_t)(kind >> 32);
    ret->delay = (det_time)get(&words[WORD_DELAY]);
    ret->timeout = (det_time)get(&words[WORD_TIMEOUT]);
    ret->duration = (det_time)get(&words[WORD_DURATION]);
    ret->count = get(&words[WORD_COUNT]);
    ret->exit_code = (int32_t)(uint32_t)exit_word;
    ret->signal = (uint8_t)(exit_word >> 32);
    ret->outcome = (uint8_t)(exit_word >> 40);
    ret->rejection = (uint8_t)(exit_word >> 48);
    ret->source = (uint8_t)(exit_word >> 56 & 0x3f);
    ret->is_restart = (exit_word & IS_RESTART) != 0;
    ret->has_exit_code = (exit_word & HAS_EXIT_CODE) != 0;
    words = get_text(&words[NUMBER_WORDS], ret->name, NAME_WORDS);
    get_text(words, ret->reason, REASON_WORDS);
    ret->name[DET_TASK_NAME_MAX] = ret->reason[DET_TASK_REASON_MAX] = 0;
}

void det_bus_ring_write(struct det_bus_ring *ring, struct det_task_event *event)
{
    uint64_t sequence = atomic_load_explicit(&ring->newest, memory_order_relaxed) + 1;
    struct det_bus_entry *entry = &ring->entries[sequence & ring->mask];

    event->sequence = sequence;
    put_word(&entry->stamp, 0);
    atomic_thread_fence(memory_order_release);
    put_event(entry, event);
    det_thread_preempt(ring->world);
    atomic_store_explicit(&entry->stamp, sequence, memory_order_release);
    atomic_store_explicit(&ring->newest, sequence, memory_order_release);
}

bool det_bus_ring_read(struct det_bus_ring *ring, uint64_t sequence, struct det_task_event *ret)
{
    struct det_bus_entry *entry = &ring->entries[sequence & ring->mask];

    det_assert(sequence > 0);
    if (atomic_load_explicit(&entry->stamp, memory_order_acquire) != sequence)
        return false;
    det_thread_preempt(ring->world);
    get_event(entry, ret);
    atomic_thread_fence(memory_order_acquire);
    ret->sequence = sequence;
    return get(&entry->stamp) == sequence;
}

uint64_t det_bus_ring_oldest(const struct det_bus_ring *ring)
{
    uint64_t newest = atomic_load_explicit(&ring->newest, memory_order_acquire);

    return newest > ring->mask ? newest - ring->mask : 1;
}
