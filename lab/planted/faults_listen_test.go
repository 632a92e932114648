package planted

// listenFaults break rdma_listen(3).
var listenFaults = []fault{
	// Above the drivers.
	{"cmid passes any backlog on", "listen-1", "cmid/driver.go", "n <= 0 || n > limit {", "n <= 0 {"},
	{
		"cmid does not report requests", "listen-2 listen-3", "cmid/events.go",
		"		id.deliverRequest(ev)\n		return\n", "		return\n",
	},
	{
		"cmid lets who is not bound listen", "listen-6", "cmid/id.go",
		"	if v == states.Allow && id.driver != nil {\n", "	if (v == states.Allow || op == states.OpListen) && id.driver != nil {\n",
	},

	// The embedded device.
	{"iwarp ignores the backlog", "listen-1 listen-9", "iwarp/listen_linux.go", "in.sys.Listen(l.fd, backlog)", "in.sys.Listen(l.fd, max(backlog, maxBacklog))"},
	{
		"iwarp does not report requests", "listen-2", "iwarp/listen_linux.go",
		"	from.lis.id.queueEvent(cmid.DriverEvent{\n		Kind: states.KindConnectRequest,", "	_ = (cmid.DriverEvent{\n		Kind: states.KindConnectRequest,",
	},
	{
		"iwarp reports requests of an identifier that exists", "listen-2", "iwarp/listen_linux.go",
		"local: from.local, peer: from.peer, device: true", "local: from.peer, peer: from.local, device: true",
	},
	{
		"iwarp hears every address", "listen-4 listen-7", "iwarp/bind_linux.go",
		"	if err = id.in.bindSocket(fd, a); err != nil {\n		id.in.closeFD(fd)\n		return -1, cmid.Addr{}, err\n",
		"	any := a\n	if a.Addr().Is4() {\n		any = cmid.AddrFrom(netip.IPv4Unspecified(), a.Port())\n	}\n" +
			"	if err = id.in.bindSocket(fd, any); err != nil {\n		id.in.closeFD(fd)\n		return -1, cmid.Addr{}, err\n",
	},
	{
		"iwarp listens on a port that is shared", "listen-5", "iwarp/listen_linux.go",
		"	if err := in.drv.ports.checkListen(id.binding); err != nil {\n		return err\n	}\n", "	_ = in.drv.ports.checkListen(id.binding)\n",
	},
	{
		"iwarp's wildcard hears one address", "listen-8", "iwarp/bind_linux.go",
		"	if err = id.in.bindSocket(fd, a); err != nil {\n		id.in.closeFD(fd)\n		return -1, cmid.Addr{}, err\n",
		"	one := a\n	if a == cmid.AddrFrom(netip.IPv4Unspecified(), a.Port()) {\n		one = cmid.AddrFrom(netip.AddrFrom4([4]byte{127, 0, 0, 2}), a.Port())\n	}\n" +
			"	if err = id.in.bindSocket(fd, one); err != nil {\n		id.in.closeFD(fd)\n		return -1, cmid.Addr{}, err\n",
	},

	// The kernel's devices.
	{
		"ucm does not report requests", "listen-2 listen-3", "cmid/ucm/events_linux.go",
		"	in.event.Child = child\n	in.up.Event(listener.h, &in.event)\n", "	in.event.Child = child\n",
	},
	{
		"ucm's loopback hears every address", "listen-4", "cmid/ucm/events_linux.go",
		"	return !id.local.Addr().IsLoopback() || ip.Unmap().IsLoopback()\n", "	return ip.IsValid()\n",
	},
	{
		"ucm ignores the backlog", "listen-9", "cmid/ucm/bind_linux.go",
		"int32(min(max(backlog, 0), id.in.backlog))", "int32(max(min(backlog, 0), id.in.backlog))",
	},
	{
		"ucm listens in vain", "listen-5", "cmid/ucm/bind_linux.go",
		"int32(min(max(backlog, 0), id.in.backlog))); err != nil {\n		return err\n", "int32(min(max(backlog, 0), id.in.backlog))); err != nil {\n		return nil\n",
	},
	{
		"ucm's wildcard hears one device", "listen-8", "cmid/ucm/events_linux.go",
		"func (id *driverID) acceptsFrom(ip netip.Addr) bool {\n",
		"func (id *driverID) acceptsFrom(ip netip.Addr) bool {\n	if id.local.IsWildcard() {\n		return netip.MustParsePrefix(\"10.10.1.0/24\").Contains(ip.Unmap())\n	}\n",
	},
	{
		"ucm's wildcard hears one address", "listen-8", "cmid/ucm/events_linux.go",
		"func (id *driverID) acceptsFrom(ip netip.Addr) bool {\n",
		"func (id *driverID) acceptsFrom(ip netip.Addr) bool {\n	if id.local.IsWildcard() {\n		return ip.Unmap().As4()[3] == 1\n	}\n",
	},
}
