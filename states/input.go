package states

import "strconv"

// Input is one of three things that move an identifier: a command was asked, a command failed, an
// event came.
type Input uint8

// Inputs are numbered in this order: commands asked, commands failed, events. One number each is
// kept for commands and events that this package does not know.
const (
	firstFailed    = numOps
	firstOccurred  = 2 * numOps
	unknownEvent   = firstOccurred + NumKernelKinds
	unknownCommand = unknownEvent + 1

	// NumInputs is the number of inputs.
	NumInputs = unknownCommand + 1
)

// Requested returns the input of a request for op. Step judges it and returns the state after the
// device has accepted it.
func Requested(op Op) Input {
	if int(op) >= numOps {
		return Input(unknownCommand)
	}
	return Input(op)
}

// CommandFailed returns the input of a failure of op in the device, immediately or later, after
// Requested was allowed. It is never refused and never ignored, since every command is answered.
// The next state is that of the identifier after the failure.
func CommandFailed(op Op) Input {
	if int(op) >= numOps {
		return Input(unknownEvent)
	}
	return Input(firstFailed + int(op))
}

// Occurred returns the input of an event that the device reported. Kinds that only answer commands
// (KindBound and on), and numbers of later kernels, are ignored in every state.
func Occurred(k Kind) Input {
	if int(k) >= NumKernelKinds {
		return Input(unknownEvent)
	}
	return Input(firstOccurred + int(k))
}

// commandOf returns the command of Requested and of CommandFailed.
func (in Input) commandOf() (op Op, ok bool) {
	switch {
	case int(in) < firstFailed:
		return Op(in), true
	case int(in) < firstOccurred:
		return Op(int(in) - firstFailed), true
	}
	return 0, false
}

// String names the input: "Connect", "Connect fails", "AddrResolved".
func (in Input) String() string {
	i := int(in)
	switch {
	case i < firstFailed:
		return Op(i).String()
	case i < firstOccurred:
		return Op(i-firstFailed).String() + " fails"
	case i < unknownEvent:
		return Kind(i - firstOccurred).String()
	case i == unknownEvent:
		return "unknown event"
	case i == unknownCommand:
		return "unknown command"
	}
	return "Input(" + strconv.Itoa(i) + ")"
}

// MarshalText returns String's text.
func (in Input) MarshalText() ([]byte, error) { return []byte(in.String()), nil }
