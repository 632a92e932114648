package ucm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/uabi"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// ident is an identifier.
type ident struct {
	in          *instance
	h           cmid.Handle // the uid that its events name: never 0, for such an identifier is deaf, and never used again
	kid         uint32      // the kernel's number: any, 0 too, and used again at once
	datagram    bool        // UD
	phase       phase
	local, peer cmid.Addr
	dev         *device // nil without one
	port        uint8
	qp          verbs.ProviderQP
	offered     cmid.ConnParam // the request's
	asks        uint8          // Reads that we want to have outstanding, as connect or accept has said
	groups      []*group
	past        []*uabi.File // the channels it was migrated from: requests that came there brought identifiers of theirs

	leaving bool // our disconnect has gone out
	left    bool // the peer's has come

	listener  cmid.Handle // that its request came to; 0: it is no request's
	listening bool        // and counted
	away      *job        // a command is under way off the loop
	lane      *lane       // there
	ending    *ended      // its destruction waits for that, or is under way
	held      []func()    // events wait for that
}

// phase is how much of a connection there is, which says what may wait in the kernel.
type phase uint8

const (
	unconnected phase = iota // no connection manager's identifier behind it, or one that has nothing to wait for
	half                     // asked, or answered
	connected
	removed // the device has gone
)

// ended is a destruction under way: cmd is nil when nobody asked for it.
type ended struct{ cmd cmid.Command }

// Handle is what the identifier's events name.
func (id *ident) Handle() cmid.Handle { return id.h }

// Flavor is the device's; 0 without one.
func (id *ident) Flavor() states.Flavor {
	if id.iwarp() {
		return states.IWARP
	}
	return 0
}

// Limits are those of the device.
func (id *ident) Limits() cmid.Limits {
	lim := cmid.Limits{MaxBacklog: id.in.backlog}
	if id.dev == nil {
		return lim
	}
	lim.MaxMessage = int(min(id.dev.verbs.Attr().MaxMessage, math.MaxInt32))
	switch {
	case id.dev.iwarp:
		lim.ConnectData, lim.AcceptData, lim.RejectData =
			uabi.PrivateDataMaxIWARPSIWConnect, uabi.PrivateDataMaxIWARPSIWAccept, uabi.PrivateDataMaxIWARPSIWReject
		return lim
	case id.datagram:
		lim.ConnectData, lim.AcceptData, lim.RejectData =
			uabi.PrivateDataMaxIBUDConnectIP, uabi.PrivateDataMaxIBUDAccept, uabi.PrivateDataMaxIBUDReject
	default:
		lim.ConnectData, lim.AcceptData, lim.RejectData =
			uabi.PrivateDataMaxIBRCConnectIP, uabi.PrivateDataMaxIBRCAccept, uabi.PrivateDataMaxIBReject
	}
	lim.Padded = true
	if id.local.IB != nil { // no header of rdma_cm's before the data
		lim.ConnectData += uabi.PrivateDataMaxIBRCConnectAFIB - uabi.PrivateDataMaxIBRCConnectIP
	}
	return lim
}

// Info gives addresses and device.
func (id *ident) Info() cmid.Info {
	i := cmid.Info{Local: id.local, Peer: id.peer}
	if id.dev != nil {
		i.Device, i.Port = id.dev.name, id.port
	}
	return i
}

// Device is the device that the identifier is attached to.
func (id *ident) Device() verbs.Device {
	if id.dev == nil {
		return nil
	}
	return id.dev.verbs
}

// Do executes cmd.
func (id *ident) Do(cmd cmid.Command) error {
	in := id.in
	if _, ok := cmd.(*cmid.DestroyID); ok {
		return id.destroy(cmd)
	}
	if in.lost != nil {
		return in.lost.err
	}
	return in.checked(id.do(cmd))
}

func (id *ident) do(cmd cmid.Command) error {
	f := id.in.file
	switch c := cmd.(type) {
	case *cmid.BindAddr:
		return id.bindAddr(c.Addr)
	case *cmid.ResolveAddr:
		return id.resolveAddr(c)
	case *cmid.ResolveRoute:
		return f.ResolveRoute(id.kid, millis(c.Timeout))
	case *cmid.SetIBPath:
		return f.SetOption(id.kid, uabi.OptionLevelIB, uabi.OptionIBPath, c.Paths)
	case *cmid.Listen:
		return id.listen(c.Backlog)
	case *cmid.Connect:
		return id.connect(c)
	case *cmid.Accept:
		return id.accept(c)
	case *cmid.Reject:
		return id.reject(c)
	case *cmid.Establish:
		return id.establish()
	case *cmid.Disconnect:
		return id.disconnect(c)
	case *cmid.SetOption:
		return id.setOption(c.Option, c.Value)
	case *cmid.Notify:
		event := uint32(uabi.NotifyEventCommEst)
		if c.PathMigrated {
			event = uabi.NotifyEventPathMig
		}
		return f.Notify(id.kid, event)
	case *cmid.JoinMulticast:
		return id.join(c)
	case *cmid.LeaveMulticast:
		return id.leave(c.Addr)
	case *cmid.ResolveIBService:
		return id.resolveService(c)
	case *cmid.WriteCMEvent:
		in := uabi.WriteCMEvent{ID: id.kid, Event: uabi.EventUser}
		*in.Arg() = c.Arg
		return f.WriteCMEvent(&in)
	}
	return fmt.Errorf("rdma_cm has no %v: %w", cmd.Op(), unix.EOPNOTSUPP)
}

