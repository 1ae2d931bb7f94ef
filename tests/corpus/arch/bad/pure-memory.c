static struct link_next link_in_up(const struct link_view *view)
{
    char *text = strdup(view->desired->host); /* here */

    return link_hold(text);
}
