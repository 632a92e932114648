//go:build amd64 || arm64

package native

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// adapter is an open device of the library.
type adapter struct {
	*library
	name    string
	ctx     uintptr // ibv_context
	channel uintptr // ibv_comp_channel
	page    *page   // for the loop's calls
	caps    hca.Caps
	sends   staging
	queues  map[hca.Handle]*completions
	// queues for which an event will be requested at the end of the turn
	foreseen []*completions
	recent   *completions // the one with the last event

	mu      sync.Mutex // guards the fields below: calls off the loop make and destroy objects, too
	using   int        // number of such calls under way
	closed  bool
	last    func() // releases the adapter's resources, after the last such call
	objects [kinds]map[uintptr]*object
}

// Objects are destroyed in this order.
const (
	qpObject = iota
	ahObject
	cqObject
	srqObject
	mrObject
	pdObject
	kinds
)

// object is an object that the library has made.
type object struct {
	addr    uintptr
	unacked int    // events of a completion queue that were read and not acknowledged
	mem     []byte // memory that belongs to it
}

var _ hca.Adapter = (*adapter)(nil)

// openAdapter opens the device called name.
func openAdapter(l *library, name string) (*adapter, error) {
	p, err := l.newPage()
	if err != nil {
		return nil, err
	}
	a := &adapter{library: l, name: name, page: p, queues: make(map[hca.Handle]*completions)}
	for i := range a.objects {
		a.objects[i] = make(map[uintptr]*object)
	}
	if err := a.openContext(); err != nil {
		a.giveBack()
		return nil, err
	}
	return a, nil
}

func (a *adapter) openContext() error {
	p := a.page
	dev, err := a.findDevice()
	if err != nil {
		return err
	}
	defer dev.freeList(p)
	if a.ctx, err = p.callObject(a.openDevice, dev.addr); err != nil {
		return a.notOpened(err)
	}
	if got := peek[uintptr](a.ctx, contextDevice); got != dev.addr {
		return a.unknownLayout("ibv_context.device")
	}
	if a.channel, err = p.callObject(a.createChannel, a.ctx); err != nil {
		return err
	}
	if peek[uintptr](a.channel, channelContext) != a.ctx {
		return a.unknownLayout("ibv_comp_channel.context")
	}
	for _, fd := range a.eventFDs() {
		if err := unix.SetNonblock(fd, true); err != nil { // it fails if this is not a descriptor
			return errors.Join(a.unknownLayout("descriptors"), err)
		}
	}
	a.sends, err = newStaging()
	return err
}

// unknownLayout returns the error for structs with an unexpected layout.
func (a *adapter) unknownLayout(what string) error {
	return &LibraryError{
		Library: a.file, Symbol: what, Err: fmt.Errorf("is not where this program looks for it: %w", unix.EPROTONOSUPPORT),
		Remedy: "use the libibverbs of rdma-core",
	}
}

// eventFDs returns the descriptors of events.
func (a *adapter) eventFDs() []int {
	return []int{int(peek[int32](a.channel, channelFD)), int(peek[int32](a.ctx, contextAsyncFD))}
}

// Channels returns the descriptors of events.
func (a *adapter) Channels() (hca.Channels, error) {
	fds := a.eventFDs()
	return hca.Channels{Completions: fds[0], Async: fds[1]}, nil
}

// siwVendor is the vendor ID in soft-iWARP's attributes.
const siwVendor = 0x626d74

// Query returns the device's limits.
func (a *adapter) Query() (hca.Caps, error) {
	p := a.page
	dev, at := scratchVar[deviceAttr](p, 0)
	*dev = deviceAttr{}
	if err := p.callStatus(a.queryDevice, a.ctx, at); err != nil {
		return hca.Caps{}, err
	}
	c := hca.Caps{
		GUID:  bits.ReverseBytes64(dev.NodeGUID),
		IWARP: peek[int32](peek[uintptr](a.ctx, contextDevice), deviceNodeType) == nodeRNIC,
		Siw:   dev.VendorID == siwVendor, MaxCQE: int(dev.MaxCQE), MaxSRQWR: int(dev.MaxSRQWR),
		MaxCQ: int(dev.MaxCQ), MaxMR: int(dev.MaxMR),
		Attr: verbs.DeviceAttr{
			MaxQP: int(dev.MaxQP), MaxQPWR: min(int(dev.MaxQPWR), int(dev.MaxCQE)/2), MaxSGE: min(int(dev.MaxSGE), maxSGE),
			MaxRDAtom: int(min(dev.MaxQPRdAtom, dev.MaxQPInitRdAtom, 255)), Atomics: dev.AtomicCap != 0,
		},
	}
	if dev.MaxQPInitRdAtom == 0 { // not all drivers report it
		c.Attr.MaxRDAtom = int(min(dev.MaxQPRdAtom, 255))
	}
	c.Attr.Immediate = !c.IWARP
	c.Attr.NotifiesAll, c.Attr.OverlooksFirst = c.Siw, c.Siw
	port, at := scratchVar[portAttr](p, 0)
	*port = portAttr{}
	if err := p.callStatus(a.queryPort, a.ctx, 1, at); err != nil {
		return hca.Caps{}, err
	}
	c.Attr.MaxMessage = port.MaxMsgSz
	if mtu := port.ActiveMTU; !c.IWARP && mtu >= 1 && mtu <= hca.MTU4096 {
		c.Attr.MaxDatagram = 128 << mtu
	}
	a.caps = c
	if c.Siw {
		if err := a.coverRefused(); err != nil {
			return hca.Caps{}, err
		}
	}
	err := a.probeInline()
	return a.caps, err
}

