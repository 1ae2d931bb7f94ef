/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* svg.c - converts a drawing to SVG with the program `dot` of GraphViz. */
#include "codegen/svg.h"

#include <stdio.h>
#include <unistd.h>

#include "os/os.h"

#define SVG_SIZE_MAX 67108864
#define DOT_DEADLINE (60 * DET_SECOND)
#define LOOK_SPAN    (100 * DET_MILLISECOND) /* between two checks for Ctrl-C */

/* Waits until the process ends, the deadline, or Ctrl-C. */
static int wait_for(
    struct det_world *world, struct det_process *process, const atomic_bool *is_left,
    struct det_process_end *ret)
{
    det_time now = det_world_now(world, DET_CLOCK_MONOTONIC), end = now + DOT_DEADLINE;
    int r;

    do {
        r = world->ops->process_wait(world, process, is_left ? now + LOOK_SPAN : end, ret);
        now = det_world_now(world, DET_CLOCK_MONOTONIC);
    } while (r == DET_ERR_TIMEOUT && now < end && !(is_left && atomic_load(is_left)));
    return r;
}

/* Runs `dot` over files, not pipes, so that reading and writing need not alternate. */
static int run_dot(
    struct cli *cli, FILE *input, FILE *output, const atomic_bool *is_left,
    struct det_process_end *ret)
{
    const char *const argv[] = { "dot", "-Tsvg", NULL };
    struct det_process_options options = {
        .argv = argv,
        .input = fileno(input),
        .output = fileno(output),
        .error = STDERR_FILENO,
        /* `up` reaps any child that is not a group leader, as an orphan. */
        .new_group = true,
    };
    struct det_world *world = cli->world;
    struct det_process *process;
    int r;

    r = world->ops->process_start(world, &options, &process, NULL);
    if (r < 0)
        return r;
    r = wait_for(world, process, is_left, ret);
    if (r < 0)
        world->ops->process_kill(world, process, 9);
    world->ops->process_close(world, process);
    return r;
}

static int fail_dot(struct cli *cli, int r, const struct det_process_end *end)
{
    if (r == DET_ERR_NOT_FOUND) {
        cli_report_error(
            cli, "the program 'dot' is not installed: install the package graphviz, or use "
                 "--format dot");
        return CLI_NOT_FOUND;
    }
    if (r == DET_ERR_TIMEOUT) {
        cli_report_error(cli, "dot took longer than %d seconds", (int)(DOT_DEADLINE / DET_SECOND));
        return CLI_TIMEOUT;
    }
    if (r < 0)
        cli_report_error(cli, "cannot run dot: %s", det_error_text(r));
    else
        cli_report_error(cli, "dot failed with exit code %d", end->code);
    return CLI_FAILURE;
}

/* Reads the output of dot from the start of the file. */
static int read_svg(struct cli *cli, FILE *svg, struct det_buffer *ret)
{
    long size = fseek(svg, 0, SEEK_END) == 0 ? ftell(svg) : -1;
    char *data;

    rewind(svg);
    if (size < 0 || size > SVG_SIZE_MAX) {
        cli_report_error(cli, "cannot read what dot wrote");
        return CLI_FAILURE;
    }
    data = size ? det_buffer_extend(ret, (size_t)size) : NULL;
    if (size && !data)
        return cli_no_memory(cli);
    return !size || fread(data, 1, (size_t)size, svg) == (size_t)size ? CLI_OK : CLI_FAILURE;
}

int svg_of_dot(
    struct cli *cli, const char *text, size_t size, const atomic_bool *is_left,
    struct det_buffer *ret)
{
    struct det_process_end end = { 0 };
    FILE *input = tmpfile(), *output = tmpfile();
    int code, r;

    if (!input || !output || fwrite(text, 1, size, input) != size || fflush(input) != 0) {
        cli_report_error(cli, "cannot write a temporary file");
        code = CLI_FAILURE;
    } else {
        rewind(input);
        r = run_dot(cli, input, output, is_left, &end);
        code = r < 0 || end.code != 0 ? fail_dot(cli, r, &end) : read_svg(cli, output, ret);
    }
    if (input)
        fclose(input);
    if (output)
        fclose(output);
    return code;
}
