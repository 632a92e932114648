package states

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// The oracle, state-table.json of the conformance suite, contains the answers of Linux 6.1 and 6.12
// to 36 commands in 40 sub-states, on soft-RoCE and on soft-iWARP. This file compares the table
// with it: the kernel's errno 0 is Allow or a Guard, any other errno is a Refuse with the same
// errno, and the next states agree.

type oracleCell struct {
	Next  string          `json:"next"`
	Errno string          `json:"errno"`
	Async json.RawMessage `json:"async_event"`
	IWARP *struct {
		Next   string   `json:"next"`
		Errno  string   `json:"errno"`
		Danger string   `json:"danger"`
		Async  []string `json:"async_event"`
	} `json:"iwarp"`
}

type oracleEvent struct {
	Input     string `json:"input"`
	Event     string `json:"event"`
	Next      string `json:"next"`
	Transport string `json:"transport"`
}

// place is where one of the oracle's sub-states stands in our table.
type place struct {
	flavor Flavor
	state  State
	only   string // "ib", "iwarp": the transport that has it; "": both
}

var places = map[string]place{
	"IDLE":                           {0, Idle, ""},
	"ADDR_BOUND/any":                 {0, Bound, ""},
	"ADDR_BOUND/dev":                 {Device, Bound, ""},
	"ADDR_QUERY":                     {0, AddrQuery, ""},
	"ADDR_QUERY/dev":                 {Device, AddrQuery, ""},
	"ADDR_RESOLVED":                  {0, AddrResolved, ""},
	"ROUTE_QUERY":                    {0, RouteQuery, ""},
	"ROUTE_RESOLVED":                 {0, RouteResolved, ""},
	"LISTEN/any":                     {0, Listening, ""},
	"LISTEN/dev":                     {Device, Listening, ""},
	"CONNECT/req_sent(active)":       {0, Connecting, ""},
	"CONNECT/req_rcvd(passive)":      {0, ConnectRequested, ""},
	"CONNECT/rep_rcvd(active)":       {0, Responded, "ib"},
	"CONNECT/rep_sent(passive)":      {0, Accepting, "ib"},
	"CONNECT/established(active)":    {0, Connected, ""},
	"CONNECT/established(passive)":   {0, Connected, ""},
	"CONNECT/rejected(active)":       {0, Failed, ""},
	"CONNECT/self_rejected(passive)": {0, Failed, ""},
	"CONNECT/dreq_sent(active)":      {0, Disconnecting, "ib"},
	"DISCONNECT/dreq_rcvd":           {0, PeerDisconnected, "ib"},
	"DISCONNECT/timewait":            {0, Timewait, "ib"},
	"CONNECT/closed(iwarp)":          {0, Timewait, "iwarp"},
	"DEVICE_REMOVAL":                 {0, Removed, ""},
	"DESTROYED":                      {0, Destroying, ""},

	"UD:IDLE":                           {UD, Idle, "ib"},
	"UD:ADDR_BOUND/any":                 {UD, Bound, "ib"},
	"UD:ADDR_BOUND/dev":                 {UD | Device, Bound, "ib"},
	"UD:ADDR_QUERY":                     {UD, AddrQuery, "ib"},
	"UD:ADDR_QUERY/dev":                 {UD | Device, AddrQuery, "ib"},
	"UD:ADDR_RESOLVED":                  {UD, AddrResolved, "ib"},
	"UD:ROUTE_QUERY":                    {UD, RouteQuery, "ib"},
	"UD:ROUTE_RESOLVED":                 {UD, RouteResolved, "ib"},
	"UD:LISTEN/any":                     {UD, Listening, "ib"},
	"UD:LISTEN/dev":                     {UD | Device, Listening, "ib"},
	"UD:CONNECT/req_sent(active)":       {UD, Connecting, "ib"},
	"UD:CONNECT/req_rcvd(passive)":      {UD, ConnectRequested, "ib"},
	"UD:CONNECT/resolved(active)":       {UD, Connected, "ib"},
	"UD:CONNECT/accepted(passive)":      {UD, Connected, "ib"},
	"UD:CONNECT/unreachable(active)":    {UD, Failed, "ib"},
	"UD:CONNECT/self_rejected(passive)": {UD, Failed, "ib"},
}

