package actor

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// kernelLike makes the twin behave as a device of the kernel's. It does not ask for receives, and
// its completion queues are short. A slot of a send queue is free when a completion behind it was
// polled. A queue pair uses memory of its own domain only, and commands take their time.
type kernelLike struct {
	cmid.Driver
	cqe, wr int
	// one PostSend of so many fails with ENOMEM for no reason; 0: none
	fail    int
	refuse  error // the result of every PostSend; nil: it is done
	lets    error // the result of a SetAccess that lets a peer in; nil: it is done
	version byte  // of the hellos that it sends; 0: as they are
	blind   bool  // its queue pairs have no individual rights, as soft-iWARP's
	// the answer to DestroyID; nil: it returns identifiers
	holds error
	takes map[states.Op]time.Duration // how long a command waits before it is begun
	did   map[states.Op]int           // how many of a command were asked for
	fails map[states.Op]error         // the answer to a command, which it does not begin
	in    *kernelInstance             // of the only loop
}

// over puts k in front of the twin d. Bounds that are zero become large ones.
func (k *kernelLike) over(d cmid.Driver) cmid.Driver {
	k.Driver, k.did = d, make(map[states.Op]int)
	if k.cqe == 0 {
		k.cqe = 1 << 15
	}
	if k.wr == 0 {
		k.wr = 1 << 14
	}
	return k
}

func (k *kernelLike) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	k.in = &kernelInstance{
		Upcalls: up, k: k, l: l, devs: make(map[verbs.Device]*kernelDevice), rng: rand.New(rand.NewPCG(1, 2)),
	}
	var err error
	k.in.Instance, err = k.Driver.Open(l, k.in)
	return k.in, err
}

type kernelInstance struct {
	cmid.Instance
	cmid.Upcalls
	k    *kernelLike
	l    *eventloop.Loop
	devs map[verbs.Device]*kernelDevice
	rng  *rand.Rand
}

func (in *kernelInstance) Enclosed() bool { return true }

func (in *kernelInstance) CreateID(h cmid.Handle, ps cmid.PortSpace, t cmid.QPType) (cmid.DriverID, error) {
	id, err := in.Instance.CreateID(h, ps, t)
	return &kernelID{DriverID: id, in: in}, err
}

func (in *kernelInstance) Event(h cmid.Handle, ev *cmid.DriverEvent) {
	if ev.Child != nil {
		ev.Child = &kernelID{DriverID: ev.Child, in: in}
	}
	in.Upcalls.Event(h, ev)
}

type kernelID struct {
	cmid.DriverID
	in   *kernelInstance
	late *eventloop.Timer // of the command that has not begun
}

// setVersion makes the hello of a command one of another version.
func (k *kernelLike) setVersion(cmd cmid.Command) {
	var hello []byte
	switch c := cmd.(type) {
	case *cmid.Connect:
		hello = c.PrivateData
	case *cmid.Accept:
		hello = c.PrivateData
	}
	if k.version != 0 && hello != nil {
		hello[2] = k.version
	}
}

// Do begins a command when it has waited long enough. A DestroyID ends the wait of the command
// before it, without an answer to that command.
func (id *kernelID) Do(cmd cmid.Command) error {
	in := id.in
	if id.late != nil {
		id.late.Stop()
		id.late = nil
	}
	in.k.did[cmd.Op()]++
	in.k.setVersion(cmd)
	if err := in.k.fails[cmd.Op()]; err != nil {
		return err
	}
	do := func() error {
		err := id.DriverID.Do(cmd)
		if cmd.Op() == states.OpDestroyID && err == nil {
			return in.k.holds
		}
		return err
	}
	d := in.k.takes[cmd.Op()]
	if d == 0 {
		return do()
	}
	id.late = in.l.NewTimer(func() {
		id.late = nil
		if err := do(); !errors.Is(err, cmid.ErrPending) {
			in.Done(id.Handle(), err)
		}
	})
	id.late.Reset(d)
	return cmid.ErrPending
}

func (in *kernelInstance) device(d verbs.Device) verbs.Device {
	if d == nil {
		return nil
	}
	k := in.devs[d]
	if k == nil {
		k = &kernelDevice{Device: d, in: in, qps: make(map[verbs.QP]*kernelQP)}
		in.devs[d] = k
	}
	return k
}

func (id *kernelID) Device() verbs.Device { return id.in.device(id.DriverID.Device()) }

func (id *kernelID) CreateQP(attr verbs.QPInitAttr) (verbs.QP, error) {
	attr.SendCQ, attr.RecvCQ = attr.SendCQ.(*kernelCQ).CQ, attr.RecvCQ.(*kernelCQ).CQ
	qp, err := id.DriverID.CreateQP(attr)
	if err != nil {
		return nil, err
	}
	d := id.in.devs[id.DriverID.Device()]
	q := &kernelQP{QP: qp, d: d, pd: attr.PD, slots: attr.MaxSendWR}
	d.qps[qp] = q
	return q, nil
}

