package workload

import (
	"cmp"
	"fmt"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
)

// dues judges that commands are answered within their documented time, regardless of peers and
// links. Only time in which the process could run counts.
type dues struct {
	oracle.Liveness
	h *connHost
}

// leeway is how long a command may take besides its time-outs: the device's answer to a destroy,
// and owners that block.
const leeway = 3 * time.Second

// goodbye is how long an end may wait until its goodbye has left.
const goodbye = 500 * time.Millisecond

func (h *connHost) newDues() *dues {
	d := &dues{h: h}
	d.Fail = func(format string, args ...any) {
		h.w.e.failWorld("in the time of "+h.p.Name()+": "+format, args...)
	}
	return d
}

// recordCommand records a command; nil: it may take any time.
func (d *dues) recordCommand(id string, cmd rdma.Command) *oracle.Wait {
	within, ok := d.allowedTime(cmd)
	if !ok {
		return nil
	}
	return d.Begin(d.h.p.Awake(), fmt.Sprintf("the answer to the %T of %s", cmd, id), within+leeway)
}

// recordAnswered records that the command was answered.
func (d *dues) recordAnswered(w *oracle.Wait) {
	if w != nil {
		d.judgeWaits()
		w.Over()
	}
}

// judgeWaits judges the outstanding commands.
func (d *dues) judgeWaits() { d.Check(d.h.p.Awake()) }

// allowedTime returns how long a command may take. Not ok: it depends on the peer.
func (d *dues) allowedTime(cmd rdma.Command) (t time.Duration, ok bool) {
	to := d.h.w.e.Config.Timeouts
	address, route := cmp.Or(to.Address, 2*time.Second), cmp.Or(to.Route, 2*time.Second)
	connect, end := cmp.Or(to.Connect, 10*time.Second), cmp.Or(to.Close, 5*time.Second)
	switch cmd.(type) {
	case *rdma.Read, *rdma.Write, *rdma.FetchAdd, *rdma.CompareSwap:
		return 0, false
	case *rdma.Dial:
		return address + route + connect + connect, true // the second connect looks up the name
	case *rdma.Close:
		return end + goodbye, true
	case *cmid.Connect, *cmid.Accept, *cmid.Disconnect:
		return connect + goodbye, true
	}
	return address + goodbye, true
}
