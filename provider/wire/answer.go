package wire

import (
	"errors"
	"time"

	"github.com/llmbus/llmbus/internal/scan"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// Answer is one answer as it comes. An adapter puts in what it reads, and the
// caller gets a frame of it at once, but for text: while more of the answer is
// at hand its frame waits, so that a reader that cannot keep up has fewer, larger
// ones.
type Answer struct {
	Assembly
	Resp   *Response
	Stream bool              // the answer was asked for in pieces
	Cut    *provider.Failure // how the reading of a finished stream broke off, if it did

	// Plain reads a piece of a stream that is nothing but one text, as nearly all
	// are, and says no to any that holds what it does not know: those are decoded
	// in full. It may be nil.
	Plain func(*scan.Cursor) bool

	emit     Emit
	finished bool
}

// Events are the pieces of a streamed answer.
type Events interface {
	// Next returns the next one, whose data is valid until the call after.
	Next() (Event, error)
	// Buffered reports whether Next would return at once, with a piece that has
	// been read already. It may say no of one that has.
	Buffered() bool
}

// ErrEnd says that a stream has come to its end.
var ErrEnd = errors.New("the answer is whole")

// Read reads the answer in the form that its first byte shows, since a server may
// answer a request for a stream with one body and the other way round.
func (a *Answer) Read(whole func([]byte) error, event func(Event) error) error {
	switch first, err := a.Resp.First(); {
	case err != nil:
		return err
	case first == 0 || first == '<': // nothing, or a page of whatever stands in the path
		return a.Resp.Broken(ErrBroken)
	case first == '{' || first == '[':
		return a.Whole(whole)
	}
	return a.Events(a.Resp.SSE(), event)
}

// Whole takes an answer in one body.
func (a *Answer) Whole(take func([]byte) error) error {
	data, err := a.Resp.ReadAll()
	if err != nil {
		return err
	}
	if err := take(data); err != nil && !errors.Is(err, ErrEnd) {
		return err
	}
	return a.show()
}

// Events takes a stream up to [DONE] or the piece for which take returns ErrEnd.
// After Finish it may end in any other way, too.
func (a *Answer) Events(events Events, take func(Event) error) error {
	err := a.takeAll(events, take)
	if left := a.show(); left != nil { // what came before an error was an answer, too
		return left
	}
	if errors.Is(err, ErrEnd) {
		a.Resp.Done()
		return nil
	}
	return err
}

func (a *Answer) takeAll(events Events, take func(Event) error) error {
	var plain scan.Form
	for {
		event, err := events.Next()
		switch {
		case err != nil && !a.finished:
			return a.Resp.Broken(err)
		case err != nil:
			a.Cut = a.Resp.Broken(err)
			return ErrEnd
		case event.Done():
			return ErrEnd
		}
		if text, ok := a.plain(&plain, event); ok {
			a.SayBytes(scan.Bare(text))
		} else if err := take(event); err != nil {
			return err
		}
		if !events.Buffered() {
			if err := a.show(); err != nil {
				return err
			}
		}
	}
}

// plain returns the text of a plain piece. An error is none, whatever it holds.
func (a *Answer) plain(form *scan.Form, e Event) (text []byte, ok bool) {
	if a.Plain == nil || e.Name == "error" {
		return nil, false
	}
	return form.Text(e.Data, a.Plain)
}

// Finish says that the answer is good from here on. Only counts may still come,
// for at most this long.
func (a *Answer) Finish(rest time.Duration) {
	if !a.finished {
		a.finished = true
		a.Resp.EndWithin(rest)
	}
}

// Think adds thinking.
func (a *Answer) Think(piece string) error {
	if piece == "" {
		return nil
	}
	return a.Send(a.Reasoning(piece))
}

// Send hands out a frame, after the text before it.
func (a *Answer) Send(f llm.Frame) error {
	if err := a.show(); err != nil {
		return err
	}
	return a.emit(f)
}

// show hands out the text that no frame shows yet.
func (a *Answer) show() error { return a.emit(a.Unshown()) }
