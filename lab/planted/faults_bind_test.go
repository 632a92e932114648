package planted

// bindFaults break rdma_bind_addr(3).
var bindFaults = []fault{
	// Above the drivers.
	{
		"cmid refuses wildcards", "bind_addr-1", "cmid/pending.go",
		"	if why == nil && id.commands.isBusyFor(op) {\n",
		"	if b, ok := p.Command.(*BindAddr); ok && b.Addr.IsWildcard() {\n		why = &states.Reason{Text: \"no\", Errno: states.Errno(unix.EINVAL)}\n	}\n" +
			"	if why == nil && id.commands.isBusyFor(op) {\n",
	},
	{
		"cmid does not report the bound address", "bind_addr-2", "cmid/outcome.go",
		"&Bound{EventBase: base, Local: in.Local, Device: in.Device}", "&Bound{EventBase: base, Device: in.Device}",
	},
	{
		"cmid gives every failure one errno", "bind_addr-4 resolve_addr-5 listen-5", "cmid/outcome.go",
		"	f := id.failureBase(p.Command, err)\n	f.State = from.state", "	f := id.failureBase(p.Command, unix.EIO)\n	f.State = from.state",
	},
	{
		"cmid binds to any port", "bind_addr-5", "cmid/calls.go",
		"&BindAddr{Addr: a}", "&BindAddr{Addr: AddrFrom(a.Addr(), 0)}",
	},
	{
		"cmid resolves nothing for who is bound", "bind_addr-6", "cmid/pending.go",
		"	if why == nil && id.commands.isBusyFor(op) {\n",
		"	if op == states.OpResolveAddr && id.state == states.Bound {\n		why = &states.Reason{Text: \"no\", Errno: states.Errno(unix.EINVAL)}\n	}\n" +
			"	if why == nil && id.commands.isBusyFor(op) {\n",
	},
	{"cmid returns the peer's port", "bind_addr-8", "cmid/calls.go", "return id.Info().Local.Port()", "return id.Info().Peer.Port()"},

	// The embedded device.
	{
		"iwarp refuses wildcards", "bind_addr-1 listen-8", "iwarp/bind_linux.go",
		"	if id.binding != nil || id.child {\n", "	if id.binding != nil || id.child || a.IsWildcard() {\n",
	},
	{
		"iwarp forgets the bound address", "bind_addr-2 bind_addr-3", "iwarp/bind_linux.go",
		"	id.device = !a.IsWildcard()\n", "	id.device, id.local = !a.IsWildcard(), cmid.AddrFrom(netip.IPv4Unspecified(), id.local.Port())\n",
	},
	{
		"iwarp has no device for an address", "bind_addr-3", "iwarp/bind_linux.go",
		"	id.device = !a.IsWildcard()\n", "	id.device = false\n",
	},
	{
		"iwarp names one device for all", "bind_addr-3", "iwarp/driverid_linux.go",
		"i.Device, i.Port = id.in.cfg.Device, 1", "i.Device, i.Port = \"iwarp0\", 1",
	},
	{
		"iwarp's bind fails without an errno", "bind_addr-4", "iwarp/bind_linux.go",
		"iwarp: bind %v: %w", "iwarp: bind %v: %v",
	},
	{
		"iwarp gives a port away twice", "bind_addr-4", "iwarp/ports.go",
		"	for _, other := range t.taken[b.addr.Port()] {\n		if other == b {", "	for _, other := range t.taken[b.addr.Port()] {\n		if true || other == b {",
	},
	{
		"iwarp binds to any port", "bind_addr-5", "iwarp/bind_linux.go",
		"	if a.Port() != 0 { // our own rule first: its errno says more\n		return id.bindPort(a, -1)\n	}\n", "	a = cmid.AddrFrom(ip, 0)\n",
	},
	{
		"iwarp takes the route's source for who is bound", "bind_addr-6", "iwarp/bind_linux.go",
		"		from = id.binding.addr\n", "		from = cmid.Addr{}\n",
	},
	{
		"iwarp leaves port 0", "bind_addr-7 bind_addr-8", "iwarp/bind_linux.go",
		"cmid.AddrFrom(a.Addr(), id.in.addrOf(got).Port()), nil", "cmid.AddrFrom(a.Addr(), min(id.in.addrOf(got).Port(), 0)), nil",
	},
	{
		"iwarp chooses one port for all", "bind_addr-7", "iwarp/bind_linux.go",
		"cmid.AddrFrom(a.Addr(), id.in.addrOf(got).Port()), nil", "cmid.AddrFrom(a.Addr(), max(id.in.addrOf(got).Port(), 65535)), nil",
	},
	{
		"iwarp reports a wrong port", "bind_addr-8", "iwarp/driverid_linux.go",
		"i := cmid.Info{Local: id.local, Peer: id.peer}", "i := cmid.Info{Local: cmid.AddrFrom(id.local.Addr(), id.local.Port()^1), Peer: id.peer}",
	},

	// The kernel's devices.
	{
		"ucm refuses wildcards", "bind_addr-1 listen-8", "cmid/ucm/bind_linux.go",
		"func (id *driverID) bindAddr(a cmid.Addr) error {\n", "func (id *driverID) bindAddr(a cmid.Addr) error {\n	if a.IsWildcard() {\n		return unix.EINVAL\n	}\n",
	},
	{
		"ucm binds to the wildcard", "bind_addr-2 bind_addr-3 listen-4 listen-7", "cmid/ucm/bind_linux.go",
		"	sa, err := kernelSockaddr(a)\n", "	if a.Addr().Is4() {\n		a = cmid.MustAddr(fmt.Sprint(\"0.0.0.0:\", a.Port()))\n	}\n	sa, err := kernelSockaddr(a)\n",
	},
	{
		"ucm has one device for all", "bind_addr-3 resolve_addr-4", "cmid/ucm/device_linux.go",
		"		if d.ident.isSame(ident) {\n			return d\n", "		if true || d.ident.isSame(ident) {\n			return d\n",
	},
	{
		"ucm binds to what cannot be had", "bind_addr-4", "cmid/ucm/bind_linux.go",
		"		return id.in.withoutDevices(err)\n", "		_ = id.in.withoutDevices(err)\n		return nil\n",
	},
	{
		"ucm binds to any port", "bind_addr-5", "cmid/ucm/bind_linux.go",
		"	sa, err := kernelSockaddr(a)\n", "	sa, err := kernelSockaddr(cmid.AddrFrom(a.Addr(), 0))\n",
	},
	{
		"ucm forgets a source when it resolves", "bind_addr-6 resolve_addr-7", "cmid/ucm/commands_linux.go",
		"	case *cmid.ResolveAddr:\n		return id.resolveAddr(c)\n",
		"	case *cmid.ResolveAddr:\n		_, err := f.DestroyID(id.kid)\n		if err == nil {\n" +
			"			id.kid, err = f.CreateID(uint64(id.h), uint16(cmid.PortSpaceTCP), uint8(cmid.QPTypeRC))\n		}\n		if err != nil {\n			return err\n		}\n" +
			"		id.local = cmid.Addr{}\n		return id.resolveAddr(&cmid.ResolveAddr{Dst: c.Dst, Timeout: c.Timeout})\n",
	},
	{
		"ucm reports a wrong port", "bind_addr-8", "cmid/ucm/driverid_linux.go",
		"i := cmid.Info{Local: id.local, Peer: id.peer}", "i := cmid.Info{Local: cmid.AddrFrom(id.local.Addr(), id.local.Port()^1), Peer: id.peer}",
	},
	{
		"ucm leaves port 0", "bind_addr-7", "cmid/ucm/driverid_linux.go",
		"i := cmid.Info{Local: id.local, Peer: id.peer}", "i := cmid.Info{Local: cmid.AddrFrom(id.local.Addr(), 0), Peer: id.peer}",
	},
}
