// Package swarm makes a small world of a number, plays it twice, and finds out which parts of it a
// failure needs.
//
// A seed is drawn into a [Plan]: devices, machines, limits, programs with all their operations, and
// faults. Each plan has a part of the kinds of operations and of faults only. What is rare when
// everything happens at once, such as a queue that is full because nothing empties it, is common in
// some plan then.
//
// Whatever a Plan has is numbered ([Plan.Items]). Items may be left out ([Plan.Without]), and
// [Shrink] leaves out as many as it can.
//
// What a seed means changes whenever the drawing changes: when a workload, a fault, or a limit is
// added. A seed with a failure is good for the revision that it was found with. What stays is the
// test that comes with the mend.
package swarm
