static struct link_next link_in_up(const struct link_view *view)
{
    if (view->stop_wanted) /* here */
        return link_goto(LINK_CLOSING, "it is to stop");
    return link_hold("it is up");
}
