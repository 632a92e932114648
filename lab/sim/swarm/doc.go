// Package swarm turns a number into a small world, plays it twice, and determines which parts of it
// a failure needs.
//
// A seed is drawn into a [Plan]: devices, machines, limits, programs with all their operations, and
// faults. Each plan uses only some of the kinds of operations and of faults. A situation that is
// rare if everything happens in one world, such as a queue that is full because nothing empties it,
// is therefore common in some plan.
//
// Everything in a Plan is numbered ([Plan.Items]). Items may be left out ([Plan.Without]), and
// [Shrink] leaves out as many as it can.
//
// The meaning of a seed changes whenever the drawing changes: when a workload, a fault, or a limit
// is added. A failing seed is valid for the revision on which it was found. Its lasting result is
// the test that accompanies the fix.
package swarm
