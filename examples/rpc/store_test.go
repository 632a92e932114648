package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/rdmactor/rdmactor/examples/rpc/kv"
)

func TestStoreAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStore()
		want := map[string]string{}
		seen := map[string]uint64{}
		key := rapid.SampledFrom([]string{"a", "a/b", "a/c", "b", "c"})
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), rapid.StringN(0, 4, 8).Draw(t, "value")
				r, err := s.put(k, []byte(v))
				if err != nil {
					t.Fatal(err)
				}
				want[k], seen[k] = v, r
			},
			"remove": func(t *rapid.T) {
				k := key.Draw(t, "key")
				_, known := want[k]
				if _, err := s.remove(k); known != (err == nil) || !known && !errors.Is(err, kv.ErrNotFound) {
					t.Fatalf("remove %q, known %v: %v", k, known, err)
				}
				delete(want, k)
				delete(seen, k)
			},
			"swap": func(t *rapid.T) {
				k, r := key.Draw(t, "key"), rapid.Uint64Range(0, s.revision+1).Draw(t, "revision")
				now, err := s.compareAndSwap(k, r, []byte("swapped"))
				if (err == nil) != (r == seen[k]) {
					t.Fatalf("swap of %q at %d with %d: %v", k, seen[k], r, err)
				}
				if err == nil {
					want[k], seen[k] = "swapped", now
				} else if now != seen[k] {
					t.Fatalf("a refused swap says revision %d of %d", now, seen[k])
				}
			},
			"": func(t *rapid.T) {
				page := s.list("", "", 0)
				if len(page.Entries) != len(want) || page.More {
					t.Fatalf("%d entries, want %d", len(page.Entries), len(want))
				}
				for _, e := range page.Entries {
					if want[e.Key] != string(e.Value) || seen[e.Key] != e.Revision {
						t.Fatalf("%v, want %q at %d", e, want[e.Key], seen[e.Key])
					}
				}
			},
		})
	})
}

func TestListPages(t *testing.T) {
	s := newStore()
	for i := range 2*maxPage + 1 {
		if _, err := s.put(fmt.Sprintf("k/%04d", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = s.put("j", nil)
	_, _ = s.put("l", nil)
	var got int
	for after := ""; ; {
		page := s.list("k/", after, 0)
		for _, e := range page.Entries {
			if e.Key != fmt.Sprintf("k/%04d", got) {
				t.Fatalf("entry %d is %q", got, e.Key)
			}
			got++
			after = e.Key
		}
		if !page.More {
			break
		}
	}
	if got != 2*maxPage+1 {
		t.Fatalf("%d entries of %d", got, 2*maxPage+1)
	}
}

// A page is bounded in bytes too, but an entry that alone is larger is still listed.
func TestListPageBytes(t *testing.T) {
	s := newStore()
	for _, k := range []string{"a", "b", "c"} {
		if _, err := s.put(k, make([]byte, pageBytes*2)); err != nil {
			t.Fatal(err)
		}
	}
	if page := s.list("", "a", 0); len(page.Entries) != 1 || page.Entries[0].Key != "b" || !page.More {
		t.Fatalf("%d entries, more %v", len(page.Entries), page.More)
	}
}

func TestWatchTellsInOrderAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		ctx, stop := context.WithCancel(t.Context())
		var sent []string
		done := make(chan error)
		go func() {
			done <- s.watch(ctx, "a", 1, func(c *kv.Change) error {
				sent = append(sent, fmt.Sprintf("%s %d %t", c.Entry.Key, c.Entry.Revision, c.Deleted))
				return nil
			})
		}()
		for _, k := range []string{"a", "a2", "b", "a"} {
			_, _ = s.put(k, nil)
		}
		synctest.Wait()
		_, _ = s.remove("a")
		synctest.Wait()
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if got, want := fmt.Sprint(sent), "[a2 2 false a 4 false a 5 true]"; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
	})
}

func TestWatcherTooFarBehindIsTold(t *testing.T) {
	s := newStore()
	for range history + 1 {
		_, _ = s.put("k", nil)
	}
	never := func(*kv.Change) error { return errors.New("sent") }
	if err := s.watch(t.Context(), "", 0, never); !errors.Is(err, kv.ErrCompacted) {
		t.Errorf("watching what is forgotten: %v", err)
	}
	if err := s.watch(t.Context(), "", 1, never); err == nil || err.Error() != "sent" {
		t.Errorf("watching the oldest that is kept: %v", err)
	}
}

// The store keeps a limited number of bytes, including those of its history, however often large
// values are written.
func TestBytesOfAStore(t *testing.T) {
	s := newStore()
	value := make([]byte, maxValue) // shared by all entries
	n := 0
	for ; ; n++ {
		_, err := s.put(fmt.Sprint(n), value)
		if errors.Is(err, kv.ErrFull) {
			break
		}
		if err != nil || n > maxBytes/maxValue {
			t.Fatalf("value %d: %v", n, err)
		}
	}
	if _, err := s.put("0", value); err != nil {
		t.Errorf("a value in the place of another of its size: %v", err)
	}
	kept := 0
	for _, c := range s.changes {
		kept += size(c.GetEntry())
	}
	if kept > historyBytes || kept < historyBytes-2*maxValue || kept != s.past {
		t.Errorf("%d bytes of changes are kept and %d counted, want at most %d", kept, s.past, historyBytes)
	}
	never := func(*kv.Change) error { return errors.New("sent") }
	if err := s.watch(t.Context(), "", s.oldest-2, never); !errors.Is(err, kv.ErrCompacted) {
		t.Errorf("watching what is forgotten: %v", err)
	}
	if err := s.watch(t.Context(), "", s.oldest-1, never); err == nil || err.Error() != "sent" {
		t.Errorf("watching the oldest that is kept: %v", err)
	}
	if _, err := s.remove("1"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.put("more", value[1000:]); err != nil {
		t.Errorf("a value in the place of one that was removed: %v", err)
	}
}

// Keys and values from others cannot forge lines or columns of the output.
func TestShown(t *testing.T) {
	for text, want := range map[string]string{
		"plain: é": "plain: é", "a\n9\tkey\tforged": `"a\n9\tkey\tforged"`, "\x1b[2J": `"\x1b[2J"`, "\xff": `"\xff"`,
	} {
		if got := shown(text); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
	}
}

func TestLimitsOfAStore(t *testing.T) {
	s := newStore()
	for _, c := range []struct {
		key   string
		value int
	}{{"", 1}, {string(make([]byte, maxKey+1)), 1}, {"k", maxValue + 1}} {
		if _, err := s.put(c.key, make([]byte, c.value)); !errors.Is(err, kv.ErrInvalid) {
			t.Errorf("a key of %d bytes with a value of %d: %v", len(c.key), c.value, err)
		}
	}
}
