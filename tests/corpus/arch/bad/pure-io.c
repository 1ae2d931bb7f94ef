/* A helper does the I/O, and is part of the state that calls it. */
static bool has_file(const char *path)
{
    FILE *file = fopen(path, "r"); /* here */

    return file != NULL;
}

static struct link_next link_in_up(const struct link_view *view)
{
    if (!has_file(view->desired->host))
        return link_goto(LINK_CONNECTING, "the file is gone");
    return link_hold("the file is there");
}
