package fairshare

// Amounts shares an amount, such as bytes, among keys. One may have as much as is left for all
// others. The caller locks.
type Amounts[K comparable] struct {
	Most int64 // the amount to share
	all  int64
	of   map[K]int64
}

// Set replaces the amount had of one of k's owners with wants, or with as much of it as k may have,
// and returns that. It never takes from an owner.
func (a *Amounts[K]) Set(k K, had, wants int64) (may int64) {
	others := a.of[k] - had
	may = max(min(wants, had), min(wants, (a.Most-a.all+had-others)/2), 0)
	if a.of == nil {
		a.of = make(map[K]int64)
	}
	a.all += may - had
	if a.of[k] += may - had; a.of[k] == 0 {
		delete(a.of, k)
	}
	return may
}

// Total is what all keys have.
func (a *Amounts[K]) Total() int64 { return a.all }
