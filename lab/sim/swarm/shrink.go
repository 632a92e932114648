package swarm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Shrink leaves out as many items as it can while the failure stays. fails reports whether it still
// occurs without the given items, which are in ascending order. Shrink returns the items that can
// be left out.
//
// It tries to leave out halves, then quarters, and at last single items. An item that is needed
// only because of another, removed one is found in the next round.
func Shrink(items []int, fails func(without []int) bool) (without []int) {
	left := slices.Clone(items)
	for size := (len(left) + 1) / 2; size > 0; {
		gone := false
		for i := 0; i < len(left); {
			chunk := left[i:min(i+size, len(left))]
			try := append(slices.Clone(without), chunk...)
			slices.Sort(try)
			if fails(try) {
				without = try
				left = slices.Delete(slices.Clone(left), i, i+len(chunk))
				gone = true
				continue
			}
			i += size
		}
		switch {
		case size > 1:
			size = (size + 1) / 2
		case !gone:
			size = 0
		}
	}
	return without
}

// FormatItems formats item numbers as ranges: 3,7-12. They must be in ascending order.
func FormatItems(items []int) string {
	var all []string
	for i := 0; i < len(items); {
		j := i
		for j+1 < len(items) && items[j+1] == items[j]+1 {
			j++
		}
		if j == i {
			all = append(all, strconv.Itoa(items[i]))
		} else {
			all = append(all, fmt.Sprintf("%d-%d", items[i], items[j]))
		}
		i = j + 1
	}
	return strings.Join(all, ",")
}

// ParseItems parses the format of FormatItems.
func ParseItems(s string) (items []int, err error) {
	if s == "" {
		return nil, nil
	}
	for f := range strings.SplitSeq(s, ",") {
		first, last, ranged := strings.Cut(f, "-")
		if !ranged {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || from < 1 || to < from || to > 1<<20 {
			return nil, fmt.Errorf("%q is no list of items like 3,7-12", s)
		}
		for n := from; n <= to; n++ {
			items = append(items, n)
		}
	}
	return items, nil
}
