package http1

import (
	"bufio"
	"cmp"
	"errors"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// conn is a connection, of one call at a time.
type conn struct {
	net.Conn          // TLS, or the same as tcp
	tcp      net.Conn // beneath
	host     host
	maxHead  int64

	r     *bufio.Reader // of what conn.Read gives
	left  int64         // bytes that may still be read
	heard bool          // a byte of the answer has come
	since time.Time     // idle

	raw    syscall.RawConn
	look   func(fd uintptr) bool // peek, as a value that is made once
	silent bool                  // what look saw
}

const (
	readBuffer = 4 << 10  // bytes; net/http takes no longer line before a chunk
	atOnce     = 16 << 10 // bytes of a body that any socket takes without waiting
)

func (c *conn) init() error {
	c.r, c.look = bufio.NewReaderSize(readerFunc(c.read), readBuffer), c.peek
	var err error
	c.raw, err = c.tcp.(syscall.Conn).SyscallConn()
	return err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// read bounds the head of an answer.
func (c *conn) read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errHeadTooLong
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	c.heard = c.heard || n > 0
	return n, err
}

// cut ends whatever is under way. It closes the socket itself: a good-bye of TLS
// would have to wait for a write that is stuck.
func (c *conn) cut() { _ = c.tcp.Close() }

// send writes the request and says how many bytes were taken. Where the peer
// might answer before it has read all of it, the writing goes on beside the
// reading of the answer, and the channel has the end of it.
func (c *conn) send(to *Endpoint, body []byte, heads *sync.Pool) (n int, sending <-chan error, err error) {
	buf := heads.Get().(*[]byte)
	head := strconv.AppendInt(append((*buf)[:0], to.head...), int64(len(body)), 10)
	head = append(head, "\r\n\r\n"...)
	if len(body) > atOnce {
		sent := make(chan error, 1)
		go func() {
			_, err := (&net.Buffers{head, body}).WriteTo(c.Conn)
			*buf = head
			heads.Put(buf)
			sent <- err
		}()
		return 0, sent, nil
	}
	head = append(head, body...)
	n, err = c.Write(head)
	*buf = head
	heads.Put(buf)
	return n, nil, err
}

// asked is the request that answers are read for.
var asked = &http.Request{Method: http.MethodPost}

// answer reads an answer up to its body. A request that was not taken may be
// answered all the same; if it is not, unsent is the error.
func (c *conn) answer(unsent error) (*http.Response, error) {
	c.left, c.heard = c.maxHead, false
	resp, err := http.ReadResponse(c.r, asked)
	for err == nil && resp.StatusCode/100 == 1 && resp.StatusCode != http.StatusSwitchingProtocols {
		resp, err = http.ReadResponse(c.r, asked)
	}
	switch {
	case err != nil && c.heard:
		return nil, &BadAnswer{err}
	case err != nil:
		return nil, cmp.Or(unsent, err)
	}
	c.left = math.MaxInt64
	return resp, nil
}

// quiet reports whether an idle connection has nothing to say, which it has if
// the peer has closed it.
func (c *conn) quiet() bool {
	if c.Conn != c.tcp && !c.decrypted() {
		return false
	}
	c.silent = false
	return c.raw.Read(c.look) == nil && c.silent
}

// peek tries to read from the socket, without waiting.
func (c *conn) peek(fd uintptr) bool {
	c.silent = wouldBlock(fd)
	return true
}

// decrypted reports whether TLS holds nothing back that it has read already.
func (c *conn) decrypted() bool {
	if c.SetReadDeadline(time.Unix(1, 0)) != nil {
		return false
	}
	_, err := c.Conn.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded) && c.SetReadDeadline(time.Time{}) == nil
}