// flavors returns all flavors of one transport that the sub-state represents: with the device bit,
// and without it where it is implied.
func (p place) flavors(transport string) []Flavor {
	if p.only != "" && p.only != transport {
		return nil
	}
	f := p.flavor
	if transport == "iwarp" {
		f |= IWARP
	}
	if deviceOptional.has(p.state) {
		return []Flavor{f}
	}
	return []Flavor{f, f | Device}
}

// asks maps the oracle's commands to those of this package. A command with an argument that the
// kernel refuses in any state (wrong) is the same command, which fails when it is allowed.
var asks = map[string]struct {
	op    Op
	wrong bool
}{
	"BIND(dev)":                  {OpBindAddr, false},
	"BIND(any)":                  {OpBindAddr, false},
	"RESOLVE_ADDR":               {OpResolveAddr, false},
	"RESOLVE_ADDR(v6 dst)":       {OpResolveAddr, true},
	"RESOLVE_ROUTE":              {OpResolveRoute, false},
	"RESOLVE_ROUTE(tmo=0)":       {OpResolveRoute, true},
	"CONNECT":                    {OpConnect, false},
	"CONNECT(valid=0)":           {OpConnect, true},
	"LISTEN":                     {OpListen, false},
	"ACCEPT(valid=1)":            {OpAccept, false},
	"ACCEPT(valid=0)":            {OpEstablish, false},
	"REJECT":                     {OpReject, false},
	"REJECT(reason=35)":          {OpReject, false},
	"REJECT(reason=10)":          {OpReject, true},
	"DISCONNECT":                 {OpDisconnect, false},
	"INIT_QP_ATTR(INIT)":         {OpInitQPAttrInit, false},
	"INIT_QP_ATTR(RTR)":          {OpInitQPAttrReady, false},
	"INIT_QP_ATTR(RTS)":          {OpInitQPAttrReady, false},
	"INIT_QP_ATTR(ERR)":          {OpInitQPAttrOther, false},
	"INIT_QP_ATTR(7)":            {OpInitQPAttrOther, true},
	"NOTIFY(COMM_EST)":           {OpNotifyCommEst, false},
	"NOTIFY(PATH_MIG)":           {OpNotifyPathMig, false},
	"NOTIFY(0)":                  {OpNotifyPathMig, true},
	"SET_OPTION(ID,TOS)":         {OpSetTOS, false},
	"SET_OPTION(ID,REUSEADDR=1)": {OpSetReuseAddr, false},
	"SET_OPTION(ID,REUSEADDR=0)": {OpClearReuseAddr, false},
	"SET_OPTION(ID,AFONLY=1)":    {OpSetAFOnly, false},
	"SET_OPTION(ID,ACK_TIMEOUT)": {OpSetAckTimeout, false},
	"SET_OPTION(IB,PATH)":        {OpSetIBPath, false},
	"QUERY(ADDR)":                {OpQuery, false},
	"QUERY(PATH)":                {OpQuery, false},
	"QUERY(GID)":                 {OpQuery, false},
	"QUERY_ROUTE":                {OpQuery, false},
	"JOIN_MCAST":                 {OpJoinMulticast, false},
	"MIGRATE":                    {OpMigrateID, false},
	"DESTROY":                    {OpDestroyID, false},
}

// exception is one place where we differ from the kernel on purpose. ours is the next state we
// give instead.
type exception struct {
	transport, from, command string
	ours                     State
	why                      string
	used                     bool
}

// Reasons of several exceptions.
const (
	eventDecides = "the event that follows makes the change, so that its receiver hears of it once"
	rejectFinal  = "the table does not know where a Reject came from; package cmid goes back there when it fails"
	deadFirst    = "the kernel looks at the argument first; a dead identifier is the better answer"
)

