package doctor

import (
	"slices"
	"strings"
	"testing"
)

// healthy returns the report of a machine where nothing is missing.
func healthy() *Report {
	return &Report{
		subsystem: true, Limits: Limits{LockedMemory: unlimited, OpenFiles: 1024}, CM: Node{Path: "/dev/infiniband/rdma_cm"},
		Library: &Library{File: "libibverbs.so.1.14.0", Devices: []string{"mlx5_0"}, Drivers: []string{"libmlx5.so.1.24"}},
		Devices: []Device{{
			Name: "mlx5_0", Driver: "mlx5", Transport: "RoCE", Path: "libibverbs", Addresses: []string{"192.0.2.1"}, Limits: &Capability{QueuePairs: 7},
			Ports: []Port{{Number: 1, State: "DOWN"}, {Number: 2, State: "ACTIVE", LinkLayer: "Ethernet", Netdev: "eth0", MTU: 9000, GIDs: []GID{{2, "RoCE v2", "192.0.2.1", "eth0"}}}},
		}},
	}
}

func TestNothingMissing(t *testing.T) {
	r := healthy()
	r.judgeDevices()
	if !r.Usable || !r.Devices[0].Usable || len(r.Missing) > 0 {
		t.Errorf("%+v", r)
	}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"mlx5_0: usable, by libibverbs, 192.0.2.1", "driver mlx5, RoCE", "port 2: ACTIVE", "Ethernet, eth0 with MTU 9000", "GID 2: 192.0.2.1, RoCE v2, eth0",
		"at most 7 queue pairs", "libibverbs.so.1.14.0, drivers libmlx5.so.1.24; it lists mlx5_0", "locked memory unlimited", "Nothing is missing.",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, b.String())
		}
	}
}

// TestMissing removes one thing at a time. Whatever is missing has a remedy.
func TestMissing(t *testing.T) {
	for name, c := range map[string]struct {
		take      func(r *Report)
		usable    bool
		what, way string // of the first entry in Missing
	}{
		"the kernel has no RDMA": {func(r *Report) {
			*r = Report{CM: Node{Error: "no such file"}, Limits: r.Limits, Netdevs: []string{"eth7"}}
		}, false, "ib_core", "rdma link add rxe0 type rxe netdev eth7"},
		"no device":          {func(r *Report) { r.Devices = nil }, false, "no RDMA device", "--device iwarp"},
		"rdma_cm is missing": {func(r *Report) { r.CM = Node{Error: "open rdma_cm: no such file", Way: "modprobe rdma_ucm"} }, false, "open rdma_cm", "modprobe rdma_ucm"},
		"no library": {func(r *Report) {
			r.Library = &Library{Error: "libibverbs.so.1: not found", Way: "apt install libibverbs1"}
		}, true, "libibverbs.so.1: not found", "apt install"},
		"no data path": {func(r *Report) {
			r.Devices[0].Path, r.Devices[0].Error, r.Devices[0].Way = "", "no driver for mlx5_0: install ibverbs-providers", "install ibverbs-providers"
		}, false, "no driver for mlx5_0", "ibverbs-providers"},
		"no port":        {func(r *Report) { r.Devices[0].Ports = nil }, false, "no port", "dmesg"},
		"all ports down": {func(r *Report) { r.Devices[0].Ports[1].State = "DOWN" }, false, "port 1 is DOWN, port 2 is DOWN", "ip link set eth0 up"},
		"a subnet manager": {func(r *Report) {
			r.Devices[0].Transport, r.Devices[0].Ports[1].State = "InfiniBand", "INIT"
		}, false, "port 2 is INIT", "subnet manager"},
		"no address":     {func(r *Report) { r.Devices[0].Addresses = nil }, false, "no IP address", "ip addr add 192.0.2.1/24 dev eth0"},
		"no IPoIB":       {func(r *Report) { r.Devices[0].Addresses, r.Devices[0].Transport = nil, "InfiniBand" }, false, "no IP address", "ib_ipoib"},
		"little memory":  {func(r *Report) { r.Limits.LockedMemory = 8 << 20 }, true, "8388608 bytes: a connection pins 0.8 MB, so there is room for some 10", "ulimit -l"},
		"few open files": {func(r *Report) { r.Limits.OpenFiles = 64 }, true, "64 open files", "ulimit -n"},
		"few threads": {
			func(r *Report) { r.Limits.Threads, r.Limits.ThreadLimit = 9, "/g/pids.max is 20, and 11 are used" }, true,
			"9 more threads: /g/pids.max is 20", "TasksMax=",
		},
		"few objects": {
			func(r *Report) { r.Devices[0].Groups = []GroupLimit{{"/g/rdma.max", "hca_object", 40, 20}} }, true,
			"hca_object in /g/rdma.max allows 40 for mlx5_0, and 20 are used", "echo mlx5_0 hca_object=max > /g/rdma.max",
		},
		"no handle": {
			func(r *Report) { r.Devices[0].Groups = []GroupLimit{{"/g/rdma.max", "hca_handle", 2, 3}} }, true,
			"hca_handle in /g/rdma.max allows 2 for mlx5_0, and 3 are used", "echo mlx5_0 hca_handle=max > /g/rdma.max",
		},
		"a handle is left": {func(r *Report) { r.Devices[0].Groups = []GroupLimit{{"/g/rdma.max", "hca_handle", 3, 2}} }, true, "", ""},
		"a GUID": {
			func(r *Report) { r.Devices[0].Addresses, r.Devices[0].guid, r.unmatched = nil, 7, true }, false,
			"no IP address", "ip addr add",
		},
		"no GUID":            {func(r *Report) { r.Devices[0].Addresses, r.unmatched = nil, true }, false, "mlx5_0 cannot be found by its addresses: its node GUID is 0", "vf N node_guid"},
		"memory that may be": {func(r *Report) { r.Limits = Limits{LockedMemory: 1, MayLock: true, OpenFiles: 1024} }, true, "", ""},
	} {
		r := healthy()
		c.take(r)
		r.judgeDevices()
		if r.Usable != c.usable {
			t.Errorf("%s: usable: %v", name, r.Usable)
		}
		switch {
		case c.what == "" && len(r.Missing) > 0:
			t.Errorf("%s: %q", name, r.Missing)
		case c.what == "":
		case len(r.Missing) == 0 || !strings.Contains(r.Missing[0].What, c.what) || !strings.Contains(r.Missing[0].Way, c.way):
			t.Errorf("%s: %q; want %q, %q", name, r.Missing, c.what, c.way)
		}
		if slices.ContainsFunc(r.Missing, func(m Missing) bool { return m.Way != "" && strings.Contains(m.What, m.Way) }) {
			t.Errorf("%s: the way out is there twice: %q", name, r.Missing)
		}
		if slices.ContainsFunc(r.Missing, func(m Missing) bool { return m.Way == "" }) {
			t.Errorf("%s: no way out: %q", name, r.Missing)
		}
	}
}

// TestOrder: problems that make every device unusable are reported before limits.
func TestOrder(t *testing.T) {
	r := healthy()
	r.Limits = Limits{}
	r.CM = Node{Error: "open rdma_cm: permission denied", Way: "chmod"}
	r.Devices[0].Ports = nil
	r.judgeDevices()
	var got []string
	for _, m := range r.Missing {
		word, _, _ := strings.Cut(m.What, " ")
		got = append(got, word)
	}
	if want := []string{"connections", "mlx5_0", "RLIMIT_MEMLOCK", "this"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
