package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
)

var (
	errAway = &llm.Error{Code: llm.CodeUnavailable, Message: "there is no connection to NATS", RetryAfterMS: 2000}
	errLost = &llm.Error{Code: llm.CodeUnavailable, Message: "the connection to NATS was lost while the answer was awaited"}
)

// outage gives up the requests in flight when NATS stays away. What a worker
// answered meanwhile is lost, and a caller over HTTP can ask again; without this
// it would wait for its own deadline.
type outage struct {
	conn     *nats.Conn
	patience time.Duration

	mu       sync.Mutex
	last     int
	inFlight map[int]context.CancelCauseFunc
}

// join returns a context that ends when NATS stays away. leave must be called.
func (o *outage) join(ctx context.Context) (joined context.Context, leave func()) {
	joined, cancel := context.WithCancelCause(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last++
	id := o.last
	if o.inFlight == nil {
		o.inFlight = make(map[int]context.CancelCauseFunc)
	}
	o.inFlight[id] = cancel
	return joined, func() {
		cancel(nil)
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.inFlight, id)
	}
}

// watch runs until ctx ends.
func (o *outage) watch(ctx context.Context) {
	status := o.conn.StatusChanged(nats.CONNECTED, nats.DISCONNECTED, nats.RECONNECTING, nats.CLOSED)
	defer o.conn.RemoveStatusListener(status)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for away := false; ; {
		if connected := o.conn.IsConnected(); connected {
			away = false
			timer.Stop()
		} else if !away {
			away = true
			timer.Reset(o.patience)
		}
		select {
		case <-status:
		case <-timer.C:
			if away {
				o.giveUp()
			}
		case <-ctx.Done():
			return
		}
	}
}

func (o *outage) giveUp() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, cancel := range o.inFlight {
		cancel(errLost)
	}
}

// online waits a little for a connection: a request that is sent without one
// would grow old in a buffer.
func (s *Server) online(ctx context.Context) error {
	if s.cfg.Conn.IsConnected() {
		return nil
	}
	status := s.cfg.Conn.StatusChanged(nats.CONNECTED)
	defer s.cfg.Conn.RemoveStatusListener(status)
	if s.cfg.Conn.IsConnected() {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Admission, errAway)
	defer cancel()
	select {
	case <-status:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
