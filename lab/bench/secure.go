package main

import (
	"slices"

	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
)

// modes are the modes of secured connections, with the AEAD of each.
var modes = []struct{ name, aead string }{{"PSK", "AES-256-GCM"}, {"TLS", "AES-128-GCM"}}

// securedEntries returns this project's contestants without security and in each mode, followed by
// the others.
func securedEntries(ours []string, others ...string) []measure.Entry {
	return slices.Concat(contest.EachMode(contest.Blocking(ours...)), contest.Blocking(others...))
}

// completeCosts completes a scenario: each of ours in each mode against the same without security.
// what names the comparison.
func completeCosts(s measure.Scenario, what, metric string, bar barFunc, bound float64, ours ...string) measure.Scenario {
	s.On, s.Paired, s.Base = measure.SameCPU, true, ours[0]
	for _, name := range ours {
		for _, m := range modes {
			s.Bars = append(s.Bars, bar(bound, what+", "+name+" "+m.name+", against insecure", metric, name+" "+m.name, name),
				measure.Published("the same: CPU", measure.CPUPer, name+" "+m.name, name))
		}
	}
	return s
}

// sumBars returns bars for 1 MiB messages in each mode, against the sum of sealing and opening them
// and of sending them without security.
func sumBars() (bars []measure.Bar) {
	for _, m := range modes {
		bars = append(bars, measure.AtMost(1.2, "1 MiB message, "+m.name+", against insecure and AEAD apart: time", measure.MicrosPer,
			"actor "+m.name, "actor").With(m.aead),
			measure.Published("the same: CPU", measure.CPUPer, "actor "+m.name, "actor").With(m.aead))
	}
	return bars
}

// tlsToo returns a bar without an aim: actors in TLS mode against crypto/tls over TCP.
func tlsToo(what, metric string) measure.Bar {
	return measure.Published(what+", TLS, against crypto/tls over TCP", metric, "actor TLS", "crypto/tls")
}

// barFunc is measure.AtMost, measure.AtLeast or publishedBar.
type barFunc = func(bound float64, what, metric, entry string, base ...string) measure.Bar

// publishedBar returns a bar without an aim: it ignores the bound.
func publishedBar(_ float64, what, metric, entry string, base ...string) measure.Bar {
	return measure.Published(what, metric, entry, base...)
}

var (
	messageColumns = []string{measure.PerSecond, measure.MiBPerS, measure.CPUPer, measure.AllocsPer}
	tripColumns    = []string{measure.P50, measure.P90, measure.P99, measure.CPUPer, measure.AllocsPer}
	aead           = contest.AEAD{Size: largeFlow.Size, Window: largeFlow.Window}
)

// secureScenarios compare secured connections with unsecured ones, and with crypto/tls. TLS has
// certificates of both sides, and no session is resumed.
var secureScenarios = []measure.Scenario{
	completeCosts(measure.Scenario{
		Name: "secure-oneway", Title: "Secured messages of 64 B, one way",
		Note:    "4,096 on their way, each 1,024 answered; each message is sealed. One write for each message of net.Conn and crypto/tls.",
		Entries: securedEntries([]string{"actor"}, "net.Conn", "crypto/tls"), Columns: messageColumns,
		Bars:  []measure.Bar{tlsToo("messages/s of 64 B", measure.PerSecond)},
		Serve: smallFlow.Serve, Dial: smallFlow.Dial,
	}, "messages/s of 64 B", measure.PerSecond, measure.AtLeast, 0.6, "actor"),
	completeCosts(measure.Scenario{
		Name: "secure-calls", Title: "Secured calls, 64 B, 64 goroutines on one connection",
		Note:    "Coalesced calls are sealed together, once.",
		Entries: securedEntries([]string{"rpc-onloop", "rpc"}),
		Columns: []string{measure.PerSecond, measure.CPUPer, measure.AllocsPer, measure.P50, measure.P99},
		Serve:   contestants.Serve, Dial: contestants.DialMany,
	}, "calls/s, 64 callers", measure.PerSecond, measure.AtLeast, 0.8, "rpc-onloop", "rpc"),
	completeCosts(measure.Scenario{
		Name: "secure-call", Title: "Secured calls, 64 B, 1 caller",
		Entries: securedEntries([]string{"rpc-onloop", "rpc"}), Columns: tripColumns,
		Serve: contestants.Serve, Dial: contestants.Dial,
	}, "call, 1 caller: p50", measure.P50, measure.AtMost, 1.2, "rpc-onloop", "rpc"),
	completeCosts(measure.Scenario{
		Name: "secure-echo", Title: "Secured echo of 64 B, 1 caller",
		Entries: securedEntries([]string{"actor"}, "net.Conn", "crypto/tls"), Columns: tripColumns,
		Bars:  []measure.Bar{tlsToo("echo of 64 B: p50", measure.P50)},
		Serve: contestants.Serve, Dial: contestants.Dial,
	}, "echo of 64 B: p50", measure.P50, publishedBar, 0, "actor"),
	completeCosts(measure.Scenario{
		Name: "secure-bulk", Title: "Secured messages of 1 MiB, one way, CRC off",
		Note: "16 on their way, each 4 answered. The AEADs seal and open 16 messages in turn, in one process, and send none. " +
			"crypto/tls has AES-128-GCM, as TLS mode; PSK mode has AES-256-GCM.",
		Entries: slices.Concat(securedEntries([]string{"actor"}, "net.Conn", "crypto/tls"), contest.Blocking(modes[0].aead, modes[1].aead)),
		Columns: []string{measure.MicrosPer, measure.MiBPerS, measure.CPUPer, measure.AllocsPer},
		Bars:    append(sumBars(), tlsToo("1 MiB message: time", measure.MicrosPer)),
		Serve:   serveBulk, Dial: dialBulk,
	}, "1 MiB message: time", measure.MicrosPer, publishedBar, 0, "actor"),
	completeCosts(measure.Scenario{
		Name: "secure-connect", Title: "One secured connection at a time, established on both sides",
		Note: "TCP's includes a round trip, and crypto/tls's handshake before it. TLS has certificates of both sides, and resumes no session. " +
			"All stay open, so that no close is measured.",
		Entries: securedEntries([]string{"actor"}, "net.Conn", "crypto/tls"), Columns: tripColumns,
		Bars:  []measure.Bar{tlsToo("connection: p50", measure.P50), tlsToo("connection: CPU", measure.CPUPer)},
		Serve: contest.ServeConnect, Dial: contest.DialConnect,
	}, "connection: p50", measure.P50, publishedBar, 0, "actor"),
}

// isBareAEAD reports whether the entry is an AEAD that sends nothing.
func isBareAEAD(e measure.Entry) bool {
	return slices.ContainsFunc(modes, func(m struct{ name, aead string }) bool { return m.aead == e.Contestant })
}

func serveBulk(e measure.Entry) (measure.Service, error) {
	if isBareAEAD(e) {
		return aead.Serve(e)
	}
	return largeFlow.Serve(e)
}

func dialBulk(addr string, e measure.Entry) (measure.Client, error) {
	if isBareAEAD(e) {
		return aead.Dial(addr, e)
	}
	return largeFlow.Dial(addr, e)
}
