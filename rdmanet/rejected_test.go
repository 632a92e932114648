package rdmanet

import "testing"

// TestEndAfterRejection: the end of a secured connection may be reported to an owner that has
// rejected it.
func TestEndAfterRejection(*testing.T) { (&owner{}).failHalves(nil) }
