package fairshare

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Keys take turns, regardless of the order and number of their values.
func TestTurns(t *testing.T) {
	var q Queue[string, int]
	for i := range 4 {
		q.Put(i, "a")
	}
	q.Put(10, "b")
	q.Put(20, "c")
	var got []int
	take := func() {
		v, ok := q.Take(math.MaxInt)
		if !ok {
			t.Fatal("it is empty")
		}
		got = append(got, v)
	}
	take()
	q.Put(11, "b")
	for range 6 {
		take()
	}
	if want := []int{0, 10, 20, 1, 11, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
	if v, ok := q.Take(math.MaxInt); ok {
		t.Errorf("%d is left", v)
	}
}

// queued is a value of the model: of key[0], and in it of key[1].
type queued struct {
	key [2]int
	n   int
}

// modelQueue behaves like a Queue, with lists that are searched.
type modelQueue struct {
	waiting, running []queued
	turns            [2][][2]int // keys by level, in the order of their turns
}

// at returns v's key at a level.
func (v queued) at(level int) [2]int {
	if level == 0 {
		return [2]int{v.key[0], 0}
	}
	return v.key
}

func count(of []queued, level int, key [2]int) (n int) {
	for _, v := range of {
		if v.at(level) == key {
			n++
		}
	}
	return n
}

func (m *modelQueue) put(v queued) {
	for level := range m.turns {
		if count(m.waiting, level, v.at(level)) == 0 {
			m.turns[level] = append(m.turns[level], v.at(level))
		}
	}
	m.waiting = append(m.waiting, v)
}

func (m *modelQueue) take(left int) (v queued, ok bool) {
	for _, first := range m.turns[0] {
		forFirst := left - count(m.running, 0, first)
		for _, key := range m.turns[1] {
			if key[0] == first[0] && count(m.running, 1, key) < forFirst {
				v = m.waiting[slices.IndexFunc(m.waiting, func(v queued) bool { return v.key == key })]
				m.remove(v, true)
				m.running = append(m.running, v)
				return v, true
			}
		}
	}
	return v, false
}

// remove removes v from the waiting values. served: its keys have had their turns.
func (m *modelQueue) remove(v queued, served bool) {
	i := slices.Index(m.waiting, v)
	m.waiting = slices.Delete(m.waiting, i, i+1)
	for level := range m.turns {
		at, waits := slices.Index(m.turns[level], v.at(level)), count(m.waiting, level, v.at(level)) > 0
		if served || !waits {
			m.turns[level] = slices.Delete(m.turns[level], at, at+1)
		}
		if served && waits {
			m.turns[level] = append(m.turns[level], v.at(level))
		}
	}
}

// Values are put, taken, done and dropped in any order, and taken while few may run.
func TestQueueModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 12).Draw(t, "most")
		var q Queue[int, queued]
		var m modelQueue
		n := 0
		pick := func(t *rapid.T, of []queued) queued { return rapid.SampledFrom(of).Draw(t, "which") }
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				n++
				v := queued{[2]int{rapid.IntRange(0, 3).Draw(t, "first"), rapid.IntRange(0, 3).Draw(t, "second")}, n}
				q.Put(v, v.key[:]...)
				m.put(v)
			},
			"take": func(t *rapid.T) {
				left := most - q.Running()
				unserved := q.Unserved()
				v, ok := q.Take(left)
				want, may := m.take(left)
				switch {
				case ok != may || v != want:
					t.Fatalf("it takes %v, %t, want %v, %t", v, ok, want, may)
				case !ok && left > 0 && unserved:
					t.Fatalf("%d may run, but a key has none", left)
				}
			},
			"done": func(t *rapid.T) {
				if len(m.running) > 0 {
					v := pick(t, m.running)
					q.Done(v.key[:]...)
					m.running = slices.DeleteFunc(m.running, func(other queued) bool { return other == v })
				}
			},
			"drop": func(t *rapid.T) {
				if n > 0 {
					v := pick(t, slices.Concat(m.waiting, m.running, []queued{{}}))
					waits := slices.Contains(m.waiting, v)
					if dropped := q.Drop(func(other queued) bool { return other == v }, v.key[:]...); dropped != waits {
						t.Fatalf("%v is dropped: %t, want %t", v, dropped, waits)
					}
					if waits {
						m.remove(v, false)
					}
				}
			},
			"": func(t *rapid.T) {
				if q.Waiting() != len(m.waiting) || q.Running() != len(m.running) || q.Running() > most {
					t.Fatalf("%d wait and %d run, want %d and %d", q.Waiting(), q.Running(), len(m.waiting), len(m.running))
				}
				all := slices.SortedFunc(q.All, func(a, b queued) int { return a.n - b.n })
				if !slices.Equal(all, m.waiting) {
					t.Fatalf("%v wait, want %v", all, m.waiting)
				}
				keys := make(map[int]bool)
				for _, v := range slices.Concat(m.waiting, m.running) {
					keys[v.key[0]] = true
				}
				if len(q.parts) != len(keys) {
					t.Fatalf("%d keys are remembered, want %v", len(q.parts), keys)
				}
			},
		})
	})
}
