package datapath

import "testing"

// TestNextStep holds what goes next against docs/wire.md and actor/README.md: the order of what was
// submitted, but for operations, which do not wait for the peer; and runs of messages that complete
// together.
func TestNextStep(t *testing.T) {
	free := outlook{depth: 8, posted: 2, window: 3}
	with := func(change func(o *outlook)) outlook {
		o := free
		change(&o)
		return o
	}
	message := func(o *outlook) { o.sends, o.sendSeq, o.ready = true, 7, true }
	run := func(o *outlook) { message(o); o.inline = true }
	for _, tt := range []struct {
		name string
		o    outlook
		want step
	}{
		{"nothing waits", free, stepNone},
		{"a message", with(message), stepSend},
		{"the send queue is full", with(func(o *outlook) { message(o); o.posted = 8 }), stepNone},
		{"the peer has no room", with(func(o *outlook) { message(o); o.window = 0 }), stepNone},
		{"a large message that is short of memory", with(func(o *outlook) { message(o); o.ready = false }), stepNone},

		{"an operation", with(func(o *outlook) { o.ops = true }), stepOp},
		{"an operation, and the send queue is full", with(func(o *outlook) { o.ops = true; o.posted = 8 }), stepNone},
		{"an operation before a message", with(func(o *outlook) { message(o); o.ops, o.opSeq = true, 6 }), stepOp},
		{"an operation behind a message", with(func(o *outlook) { message(o); o.ops, o.opSeq = true, 8 }), stepSend},
		{"the same where places begin anew", with(func(o *outlook) { message(o); o.sendSeq = 1<<32 - 1; o.ops, o.opSeq = true, 1 }), stepSend},
		{"an operation overtakes a message without credits", with(func(o *outlook) { message(o); o.window = 0; o.ops, o.opSeq = true, 8 }), stepOp},
		{"and one that is short of memory", with(func(o *outlook) { message(o); o.ready = false; o.ops, o.opSeq = true, 8 }), stepOp},

		{"a message in a run", with(run), stepQuiet},
		{"one whose sender wants to know", with(func(o *outlook) { run(o); o.alone = true }), stepSend},
		{"the last that the peer has room for", with(func(o *outlook) { run(o); o.window = 1 }), stepSend},
		{"the last that the send queue has room for", with(func(o *outlook) { run(o); o.posted = 7 }), stepSend},
		{"an operation may come in between", with(func(o *outlook) { run(o); o.ops, o.opSeq = true, 8 }), stepSend},
		{"a quarter of the queue has completed in silence", with(func(o *outlook) { run(o); o.silent = 1 }), stepSend},
	} {
		if got := tt.o.nextStep(); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestNextStepIsFree: what is asked for each message costs no memory.
func TestNextStepIsFree(t *testing.T) {
	o := outlook{depth: 8, window: 3, sends: true, ready: true, inline: true}
	if n := testing.AllocsPerRun(100, func() { _ = o.nextStep() }); n != 0 {
		t.Errorf("a step allocates %v times", n)
	}
}
