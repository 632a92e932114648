package wire

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Every reason has a different text, also those of later versions, and survives the private data of
// a padded reject. Temporary ones are EAGAIN.
func TestRefusals(t *testing.T) {
	seen := make(map[string]bool)
	for r := RefusedKey; r <= RefusedVersion+1; r++ {
		text := r.String()
		if seen[text] || strings.HasPrefix(text, "reason") != (r > RefusedVersion) || r.Error() != text {
			t.Errorf("reason %d is %q", byte(r), text)
		}
		seen[text] = true
		h, rest, ok := ParseHello(append(r.Reject(), make([]byte, 100)...), true)
		if !ok || len(rest) > 0 || h.Refusal() != r {
			t.Errorf("%v is read as %v, with %d bytes more, %v", r, h.Refusal(), len(rest), ok)
		}
		passes := r >= RefusedHandshakes && r <= RefusedFailed && r != RefusedLate
		if errors.Is(r, unix.EAGAIN) != passes {
			t.Errorf("%v passes: %v", r, !passes)
		}
		if r.OfIdentity() != (r >= RefusedConnections && r <= RefusedMemory) {
			t.Errorf("%v is about an identity: %v", r, r.OfIdentity())
		}
	}
	for _, h := range []Hello{{Credits: 1, Eager: MaxEager, MaxMessage: 256}, {Credits: 2, Eager: MaxEager, MaxMessage: 1}, {Features: 1, Credits: 1, Eager: MaxEager, MaxMessage: 1}} {
		if r := h.Refusal(); r != RefusedOther {
			t.Errorf("%+v is read as %v", h, r)
		}
	}
}
