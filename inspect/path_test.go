package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// TestPath: an identifier's page shows the path of its packets.
func TestPath(t *testing.T) {
	r := newRig(t, Config{}, rdma.Config{Transport: rdma.Transport{TrafficClass: 104}})
	pid := r.connect(r.echo(), 1)
	// A loop that answers late has its path later.
	r.until("the traffic class 104, which is all that the embedded device has", func() bool {
		return read[idView](r, "ids/"+pid.Id).pathView == pathView{TrafficClass: 104}
	})
	p := rdma.Path{
		GIDIndex: 3, GIDType: "RoCE v2", NetDev: "eth0.5", SL: 5, TrafficClass: 104, MTU: 4096, AckTimeout: 536870912, RetryCount: 6, RNRRetryCount: 7,
	}
	info := rdma.IDInfo{PID: new(actor.PID), Path: p}
	var text strings.Builder
	writeText(&text, (&snapshot{taken: time.Now()}).idDetail(&info))
	for _, want := range []string{
		"gid_index 3", "gid_type RoCE v2", "gid_netdev eth0.5", "service_level 5", "traffic_class 104", "mtu_bytes 4096",
		"ack_timeout_seconds 0.536871", "retry_count 6", "rnr_retry_count 7",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text.String()), " "), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}
