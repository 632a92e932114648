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

// playing runs the suite of this process's plan, if it has one, and then ends the process.
func playing() bool {
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
			conformance.Run(t, func(*testing.T) conformance.Rig { return p.rig() })
		}},
		{Name: loopbackSuite, F: func(t *testing.T) { loopback(t, &p) }},
	}, nil, nil)
	return true
}

// driver returns a program's rdma_cm driver.
func (p *plan) driver() cmid.Driver {
	var cfg ucm.Config
	if p.Library {
		cfg.Provider = native.Provider{}
	}
	return ucm.New(cfg)
}

// rig returns the device with both sides on its address. The suite changes nothing on the machine:
// tests that need a second address, an unanswered one or a device's end are skipped.
func (p *plan) rig() conformance.Rig {
	d := p.driver()
	r := conformance.Rig{
		Active: d, Passive: d, Address: p.Address, Second: p.Second, Local: p.Address, Other: p.Other, Plain: p.Plain,
		NotLocal:   netip.MustParseAddr("198.51.100.1"), // of RFC 5737: unassigned
		Privileged: privileged(p.Address), Datagrams: !p.IWARP, Patience: patience,
		Differences: kernelrig.Differences(p.Driver, p.Release),
	}
	if nowhere := netip.MustParseAddr("2001:db8::1"); !routed(nowhere) { // of RFC 3849
		r.NoRoute = nowhere
	}
	if p.Address.Is6() {
		r.NotLocal = netip.MustParseAddr("2001:db8::1")
	}
	return r
}

// privileged reports whether this process may use ports below 1024.
func privileged(at netip.Addr) bool {
	const discard = 9
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(at, discard)))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

// routed reports whether there is a route. It sends nothing.
func routed(to netip.Addr) bool {
	const discard = 9
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, discard)))
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}
