//go:build linux && rdma

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/perf"
)

// TestKernelPerfPath: each side's packets have the network parameters of its flags, and the client
// prints them.
func TestKernelPerfPath(t *testing.T) {
	at := os.Getenv("RDMA_ADDR")
	srv := listen(t, "perf", "-s", "-a", at, "-p", "0", "--device", "kernel", "--tos", "32", "--qp-timeout", "16", "--retry-count", "2")
	args := []string{
		"perf", "-c", "-a", at, "-p", srv.port, "--device", "kernel", "--warmup", "0s", "--count", "5", "--latency",
		"--tos", "104", "--qp-timeout", "14", "--retry-count", "3",
	}
	table, document := client(t, args...), client(t, append(args, "--json", "-")...)
	srv.cancel()
	srv.mustEnd()
	var doc perf.Report
	if err := json.Unmarshal(document, &doc); err != nil || len(doc.Results) != 1 {
		t.Fatalf("%v: %s", err, document)
	}
	path, line := doc.Results[0].Path, bytes.Contains(table, []byte("traffic class 104, MTU 1024, ack timeout 0.0671 s, 3 retries\n"))
	if os.Getenv("RDMA_KIND") == "siw" {
		if path != nil || line {
			t.Errorf("%+v on iWARP, and it prints\n%s", path, table)
		}
		return
	}
	if path == nil || path.GIDType != "RoCE v2" || path.NetDev != os.Getenv("RDMA_NETDEV") || path.TrafficClass != 104 ||
		path.AckTimeoutS != 0.067108864 || path.RetryCount != 3 || path.MTU != 1024 {
		t.Errorf("the path is %+v", path)
	}
	if !line {
		t.Errorf("it prints\n%s", table)
	}
}

// client runs a command in a separate process, because the command checks for resources that it
// leaks in its process, and returns its output.
func client(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asRdmactor+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v: %s", args, err, out)
	}
	return out
}