var exceptions = []exception{
	{transport: "ib", from: "ADDR_RESOLVED", command: "SET_OPTION(IB,PATH)", ours: RouteQuery, why: eventDecides},
	{transport: "iwarp", from: "ADDR_RESOLVED", command: "SET_OPTION(IB,PATH)", ours: RouteQuery, why: eventDecides},
	{transport: "ib", from: "UD:ADDR_RESOLVED", command: "SET_OPTION(IB,PATH)", ours: RouteQuery, why: eventDecides},
	{transport: "ib", from: "CONNECT/rep_sent(passive)", command: "NOTIFY(COMM_EST)", ours: Accepting, why: eventDecides},
	{transport: "iwarp", from: "CONNECT/req_rcvd(passive)", command: "ACCEPT(valid=1)", ours: Accepting, why: eventDecides},
	{transport: "iwarp", from: "CONNECT/established(active)", command: "DISCONNECT", ours: Disconnecting, why: eventDecides},
	{transport: "iwarp", from: "CONNECT/established(passive)", command: "DISCONNECT", ours: Disconnecting, why: eventDecides},

	{transport: "ib", from: "CONNECT/req_rcvd(passive)", command: "REJECT(reason=10)", ours: Failed, why: rejectFinal},
	{transport: "iwarp", from: "CONNECT/req_rcvd(passive)", command: "REJECT(reason=10)", ours: Failed, why: rejectFinal},
	{transport: "ib", from: "CONNECT/rep_rcvd(active)", command: "REJECT(reason=10)", ours: Failed, why: rejectFinal},
	{transport: "ib", from: "UD:CONNECT/req_rcvd(passive)", command: "REJECT(reason=10)", ours: Failed, why: rejectFinal},

	{transport: "ib", from: "DEVICE_REMOVAL", command: "RESOLVE_ROUTE(tmo=0)", ours: Removed, why: deadFirst},
	{transport: "ib", from: "DEVICE_REMOVAL", command: "CONNECT(valid=0)", ours: Removed, why: deadFirst},
	{transport: "ib", from: "DEVICE_REMOVAL", command: "REJECT(reason=10)", ours: Removed, why: deadFirst},
	{transport: "ib", from: "DEVICE_REMOVAL", command: "INIT_QP_ATTR(7)", ours: Removed, why: deadFirst},
	{transport: "ib", from: "DESTROYED", command: "RESOLVE_ROUTE(tmo=0)", ours: Destroying, why: deadFirst},
	{transport: "ib", from: "DESTROYED", command: "CONNECT(valid=0)", ours: Destroying, why: deadFirst},
	{transport: "ib", from: "DESTROYED", command: "REJECT(reason=10)", ours: Destroying, why: deadFirst},
	{transport: "ib", from: "DESTROYED", command: "INIT_QP_ATTR(7)", ours: Destroying, why: deadFirst},
	{transport: "iwarp", from: "DEVICE_REMOVAL", command: "RESOLVE_ROUTE(tmo=0)", ours: Removed, why: deadFirst},
	{transport: "iwarp", from: "DEVICE_REMOVAL", command: "CONNECT(valid=0)", ours: Removed, why: deadFirst},
	{transport: "iwarp", from: "DEVICE_REMOVAL", command: "REJECT(reason=10)", ours: Removed, why: deadFirst},
	{transport: "iwarp", from: "DEVICE_REMOVAL", command: "INIT_QP_ATTR(7)", ours: Removed, why: deadFirst},
	{transport: "iwarp", from: "DESTROYED", command: "RESOLVE_ROUTE(tmo=0)", ours: Destroying, why: deadFirst},
	{transport: "iwarp", from: "DESTROYED", command: "CONNECT(valid=0)", ours: Destroying, why: deadFirst},
	{transport: "iwarp", from: "DESTROYED", command: "REJECT(reason=10)", ours: Destroying, why: deadFirst},
	{transport: "iwarp", from: "DESTROYED", command: "INIT_QP_ATTR(7)", ours: Destroying, why: deadFirst},

	// Asynchronous inputs.
	{
		transport: "ib", from: "CONNECT/req_sent(active)", command: "neighbour MAC changed (RoCE)", ours: Failed,
		why: "Unreachable looks like a time-out, and rdma_get_cm_event(3) makes it the answer to a connect",
	},
	{
		transport: "ib", from: "CONNECT/req_rcvd(passive)", command: "peer aborts (REJ timeout, ib)", ours: ConnectRequested,
		why: "nothing is reported, so nothing changes here: a later Accept fails",
	},
}

