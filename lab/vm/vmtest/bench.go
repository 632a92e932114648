package vmtest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/rdmactor/rdmactor/lab/vm"
)

// Bench is a machine for several tests. It is booted when the first test needs it. These kernels
// crash occasionally, because of their drivers or QEMU. A crash is no result of the test, so the
// test runs once more in a fresh machine. A test that only fails does not run again. Tests that run
// concurrently may share a Bench.
type Bench struct {
	c       vm.Config
	prepare string

	mu     sync.Mutex
	m      *vm.Machine
	before string
}

// NewBench makes a Bench with a configuration, and a script to run in each new machine. It ends
// with t.
func NewBench(t testing.TB, c vm.Config, prepare string) *Bench {
	c.Logf = t.Logf
	b := &Bench{c: c, prepare: prepare}
	t.Cleanup(func() { b.closeMachine(t, b.m) })
	return b
}

// Try runs f with the machine and returns its error. If that is vm.ErrDied, Try runs f once more in
// a fresh machine. It then logs both outcomes, and returns the second.
func (b *Bench) Try(t testing.TB, f func(m *vm.Machine) error) error {
	t.Helper()
	m, err := b.currentMachine(t.Context())
	if err != nil {
		return err
	}
	if err = f(m); !errors.Is(err, vm.ErrDied) {
		return err
	}
	t.Logf("vm: the first outcome: %v", err)
	b.closeMachine(t, m)
	if m, err = b.currentMachine(t.Context()); err != nil {
		return err
	}
	err = f(m)
	t.Logf("vm: once more, in a fresh machine, the second outcome: %v", err)
	if errors.Is(err, vm.ErrDied) {
		b.closeMachine(t, m)
	}
	return err
}

// GoTest calls the function GoTest with the bench's machine.
func (b *Bench) GoTest(t testing.TB, pkg string, env []string, args ...string) {
	t.Helper()
	var out string
	err := b.Try(t, func(m *vm.Machine) (err error) {
		out, err = goTest(t, m, pkg, env, args)
		return err
	})
	checkOutcome(t, pkg, out, err)
}

// Clean checks that the tests have left nothing in the kernel of the current machine, and that the
// kernel's log has no complaint.
func (b *Bench) Clean(t testing.TB) {
	t.Helper()
	b.mu.Lock()
	m, before := b.m, b.before
	b.mu.Unlock()
	if m != nil {
		WantResources(t, m, before)
		WantNoComplaint(t, m)
	}
}

// currentMachine returns the current machine, or boots a new one.
func (b *Bench) currentMachine(ctx context.Context) (*vm.Machine, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.m != nil {
		return b.m, nil
	}
	m, err := vm.Boot(ctx, b.c)
	if err != nil {
		return nil, err
	}
	before, err := runOutput(ctx, m, scriptLimit, b.prepare+"\n"+counts)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	b.m, b.before = m, before
	return m, nil
}

// closeMachine closes a machine. Another test may have replaced it already.
func (b *Bench) closeMachine(t testing.TB, m *vm.Machine) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.m == nil || b.m != m {
		return
	}
	b.m = nil
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
