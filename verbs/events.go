package verbs

import "github.com/rdmactor/rdmactor/internal/enum"

// DeviceEvent is an asynchronous event of a device or of one of its ports (enum ibv_event_type). It
// does not end connections: their ends are reported for each identifier.
type DeviceEvent uint8

// The events.
const (
	// IBV_EVENT_DEVICE_FATAL: every identifier of the device ends
	DeviceFatal      DeviceEvent = iota
	PortActive                   // IBV_EVENT_PORT_ACTIVE
	PortError                    // IBV_EVENT_PORT_ERR: the port is down
	LIDChange                    // IBV_EVENT_LID_CHANGE
	PKeyChange                   // IBV_EVENT_PKEY_CHANGE
	SMChange                     // IBV_EVENT_SM_CHANGE
	ClientReregister             // IBV_EVENT_CLIENT_REREGISTER
	GIDChange                    // IBV_EVENT_GID_CHANGE
)

var deviceEventNames = []string{
	"device fatal", "port active", "port error", "LID change", "PKey change", "subnet manager change", "client reregister", "GID change",
}

// String describes the event in words.
func (e DeviceEvent) String() string { return enum.At(deviceEventNames, e, "DeviceEvent(%d)") }

// MarshalText returns String's text.
func (e DeviceEvent) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// Reporter is a Device that reports its asynchronous events. Loop goroutine only.
type Reporter interface {
	Device
	// OnDeviceEvent makes the device call f, on the loop, for each event. port counts from 1; it is
	// 0 for DeviceFatal. If f is nil, the default, events are not reported.
	OnDeviceEvent(f func(ev DeviceEvent, port int))
}
