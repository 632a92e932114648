package actor

import (
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
)

// The terms of a request are kept, and the owner gets the rest of its private data.
func TestRequestHasItsPeersTerms(t *testing.T) {
	hello := wire.Hello{Credits: 7, Eager: 4 << 10, MaxMessage: 8 << 10}
	reads := cmid.ConnParam{ResponderResources: 3}
	for name, tt := range map[string]struct {
		raw     bool
		private []byte
		want    peerTerms
		left    string
		foreign bool
	}{
		"messages": {false, hello.Put([]byte("user")), peerTerms{datapath.ModeMessages, hello, reads}, "user", false},
		"foreign":  {false, []byte("user"), peerTerms{datapath.ModeForeign, wire.Hello{}, reads}, "user", true},
		"raw":      {true, hello.Put(nil), peerTerms{datapath.ModeRaw, wire.Hello{}, reads}, string(hello.Put(nil)), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &cmid.ConnectRequest{PrivateData: tt.private, Param: reads}
			in := &incoming{id: new(cmid.ID), r: r, cfg: &IDConfig{Raw: tt.raw}}
			got := in.takeTerms()
			got.hello.Version = tt.want.hello.Version // set by Put
			if got != tt.want || string(r.PrivateData) != tt.left || r.Foreign != tt.foreign {
				t.Errorf("%+v, %q, foreign %t", got, r.PrivateData, r.Foreign)
			}
		})
	}
}

func TestRequestIsOverdue(t *testing.T) {
	var none *incoming
	now := time.Now()
	in := &incoming{due: now}
	if none.isOverdue(now) || !in.isOverdue(now) || in.isOverdue(now.Add(-1)) {
		t.Error("a request is overdue at its time, and not before")
	}
}
