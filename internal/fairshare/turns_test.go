package fairshare

import (
	"slices"
	"testing"
)

// Keys take turns, whoever came first and with however many.
func TestTurns(t *testing.T) {
	var q Turns[string, int]
	for i := range 4 {
		q.Put("a", i)
	}
	q.Put("b", 10)
	q.Put("c", 20)
	var got []int
	take := func() {
		v, ok := q.Take()
		if !ok {
			t.Fatal("it is empty")
		}
		got = append(got, v)
	}
	take()
	q.Put("b", 11)
	for range 6 {
		take()
	}
	if want := []int{0, 10, 20, 1, 11, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
	if v, ok := q.Take(); ok {
		t.Errorf("%d is left", v)
	}
	if len(q.of) != 0 {
		t.Errorf("it remembers %v", q.of)
	}
}
