package vectors

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Server plays the upstream of one case on a TCP socket.
type Server struct {
	URL string // no path, no slash at its end

	upstream *Upstream
	closing  chan struct{}
	serving  sync.WaitGroup

	mu       sync.Mutex
	requests []Recorded
	accepted int
	conns    map[net.Conn]bool
}

// Recorded is a request as it came.
type Recorded struct {
	Method string
	Path   string
	Query  url.Values
	Header http.Header
	Body   []byte
}

// Serve starts a server that lives as long as the test.
func Serve(t testing.TB, upstream *Upstream) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		URL: "http://" + listener.Addr().String(), upstream: upstream,
		closing: make(chan struct{}), conns: make(map[net.Conn]bool),
	}
	if upstream.Fault == "refuse" {
		_ = listener.Close()
		return s
	}
	s.serving.Go(func() { s.accept(listener) })
	t.Cleanup(func() {
		close(s.closing)
		_ = listener.Close()
		s.mu.Lock()
		for conn := range s.conns {
			_ = conn.Close()
		}
		s.mu.Unlock()
		s.serving.Wait()
	})
	return s
}

// Requests are those that came so far.
func (s *Server) Requests() []Recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Recorded(nil), s.requests...)
}

// Open is the number of connections that neither side has closed.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Accepted is the number of connections that were made so far.
func (s *Server) Accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

func (s *Server) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.accepted++
		s.conns[conn] = true
		s.mu.Unlock()
		s.serving.Go(func() {
			s.talk(conn)
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
		})
	}
}

// talk answers requests until the fault or the peer ends the connection.
func (s *Server) talk(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	reader := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.requests = append(s.requests, Recorded{req.Method, req.URL.Path, req.URL.Query(), req.Header, body})
		s.mu.Unlock()
		if !s.answer(conn, reader) {
			return
		}
	}
}

// answer reports whether the connection can serve another request.
func (s *Server) answer(conn net.Conn, reader *bufio.Reader) bool {
	chunked := s.upstream.Status != 0 && s.header("Content-Length") == ""
	if s.upstream.Status != 0 && !s.write(conn, chunked) {
		return false
	}
	switch s.upstream.Fault {
	case "reset":
		s.wait(30 * time.Millisecond)
		_ = conn.(*net.TCPConn).SetLinger(0)
		return false
	case "truncate":
		return false
	case "stall":
		_, _ = io.Copy(io.Discard, reader) // until the peer leaves or the test ends
		return false
	}
	if chunked {
		_, err := io.WriteString(conn, "0\r\n\r\n")
		return err == nil
	}
	return s.upstream.Status != 0
}

func (s *Server) write(conn net.Conn, chunked bool) bool {
	var head bytes.Buffer
	fmt.Fprintf(&head, "HTTP/1.1 %d %s\r\n", s.upstream.Status, http.StatusText(s.upstream.Status))
	for name, value := range s.upstream.Headers {
		fmt.Fprintf(&head, "%s: %s\r\n", name, value)
	}
	if chunked {
		head.WriteString("Transfer-Encoding: chunked\r\n")
	}
	head.WriteString("\r\n")
	if _, err := conn.Write(head.Bytes()); err != nil {
		return false
	}
	chunks := s.upstream.Chunks
	if chunks == nil {
		chunks = []Chunk{{Data: s.upstream.Body, DataB64: s.upstream.BodyB64}}
	}
	for i := range chunks {
		if !s.wait(time.Duration(chunks[i].DelayMS) * time.Millisecond) {
			return false
		}
		data := chunks[i].bytes()
		if chunked && len(data) > 0 {
			data = fmt.Appendf(nil, "%x\r\n%s\r\n", len(data), data)
		}
		if _, err := conn.Write(data); err != nil {
			return false
		}
	}
	return true
}

func (s *Server) wait(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-s.closing:
		return false
	}
}

func (s *Server) header(name string) string {
	for n, value := range s.upstream.Headers {
		if http.CanonicalHeaderKey(n) == name {
			return value
		}
	}
	return ""
}
