package sim

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// maxBody bounds a request, images included.
const maxBody = 64 << 20

// errGone says that the client closed before the answer was whole.
var errGone = errors.New("sim: the client is gone")

// exchange is one call being answered.
type exchange struct {
	w     http.ResponseWriter
	ctx   context.Context
	conn  *conn
	proto protocol
	fault Fault
	call  call
	reply answer
}

// provider serves the chat endpoint of one protocol.
func (s *Server) provider(name string, proto protocol) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			return // there is nobody to answer, or no sense in it
		}
		c, err := proto.decode(body)
		if err != nil {
			writeError(w, proto, http.StatusBadRequest)
			return
		}
		turn := s.counters.begin(name, c.model)
		fault, err := s.faultFor(name, c.model, turn)
		if err != nil {
			writeError(w, proto, http.StatusNotFound)
			s.counters.end(c.model, false)
			return
		}
		x := &exchange{w: w, ctx: r.Context(), proto: proto, fault: fault, call: c, reply: newAnswer(c, fault)}
		x.conn, _ = r.Context().Value(connKey{}).(*conn)
		cancelled := false
		defer func() { s.counters.end(c.model, cancelled) }()
		if fault.Kind == Down {
			s.gate.down(fault.Wait, nil)
			x.abort()
		}
		if cancelled = errors.Is(x.serve(), errGone); cancelled {
			x.abort() // if it is this server that ends, what it broke off must not look whole
		}
	}
}

// faultFor decides what becomes of a call: by rule, or by the model's name.
func (s *Server) faultFor(provider, model string, turn int) (Fault, error) {
	if fault, ok := s.rules.match(provider, model, time.Now()); ok {
		return fault, nil
	}
	fault, err := ParseModel(model)
	if err == nil && fault.First > 0 && turn > fault.First {
		fault.Kind = OK
	}
	return fault, err
}

// serve answers, or fails in the way that was asked for.
func (x *exchange) serve() error {
	switch x.fault.Kind {
	case Status:
		x.status()
		return nil
	case Reset:
		x.conn.resetOnClose()
		x.abort()
	case EOF:
		x.abort()
	case Hang:
		return x.silence()
	case HTML:
		x.w.Header().Set("Content-Type", "text/html; charset=utf-8")
		return x.write([]byte("<!DOCTYPE html><html><body><h1>Sign in</h1></body></html>\n"))
	case WrongJSON:
		x.w.Header().Set("Content-Type", "application/json")
		return x.write([]byte(`{"unexpected":[1,2,3],"shape":{"of":"another service"}}`))
	}
	if x.call.stream {
		return x.stream()
	}
	return x.whole()
}

func (x *exchange) status() {
	if wait := x.fault.Wait; wait > 0 {
		x.w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
		if wait%time.Second != 0 {
			x.w.Header().Set("Retry-After-Ms", strconv.FormatInt(wait.Milliseconds(), 10))
		}
	}
	writeError(x.w, x.proto, x.fault.Code)
}

func writeError(w http.ResponseWriter, proto protocol, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(proto.failure(status)) // fails only when the client is gone
}

// stream sends the answer in pieces, up to where it must break.
func (x *exchange) stream() error {
	x.w.Header().Set("Content-Type", x.proto.streamType())
	if err := x.write(x.proto.begin(x.reply)); err != nil {
		return err
	}
	if x.fault.Kind == SlowFirst {
		if err := x.wait(x.fault.Wait); err != nil {
			return err
		}
	}
	for i, piece := range x.reply.pieces {
		if x.breaks(i) {
			return x.breakOff()
		}
		if i > 0 {
			if err := x.wait(x.fault.Gap); err != nil {
				return err
			}
		}
		if err := x.write(x.proto.piece(x.reply, piece)); err != nil {
			return err
		}
	}
	if x.breaks(len(x.reply.pieces)) {
		return x.breakOff()
	}
	if err := x.write(x.proto.finish(x.reply)); err != nil || x.fault.Kind == NoDone {
		return err
	}
	return x.write(x.proto.done(x.reply))
}

// whole sends the answer in one body, after the time that a stream would take.
func (x *exchange) whole() error {
	generation := time.Duration(max(0, len(x.reply.pieces)-1)) * x.fault.Gap
	if x.fault.Kind == SlowFirst {
		generation += x.fault.Wait
	}
	if err := x.wait(generation); err != nil {
		return err
	}
	body := x.proto.whole(x.reply)
	x.w.Header().Set("Content-Type", "application/json")
	switch x.fault.Kind {
	case Malformed, EndAfter:
		return x.write(body[:len(body)/2])
	case ErrorAfter:
		return x.write(x.proto.failure(http.StatusInternalServerError))
	case StallAfter, CutAfter, ResetAfter:
		x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		if err := x.write(body[:len(body)/2]); err != nil {
			return err
		}
		return x.breakOff()
	}
	return x.write(body)
}

// breaks reports whether the answer ends before piece i.
func (x *exchange) breaks(i int) bool {
	switch x.fault.Kind {
	case StallAfter, CutAfter, ResetAfter, EndAfter, ErrorAfter, Malformed:
		return i == min(x.fault.After, len(x.reply.pieces))
	}
	return false
}

// breakOff ends an answer that has begun.
func (x *exchange) breakOff() error {
	switch x.fault.Kind {
	case StallAfter:
		return x.silence()
	case ErrorAfter:
		return x.write(x.proto.event(x.proto.failure(http.StatusServiceUnavailable)))
	case Malformed:
		return x.write(x.proto.event([]byte(`{"unterminated":"`)))
	case ResetAfter:
		// What was sent must arrive first: RST discards what the peer has not read.
		if err := x.wait(30 * time.Millisecond); err != nil {
			return err
		}
		x.conn.resetOnClose()
		x.abort()
	case CutAfter:
		x.abort()
	}
	return nil
}

// abort closes the connection where it stands.
func (x *exchange) abort() { panic(http.ErrAbortHandler) }

// silence waits until the client gives up.
func (x *exchange) silence() error {
	<-x.ctx.Done()
	return errGone
}

func (x *exchange) wait(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-x.ctx.Done():
		return errGone
	}
}

// write sends bytes at once: what a test splits must arrive split.
func (x *exchange) write(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if _, err := x.w.Write(data); err != nil {
		return errGone
	}
	if err := http.NewResponseController(x.w).Flush(); err != nil {
		return errGone
	}
	return nil
}
