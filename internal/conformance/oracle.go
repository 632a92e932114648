package conformance

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// table has the answers of Linux 6.1 and 6.12 to every command in every sub-state, on soft-RoCE and
// on soft-iWARP.
//
//go:embed testdata/state-table.json
var table []byte

// cell is the answer to one command in one sub-state.
type cell struct {
	Next  string          `json:"next"`
	Errno string          `json:"errno"`
	Peer  []string        `json:"peer_event"`
	Mask  string          `json:"qp_attr_mask"`
	IWARP json.RawMessage `json:"iwarp"` // what differs there
}

// forTransport returns the cell for w's transport.
func (c cell) forTransport(w *world) cell {
	if w.IWARP && c.IWARP != nil {
		c.Peer = slices.Clone(c.Peer)
		w.Must(json.Unmarshal(c.IWARP, &c))
		// "0, or ECONNREFUSED when ..."
		c.Errno, _, _ = strings.Cut(strings.TrimSuffix(c.Errno, " (code only)"), ",")
	}
	return c
}

// call is the plain call for a command of the oracle.
type call struct {
	op states.Op
	do func(w *world, id *cmid.ID) error
}

var calls = map[string]call{
	"BIND(dev)":     {states.OpBindAddr, func(w *world, id *cmid.ID) error { return id.BindAddr(w.deviceAddr()) }},
	"BIND(any)":     {states.OpBindAddr, func(_ *world, id *cmid.ID) error { return id.BindAddr(sides.Any4(0)) }},
	"RESOLVE_ADDR":  {states.OpResolveAddr, func(w *world, id *cmid.ID) error { return id.ResolveAddr(cmid.Addr{}, w.Target(), time.Second) }},
	"RESOLVE_ROUTE": {states.OpResolveRoute, func(_ *world, id *cmid.ID) error { return id.ResolveRoute(time.Second) }},
	"RESOLVE_ADDR(v6 dst)": {states.OpResolveAddr, func(w *world, id *cmid.ID) error {
		return id.ResolveAddr(cmid.Addr{}, sides.At(w.rig.NoRoute, 7471), time.Second)
	}},
	"LISTEN":                     {states.OpListen, func(_ *world, id *cmid.ID) error { return id.Listen(1) }},
	"CONNECT":                    {states.OpConnect, func(_ *world, id *cmid.ID) error { return id.Connect(nil, nil) }},
	"ACCEPT(valid=1)":            {states.OpAccept, func(_ *world, id *cmid.ID) error { return id.Accept(nil, nil) }},
	"ACCEPT(valid=0)":            {states.OpEstablish, func(_ *world, id *cmid.ID) error { return id.Establish() }},
	"REJECT":                     {states.OpReject, func(_ *world, id *cmid.ID) error { return id.Reject(nil) }},
	"REJECT(reason=35)":          {states.OpReject, func(_ *world, id *cmid.ID) error { return doCommand(id, &cmid.Reject{VendorECE: true}) }},
	"DISCONNECT":                 {states.OpDisconnect, func(_ *world, id *cmid.ID) error { return id.Disconnect() }},
	"NOTIFY(COMM_EST)":           {states.OpNotifyCommEst, func(_ *world, id *cmid.ID) error { return id.Notify(false) }},
	"NOTIFY(PATH_MIG)":           {states.OpNotifyPathMig, func(_ *world, id *cmid.ID) error { return id.Notify(true) }},
	"SET_OPTION(ID,TOS)":         {states.OpSetTOS, func(_ *world, id *cmid.ID) error { return id.SetOption(cmid.OptionTOS, 8) }},
	"SET_OPTION(ID,REUSEADDR=1)": {states.OpSetReuseAddr, func(_ *world, id *cmid.ID) error { return id.SetOption(cmid.OptionReuseAddr, 1) }},
	"SET_OPTION(ID,REUSEADDR=0)": {states.OpClearReuseAddr, func(_ *world, id *cmid.ID) error { return id.SetOption(cmid.OptionReuseAddr, 0) }},
	"SET_OPTION(ID,AFONLY=1)":    {states.OpSetAFOnly, func(_ *world, id *cmid.ID) error { return id.SetOption(cmid.OptionAFOnly, 1) }},
	"SET_OPTION(ID,ACK_TIMEOUT)": {states.OpSetAckTimeout, func(_ *world, id *cmid.ID) error { return id.SetOption(cmid.OptionAckTimeout, 14) }},
	"JOIN_MCAST":                 {states.OpJoinMulticast, func(_ *world, id *cmid.ID) error { return id.JoinMulticast(cmid.MustAddr("239.1.2.3:0")) }},
	"SET_OPTION(IB,PATH)":        {states.OpSetIBPath, func(_ *world, id *cmid.ID) error { return id.SetIBPath(somePath()) }},
	"INIT_QP_ATTR(INIT)":         {states.OpInitQPAttrInit, initQPAttr(verbs.QPInit)},
	"INIT_QP_ATTR(RTR)":          {states.OpInitQPAttrReady, initQPAttr(verbs.QPRTR)},
	"INIT_QP_ATTR(RTS)":          {states.OpInitQPAttrReady, initQPAttr(verbs.QPRTS)},
	"INIT_QP_ATTR(ERR)":          {states.OpInitQPAttrOther, initQPAttr(verbs.QPError)},
	"INIT_QP_ATTR(7)":            {states.OpInitQPAttrOther, initQPAttr(verbs.QPError + 1)},
	"MIGRATE":                    {states.OpMigrateID, func(w *world, id *cmid.ID) error { return id.Migrate(w.SideOf(id).Other()) }},
	"QUERY(PATH)":                {states.OpQuery, func(_ *world, id *cmid.ID) error { _, err := id.QueryPath(); return err }},
	"QUERY(GID)":                 {states.OpQuery, func(_ *world, id *cmid.ID) error { _, _, err := id.QueryGID(); return err }},
	"DESTROY":                    {states.OpDestroyID, func(_ *world, id *cmid.ID) error { return id.Destroy() }},
}

