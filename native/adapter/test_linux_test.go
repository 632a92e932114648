package main

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/internal/doctor"
)

// machine returns a report of two usable devices, and one that is not.
func machine() *doctor.Report {
	can := &doctor.Capability{Atomics: true}
	return &doctor.Report{Kernel: "6.12.1", Usable: true, Devices: []doctor.Device{
		{Name: "mlx5_0", Driver: "mlx5", Limits: can, Addresses: []string{"192.0.2.9"}},
		{Name: "mlx5_1", Driver: "mlx5", Limits: can, Usable: true, Addresses: []string{"2001:db8::5", "192.0.2.1", "192.0.2.2", "2001:db8::6"}},
		{Name: "irdma0", Driver: "irdma", Transport: "iWARP", Limits: &doctor.Capability{}, Usable: true, Addresses: []string{"198.51.100.1"}},
	}}
}

func TestPlan(t *testing.T) {
	a := netip.MustParseAddr
	mlx := plan{Device: "mlx5_1", Driver: "mlx5", Release: "6.12.1", Atomics: true, Address: a("192.0.2.1"), Second: a("192.0.2.2"), Other: a("198.51.100.1")}
	six := mlx
	six.Address, six.Second, six.Other = a("2001:db8::6"), a("2001:db8::5"), netip.Addr{}
	for on, want := range map[string]plan{
		"":            mlx,
		"mlx5_1":      mlx,
		"2001:db8::6": six,
		"198.51.100.1": {
			Device: "irdma0", Driver: "irdma", Release: "6.12.1", IWARP: true, Address: a("198.51.100.1"), Other: a("192.0.2.1"),
		},
	} {
		if p, err := (&options{on: on}).makePlan(machine()); err != nil || p != want {
			t.Errorf("%q: %+v, %v; want %+v", on, p, err, want)
		}
	}
	for on, want := range map[string]string{"mlx5_0": "not usable", "192.0.2.9": "not usable", "mlx5_7": "is called mlx5_7"} {
		if p, err := (&options{on: on}).makePlan(machine()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v", on, p, err)
		}
	}
	if _, err := (&options{}).makePlan(&doctor.Report{}); !errors.Is(err, doctor.ErrUnusable) {
		t.Errorf("no device: %v", err)
	}
}

// TestSuiteWithoutItsDevice runs a suite, in a separate process, on an unassigned address: it
// fails, and reports the cause.
func TestSuiteWithoutItsDevice(t *testing.T) {
	p := plan{Suite: loopbackSuite, Address: netip.MustParseAddr("198.51.100.1")}
	r, err := p.runProcess(t.Context(), false, nil)
	if err == nil || r.allPassed() {
		t.Fatalf("%v, %+v", err, r)
	}
	var b bytes.Buffer
	r.writeTable(&b, loopbackSuite)
	if !strings.Contains(b.String(), "FAIL TestLoopback") || !strings.Contains(b.String(), "loopback_linux.go") {
		t.Errorf("it does not say why:\n%s", b.String())
	}
}

// TestInterrupted: the suites' process ends with the command.
func TestInterrupted(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	p := plan{Suite: conformanceSuite, Address: netip.MustParseAddr("198.51.100.1")}
	if r, err := p.runProcess(ctx, false, nil); err == nil {
		t.Errorf("%+v", r)
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{{"mlx5_0", "-v", "--groups", "data"}, {"--groups=data", "-v", "mlx5_0"}} {
		if o, err := parseOptions(args, nil); err != nil || o != (options{on: "mlx5_0", chat: true, groups: "data"}) {
			t.Errorf("%q: %+v, %v", args, o, err)
		}
	}
	for _, args := range [][]string{{"a", "b"}, {"--suite", "x"}, {"--no"}} {
		if o, err := parseOptions(args, nil); err == nil {
			t.Errorf("%q: %+v", args, o)
		}
	}
}

// TestGrown: fewer objects are accepted, and a new kind is not.
func TestGrown(t *testing.T) {
	if s := listGrown(map[string]uint64{"qp": 3, "mr": 2}, map[string]uint64{"qp": 4, "mr": 1, "pd": 1, "cq": 0}); s != "pd 1 instead of 0, qp 4 instead of 3" {
		t.Errorf("%q", s)
	}
	if clean, left := waitSettled(t.Context(), "x", nil, errors.New("no netlink")); clean || !strings.Contains(left, "no netlink") {
		t.Errorf("%v, %q", clean, left)
	}
}