// bindAddr binds. A failure with ENODEV is the identifier's for good: it keeps the interface (a new one is needed).
func (id *ident) bindAddr(a cmid.Addr) error {
	sa, err := sockaddr(a)
	if err != nil {
		return err
	}
	switch err := id.in.file.Bind(id.kid, &sa); {
	case err == unix.EADDRNOTAVAIL && a.Port() != 0 && local(a.Addr()): //nolint:errorlint // uabi gives bare errnos
		return cmid.ErrPortTaken
	case err != nil:
		return withoutDevices(err)
	}
	return id.learn()
}

// local reports whether ip is this host's: an address of an interface, or one that means them all.
func local(ip netip.Addr) bool {
	if ip = ip.Unmap().WithZone(""); ip.IsUnspecified() || ip.IsLoopback() {
		return true
	}
	addrs, _ := net.InterfaceAddrs() // without them nothing is said of a port
	return slices.ContainsFunc(addrs, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr() == ip
	})
}

// withoutDevices says in words why no address is any device's.
func withoutDevices(err error) error {
	if err == unix.ENODEV && !haveDevices() { //nolint:errorlint // uabi gives bare errnos
		return fmt.Errorf("%s: %w", noDevices, err)
	}
	return err
}

// learn asks for the addresses and the device.
func (id *ident) learn() error {
	r, err := id.in.file.QueryAddr(id.kid)
	if err != nil {
		return err
	}
	id.local = addrOf(&r.SrcAddr)
	if peer := addrOf(&r.DstAddr); !peer.IsZero() && !peer.IsWildcard() {
		id.peer = peer
	}
	if r.NodeGUID != 0 {
		id.dev, id.port = id.in.device(identOf(&r)), r.PortNum
	}
	return nil
}

// identOf is the device that an answer of the kernel's names.
func identOf(r *uabi.QueryAddrResp) deviceIdent {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], r.NodeGUID)
	return deviceIdent{binary.BigEndian.Uint64(b[:]), r.IBDevIndex}
}

func (id *ident) resolveAddr(c *cmid.ResolveAddr) error {
	src, err := sockaddr(c.Src)
	if err != nil {
		return err
	}
	dst, err := sockaddr(c.Dst)
	if err != nil {
		return err
	}
	if !c.Src.IsZero() && id.local.IsZero() { // as the kernel would, which shows an address also when it could not have it
		if err = id.bindAddr(c.Src); err != nil {
			return err
		}
	}
	if err = id.in.file.ResolveAddr(id.kid, &src, &dst, millis(c.Timeout)); err != nil {
		_ = id.learn() // it has bound nevertheless, or there is nothing to learn
	}
	return err
}

// listen listens. One that is not bound is bound by that.
func (id *ident) listen(backlog int) error {
	if err := id.in.file.Listen(id.kid, int32(min(max(backlog, 0), id.in.backlog))); err != nil {
		return err
	}
	if !id.listening {
		id.listening = true
		id.in.listeners++
	}
	if id.local.IsZero() {
		return id.learn()
	}
	return nil
}

func (id *ident) setOption(o cmid.Option, value int) error {
	limit := map[cmid.Option]int{cmid.OptionTOS: 255, cmid.OptionReuseAddr: 1, cmid.OptionAFOnly: 1, cmid.OptionAckTimeout: 31}
	most, ok := limit[o]
	switch {
	case !ok:
		return unix.ENOSYS
	case value < 0 || value > most:
		return unix.EINVAL
	}
	raw := []byte{byte(value)}
	if o == cmid.OptionReuseAddr || o == cmid.OptionAFOnly {
		raw = binary.NativeEndian.AppendUint32(nil, uint32(value))
	}
	name := [...]uint32{
		cmid.OptionTOS: uabi.OptionIDTOS, cmid.OptionReuseAddr: uabi.OptionIDReuseAddr,
		cmid.OptionAFOnly: uabi.OptionIDAFOnly, cmid.OptionAckTimeout: uabi.OptionIDAckTimeout,
	}
	return id.in.file.SetOption(id.kid, uabi.OptionLevelID, name[o], raw)
}

