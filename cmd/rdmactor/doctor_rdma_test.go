//go:build linux && rdma

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/rdmactor/rdmactor/internal/doctor"
)

// TestKernelDoctor: the machine's device is found whole, opened without libibverbs, and usable.
func TestKernelDoctor(t *testing.T) {
	var out bytes.Buffer
	if err := examine(t.Context(), []string{"--json"}, &out); err != nil {
		t.Fatalf("%v: %s", err, out.Bytes())
	}
	var r doctor.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	name, kind, netdev := os.Getenv("RDMA_DEVICE"), os.Getenv("RDMA_KIND"), os.Getenv("RDMA_NETDEV")
	i := slices.IndexFunc(r.Devices, func(d doctor.Device) bool { return d.Name == name })
	if i < 0 || !r.Usable {
		t.Fatalf("no %s, or it is not usable: %s", name, out.Bytes())
	}
	d := r.Devices[i]
	if !d.Usable || d.Path != "uverbs" || d.Driver != kind || d.NodeGUID == "" || d.File == "" || !slices.Contains(d.Addresses, os.Getenv("RDMA_ADDR")) ||
		d.Limits == nil || d.Limits.QueuePairs == 0 || d.Limits.CompletionQueues == 0 || d.Limits.MemoryRegions == 0 ||
		len(d.Ports) != 1 || d.Ports[0].State != "ACTIVE" || d.Ports[0].Netdev != netdev || d.Ports[0].MTU == 0 || len(d.Ports[0].GIDs) == 0 {
		t.Errorf("%s", out.Bytes())
	}
	if r.CM.Error != "" || !slices.Contains(r.Modules, "rdma_ucm") {
		t.Errorf("%+v, modules %q", r.CM, r.Modules)
	}
}
