package planted

// Faults of rdma_getaddrinfo(3): node and service, the hints, the errors.

const (
	lookup = "cmid/getaddrinfo.go"
	node   = "cmid/getaddrinfo_node.go"
	words  = "cmid/getaddrinfo_error.go"
)

var lookupFaults = []fault{
	{
		"IPv4 addresses are no nodes", "getaddrinfo-1 getaddrinfo-5 getaddrinfo-23", node,
		"	if _, err := zoneIndex(ip); err != nil {\n		return nil, &GAIError{", "	if _, err := zoneIndex(ip); err != nil || ip.Is4() {\n		return nil, &GAIError{",
	},
	{
		"IPv6 addresses are no nodes", "getaddrinfo-1", node,
		"	if _, err := zoneIndex(ip); err != nil {\n		return nil, &GAIError{", "	if _, err := zoneIndex(ip); err != nil || ip.Is6() {\n		return nil, &GAIError{",
	},
	{"another name is asked for", "getaddrinfo-1 getaddrinfo-4", node, "res.LookupIPAddr(ctx, node)", "res.LookupIPAddr(ctx, node+\"s\")"},
	{
		"a node must be given", "getaddrinfo-1 getaddrinfo-20 getaddrinfo-22 getaddrinfo-26", lookup,
		"	if node == \"\" && service == \"\" {\n		return []AddrInfo{copyHints(hints)}, nil\n", "	if node == \"\" {\n		return nil, &GAIError{Code: EAINoName}\n",
	},
	{"another service is asked for", "getaddrinfo-2", lookup, "res.LookupPort(ctx, network, service)", "res.LookupPort(ctx, network, service+\"s\")"},
	{
		"port numbers are counted from 1", "getaddrinfo-2", lookup,
		"		return uint16(port), nil\n	}\n	remedy", "		return uint16(port) + 1, nil\n	}\n	remedy",
	},
	{"the resolver judges signs and blanks", "getaddrinfo-2", lookup, "if strings.ContainsRune(\"+- ", "if strings.ContainsRune(\"?"},
	{
		"no service is a port all the same", "getaddrinfo-2", lookup,
		"	if service == \"\" {\n		return 0, nil\n", "	if service == \"\" {\n		return 7471, nil\n",
	},
	{"one result is enough", "getaddrinfo-4 getaddrinfo-44", lookup, "	return list, nil\n}\n\n// serviceRecords", "	return list[:1], nil\n}\n\n// serviceRecords"},
	{
		"the order is ours", "getaddrinfo-1 getaddrinfo-4 getaddrinfo-44", lookup,
		"	return list, nil\n}\n\n// serviceRecords", "	slices.Reverse(list)\n	return list, nil\n}\n\n// serviceRecords",
	},
	{
		"source and destination are taken for each other", "getaddrinfo-5 getaddrinfo-23 getaddrinfo-36", lookup,
		"ai.Src, ai.Dst = h.Src.clone(), a", "ai.Src, ai.Dst = a, h.Src.clone()",
	},
	{"the hints' destination is the result's", "getaddrinfo-36", lookup, "ai.Src, ai.Dst = h.Src.clone(), a", "ai.Src, ai.Dst = h.Src.clone(), h.Dst.clone()"},
	{
		"the system is not asked", "getaddrinfo-6", lookup,
		"return lookupAddrInfo(ctx, net.DefaultResolver, node, service, hints)", "return lookupAddrInfo(ctx, net.DefaultResolver, \"\", service, hints)",
	},
	{"a source is made up", "getaddrinfo-33", lookup, "ai.Src, ai.Dst = h.Src.clone(), a", "ai.Src, ai.Dst = MustAddr(\"127.0.0.1:0\"), a"},
	{"ai_connect is left out", "getaddrinfo-43", lookup, "return slices.Concat(ai.Connect, user)", "return slices.Concat(ai.Connect[:0], user)"},
	{"ai_connect comes last", "getaddrinfo-43", lookup, "return slices.Concat(ai.Connect, user)", "return slices.Concat(user, ai.Connect)"},
	{"a Dial leaves ai_connect out", "getaddrinfo-43", "actor/dial.go", "ai.PrivateData(c.PrivateData)", "c.PrivateData"},
}

