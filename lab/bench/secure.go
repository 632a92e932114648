package main

import (
	"slices"

	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
)

// modes are the modes of secured connections, with the AEAD of each.
var modes = []struct{ name, aead string }{{"PSK", "AES-256-GCM"}, {"TLS", "AES-128-GCM"}}

// compareModes completes a scenario: each of ours without security and in each mode, followed by
// the others. If there is a bar, it is for each mode against the same without security.
func compareModes(s measure.Scenario, bar measure.Bar, ours []string, others ...string) measure.Scenario {
	s.On, s.Paired, s.Base = measure.SameCPU, true, ours[0]
	s.Entries = slices.Concat(contest.EachMode(contest.Blocking(ours...)), contest.Blocking(others...))
	for _, bar.Base = range ours {
		for _, m := range modes {
			if bar.What != "" {
				s.Bars = append(s.Bars, bar.Of(bar.Base+" "+m.name)...)
			}
		}
	}
	return s
}

// sumBars returns bars for 1 MiB messages in each mode, against the sum of sealing and opening them
// and of sending them without security.
func sumBars() (bars []measure.Bar) {
	for _, m := range modes {
		bars = append(bars, measure.Bar{
			What: "1 MiB message, " + m.name + ", against insecure and AEAD apart: time", Metric: measure.MicrosPer,
			Entry: "actor " + m.name, Base: "actor", Plus: m.aead, Most: 1.2,
		})
	}
	return bars
}

var (
	messageColumns = []string{measure.PerSecond, measure.MiBPerS, measure.CPUPer, measure.AllocsPer}
	tripColumns    = []string{measure.P50, measure.P90, measure.P99, measure.CPUPer, measure.AllocsPer}
	onlyActors     = []string{"actor"}
	bothRPC        = []string{"rpc-onloop", "rpc"}
)

// secureScenarios compare secured connections with unsecured ones, and with crypto/tls. TLS has
// certificates of both sides, and no session is resumed.
var secureScenarios = []measure.Scenario{
	compareModes(measure.Scenario{
		Name: "secure-oneway", Title: "Secured messages of 64 B, one way",
		Note:    "4,096 on their way, each 1,024 answered; each message is sealed. One write for each message of net.Conn and crypto/tls.",
		Columns: messageColumns,
		Serve:   smallFlow.Serve, Dial: smallFlow.Dial,
	}, measure.Bar{What: "messages/s of 64 B, %s, against insecure", Metric: measure.PerSecond, Least: 0.6}, onlyActors, "net.Conn", "crypto/tls"),
	compareModes(measure.Scenario{
		Name: "secure-calls", Title: "Secured calls, 64 B, 64 goroutines on one connection",
		Note:    "Coalesced calls are sealed together, once.",
		Columns: []string{measure.PerSecond, measure.CPUPer, measure.AllocsPer, measure.P50, measure.P99},
		Serve:   contestants.Serve, Dial: contestants.DialMany,
	}, measure.Bar{What: "calls/s, 64 callers, %s, against insecure", Metric: measure.PerSecond, Least: 0.8}, bothRPC),
	compareModes(measure.Scenario{
		Name: "secure-call", Title: "Secured calls, 64 B, 1 caller", Columns: tripColumns,
		Serve: contestants.Serve, Dial: contestants.Dial,
	}, measure.Bar{What: "call, 1 caller: p50, %s, against insecure", Metric: measure.P50, Most: 1.2}, bothRPC),
	compareModes(measure.Scenario{
		Name: "secure-echo", Title: "Secured echo of 64 B, 1 caller", Columns: tripColumns,
		Serve: contestants.Serve, Dial: contestants.Dial,
	}, measure.Bar{}, onlyActors, "net.Conn", "crypto/tls"),
	compareModes(measure.Scenario{
		Name: "secure-bulk", Title: "Secured messages of 1 MiB, one way, CRC off",
		Note: "16 on their way, each 4 answered. The AEADs seal and open 16 messages in turn, in one process, and send none. " +
			"crypto/tls has AES-128-GCM, as TLS mode; PSK mode has AES-256-GCM.",
		Columns: []string{measure.MicrosPer, measure.MiBPerS, measure.CPUPer, measure.AllocsPer},
		Bars:    sumBars(),
		Serve:   largeFlow.Serve, Dial: largeFlow.Dial,
	}, measure.Bar{}, onlyActors, "net.Conn", "crypto/tls", modes[0].aead, modes[1].aead),
	compareModes(measure.Scenario{
		Name: "secure-connect", Title: "One secured connection at a time, established on both sides",
		Note: "TCP's includes a round trip, and crypto/tls's handshake before it. TLS has certificates of both sides, and resumes no session. " +
			"All stay open, so that no close is measured.",
		Columns: tripColumns,
		Serve:   contest.ServeConnect, Dial: contest.DialConnect,
	}, measure.Bar{}, onlyActors, "net.Conn", "crypto/tls"),
}
