package actor

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

// versioned returns the private data of a peer of another version, with a mode.
func versioned(version byte, mode secure.Features, user []byte) []byte {
	b := wire.Hello{Features: uint8(mode), Credits: 8, Eager: kib, MaxMessage: kib}.Put(user)
	b[2] = version
	return b
}

// A peer whose version is no longer spoken is rejected with the reason before any actor gets its
// request. It is not treated as a foreign peer, because it would read our hello as one of its
// version.
func TestOldVersionDialsUs(t *testing.T) {
	onModes(t, func(w *world, config func() IDConfig) {
		cfg := config()
		server, old := w.farProbe(), w.probe()
		lis := w.listen(server, cfg)
		for version := byte(1); version < 4; version++ {
			old.send(w.rt.CreateID(old.pid, IDConfig{Raw: true}), &Dial{Addr: there + ":7471", PrivateData: versioned(version, cfg.helloFeatures(0), []byte("let me in"))})
			r, _ := next[*Rejected](old)
			h, rest, ok := wire.ParseHello(r.PrivateData, true)
			if err, _ := errors.AsType[*VersionError](versionError(r.PrivateData, h, rest)); !ok || err == nil || err.Peer != 5 {
				w.Errorf("version %d is rejected with %x", version, r.PrivateData)
			}
			until[*Closed](old)
		}
		if i := w.info(w.far, lis); i.Listener.Refused.Foreign != 3 {
			w.Errorf("counted are %+v", i.Listener)
		}
		if len(server.got) > 0 {
			w.Errorf("the owner got %v", <-server.got)
		}
	})
}

// Both versions are in the error if the peer that we dial is too old, whether it accepts or
// rejects, or if it no longer speaks our version.
func TestWeDialAnotherVersion(t *testing.T) {
	refused := []byte{byte(wire.RefusedVersion)}
	for name, tt := range map[string]struct {
		peer   uint8
		answer func(mode secure.Features) Command
	}{
		"old, accepts": {3, func(mode secure.Features) Command { return &Accept{PrivateData: versioned(3, mode, nil)} }},
		"old, rejects": {3, func(mode secure.Features) Command { return &Reject{PrivateData: versioned(3, mode, []byte("no"))} }},
		"new": {7, func(mode secure.Features) Command {
			b := versioned(7, mode, refused)
			if mode == 0 {
				b = wire.RefusedVersion.Reject()
				b[2] = 7
			}
			return &Reject{PrivateData: b}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			onModes(t, func(w *world, config func() IDConfig) {
				cfg := config()
				peer, client := w.farProbe(), w.probe()
				w.listen(peer, IDConfig{Raw: true})
				client.send(w.rt.CreateID(client.pid, cfg), &Dial{Addr: there + ":7471"})
				_, s := next[*ConnectRequest](peer)
				peer.send(s, tt.answer(cfg.helloFeatures(0)))
				all := until[*Closed](client)
				var err error
				for _, g := range all {
					switch m := g.msg.(type) {
					case Failure:
						err = m
					case *Established, *Received:
						w.Errorf("got %T", m)
					}
				}
				if v, _ := errors.AsType[*VersionError](err); v == nil || *v != (VersionError{Peer: tt.peer, Own: 5}) || !errors.Is(err, unix.EPROTONOSUPPORT) {
					w.Errorf("the dial fails with %v", err)
				}
				if r, ok := errors.AsType[*Rejected](err); ok && r.PrivateData != nil {
					w.Errorf("the hello is in the application's answer: %x", r.PrivateData)
				}
				until[*Closed](peer)
			})
		})
	}
}
