package conformance

import "testing"

// Run compares a driver with Linux's rdma_cm (above the state machine's guards) and with the
// promises of the manual pages. It calls open for each subtest, so that each has its own drivers
// and loops.
func Run(t *testing.T, open func(t *testing.T) Rig) {
	r := &run{open: open, used: make(map[What]bool)}
	for _, group := range []struct {
		name string
		run  func(t *testing.T, r *run)
	}{
		{"oracle", oracle},
		{"bind_addr", bindAddrScenarios.run},
		{"resolve_addr", resolveAddrScenarios.run},
		{"listen", listenScenarios.run},
		{"connect", connectScenarios.run},
		{"disconnect", disconnectScenarios.run},
		{"destroy", destroyScenarios.run},
		{"migration", migrationScenarios.run},
		{"init_qp_attr", attrScenarios.run},
		{"transport", transportScenarios.run},
		{"ece", eceScenarios.run},
		{"set_ib_path", pathScenarios.run},
		{"user events", userEventScenarios.run},
		{"data", dataScenarios.run},
		{"immediate data", immediateScenarios.run},
		{"write with immediate", writeImmScenarios.run},
		{"memory", memoryScenarios.run},
		{"remote access", accessScenarios.run},
		{"remote access of a queue pair", qpAccessScenarios.run},
		{"atomics", atomicScenarios.run},
		{"domains", domainScenarios.run},
		{"notification", notifyScenarios.run},
		{"datagrams", datagramsScenarios.run},
		{"datagram data", datagramDataScenarios.run},
		{"multicast", multicastScenarios.run},
		{"device", deviceRemoval},
		{"channel", channel},
	} {
		r.left++
		t.Run(group.name, func(t *testing.T) {
			r.left--
			group.run(t, r)
		})
	}
	if r.left > 0 {
		return
	}
	for _, d := range open(t).Differences {
		if d.Why == "" {
			t.Errorf("difference %q has no reason", d.What)
		}
		if !r.used[d.What] {
			t.Errorf("difference %q does not show", d.What)
		}
	}
}
