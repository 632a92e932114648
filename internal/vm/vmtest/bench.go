package vmtest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/rdmactor/rdmactor/internal/vm"
)

// Bench is a machine for several tests, booted when the first needs it. These kernels crash now
// and then, in their drivers or in QEMU. A crash says nothing about the test, so the test runs
// once more in a fresh machine. A test that merely fails does not. Tests that run at the same time
// may use one Bench.
type Bench struct {
	c       vm.Config
	prepare string

	mu     sync.Mutex
	m      *vm.Machine
	before string
}

// NewBench makes a Bench of a configuration, and of a script to run in the machine when it is up.
// It ends with t.
func NewBench(t testing.TB, c vm.Config, prepare string) *Bench {
	c.Logf = t.Logf
	b := &Bench{c: c, prepare: prepare}
	t.Cleanup(func() { b.drop(t, b.m) })
	return b
}

// Try runs f with the machine and returns its error. If that is vm.ErrDied, f runs once more in a
// fresh machine. Both outcomes are logged, and the second one is the result.
func (b *Bench) Try(t testing.TB, f func(m *vm.Machine) error) error {
	t.Helper()
	m, err := b.machine(t.Context())
	if err != nil {
		return err
	}
	if err = f(m); !errors.Is(err, vm.ErrDied) {
		return err
	}
	t.Logf("vm: the first outcome: %v", err)
	b.drop(t, m)
	if m, err = b.machine(t.Context()); err != nil {
		return err
	}
	err = f(m)
	t.Logf("vm: once more, in a fresh machine, the second outcome: %v", err)
	if errors.Is(err, vm.ErrDied) {
		b.drop(t, m)
	}
	return err
}

// GoTest is the function GoTest in the bench's machine.
func (b *Bench) GoTest(t testing.TB, pkg string, env []string, args ...string) {
	t.Helper()
	var out string
	err := b.Try(t, func(m *vm.Machine) (err error) {
		out, err = goTest(t, m, pkg, env, args)
		return err
	})
	conclude(t, pkg, out, err)
}

// Clean checks that the tests have left nothing in the kernel of the machine under way, and that
// the kernel's log has no complaint.
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

// machine is the machine under way, or a fresh one.
func (b *Bench) machine(ctx context.Context) (*vm.Machine, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.m != nil {
		return b.m, nil
	}
	m, err := vm.Boot(ctx, b.c)
	if err != nil {
		return nil, err
	}
	before, err := output(ctx, m, scriptLimit, b.prepare+"\n"+counts)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	b.m, b.before = m, before
	return m, nil
}

// drop closes a machine that another test may have replaced already.
func (b *Bench) drop(t testing.TB, m *vm.Machine) {
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
