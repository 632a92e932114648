package swarm

import (
	"slices"
	"testing"
)

// TestShrink leaves out all items that a failure does not need, including those that can only be
// removed after others.
func TestShrink(t *testing.T) {
	var items []int
	for n := 1; n <= 40; n++ {
		items = append(items, n)
	}
	for _, c := range []struct {
		name  string
		needs func(has func(n int) bool) bool
		want  string
	}{
		{"one", func(has func(int) bool) bool { return has(17) }, "1-16,18-40"},
		{"three", func(has func(int) bool) bool { return has(1) && has(17) && has(40) }, "2-16,18-39"},
		{"nothing", func(func(int) bool) bool { return true }, "1-40"},
		{"one that another one needs", func(has func(int) bool) bool { return has(9) && (has(3) || !has(30)) }, "1-8,10-40"},
	} {
		without := Shrink(items, func(without []int) bool {
			if !slices.IsSorted(without) {
				t.Errorf("%s: %v is not sorted", c.name, without)
			}
			return c.needs(func(n int) bool { return !slices.Contains(without, n) })
		})
		if got := FormatItems(without); got != c.want {
			t.Errorf("%s: without %s, want %s", c.name, got, c.want)
		}
	}
}

func TestItems(t *testing.T) {
	for _, s := range []string{"", "3", "3,5", "3-4", "1,3-7,9"} {
		items, err := ParseItems(s)
		if err != nil || FormatItems(items) != s {
			t.Errorf("%q is read as %v (%v)", s, items, err)
		}
	}
	for _, s := range []string{"x", "0", "3-", "5-3", ",", "1-9999999"} {
		if items, err := ParseItems(s); err == nil {
			t.Errorf("%q is read as %v, want an error", s, items)
		}
	}
}

func TestClass(t *testing.T) {
	for _, c := range []struct{ failure, want string }{
		{"1m2.5s: m2.3 is not done, 3m0s after\nmore 7", "N: mN is not done, N after"},
		{"a goroutine is left:\ngoroutine 7\nf(0x17)\n\tf.go:7", "a goroutine is left: goroutine N f(N)"},
		{"0xc000123 and 10.0.0.1:7000", "N and N:N"},
	} {
		if got := Class(c.failure); got != c.want {
			t.Errorf("%q is of the class %q, want %q", c.failure, got, c.want)
		}
	}
}

func TestDiffer(t *testing.T) {
	if got, want := Differ([]string{"a", "b", "c"}, []string{"a", "x", "c"}), "at line 2, after\na\none has\nb\nc\nand the other\nx\nc"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
