/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* spec_read.c - fuzz target: text into machines.
 *
 * A byte 1 divides the input into files: the first is the spec, the others are "1", "2" and so on,
 * whatever kind of file the spec takes them for. Whatever is read, every finding has a place in a
 * file that was read, there is a machine or an error, and a machine stands on sound records and can
 * be written as a text from which it comes out the same. */
#include <detent/tool/spec.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SEPARATOR 1

struct files {
    const char *data;
    size_t size;
};

static void require(bool fact)
{
    if (!fact)
        abort();
}

/* The part with this number; false when there are not so many. */
static bool find_part(const struct files *files, unsigned long number, struct files *ret)
{
    const char *start = files->data, *end = files->data + files->size;

    for (; number > 0; number--) {
        if (start == end)
            return false;
        start = memchr(start, SEPARATOR, (size_t)(end - start));
        if (start == NULL)
            return false;
        start++;
    }
    *ret = (struct files){ start, (size_t)(end - start) };
    if (ret->size > 0) {
        const char *stop = memchr(start, SEPARATOR, ret->size);

        ret->size = stop != NULL ? (size_t)(stop - start) : ret->size;
    }
    return true;
}

static int read_file(void *context, const char *path, const char **ret, size_t *ret_size)
{
    struct files part;

    if (path[0] < '1' || path[0] > '9' || path[1] != '\0')
        return DET_ERR_NOT_FOUND;
    if (!find_part(context, strtoul(path, NULL, 10), &part))
        return DET_ERR_NOT_FOUND;
    *ret = part.data;
    *ret_size = part.size;
    return 0;
}

static void release_file(void *context, const char *data, size_t size)
{
    (void)context;
    (void)data;
    (void)size;
}

static bool was_read(const struct det_spec *spec, const char *path)
{
    const char *file;

    for (size_t i = 0; (file = det_spec_file(spec, i)) != NULL; i++) {
        if (strcmp(file, path) == 0)
            return true;
    }
    return false;
}

static void check_finding(const struct det_spec *spec, const struct det_diagnostic *finding)
{
    const struct det_place *place = &finding->place;

    require(finding->text != NULL && finding->text[0] != '\0');
    /* A finding about the machine as a whole has a place only where the machine has a name. */
    if (place->file == NULL)
        return;
    require(place->line > 0 && place->column > 0);
    require(strcmp(place->file, "spec") == 0 || was_read(spec, place->file));
    if (place->source != NULL)
        require(place->column <= strlen(place->source) + 1);
}

static void check_machine(const struct det_spec *spec, const struct det_machine *machine)
{
    const struct det_record *record;

    for (unsigned i = 0; i < machine->state_count; i++)
        require(det_spec_state_c_name(spec, i) != NULL);
    for (unsigned i = 0; i < machine->event_count; i++)
        require(det_spec_event_c_name(spec, i) != NULL);
    require(det_spec_prefix(spec) != NULL);
    for (size_t i = 0; i < 8 && (record = det_spec_record(spec, i)) != NULL; i++)
        require(det_record_check(record, NULL) == 0);
}

/* The text of a machine; NULL: it has none. */
static char *write_text(const struct det_machine *machine, bool is_component)
{
    int64_t size = det_machine_write(machine, NULL, NULL, 0, NULL);
    char *text;

    /* Events of a component may have names that those of an instance may not. */
    if (size == DET_ERR_LIMIT || (size == DET_ERR_UNSUPPORTED && is_component))
        return NULL;
    require(size > 0);
    text = malloc((size_t)size + 1);
    require(text != NULL);
    require(det_machine_write(machine, NULL, text, (size_t)size + 1, NULL) == size);
    return text;
}

static void check_written(const struct det_spec *spec, const struct det_machine *machine)
{
    char *text = write_text(machine, det_spec_context(spec) != NULL), *again;
    struct det_spec_options options = { 0 };
    struct det_spec *written;

    if (text == NULL)
        return;
    require(det_spec_read("written", text, strlen(text), &options, &written) == 0);
    require(det_spec_machine(written) != NULL);
    again = write_text(det_spec_machine(written), false);
    require(again != NULL && strcmp(again, text) == 0);
    det_spec_close(written);
    free(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct files files = { (const char *)data, size }, text;
    struct det_spec_files callbacks = { read_file, release_file, &files };
    struct det_spec_options options = { .files = &callbacks };
    const struct det_diagnostics *found;
    struct det_spec *spec;

    require(find_part(&files, 0, &text));
    require(det_spec_read("spec", text.data, text.size, &options, &spec) == 0);
    found = det_spec_diagnostics(spec);
    require((det_spec_machine(spec) == NULL) == (found->error_count > 0));
    require(found->count <= DET_DIAGNOSTICS_MAX);
    for (size_t i = 0; i < found->count; i++)
        check_finding(spec, &found->items[i]);
    if (det_spec_machine(spec) != NULL) {
        check_machine(spec, det_spec_machine(spec));
        check_written(spec, det_spec_machine(spec));
    }
    det_spec_close(spec);
    return 0;
}
