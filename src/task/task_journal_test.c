/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_journal_test.c - the journal on a disk that forgets, fails and is damaged. */
#include "base/memory.h"
#include "task/bus_test.h"
#include "task/task_journal.h"

#define PATH  "var/tasks.journal"
#define SEEDS 200

struct content {
    char *data;
    size_t size;
};

static struct content load(struct det_world *world)
{
    struct content content;

    assert_int_equal(0, det_file_load(world, NULL, PATH, 4 << 20, &content.data, &content.size));
    return content;
}

static void unload(struct content content)
{
    det_free(NULL, content.data, content.size + 1);
}

static void store(struct det_world *world, const char *data, size_t size)
{
    struct det_file *file;

    assert_int_equal(0, det_file_open(world, PATH, DET_FILE_WRITE | DET_FILE_CREATE, &file));
    assert_int_equal(0, det_file_truncate(world, file, 0));
    assert_int_equal(0, det_file_write(world, file, 0, data, size));
    det_file_close(world, file);
}

static struct det_sim *open_sim(uint64_t seed)
{
    struct det_sim_options options = { .seed = seed };
    struct det_sim *sim = NULL;

    assert_int_equal(0, det_sim_open(&options, &sim, NULL));
    return sim;
}

static int append(struct det_task_journal *journal, uint64_t id, uint64_t sequence)
{
    struct det_subscriber subscriber = det_task_journal_subscriber(journal);
    struct det_task_event event = {
        .sequence = sequence,
        .kind = DET_EVENT_TASK_ADDED,
        .id = id,
        .name = "web",
    };

    return subscriber.on_event(subscriber.user, &event);
}

static int turn(struct det_task_journal *journal)
{
    struct det_subscriber subscriber = det_task_journal_subscriber(journal);

    return subscriber.on_turn(subscriber.user);
}

/* Opens, appends so many events, one a turn, and closes. */
static void write_journal(struct det_world *world, uint64_t count)
{
    struct det_task_journal *journal;

    assert_int_equal(0, det_task_journal_open(world, PATH, NULL, &journal, NULL));
    for (uint64_t i = 1; i <= count; i++) {
        assert_int_equal(0, append(journal, 5, i));
        assert_int_equal(0, turn(journal));
    }
    det_task_journal_close(journal);
}

static int try_open(struct det_world *world, struct det_error *error)
{
    struct det_task_journal *journal = NULL;
    int r;

    r = det_task_journal_open(world, PATH, NULL, &journal, error);
    det_task_journal_close(journal);
    return r;
}

static void each_event_is_a_line_and_each_opening(void **state)
{
    static const char expected[] =
        "{\"journal\":1,\"at\":\"2026-01-01T00:00:00Z\",\"synced\":0,\"crc\":\"2498b927\"}\n"
        "{\"sequence\":1,\"at\":\"1970-01-01T00:00:00Z\",\"kind\":\"task_added\",\"id\":5,"
        "\"name\":\"web\",\"synced\":70,\"crc\":\"42bc96a5\"}\n"
        "{\"journal\":1,\"at\":\"2026-01-01T00:00:00Z\",\"synced\":182,\"crc\":\"97e3aa0b\"}\n";
    struct det_sim *sim = open_sim(1);
    struct content content;

    (void)state;
    write_journal(det_sim_world(sim), 1);
    write_journal(det_sim_world(sim), 0);
    content = load(det_sim_world(sim));
    assert_string_equal(expected, content.data);
    unload(content);
    det_sim_close(sim);
}

static void a_turn_without_events_does_not_sync(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_sim_disk_faults faults = { .sync_error = 1000000 };
    struct det_task_journal *journal;

    (void)state;
    assert_int_equal(0, det_task_journal_open(det_sim_world(sim), PATH, NULL, &journal, NULL));
    det_sim_set_disk_faults(sim, &faults);
    assert_int_equal(0, turn(journal));
    assert_int_equal(0, append(journal, 1, 1));
    assert_int_equal(DET_ERR_IO, turn(journal));
    det_task_journal_close(journal);
    det_sim_close(sim);
}

