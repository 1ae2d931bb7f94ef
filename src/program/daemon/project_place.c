/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* project_place.c - finds the folder of the project, and of its state. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "config/socket_place.h"
#include "daemon/host.h"
#include "os/os.h"

int serve_project(char *target, struct det_error *reterr)
{
    int r = socket_find(".", target, reterr);
    char *here;

    if (r != DET_ERR_NOT_FOUND || !config_folder_has_specs("."))
        return r;
    here = realpath(".", NULL);
    r = here && det_text_copy(target, DET_PATH_MAX, here) ? 0 : DET_ERR_IO;
    free(here);
    return r < 0 ? det_error_set(reterr, r, "this folder cannot be read") : 0;
}

int serve_state_folder(char *target, struct det_error *reterr)
{
    char project[DET_PATH_MAX];
    int r = serve_project(project, reterr);

    if (r == 0 && snprintf(target, DET_PATH_MAX, "%s/" SOCKET_FOLDER, project) >= DET_PATH_MAX)
        r = det_error_set(reterr, DET_ERR_LIMIT, "the path of this folder is too long");
    return r;
}

static bool is_path(const char *operand)
{
    return strchr(operand, '/') || strcmp(operand, ".") == 0 || strcmp(operand, "..") == 0;
}

int serve_go(const char *folder, struct det_error *reterr)
{
    char text[128];

    if (chdir(folder) < 0)
        return det_error_set(
            reterr, errno == ENOENT ? DET_ERR_NOT_FOUND : DET_ERR_IO, "%.200s: %s", folder,
            strerror_r(errno, text, sizeof text));
    if (cli_is_there(CONFIG_FILE_NAME) || config_folder_has_specs("."))
        return 0;
    return det_error_set(
        reterr, DET_ERR_NOT_FOUND,
        "%.200s has no " CONFIG_FILE_NAME " and no spec; 'detent new' creates a project", folder);
}

int serve_enter(const char *operand, bool *ret, struct det_error *reterr)
{
    char project[DET_PATH_MAX];
    struct det_error unheard;

    *ret = is_path(operand) ||
           (cli_is_folder(operand) && serve_project(project, &unheard) == DET_ERR_NOT_FOUND);
    return *ret ? serve_go(operand, reterr) : 0;
}
