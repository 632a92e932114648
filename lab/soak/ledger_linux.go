package main

import "sync"

// window is how many of the last numbers of a source a ledger remembers.
const window = 1 << 15

// numbers are the last window numbers that arrived from one source, in any order.
type numbers struct {
	came [window / 64]uint64
	next uint64 // one more than the highest
}

func (s *numbers) bit(n uint64) (word *uint64, mask uint64) {
	return &s.came[n%window/64], 1 << (n % 64)
}

// add records that n arrived. again: it had arrived before.
func (s *numbers) add(n uint64) (again bool) {
	if n+window < s.next { // too old to know
		return false
	}
	for ; s.next <= n; s.next++ {
		word, mask := s.bit(s.next)
		*word &^= mask
	}
	word, mask := s.bit(n)
	again = *word&mask != 0
	*word |= mask
	return again
}

// has reports whether n arrived. Not known: it is too old.
func (s *numbers) has(n uint64) (came, known bool) {
	if n >= s.next {
		return false, true
	}
	if n+window < s.next {
		return false, false
	}
	word, mask := s.bit(n)
	return *word&mask != 0, true
}

// remembered is the number of client processes whose numbers a ledger keeps. Data of earlier ones
// can no longer arrive.
const remembered = 3

// ledger records the numbers that a server received.
type ledger struct {
	mu sync.Mutex
	of map[source]*numbers
}

func (l *ledger) numbers(s source) *numbers {
	if l.of == nil {
		l.of = make(map[source]*numbers)
	}
	n := l.of[s]
	if n == nil {
		for old := range l.of {
			if old.Client+remembered <= s.Client {
				delete(l.of, old)
			}
		}
		n = new(numbers)
		l.of[s] = n
	}
	return n
}

func (l *ledger) add(s source, n uint64) (again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.numbers(s).add(n)
}

func (l *ledger) has(s source, n uint64) (came, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.numbers(s).has(n)
}