func initQPAttr(s verbs.QPState) func(*world, *cmid.ID) error {
	return func(w *world, id *cmid.ID) (err error) {
		_, w.mask, err = id.InitQPAttr(s)
		return err
	}
}

// notCalls are the oracle's commands that no plain call can express.
var notCalls = map[string]string{
	"RESOLVE_ROUTE(tmo=0)": "0 means the default",
	"CONNECT(valid=0)":     "a field of the uABI",
	"REJECT(reason=10)":    "only 28 and 35 can be asked for",
	"NOTIFY(0)":            "only two events can be named",
	"QUERY(ADDR)":          "Info cannot fail",
	"QUERY_ROUTE":          "the old form of QUERY(ADDR) and QUERY(PATH)",
}

// subState is a sub-state of the oracle. It has the state in package states, the transport that has
// the sub-state, and the calls that bring an identifier there.
type subState struct {
	state states.State
	only  string // "ib", "iwarp"; "": both
	reach func(w *world, ps cmid.PortSpace) (id, peer *cmid.ID)
}

var subStates = map[string]subState{
	"IDLE":           {states.Idle, "", reachAlone(func(w *world, ps cmid.PortSpace) *cmid.ID { return w.B.Create(ps) })},
	"ADDR_BOUND/any": {states.Bound, "", reachAlone(func(w *world, ps cmid.PortSpace) *cmid.ID { return w.B.Bound(ps, sides.Any4(0)) })},
	"ADDR_BOUND/dev": {states.Bound, "", reachAlone(func(w *world, ps cmid.PortSpace) *cmid.ID { return w.B.Bound(ps, w.deviceAddr()) })},
	"ADDR_QUERY":     {states.AddrQuery, "", reachAlone(func(w *world, ps cmid.PortSpace) *cmid.ID { return w.Resolving(ps, w.Target()) })},
	"ADDR_QUERY/dev": {states.AddrQuery, "", reachAlone(func(w *world, ps cmid.PortSpace) *cmid.ID {
		id := w.A.Bound(ps, sides.At(w.rig.Local, 0))
		w.Must(id.ResolveAddr(cmid.Addr{}, w.Target(), time.Second))
		return id
	})},
	"ADDR_RESOLVED": {states.AddrResolved, "", reachAlone(func(w *world, ps cmid.PortSpace) *cmid.ID { return w.AddrResolved(ps, w.Target()) })},
	"ROUTE_QUERY": {states.RouteQuery, "", reachAlone(func(w *world, ps cmid.PortSpace) *cmid.ID {
		id := w.AddrResolved(ps, w.Target())
		w.Must(id.ResolveRoute(time.Second))
		return id
	})},
	"ROUTE_RESOLVED": {states.RouteResolved, "", reachAlone(func(w *world, ps cmid.PortSpace) *cmid.ID {
		_, id := w.Pair(ps)
		if w.IWARP {
			w.Queues(id, 0)
		}
		return id
	})},
	"LISTEN/any":                     {states.Listening, "", reachAlone(func(w *world, ps cmid.PortSpace) *cmid.ID { return w.Listener(ps, sides.Any4(0)) })},
	"LISTEN/dev":                     {states.Listening, "", reachAlone(func(w *world, ps cmid.PortSpace) *cmid.ID { return w.Listener(ps, w.deviceAddr()) })},
	"CONNECT/req_sent(active)":       {states.Connecting, "", reachActive(states.Connecting)},
	"CONNECT/req_rcvd(passive)":      {states.ConnectRequested, "", reachPassive(states.Connecting)},
	"CONNECT/rep_rcvd(active)":       {states.Responded, "ib", reachActive(states.Responded)},
	"CONNECT/rep_sent(passive)":      {states.Accepting, "ib", reachPassive(states.Responded)},
	"CONNECT/established(active)":    {states.Connected, "", reachActive(states.Connected)},
	"CONNECT/established(passive)":   {states.Connected, "", reachPassive(states.Connected)},
	"CONNECT/rejected(active)":       {states.Failed, "", reachActive(states.Failed)},
	"CONNECT/self_rejected(passive)": {states.Failed, "", reachPassive(states.Failed)},
	"CONNECT/dreq_sent(active)":      {states.Disconnecting, "ib", reachActive(states.Disconnecting)},
	"DISCONNECT/dreq_rcvd":           {states.PeerDisconnected, "ib", reachPassive(states.Disconnecting)},
	"DISCONNECT/timewait":            {states.Timewait, "ib", reachActive(states.Timewait)},
	"CONNECT/closed(iwarp)":          {states.Timewait, "iwarp", reachActive(states.Timewait)},
	"DEVICE_REMOVAL": {states.Removed, "", reachAlone(func(w *world, ps cmid.PortSpace) *cmid.ID {
		id := w.B.Bound(ps, w.deviceAddr())
		w.rig.RemoveDevice()
		sides.Next[*cmid.DeviceRemoval](w.B, id)
		return id
	})},
	"DESTROYED": {states.Destroying, "", reachAlone(func(w *world, ps cmid.PortSpace) *cmid.ID {
		id := w.B.Create(ps)
		w.Must(id.Destroy())
		return id
	})},

	"UD:CONNECT/resolved(active)":    {states.Connected, "ib", reachActive(states.Connected)},
	"UD:CONNECT/accepted(passive)":   {states.Connected, "ib", reachPassive(states.Connected)},
	"UD:CONNECT/unreachable(active)": {states.Failed, "ib", reachActive(states.Failed)},
}

