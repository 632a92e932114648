// Package memory hands out registered memory and takes it back: what a loop's connections send from
// and receive into, by size and within budgets. It knows devices and protection domains, and
// nothing of connections, messages or actors.
//
//	Budget ─ how much a loop may have for one purpose, and who waits for some
//	├ Arena        chunks of one size, cut from slabs: what is received and sent at once
//	├ RegionCache  one region for each large message, kept for the next of its size
//	├ Copies       messages copied to Go's heap, when receives are short
//	└ Sources      how much of it one peer's address may have being filled
//
// What they hand out is a Chunk, whose Free gives it back to where it is from.
//
// It names verbs' types itself, not an interface of its own: a region is verbs.MR and what is
// posted verbs.SGE, and verbs.Device and verbs.PD are such interfaces already.
//
// # Bounds
//
// A Budget never hands out more than its total; GetBeyond of an Arena alone goes beyond it, by one
// chunk for who has nothing else. Arenas have a part to themselves and no more than another part;
// large messages share the rest in line. What is idle is kept for its next use, and given back to
// the device when somebody waits.
//
// # Ownership
//
// All of it is one loop's, and is used on its goroutine only. A Chunk is its user's from Get or
// Copy until Free; the memory must not be posted any more then. An Arena and a RegionCache are one
// protection domain's, and are closed before it.
//
// # Ordering
//
// Who waits for a Budget is served in the order in which they came, in a turn of their own, but for
// those that are in nobody's way (see Budget). An Arena hands out what came back last.
//
// # Errors
//
// ErrBudget (ENOMEM) says that a budget is used up: memory that comes back helps, and nothing else.
// Any other error is the device's. What is given back cannot fail: a device that has gone has taken
// its memory along.
//
// # Limitations
//
// Chunks of different sizes share no slab. Nothing is moved to make room, and nobody is made to
// give back what was handed out.
package memory
