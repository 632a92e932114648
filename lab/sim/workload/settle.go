package workload

import (
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
)

// settles is how long a runtime may take to return its resources when nothing is under way and no
// owner retains a message. A closed stream may linger for half of it.
const settles = time.Minute

// awaitReleased waits until the process's runtime has returned all its resources, or fails the
// world. Nothing is under way on it, and it lives. It is called on a goroutine of the process. more
// lists the resources of a package above the runtime.
func (e *Env) awaitReleased(p *world.Process, rt *rdma.Runtime, more ...func() []oracle.Held) {
	l := oracle.Returned{Fail: e.failWorld, Within: settles}
	for !p.Dead() {
		all := listHeld(rt)
		for _, f := range more {
			all = append(all, f()...)
		}
		if l.Look(e.World.Now(), p.Name(), all) {
			return
		}
		p.Sleep(time.Second)
	}
}

// listHeld lists the resources of a runtime, and which part of them is owed later, according to its
// own reports.
func listHeld(rt *rdma.Runtime) (all []oracle.Held) {
	type there struct{ ids, connections int } // on a loop
	by := make(map[string]there)
	for _, i := range rt.Inspect() {
		l := by[i.Loop]
		l.ids++
		if i.Wire != "" {
			l.connections++
			all = append(all,
				oracle.Held{What: "messages wait in " + i.PID.GetId(), Count: i.Credits.Queued},
				oracle.Held{What: "messages of " + i.PID.GetId() + " have no acknowledgement", Count: i.Credits.Unacked},
			)
		}
		all = append(all, oracle.Held{What: "messages in the mailbox of " + i.PID.GetId(), Count: i.Mailbox})
		by[i.Loop] = l
	}
	for _, i := range rt.Loops() {
		l := by[i.Name]
		all = append(all,
			oracle.Held{What: "identifiers counted on " + i.Name, Count: i.Identifiers, Owed: l.ids},
			oracle.Held{What: "connections wait for credits on " + i.Name, Count: i.Waiting},
		)
		memory := 0
		for _, d := range i.Devices {
			memory += d.Memory
			all = append(all, oracle.Held{What: "messages that owners have of " + d.Name + " on " + i.Name, Count: d.Held})
			if l.connections == 0 {
				all = append(all, oracle.Held{What: "queue pairs of " + d.Name + " on " + i.Name, Count: d.Connections})
			}
		}
		for _, m := range i.Memory {
			all = append(all, oracle.Held{What: "connections wait for memory of the pool " + m.Name + " of " + i.Name, Count: m.Waiting})
			h := oracle.Held{What: "bytes used of the pool " + m.Name + " of " + i.Name, Count: m.Used}
			switch {
			case l.connections == 0, m.Name == "send", m.Name == "large":
			case m.Name == "one-sided":
				h.Owed = memory
			default: // receives are posted for connections
				continue
			}
			all = append(all, h)
		}
	}
	return all
}