// recordObject records an object, to destroy it when the adapter is closed.
func (a *adapter) recordObject(kind int, addr uintptr, mem []byte) *object {
	o := &object{addr: addr, mem: mem}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.objects[kind][addr] = o
	return o
}

// destroyObject destroys an object with a verb.
func (a *adapter) destroyObject(p *page, kind int, v verb, h hca.Handle) error {
	a.mu.Lock()
	o := a.objects[kind][uintptr(h)]
	delete(a.objects[kind], uintptr(h)) // before another object can have the address
	a.mu.Unlock()
	if o == nil {
		return unix.EINVAL
	}
	err := p.callStatus(v, o.addr)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.objects[kind][o.addr] = o
		return err
	}
	unmapOnce(&o.mem)
	return nil
}

// AllocPD makes a protection domain.
func (a *adapter) AllocPD() (hca.Handle, error) {
	pd, err := a.page.callObject(a.allocPD, a.ctx)
	if err != nil {
		return 0, err
	}
	a.recordObject(pdObject, pd, nil)
	if peek[uintptr](pd, pdContext) != a.ctx {
		return 0, a.unknownLayout("ibv_pd.context")
	}
	return hca.Handle(pd), nil
}

// DeallocPD destroys a protection domain.
func (a *adapter) DeallocPD(pd hca.Handle) error {
	return a.destroyObject(a.page, pdObject, a.deallocPD, pd)
}

// RegMR registers memory.
func (a *adapter) RegMR(pd hca.Handle, mem []byte, access verbs.Access) (hca.MR, error) {
	addr := addressOf(mem)
	mr, err := a.page.callObject(a.regMR, uintptr(pd), addr, uintptr(len(mem)), uintptr(access))
	if err != nil {
		return hca.MR{}, err
	}
	a.recordObject(mrObject, mr, nil)
	if peek[uintptr](mr, mrAddr) != addr || peek[uintptr](mr, mrLength) != uintptr(len(mem)) {
		return hca.MR{}, a.unknownLayout("ibv_mr")
	}
	return hca.MR{Handle: hca.Handle(mr), LKey: peek[uint32](mr, mrLKey), RKey: peek[uint32](mr, mrRKey)}, nil
}

// DeregMR deregisters memory.
func (a *adapter) DeregMR(mr hca.Handle) error {
	return a.destroyObject(a.page, mrObject, a.deregMR, mr)
}

// Aside calls use off the loop.
func (a *adapter) Aside(use func(hca.Adapter) error) error {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return unix.ENODEV
	}
	a.using++
	a.mu.Unlock()
	p, err := a.newPage()
	if err == nil {
		err = use(&aside{adapter: a, page: p})
		p.release()
	}
	a.mu.Lock()
	a.using--
	last := a.last
	if a.using > 0 || last == nil {
		a.mu.Unlock()
		return err
	}
	a.last = nil
	a.mu.Unlock()
	last()
	return err
}

// Close releases the adapter's resources, and waits at most wait for that.
func (a *adapter) Close(wait time.Duration) error {
	done := make(chan struct{})
	back := func() { a.giveBack(); close(done) }
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil
	}
	a.closed = true
	if a.using > 0 {
		a.last = back
	} else {
		go back()
	}
	a.mu.Unlock()
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	select {
	case <-done:
	case <-timeout.C:
	}
	return nil
}

// giveBack destroys the remaining objects, and closes the device. Errors mean that the device is
// gone; the library has then freed its memory nevertheless.
func (a *adapter) giveBack() {
	p := a.page
	for kind, v := range [kinds]verb{a.destroyQP, a.destroyAH, a.destroyCQ, a.destroySRQ, a.deregMR, a.deallocPD} {
		for _, o := range a.objects[kind] {
			a.ackEvents(p, o)
			_ = p.callStatus(v, o.addr)
			unmapOnce(&o.mem)
		}
		clear(a.objects[kind])
	}
	if a.channel != 0 {
		_ = p.callStatus(a.destroyChannel, a.channel)
	}
	if a.ctx != 0 {
		_ = p.callStatus(a.closeDevice, a.ctx)
	}
	a.sends.release()
	p.release()
}

// ackEvents acknowledges the read events of a completion queue. The library does not destroy a
// queue with unacknowledged events.
func (a *adapter) ackEvents(p *page, o *object) {
	if o.unacked > 0 {
		p.invoke(a.ackCQEvents.addr, o.addr, uintptr(o.unacked))
		o.unacked = 0
	}
}
