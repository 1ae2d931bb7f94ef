static struct link_next link_in_connecting(const struct link_view *view) /* here */
{
    if (view->observed->is_up)
        return link_goto(LINK_UP, "it is up");
    return link_hold("it will come up by itself");
}
