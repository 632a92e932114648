// Package actortest runs tests of actors that use package actor (imported as rdma) without a
// device, in virtual time, on any system:
//
//	func TestResolveTimesOut(t *testing.T) {
//		actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
//			p := w.Probe()
//			id := w.CreateID(p.PID())
//			w.Silence("10.0.0.9")
//			nowhere := rdma.MustAddr("10.0.0.9:7471")
//			p.Request(id, &cmid.ResolveAddr{Dst: nowhere, Timeout: 2 * time.Second})
//			e := actortest.Next[*rdma.AddrError](p)
//			if !errors.Is(e, unix.ETIMEDOUT) || w.Elapsed() != 2*time.Second {
//				t.Fatal(e)
//			}
//		})
//	}
//
// [Run] gives the test a [World]: a testing/synctest bubble, in which minutes pass immediately; an
// ActorSystem; and a Runtime over a device in memory, mem0 with the address 10.0.0.1/24, which
// plays the embedded iWARP device, or with [Config.InfiniBand] RoCE. [World.Host] adds further
// machines. A [Probe] is an actor whose messages the test sends and reads itself. The test also
// chooses the faults: [World.Silence], [World.Drop], [World.Delay], [World.Reorder],
// [World.Disconnect], [World.RemoveDevice], [World.RunOut]; and between machines [World.Cut] and
// [World.Heal], [World.Freeze] and [World.Thaw], [World.Crash]:
//
//	w.Crash("mem1")                 // kill -9: the kernel closes its connections
//	w.Cut("mem0", "mem1")           // the network: what TCP, or the device, repeats arrives after Heal
//	w.Freeze("mem1")                // SIGSTOP: its machine goes on
//	w.Host("mem1", "10.0.0.2")      // another program in the place of one that has crashed
//
// [Simulate] plays a program of several machines, and whatever may happen to them, once for each of
// many seeds. One number decides everything, so that a failure is played again from its seed:
//
//	actortest.Simulate(t, actortest.Simulation{Faults: actortest.AllFaults}, func(s *actortest.Sim) {
//		s.Machine("server", "10.0.0.1", serve)  // func serve(p *actortest.Process)
//		s.Machine("client", "10.0.0.2", func(p *actortest.Process) { call(p, &answers) })
//		s.Done(func() bool { return answers == 100 })
//	})
//
// The test of examples/workqueue is a whole one.
//
// # Ownership
//
// Only the goroutine that runs the test function may use the World and its Probes. A
// *rdma.Received that [Next] has returned is valid until the next call of Next for that Probe,
// which also gives its credit back. So a Probe for which Next is not called is a slow reader. To
// keep a message longer, Retain it, and Release it later.
//
// When the test function has returned, Probes give back what they have, the runtimes are shut down,
// and the test fails if anything is left: a *rdma.Received that was retained and not released
// within a minute, a goroutine of the bubble, an identifier, a queue pair, device memory.
// Connections may be left open: Shutdown ends them. Actors that the test has spawned are not
// stopped, and what they would do then is not tested. After t.Fatal everything is shut down too,
// but not checked.
//
// # Ordering
//
// Next, Silent, State and Disconnect let everything happen first that can happen without time
// passing. Time passes in Next, Silent and Advance only (and where the test itself sleeps). With
// one [Seed], one machine and no goroutines of the test's own every run is the same; what happens
// at one instant on two machines may happen in any order.
//
// # Errors
//
// A mistake of the test (the message is of another type, nothing comes, no such device) is t.Fatal
// with the actual state. Malformed addresses panic.
//
// Failures of the code under test fail the test also if the code survives them. Otherwise a server
// that is restarted after each request would pass a test in which it has to be silent. Such
// failures are a panic or a runtime.Goexit in an actor, in what a loop calls, in an rpc handler, or
// in a Send's Renew. They are reported with their stacks.
// [World.ExpectPanic] announces one that has to come. Nothing takes long in virtual time, so what
// blocks a loop for more than a second fails the test, too, with the actor, the type of its
// message, the stack, and how long the loop stood still; Config.OnStall is for tests of that.
// FailNow and Skip are for the test's goroutine: they call runtime.Goexit. On other goroutines Skip
// fails the test.
//
// The test also fails if an expected event is missing: a panic that was expected, and a [Fault]
// that has never happened, such as a Drop of cmidtest.MsgRTU, which iWARP does not send.
// Fault.Optional permits that. Delay and Reorder are no faults, and may affect nothing. If a Probe
// has got a failure ([rdma.Failure]) that Next has not returned, the test fails at its end, because
// it may not have tested what it was meant to. [Probe.Ignore] turns that off.
//
// If the World and its Probes are not used for a day of virtual time, the test is taken to wait
// forever. Then the program ends with a panic that reports where the test waits, the state of every
// other goroutine, the unread messages of Probes and the identifiers. A World that is used after
// its end panics, too.
//
// # Limitations
//
// The device is package cmid/cmidtest's, with its limitations. Host names that [World.Name] does
// not know are looked up for real, and a bubble's time stands still for as long as that takes.
//
// By default an application gets the events that package iwarp would give it, but for this:
// ResolveAddr to a silent address is AddrError ETIMEDOUT, as on kernel devices, where package
// iwarp asks nobody and Connect is Unreachable, after 10 s if nothing comes back at all. The
// accepting side is Established immediately, and the disconnecting side Disconnected, where
// package iwarp waits for its peer. A connection whose peer falls silent (Silence) stays, where
// package iwarp gives up after 30 s: use Cut. A Send that was not answered when DestroyID came may
// be reported as SendFailed, although it arrived. Devices can be removed. Errors have the same
// errnos, and fewer words.
//
// Contexts come from w.T, not from the test outside. If a goroutine is left at the end it is
// reported, and then synctest ends the whole test program. An rpc.Server has goroutines until it
// is closed. Runtimes have one loop each, unless Config.Runtime has more. A panic that code of the
// test's recovers by itself is not seen, nor is one in a codec or an interceptor of an rpc client:
// that is the error of its call; nor one in an actor of another ActorSystem than w.System. A
// runtime.Goexit in an actor with Proto.Actor's own mailbox is not seen either, and stops that
// actor (after FailNow the test has failed already). While a goroutine waits for a sync.Mutex, for
// a system call, or for a channel from outside the bubble, virtual time stands still: in the end
// go test's time-out ends the program. That also ends a test that calls Advance in an endless
// loop.
//
// The Data of a *rdma.Received that is kept without Retain stays readable until the memory is used
// again, so that such a test may pass. With go test -race, released memory is overwritten.
package actortest
