/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* serve_place.c - which folder is the project, and where its state is. */
#include <stdlib.h>

#include "base/text.h"
#include "cli/serve.h"
#include "cli/socket.h"
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