type kernelDevice struct {
	verbs.Device
	in  *kernelInstance
	qps map[verbs.QP]*kernelQP
	cqs int // made

	report func(verbs.DeviceEvent, int) // of the device's own events
}

func (d *kernelDevice) OnDeviceEvent(f func(verbs.DeviceEvent, int)) { d.report = f }

func (d *kernelDevice) Attr() verbs.DeviceAttr {
	a := d.Device.Attr()
	a.AsksForReceives, a.SharesMemory, a.MaxCQE, a.MaxQPWR = false, false, d.in.k.cqe, d.in.k.wr
	a.QPAccess = a.QPAccess && !d.in.k.blind
	return a
}

func (d *kernelDevice) CreateCQ(cqe int, notify func()) (verbs.CQ, error) {
	if cqe > d.in.k.cqe {
		return nil, unix.EINVAL
	}
	cq, err := d.Device.CreateCQ(cqe, notify)
	d.cqs++
	return &kernelCQ{cq, d}, err
}

type kernelCQ struct {
	verbs.CQ
	d *kernelDevice
}

func (q *kernelCQ) Poll(wc []verbs.WC) int {
	n := q.CQ.Poll(wc)
	for _, c := range wc[:n] {
		if c.Op != verbs.Recv {
			q.d.qps[c.QP].free(c.ID)
		}
	}
	return n
}

// kernelQP counts the slots of its send queue as their owner, a user-space library, must.
type kernelQP struct {
	verbs.QP
	d       *kernelDevice
	pd      verbs.PD
	slots   int
	used    []uint64 // by IDs, in order
	silent  int      // at the end of used: no completion will report these
	longest int      // the longest run of them
}

func (q *kernelQP) PostSend(wr *verbs.SendWR) error {
	for _, s := range wr.SGL {
		if s.MR != nil && s.MR.PD != q.pd {
			return unix.EINVAL
		}
	}
	if k := q.d.in.k; len(q.used) >= q.slots || k.fail > 0 && q.d.in.rng.IntN(k.fail) == 0 {
		return unix.ENOMEM
	}
	if err := q.d.in.k.refuse; err != nil {
		return err
	}
	if err := q.QP.PostSend(wr); err != nil {
		return err
	}
	q.used = append(q.used, wr.ID)
	q.silent++
	if wr.Flags&verbs.Signaled != 0 {
		q.silent = 0
	}
	q.longest = max(q.longest, q.silent)
	return nil
}

func (q *kernelQP) PostRecv(wr verbs.RecvWR) error {
	if wr.SGE.MR.PD != q.pd {
		return unix.EINVAL
	}
	return q.QP.PostRecv(wr)
}

func (q *kernelQP) SetAccess(a verbs.Access) error {
	switch {
	case q.d.in.k.blind:
		return verbs.ErrNotSupported
	case a != 0 && q.d.in.k.lets != nil:
		return q.d.in.k.lets
	}
	return q.QP.SetAccess(a)
}

func (q *kernelQP) free(id uint64) {
	for len(q.used) > 0 {
		first := q.used[0]
		q.used = q.used[1:]
		if first == id {
			return
		}
	}
}

// conn returns an identifier's connection. On its loop.
func (w *world) conn(l *loop, id *actor.PID) *datapath.Conn { return w.ident(l, id).conn }

// ident returns an identifier's actor. On its loop.
func (w *world) ident(l *loop, id *actor.PID) *ident {
	for it := range l.ids {
		if it.pid.Equal(id) {
			return it
		}
	}
	w.Fatalf("no identifier %v", id)
	return nil
}

// onLoop calls fn on the loop here and waits.
func (w *world) onLoop(rt *Runtime, fn func(l *loop)) {
	w.Helper()
	turn(w, rt, func() { fn(rt.loops[0]) })
}

// whileBlocked runs fn while rt's loop is blocked.
func (w *world) whileBlocked(rt *Runtime, fn func()) {
	w.Helper()
	over := make(chan struct{})
	if err := rt.loops[0].el.Post(func() { <-over }); err != nil {
		w.Fatal(err)
	}
	defer close(over)
	settle()
	fn()
	settle()
}

// onKernelLike runs test between two devices that are like the kernel's, on both flavors.
func onKernelLike(t *testing.T, like kernelLike, test func(w *world, near, far *kernelLike), opts ...Config) {
	t.Helper()
	for name, f := range flavors {
		t.Run(name, func(t *testing.T) {
			near, far := like, like
			inWorldOfTwo(t, f, near.over, far.over, func(w *world) { test(w, &near, &far) }, opts...)
		})
	}
}
