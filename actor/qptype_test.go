package actor

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

// created has the requests to a device.
type created struct {
	ps cmid.PortSpace
	t  cmid.QPType
}

// kindDriver notes what identifiers are made as, and makes those of PortSpaceIB, which its device
// has not, as PortSpaceTCP's.
type kindDriver struct {
	cmid.Driver
	made chan created
}

type kindInstance struct {
	cmid.Instance
	made chan created
}

func (d kindDriver) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	in, err := d.Driver.Open(l, up)
	return kindInstance{in, d.made}, err
}

func (kindInstance) Enclosed() bool { return true }

func (i kindInstance) CreateID(h cmid.Handle, ps cmid.PortSpace, t cmid.QPType) (cmid.DriverID, error) {
	i.made <- created{ps, t}
	if ps == cmid.PortSpaceIB {
		ps = cmid.PortSpaceTCP
	}
	return i.Instance.CreateID(h, ps, t)
}

// The type of queue pair that was asked for is the device's to make, also when a Dial needs another
// identifier for its next address.
// manpages: getaddrinfo-31
func TestQPTypeReachesTheDevice(t *testing.T) {
	for name, r := range map[string]struct {
		opts IDConfig
		want created
	}{
		"nothing":   {IDConfig{}, created{cmid.PortSpaceTCP, cmid.QPTypeRC}},
		"UD":        {IDConfig{QPType: cmid.QPTypeUD}, created{cmid.PortSpaceUDP, cmid.QPTypeUD}},
		"IB":        {IDConfig{PortSpace: cmid.PortSpaceIB}, created{cmid.PortSpaceIB, cmid.QPTypeRC}},
		"IB and UD": {IDConfig{PortSpace: cmid.PortSpaceIB, QPType: cmid.QPTypeUD}, created{cmid.PortSpaceIB, cmid.QPTypeUD}},
		"IB and RC": {IDConfig{QPType: cmid.QPTypeRC, PortSpace: cmid.PortSpaceIB}, created{cmid.PortSpaceIB, cmid.QPTypeRC}},
	} {
		t.Run(name, func(t *testing.T) {
			made := make(chan created, 8)
			inWorldOver(t, 0, func(d cmid.Driver) cmid.Driver { return kindDriver{d, made} }, func(w *world) {
				w.rt.resolve = addresses(there+":1", there+":2")
				p := w.probe()
				id := w.rt.CreateID(p.pid, r.opts)
				p.send(id, &Dial{Addr: "there:1"})
				until[Failure](p)
				if n := len(made); n != 2 {
					w.Errorf("%d identifiers for two addresses", n)
				}
				for len(made) > 0 {
					if got := <-made; got != r.want {
						w.Errorf("the device was asked for %v and %v, want %v and %v", got.ps, got.t, r.want.ps, r.want.t)
					}
				}
			})
		})
	}
}

// When the queue pair's type does not exist, the first answer reports that, and the identifier
// ends.
func TestQPTypeThatIsNot(t *testing.T) {
	for name, r := range map[string]struct {
		opts  IDConfig
		errno unix.Errno
	}{
		"UC":         {IDConfig{QPType: cmid.QPTypeUC}, unix.EPROTONOSUPPORT},
		"any number": {IDConfig{QPType: 200}, unix.EPROTONOSUPPORT},
		"UD and TCP": {IDConfig{QPType: cmid.QPTypeUD, PortSpace: cmid.PortSpaceTCP}, unix.EINVAL},
		"RC and UDP": {IDConfig{QPType: cmid.QPTypeRC, PortSpace: cmid.PortSpaceUDP, Raw: true}, unix.EINVAL},
	} {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				p := w.probe()
				id := w.rt.CreateID(p.pid, r.opts)
				p.send(id, &cmid.BindAddr{Addr: MustAddr(here + ":0")})
				if c := closed(p); !errors.Is(c.Err, r.errno) {
					w.Errorf("closed because of %v, want %v", c.Err, r.errno)
				}
				if s, ok := w.state(id); ok {
					w.Errorf("the identifier is there, and %v", s)
				}
			})
		})
	}
}

// closed returns the end of a probe's identifier.
func closed(p *probe) *Closed {
	p.tb.Helper()
	all := until[*Closed](p)
	return all[len(all)-1].msg.(*Closed)
}

// The embedded device has no datagrams, and reports that, whichever way they were asked for.
func TestQPTypeOfTheEmbeddedDevice(t *testing.T) {
	for name, cfg := range map[string]IDConfig{
		"UD": {QPType: cmid.QPTypeUD},
		"IB": {PortSpace: cmid.PortSpaceIB, QPType: cmid.QPTypeUD, MaxMessage: kib, Credits: 4},
	} {
		t.Run(name, func(t *testing.T) {
			sys := testSystem(t)
			rt := openIWARP(t, sys)
			p := newProbe(t, sys, rt.OnLoop(), nil)
			id := rt.CreateID(p.pid, cfg)
			p.send(id, &cmid.BindAddr{Addr: MustAddr("127.0.0.1:0")})
			if c := closed(p); !errors.Is(c.Err, unix.EPROTONOSUPPORT) {
				t.Errorf("closed because of %v, want EPROTONOSUPPORT", c.Err)
			}
		})
	}
}

// An identifier for datagrams is one whichever way it was asked for.
func TestDatagramsByQPType(t *testing.T) {
	for name, cfg := range map[string]IDConfig{
		"alone": {}, "and its port space": {PortSpace: cmid.PortSpaceUDP}, "raw": {Raw: true}, "manual": {Manual: true}, "messages": {MaxMessage: 1 << 20, Credits: 4},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, infiniband, func(w *world) {
				cfg.QPType = cmid.QPTypeUD
				datagram(w, w.sys, w.rt, w.far, there, cfg)
			})
		})
	}
}
