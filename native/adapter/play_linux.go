package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm"
	"github.com/rdmactor/rdmactor/internal/conformance"
	"github.com/rdmactor/rdmactor/internal/kernelrig"
	"github.com/rdmactor/rdmactor/native"
)

const (
	// suiteTime is a suite's time limit. An adapter needs a minute or two, an emulated machine ten.
	suiteTime = 30 * time.Minute
	patience  = 30 * time.Second // for one answer
)

// runPlanAndExit runs the suite of this process's plan, if it has one, and then ends the process.
func runPlanAndExit() bool {
	text := os.Getenv(planned)
	if text == "" {
		return false
	}
	var p plan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", planned, err)
		os.Exit(2)
	}
	run := "^" + p.Suite + "$"
	if p.Pattern != "" {
		run += "/" + p.Pattern
	}
	os.Args = []string{os.Args[0], "-test.v=test2json", "-test.run=" + run, "-test.timeout=" + suiteTime.String()}
	testing.Main(regexp.MatchString, []testing.InternalTest{
		{Name: conformanceSuite, F: func(t *testing.T) {
			conformance.Run(t, func(*testing.T) conformance.Rig { return p.newRig() })
		}},
		{Name: loopbackSuite, F: func(t *testing.T) { runLoopback(t, &p) }},
	}, nil, nil)
	return true
}

// newDriver returns a program's rdma_cm driver.
func (p *plan) newDriver() cmid.Driver {
	var cfg ucm.Config
	if p.Library {
		cfg.Provider = native.Provider{}
	}
	return ucm.New(cfg)
}

// newRig returns the device with both sides on its address. The suite changes nothing on the
// machine: tests that need a second address, an unanswered one or a device's end are skipped.
func (p *plan) newRig() conformance.Rig {
	d := p.newDriver()
	r := conformance.Rig{
		Active: d, Passive: d, Address: p.Address, Second: p.Second, Local: p.Address, Other: p.Other, Plain: p.Plain,
		NotLocal:   netip.MustParseAddr("198.51.100.1"), // of RFC 5737: unassigned
		Privileged: isPrivileged(p.Address), Datagrams: !p.IWARP, Patience: patience,
		Differences: kernelrig.Differences(p.Driver, p.Release),
	}
	if nowhere := netip.MustParseAddr("2001:db8::1"); !hasRoute(nowhere) { // of RFC 3849
		r.NoRoute = nowhere
	}
	if p.Address.Is6() {
		r.NotLocal = netip.MustParseAddr("2001:db8::1")
	}
	return r
}

// isPrivileged reports whether this process may use ports below 1024.
func isPrivileged(at netip.Addr) bool {
	const discard = 9
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(at, discard)))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

// hasRoute reports whether there is a route. It sends nothing.
func hasRoute(to netip.Addr) bool {
	const discard = 9
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, discard)))
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}
