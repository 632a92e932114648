package remoting

import (
	"reflect"
	"testing"
)

// TestCountsAdd: Add adds every count.
func TestCountsAdd(t *testing.T) {
	var more, want Counts
	for i := range reflect.TypeFor[Counts]().NumField() {
		reflect.ValueOf(&more).Elem().Field(i).SetUint(uint64(i) + 1)
		reflect.ValueOf(&want).Elem().Field(i).SetUint(2 * (uint64(i) + 1))
	}
	sum := more
	if sum.Add(more); sum != want {
		t.Errorf("the sum is %+v, want %+v", sum, want)
	}
}
