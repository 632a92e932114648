package optional_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/internal/optional"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A configuration that is left out is the zero value. Two are a mistake, of which neither is used.
func TestValue(t *testing.T) {
	if none, one := optional.Value[int](nil), optional.Value([]int{7}); none != 0 || one != 7 {
		t.Errorf("%d without a value, %d of 7", none, one)
	}
	defer func() {
		if recover() == nil {
			t.Error("two values do not panic")
		}
	}()
	optional.Value([]int{7, 8})
}
