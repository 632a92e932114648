package verbs

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestUnknown: a device may be newer than this code. Numbers that this code does not know are shown
// with the word "unknown" or their type, because a bare number in a message would look like a known
// one.
func TestUnknown(t *testing.T) {
	for want, got := range map[string]string{
		"receive of a write with immediate": RecvWrite.String(), "unknown opcode 10": Opcode(10).String(),
		"success": StatusSuccess.String(), "unknown status 200": Status(200).String(),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