// destroy gives the identifier back. Whatever comes for it from now on reaches nobody. What may
// wait in the kernel is waited for off the loop; behind a command of the same identifier that is
// under way there, it starts when that has ended.
func (id *ident) destroy(cmd cmid.Command) error {
	in := id.in
	delete(in.ids, id.h)
	if id.listening {
		in.listeners--
	}
	for _, g := range id.groups {
		delete(in.groups, g.h)
	}
	if id.waitsForPeer() {
		id.fail()
	}
	id.held = nil
	id.ending = &ended{cmd}
	switch {
	case id.away != nil:
		id.lane.drop(id.away)
		return cmid.ErrPending
	case in.lost != nil && id.qp == nil:
		return in.lost.giveBack(id)
	case id.phase == unconnected && id.qp == nil:
		return id.given(id.giveBack())
	}
	id.giveBackOffLoop()
	return cmid.ErrPending
}

// waitsForPeer says that the kernel holds the queue pair: on iWARP a connect does, and the answer
// that it waits for. It is flushed when the identifier is destroyed, and goes behind it; any other
// goes before it.
func (id *ident) waitsForPeer() bool { return id.phase == half && id.iwarp() }

// group is who shares threads with the identifier: the requests of its listener, or everybody else
// on the loop.
func (id *ident) group() any {
	if id.listener != 0 {
		return id.listener
	}
	return id.in
}

func (id *ident) iwarp() bool { return id.dev != nil && id.dev.iwarp }

// giveBack is DESTROY_ID. ENOENT is as good as done: the identifier is not there.
func (id *ident) giveBack() error {
	if _, err := id.in.file.DestroyID(id.kid); !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}

// given is what DESTROY_ID's answer means: done, or it will be when the channel is closed, or the
// kernel holds the identifier.
func (id *ident) given(err error) error {
	in := id.in
	switch {
	case err == nil || in.closed: // then the file is, next
		return nil
	case in.lost != nil || in.denied(err):
		return in.lost.giveBack(id)
	}
	return &HeldError{IDs: []HeldID{id.heldBy("destroy_id")}, Err: err}
}

// heldBy names the identifier as one that the kernel holds.
func (id *ident) heldBy(doing string) HeldID {
	return HeldID{Handle: id.h, Local: id.local, Peer: id.peer, Doing: doing}
}

// giveBackOffLoop destroys the queue pair and the identifier. The kernel waits for what they have
// under way: a host that has died costs a queue pair seconds. Memory, completion queues and domains
// have it until then.
func (id *ident) giveBackOffLoop() {
	in, last := id.in, id.waitsForPeer()
	var qp verbs.Later
	if id.qp != nil {
		qp = id.qp.DestroyLater()
	}
	var went error
	destroyQP := func() {
		if qp.Wait != nil {
			went = qp.Wait()
		}
	}
	in.offLoop(&in.lanes.destroys, id, "destroy_id", func() error {
		if !last {
			destroyQP()
		}
		err := id.giveBack()
		if last {
			destroyQP()
		}
		return err
	}, func(err error) {
		if qp.End != nil {
			_ = qp.End(went) // its owner may have destroyed it already
		}
		id.qp = nil
		_ = in.checked(went)
		if err = id.given(err); !errors.Is(err, cmid.ErrPending) {
			id.destroyed(err)
		}
	})
}

// destroyed tells that the identifier is the kernel's no more, or why it is.
func (id *ident) destroyed(err error) {
	if cmd := id.ending.cmd; cmd != nil && !id.in.closed {
		id.in.up.Done(id.h, cmd, err)
	}
}

// offLoop executes a command that may wait in the kernel. after is told its error, and gives what
// is told of it.
func (id *ident) offLoop(l *lane, cmd cmid.Command, doing string, call func() error, after func(error) error) error {
	id.aside(l, doing, call, func(err error) (tell func()) {
		err = after(err)
		return func() { id.in.up.Done(id.h, cmd, err) }
	})
	return cmid.ErrPending
}

// aside executes what may wait in the kernel: one thing at a time. The identifier's events wait for
// it, and so does its destruction, after which nothing is told.
func (id *ident) aside(l *lane, doing string, call func() error, after func(error) (tell func())) {
	id.lane = l
	id.away = id.in.offLoop(l, id, doing, call, func(err error) {
		id.away = nil
		tell := after(id.in.checked(err))
		if id.ending != nil {
			id.giveBackOffLoop()
			return
		}
		tell()
		id.tellHeld()
	})
}
