package planted

// halfFaults break half a sentence: for one family of addresses, at one end of a range, for the
// second of two.
var halfFaults = []fault{
	{
		"iwarp refuses the IPv6 wildcard", "bind_addr-1", "iwarp/bind_linux.go",
		"	if id.binding != nil || id.child {\n", "	if id.binding != nil || id.child || a.IsWildcard() && a.Addr().Is6() {\n",
	},
	{
		"iwarp refuses the IPv4 wildcard", "bind_addr-1", "iwarp/bind_linux.go",
		"	if id.binding != nil || id.child {\n", "	if id.binding != nil || id.child || a.IsWildcard() && a.Addr().Is4() {\n",
	},
	{
		"iwarp binds to what is not here", "bind_addr-4", "iwarp/bind_linux.go",
		"	if err != nil {\n		return fmt.Errorf(\"iwarp: bind %v: %w\", a, err)\n", "	if err != nil && err != unix.EADDRNOTAVAIL {\n		return fmt.Errorf(\"iwarp: bind %v: %w\", a, err)\n",
	},
	{
		"cmid has a device for nobody", "bind_addr-3 resolve_addr-4 resolve_addr-9", "cmid/id.go",
		"	return id.driver.Device()\n", "	return nil\n",
	},
	{
		"cmid does not report the source that was resolved", "resolve_addr-3", "cmid/events.go",
		"&AddrResolved{EventBase: base, Local: in.Local, Peer: in.Peer, Device", "&AddrResolved{EventBase: base, Peer: in.Peer, Device",
	},
	{
		"iwarp lets go of a source when resolving fails", "resolve_addr-7", "iwarp/bind_linux.go",
		"	if err != nil {\n		return err\n	}\n	id.peer, id.device = peer, true\n",
		"	if err != nil {\n		if !src.IsZero() {\n			id.in.closeFD(id.fd)\n			id.in.drv.ports.releasePort(id.binding)\n			id.binding, id.fd, id.local = nil, -1, cmid.Addr{}\n		}\n		return err\n	}\n	id.peer, id.device = peer, true\n",
	},
	{
		"iwarp does not learn its source", "resolve_addr-8", "iwarp/bind_linux.go",
		"	id.local = cmid.AddrFrom(source, id.local.Port())\n", "	_ = source\n",
	},
	{
		"iwarp loses its port when it resolves", "bind_addr-6 resolve_addr-7", "iwarp/bind_linux.go",
		"	id.local = cmid.AddrFrom(source, id.local.Port())\n", "	id.local = cmid.AddrFrom(source, 0)\n",
	},
	{
		"iwarp resolves groups", "resolve_addr-6", "iwarp/bind_linux.go",
		"	case ip.IsMulticast() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):\n		return peer, source, ", "	case ip.IsMulticast() && ip.Is6() && ip.Is4():\n		return peer, source, ",
	},
	{
		"cmid listens with a backlog of 0", "listen-1", "cmid/driver.go", "n <= 0 || n > limit {", "n < 0 || n > limit {",
	},
	{
		"cmid takes a datagram's request for a connection's", "listen-3 getaddrinfo-31", "cmid/events.go",
		"id.ps, id.flavor&states.UD, states.ConnectRequested", "id.ps, 0, states.ConnectRequested",
	},
	{
		"cmid reports a request's ends the wrong way round", "listen-2 listen-3", "cmid/events.go",
		"		Local: in.Local, Peer: in.Peer, PrivateData: cloneBytes(ev.PrivateData), Param: ev.Param,\n	}, nil)", "		Local: in.Peer, Peer: in.Local, PrivateData: cloneBytes(ev.PrivateData), Param: ev.Param,\n	}, nil)",
	},
	{
		"cmid names another listener", "listen-2", "cmid/events.go", "Listener: id.handle,", "Listener: child.handle,",
	},
	{
		"iwarp's IPv6 wildcard hears IPv6 only", "listen-8", "iwarp/bind_linux.go", "		only := 0\n", "		only := 1\n",
	},
	{"iwarp doubles the backlog", "listen-9", "iwarp/listen_linux.go", "in.sys.Listen(l.fd, backlog)", "in.sys.Listen(l.fd, 2*backlog)"},
	{"iwarp's backlog is 1", "listen-1", "iwarp/listen_linux.go", "in.sys.Listen(l.fd, backlog)", "in.sys.Listen(l.fd, 1)"},
	{
		"a service's port is counted from 1", "getaddrinfo-2", lookup,
		"	return uint16(port), nil\n}\n\n// wantsGID", "	return uint16(port) + 1, nil\n}\n\n// wantsGID",
	},
	{"ports end at 32767", "getaddrinfo-2", lookup, "strconv.ParseUint(service, 10, 16)", "strconv.ParseUint(service, 10, 15)"},
	{"a port is taken modulo 65536", "getaddrinfo-16", lookup, "strconv.ParseUint(service, 10, 16)", "strconv.ParseUint(service, 10, 32)"},
	{"a name's zone is lost", "getaddrinfo-1", node, "ip.Unmap().WithZone(f.Zone)", "ip.Unmap()"},
	{"ai_connect is written behind", "getaddrinfo-43", lookup, "return slices.Concat(ai.Connect, user)", "return append(ai.Connect, slices.Clone(user)...)"},
	{"a copy has no destination", "getaddrinfo-25", lookup, "		ai.Dst = h.Dst.clone()\n	}\n	return ai", "		ai.Dst = Addr{}\n	}\n	return ai"},
	{"a copy shares memory with the hints", "getaddrinfo-25", lookup, "		ai.Dst = h.Dst.clone()\n	}\n	return ai", "		ai.Dst = h.Dst\n	}\n	return ai"},
	{"wildcards of both families", "getaddrinfo-30", node, "return ofFamily(wildcard, family), nil", "return ofFamily(wildcard, FamilyAny), nil"},
	{"loopback of both families", "getaddrinfo-30", node, "return ofFamily(loopback, family), nil", "return ofFamily(loopback, FamilyAny), nil"},
	{"the port space is the transport's", "getaddrinfo-32", lookup, "	if ai.PortSpace == 0 {\n", "	if ai.PortSpace <= PortSpaceIPOIB {\n"},
	{"{UD, PS_IB} is reliable", "getaddrinfo-31", "cmid/addrinfo.go", "ps == PortSpaceIB && t == QPTypeUD {", "ps == PortSpaceIB && t == QPTypeUC {"},
	{"the device is not given the type", "getaddrinfo-31", "cmid/channel.go", "c.inst.CreateID(h, ps, t)", "c.inst.CreateID(h, ps, QPTypeRC)"},
	{"results have no port", "getaddrinfo-2 getaddrinfo-5 getaddrinfo-36", lookup, "	a := AddrFrom(ip, port)\n", "	a := AddrFrom(ip, min(port, 0))\n"},
	{"the second result has no port", "getaddrinfo-4", lookup, "list[i] = newAddrInfo(ip, port, t, hints)", "list[i] = newAddrInfo(ip, port*uint16(1-min(i, 1)), t, hints)"},
	{"RAI_NUMERICHOST lets a name through that is in the hosts file", "getaddrinfo-26", node, "		if h.Flags&RAINumericHost != 0 {\n", "		if h.Flags&RAINumericHost != 0 && node != \"localhost\" {\n"},
	{"the node's error is not reported", "getaddrinfo-7", lookup, "		err.Node, err.Service = node, service\n		return nil, err\n", "		err.Node, err.Service = service, node\n		return nil, err\n"},
	{"a code has no errno", "getaddrinfo-7", words, "return []error{e.Code, e.Err}", "return []error{e.Code}"},
	{"a Dial leaves the user's data out", "getaddrinfo-43", "actor/dial.go", "ai.PrivateData(c.PrivateData)", "ai.PrivateData(nil)"},
}