var hintFaults = []fault{
	{
		"hints are ignored", "getaddrinfo-3 getaddrinfo-21 getaddrinfo-24", lookup,
		"		hints = &AddrInfo{}\n	}\n	if bad", "	}\n	hints = &AddrInfo{}\n	if bad",
	},
	{
		"an actor ignores the hints", "getaddrinfo-26", "actor/lookup.go",
		"func (t *commandTable) lookUp(p *cmid.Pending, node, service string, hints *cmid.AddrInfo, then func([]cmid.AddrInfo, error)) {\n",
		"func (t *commandTable) lookUp(p *cmid.Pending, node, service string, hints *cmid.AddrInfo, then func([]cmid.AddrInfo, error)) {\n	hints = &cmid.AddrInfo{PortSpace: hints.PortSpace}\n",
	},
	{"RAI_PASSIVE is not passed on", "getaddrinfo-3 getaddrinfo-21", lookup, "AddrInfo{Flags: h.Flags & RAIPassive, QP", "AddrInfo{QP"},
	{
		"RAI_PASSIVE is ignored", "getaddrinfo-22 getaddrinfo-34", lookup,
		"	if h.Flags&RAIPassive != 0 {\n		ai.Src = a\n", "	if h.Flags&RAIPassive > RAIPassive {\n		ai.Src = a\n",
	},
	{
		"RAI_PASSIVE without a node is loopback", "getaddrinfo-22", node,
		"return ofFamily(wildcard, family), nil", "return ofFamily(loopback, family), nil",
	},
	{
		"a passive result has a destination", "getaddrinfo-34", lookup,
		"	if h.Flags&RAIPassive != 0 {\n		ai.Src = a\n", "	if h.Flags&RAIPassive != 0 {\n		ai.Src, ai.Dst = a, a\n",
	},
	{
		"a copy has a passive destination", "getaddrinfo-34", lookup,
		"	if h.Flags&RAIPassive == 0 {\n		ai.Dst = h.Dst.clone()\n", "	if h.Flags&RAIPassive <= RAIPassive {\n		ai.Dst = h.Dst.clone()\n",
	},
	{"the source of hints is lost", "getaddrinfo-35", lookup, "ai.Src, ai.Dst = h.Src.clone(), a", "ai.Dst = a"},
	{"a passive result has the hints' source", "getaddrinfo-35", lookup, "		ai.Src = a\n", "		ai.Src = h.Src.clone()\n"},
	{"a copy has no source", "getaddrinfo-25", lookup, "PortSpace: h.PortSpace, Src: h.Src.clone()}", "PortSpace: h.PortSpace}"},
	{
		"route and connection data of hints are results", "getaddrinfo-23 getaddrinfo-39 getaddrinfo-41 getaddrinfo-42", lookup,
		"AddrInfo{Flags: h.Flags & RAIPassive, QP", "AddrInfo{Route: h.Route, Connect: h.Connect, Flags: h.Flags & RAIPassive, QP",
	},
	{
		"RAI_NUMERICHOST is ignored", "getaddrinfo-26 getaddrinfo-27", node,
		"		if h.Flags&RAINumericHost != 0 {\n", "		if h.Flags&RAINumericHost > RAINumericHost {\n",
	},
	{
		"the call ignores RAI_NUMERICHOST", "getaddrinfo-26", lookup,
		"	return lookupAddrInfo(ctx, net.DefaultResolver, node, service, hints)\n",
		"	if hints != nil {\n		h := *hints\n		h.Flags &^= RAINumericHost\n		hints = &h\n	}\n	return lookupAddrInfo(ctx, net.DefaultResolver, node, service, hints)\n",
	},
	{
		"RAI_NUMERICHOST refuses addresses", "getaddrinfo-26", node,
		"	if ips == nil {\n		if h.Flags", "	if ips == nil || h.Flags&RAINumericHost != 0 {\n		if h.Flags",
	},
	{
		"RAI_NUMERICHOST demands a node", "getaddrinfo-26", node,
		"	if node == \"\" {\n", "	if node == \"\" && h.Flags&RAINumericHost != 0 {\n		return nil, &GAIError{Code: EAINoName}\n	}\n	if node == \"\" {\n",
	},
	{
		"literal addresses are looked up", "getaddrinfo-27", node,
		"	ips, err := parseLiteral(node, family)\n", "	_, _ = lookupNode(ctx, res, node)\n	ips, err := parseLiteral(node, family)\n",
	},
	{
		"a hexadecimal address is a name", "getaddrinfo-27", node,
		"	if hex, ok := strings.CutPrefix(strings.ToLower(s), \"0x\"); ok {", "	if hex, ok := strings.CutPrefix(strings.ToLower(s), \"?\"); ok {",
	},
	{"RAI_NOROUTE is unknown", "getaddrinfo-28", lookup, "RAINumericHost | RAINoRoute |", "RAINumericHost |"},
	{"RAI_DNS is unknown", "getaddrinfo-46", lookup, "RAISA | RAIDNS\n", "RAISA\n"},
	{
		"ai_family is ignored", "getaddrinfo-29", node,
		"if family == FamilyAny || family == ipFamily(ip) {", "if family <= FamilyIB || family == ipFamily(ip) {",
	},
	{"AF_IB is ignored", "getaddrinfo-29 getaddrinfo-30", lookup, "return ai.Family == FamilyIB && ai.Flags", "return ai.Family > FamilyIB && ai.Flags"},
	{
		"AF_IB needs no RAI_NUMERICHOST", "getaddrinfo-30", lookup,
		"ai.Flags&RAIFamily != 0 && ai.Flags&RAINumericHost != 0", "ai.Flags&RAIFamily != 0",
	},
	{"the hints' family is the result's", "getaddrinfo-30", lookup, "	ai.Family = a.Family()\n", "	ai.Family = h.Family\n"},
	{"ai_qp_type is the port space's", "getaddrinfo-31", lookup, "	if ai.QPType == QPTypeAny {\n", "	if ai.QPType != QPTypeUD {\n"},
	{
		"an actor ignores the queue pair type", "getaddrinfo-31", "actor/idconfig.go",
		"{PortSpace: c.PortSpace, QPType: c.QPType}", "{PortSpace: c.PortSpace}",
	},
	{"a queue pair type decides nothing", "getaddrinfo-31", lookup, "		ai.PortSpace = t.ps\n", "		ai.PortSpace = PortSpaceIB\n"},
	{"a port space decides nothing", "getaddrinfo-32", lookup, "		ai.QPType = t.qp\n", "		ai.QPType = QPTypeUC\n"},
	{
		"RAI_SA finds what is not there", "getaddrinfo-45", lookup,
		"Err: unix.ENOENT, Remedy: \"no InfiniBand", "Err: unix.EIO, Remedy: \"no InfiniBand",
	},
	{
		"RAI_SA takes a node and RAI_DNS", "getaddrinfo-45 getaddrinfo-46", lookup,
		"	if node != \"\" || flags&RAIDNS != 0 {\n", "	if node == \"?\" || flags&RAIDNS > RAIDNS {\n",
	},
}

