package main

// plan is the faults of a pair.
type plan struct {
	Name   string
	Mortal side // the side that is killed
	Kinds  []kind
	Scale  scale
}

// soakPlans returns the plans of the long soak. A process that is killed does not live long, so
// there is a pair for each side, and one in which both live.
func soakPlans(s scale, calm scale) []plan {
	mortal := []kind{kill, kill, stop, cut, deaf, down, vanish}
	return []plan{
		{"client killed", client, mortal, s},
		{"server killed", server, mortal, s},
		{"nobody killed", server, []kind{stop, stop, cut, cut, deaf, down}, calm},
	}
}

// isImmortal reports whether a side lives as long as the soak.
func (p *plan) isImmortal(s side) bool {
	for _, k := range p.Kinds {
		if (k == kill || k == vanish) && s == p.Mortal {
			return false
		}
	}
	return true
}