// reachAlone brings an identifier without a peer into a state.
func reachAlone(reach func(*world, cmid.PortSpace) *cmid.ID) func(w *world, ps cmid.PortSpace) (id, peer *cmid.ID) {
	return func(w *world, ps cmid.PortSpace) (id, peer *cmid.ID) { return reach(w, ps), nil }
}

// reachActive brings the side that connects into a state, and passive its peer.
func reachActive(to states.State) func(w *world, ps cmid.PortSpace) (id, peer *cmid.ID) {
	return func(w *world, ps cmid.PortSpace) (id, peer *cmid.ID) { return w.handshakeTo(ps, to) }
}

func reachPassive(to states.State) func(w *world, ps cmid.PortSpace) (id, peer *cmid.ID) {
	return func(w *world, ps cmid.PortSpace) (id, peer *cmid.ID) {
		peer, id = w.handshakeTo(ps, to)
		return id, peer
	}
}

// handshakeTo connects a pair of identifiers until the active one is in state to, and returns both.
// On InfiniBand it uses no queue pairs, so that the caller makes every step.
func (w *world) handshakeTo(ps cmid.PortSpace, to states.State) (active, passive *cmid.ID) {
	w.Helper()
	_, active = w.Pair(ps)
	if w.IWARP {
		w.Queues(active, 1)
	}
	w.Must(active.Connect(nil, &cmid.ConnParam{QPNum: sides.FreshQPN(), RNRRetryCount: 7}))
	passive, _ = w.B.Request()
	if w.IWARP {
		w.Queues(passive, 1)
	}
	switch to {
	case states.Connecting:
		return active, passive
	case states.Failed:
		w.Must(passive.Reject(nil))
		w.Until("the reject", func() bool { return active.State() == states.Failed })
		w.Forget()
		return active, passive
	}
	w.Must(passive.Accept(nil, &cmid.ConnParam{QPNum: sides.FreshQPN(), RNRRetryCount: 7}))
	w.Until("the reply", func() bool { return active.State() == states.Responded || active.State() == states.Connected })
	if to == states.Responded {
		w.Forget()
		return active, passive
	}
	if active.State() == states.Responded {
		w.Must(active.Establish())
	}
	w.Until("establishment", func() bool { return active.State() == states.Connected && passive.State() == states.Connected })
	if to != states.Connected {
		w.Must(active.Disconnect())
		w.Until("the disconnect", func() bool { return passive.State() == states.PeerDisconnected || passive.State() == states.Timewait })
		if to == states.Timewait && !w.IWARP {
			w.Must(passive.Disconnect())
		}
		w.Until("the end", func() bool { return active.State() == to })
	}
	w.Forget()
	return active, passive
}

