static struct link_next link_in_up(const struct link_view *view)
{
    if (time(NULL) % 2 == 0) /* here */
        return link_hold("an even second");
    return link_hold(view->desired->host);
}
