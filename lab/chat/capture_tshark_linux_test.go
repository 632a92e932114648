//go:build tshark

package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/rdmactor/rdmactor/internal/tshark"
	"github.com/rdmactor/rdmactor/iwarp"
)

// TestTshark: Wireshark decodes the traffic of a host and two members, one of which connects before
// the capture starts.
func TestTshark(t *testing.T) {
	addr := freeAddr(t)
	device := iwarp.New()
	rt, system := openOn(t, device)
	if _, err := host(t.Context(), rt, system, addr, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	ann := start(t, "ann", "join", addr, "--nick", "ann")
	ann.Want("you are ann", "she is in")

	name := filepath.Join(t.TempDir(), "chat.pcapng")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	capture, err := device.StartCapture(iwarp.CaptureConfig{Writer: file})
	if err != nil {
		t.Fatal(err)
	}
	ben := start(t, "ben", "join", addr, "--nick", "ben")
	ben.Want("you are ben", "he is in")
	for range 20 {
		ann.Say("hello from ann")
		ben.Want("hello from ann", "ben hears ann")
		ben.Say("hello from ben")
		ann.Want("hello from ben", "ann hears ben")
	}
	ben.Say("/quit")
	ben.Exit(0, "he has left")
	ann.Say("/quit")
	ann.Exit(0, "she has left")
	if err := capture.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := tshark.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	// each line goes to the host, and from there to the other member
	if r.Connections != 2 || r.Frames != 4 || r.Opcodes["Send"] < 40*2 || len(r.Complaints) > 0 {
		t.Errorf("%+v", r)
	}
}
