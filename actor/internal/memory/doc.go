// Package memory hands out registered memory and takes it back: the buffers of a loop's sends and
// receives, by size and within budgets. It knows devices and protection domains, and nothing of
// connections, messages or actors.
//
//	Budget ─ bounds a loop's memory for one purpose, and queues claimants
//	├ Arena        chunks of one size, cut from slabs: for receives and immediate sends
//	├ RegionCache  one region for each large message, kept for the next of its size
//	├ Copies       messages copied to Go's heap, when receives are short
//	└ Sources      how much of it one peer's address may have being filled
//
// They hand out a Chunk, whose Free returns it to its source.
//
// It uses verbs' types directly, not a separate interface: a region is verbs.MR and a posted
// buffer verbs.SGE, and verbs.Device and verbs.PD are such interfaces already.
//
// # Bounds
//
// A Budget never hands out more than its total; only GetBeyond of an Arena goes beyond it, by one
// chunk for a claimant without any. Arenas have a reserved part and an upper limit; large messages
// share the rest in line. Idle memory is kept for its next use, and returned to the device when a
// claimant waits.
//
// # Ownership
//
// All of it is one loop's, and is used on its goroutine only. A Chunk is its user's from Get or
// Copy until Free; the memory must not be posted then. An Arena and a RegionCache are one
// protection domain's, and are closed before it.
//
// # Ordering
//
// Claimants of a Budget are served in the order in which they came, in a separate turn, but for
// those that delay no other (see Budget). An Arena hands out the latest returned chunk first.
//
// # Errors
//
// ErrBudget (ENOMEM) means that a budget is used up: only returned memory helps. Any
// other error is the device's. Returning memory cannot fail: a removed device has taken its memory
// along.
//
// # Limitations
//
// Chunks of different sizes share no slab. Nothing is moved to make room, and nothing that was
// handed out is reclaimed.
package memory
