package differential

// requestRight are the deltas of a request that has arrived at Right only.
var requestRight = []Delta{
	{"events other", "", "ConnectRequest*"},
	{"params other", "", "reads=*"},
	{"state other", "", "connect-requested"},
	{"device other", "", "yes"},
	{"local other", "", "*"},
	{"peer other", "", "*"},
}

// Accepted lists every difference that is accepted. docs/differences.md is generated from it.
var Accepted = []Entry{
	{
		Pairs: []string{TwinsPair, SoftPair}, Command: "connect(*)", States: []string{"route-resolved"},
		Deltas: []Delta{
			{"answer", "ECONNREFUSED", "ok"}, {"events self", "", "Rejected(-111)"}, {"state self", "route-resolved", "failed"},
		},
		Ends: true,
		Why:  "nobody listens: the embedded device's Connect does not wait for TCP, so the refusal comes as an event, as with adapters; soft-iWARP's call waits and fails",
	},
	{
		Pairs: []string{SoftPair}, Command: "connect(*)", States: []string{"route-resolved"},
		Deltas: []Delta{{"events self", "ConnectError(-22)", "Rejected(-111)"}},
		Rare:   true,
		Why:    "a connect to the identifier's own address and port: soft-iWARP connects its socket to itself and takes its own request for a reply; the embedded device says that nobody listens",
	},
	{
		Pairs: []string{SiwTwinPair}, Command: "connect(*)", States: []string{"route-resolved"},
		Deltas: []Delta{
			{"answer", "ok", "ECONNREFUSED"}, {"events self", "ConnectError(-22)", ""}, {"state self", "failed", "route-resolved"},
		},
		Ends: true,
		Rare: true,
		Why:  "a connect to the identifier's own address and port: soft-iWARP connects its socket to itself and takes its own request for a reply; the twin says that nobody listens",
	},
	{
		Pairs: []string{TwinsPair, SoftPair}, Command: "bind(*)", States: []string{"idle"},
		Deltas: []Delta{{"answer", "EADDRINUSE", "EADDRNOTAVAIL"}},
		Rare:   true,
		Why:    "another identifier was bound to a wildcard and has resolved since: rdma_cm has moved it to the device's address, the embedded device's socket stays on the wildcard",
	},
	{
		Pairs: []string{TwinsPair, SoftPair}, Command: "connect(*)", States: []string{"route-resolved"},
		Deltas: append([]Delta{
			{"events self", "Rejected(-104)", ""},
			{"state self", "failed", "connecting"},
		}, requestRight...),
		Ends: true,
		Rare: true,
		Why:  "two requests at once to a backlog of one: the embedded device's backlog is TCP's, which turns nobody away",
	},
	{
		Pairs: []string{TwinsPair}, Command: "bind(second:*)", States: []string{"idle"},
		Deltas: []Delta{
			{"answer", "ok", "EADDRNOTAVAIL"},
			{"state self", "bound", "idle"},
			{"local self", "second:*", "none"},
			{"device self", "yes", ""},
		},
		Ends: true,
		Rare: true,
		Why:  "as above, and the identifier wants the port on another address",
	},
	{
		Pairs: []string{RoCEPair, SoftPair, SiwTwinPair}, Command: "resolve(*)", States: []string{"bound"},
		Deltas: []Delta{{"peer self", "*", "*"}},
		Rare:   true,
		Why:    "one ResolveAddr that fails after another: the kernel remembers the destination of the first",
	},
	{
		Pairs: []string{RoCEPair, SiwTwinPair}, Command: "resolve(plain:*)", States: []string{"idle", "bound"},
		Deltas: []Delta{{"events self", "AddrError(-110)", "AddrError(-19)"}},
		Rare:   true,
		Why:    "a BindAddr to the device's address has failed before: the kernel goes on looking through that interface",
	},
	{
		Pairs: []string{TwinsPair, SoftPair}, Command: "bind(lo:*)", States: []string{"idle"},
		Deltas: []Delta{{"device self", "", "yes"}},
		Ends:   true,
		Why:    "the embedded device's streams run over loopback as well, so 127.0.0.1 is an address of it; rdma_cm takes 127.0.0.1 for a wildcard",
	},
	{
		Pairs: []string{TwinsPair, SoftPair}, Command: "accept(*)", States: []string{"connect-requested"},
		Deltas: []Delta{{"params self", "reads=*", "reads=*"}},
		Why:    "the embedded device reports to both sides what they serve and may ask; soft-iWARP's event mixes the two, and the twin's has nothing there",
	},
	{
		Pairs: []string{TwinsPair, SoftPair}, Command: "accept(*)", States: []string{"connect-requested"},
		Deltas: []Delta{{"params other", "reads=*", "reads=*"}},
		Why:    "the embedded device reports what this side serves and may ask, as everywhere; iw_cm passes the peer's numbers on, swapped",
	},
	{
		Pairs: []string{SiwTwinPair}, Command: "accept(*)", States: []string{"connect-requested"},
		Deltas: []Delta{{"params self", "reads=*", "reads=0/0"}},
		Why:    "soft-iWARP reports to the accepting side depths that are not the peer's; the twin reports none",
	},
	{
		Pairs: []string{SiwTwinPair}, Command: "accept(*)", States: []string{"connect-requested"},
		Deltas: []Delta{{"params other", "reads=*", "reads=*"}},
		Why:    "soft-iWARP reports to the connecting side its own depths, swapped; the twin reports the peer's",
	},
	{
		Pairs: []string{TwinsPair, SoftPair}, Command: "resolve(any:*)", States: []string{"idle", "bound"},
		Deltas: []Delta{{"peer self", "any:*", "lo:*"}},
		Why:    "destination 0.0.0.0 means this host: the embedded device reports the address that TCP will use",
	},
	{
		Pairs: []string{TwinsPair}, Command: "*", States: []string{"connecting"},
		Deltas: []Delta{{"answer", "EBUSY", "*"}},
		Why:    "soft-iWARP's connect waits for TCP in the call: another command to the identifier has to wait for it, and fails meanwhile",
	},
	{
		Pairs: []string{EmbeddedPair}, Command: "accept(*)", States: []string{"connect-requested"},
		Deltas: []Delta{{"answer", "ECONNRESET", "ok"}, {"events self", "", "ConnectError(-104)"}},
		Why:    "the peer was destroyed before its request was accepted; its socket waits up to 100 ms for the reply so that the request is not reset before it was accepted (soft-iWARP would lose its listener), and the Accept that comes in time is answered later",
	},
	{
		Pairs: []string{EmbeddedPair}, Command: "accept(*)", States: []string{"connect-requested"},
		Deltas: []Delta{{"answer", "ECONNRESET", "EINVAL"}},
		Why:    "as above, and the Accept has nothing to accept with (no queue pair, or too much private data)",
	},
	{
		Pairs: []string{EmbeddedPair}, Command: "reject(*)", States: []string{"connect-requested"},
		Deltas: []Delta{{"answer", "EINVAL", "ok"}},
		Rare:   true,
		Why:    "as above: the Reject goes to the socket that waits for a reply",
	},
	{
		Pairs: []string{EmbeddedPair}, Command: "destroy()", States: []string{"connecting"},
		Deltas: requestRight,
		Ends:   true,
		Why:    "destroyed in the turn of its Connect: between two sockets of one host the request has gone by then, on the twin it takes a turn",
	},
	{
		Pairs: []string{EmbeddedPair}, Command: "accept(*)", States: []string{"connect-requested"},
		Deltas: []Delta{
			{"events self", "Established, Disconnected(*)", "ConnectError(-104)"},
			{"params self", "reads=*", ""},
			{"state self", "timewait", "failed"},
		},
		Ends: true,
		Rare: true,
		Why:  "the peer is destroyed in the turn of the Accept: the twin's accepting side is established without hearing from its peer",
	},
	{
		Pairs: []string{EmbeddedPair, SoftPair}, Command: "connect(*)", States: []string{"route-resolved"},
		Deltas: []Delta{{"events self", "Rejected(-104)", "Rejected(-111)"}},
		Rare:   true,
		Why:    "the listener is destroyed in the turn of the Connect: the embedded device takes the reset for an adapter of the first generation, tries MPA revision 1, and is refused",
	},
	{
		Pairs: []string{EmbeddedPair, SoftPair}, Command: "qp()", States: []string{"addr-query"},
		Deltas: []Delta{{"answer", "no device", "ok"}},
		Ends:   true,
		Rare:   true,
		Why:    "in the turn of the ResolveAddr: the embedded device has asked the routing table by then, and needs nobody else",
	},
	{
		Pairs: []string{TwinsPair, SoftPair}, Command: "route()", States: []string{"addr-resolved"},
		Deltas: []Delta{{"answer", "ENODEV", "ok"}, {"events self", "", "RouteResolved"}, {"state self", "addr-resolved", "route-resolved"}},
		Ends:   true,
		Rare:   true,
		Why:    "a source on loopback: the embedded device's streams run there as well",
	},
	{
		Pairs: []string{RoCEPair}, Command: "connect(*)", States: []string{"route-resolved"},
		Deltas: []Delta{
			{"events self", "", "Rejected(*)"},
			{"state self", "connecting", "failed"},
			{"events other", "ConnectRequest*", ""},
			{"params other", "reads=*", ""},
			{"state other", "connect-requested", ""},
			{"device other", "yes", ""},
			{"local other", "*", ""},
			{"peer other", "*", ""},
		},
		Ends: true,
		Rare: true,
		Why:  "the Listen came in the turn of the Connect, before the request had arrived",
	},
	{
		Pairs: []string{RoCEPair, SoftPair, SiwTwinPair}, Command: "bind(foreign:0)", States: []string{"idle"},
		Deltas: []Delta{{"answer", "ENODEV", "EADDRNOTAVAIL"}},
		Rare:   true,
		Why:    "a BindAddr to the device's address has failed before: the kernel still looks at that interface",
	},
	{
		Pairs: []string{SoftPair, SiwTwinPair}, Command: "bind(foreign:0)", States: []string{"idle"},
		Deltas: []Delta{
			{"answer", "ok", "EADDRNOTAVAIL"}, {"state self", "bound", "idle"}, {"local self", "foreign:*", "none"}, {"device self", "yes", ""},
		},
		Ends: true,
		Rare: true,
		Why:  "a BindAddr to the device's address has failed before: on soft-iWARP the kernel takes any address for that interface's then",
	},
	{
		Pairs: []string{RoCEPair}, Command: "accept(*)", States: []string{"connect-requested"},
		Deltas: []Delta{{"events self", "Rejected(28)", "Rejected(4)"}},
		Rare:   true,
		Why:    "the peer is destroyed in the turn of the Accept: the kernel's reply is there before",
	},
}
