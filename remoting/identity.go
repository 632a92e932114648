package remoting

import (
	"crypto/sha256"
	"encoding/binary"
	"unicode/utf8"

	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// nodeID returns the number that stands for a name: the beginning of its SHA-256.
func nodeID(name string) uint64 {
	sum := sha256.Sum256([]byte(name))
	return binary.BigEndian.Uint64(sum[:])
}

// provesFunc returns reconnect.PeersConfig.Proves; nil: every peer may be every node.
func (h *host) provesFunc() func(identity string, node uint64) bool {
	if h.cfg.NodeOf == nil {
		return nil
	}
	return func(identity string, node uint64) bool {
		name := h.nodeOf(identity)
		return name != "" && nodeID(name) == node
	}
}

// mayBe reports whether the identity may be that of the node with this name.
func (h *host) mayBe(identity, name string) bool {
	return h.cfg.NodeOf == nil || name != "" && h.nodeOf(identity) == name
}

// nodeOf asks Config.NodeOf, which is the user's.
func (h *host) nodeOf(identity string) (name string) {
	defer func() {
		if v := recover(); v != nil {
			h.rt.Logger().Error("remoting: NodeOf has panicked", "panic", v)
			name = ""
		}
	}()
	return h.cfg.NodeOf(identity)
}

// fitsFrame reports whether a frame can have a name.
func fitsFrame(id string) bool { return id != "" && len(id) <= frame.MaxName && utf8.ValidString(id) }
