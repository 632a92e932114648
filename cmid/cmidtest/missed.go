package cmidtest

import "fmt"

// Fault is something that was asked to go wrong: by Silence, Drop, LatencyFor, RunOut or Cut. Its
// method is for any goroutine.
type Fault struct {
	f        *Fabric
	what     string
	left     int // how often it has still to happen
	asked    int
	optional bool
}

// Optional says that it need not happen: Missed does not tell of it.
func (x *Fault) Optional() {
	if x.f != nil {
		x.f.mu.Lock()
		defer x.f.mu.Unlock()
	}
	x.optional = true
}

// Missed lists the faults that were asked for and have not happened, or not as often: a message of
// that kind was never sent, nobody has spoken to that address, nothing was made after RunOut. A
// test with such a fault has not tested what it says. Any goroutine.
func (f *Fabric) Missed() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.faults.asked {
		switch {
		case x.left == 0 || x.optional:
		case x.left == x.asked:
			all = append(all, x.what+" has never happened")
		default:
			all = append(all, fmt.Sprintf("%s has happened %d times only", x.what, x.asked-x.left))
		}
	}
	return all
}

// ask notes a fault that should happen n times. f.mu is held.
func (f *Fabric) ask(n int, format string, args ...any) *Fault {
	x := &Fault{f: f, what: fmt.Sprintf(format, args...), left: n, asked: n}
	f.faults.asked = append(f.faults.asked, x)
	return x
}

// hit notes that it has happened, if there is such a fault. f.mu is held.
func (x *Fault) hit() (was bool) {
	if x != nil && x.left > 0 {
		x.left--
	}
	return x != nil
}
