package metrics

// perSide is how many calls are under way.
var perSide = func() (g group[int]) {
	g.add(Definition{"rpc", "in_flight", Gauge, None, []string{"side"}, "Calls that are under way."}, func(n int) float64 { return float64(n) })
	return g
}()

// Calls is a *rpc.Server or a *rpc.Client.
type Calls interface{ InFlight() int }

// readCalls calls the program's functions.
func (s *Source) readCalls() (all []Sample) {
	for _, side := range []struct {
		name  string
		calls func() []Calls
	}{{"server", s.cfg.Servers}, {"client", s.cfg.Clients}} {
		if side.calls == nil {
			continue
		}
		n := 0
		for _, c := range side.calls() {
			n += c.InFlight()
		}
		all = perSide.samples(all, n, side.name)
	}
	return all
}
