package core

import "time"

// ctl is a set of FPDUs to send in addition to the application's.
type ctl uint8

const (
	ctlWrite ctl = 1 << iota // zero-length Write: ready-to-receive, or a kick
	ctlRead                  // zero-length Read Request: ready-to-receive
)

// kickAfter are the pauses before the kicks: 2, 20 and 200 ms after the first FPDU.
var kickAfter = [...]time.Duration{2 * time.Millisecond, 18 * time.Millisecond, 180 * time.Millisecond}

// pacing times the first FPDUs of a connection, until the peer's first one shows that it works. A
// responder's stay behind its Reply (hold-off). An initiator's are repeated with empty Writes
// (kicks): siw's responder can miss an FPDU that comes while it installs its receive callback, and
// looks again when more bytes come.
type pacing struct {
	held  bool  // a responder: nothing may be sent yet
	late  bool  // a responder: when last checked, the peer did not have the Reply
	over  bool  // the peer works, or the last kick was made
	kicks uint8 // armed so far
	due   ctl
	at    time.Time // the hold-off ends, or the next kick is due; zero: neither
}

// armKick starts the kicks with the first FPDU of an initiator.
func (p *pacing) armKick(now time.Time) {
	if p.kicks == 0 && !p.over {
		p.kicks, p.at = 1, now.Add(kickAfter[0])
	}
}

// timeout ends the hold-off, or kicks, if it is time.
func (p *pacing) timeout(now time.Time) {
	if !isDue(p.at, now) {
		return
	}
	p.at = time.Time{}
	switch {
	case p.late: // the peer may have the Reply since just now
		p.at, p.late = now.Add(holdOff), false
	case p.held:
		p.held = false
	default:
		p.due |= ctlWrite
		if p.over = int(p.kicks) == len(kickAfter); !p.over {
			p.at = now.Add(kickAfter[p.kicks])
			p.kicks++
		}
	}
}

// noteFPDU ends the pacing, because a correct FPDU has arrived.
func (p *pacing) noteFPDU() {
	if p.over {
		return
	}
	if p.kicks > 0 {
		p.due &^= ctlWrite
	}
	p.over, p.held, p.at = true, false, time.Time{}
}

// stop takes back what is due. A hold-off stays.
func (p *pacing) stop() { p.due, p.at = 0, time.Time{} }

// HoldOver is true when Timeout would end a responder's pause behind its Reply. See whether the
// peer has acknowledged that, else HoldOn.
func (c *Conn) HoldOver(now time.Time) bool { return c.pacing.held && isDue(c.pacing.at, now) }

// HoldOn reports that the peer has not acknowledged the Reply. Bytes sent now would arrive together
// with the retransmitted Reply, so a whole new pause begins.
func (c *Conn) HoldOn(now time.Time) {
	c.pacing.at, c.pacing.late = now.Add(holdOff), true
}
