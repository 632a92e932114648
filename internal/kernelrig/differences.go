//go:build linux

package kernelrig

import (
	"fmt"
	"strings"

	"github.com/rdmactor/rdmactor/internal/conformance"
)

// Differences returns how a device's driver ("rxe", "siw"), in a kernel of that release, differs
// from the conformance suite. Other drivers are not known.
func Differences(driver, release string) []conformance.Difference {
	differences := []conformance.Difference{
		{What: conformance.LoopbackOnly, Why: "the driver turns away what the kernel brings from elsewhere"},
	}
	if isOlder(release, 6, 17) {
		differences = append(differences, conformance.Difference{What: conformance.NoUserEvent, Why: "the kernel has the command since 6.17"})
	}
	switch driver {
	case "rxe":
		differences = append(differences,
			conformance.Difference{What: conformance.TooLongIsRemOp, Why: "rxe finds out as it copies, and takes the receive for malformed"},
			conformance.Difference{What: conformance.OneMoreNotification, Why: "a queue that is armed for every completion stays so until the next one"},
		)
		if strings.HasPrefix(release, "6.1.") {
			differences = append(differences, conformance.Difference{
				What: conformance.TooLongEnds, Why: "rxe took the receive for malformed, which ends datagram queue pairs as well",
			})
		}
	case "siw":
		differences = append(differences,
			conformance.Difference{What: conformance.SeparateFamilies, Why: "siw takes the stream and finds an IPv4 address where it looks for IPv6"},
			conformance.Difference{What: conformance.SentBehindRefused, Why: "siw finds out when it answers the Read, and reports a Send when TCP has it"},
			conformance.Difference{What: conformance.AcceptServesAsked, Why: "siw raises what accept says to what the request says"},
			conformance.Difference{What: conformance.ReadsUnchecked, Why: "siw checks what it answers Reads with like what it sends"},
			conformance.Difference{What: conformance.CaughtWriteFails, Why: "the peer may answer before siw's thread has noted that it has sent"},
			conformance.Difference{What: conformance.EndsWithoutReason, Why: "siw reads a Terminate and reports to nobody what is in it"},
			conformance.Difference{What: conformance.OverflowHarms, Why: "siw miscounts the references of such a listener: TestFaultBacklogOverflows"},
			conformance.Difference{What: conformance.DestroyAwaitsAnswer, Why: "iw_cm waits for it"},
		)
	}
	return differences
}

// isOlder reports whether a release such as 6.1.0-56-amd64 is older than a version. It returns
// false for a release that it cannot parse.
func isOlder(release string, major, minor int) bool {
	var is [2]int
	if n, _ := fmt.Sscanf(release, "%d.%d", &is[0], &is[1]); n != len(is) {
		return false
	}
	return is[0] < major || is[0] == major && is[1] < minor
}
