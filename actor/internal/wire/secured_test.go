package wire

import (
	"bytes"
	"testing"
)

// Features travel.
func TestFeatures(t *testing.T) {
	h := Hello{Features: 5, Credits: 1, Eager: kib, MaxMessage: kib}
	b := h.Put([]byte("user"))
	got, user, ok := ParseHello(b, false)
	if h.Version = helloVersion; !ok || got != h || string(user) != "user" {
		t.Errorf("got %+v %q %v", got, user, ok)
	}
}

func TestParseFirst(t *testing.T) {
	for _, typ := range []Type{TypeRequest, TypeAccept, TypeReject, TypeRefusal} {
		for _, n := range []int{0, 1, MaxUserData} {
			body := bytes.Repeat([]byte{7}, n)
			got, user, err := ParseFirst(typ.Put(body))
			if got != typ || err != nil || !bytes.Equal(user, body) {
				t.Errorf("%d with %d bytes: %v %v", typ, n, got, err)
			}
			if _, err := ParseSecuredHeader(typ.Put(body)); err == nil {
				t.Errorf("type %d is also taken later", typ)
			}
		}
	}
	good := TypeRequest.Put(nil)
	for i := range good {
		bad := bytes.Clone(good)
		if bad[i] ^= 1 << 6; i == 0 {
			bad[i] = 7
		}
		if _, _, err := ParseFirst(bad); err == nil {
			t.Errorf("taken with byte %d changed", i)
		}
	}
	for _, b := range [][]byte{nil, good[:7], TypeAccept.Put(make([]byte, MaxUserData+1))} {
		if _, _, err := ParseFirst(b); err == nil {
			t.Errorf("%d bytes are taken", len(b))
		}
	}
}

// A key update is for secured connections, and is a header only.
func TestKeyUpdate(t *testing.T) {
	b := TypeKeyUpdate.Put(nil)
	if h, err := ParseSecuredHeader(b); err != nil || h.Type != TypeKeyUpdate {
		t.Error(h, err)
	}
	if _, err := ParseSecuredHeader(TypeKeyUpdate.Put([]byte{1})); err == nil {
		t.Error("with a body")
	}
	if _, err := ParseHeader(b); err == nil {
		t.Error("on a connection that is not secured")
	}
}