// except looks an exception up and marks it used.
func except(transport, from, command string) *exception {
	for i := range exceptions {
		if e := &exceptions[i]; e.transport == transport && e.from == from && e.command == command {
			e.used = true
			return e
		}
	}
	return nil
}

func loadOracle(t *testing.T) (cells map[string]map[string]oracleCell, async map[string][]oracleEvent) {
	t.Helper()
	data, err := os.ReadFile("../internal/conformance/testdata/state-table.json")
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatal(err)
	}
	cells = map[string]map[string]oracleCell{}
	for name, part := range raw {
		switch name {
		case "_meta":
		case "_async":
			if err := json.Unmarshal(part, &async); err != nil {
				t.Fatal(err)
			}
		default:
			var row map[string]oracleCell
			if err := json.Unmarshal(part, &row); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			cells[name] = row
		}
	}
	return cells, async
}

// on returns the kernel's answer on a transport: errno, next sub-state, and whether it is known to
// hurt the machine.
func (c oracleCell) on(transport string) (errno, next string, danger bool) {
	errno, next = c.Errno, c.Next
	if transport == "iwarp" && c.IWARP != nil {
		if c.IWARP.Errno != "" {
			errno, _, _ = strings.Cut(c.IWARP.Errno, ",") // "0, or ECONNREFUSED when ..."
			errno, _, _ = strings.Cut(errno, " ")         // "EINVAL (code only)"
		}
		if c.IWARP.Next != "" {
			next = c.IWARP.Next
		}
		danger = c.IWARP.Danger != ""
	}
	return errno, next, danger
}

// follows returns the events that may follow a command on a transport, with the state after each
// ("": not known).
func (c oracleCell) follows(t *testing.T, transport string) []oracleEvent {
	t.Helper()
	var evs []oracleEvent
	if len(c.Async) > 0 && string(c.Async) != "null" {
		if err := json.Unmarshal(c.Async, &evs); err != nil {
			t.Fatal(err)
		}
	}
	evs = slices.DeleteFunc(evs, func(e oracleEvent) bool { return e.Transport != "" && e.Transport != transport })
	if transport == "iwarp" && c.IWARP != nil && c.IWARP.Async != nil {
		evs = nil
		for _, name := range c.IWARP.Async {
			name, _, _ = strings.Cut(name, "(")
			evs = append(evs, oracleEvent{Event: name, Next: c.IWARP.Next})
		}
	}
	return evs
}

func kindNamed(t *testing.T, name string) Kind {
	t.Helper()
	for k := range Kind(NumKernelKinds) {
		if k.C() == "RDMA_CM_EVENT_"+name {
			return k
		}
	}
	t.Fatalf("the oracle has an event %q that no Kind has", name)
	return 0
}

func TestOracleCommands(t *testing.T) {
	cells, _ := loadOracle(t)
	if len(cells) != len(places) || len(asks) != 36 {
		t.Fatalf("the oracle has %d sub-states, %d are placed; %d commands are mapped", len(cells), len(places), len(asks))
	}
	compared := 0
	for _, transport := range []string{"ib", "iwarp"} {
		for from, row := range cells {
			at, ok := places[from]
			if !ok {
				t.Fatalf("sub-state %s has no place", from)
			}
			if len(row) != len(asks) {
				t.Fatalf("%s has %d commands, not %d", from, len(row), len(asks))
			}
			for command, c := range row {
				for _, f := range at.flavors(transport) {
					compareCell(t, transport, from, command, f, at.state, c)
					compared++
				}
			}
		}
	}
	// IB without closed(iwarp); iWARP without the cells of IB only
	if want := (40 - 1 + 24 - 5) * 36; compared < want {
		t.Errorf("compared %d cells, want at least %d", compared, want)
	}
}

