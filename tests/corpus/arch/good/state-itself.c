static struct link_next link_in_up(const struct link_view *view)
{
    return link_goto(view->observed->tries > 3 ? LINK_STOPPED : LINK_CONNECTING, "it is lost");
}