static void more_than_the_buffer_holds_is_written_before_the_turn(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_task_journal *journal;
    struct content content;
    unsigned lines = 0;

    (void)state;
    assert_int_equal(0, det_task_journal_open(det_sim_world(sim), PATH, NULL, &journal, NULL));
    for (uint64_t i = 1; i <= 3000; i++)
        assert_int_equal(0, append(journal, 1, i));
    assert_int_equal(0, turn(journal));
    det_task_journal_close(journal);
    assert_int_equal(0, try_open(det_sim_world(sim), NULL));
    content = load(det_sim_world(sim));
    for (size_t i = 0; i < content.size; i++)
        lines += content.data[i] == '\n';
    assert_int_equal(3002, lines);
    unload(content);
    det_sim_close(sim);
}

/* Wherever the last turn is torn, the rest is there. */
static void a_torn_tail_is_cut_off(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_world *world = det_sim_world(sim);
    struct content whole, now;
    size_t last;

    (void)state;
    write_journal(world, 4);
    whole = load(world);
    last = whole.size - 1;
    while (whole.data[last - 1] != '\n')
        last--;
    for (size_t size = last; size < whole.size; size++) {
        store(world, whole.data, size);
        assert_int_equal(0, try_open(world, NULL));
        now = load(world);
        assert_memory_equal(whole.data, now.data, last);
        assert_memory_equal("{\"journal\":1,", now.data + last, 13);
        unload(now);
    }
    unload(whole);
    det_sim_close(sim);
}

/* A tail of nothing but zeroes or of noise, longer than a line, and than the buffer. */
static void a_long_torn_tail_is_cut_off(void **state)
{
    static const size_t sizes[] = { 1, 511, 4095, 4096, 4097, 65536, 200001 };
    struct det_sim *sim = open_sim(1);
    struct det_world *world = det_sim_world(sim);
    struct content whole, now;
    char *data;

    (void)state;
    write_journal(world, 4);
    whole = load(world);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int fill = 0; fill < 2; fill++) {
            data = malloc(whole.size + sizes[i]);
            assert_non_null(data);
            memcpy(data, whole.data, whole.size);
            memset(data + whole.size, fill ? 'x' : 0, sizes[i]);
            store(world, data, whole.size + sizes[i]);
            free(data);
            assert_int_equal(0, try_open(world, NULL));
            now = load(world);
            assert_memory_equal(whole.data, now.data, whole.size);
            assert_memory_equal("{\"journal\":1,", now.data + whole.size, 13);
            unload(now);
        }
    }
    unload(whole);
    det_sim_close(sim);
}

/* Each byte in turn, one bit of it: found where something was written behind it. */
static void damage_in_the_middle_is_refused_with_its_place(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_world *world = det_sim_world(sim);
    struct det_error error;
    struct content whole;
    size_t begin = 0, line = 1, last;
    char place[64];

    (void)state;
    write_journal(world, 3);
    whole = load(world);
    last = whole.size - 1;
    while (whole.data[last - 1] != '\n')
        last--;
    for (size_t i = 0; i < last; i++) {
        bool is_newline = whole.data[i] == '\n';

        whole.data[i] ^= 1;
        store(world, whole.data, whole.size);
        if (begin == 0) {
            /* Of the first line also: it is no opening any more. */
            assert_true(try_open(world, &error) < 0);
        } else {
            assert_int_equal(DET_ERR_CORRUPT, try_open(world, &error));
            snprintf(place, sizeof place, "line %zu at byte %zu is damaged", line, begin);
            assert_non_null(strstr(error.text, place));
            assert_int_equal(begin, error.offset);
        }
        whole.data[i] ^= 1;
        if (is_newline) {
            begin = i + 1;
            line++;
        }
    }
    unload(whole);
    det_sim_close(sim);
}

