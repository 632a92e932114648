package vm

import (
	"bytes"
	"testing"
)

// The bytes follow Documentation/driver-api/early-userspace/buffer-format.rst in the kernel's
// source.
func TestArchive(t *testing.T) {
	var b bytes.Buffer
	a := newArchive(&b)
	a.addFile("/d/f", 0o644, []byte("hello"))
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	const want = "070701" + "00000001" + "000041ED" + "00000000" + "00000000" + "00000001" + "00000000" + "00000000" +
		"00000000" + "00000000" + "00000000" + "00000000" + "00000002" + "00000000" + "d\x00" +
		"070701" + "00000002" + "000081A4" + "00000000" + "00000000" + "00000001" + "00000000" + "00000005" +
		"00000000" + "00000000" + "00000000" + "00000000" + "00000004" + "00000000" + "d/f\x00" + "\x00\x00" + "hello\x00\x00\x00" +
		"070701" + "00000000" + "00000000" + "00000000" + "00000000" + "00000001" + "00000000" + "00000000" +
		"00000000" + "00000000" + "00000000" + "00000000" + "0000000B" + "00000000" + "TRAILER!!!\x00" + "\x00\x00\x00"
	if b.String() != want {
		t.Errorf("got\n%q\nwant\n%q", b.String(), want)
	}
	if err := a.close(); err == nil {
		t.Error("an archive was closed twice")
	}
}
