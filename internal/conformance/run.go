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
		{"oracle", testOracle},
		{"bind_addr", bindAddrScenarios.runAll},
		{"resolve_addr", resolveAddrScenarios.runAll},
		{"listen", listenScenarios.runAll},
		{"connect", connectScenarios.runAll},
		{"disconnect", disconnectScenarios.runAll},
		{"destroy", destroyScenarios.runAll},
		{"migration", migrationScenarios.runAll},
		{"init_qp_attr", attrScenarios.runAll},
		{"transport", transportScenarios.runAll},
		{"ece", eceScenarios.runAll},
		{"set_ib_path", pathScenarios.runAll},
		{"user events", userEventScenarios.runAll},
		{"data", dataScenarios.runAll},
		{"immediate data", immediateScenarios.runAll},
		{"write with immediate", writeImmScenarios.runAll},
		{"memory", memoryScenarios.runAll},
		{"remote access", accessScenarios.runAll},
		{"remote access of a queue pair", qpAccessScenarios.runAll},
		{"atomics", atomicScenarios.runAll},
		{"domains", domainScenarios.runAll},
		{"notification", notifyScenarios.runAll},
		{"datagrams", datagramsScenarios.runAll},
		{"datagram data", datagramDataScenarios.runAll},
		{"multicast", multicastScenarios.runAll},
		{"device", deviceRemoval},
		{"channel", testChannel},
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
