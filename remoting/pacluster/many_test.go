package pacluster

import (
	"fmt"
	"strings"
	"testing"
)

// Ten members agree on where grains are. Three are killed at the same time: their grains answer
// again elsewhere, and no other member is given up. Others take their places.
func TestTenMembers(t *testing.T) {
	const grains = 40
	all := roles(t, 10)
	m := startAll(t, all...)
	var ids []string
	at := make(map[string]int)
	for i := range grains {
		id := fmt.Sprint("g", i)
		ids = append(ids, id)
		where := m[0].do("where %s", id)
		at[where]++
		if there := m[9].do("where %s", id); there != where {
			t.Errorf("%s is at %s and at %s", id, where, there)
		}
	}
	if len(at) < 5 {
		t.Errorf("%d grains are at %v", grains, at)
	}
	for _, c := range m[7:] {
		c.Kill()
	}
	left := m[:7]
	asked := left[3].begin("recover %s", strings.Join(ids, " "))
	t.Logf("%d grains answer again after %v", grains, recovered(t, left[3].ends(asked)))
	var names []string
	for _, c := range left {
		names = append(names, c.role.Name)
	}
	for _, c := range left {
		c.knows(names...)
	}
	for _, r := range all[7:] {
		left = append(left, start(t, r))
		names = append(names, r.Name)
	}
	for _, c := range left {
		c.knows(names...)
		c.never("expelled", "it was not killed")
	}
	recovered(t, left[9].do("recover %s", strings.Join(ids, " ")))
	silent(left...)
	for _, c := range left[5:] {
		c.leaves()
	}
}
