static struct link_next link_in_up(const struct link_view *view)
{
    return link_hold(
        view->observed->is_up ? ""
                                "it is up"
                              : "it is down");
}