var errorFaults = []fault{
	{"an error hides its code", "getaddrinfo-7", words, "return []error{e.Code, e.Err}", "return []error{e.Err}"},
	{"a code has another number", "getaddrinfo-7", words, "EAIBadFlags EAI = -1 ", "EAIBadFlags EAI = -12"},
	{"a code's text is its name", "getaddrinfo-19", words, "return t[1]", "return t[0]"},
	{
		"a missing family is a missing node", "getaddrinfo-8", node,
		"Code: EAIAddrFamily, Err", "Code: EAINoName, Err",
	},
	{
		"a name server's failure for now is one for good", "getaddrinfo-9", words,
		"return &GAIError{Code: EAIAgain, Err: err, Remedy: \"try again later\"}", "return &GAIError{Code: EAIFail, Err: err, Remedy: \"try again later\"}",
	},
	{
		"a deadline is a failure for good", "getaddrinfo-9", words,
		"return &GAIError{Code: EAIAgain, Err: fmt", "return &GAIError{Code: EAIFail, Err: fmt",
	},
	{"unknown flags are ignored", "getaddrinfo-10", lookup, "&^ raiAll; bad != 0 {", "&^ raiAll; bad > 1<<20 {"},
	{
		"a failure for good is one for now", "getaddrinfo-11", words,
		"return &GAIError{Code: EAIFail, Err: err", "return &GAIError{Code: EAIAgain, Err: err",
	},
	{"every family exists", "getaddrinfo-12", lookup, "case FamilyAny, FamilyIPv4, FamilyIPv6, FamilyIB:\n	default:\n", "default:\n	case 255:\n"},
	{"a node without an address is unknown", "getaddrinfo-14", node, "Code: EAINoData, ", "Code: EAINoName, "},
	{"an unknown node is a failure", "getaddrinfo-15", node, "lookupError(err, EAINoName)", "lookupError(err, EAIFail)"},
	{
		"nothing is asked, nothing is wrong", "getaddrinfo-15 getaddrinfo-20", lookup,
		"		if node == \"\" && service == \"\" {\n			return nil,", "		if node == \"?\" && service == \"\" {\n			return nil,",
	},
	{"an unknown service is a node's", "getaddrinfo-16", lookup, "lookupError(err, EAIService)", "lookupError(err, EAINoName)"},
	{
		"a service of another type will do", "getaddrinfo-16", lookup,
		"		port, err := servicePort(ctx, res, t.network, service)\n", "		port, err := servicePort(ctx, res, \"tcp\", service)\n",
	},
	{
		"type and port space may contradict each other", "getaddrinfo-17", lookup,
		"	if failed == nil {\n		return transport{}", "	if failed == nil {\n		return transports[0], 0, nil\n	}\n	if failed == nil {\n		return transport{}",
	},
	{
		"the system's errors are the name server's", "getaddrinfo-18", words,
		"return &GAIError{Code: EAISystem, Err: err, Remedy", "return &GAIError{Code: EAIFail, Err: err, Remedy",
	},
	{
		"who cancels learns that the name server failed", "getaddrinfo-18", words,
		"return &GAIError{Code: EAISystem, Err: fmt", "return &GAIError{Code: EAIFail, Err: fmt",
	},
}
