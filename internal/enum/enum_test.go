package enum

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// planet has a String, which printing its number must not call.
type planet uint16

func (p planet) String() string { return Name(map[planet]string{2: "Venus"}, p, "planet(%#x)") }

// step counts from 0.
type step uint32

func (s step) String() string { return At([]string{"first", "last"}, s, "step(%d)") }

// TestNames: a value with a name prints it, another one its number, however large.
func TestNames(t *testing.T) {
	for want, got := range map[string]string{
		"Venus": planet(2).String(), "planet(0x0)": planet(0).String(), "planet(0xffff)": planet(0xffff).String(),
		"first": step(0).String(), "last": step(1).String(), "step(2)": step(2).String(), "step(4294967295)": step(1<<32 - 1).String(),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
