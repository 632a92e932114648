package traces

import (
	"testing"

	"github.com/rdmactor/rdmactor/internal/leak"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(leak.Settled{M: m}) }
