package http1

import (
	"errors"
	"io"
	"sync"
	"time"
)

// answerBody frees the connection of an answer.
type answerBody struct {
	io.ReadCloser // net/http's; its Close is not called, since it may wait for the rest

	conn    *conn
	pool    *pool
	stop    func() bool  // lets the context end without us
	sending <-chan error // of a request that is sent beside; nil if it is sent
	last    bool         // the connection ends with this answer
	over    sync.Once
}

// Read frees the connection at the end of the body.
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end(errors.Is(err, io.EOF) && !b.last)
	}
	return n, err
}

// Close cuts the connection unless the body was read to its end.
func (b *answerBody) Close() error {
	b.end(false)
	return nil
}

// end is the end of the call, the first time that it is called. When it returns,
// nobody looks at the request any more, whoever called it first.
func (b *answerBody) end(keep bool) { b.over.Do(func() { b.free(keep) }) }

func (b *answerBody) free(keep bool) {
	if b.stop() && keep && b.sent() && b.conn.r.Buffered() == 0 {
		b.pool.put(b.conn)
		return
	}
	b.conn.cut()
	if b.sending != nil {
		<-b.sending
	}
}

// sendingEnds is how long the end of a request is waited for whose answer is
// complete already. Mostly it is there, and only its goroutine has to say so.
const sendingEnds = 50 * time.Millisecond

// sent reports whether the request was sent whole.
func (b *answerBody) sent() bool {
	if b.sending == nil {
		return true
	}
	timer := time.NewTimer(sendingEnds)
	defer timer.Stop()
	select {
	case err := <-b.sending:
		b.sending = nil
		return err == nil
	case <-timer.C:
		return false
	}
}