static void a_file_that_is_no_journal_is_not_touched(void **state)
{
    static const struct {
        const char *text;
        int error;
        const char *words;
    } cases[] = {
        { "hello\n", DET_ERR_MALFORMED, "var/tasks.journal: this is no journal of tasks" },
        { "{\"sequence\":1,\"synced\":0,\"crc\":\"########\"}\n", DET_ERR_MALFORMED,
          "this is no journal of tasks" },
        { "{\"journal\":2,\"synced\":0,\"crc\":\"########\"}\n", DET_ERR_VERSION,
          "a journal of format 2; this program knows 1" },
        { "{\"journal\":1,\"synced\":9,\"crc\":\"########\"}\n", DET_ERR_MALFORMED,
          "line 1 says that bytes behind it were synced" },
        { "{\"journal\":1,\"crc\":\"########\"}\n{\"sequence\":1,\"synced\":9,"
          "\"crc\":\"########\"}\n",
          DET_ERR_CORRUPT, "line 1 at byte 0 is damaged, and line 2 says" },
    };
    struct det_sim *sim = open_sim(1);
    struct det_world *world = det_sim_world(sim);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct det_error error;
        struct content content;
        char text[256], *crc, digits[9];

        snprintf(text, sizeof text, "%s", cases[i].text);
        while ((crc = strstr(text, "########"))) {
            char *line = crc;

            while (line > text && line[-1] != '\n')
                line--;
            snprintf(
                digits, sizeof digits, "%08x",
                det_task_journal_crc(line, (size_t)(crc - line) - strlen(",\"crc\":\"")));
            memcpy(crc, digits, 8);
        }
        store(world, text, strlen(text));
        assert_int_equal(cases[i].error, try_open(world, &error));
        assert_non_null(strstr(error.text, cases[i].words));
        content = load(world);
        assert_string_equal(text, content.data);
        unload(content);
    }
    det_sim_close(sim);
}

/* The opening itself is torn: the file begins anew. */
static void a_torn_opening_is_written_again(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_world *world = det_sim_world(sim);
    struct content whole, now;

    (void)state;
    write_journal(world, 0);
    whole = load(world);
    for (size_t size = 0; size < whole.size; size++) {
        char zeroes[512] = { 0 };

        store(world, whole.data, size);
        assert_int_equal(0, try_open(world, NULL));
        now = load(world);
        assert_string_equal(whole.data, now.data);
        unload(now);
        store(world, zeroes, size);
        assert_int_equal(0, try_open(world, NULL));
    }
    unload(whole);
    det_sim_close(sim);
}

/* The acknowledged events of a test: of each life of the program, up to which sequence. */
#define LIVES 12
struct promises {
    uint64_t acknowledged[LIVES];
    uint64_t tried[LIVES];
};

/* What is in the file is in order, without gaps, and reaches at least as far as was promised. */
static void assert_kept(struct det_world *world, const struct promises *promises)
{
    uint64_t found[LIVES] = { 0 };
    struct content content = load(world);

    for (size_t at = 0, size; at < content.size; at += size) {
        const char *newline = memchr(content.data + at, '\n', content.size - at);
        char line[DET_TASK_JOURNAL_LINE_MAX + 1];
        unsigned long long sequence, id;

        assert_non_null(newline);
        size = (size_t)(newline - (content.data + at)) + 1;
        assert_true(size < sizeof line);
        memcpy(line, content.data + at, size);
        line[size] = 0;
        if (sscanf(line, "{\"sequence\":%llu", &sequence) != 1)
            continue;
        assert_non_null(strstr(line, "\"id\":"));
        assert_int_equal(1, sscanf(strstr(line, "\"id\":"), "\"id\":%llu", &id));
        assert_true(id >= 1 && id <= LIVES);
        assert_int_equal(found[id - 1] + 1, sequence);
        found[id - 1] = sequence;
    }
    for (int life = 0; life < LIVES; life++) {
        assert_true(found[life] >= promises->acknowledged[life]);
        assert_true(found[life] <= promises->tried[life]);
    }
    unload(content);
}

