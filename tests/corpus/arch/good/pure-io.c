/* What collect has looked at; a word that is banned may be part of a text or of a member. */
static struct link_next link_in_up(const struct link_view *view)
{
    if (!view->observed->is_up)
        return link_goto(LINK_CONNECTING, "open() has failed");
    return link_hold(view->all->scratch->format(view->all->scratch, "printf(%u)", 1u));
}

static int link_derive(
    struct det_derive *derive, const struct link_desired *config, struct link_desired *desired)
{
    if (config->port == 0)
        return derive->refuse(derive, "port is missing");
    *desired = *config;
    return 0;
}
