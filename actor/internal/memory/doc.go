// Package memory hands out the registered memory that messages are sent from and received into, and
// keeps it within its bounds. It knows devices by the verbs, and no connections.
//
//	┌ Budget ─ how much a loop may have for one purpose, and who waits for some
//	│   ├ Arena        chunks of one size, cut from slabs: what is received and sent at once
//	│   └ RegionCache  one region for each large message, kept for the next of its size
//	└ Sources ─ how much of it one peer's address may have being filled
//
// # Bounds
//
// A Budget never hands out more than its total; GetBeyond of an Arena alone goes beyond it, by one
// chunk for who has nothing else. Arenas have a part to themselves and no more than another part;
// large messages share the rest in line. What is idle is kept for its next use, and given back to
// the device when somebody waits.
//
// # Goroutines
//
// Everything belongs to one loop's goroutine. Who waits is served in a turn of its own
// (eventloop.Schedule), because the device may be in the middle of something.
//
// # Errors
//
// ErrBudget (ENOMEM) is the bound's answer; other errors are the device's.
//
// # Limitations
//
// Slabs are not moved: one chunk in use keeps its slab.
package memory
