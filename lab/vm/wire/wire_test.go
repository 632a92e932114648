package wire_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmactor/rdmactor/lab/vm/wire"
)

func TestFramesComeBackAsWritten(t *testing.T) {
	frames := []wire.Frame{
		{Kind: wire.Ready, Payload: []byte{}},
		{Kind: wire.Output, Command: 7, Payload: bytes.Repeat([]byte{0, 1, 0xff}, wire.MaxPayload/3)},
		{Kind: wire.Exit, Command: 1<<32 - 1, Payload: []byte("139")},
	}
	var b bytes.Buffer
	for _, f := range frames {
		if err := wire.Write(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range frames {
		got, err := wire.Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("a frame changed on its way (-want +got):\n%s", d)
		}
	}
	if _, err := wire.Read(&b); !errors.Is(err, io.EOF) {
		t.Errorf("after the last frame: %v, want io.EOF", err)
	}
}

func TestTextInTheStreamIsOutOfStep(t *testing.T) {
	if _, err := wire.Read(strings.NewReader("[    3.670004] clk: Disabling unused clocks")); err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the kernel's log was read as a frame: %v", err)
	}
	var b bytes.Buffer
	if err := wire.Write(&b, wire.Frame{Kind: wire.Output, Payload: make([]byte, wire.MaxPayload+1)}); err == nil || b.Len() > 0 {
		t.Error("a payload longer than the other end accepts was written")
	}
}
