package planted

// resolveFaults break rdma_resolve_addr(3).
var resolveFaults = []fault{
	// Above the drivers.
	{
		"cmid makes up a source", "resolve_addr-1", "cmid/pending.go",
		"		id.peer = c.Dst\n", "		id.peer = c.Dst\n		if c.Src.IsZero() {\n			c.Src = MustAddr(\"127.0.0.1:0\")\n		}\n",
	},
	{
		"cmid reports the source as the destination", "resolve_addr-3", "cmid/events.go",
		"&AddrResolved{EventBase: base, Local: in.Local, Peer: in.Peer, Device", "&AddrResolved{EventBase: base, Local: in.Local, Peer: in.Local, Device",
	},
	{
		"cmid loses why an address was not resolved", "resolve_addr-5", "cmid/events.go",
		"	case ev.Status < 0:\n		return unix.Errno(-ev.Status)\n	case ev.Status > 0:", "	case ev.Status > 0:",
	},
	{
		"cmid lets go of a source when resolving fails", "resolve_addr-7", "cmid/outcome.go",
		"op == states.OpResolveAddr && id.Info().Local.Port() == 0:", "op == states.OpResolveAddr:",
	},
	{
		"cmid connects without an address", "resolve_addr-10", "cmid/id.go",
		"	if v == states.Allow && id.driver != nil {\n",
		"	if (v == states.Allow || op == states.OpResolveRoute || op == states.OpConnect) && id.driver != nil {\n",
	},

	// The embedded device.
	{
		"iwarp wants a source", "resolve_addr-1", "iwarp/bind_linux.go",
		"	case !dst.Addr().IsValid():\n", "	case src.IsZero() && id.binding == nil:\n		return unix.EINVAL\n	case !dst.Addr().IsValid():\n",
	},
	{
		"iwarp forgets the destination", "resolve_addr-3", "iwarp/bind_linux.go",
		"	id.peer, id.device = peer, true\n", "	id.peer, id.device = cmid.AddrFrom(peer.Addr(), 0), true\n",
	},
	{
		"iwarp resolves to no device", "resolve_addr-4 resolve_addr-9", "iwarp/bind_linux.go",
		"	id.peer, id.device = peer, true\n", "	id.peer = peer\n",
	},
	{
		"iwarp's unreachable addresses have no errno", "resolve_addr-5", "iwarp/bind_linux.go",
		"iwarp: a connection to %v: %w", "iwarp: a connection to %v: %v",
	},
	{
		"iwarp ignores that there is no route", "resolve_addr-6", "iwarp/bind_linux.go",
		"		return netip.Addr{}, fmt.Errorf(\"iwarp: no route to %v: %w\", in.addrOf(to).Addr(), err)\n", "		_ = in.addrOf(to)\n",
	},
	{
		"iwarp has a constant source", "resolve_addr-6 resolve_addr-8", "iwarp/bind_linux.go",
		"	return in.addrOf(got).Addr(), nil\n}", "	_ = in.addrOf(got)\n	return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil\n}",
	},
	{
		"iwarp takes the destination for the source", "resolve_addr-6 resolve_addr-8", "iwarp/bind_linux.go",
		"	return in.addrOf(got).Addr(), nil\n}", "	_ = in.addrOf(got)\n	return in.addrOf(to).Addr(), nil\n}",
	},
	{
		"iwarp ignores the source", "resolve_addr-7", "iwarp/bind_linux.go",
		"	if id.binding == nil && !src.IsZero() {\n", "	if id.binding == nil && src.IsWildcard() {\n",
	},
	{
		"iwarp finds no route to what is resolved", "resolve_addr-10", "iwarp/commands_linux.go",
		"		if !id.device || id.peer.IsZero() {\n", "		if id.device || id.peer.IsZero() {\n",
	},

	// The kernel's devices.
	{
		"ucm wants a source", "resolve_addr-1", "cmid/ucm/bind_linux.go",
		"	src, err := kernelSockaddr(c.Src)\n", "	if c.Src.IsZero() && id.local.IsZero() {\n		return unix.EINVAL\n	}\n	src, err := kernelSockaddr(c.Src)\n",
	},
	{
		"ucm waits half the time", "resolve_addr-2", "cmid/ucm/bind_linux.go",
		"ResolveAddr(id.kid, &src, &dst, timeoutMillis(c.Timeout))", "ResolveAddr(id.kid, &src, &dst, timeoutMillis(c.Timeout/2))",
	},
	{
		"ucm loses the GID of a destination", "resolve_addr-11", "cmid/ucm/addr_linux.go",
		"	copy(b[8:], ib.GID[:])\n", "	copy(b[8:], make([]byte, len(ib.GID)))\n",
	},
	{
		"ucm takes no time for no time", "resolve_addr-13", "cmid/ucm/bind_linux.go",
		"	if d <= 0 {\n		d = 2 * time.Second\n", "	if d < 0 {\n		d = 2 * time.Second\n",
	},
	{
		"ucm does not learn what was resolved", "resolve_addr-3 resolve_addr-4 resolve_addr-9", "cmid/ucm/events_linux.go",
		"		if err = id.queryAddrs(); err != nil {\n			ev.Kind = states.KindAddrError\n", "		if err != nil {\n			ev.Kind = states.KindAddrError\n",
	},
	{
		"ucm ignores that there is no route", "resolve_addr-5 resolve_addr-6", "cmid/ucm/bind_linux.go",
		"		_ = id.queryAddrs() // it has bound nevertheless, or there is nothing to learn\n	}\n	return err\n", "		_ = id.queryAddrs()\n	}\n	return nil\n",
	},
	{
		"ucm takes silence for an answer", "resolve_addr-5 resolve_addr-6", "cmid/ucm/events_linux.go",
		"		_ = id.queryAddrs() // resolving has bound it\n", "		_ = id.queryAddrs()\n		ev.Kind, ev.Status = states.KindAddrResolved, 0\n",
	},
	{
		"ucm has a constant source", "resolve_addr-6 resolve_addr-8", "cmid/ucm/bind_linux.go",
		"	id.local = addrOf(&r.SrcAddr)\n",
		"	id.local = addrOf(&r.SrcAddr)\n	if id.local.Addr().Is4() && !id.local.IsWildcard() {\n		id.local = cmid.MustAddr(fmt.Sprint(\"10.10.1.1:\", id.local.Port()))\n	}\n",
	},
	{
		"ucm ignores the source", "resolve_addr-7", "cmid/ucm/bind_linux.go",
		"	src, err := kernelSockaddr(c.Src)\n", "	c = &cmid.ResolveAddr{Dst: c.Dst, Timeout: c.Timeout}\n	src, err := kernelSockaddr(c.Src)\n",
	},
	{
		"ucm finds no route to what is resolved", "resolve_addr-10", "cmid/ucm/commands_linux.go",
		"		return f.ResolveRoute(id.kid, timeoutMillis(c.Timeout))\n", "		return unix.EINVAL\n",
	},
}
