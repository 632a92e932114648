package differential

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// wrong is a driver with a mistake.
type wrong struct {
	cmid.Driver
	do    func(cmid.Command, error) error // what Do answers instead
	event func(*cmid.DriverEvent)         // changes what is delivered
}

func (d wrong) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	inst, err := d.Driver.Open(l, wrongUpcalls{up, d})
	return wrongInstance{inst, d}, err
}

type wrongInstance struct {
	cmid.Instance
	d wrong
}

func (w wrongInstance) CreateID(h cmid.Handle, ps cmid.PortSpace, t cmid.QPType) (cmid.DriverID, error) {
	id, err := w.Instance.CreateID(h, ps, t)
	return wrongID{id, w.d}, err
}

type wrongID struct {
	cmid.DriverID
	d wrong
}

func (w wrongID) Do(cmd cmid.Command) error {
	err := w.DriverID.Do(cmd)
	if w.d.do != nil {
		err = w.d.do(cmd, err)
	}
	return err
}

type wrongUpcalls struct {
	cmid.Upcalls
	d wrong
}

func (w wrongUpcalls) Event(h cmid.Handle, ev *cmid.DriverEvent) {
	if w.d.event != nil {
		w.d.event(ev)
	}
	w.Upcalls.Event(h, ev)
}

// TestPlanted: a mistake in a driver is found, and shrunk to what it needs.
func TestPlanted(t *testing.T) {
	for name, tt := range map[string]struct {
		d    wrong
		most int // commands in the program
		says string
	}{
		"errno": {
			wrong{do: func(cmd cmid.Command, err error) error {
				if b, ok := cmd.(*cmid.BindAddr); ok && b.Addr.Addr() == netip.MustParseAddr("203.0.113.77") {
					return unix.EADDRINUSE
				}
				return err
			}},
			2, `answer: right has "EADDRNOTAVAIL", wrong has "EADDRINUSE"`,
		},
		"status": {
			wrong{event: func(ev *cmid.DriverEvent) {
				if ev.Kind == states.KindRejected && ev.Status == int32(cmid.RejectVendorOption) {
					ev.Status = int32(cmid.RejectTimeout)
				}
			}},
			9,
			`events other: right has "Rejected(35)", wrong has "Rejected(4)"`,
		},
		"private data": {
			wrong{event: func(ev *cmid.DriverEvent) {
				if ev.Kind == states.KindConnectRequest && len(ev.PrivateData) > 2 {
					ev.PrivateData[2] = 0
				}
			}},
			7,
			`events other: right has "ConnectRequest data=\"abc\"", wrong has "ConnectRequest data=\"ab\""`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			left, right := twinIB, twinIB
			left.Name, right.Name = "right", "wrong"
			right.Open = func() (Rig, error) {
				rig, err := twinIB.Open()
				tt.d.Driver = rig.Driver
				rig.Driver = tt.d
				return rig, err
			}
			h := &Hunt{Pair: &Pair{Name: "planted", Guide: twinIB, Left: left, Right: right}, First: 1, Count: 300, Most: 1, ShrinkFor: time.Minute}
			res, err := h.Run()
			if err != nil {
				t.Fatal(err)
			}
			if len(res.Findings) == 0 {
				t.Fatalf("not found in %d programs", res.Programs)
			}
			f := res.Findings[0]
			if n := strings.Count(f.Program.String(), "("); n > tt.most {
				t.Errorf("shrunk to %d commands, want at most %d:\n%v", n, tt.most, f.Program)
			}
			if !strings.Contains(f.String(), tt.says) {
				t.Errorf("the report is\n%v\nwant in it: %s", f, tt.says)
			}
			if again, err := ParseProgram(f.Program.String()); err != nil || again.String() != f.Program.String() {
				t.Errorf("the listing does not read back: %v, %v", again, err)
			}
		})
	}
}

func must(p Program, err error) Program {
	if err != nil {
		panic(err)
	}
	return p
}

// TestWatch: a command that would harm a kernel does not reach the driver, even when the state
// machine lets it through.
func TestWatch(t *testing.T) {
	rig, err := twinIWARP.Open()
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWorld(rig)
	if err != nil {
		t.Fatal(err)
	}
	prog := must(ParseProgram("p.create(); p.bind(any:0); p.listen(0); a.create(); a.resolve(dev:p); a.route(); a.qp(); a.connect()"))
	for _, turn := range prog {
		w.run(turn, nil)
	}
	a := w.slots["a"].id
	if a.State() != states.Connecting {
		t.Fatalf("state %v, want connecting", a.State())
	}
	driven := w.active.inst.ids[a.Handle()]
	for _, cmd := range []cmid.Command{&cmid.Accept{}, &cmid.Reject{}, &cmid.Establish{}} {
		if err := a.Do(cmd); !errors.Is(err.(error), unix.EINVAL) {
			t.Errorf("%v: the state machine says %v, want EINVAL", cmd.Op(), err)
		}
		if n := w.caught.Load(); n != 0 {
			t.Fatalf("%v came through the state machine", cmd.Op())
		}
		if err := driven.Do(cmd); !errors.Is(err, unix.EPERM) {
			t.Errorf("%v behind the state machine: %v, want EPERM", cmd.Op(), err)
		}
		w.caught.Store(0)
	}
	if err := driven.Do(&cmid.Reject{}); err == nil {
		t.Error("no error")
	}
	if err := w.close(); err == nil || !strings.Contains(err.Error(), "would harm a kernel") {
		t.Errorf("the world's end says %v", err)
	}
}