// testOracle issues every command in every sub-state that the driver can reach, and compares the
// answers with the kernel's.
func testOracle(t *testing.T, r *run) {
	var cells map[string]json.RawMessage
	if err := json.Unmarshal(table, &cells); err != nil {
		t.Fatal(err)
	}
	probe := r.newWorld(t)
	reachable := make(map[string]subState)
	for name := range cells {
		if strings.HasPrefix(name, "_") {
			continue
		}
		if s, ok := probe.findSubState(name); ok {
			reachable[name] = s
		}
	}
	probe.Close() // a world whose loop does not run would prevent the removal of a device
	names := slices.Sorted(maps.Keys(reachable))
	for _, name := range names {
		var row map[string]cell
		if err := json.Unmarshal(cells[name], &row); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Run(name, func(t *testing.T) { compareRow(t, r, name, reachable[name], row) })
	}
}

// findSubState finds a sub-state that this rig can reach.
func (w *world) findSubState(name string) (subState, bool) {
	s, datagram := w.subState(name), strings.HasPrefix(name, "UD:")
	switch {
	case s.only == "ib" && w.IWARP, s.only == "iwarp" && !w.IWARP, datagram && !w.rig.Datagrams, datagram && w.IWARP:
		return s, false
	case s.state == states.Removed && w.rig.RemoveDevice == nil:
		return s, false
	}
	return s, true
}

// compareRow issues all commands in one sub-state. Commands that change nothing are issued to the
// same identifier, one after the other.
func compareRow(t *testing.T, r *run, name string, s subState, row map[string]cell) {
	ps := cmid.PortSpaceTCP
	if strings.HasPrefix(name, "UD:") {
		ps = cmid.PortSpaceUDP
	}
	commands := slices.Sorted(maps.Keys(row))
	commands = slices.DeleteFunc(commands, func(command string) bool {
		_, ok := calls[command]
		if !ok && notCalls[command] == "" {
			t.Errorf("the oracle has a command %s that is not asked", command)
		}
		return !ok
	})
	reach := func(w *world) (id, peer *cmid.ID) {
		w.Helper()
		id, peer = s.reach(w, ps)
		w.WantState("on arrival", id, s.state)
		return id, peer
	}
	t.Run("unchanged", func(t *testing.T) {
		w := r.newWorld(t)
		id, peer := reach(w)
		defer w.requireNoEvent("commands that change nothing", peer)
		commands = slices.DeleteFunc(commands, func(command string) bool {
			c := row[command].forTransport(w)
			_, verdict := states.Step(id.Flavor(), id.State(), states.Requested(calls[command].op))
			stays := verdict != states.Allow || w.subState(c.Next).state == s.state && len(c.Peer) == 0
			if stays {
				compareCell(w, id, peer, calls[command], c)
			}
			return stays
		})
	})
	for _, command := range commands {
		t.Run(command, func(t *testing.T) {
			w := r.newWorld(t)
			if command == "RESOLVE_ADDR(v6 dst)" && !w.rig.NoRoute.IsValid() {
				t.Skip("this host may have a route to every IPv6 address")
			}
			id, peer := reach(w)
			compareCell(w, id, peer, calls[command], row[command].forTransport(w))
		})
	}
}

