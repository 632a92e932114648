package actor

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// A key has the form that MarshalBinary's comment describes.
func TestRemoteKeyOnTheWire(t *testing.T) {
	key := RemoteKey{Addr: 0x0102030405060708, RKey: 0x11121314, Length: 0x21222324, Rights: RemoteRead | RemoteWrite}
	want := []byte{1, 6, 0, 0, 0x11, 0x12, 0x13, 0x14, 1, 2, 3, 4, 5, 6, 7, 8, 0x21, 0x22, 0x23, 0x24}
	got, err := key.MarshalBinary()
	if err != nil || !bytes.Equal(got, want) || len(got) != RemoteKeyLen {
		t.Errorf("% x, %v; want % x", got, err, want)
	}
	if s := key.String(); strings.Contains(s, "286397204") || strings.Contains(s, "11121314") {
		t.Errorf("%q shows the key", s)
	}
}

// A key survives the round trip, and nothing else is taken for one; a refused key changes nothing.
func TestRemoteKeyIsCheckedStrictly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := RemoteKey{
			Addr: rapid.Uint64().Draw(t, "address"), RKey: rapid.Uint32().Draw(t, "key"),
			Length: rapid.Uint32().Draw(t, "length"), Rights: Access(rapid.Byte().Draw(t, "rights")),
		}
		known := key.Rights&^(RemoteRead|RemoteWrite|RemoteAtomic) == 0
		valid := key.Rights != 0 && known && key.Length > 0 && key.Addr+uint64(key.Length) >= key.Addr
		b, err := key.MarshalBinary()
		if (err == nil) != valid {
			t.Fatalf("%+v: %v", key, err)
		}
		if !valid {
			return
		}
		var back RemoteKey
		if err := back.UnmarshalBinary(b); err != nil || back != key {
			t.Fatalf("%+v came back as %+v, %v", key, back, err)
		}
	})
	good, err := RemoteKey{Addr: 1 << 12, RKey: 7, Length: 9, Rights: RemoteRead}.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	with := func(at int, v byte) []byte {
		b := bytes.Clone(good)
		b[at] = v
		return b
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "one byte short": good[:19], "one byte more": append(bytes.Clone(good), 0), "version 0": with(0, 0), "version 2": with(0, 2),
		"no rights": with(1, 0), "local rights": with(1, 5), "unknown rights": with(1, 0x84), "a reserved byte": with(2, 1),
		"the other": with(3, 1), "no length": with(19, 0),
		"an end behind all addresses": {1, 4, 0, 0, 0, 0, 0, 1, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 1},
	} {
		kept := RemoteKey{RKey: 42}
		if err := kept.UnmarshalBinary(b); !errors.Is(err, unix.EINVAL) || kept != (RemoteKey{RKey: 42}) {
			t.Errorf("%s: %v, and the key is %+v", name, err, kept)
		}
	}
}

// Bytes of a peer's are a key that goes back as the same bytes, or an error.
func FuzzRemoteKey(f *testing.F) {
	good, _ := RemoteKey{Addr: 1 << 12, RKey: 7, Length: 9, Rights: RemoteRead}.MarshalBinary()
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		var key RemoteKey
		if key.UnmarshalBinary(b) != nil {
			return
		}
		if again, err := key.MarshalBinary(); err != nil || !bytes.Equal(again, b) {
			t.Errorf("% x came back as % x, %v", b, again, err)
		}
	})
}