/* One life: turns of some events each, until the disk fails or the test has enough. */
static void live(
    struct det_sim *sim, struct det_task_journal *journal, unsigned life, struct promises *promises)
{
    uint64_t turns = det_sim_random_below(sim, 8), sequence = 0;
    int r = 0;

    for (uint64_t i = 0; i < turns; i++) {
        uint64_t events = det_sim_random_below(sim, 40);

        if (det_sim_chance(sim, 50000))
            events += 700; /* more than the buffer holds */
        while (events-- > 0)
            assert_int_equal(0, append(journal, life + 1, ++sequence));
        promises->tried[life] = sequence;
        if (i + 1 == turns && det_sim_chance(sim, 500000))
            return;
        /* A failure is one for good. */
        assert_true(r == 0 || turn(journal) == r);
        r = r == 0 ? turn(journal) : r;
        if (r == 0)
            promises->acknowledged[life] = sequence;
    }
}

/* Power cuts, programs that just end, and a disk that fails, in one file's history. */
static void what_a_turn_has_promised_outlives_power_cuts_and_faults(void **state)
{
    static const struct det_sim_disk_faults none;
    static const struct det_sim_disk_faults faulty = {
        .read_error = 20000,
        .write_error = 50000,
        .sync_error = 50000,
        .no_space = 20000,
    };

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct det_sim *sim = open_sim(seed);
        struct det_world *world = det_sim_world(sim);
        struct promises promises = { { 0 }, { 0 } };

        for (unsigned life = 0; life < LIVES; life++) {
            struct det_task_journal *journal = NULL;
            struct det_error error;
            int r;

            det_sim_set_disk_faults(sim, seed % 3 ? &faulty : &none);
            r = det_task_journal_open(world, PATH, NULL, &journal, &error);
            assert_true(r == 0 || r == DET_ERR_IO || r == DET_ERR_NO_SPACE);
            if (r == 0)
                live(sim, journal, life, &promises);
            if (det_sim_chance(sim, 600000))
                det_sim_power_cut(sim);
            det_task_journal_close(journal);
        }
        det_sim_set_disk_faults(sim, &none);
        assert_int_equal(0, try_open(world, NULL));
        assert_kept(world, &promises);
        det_sim_power_cut(sim);
        assert_int_equal(0, try_open(world, NULL));
        assert_kept(world, &promises);
        det_sim_close(sim);
    }
}

static void on_a_bus_every_event_is_written_and_a_failed_sync_is_told_once(void **state)
{
    static struct watcher watcher;
    struct det_sim_disk_faults faults = { .sync_error = 1000000 };
    struct bus_fixture fixture;
    struct det_task_journal *journal;
    struct det_subscriber subscriber;
    struct det_subscription *subscription;
    struct content content;

    (void)state;
    memset(&watcher, 0, sizeof watcher);
    fixture_open(&fixture, 1, 4);
    assert_int_equal(
        0, det_task_journal_open(fixture.world, PATH, &fixture.memory.allocator, &journal, NULL));
    subscriber = det_task_journal_subscriber(journal);
    assert_int_equal(0, det_bus_subscribe(fixture.bus, &subscriber, &subscription, NULL));
    subscribe(&fixture, &watcher, "watcher", DET_DELIVER_LOOP, 0);
    publish_many(&fixture, 50);
    settle(&fixture);
    content = load(fixture.world);
    assert_non_null(strstr(content.data, "{\"sequence\":1,"));
    assert_non_null(strstr(content.data, "{\"sequence\":50,"));
    unload(content);
    det_sim_set_disk_faults(fixture.sim, &faults);
    for (int i = 0; i < 5; i++) {
        publish_many(&fixture, 1);
        settle(&fixture);
    }
    assert_int_equal(1, count_kind(&watcher, DET_EVENT_RUNTIME_FAILURE));
    assert_int_equal(0, count_kind(&watcher, DET_EVENT_SUBSCRIBER_FAILED));
    assert_string_equal("journal", watcher.seen[atomic_load(&watcher.count) - 5].name);
    assert_int_equal(DET_ERR_IO, det_subscription_end(subscription, DET_NEVER));
    det_task_journal_close(journal);
    fixture_close(&fixture);
}