// compareCell issues a command and compares the errno, the state and the peer's events. A command
// that the state machine guards must be refused instead.
func compareCell(w *world, id, peer *cmid.ID, ask call, c cell) {
	w.Helper()
	from, flavor := id.State(), id.Flavor()
	_, verdict := states.Step(flavor, from, states.Requested(ask.op))
	errno, state := errnoNamed(w, c.Errno), w.subState(c.Next).state
	if verdict == states.Guard {
		errno, state, c.Peer = unix.EINVAL, from, nil
	}
	err := ask.do(w, id)
	if verdict == states.Allow && w.lacksCall(ask.op) && (errno == 0 || errors.Is(err, unix.EOPNOTSUPP)) {
		errno, state, c.Peer, c.Mask = unix.EOPNOTSUPP, from, nil, ""
	}
	if !errors.Is(err, errno) && (errno != 0 || err != nil) {
		w.Errorf("%v in %v: %v, want %v", ask.op, from, err, errno)
	}
	if c.Mask != "" && fmt.Sprintf("%#x", w.mask) != c.Mask {
		w.Errorf("%v in %v: attributes %#x, want %s", ask.op, from, w.mask, c.Mask)
	}
	if id.State() != state { // an event will change the state
		w.Within(time.Second, time.Second, func() bool { return id.State() == state })
		w.WantState(ask.op.String(), id, state)
	}
	for _, want := range c.Peer {
		w.Until("the peer's "+want, func() bool { return getsEvent(w.SideOf(peer), peer, want) })
	}
	if len(c.Peer) == 0 && state != from && ask.op != states.OpDestroyID {
		w.requireNoEvent(fmt.Sprintf("%v in %v", ask.op, from), peer)
	}
}

// requireNoEvent requires that a peer, if there is one, has no event.
func (w *world) requireNoEvent(what string, peer *cmid.ID) {
	w.Helper()
	if peer == nil {
		return
	}
	w.Settle()
	for _, h := range append(w.A.Heard, w.B.Heard...) {
		if h.ID == peer {
			w.Errorf("%s: the peer has %v", what, h.Event.Kind())
		}
	}
}

// lacksCall reports that the driver does not offer a call at all.
func (w *world) lacksCall(op states.Op) bool {
	switch op {
	case states.OpMigrateID:
		return w.hasDeviation(NoMigration)
	case states.OpInitQPAttrInit, states.OpInitQPAttrReady, states.OpInitQPAttrOther:
		return w.hasDeviation(NoQPAttr)
	case states.OpSetIBPath, states.OpQuery:
		return w.hasDeviation(NoPath)
	case states.OpWriteCMEvent:
		return w.hasDeviation(NoUserEvent)
	}
	return false
}

// subState returns a sub-state of the oracle by its name. A datagram's sub-state that is not listed
// is like that of a connection.
func (w *world) subState(name string) subState {
	w.Helper()
	s, ok := subStates[name]
	if !ok {
		s, ok = subStates[strings.TrimPrefix(name, "UD:")]
	}
	if !ok {
		w.Fatalf("the oracle has a sub-state %s that nobody knows to reach", name)
	}
	return s
}

func errnoNamed(w *world, name string) unix.Errno {
	w.Helper()
	errno, ok := map[string]unix.Errno{
		"0": 0, "EINVAL": unix.EINVAL, "ENETUNREACH": unix.ENETUNREACH, "EISCONN": unix.EISCONN, "ENXIO": unix.ENXIO, "ENOENT": unix.ENOENT,
	}[name]
	if !ok {
		w.Fatalf("the oracle has an errno %s", name)
	}
	return errno
}

// getsEvent reports whether id gets an event such as "REJECTED(28)".
func getsEvent(e *sides.Side, id *cmid.ID, want string) bool {
	name, arg, _ := strings.Cut(strings.TrimSuffix(want, ")"), "(")
	return slices.ContainsFunc(e.Heard, func(h sides.Heard) bool {
		return h.ID == id && h.Event.Kind().C() == "RDMA_CM_EVENT_"+name && (arg == "" || fmt.Sprint(sides.Status(h.Event)) == arg)
	})
}
