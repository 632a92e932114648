package iwarp_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/iwarp"
)

// A capture of connections to port 7174 of one network. It may begin and end at any time while the
// device runs.
func ExampleDriver_StartCapture() {
	device := iwarp.New()
	ch, err := cmid.OpenChannel(device)
	must(err)
	defer ch.Close()

	file, err := os.CreateTemp("", "*.pcapng")
	must(err)
	defer os.Remove(file.Name())
	capture, err := device.StartCapture(iwarp.CaptureConfig{
		Writer: file, Peer: netip.MustParsePrefix("10.1.0.0/16"), PeerPort: 7174,
	})
	must(err)

	// ... the traffic of interest happens here

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	must(capture.Stop(ctx))
	must(file.Close())
	fmt.Println(capture.Stats().Connections)
	// Output: 0
}
