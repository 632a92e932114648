package remoting

import (
	"crypto/sha256"
	"encoding/binary"
	"unicode/utf8"

	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// nodeID is what stands for a name where a number is needed: the beginning of its SHA-256.
func nodeID(name string) uint64 {
	sum := sha256.Sum256([]byte(name))
	return binary.BigEndian.Uint64(sum[:])
}

// proves is reconnect.PeersConfig.Proves; nil: every peer may be every node.
func (h *host) proves() func(identity string, node uint64) bool {
	if h.cfg.NodeOf == nil {
		return nil
	}
	return func(identity string, node uint64) bool {
		name := h.nodeOf(identity)
		return name != "" && nodeID(name) == node
	}
}

// mayBe is proves of a name, of which a node's id has only a part.
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

// sayable reports whether a frame can have a name.
func sayable(id string) bool { return id != "" && len(id) <= frame.MaxName && utf8.ValidString(id) }