// compareCell compares one cell of the oracle with Step.
func compareCell(t *testing.T, transport, from, command string, f Flavor, s State, c oracleCell) {
	t.Helper()
	ask, ok := asks[command]
	if !ok {
		t.Fatalf("command %q is not mapped", command)
	}
	errno, after, danger := c.on(transport)
	to, ok := places[after]
	if !ok {
		t.Fatalf("%s %s: next state %q has no place", from, command, after)
	}
	want := to.state
	next, v := Step(f, s, Requested(ask.op))
	why := Why(f, s, Requested(ask.op))
	wrong := ask.wrong && errno != "0"
	same := false // the errno
	switch v {
	case Allow:
		if wrong { // allowed by the state, failed by its argument
			next, _ = Step(f, next, CommandFailed(ask.op))
		}
		same = wrong || errno == "0"
	case Refuse:
		same = why.Errno.String() == errno
	case Guard: // the kernel does something, or claims it
		same, want = wrong || errno == "0" || want != s || danger, s
	}
	agree := same && next == want
	switch e := except(transport, from, command); {
	case agree && e != nil:
		t.Errorf("%v, %s, %s: agrees with the kernel, yet an exception is listed (%s)", f, from, command, e.why)
	case e != nil && (next != e.ours || same == (e.why == deadFirst)):
		// only deadFirst is about the errno
		t.Errorf("%v, %s, %s: %v %v next %v; the kernel: %s; the exception says %v", f, from, command, v, why.Errno, next, errno, e.ours)
	case !agree && e == nil:
		t.Errorf("%v, %s, %s: %v %v next %v; the kernel: %s, next %v (%s)", f, from, command, v, why.Errno, next, errno, want, after)
	}
	if v != Allow || wrong {
		return
	}
	for _, ev := range c.follows(t, transport) {
		compareEvent(t, f, next, ev, from+" "+command)
	}
}

// compareEvent checks that an event is allowed, and leads to the oracle's state.
func compareEvent(t *testing.T, f Flavor, s State, ev oracleEvent, what string) {
	t.Helper()
	next, v := Step(f, s, Occurred(kindNamed(t, ev.Event)))
	to, known := places[ev.Next]
	if v != Allow {
		t.Errorf("%v, %s, then %s in %v: %v", f, what, ev.Event, s, v)
	}
	if known && next != to.state {
		t.Errorf("%v, %s, then %s in %v: next %v, the kernel says %s", f, what, ev.Event, s, next, ev.Next)
	}
}

func TestOracleEvents(t *testing.T) {
	_, async := loadOracle(t)
	n := 0
	for from, evs := range async {
		if from == "any state with a device attached" {
			compareAnyState(t, evs)
			n += len(evs)
			continue
		}
		at, ok := places[from]
		if !ok {
			t.Fatalf("sub-state %s has no place", from)
		}
		for _, ev := range evs {
			for _, transport := range []string{"ib", "iwarp"} {
				if !concerns(ev.Input, transport) {
					continue
				}
				for _, f := range at.flavors(transport) {
					n++
					compareAsync(t, transport, from, f, at.state, ev)
				}
			}
		}
	}
	if n < 60 {
		t.Errorf("compared %d events only", n)
	}
}

// concerns reports whether an input of the oracle belongs to a transport: some name it.
func concerns(input, transport string) bool {
	ibOnly := strings.Contains(input, "ib)") || strings.Contains(input, "RoCE") || strings.Contains(input, "RTU") || strings.Contains(input, "SIDR")
	iwOnly := strings.Contains(input, "iwarp") && !strings.Contains(input, "REQ retries")
	return transport == "ib" && !iwOnly || transport == "iwarp" && !ibOnly
}

