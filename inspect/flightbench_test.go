package inspect

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// BenchmarkFlight makes a page of the flight recorders of 64 loops, all full.
func BenchmarkFlight(b *testing.B) {
	r := &recordings{taken: time.Now()}
	for l := range 64 {
		f := rdma.Flight{Loop: fmt.Sprintf("rdma-%d", l), Records: make([]rdma.FlightRecord, 4096)}
		for i := range f.Records {
			f.Records[i] = rdma.FlightRecord{At: r.taken.Add(time.Duration(i*64+(l*37)%64) * time.Microsecond), ID: uint64(i), What: "Connected: received 64 bytes"}
		}
		r.loops = append(r.loops, f)
	}
	for name, v := range map[string]url.Values{"all": {}, "last": {"page": {"999999"}}, "text": {"q": {"received"}}, "none": {"q": {"nowhere"}}} {
		q, err := parseFlightQuery(v)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				q.selectPage(r)
			}
		})
	}
}
