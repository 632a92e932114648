package main

import (
	"fmt"
	"slices"
	"strings"
)

// A benchmark is one that both trees may have.
type benchmark struct {
	pkg   string // folder of its package
	bench string // its name behind Benchmark, with the parts of sub-benchmarks
	ops   int    // iterations of a run: some tenths of a second
	cpus  int    // GOMAXPROCS
}

// benchmarks are what users notice: a message, a call, a stream's item, a connection, and what an
// idle one holds.
var benchmarks = []benchmark{
	{"actor", "OneWay", 600_000, 1},
	{"actor", "OneWaySecured", 300_000, 1},
	{"actor", "Connect/insecure", 1_000, 1},
	{"actor", "Connect/PSK", 300, 1},
	{"actor", "Idle", 1_000, 1},
	{"rdmanet", "Echo/rdma", 10_000, 2},
	{"remoting", "Request/loop", 10_000, 2},
	{"remoting", "OneWay/loop", 200_000, 2},
	{"rpc", "Unary/OnLoop", 10_000, 2},
	{"rpc", "Unary/Goroutine", 10_000, 2},
	{"rpc", "Unary64Callers/OnLoop", 100_000, 2},
	{"rpc", "Unary64Callers/Goroutine", 100_000, 2},
	{"rpc", "Items", 200_000, 2},
}

func (b benchmark) name() string { return b.pkg + " " + b.bench }

// matches reports whether the name contains one of the parts. All do if there are no parts.
func (b benchmark) matches(parts []string) bool {
	return len(parts) == 0 || slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(b.name(), p) })
}

// testArgs returns the arguments of a test binary for a run.
func (b benchmark) testArgs() []string {
	return []string{
		"-test.run=^$",
		"-test.bench=^Benchmark" + strings.ReplaceAll(b.bench, "/", "$/^") + "$",
		fmt.Sprintf("-test.benchtime=%dx", b.ops),
		fmt.Sprintf("-test.cpu=%d", b.cpus),
		"-test.benchmem",
	}
}
