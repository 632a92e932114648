package main

import "time"

// pool manages the processes that play. Each of its users plays one world at a time.
type pool struct {
	idle     chan *worker
	patience time.Duration
	env      []string // makes this program a worker
}

func newPool(n int, patience time.Duration) *pool {
	return &pool{idle: make(chan *worker, n), patience: patience, env: []string{workerEnv + "=1"}}
}

// playWorld plays a world in an idle process, or in a new one.
func (l *pool) playWorld(j job) (outcome, error) {
	var w *worker
	select {
	case w = <-l.idle:
	default:
		var err error
		if w, err = startWorker(l.env); err != nil {
			return outcome{}, err
		}
	}
	o, alive := w.playWorld(j, l.patience)
	if alive {
		l.idle <- w
	}
	return o, nil
}

// close ends the processes.
func (l *pool) close() {
	close(l.idle)
	for w := range l.idle {
		w.stopAndWait()
	}
}
