//go:build vm

package vmtest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/lab/vm"
)

// die makes the kernel panic under a command.
func die(t *testing.T, m *vm.Machine) error {
	t.Helper()
	_, err := m.Run(t.Context(), "echo c >/proc/sysrq-trigger; sleep 100")
	return err
}

func TestBench(t *testing.T) {
	var lines []string
	b := NewBench(listener{t, &lines}, vm.Config{Kernel: vm.Kernels[0]}, "touch /tmp/prepared")
	failure := errors.New("a failure")
	var machines []*vm.Machine
	for _, test := range []struct {
		name   string
		f      func(m *vm.Machine, round int) error
		rounds int
		want   error
	}{
		{"a success is run once", func(*vm.Machine, int) error { return nil }, 1, nil},
		{"a failure is run once", func(*vm.Machine, int) error { return failure }, 1, failure},
		{"a death is followed by a success", func(m *vm.Machine, round int) error {
			if round == 1 {
				return die(t, m)
			}
			_, err := m.Run(t.Context(), "true")
			return err
		}, 2, nil},
		{"a death is followed by a failure", func(m *vm.Machine, round int) error {
			if round == 1 {
				return die(t, m)
			}
			return failure
		}, 2, failure},
		{"a second death is final", func(m *vm.Machine, _ int) error { return die(t, m) }, 2, vm.ErrDied},
	} {
		t.Run(test.name, func(t *testing.T) {
			lines = nil
			machines = nil
			err := b.Try(listener{t, &lines}, func(m *vm.Machine) error {
				machines = append(machines, m)
				if r, err := m.Run(t.Context(), "ls /tmp/prepared"); err != nil || r.Code != 0 {
					t.Errorf("the machine was not prepared: %+v, %v", r, err)
				}
				return test.f(m, len(machines))
			})
			if !errors.Is(err, test.want) || len(machines) != test.rounds {
				t.Errorf("%d rounds and the error %v, want %d and %v", len(machines), err, test.rounds, test.want)
			}
			if test.rounds == 2 && machines[0] == machines[1] {
				t.Error("the second round was on the dead machine")
			}
			said := strings.Join(lines, "\n")
			if both := strings.Contains(said, "the first outcome: ") && strings.Contains(said, "the second outcome: "); both != (test.rounds == 2) {
				t.Errorf("the log does not show what there was of two outcomes:\n%s", said)
			}
		})
	}
}

func TestComplaintsAndLeftoversAreSeen(t *testing.T) {
	m := Boot(t, vm.Config{Kernel: vm.Kernels[0]})
	before := Resources(t, m)
	quiet := &failures{TB: t}
	WantResources(quiet, m, before)
	WantNoComplaint(quiet, m)
	if len(quiet.lines) > 0 {
		t.Errorf("a fresh machine: %q", quiet.lines)
	}
	Run(t, m, time.Minute, `echo "WARNING: planted" >/dev/kmsg
. /etc/rxe.env
rping -s -a $RDMA_ADDR >/dev/null 2>&1 &
until rdma resource show cm_id | grep -q LISTEN; do sleep 0.1; done`)
	planted := &failures{TB: t}
	wantResources(planted, m, before, time.Second)
	WantNoComplaint(planted, m)
	if got := strings.Join(planted.lines, "\n"); !strings.Contains(got, "comm rping") || !strings.Contains(got, "WARNING: planted") {
		t.Errorf("a listener left behind and a warning are not both seen:\n%s", got)
	}
}