/* Nobody is there to hear of it in time: whoever reads the ring does. */
static void a_sync_that_fails_at_the_end_is_told_too(void **state)
{
    struct det_sim_disk_faults faults = { .write_error = 1000000 };
    struct bus_fixture fixture;
    struct det_task_journal *journal;
    struct det_subscriber subscriber;
    struct det_task_event event;
    uint64_t cursor = 1, lost;

    (void)state;
    fixture_open(&fixture, 1, 4);
    assert_int_equal(0, det_task_journal_open(fixture.world, PATH, NULL, &journal, NULL));
    subscriber = det_task_journal_subscriber(journal);
    assert_int_equal(0, det_bus_subscribe(fixture.bus, &subscriber, NULL, NULL));
    publish_many(&fixture, 1);
    det_sim_set_disk_faults(fixture.sim, &faults);
    assert_int_equal(0, det_bus_end(fixture.bus, DET_NEVER));
    assert_int_equal(1, det_bus_read(fixture.bus, &cursor, &event, &lost));
    assert_int_equal(DET_EVENT_RUNTIME_FAILURE, event.kind);
    det_task_journal_close(journal);
    fixture_close(&fixture);
}

static int open_and_append(struct det_test_memory *memory, void *argument)
{
    struct det_sim *sim = argument;
    struct det_task_journal *journal = NULL;
    struct det_error error;
    int r;

    r = det_task_journal_open(det_sim_world(sim), PATH, &memory->allocator, &journal, &error);
    if (r == 0) {
        uint64_t calls = memory->calls;

        assert_int_equal(0, append(journal, 1, 1));
        assert_int_equal(0, turn(journal));
        assert_int_equal(calls, memory->calls);
    } else {
        assert_string_equal("no memory for a journal", error.text);
    }
    det_task_journal_close(journal);
    return r;
}

static void without_memory_it_does_not_open(void **state)
{
    struct det_sim *sim = open_sim(1);

    (void)state;
    det_test_each_failure(open_and_append, sim);
    det_sim_close(sim);
}

static void on_a_real_disk_it_opens_and_goes_on(void **state)
{
    char *folder = det_test_folder(), path[512];
    struct det_task_journal *journal;
    struct det_error error;

    (void)state;
    snprintf(path, sizeof path, "%s/journal", folder);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(0, det_task_journal_open(NULL, path, NULL, &journal, NULL));
        assert_int_equal(0, append(journal, 1, 1));
        assert_int_equal(0, turn(journal));
        det_task_journal_close(journal);
    }
    snprintf(path, sizeof path, "%s/none/journal", folder);
    assert_int_equal(DET_ERR_NOT_FOUND, det_task_journal_open(NULL, path, NULL, &journal, &error));
    assert_non_null(strstr(error.text, "/none/journal: there is no such thing"));
    det_test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_event_is_a_line_and_each_opening),
        cmocka_unit_test(a_turn_without_events_does_not_sync),
        cmocka_unit_test(more_than_the_buffer_holds_is_written_before_the_turn),
        cmocka_unit_test(a_torn_tail_is_cut_off),
        cmocka_unit_test(a_long_torn_tail_is_cut_off),
        cmocka_unit_test(damage_in_the_middle_is_refused_with_its_place),
        cmocka_unit_test(a_file_that_is_no_journal_is_not_touched),
        cmocka_unit_test(a_torn_opening_is_written_again),
        cmocka_unit_test(what_a_turn_has_promised_outlives_power_cuts_and_faults),
        cmocka_unit_test(on_a_bus_every_event_is_written_and_a_failed_sync_is_told_once),
        cmocka_unit_test(a_sync_that_fails_at_the_end_is_told_too),
        cmocka_unit_test(without_memory_it_does_not_open),
        cmocka_unit_test(on_a_real_disk_it_opens_and_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
