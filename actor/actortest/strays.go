package actortest

import (
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// strays finds messages that were sent to another process's PID. A PID is valid in its ActorSystem
// only, so such a message is a dead letter, and all that the test would report is that the program
// is never done.
type strays struct {
	names map[string]string // of the processes, by the part of PIDs that is unique to each
}

// digits is the length of the part of a PID that counts the actors of a process.
const digits = 6

// watchProcess makes a process that has just started use PIDs that no other process has, and fails
// w when it sends to a PID of another.
func (s *strays) watchProcess(p *world.Process, w *world.World) {
	if s.names == nil {
		s.names = make(map[string]string)
	}
	sys := p.System()
	sys.ProcessRegistry.SequenceID = uint64(len(s.names)+1) << (6 * digits) // a digit has 6 bits
	own := processOf(sys.ProcessRegistry.NextID())
	s.names[own] = p.Name()
	local := sys.Address() // of a system without remoting
	sys.EventStream.Subscribe(func(ev any) {
		d, ok := ev.(*actor.DeadLetterEvent)
		if !ok || d.PID == nil || d.PID.Address != local || p.Dead() {
			return
		}
		if of := processOf(d.PID.Id); of != own && s.names[of] != "" {
			w.Fail("%s has sent a %T to %s, which is a PID of %s: a PID is valid in its process only. Between machines messages need a connection",
				p.Name(), d.Message, d.PID.Id, s.names[of])
		}
	})
}

// processOf returns the part of a PID's id that is unique to its process; "": there is none.
func processOf(id string) string {
	_, number, _ := strings.Cut(id, "$")
	number, _, _ = strings.Cut(number, "/")
	return number[:max(len(number)-digits, 0)]
}