func compareAsync(t *testing.T, transport, from string, f Flavor, s State, ev oracleEvent) {
	t.Helper()
	want := places[ev.Next].state
	next := s
	if ev.Event != "" {
		var v Verdict
		if next, v = Step(f, s, Occurred(kindNamed(t, ev.Event))); v != Allow {
			t.Errorf("%v, %s, %s (%s): %v", f, from, ev.Event, ev.Input, v)
		}
	} else if strings.Contains(ev.Input, "device removed") {
		var v Verdict
		if next, v = Step(f, s, Occurred(KindDeviceRemoval)); v != Ignore {
			t.Errorf("%v, %s: a removal that the kernel does not report is %v", f, from, v)
		}
	}
	switch e := except(transport, from, ev.Input); {
	case e != nil && (next == want || next != e.ours):
		t.Errorf("%v, %s, %s: next %v, the exception says %v instead of %v", f, from, ev.Input, next, e.ours, want)
	case e == nil && next != want:
		t.Errorf("%v, %s, %s: next %v, the kernel says %s", f, from, ev.Input, next, ev.Next)
	}
}

// compareAnyState checks the events that can occur in all states with a device, and only there.
func compareAnyState(t *testing.T, evs []oracleEvent) {
	t.Helper()
	for _, ev := range evs {
		kind := kindNamed(t, ev.Event)
		for f := range Flavor(NumFlavors) {
			for s := range State(NumStates) {
				if !Exists(f, s) {
					continue
				}
				next, v := Step(f, s, Occurred(kind))
				if got := v == Allow; got != hasDevice(f, s) {
					t.Errorf("%v, %v: %v is %v", f, s, kind, v)
				}
				if to, moves := places[ev.Next]; v == Allow && moves && next != to.state || v == Allow && !moves && next != s {
					t.Errorf("%v, %v: %v leads to %v, the kernel says %s", f, s, kind, next, ev.Next)
				}
			}
		}
	}
}

// TestOracleExceptions: every exception is still needed, and has a reason.
func TestOracleExceptions(t *testing.T) {
	for i := range exceptions {
		exceptions[i].used = false
	}
	t.Run("commands", TestOracleCommands)
	t.Run("events", TestOracleEvents)
	for _, e := range exceptions {
		if !e.used {
			t.Errorf("exception %s %s %s is not needed", e.transport, e.from, e.command)
		}
		if e.why == "" {
			t.Errorf("exception %s %s %s has no reason", e.transport, e.from, e.command)
		}
	}
}

// TestOracleGuards: a guard is justified by the kernel's behaviour. Guards that are not in the
// oracle state the reason.
func TestOracleGuards(t *testing.T) {
	cells, _ := loadOracle(t)
	beyond := map[string]string{
		"iWARP has no datagrams; the kernel would listen for connections":                                                                 "the oracle has no datagram identifiers on iWARP",
		"iWARP has no datagrams; the kernel would make a connection":                                                                      "the oracle has no datagram identifiers on iWARP",
		"not established yet: await Established, or give up with DestroyID; the kernel would disconnect before it reports the connection": "the oracle's iWARP is established at once",
	}
	for _, g := range guards() {
		seen := false
		for from, row := range cells {
			for command := range row {
				for _, transport := range []string{"ib", "iwarp"} {
					for _, f := range places[from].flavors(transport) {
						seen = seen || asks[command].op == g.Op && g.applies(f, places[from].state)
					}
				}
			}
		}
		if why := beyond[g.Text]; seen == (why != "") {
			t.Errorf("guard %v %v: measured on the kernel: %v; reason to have none: %q", g.Op, g.States, seen, why)
		}
		delete(beyond, g.Text)
	}
	if len(beyond) > 0 {
		t.Errorf("no such guard: %v", beyond)
	}
}
